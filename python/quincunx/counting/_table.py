"""Tables of exact counts, and what of a published table is wrong."""

from dataclasses import dataclass, field
from typing import Any

from quincunx import _check, _core, lattices
from quincunx._progress import Progress, reporting
from quincunx.counting import _thesis
from quincunx.counting._independent_sets import count_independent_sets
from quincunx.counting._problem import KERNELS


@dataclass(frozen=True)
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

    def to_dict(self) -> dict[str, Any]:
        """Return the table with every number as a decimal string, ready for JSON.

        Returns
        -------
        dict
        """
        values = {f"{m},{n}": _core.to_decimal(value) for (m, n), value in self.values.items()}
        answer: dict[str, Any] = {
            "lattice": self.lattice,
            "boundary": self.boundary,
            "size": self.size,
            "values": values,
        }
        if self.published:
            answer["wrong"] = {f"{m},{n}": _core.to_decimal(value) for (m, n), value in self.wrong.items()}
        return answer

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


def independent_set_table(
    lattice: str = "4-8-8",
    size: int = 10,
    *,
    boundary: str = "free",
    compare: str | None = None,
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
        Published numbers to compare with: the tables 7.1 to 7.3 of [1]_, for the 4-8-8 lattice.
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
    size = _check.whole(size, "size", minimum=1)
    boundary = _check.one_of(boundary, "boundary", ["free", "cylinder", "torus"])
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
