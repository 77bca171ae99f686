"""Records of a network's nodes: as codes, packed to bits, or counted by families."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from quincunx import _check, _core, _tables
from quincunx._summary import Part, Summary
from quincunx._types import Array, Frame, Ints

Counts = Ints
Nodes: TypeAlias = tuple[Hashable, ...]
#: Records by row, or their sum.
Records: TypeAlias = "Frame | PackedRecords | Codes | Summary"


class FamilyTables(Part, kind="family_tables"):
    """How often each family's categories occur: as secret as the records."""

    users: int
    tables: tuple[Counts, ...]
    sums = ("users", "tables")

    @property
    def protected(self) -> bool:
        return False

    def shape(self) -> object:
        return [table.shape for table in self.tables]

    def check(self) -> None:
        for table in self.tables:
            if table.dtype != np.int64 or (table < 0).any() or table.sum() != self.users:
                raise ValueError("it has tables that no records have")


class Codes(NamedTuple):
    """Records that are coded: codes row by row, and the number of rows."""

    flat: Array
    rows: int


class PackedRecords:
    """Records of binary variables, packed 64 to a word: counted many times faster than bytes.

    Parameters
    ----------
    data : array_like of bool or int, shape (n, width)
        Records of zeros and ones.

    Attributes
    ----------
    rows, width : int
        Records and columns.
    names : tuple or None
        Those of the columns of a table that has some: a network refuses others than its nodes, in their order.

    Raises
    ------
    ValueError, TypeError
        If `data` has another shape or holds something else.

    Examples
    --------
    >>> from quincunx.posterior import DiscreteBayesNet, PackedRecords
    >>> packed = PackedRecords([[0, 1], [1, 1], [1, 0]])
    >>> DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2}).count_tables(packed)["B"]
    array([[0, 1],
           [1, 1]])
    """

    def __init__(self, data: Records) -> None:
        array = _check.categories(data, "data", 2)
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(f"`data` must have shape (n, width), got {array.shape}")
        flat = array.astype(np.uint8, copy=False).reshape(-1)
        self._bits = _core.PackedBits(flat, array.shape[1])
        self.rows, self.width = array.shape
        known = _tables.axes(data)
        self.names = known[1].labels if len(known) == 2 else None

    def __len__(self) -> int:
        return int(self.rows)

    def __reduce__(self) -> NoReturn:
        raise TypeError("packed records cannot be pickled or copied: take the records that they were packed from")


def marginal(table: Array, axes: Nodes, wanted: Nodes) -> Array:
    """Sum a table over what is not wanted, its axes in the order wanted."""
    gone = tuple(place for place, axis in enumerate(axes) if axis not in wanted)
    left = [axis for axis in axes if axis in wanted]
    return np.asarray(table.sum(axis=gone)).transpose([left.index(axis) for axis in wanted])
