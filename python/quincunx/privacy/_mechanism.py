"""What mechanisms share: their state is their parameters; tables are made where they are used."""

from __future__ import annotations

from functools import cached_property

import numpy.typing as npt

from quincunx import _tables
from quincunx._docs import assembled
from quincunx._types import Array, Facts, Floats
from quincunx.privacy._law import Accuracy, Noise, law_doc
from quincunx.privacy._relations import ReplaceOne
from quincunx.privacy._release import Guaranteed, Release, marked

#: What the `release` of every mechanism has in common, and that of those which add noise to whole numbers.
RELEASE = {
    "insecure_seed": """
    insecure_seed : int, optional
        Makes the noise repeatable, for tests: the noise can be removed by who knows the seed. The guarantee says so.

    Returns
    -------
    Release
    """,
    "errors": """
    Raises
    ------
    ValueError, TypeError
    """,
    "whole_numbers": """
    Parameters
    ----------
    x : array_like of int
        The private numbers; those outside the bounds are clipped.
    {insecure_seed}
        With int64 values of the shape of `x`.

    {errors}
        If `x` does not hold whole numbers.
    """,
}
#: For the docstring of a mechanism and its methods.
mechanism_doc = assembled(**RELEASE)


@law_doc
class Mechanism(Guaranteed):
    """Releases data with noise; equal to another of the same kind and parameters, and picklable."""

    #: Whether `release` of a stack of data sets is a stack of independent releases, as `audit` draws them.
    stacks = True

    @property
    def noise(self) -> Noise:
        """The law of what is released, which every release carries: one of `quincunx.privacy.noise`."""
        raise NotImplementedError

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of what was released given the private value; a density for real numbers.

        {likelihood}
        """
        return self.noise.log_likelihood(z, x)

    def accuracy(self, confidence: float = 0.95) -> Accuracy:
        """Return the least a with ``P(abs(z - x) <= a)`` at least a confidence, from the exact law of the noise.

        {accuracy}

        Examples
        --------
        >>> from quincunx.privacy import GeometricMechanism
        >>> GeometricMechanism(0.5, n=1).accuracy(0.95)
        6
        """
        return self.noise.accuracy(confidence)

    def _published(self, values: Array, data: object, insecure_seed: object, **about: object) -> Release:
        """Return fresh noisy values as a release with the labels of the data."""
        guarantee, axes = marked(self.guarantee, insecure_seed), _tables.axes(data)
        return Release(values, guarantee, noise=self.noise, about=about, _owned=True, _axes=axes)

    @property
    def _shown_relation(self) -> str:
        """The relation as an argument, where it is not the usual one."""
        relation = self.guarantee.relation
        return "" if relation == ReplaceOne() else f", relation={relation}"

    def __getstate__(self) -> Facts:
        cached = {name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))
