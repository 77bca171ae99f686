"""Values that may be published, with their guarantee."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._docs import sections
from quincunx._html import table_html
from quincunx._tables import Axes
from quincunx._types import Array, DataFrame, Facts, Floats, Index
from quincunx.errors import TooLargeError
from quincunx.privacy import _formats
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._law import Noise, ReadOnly, from_json, to_json

#: What a release says of its guarantee beside its noise.
ABOUT = ("n", "record_bound", "sensitivity", "monotonic")
#: Numbers that get noise at once.
PIECE = 1 << 20


class Guaranteed:
    """What a guarantee belongs to: a mechanism, a release."""

    guarantee: PrivacyGuarantee

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee."""
        return self.guarantee.delta


@sections
class Release(Guaranteed, ReadOnly):
    """Noisy values, the mechanism that made them, and what they guarantee.

    A release is used as an array (``np.asarray(release)``) wherever one is expected. A part of it, ``release[rows]``,
    is a release with the same noise, so that scikit-learn's splitters and searches work on it. Made from a table with
    labels (of pandas, xarray or networkx) it keeps them: they are published as they are, and no guarantee is about
    them.

    Parameters
    ----------
    values : array_like
        The noisy values.
    guarantee : PrivacyGuarantee
        Their guarantee.
    noise : Noise, optional
        The law of the values given the private ones, of `quincunx.privacy.noise`. Models take no release without it.
    about : dict, optional
        What belongs to the guarantee and is no noise: ``n``, ``record_bound``, ``sensitivity``, ``monotonic``.

    Attributes
    ----------
    values : ndarray
        The noisy values, read-only.
    guarantee : PrivacyGuarantee
        Their guarantee. Its `numerics` is ``"insecure"`` if a seed was given.
    noise : Noise or None
        The law of the values given the private ones: that of the mechanism.
    alpha : float, ndarray or None
        The ratio of two-sided geometric noise, where that is the noise.
    n : int or None
        The L1 radius of limited precision, where there is one.
    index, columns : tuple or None
        Labels of the first and second axis, where the data had them.

    Examples
    --------
    >>> from quincunx.privacy import privatize
    >>> release = privatize([[3, 0], [1, 7]], epsilon=1.0, n=2)
    >>> release.values.shape, release.epsilon, round(release.alpha, 12)
    ((2, 2), 1.0, 0.606530659713)
    >>> import pandas
    >>> table = pandas.DataFrame({"tea": [3, 1], "coffee": [0, 7]}, index=["Ann", "Bob"])
    >>> privatize(table, epsilon=1.0).to_pandas().columns.tolist()
    ['tea', 'coffee']
    >>> release[:1].shape, release[:1].alpha == release.alpha
    ((1, 2), True)
    """

    def __init__(
        self,
        values: npt.ArrayLike,
        guarantee: PrivacyGuarantee,
        *,
        noise: Noise | None = None,
        about: Facts | None = None,
        _owned: bool = False,
        _axes: Axes = (),
    ) -> None:
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"`guarantee` must be a PrivacyGuarantee, got {type(guarantee).__name__}")
        if noise is not None and not isinstance(noise, Noise):
            raise TypeError(f"`noise` must be a law of quincunx.privacy.noise, got {type(noise).__name__}")
        if not isinstance(_axes, tuple) or not all(isinstance(axis, _tables.Axis) for axis in _axes):
            raise TypeError(f"`_axes` must be a tuple of axes, got {type(_axes).__name__}")
        if not _owned:
            _check.fits(values, "values", kept=True)
        array = np.asanyarray(values) if _owned else np.array(values, subok=True)  # ours are fresh: no copy
        if isinstance(array, np.ma.MaskedArray):
            array = np.ma.array(array.filled(0), mask=np.ma.getmaskarray(array).copy(), fill_value=0, hard_mask=True)
            array.data.flags.writeable = False
        array.flags.writeable = False
        self.values: Array = array
        self.guarantee = guarantee
        self.noise = noise
        self.about: Facts = dict(about or {})
        if unknown := sorted(set(self.about) - set(ABOUT)):
            raise ValueError(f"`about` must have no names but {list(ABOUT)}, got {unknown}")
        self.axes_: Axes = _tables.fitting(_axes, array.shape)

    def __setstate__(self, state: Facts) -> None:
        super().__setstate__({"axes_": ()} | state)

    @property
    def index(self) -> tuple[Hashable, ...] | None:
        """Labels of the first axis, where the data had them."""
        return self.axes_[0].labels if self.axes_ else None

    @property
    def columns(self) -> tuple[Hashable, ...] | None:
        """Labels of the second axis, where the data had them."""
        return self.axes_[1].labels if len(self.axes_) > 1 else None

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return "unknown" if self.noise is None else self.noise.kind

    @property
    def alpha(self) -> float | Floats | None:
        """The ratio of two-sided geometric noise that was actually used, an array where each value has its own."""
        return getattr(self.noise, "alpha", None)

    @property
    def n(self) -> int | None:
        """The L1 distance within which the guarantee holds."""
        return self.about.get("n")

    @property
    def protects(self) -> str:
        """What the guarantee is about, in words, and which labels it is not about."""
        named = [
            f"axis {number}" + ("" if axis.name is None else f" ({axis.name})")
            for number, axis in enumerate(self.axes_)
            if axis.labels is not None and not axis.declared
        ]
        published = f"; which labels occur in {' and '.join(named)} is published, unprotected" if named else ""
        return self.guarantee.protects + published

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Release | float]:
        if not self.values.ndim:
            raise TypeError("a release of one number has no first axis to iterate over")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Index) -> Any:
        """Return a part of the release, which is a release as well: the guarantee covers whatever is made of one.

        Parameters
        ----------
        index : int, slice, array_like of int or bool, or a tuple of these
            As NumPy takes it. Labels, masks and ratios of noise that differ from cell to cell follow.

        Returns
        -------
        Release, int or float
            With the same noise and guarantee. A single number, picked by an integer for each axis, is a plain one, or
            `numpy.ma.masked`; `values` has any part without its noise.

        Raises
        ------
        IndexError
            If NumPy does not take the index: it is out of range, a word, a fraction or one too many.
        ValueError
            If a mask has labels, and they are not those of the release in their order.
        """
        values = self.values[index]
        if not isinstance(values, np.ndarray) or values is np.ma.masked:
            return values
        noise = None if self.noise is None else self.noise._picked(index, self.shape)
        axes = _tables.picked(self.axes_, index, self.shape) if self.axes_ else ()
        return Release(values, self.guarantee, noise=noise, about=self.about, _owned=True, _axes=axes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        about = [(one.guarantee, one.noise, one.about, one.axes_, one.values.dtype) for one in (self, other)]
        if about[0] != about[1]:
            return False
        masks = [np.ma.getmaskarray(one.values) for one in (self, other)]
        return np.array_equal(np.asarray(self), np.asarray(other)) and np.array_equal(masks[0], masks[1])

    def masked(self, mask: npt.NDArray[np.bool_]) -> Release:
        """Return the release without some of its cells.

        Parameters
        ----------
        mask : ndarray of bool
            True where a cell is not released.

        Returns
        -------
        Release
            Its values are a masked array, with zeros under the mask.

        Raises
        ------
        ValueError
            If the mask has another shape than the values, or their labels in another order.
        """
        _check.fits(mask, "mask")
        _tables.refuse_other_labels(_tables.axes(mask), self.axes_, "mask", "the release")
        hidden = np.asarray(mask)
        if hidden.shape not in ((), self.values.shape):
            raise ValueError(f"`mask` must have shape {self.values.shape}, got {hidden.shape}")
        values = np.ma.array(self.values, mask=np.broadcast_to(hidden.astype(np.bool_), self.values.shape))
        return Release(values, self.guarantee, noise=self.noise, about=self.about, _axes=self.axes_)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each value that holds the private one with a confidence, from the law of the noise.

        Parameters
        ----------
        confidence : float
            In (0, 1), for each value by itself; for all k at once ask for ``1 - (1 - confidence) / k``.

        Returns
        -------
        lower, upper : ndarray
            Of the shape of the values, and masked as they are: the noise's `accuracy` to either side, within the bounds
            to which private values were clipped. A value that was clipped is the clipped one.

        Raises
        ------
        ValueError
            If `confidence` is not in (0, 1), or the release does not know its noise.
        TypeError
            If nothing was added: responses and choices have no such interval.

        Examples
        --------
        >>> from quincunx.privacy import GeometricMechanism
        >>> release = GeometricMechanism(2.0, lower=0, upper=9).release([3, 7], insecure_seed=1)
        >>> lower, upper = release.interval(0.9)
        >>> bool((lower <= [3, 7]).all() and (upper >= [3, 7]).all())
        True
        """
        if self.noise is None:
            raise ValueError("a release that was made without its noise has no intervals")
        lower, upper = self.noise.interval(np.asarray(self.values), confidence)
        if not isinstance(self.values, np.ma.MaskedArray):
            return lower, upper
        mask = np.ma.getmaskarray(self.values)
        return np.ma.array(lower, mask=mask), np.ma.array(upper, mask=mask)

    def to_pandas(self) -> DataFrame:
        """Return the values as a Series or a DataFrame, with the labels of the data.

        Masked cells are missing.

        Returns
        -------
        pandas.Series or pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If the values have neither one nor two axes.
        """
        values = self.values
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            values = np.where(np.ma.getmaskarray(values), np.nan, np.asarray(values))
        return _tables.to_pandas(np.array(values), self.axes_)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Release({self.mechanism}, shape={self.shape}, {self.guarantee}, protects {self.protects})"

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {"shape": " x ".join(map(str, self.shape)) or "a number", "epsilon": self.epsilon}
        rows |= {"delta": self.delta} if self.delta else {}
        rows |= {"protects": self.protects, "numerics": self.guarantee.numerics}
        if labelled := [axis for axis in self.axes_ if axis.labels is not None]:
            rows["labels"] = " x ".join(
                f"{axis.name or 'unnamed'}, {'declared' if axis.declared else 'published as they are'}"
                for axis in labelled
            )
        return table_html(f"Release, {self.mechanism} noise", rows)

    def save(
        self, target: str | os.PathLike[str] | BinaryIO, *, format: Literal["npz", "csv", "json"] | None = None
    ) -> None:
        """Write the release to a file, without pickle.

        A file is written beside its place and then renamed, so that it is there wholly or not at all. Labels that are
        not numbers, strings, dates or tuples of these become strings.

        Parameters
        ----------
        target : path or binary file
            Where to.
        format : {"npz", "csv", "json"}, optional
            By default what the end of the path says (.csv, .json, also with .gz behind it), else npz. A CSV file is a
            table whose first line, after ``#``, holds the guarantee: ``pandas.read_csv(path, skiprows=1)`` reads it,
            with ``index_col=0`` where rows have labels, and with ``header=None`` where columns have none.

        Raises
        ------
        OSError
            If it cannot be written.
        ValueError
            If `format` is another word, or a release without rows or with more than two axes is to be CSV.

        Examples
        --------
        >>> import io
        >>> from quincunx.privacy import Release, privatize
        >>> release, file = privatize([1, 2, 3], epsilon=1.0), io.BytesIO()
        >>> release.save(file)
        >>> _ = file.seek(0)
        >>> Release.load(file) == release
        True
        """
        found, packed = _formats.by_name(target)
        if format is not None:
            found = _check.one_of(format, "format", _formats.FORMATS)
        header: Facts = {"format": _formats.FORMAT} | to_json(self.noise) | {"guarantee": self.guarantee.to_dict()}
        header["parameters"] |= self.about
        if self.axes_:
            header["axes"] = _tables.to_json(self.axes_)
        mask = np.ma.getmaskarray(self.values) if isinstance(self.values, np.ma.MaskedArray) else None
        _formats.write(target, (header, np.asarray(self.values), mask), found, packed)

    @classmethod
    def load(cls, source: str | os.PathLike[str] | BinaryIO) -> Release:
        """Read a release that `save` wrote, in any format.

        Parameters
        ----------
        source : path or binary file
            The file, or an open one.

        Returns
        -------
        Release
            Equal to the one saved.

        Raises
        ------
        ValueError
            If the file holds no release, or was changed since it was written; those of format 1 have no checksum that
            would tell.
        {unpacked}
        """
        name = getattr(source, "name", source)
        try:
            header, values, mask = _formats.read(source, name)
            if mask is not None:
                values = np.ma.array(values, mask=mask)
            guarantee = PrivacyGuarantee.from_dict(header["guarantee"])
            axes = _tables.from_json(header.get("axes", ()), values.shape)
            facts = header["parameters"]
            noise = from_json(header["mechanism"], facts, ABOUT)
            about = {key: facts[key] for key in ABOUT if key in facts}
            return cls(values, guarantee, noise=noise, about=about, _axes=axes)
        except (OSError, TooLargeError):
            raise
        except Exception as reason:
            found = str(reason).removeprefix(f"{name}: ")
            raise ValueError(f"`source` must be a release written by quincunx, got {name}: {found}") from reason


def seed_words(insecure_seed: object, *step: int) -> list[int] | None:
    """Return the two words that key an insecure generator, of a step if there are several; None for the secure one."""
    if insecure_seed is None:
        return None
    seed = _check.whole(insecure_seed, "insecure_seed", minimum=0)
    return [int(word) for word in np.random.SeedSequence(seed, spawn_key=step).generate_state(2, np.uint64)]


def with_noise(
    sampler: _core.WholeSampler,
    numbers: Array,
    bounds: tuple[int, int],
    insecure_seed: int | None,
    compact: bool = False,
) -> Array:
    """Return whole numbers with noise, int64 or, if that is asked for, in the smallest integers that hold all of them.

    Those follow from the noisy numbers alone, whatever the private ones lay in: that may tell how large they are.
    Pieces have generators of their own, so that numbers of any size take no more memory than they and the noisy ones.
    """
    given = numbers.reshape(-1)
    found = np.empty(numbers.shape, dtype=np.int8 if compact else np.int64)
    for step, first in enumerate(range(0, len(given), PIECE)):
        part = given[first : first + PIECE].astype(np.int64, copy=False)
        noisy = sampler.add(part, *bounds, seed_words(insecure_seed, *([step] if step else ())))
        if len(noisy) == len(given) and not compact:
            return noisy.reshape(numbers.shape)
        kind = _check.smallest_integers(int(noisy.min()), int(noisy.max()))
        found = found.astype(np.promote_types(found.dtype, kind), copy=False)
        found.reshape(-1)[first : first + PIECE] = noisy
    return found


def marked(guarantee: PrivacyGuarantee, insecure_seed: object) -> PrivacyGuarantee:
    """Return the guarantee of a release, marked as insecure if the seed is known: an object of its own.

    Parts of one release share theirs, two releases of a mechanism do not.
    """
    if insecure_seed is not None:
        return guarantee.marked("insecure")
    own = object.__new__(PrivacyGuarantee)
    vars(own).update(vars(guarantee))  # with what was computed of it already
    return own
