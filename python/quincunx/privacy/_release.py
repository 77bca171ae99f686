"""Values that may be published, with the promise they carry."""

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._npz import write_npz
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._relations import AddRemove, DataMetric

FORMAT = 1


class Release:
    """Noisy values, the mechanism that made them, and what they promise.

    A release is used as an array (``np.asarray(release)``) wherever one is expected.

    Parameters
    ----------
    values : array_like
        The noisy values.
    guarantee : PrivacyGuarantee
        What they promise.
    mechanism : str
        The name of the mechanism.
    parameters : dict
        The parameters that were actually used, as JSON can hold them.

    Attributes
    ----------
    values : ndarray
        The noisy values, read-only.
    guarantee : PrivacyGuarantee
        What they promise. Its `numerics` is ``"insecure"`` if a seed was given.
    alpha : float or None
        The ratio of two-sided geometric noise, where that is the noise.
    n : int or None
        The L1 radius of limited precision, where there is one.

    Examples
    --------
    >>> from quincunx.privacy import privatize
    >>> release = privatize([[3, 0], [1, 7]], epsilon=1.0, n=2)
    >>> release.values.shape, release.epsilon, round(release.alpha, 12)
    ((2, 2), 1.0, 0.606530659713)
    """

    def __init__(
        self,
        values: npt.ArrayLike,
        guarantee: PrivacyGuarantee,
        *,
        mechanism: str,
        parameters: dict[str, Any] | None = None,
        _owned: bool = False,
    ) -> None:
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"`guarantee` must be a PrivacyGuarantee, got {type(guarantee).__name__}")
        array = np.asanyarray(values) if _owned else np.array(values, subok=True)  # ours are fresh: no copy
        if isinstance(array, np.ma.MaskedArray):
            array = np.ma.array(array.filled(0), mask=np.ma.getmaskarray(array).copy(), fill_value=0, hard_mask=True)
            array.data.flags.writeable = False
        array.flags.writeable = False
        self.values: npt.NDArray[Any] = array
        self.guarantee = guarantee
        self.mechanism = mechanism
        self.parameters: dict[str, Any] = dict(parameters or {})

    @property
    def alpha(self) -> float | None:
        """The ratio of two-sided geometric noise that was actually used."""
        return self.parameters.get("alpha")

    @property
    def n(self) -> int | None:
        """The L1 distance within which the guarantee holds."""
        return self.parameters.get("n")

    @property
    def protects(self) -> str:
        """What the guarantee is about, in words."""
        relation, bound = self.guarantee.relation, self.parameters.get("record_bound")
        if isinstance(relation, DataMetric):
            if relation.metric == "l1":
                what = "counts" if self.mechanism == "geometric" else "values"
                return f"changes of at most {relation.radius} in the sum of all {what}"
            return f"changes of at most {relation.radius} in the {relation.metric} distance"
        count = "one record" if relation.records == 1 else f"{relation.records} records"
        if isinstance(relation, AddRemove):
            return f"{count} added or removed"
        clipped = "" if bound is None else f", each clipped to a sum of at most {bound}"
        return f"{count} replaced by any other{clipped}"

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee."""
        return self.guarantee.delta

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        same = (self.guarantee, self.mechanism, self.parameters) == (other.guarantee, other.mechanism, other.parameters)
        if not same or self.values.dtype != other.values.dtype or self.values.shape != other.values.shape:
            return False
        masks = [np.ma.getmaskarray(one.values) for one in (self, other)]
        return bool(np.array_equal(np.asarray(self), np.asarray(other)) and np.array_equal(masks[0], masks[1]))

    def masked(self, mask: npt.NDArray[np.bool_]) -> "Release":
        """Return the release without some of its cells.

        Parameters
        ----------
        mask : ndarray of bool
            True where a cell is not released.

        Returns
        -------
        Release
            Its values are a masked array, with zeros under the mask.
        """
        values = np.ma.array(self.values, mask=np.asarray(mask, dtype=np.bool_))
        return Release(values, self.guarantee, mechanism=self.mechanism, parameters=self.parameters)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Release({self.mechanism}, shape={self.shape}, {self.guarantee}, protects {self.protects})"

    def save(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the release to an npz file, without pickle.

        A file is written beside its place and then renamed, so that it is there wholly or not at all.

        Parameters
        ----------
        target : path or binary file
            Where to.

        Raises
        ------
        OSError
            If it cannot be written.

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
        header = {
            "format": FORMAT,
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "guarantee": self.guarantee.to_dict(),
        }
        words = np.array(json.dumps(header, allow_nan=False))
        arrays: dict[str, Any] = {"values": np.asarray(self.values), "release": words}
        if isinstance(self.values, np.ma.MaskedArray):
            arrays["mask"] = np.ma.getmaskarray(self.values)
        write_npz(target, arrays, ".release-")

    @classmethod
    def load(cls, source: str | os.PathLike[str] | BinaryIO) -> "Release":
        """Read a release that `save` wrote.

        Parameters
        ----------
        source : path or binary file
            Where from.

        Returns
        -------
        Release
            Equal to the one saved.

        Raises
        ------
        ValueError
            If the file holds no release.
        OSError
            If it cannot be read.
        """
        name = getattr(source, "name", source)
        try:
            with np.load(source, allow_pickle=False) as arrays:
                values, header = arrays["values"], json.loads(str(arrays["release"]))
                if "mask" in arrays:
                    mask = arrays["mask"]
                    if mask.dtype != np.bool_ or mask.shape != values.shape:
                        raise ValueError(f"its mask must be booleans of shape {values.shape}")
                    values = np.ma.array(values, mask=mask)
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']}, this version reads {FORMAT}")
            guarantee = PrivacyGuarantee.from_dict(header["guarantee"])
            return cls(values, guarantee, mechanism=header["mechanism"], parameters=header["parameters"])
        except OSError:
            raise
        except Exception as reason:
            raise ValueError(f"`source` must be a release written by quincunx, got {name}: {reason}") from reason


def seed_words(insecure_seed: object) -> list[int] | None:
    """Return the two words that key an insecure generator, None for the secure one."""
    if insecure_seed is None:
        return None
    seed = _check.whole(insecure_seed, "insecure_seed", minimum=0)
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64)]


def marked(guarantee: PrivacyGuarantee, insecure_seed: object) -> PrivacyGuarantee:
    """Return the guarantee of a release, marked as insecure if the seed is known."""
    return guarantee if insecure_seed is None else guarantee.marked("insecure")
