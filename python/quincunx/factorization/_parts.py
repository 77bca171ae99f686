"""Data whose rows are in several files, or in an array of Dask: read where they are used, and not before."""

import itertools
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._tables import Axes, Axis
from quincunx._types import Array, Floats
from quincunx.factorization._data import Data, Given, as_data, as_mask, unpack
from quincunx.privacy._formats import look
from quincunx.privacy._release import Release

T = TypeVar("T")
#: Rows of a block, as the core has them (`ROWS` of `factor_matrix.rs`): its sums over rows are exact from blocks on,
#: and so the same however rows are split at multiples of it.
BLOCK = 128


def are_files(released: object) -> TypeGuard[Sequence[str | os.PathLike[str]]]:
    """Say whether data are a list of files."""
    return isinstance(released, (list, tuple)) and any(isinstance(one, (str, os.PathLike)) for one in released)


def is_lazy(released: object) -> bool:
    """Say whether data are an array of Dask."""
    return _tables.of_library(released, "dask.array", "Array")


class Parts(Data):
    """The rows of several files, one after the other.

    Parameters
    ----------
    paths : sequence of path
        Releases that `Release.save` wrote as npz.
    noise, non_integer : str
        Parameters of the estimator.

    Raises
    ------
    ValueError
        If the parts do not have the same other axes, one has no rows, or one but the last does not have a multiple of
        128 rows, or has no checksum.
    OSError
        If one cannot be read here: shapes and labels are.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], noise: str, non_integer: str) -> None:
        looks = []
        for path in paths:
            if not isinstance(path, (str, os.PathLike)):
                raise TypeError(f"`released` must be one table or a list of files, got a list with {path!r}")
            looks.append(look(path))
        shapes = [shape for _, shape, _ in looks]
        if any(len(shape) < 2 or 0 in shape for shape in shapes) or len({shape[1:] for shape in shapes}) != 1:
            raise ValueError(f"`released` must have parts with rows of the same columns, got shapes {shapes}")
        if bad := [shape[0] for shape in shapes[:-1] if shape[0] % BLOCK]:
            raise ValueError(
                f"`released` must have parts of a multiple of {BLOCK} rows each, but for the last, got {bad[0]} rows"
            )
        checksums = {os.fspath(path): header.get("checksum") for path, (header, _, _) in zip(paths, looks, strict=True)}
        if None in checksums.values():  # by which alone it is seen that a file is another one than before
            raise ValueError("`released` must name files with a checksum, and those of format 1 have none: save anew")
        named = [_tables.from_json(header.get("axes", ()), shape) for header, shape, _ in looks]
        if len({tuple(axis.labels for axis in axes[1:]) for axes in named}) != 1:
            raise ValueError("`released` must have parts whose columns have the same labels")
        vars(self).update(
            paths=[os.fspath(path) for path in paths],
            rows=[shape[0] for shape in shapes],
            _shape=(sum(shape[0] for shape in shapes), *shapes[0][1:]),
            sizes=[size for _, _, size in looks],
            how=(noise, non_integer),
            axes=_joined(named, [shape[0] for shape in shapes]),
            checksums=checksums,
            digest=repr([noise, non_integer, *((header["checksum"], shape) for header, shape, _ in looks)]),
        )

    paths: list[str]
    rows: list[int]
    sizes: list[int]
    how: tuple[str, str]
    checksums: dict[str, str]
    digest: str
    _shape: tuple[int, ...]

    def __getstate__(self) -> dict[str, object]:
        """Leave out what was read."""
        return {name: value for name, value in vars(self).items() if name not in ("_whole", "counts")}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows."""
        return self._shape

    @property
    def edges(self) -> list[tuple[int, int]]:
        """The first row of each part, and that of the next one."""
        return list(itertools.pairwise([0, *itertools.accumulate(self.rows)]))

    def part(self, i: int, edge: tuple[int, int]) -> "Parts":
        """Return one of the files, which has the rows between two, without labels."""
        found = object.__new__(Parts)
        own = {name: [getattr(self, name)[i]] for name in ("paths", "rows", "sizes")}
        vars(found).update(vars(self) | own | {"_shape": (self.rows[i], *self._shape[1:]), "axes": ()})
        vars(found).pop("_whole", None)
        vars(found).pop("counts", None)
        return found

    def each(self, function: Callable[[Data], T]) -> list[T]:
        """Return a function of each file."""
        return [function(self._read(path, rows)) for path, rows in zip(self.paths, self.rows, strict=True)]

    @property
    def is_noisy(self) -> bool:
        """Whether any count has noise."""
        return any(self.each(lambda part: part.is_noisy))

    @cached_property
    def _whole(self) -> Data:
        """All of it, in memory."""
        _check.room(3 * sum(self.sizes), "a matrix of so many parts")
        parts = [self._read(path, rows) for path, rows in zip(self.paths, self.rows, strict=True)]
        if len(parts) == 1:
            return parts[0]
        ratios = [part.alpha for part in parts]
        alpha = ratios[0]
        if any(ratio.ndim or ratio != alpha for ratio in ratios):
            alpha = np.concatenate([np.broadcast_to(part.alpha, part.shape) for part in parts])
        held_out = None
        if any(part.held_out is not None for part in parts):
            held_out = np.concatenate([~part.observed for part in parts])
        return Data(np.concatenate([part.values for part in parts]), alpha, held_out)

    def _read(self, path: str, rows: int) -> Data:
        noise, non_integer = self.how
        values, ratios, mask = unpack(Release.load(path), None, None, noise)
        if np.shape(values) != (before := (rows, *self._shape[1:])):
            raise ValueError(f"{path}: it has the shape {np.shape(values)} now, and had {before}")
        if look(path)[0].get("checksum") != self.checksums[path]:
            raise ValueError(f"{path}: it has other content now than when it was given to `fit`")
        held_out = as_mask(mask, np.shape(values))
        return as_data(np.asarray(values), ratios, held_out, noise=noise, non_integer=non_integer, kept=True)

    @property
    def values(self) -> Array:
        """The released counts, read when first asked for."""
        return self._whole.values

    @property
    def alpha(self) -> Floats:
        """The ratio of the noise, likewise."""
        return self._whole.alpha

    @property
    def held_out(self) -> npt.NDArray[np.bool_] | None:
        """True where a cell is held out, likewise."""
        return self._whole.held_out


class Lazy(Parts):
    """The rows of an array of Dask, which workers compute for themselves.

    Parameters
    ----------
    array : dask.array.Array
        Released counts.
    alpha : float or None
        Ratio of their noise.
    noise, non_integer : str
        Parameters of the estimator.
    """

    def __init__(self, array: Any, alpha: Given, noise: str, non_integer: str) -> None:
        if array.ndim < 2 or not all(extent > 0 for extent in array.shape):  # NaN where it is not known
            raise ValueError(
                "`released` must have two axes or more of known extents above 0, got an array of Dask of shape "
                f"{array.shape}"
            )
        if array.dtype.kind not in "biuf":
            raise TypeError(f"`released` must hold whole numbers, got an array of Dask of dtype {array.dtype}")
        if np.ndim(alpha) if alpha is not None else 0:
            raise ValueError("`alpha` must be a number with an array of Dask")
        _, ratio, _ = unpack(np.zeros((0, 0), dtype=np.int8), alpha, None, noise)
        whole = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        vars(self).update(
            paths=[whole],
            rows=[array.shape[0]],
            _shape=array.shape,
            sizes=[array.nbytes],
            how=(noise, non_integer),
            ratio=ratio,
            axes=(),
            brought=False,
            digest=repr((array.name, array.shape, float(ratio), noise, non_integer)),
        )

    ratio: Floats
    #: Whether Dask brings the rows to where they are wanted.
    brought: bool

    def __getstate__(self) -> dict[str, object]:
        """Leave out what Dask brings, too."""
        return super().__getstate__() | ({"paths": []} if self.brought else {})

    @property
    def is_noisy(self) -> bool:
        """Whether counts have noise."""
        return bool(self.ratio > 0)

    @property
    def block(self) -> Any:
        """What Dask computes to have these rows."""
        return self.paths[0]

    def take(self, block: Any) -> None:
        """Have these rows as they were computed."""
        vars(self)["paths"] = [block]

    def part(self, i: int, edge: tuple[int, int]) -> "Lazy":
        """Return some rows."""
        first, last = edge
        block, found = self.block[first:last], object.__new__(Lazy)
        own = {"paths": [block], "rows": [last - first], "sizes": [block.nbytes], "_shape": block.shape}
        vars(found).update(self.__getstate__() | own | {"brought": True})
        return found

    def each(self, function: Callable[[Data], T]) -> list[T]:
        """Return a function of each block, where Dask has it."""
        reader = object.__new__(Lazy)  # without the array, which is not to be sent along
        vars(reader).update(how=self.how, ratio=self.ratio, brought=True)
        of_block = sys.modules["dask"].delayed(lambda block: function(reader._read(block, len(block))))
        return list(sys.modules["dask"].compute(*map(of_block, self.block.to_delayed().ravel())))

    def _read(self, path: Any, rows: int) -> Data:
        noise, non_integer = self.how
        block = _check.computed(path)
        held_out = np.ma.getmaskarray(block) if np.ma.is_masked(block) else None
        return as_data(np.asarray(block), self.ratio, held_out, noise=noise, non_integer=non_integer)


def _joined(named: Sequence[Axes], rows: Sequence[int]) -> Axes:
    """Return the axes of parts below one another; rows of parts without labels are numbered."""
    if not any(named):
        return ()
    first, *others = next(axes for axes in named if axes)
    if all(axes and axes[0].labels is not None for axes in named):
        labels: tuple[Hashable, ...] | None = tuple(label for axes in named for label in axes[0].labels or ())
    else:
        labels = None
    return Axis(first.name, labels, first.declared), *others
