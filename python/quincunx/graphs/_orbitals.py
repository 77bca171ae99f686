"""The orbits of a permutation group on ordered pairs of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Ints
from quincunx.graphs._graph import counted
from quincunx.graphs._parts import graph_doc

#: A call that makes an object again, as pickle has it.
Call: TypeAlias = "tuple[Callable[..., Orbitals], tuple[object, ...]]"


@graph_doc
class Orbitals:
    """The orbits of a permutation group on ordered pairs of points.

    Made by `AutomorphismGroup.orbitals`. Orbitals are numbered in the order in which they are first met, row by row.

    Attributes
    ----------
    num_points : int
        Number of points.
    rank : int
        Number of orbitals.
    sizes : ndarray of int64, shape (rank,)
        Number of pairs in each.
    representatives : ndarray of int64, shape (rank, 2)
        The first pair of each, row by row.

    Notes
    -----
    Takes two bytes for each pair of points; `labels` takes four more for as long as its result is kept.

    Examples
    --------
    >>> from quincunx.graphs import AutomorphismGroup
    >>> orbitals = AutomorphismGroup.hamming(2, 3).orbitals()
    >>> orbitals.sizes
    array([ 9, 36, 36])
    >>> orbitals.representatives.tolist()
    [[0, 0], [0, 1], [0, 4]]
    """

    __slots__ = ("_call", "_pairs")

    _pairs: _core.PairOrbits
    _call: Call

    def __init__(self) -> None:
        raise TypeError("Orbitals are made by AutomorphismGroup.orbitals")

    @classmethod
    def _of(cls, core: _core.PairOrbits, call: Call) -> Orbitals:
        """Return the orbits that the core found, and a call that finds them anew."""
        orbitals = cls.__new__(cls)
        orbitals._pairs, orbitals._call = core, call
        return orbitals

    def __reduce__(self) -> Call:
        return self._call  # the group is far smaller than its pairs

    @property
    def num_points(self) -> int:
        """Number of points."""
        return self._pairs.points

    @property
    def rank(self) -> int:
        """Number of orbitals."""
        return self._pairs.rank

    @property
    def sizes(self) -> Ints:
        """Number of pairs in each orbital."""
        return self._pairs.sizes()

    @property
    def representatives(self) -> Ints:
        """The first pair of each orbital, row by row."""
        return self._pairs.representatives()

    def label_row(self, v: int) -> Ints:
        """Return the orbitals of the pairs that begin with a point.

        Parameters
        ----------
        v : int
            The point.

        Returns
        -------
        ndarray of int64, shape (num_points,)
            Entry `w` is the number of the orbital of ``(v, w)``.

        {no_point}

        Examples
        --------
        >>> from quincunx.graphs import AutomorphismGroup
        >>> AutomorphismGroup.hamming(2, 2).orbitals().label_row(3)
        array([2, 1, 1, 0])
        """
        v = _check.whole(v, "v")
        if v >= self.num_points:
            raise ValueError(f"`v` must be a point in 0..{self.num_points - 1}, got {v}")
        return self._pairs.label_row(v)

    def labels(self, *, threads: int | None = None) -> npt.NDArray[np.int32]:
        """Return the orbital of every pair.

        Parameters
        ----------
        threads : int, optional
            Number of threads; what this process may use if left out. The result does not depend on it.

        Returns
        -------
        ndarray of int32, shape (num_points, num_points)

        Raises
        ------
        TypeError, ValueError
            If `threads` is not a positive whole number.
        quincunx.errors.TooLargeError
            If there are ``2**31`` orbitals or more.

        Examples
        --------
        >>> from quincunx.graphs import AutomorphismGroup
        >>> AutomorphismGroup.hamming(1, 3).orbitals().labels().tolist()
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
        """
        return self._pairs.labels(_check.threads(threads))

    def __repr__(self) -> str:
        return f"<Orbitals: {counted(self.rank, 'orbital')} on {counted(self.num_points, 'point')}>"
