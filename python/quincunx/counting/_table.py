"""Tables of exact counts, and what of a published table is wrong."""

from dataclasses import dataclass, field
from html import escape
from typing import Literal

from quincunx import _check, _core, lattices
from quincunx._optional import require
from quincunx._progress import Progress, reporting
from quincunx._types import DataFrame
from quincunx.counting import _thesis
from quincunx.counting._independent_sets import count_independent_sets
from quincunx.counting._problem import KERNELS

#: Counts of more digits are shown as a power of ten in a grid, whose columns would be wider else; not tuned.
_DIGITS = 24


@dataclass(frozen=True, repr=False)
class IndependentSetTable:
    """Exact numbers of independent sets of a lattice, for extents from 1 to a largest.

    Attributes
    ----------
    lattice : str
        The lattice's name.
    boundary : str
        ``"free"``, ``"cylinder"`` or ``"torus"``.
    size : int
        The largest extent.
    values : dict
        The count by ``(m, n)``.
    published : dict
        The published entries by ``(m, n)``, empty if the table is compared with none.
    """

    lattice: str
    boundary: str
    size: int
    values: dict[tuple[int, int], int] = field(repr=False)
    published: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)

    def __getitem__(self, place: tuple[int, int]) -> int:
        return self.values[place]

    @property
    def wrong(self) -> dict[tuple[int, int], int]:
        """The published entries that are wrong, by ``(m, n)``, as they were printed."""
        return {place: entry for place, entry in self.published.items() if entry != self.values[place]}

    def to_dict(self) -> dict[str, object]:
        """Return the table with every number as a decimal string, ready for JSON.

        Returns
        -------
        dict
        """
        values = {f"{m},{n}": _core.to_decimal(value) for (m, n), value in self.values.items()}
        answer: dict[str, object] = {
            "lattice": self.lattice,
            "boundary": self.boundary,
            "size": self.size,
            "values": values,
        }
        if self.published:
            answer["wrong"] = {f"{m},{n}": _core.to_decimal(value) for (m, n), value in self.wrong.items()}
        return answer

    def to_pandas(self) -> DataFrame:
        """Return the counts as a DataFrame of exact ints, with a row for each m and a column for each n.

        Returns
        -------
        pandas.DataFrame
            Of Python's ints, which no float has rounded.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from quincunx.counting import independent_set_table
        >>> independent_set_table("square", 3).to_pandas().loc[2, 3]
        17
        """
        pandas = require("pandas", "pandas")
        ends = range(1, self.size + 1)
        rows = [[self.values[m, n] for n in ends] for m in ends]
        index = pandas.Index(ends, name="m")
        return pandas.DataFrame(rows, index=index, columns=pandas.Index(ends, name="n"), dtype=object)

    def grid(self) -> str:
        """Return the counts as a grid, a line for each m and a column for each n.

        What has more than 24 digits is shown as a power of ten. A star marks a published entry that is wrong.

        Returns
        -------
        str

        Examples
        --------
        >>> from quincunx.counting import independent_set_table
        >>> print(independent_set_table("square", 3).grid())
        m, n  1   2   3
        1      2   3   5
        2      3   7  17
        3      5  17  63
        """
        ends = range(1, self.size + 1)
        wrong = self.wrong
        cells = [["m, n", *map(str, ends)]]
        cells += [[str(m), *(_short(self.values[m, n]) + "*" * ((m, n) in wrong) for n in ends)] for m in ends]
        widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
        lines = []
        for row in cells:
            counts = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            lines.append("  ".join([row[0].ljust(widths[0]), *counts]))
        return "\n".join(lines)

    def __repr__(self) -> str:
        said = f"IndependentSetTable({self.lattice!r}, {self.size}, boundary={self.boundary!r})"
        return f"{said}\n{self.grid()}"

    def _repr_html_(self) -> str:
        ends = range(1, self.size + 1)
        wrong = self.wrong
        head = "".join(f"<th>{n}</th>" for n in ends)
        body = "".join(
            f"<tr><th>{m}</th>"
            + "".join(
                f'<td style="text-align:right">{_short(self.values[m, n])}{"*" * ((m, n) in wrong)}</td>' for n in ends
            )
            + "</tr>"
            for m in ends
        )
        title = f"Independent sets, {escape(self.lattice)}, {self.boundary}"
        return f"<table><caption><b>{title}</b></caption><tr><th>m, n</th>{head}</tr>{body}</table>"

    def __str__(self) -> str:
        lines = [f"{self.lattice}, {self.boundary}"]
        for (m, n), value in self.values.items():
            line = f"{m:>3} {n:>3}  {_core.to_decimal(value)}"
            if (m, n) in self.wrong:
                line += f"  (published: {_core.to_decimal(self.published[m, n])}, wrong)"
            lines.append(line)
        if self.published:
            lines.append(f"{len(self.wrong)} of {len(self.published)} published entries are wrong")
        return "\n".join(lines)


def _short(count: int) -> str:
    """Return a count in digits, or where they are many as a power of ten."""
    digits: str = _core.to_decimal(count)
    return digits if len(digits) <= _DIGITS else f"{digits[0]}.{digits[1:4]}e{len(digits) - 1}"


def independent_set_table(
    lattice: str = "4-8-8",
    size: int = 10,
    *,
    boundary: Literal["free", "cylinder", "torus"] = "free",
    compare: Literal["thesis"] | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Progress = None,
) -> IndependentSetTable:
    """Count the independent sets of a lattice for all extents up to a largest.

    Parameters
    ----------
    lattice : str, optional
        A lattice's name, as in `quincunx.lattices.named`; extents of ``"4-8-8"`` count octagons.
    size : int, optional
        The largest extent, >= 1.
    boundary : {"free", "cylinder", "torus"}, optional
        A cylinder closes the second extent. Periodic extents that make loops or parallel edges are counted as the
        multigraph's independent sets: a looped vertex is in none, parallel edges are one.
    compare : {"thesis"}, optional
        Published numbers to compare with: tables 7.1 to 7.3 of the thesis [1]_, for the 4-8-8 lattice.
    threads, memory_limit, progress
        As in `count_independent_sets`.

    Returns
    -------
    IndependentSetTable
        The counts by ``(m, n)``, and the published entries that are wrong.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it should be.

    References
    ----------
    .. [1] Z. Zhang (2017), tables 7.1 to 7.3 of a thesis.

    Examples
    --------
    >>> from quincunx.counting import independent_set_table
    >>> table = independent_set_table("4-8-8", 3)
    >>> table[2, 3]
    7144259
    >>> independent_set_table("4-8-8", 5, compare="thesis").wrong
    {(4, 5): 21891571255589181023, (5, 5): 400989410760263959456896}
    """
    size = _check.whole(size, "size", minimum=1, maximum=1000)
    _check.one_of(boundary, "boundary", ["free", "cylinder", "torus"])
    published = {}
    if compare is not None:
        _check.one_of(compare, "compare", ["thesis"])
        if lattices.named(lattice, 1, 1).kind != "4-8-8":
            raise ValueError(f"`compare` must be None for a lattice other than '4-8-8', got {compare!r}")
        published = {place: entry for place, entry in _thesis.printed(boundary).items() if max(place) <= size}
    values: dict[tuple[int, int], int] = {}
    with reporting(progress, "table") as report:
        for m in range(1, size + 1):
            for n in range(1, size + 1):
                cell = lattices.named(lattice, m, n, boundary, multigraph=True)
                if cell.kind in KERNELS and boundary != "cylinder" and (n, m) in values:
                    values[m, n] = values[n, m]  # the lattices with a kernel are the same seen from the side
                else:
                    values[m, n] = count_independent_sets(cell, threads=threads, memory_limit=memory_limit)
                if report is not None:
                    report(len(values), size * size)
    return IndependentSetTable(lattice, boundary, size, values, published)
