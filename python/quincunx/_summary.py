"""Summaries: what a model needs of any number of users, as numbers that add up without rounding.

A summary has a `Part` for each law of users. Parts of one law are added field by field, in whole numbers or fractions,
so that any order and any division into parts come to the same bits. A room says what its parts are; the files are
written here.
"""

from __future__ import annotations

import functools
import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, BinaryIO, ClassVar, Protocol, Self, dataclass_transform

import numpy as np

import quincunx
from quincunx import _check
from quincunx._docs import sections
from quincunx._inference import Arrays, decode, encode
from quincunx._npz import open_own, write_npz
from quincunx._optional import require
from quincunx._progress import Progress, reporting
from quincunx._types import Array, DataFrame, Facts

#: Of the archive: another number for what this version cannot read.
FORMAT = 1
#: Users of one summary: sums over them stay within 64 bits.
MOST_USERS = 2**33
#: Rows of a file that are read at a time: two megabytes for each column of numbers.
BATCH = 2**18


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, eq=False)
class Part:
    """What is known of the users of one law: a frozen dataclass, as every class derived from it is made to be."""

    #: The parts of all rooms by name, as files hold them.
    KINDS: ClassVar[dict[str, type[Part]]] = {}
    kind: ClassVar[str] = ""
    #: Fields that are sums over users; the others are their law.
    sums: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, kind: str = "") -> None:
        dataclass(frozen=True, eq=False)(cls)
        if kind:
            cls.kind, Part.KINDS[kind] = kind, cls

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _equal(value, vars(other)[name]) for name, value in vars(self).items() if name != "names"
        )

    @property
    def number(self) -> int:
        """The number of users: by default what the field `users` says."""
        return int(vars(self)["users"])

    @property
    def protected(self) -> bool:
        """Whether what is summed was released with noise."""
        return True

    @property
    def named(self) -> tuple[str, ...] | None:
        """The columns that are summed by position, in order: the field `names`, None where nobody named them."""
        return vars(self).get("names")

    def law(self) -> str:
        """Return what two parts must have in common to be added; of names it is enough that one has them."""
        known = (*self.sums, "names")
        own = [(each.name, _plain(getattr(self, each.name))) for each in fields(self) if each.name not in known]
        return repr((self.kind, own, self.shape()))

    def shape(self) -> object:
        """Return the lengths of the sums that differ between laws."""
        return [len(value) for name in self.sums if isinstance(value := getattr(self, name), tuple)]

    def plus(self, other: Self) -> Self:
        """Return the sum with a part of the same law."""
        named = self if other.named is None else other
        return replace(named, **{name: _added(getattr(self, name), getattr(other, name)) for name in self.sums})

    def check(self) -> None:
        """Refuse sums that no users have, with a ValueError."""
        raise NotImplementedError


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _equal(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    arrays = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.array_equal(one, other) if arrays else one == other  # type: ignore[arg-type]


def _added(one: Any, other: Any) -> Any:
    return tuple(map(operator.add, one, other)) if isinstance(one, tuple) else one + other


def are_counts(values: Iterable[float]) -> bool:
    """Whether numbers of users are whole and none is negative."""
    return all(value >= 0 and value == int(value) for value in values)


def _size(value: object) -> int:
    if isinstance(value, tuple):
        return sum(map(_size, value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Fraction):
        return (value.numerator.bit_length() + value.denominator.bit_length() + 7) // 8
    return 8 if isinstance(value, (int, float)) else 0


class _Model(Protocol):
    """What summarizes users; what of them is its own matter."""

    @property
    def summarize(self) -> Callable[..., Summary]: ...
    def _summarized_as(self) -> str: ...


@sections
@dataclass(frozen=True, repr=False)
class Summary:
    """What a model needs to know of users: the same bits however they were divided and in whatever order.

    Made by ``summarize`` of a model or a network, added with ``+``, and given to ``fit`` in the place of the reports.

    Parameters
    ----------
    model : str
        What it is a summary for.
    parts : tuple
        One for each law of users.
    unsafe : bool
        Whether a summary of data without noise may be pickled.

    Notes
    -----
    Reports are private already, and so is what is computed of them. A summary of data without noise is as secret as the
    data: it is neither saved nor pickled unless ``unsafe=True`` says that it may be.

    Examples
    --------
    >>> from quincunx.ldp import BernoulliModel
    >>> from quincunx.privacy import RandomizedResponse
    >>> model = BernoulliModel(RandomizedResponse(1.0))
    >>> whole = model.summarize([1] * 60 + [0] * 40)
    >>> model.summarize([1] * 60) + model.summarize([0] * 40) == whole, whole.n
    (True, 100)
    >>> model.fit(whole).posterior_mean_ == model.fit([1] * 60 + [0] * 40).posterior_mean_
    True
    """

    model: str
    parts: tuple[Part, ...] = ()
    unsafe: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            raise TypeError(f"`model` must be a string, got {type(self.model).__name__}")
        _check.flag(self.unsafe, "unsafe")
        if not isinstance(self.parts, tuple) or not all(isinstance(part, Part) for part in self.parts):
            raise TypeError(
                f"`parts` must be a tuple of parts, as `summarize` makes them, got {type(self.parts).__name__}"
            )
        if self.n >= MOST_USERS:
            raise ValueError(f"a summary must be of fewer than 2**33 users, got {self.n}")

    @classmethod
    def _of(cls, model: str, parts: Iterable[Part], unsafe: bool = False) -> Summary:
        """Return the summary of parts, those of one law added, in an order of their own."""
        by_law: dict[str, Part] = {}
        names: tuple[str, ...] | None = None
        for part in parts:
            if names is not None and part.named not in (None, names):
                raise ValueError(f"summaries must be of the same columns in one order, got {names} and {part.named}")
            names = names or part.named
            law = part.law()
            by_law[law] = by_law[law].plus(part) if law in by_law else part
        return cls(model, tuple(by_law[law] for law in sorted(by_law)), unsafe)

    @property
    def n(self) -> int:
        """The number of users."""
        return sum(part.number for part in self.parts)

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""
        return sum(_size(getattr(part, name)) for part in self.parts for name in part.sums)

    @property
    def is_protected(self) -> bool:
        """Whether all that it sums was released with noise."""
        return all(part.protected for part in self.parts)

    def __add__(self, other: Summary) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        if other.model != self.model:
            raise ValueError(f"summaries must be for one model, got {self.model} and {other.model}")
        raw = [each.unsafe for each in (self, other) if not each.is_protected]
        return Summary._of(self.model, (*self.parts, *other.parts), bool(raw) and all(raw))

    def __radd__(self, other: object) -> Summary:
        return self if other == 0 else NotImplemented  # the start of `sum`

    def __hash__(self) -> int:
        return hash((self.model, self.n))

    def __repr__(self) -> str:
        return f"<Summary for {self.model}: {self.n} users, {self.nbytes} bytes>"

    def __reduce__(self) -> tuple[object, ...]:
        self._refuse(self.unsafe, "pickled", "`summarize`")
        return Summary, (self.model, self.parts, self.unsafe)

    def __copy__(self) -> Summary:
        return self

    def __deepcopy__(self, memo: object) -> Summary:
        return self

    def _refuse(self, unsafe: bool, what: str, where: str) -> None:
        if not (unsafe or self.is_protected):
            raise ValueError(
                f"a summary of data without noise must not be {what}: it protects nobody. "
                f"Give `unsafe=True` to {where} if it may leave this process"
            )

    def save(self, target: str | os.PathLike[str] | BinaryIO, *, unsafe: bool = False) -> None:
        """Write the summary to an npz file, without pickle.

        Parameters
        ----------
        target : path or binary file
            Where to. A file is there wholly or not at all.
        unsafe : bool
            Whether a summary of data without noise may be written.

        Raises
        ------
        ValueError
            If it sums data without noise and `unsafe` is False.
        OSError
            If it cannot be written.
        """
        self._refuse(_check.flag(unsafe, "unsafe"), "saved", "`save`")
        arrays: Arrays = {}
        parts = [
            [part.kind, {name: encode(value, f"{i}_{name}", arrays) for name, value in vars(part).items()}]
            for i, part in enumerate(self.parts)
        ]
        header = {"format": FORMAT, "quincunx": quincunx.__version__, "model": self.model, "parts": parts}
        write_npz(target, arrays | {"summary": np.array(json.dumps(header, allow_nan=False))}, ".summary-")

    @classmethod
    def load(cls, source: str | os.PathLike[str] | BinaryIO) -> Summary:
        """Read a summary that `save` wrote.

        Parameters
        ----------
        source : path or binary file
            Where from.

        Returns
        -------
        Summary

        Raises
        ------
        ValueError
            If the file holds none, or sums that no users have.
        {unpacked}
        """
        with open_own(source, "summary", FORMAT, "summary") as (header, arrays):
            parts = [_part(kind, facts, arrays) for kind, facts in header["parts"]]
            found = cls._of(str(header["model"]), parts)
            if len(found.parts) != len(parts):
                raise ValueError("it has several parts of one law")
            return found

    @classmethod
    def from_parts(
        cls,
        parts: object,
        model: _Model,
        *,
        columns: str | Sequence[str] | None = None,
        target: str | None = None,
        unsafe: bool = False,
        progress: Progress = False,
        **given: object,
    ) -> Summary:
        """Return the summary of reports that come in parts, of which one at a time is in memory.

        Parameters
        ----------
        parts : iterable, path, pyarrow dataset, Dask frame or array
            Arrays, releases, data frames, record batches or summaries; tuples of records and answers for a regression;
            or a Parquet file or folder. The partitions of Dask are summarized where they are. A single array,
            release, frame or dictionary of groups is one part.
        model : object
            Whose ``summarize`` is called with each part.
        columns : str or list of str, optional
            Which columns of frames and files hold the reports; by default those of `model`'s nodes, or all others. Of
            a network they are its nodes, or stand for these in their order.
        target : str, optional
            Of a regression: the column of the answers.
        unsafe : bool
            Whether a summary of data without noise may be pickled, as Dask does.
        progress : bool or callable
            A bar, or a function of (done, total): of the rows of Parquet, or the parts of a list.
        **given
            Goes to ``summarize``, as `mechanism`.

        Returns
        -------
        Summary

        Raises
        ------
        ImportError
            If a path is given and pyarrow is not installed.
        ValueError, TypeError
            If a part is not what ``summarize`` takes.

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.ldp import GaussianModel, Summary
        >>> from quincunx.privacy import LaplaceMechanism
        >>> model = GaussianModel(LaplaceMechanism(1.0, -5, 5))
        >>> reports = np.linspace(-20, 20, 1000)
        >>> Summary.from_parts(np.split(reports, 10), model) == model.summarize(reports)
        True
        """
        if not hasattr(model, "summarize"):
            raise TypeError(f"`model` must have a method `summarize`, got {type(model).__name__}")
        one = _Each(model, columns, target, {"unsafe": unsafe, **given})
        if hasattr(parts, "to_delayed"):
            dask = require("dask", "dask")
            if hasattr(parts, "rechunk") and hasattr(parts, "ndim"):  # an array: no report of one user is divided
                parts = parts.rechunk(dict.fromkeys(range(1, parts.ndim), -1))
            found = [dask.delayed(one, pure=False)(part) for part in np.ravel(parts.to_delayed())]
            while len(found) > 1:
                found = [dask.delayed(total, pure=False)(found[i : i + 8]) for i in range(0, len(found), 8)]
            return dask.compute(*found)[0]  # type: ignore[no-any-return]
        pieces, by_rows, whole = _pieces(parts, one)
        summed = Summary(model._summarized_as())
        names: list[str] | None = None
        with reporting(progress, "summary") as report:
            for done, piece in enumerate(pieces, 1):
                if one.wanted() is None and (own := _names(piece)) is not None:
                    names = own if names is None else names
                    piece = _in_order(piece, own, names)
                summed += one(piece)
                if report is not None and whole is not None:
                    report(summed.n if by_rows else done, whole)
        return summed


def total(summaries: Iterable[Summary]) -> Summary:
    """Return the sum of summaries, of which there is one at the least."""
    return functools.reduce(operator.add, summaries)


def _part(kind: str, facts: Facts, arrays: Mapping[str, Array]) -> Part:
    """Return a part that a file holds, checked."""
    if kind not in Part.KINDS:
        raise ValueError(f"it has parts {kind!r}, which none of the imported rooms knows: import the one that wrote it")
    made = Part.KINDS[kind](**{name: decode(value, arrays) for name, value in facts.items()})
    if not made.sums:
        raise ValueError(f"{kind!r} is no part of a summary")
    made.check()
    return made


@dataclass(frozen=True)
class _Each:
    """Summarizes one part of a stream; pickled to Dask's workers."""

    model: _Model
    columns: str | Sequence[str] | None
    target: str | None
    given: Facts

    def __call__(self, part: object) -> Summary:
        if isinstance(part, Summary):
            return part
        arguments = part if isinstance(part, tuple) else self._of_frame(part) if _names(part) is not None else (part,)
        return self.model.summarize(*arguments, **self.given)

    def wanted(self) -> Sequence[str] | None:
        """Return the columns to read from a file, None for all."""
        columns = [self.columns] if isinstance(self.columns, str) else self.columns
        nodes = getattr(self.model, "nodes", None)
        if columns is None or (nodes is not None and set(columns) == set(nodes)):
            columns = nodes  # in their order; columns of other names stand for them in turn
        return None if columns is None else [*columns, *([] if self.target is None else [self.target])]

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Refuse columns that are not among those of the data, or there twice."""
        for argument, asked in (("target", [] if self.target is None else [self.target]), ("columns", self.wanted())):
            if wrong := [name for name in asked or () if list(names).count(name) != 1]:
                found = f"{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}"
                once = "once " * (wrong[0] in names)
                got = ", ".join(map(repr, wrong))
                raise ValueError(f"`{argument}` must be {once}among the columns {found}, got {got}")

    def _of_frame(self, frame: DataFrame) -> tuple[Array | DataFrame, ...]:
        self.refuse_missing(own := _names(frame) or [])
        if self.wanted() is None and hasattr(frame, "loc") and frame.shape[1] > 1 + (self.target is not None):
            # By whose labels the model goes, as in `summarize`.
            return (frame,) if self.target is None else (frame.drop(columns=self.target), frame[self.target])
        names = [name for name in self.wanted() or own if name != self.target]
        values = [np.asarray(frame[name]) for name in names]
        by_nodes = hasattr(self.model, "nodes")  # which are in order
        if len(values) == 1 and self.target is None and not by_nodes:
            return (values[0],)
        kinds = {each.dtype for each in values}
        if any(kind.kind not in "biuf" for kind in kinds) or (by_nodes and len(kinds) > 1):  # labels keep their digits
            values = [each.astype(object) for each in values]
        rows: Any = np.column_stack(values)
        if len(names) > 1 and not by_nodes:  # by labels again
            rows = require("pandas", "parquet").DataFrame(rows, columns=names)
        return (rows,) if self.target is None else (rows, np.asarray(frame[self.target]))


def _names(part: object) -> list[str] | None:
    """Return the names of the columns of a frame of pandas or a batch of Arrow; None of anything else."""
    if hasattr(part, "columns") and hasattr(part, "to_numpy"):
        return list(part.columns)
    return list(part.schema.names) if hasattr(part, "schema") and hasattr(part, "num_rows") else None


def _in_order(part: Any, own: list[str], names: list[str]) -> Any:
    """Return a part with the columns of the first one, in their order."""
    if own == names:
        return part
    if sorted(map(str, own)) != sorted(map(str, names)):
        raise ValueError(f"`parts` must have the same columns throughout, got {names[:8]} and {own[:8]}")
    return part[names] if hasattr(part, "loc") else part.select(names)


def _pieces(parts: Any, one: _Each) -> tuple[Iterator[object], bool, int | None]:
    """Return the parts one after another, whether what is done is counted in rows, and how much there is if known."""
    if isinstance(parts, (str, os.PathLike)):
        parts = require("pyarrow.dataset", "parquet").dataset(os.fspath(parts))
    if hasattr(parts, "scanner"):
        one.refuse_missing(parts.schema.names)
        how: Facts = {"batch_size": BATCH, "batch_readahead": 1, "fragment_readahead": 1}
        if (
            getattr(getattr(parts, "format", None), "default_extname", None) == "parquet"
        ):  # not whole groups of rows ahead
            arrow = require("pyarrow.dataset", "parquet")
            how["fragment_scan_options"] = arrow.ParquetFragmentScanOptions(pre_buffer=False)
        return (
            iter(parts.to_batches(columns=one.wanted(), **how)),
            True,
            parts.count_rows() if "fragment_scan_options" in how else None,
        )
    # An array of any kind, a release or a frame is one part, and so is a dictionary of groups.
    if isinstance(parts, (Summary, Mapping)) or hasattr(parts, "__array__") or _names(parts) is not None:
        return iter([parts]), False, 1
    if not isinstance(parts, Iterable):
        raise TypeError(f"`parts` must be a stream of parts, a path or a frame, got {type(parts).__name__}")
    return iter(parts), False, len(parts) if isinstance(parts, Sized) else None
