"""Released counts as the models take them: checked, held in the smallest integers that fit, with noise and mask."""

import hashlib
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._tables import Axes
from quincunx._types import Array, Floats
from quincunx.privacy import Release
from quincunx.privacy._law import refuse_unknown
from quincunx.privacy.noise import GeometricNoise

T = TypeVar("T")
#: What a model is fitted to: a Release, an array or what is like one, a data frame, a sparse array, a graph.
Counts: TypeAlias = Any
#: Ratios of noise, or a mask of cells.
Given: TypeAlias = npt.ArrayLike | None


@dataclass(frozen=True, eq=False)
class Data:
    """Released counts, the ratio of their noise, and which of them are held out.

    Attributes
    ----------
    values : ndarray of int
        The released counts, 0 where held out: what was there is not stored.
    alpha : ndarray of float64
        The ratio of the noise, of shape () or that of the values.
    held_out : ndarray of bool, or None
        True where a cell is held out.
    axes : tuple of Axis
        Names and labels of the axes of the values; empty where they have none.
    """

    values: Array
    alpha: Floats
    held_out: npt.NDArray[np.bool_] | None
    axes: Axes = ()

    def __getstate__(self) -> dict[str, object]:
        """Leave out what the core has of it."""
        return {"values": self.values, "alpha": self.alpha, "held_out": self.held_out, "axes": self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    @property
    def is_noisy(self) -> bool:
        """Whether any count has noise."""
        return bool((self.alpha > 0).any())

    def each(self, function: Callable[["Data"], T]) -> list[T]:
        """Return a function of each part of the data that is in memory at a time."""
        return [function(self)]

    def of_rows(self, which: slice | npt.NDArray[np.intp]) -> "Data":
        """Return some rows of the table whose columns are the last axis; those of a slice without a copy."""

        def some(table: Array) -> Array:
            return table.reshape(-1, self.shape[-1])[which] if table.ndim else table

        return Data(some(self.values), some(self.alpha), None if self.held_out is None else some(self.held_out))

    @property
    def observed(self) -> npt.NDArray[np.bool_]:
        """True where a cell is not held out."""
        return np.ones(self.shape, dtype=bool) if self.held_out is None else ~self.held_out

    @cached_property
    def counts(self) -> _core.ReleasedCounts:
        """The data as the core holds them: a table whose columns are the last axis."""
        cols = self.shape[-1]
        return _core.ReleasedCounts(
            np.ascontiguousarray(self.values).reshape(-1),
            self.values.size // cols,
            cols,
            np.ascontiguousarray(self.alpha.reshape(-1)),
            None if self.held_out is None else np.ascontiguousarray(self.held_out).reshape(-1).view(np.uint8),
        )

    @cached_property
    def digest(self) -> str:
        """A fingerprint by which the same data are known again."""
        return self._content()

    def _content(self) -> str:
        found = hashlib.blake2b(digest_size=16)
        for array in (self.values, self.alpha, self.held_out):
            found.update(b"none" if array is None else repr(array.shape).encode() + np.ascontiguousarray(array).data)
        return found.hexdigest()

    def is_same(self, other: "Data") -> bool:
        """Say whether these are data of before: those of one kind by their fingerprint, others by what they hold."""
        alike = type(self) is type(other)
        return self.digest == other.digest if alike else self._content() == other._content()


def unpack(released: Counts, alpha: Given, mask: Given, noise: str) -> tuple[Counts, Floats, Given]:
    """Return the values, the ratio of their noise as the model will see it, and the mask, of a release or an array."""
    if isinstance(released, (list, tuple)) and any(isinstance(part, Release) for part in released):
        raise ValueError("`released` must be one release or one array: the noise of releases in a list would be lost")
    if isinstance(released, Release):
        if alpha is not None:
            raise ValueError(f"`alpha` must be None with a Release, which knows its own, got {_short(alpha)}")
        if noise == "geometric":
            if not isinstance(law := released.noise, GeometricNoise):
                raise ValueError(
                    f"`released` must carry two-sided geometric noise, got the release of {released.mechanism}"
                )
            # What is at least zero is left as it is by a lower bound that is not above.
            refuse_unknown(law, "this model", ("alpha", "exponent", *(["lower"] if (law.lower or 0) <= 0 else [])))
        released, alpha = released.values, released.alpha
    _check.fits(released, "released", kept=True)
    released = _check.computed(released)
    if isinstance(released, (list, tuple)):
        _check.refuse_masked(released, "released")
    if isinstance(released, np.ma.MaskedArray):
        own = np.ma.getmaskarray(released)
        mask = own if mask is None else own | _mask(mask, released.shape)
        released = released.filled(0)
    alpha = 0.0 if alpha is None else _tables.array(alpha, "alpha")
    ratios = _check.reals_where(alpha, "alpha", "in [0, 1)", lambda x: (x >= 0) & (x < 1))
    return released, ratios if noise == "geometric" else np.zeros(()), mask


def _short(value: object) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else reprlib.repr(value)


def _mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return a mask as an array of booleans of a shape."""
    array = _check.unmasked(_tables.array(mask, "mask"), "mask")
    if array.dtype != np.bool_:
        raise TypeError(f"`mask` must hold booleans, True where a cell is held out, got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"`mask` must have shape {shape}, got {array.shape}")
    return np.array(array, order="C")


def as_mask(mask: Given, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    """Return a mask for an array of a shape; None where nothing is held out."""
    if mask is None:
        return None
    array = _mask(mask, shape)
    return array if array.any() else None


def as_data(
    values: Array,
    alpha: Floats,
    held_out: npt.NDArray[np.bool_] | None,
    *,
    noise: str,
    non_integer: str,
    axes: Axes = (),
    kept: bool = False,
) -> Data:
    """Check values and their noise against one another and pack them.

    The message for a bad value names the index of the first one. Held-out cells may hold anything. Values that are
    `kept` are a release's, which nobody changes: they are used where they are.
    """
    if alpha.ndim:
        try:
            alpha = np.broadcast_to(alpha, values.shape).copy()
        except ValueError:
            raise ValueError(f"`alpha` must be a number or have shape {values.shape}, got {alpha.shape}") from None
    if held_out is not None:
        if values.dtype.kind != "O":
            values = np.where(held_out, np.zeros((), dtype=values.dtype), values)
        if alpha.ndim:  # nor has a ratio where nothing is seen any influence
            alpha = np.where(held_out, alpha.max(where=~held_out, initial=0.0), alpha)
    if values.dtype.kind == "b":
        values = values.view(np.int8)
    if values.dtype.kind == "f":
        _check.refuse(values, ~np.isfinite(values), "released", "finite numbers, no NaN, where it is not masked")
        if non_integer == "round":
            values = np.rint(values)
    # Integers are packed as they are: eight bytes a cell would be most of the memory of a large fit.
    whole = values if values.dtype.kind == "i" else _check.counts(values, "released", minimum=None)
    if noise == "naive":
        whole = np.maximum(whole, 0)
    _refuse_negative(whole, alpha, noise)
    return Data(_compact(whole, copy=not kept), alpha, held_out, axes)


def _refuse_negative(whole: Array, alpha: Floats, noise: str) -> None:
    if not whole.size or whole.min() >= 0 or (alpha > 0).all():  # a byte for each cell less than what is below
        return
    bad = (whole < 0) & (alpha == 0)
    if bad.any():
        index, place = _check.first(bad)
        hint = " (give the `alpha` of the noise)" if noise == "geometric" and alpha.ndim == 0 else ""
        raise ValueError(
            f"Negative values in data: `released` must hold counts of at least 0 where there is no noise, "
            f"got {whole[index]}{place}{hint}"
        )


def _compact(whole: Array, *, copy: bool = True) -> Array:
    """Return values in the smallest integers that hold all of them."""
    low, high = (int(whole.min()), int(whole.max())) if whole.size else (0, 0)
    return whole.astype(_check.smallest_integers(low, high), order="C", copy=copy)
