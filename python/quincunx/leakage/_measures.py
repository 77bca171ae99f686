"""What an observer learns: vulnerabilities, leakages, capacities.

Source: M. Alvim et al. (2020), The Science of Quantitative Information Flow, chapters 4 to 7.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeVar

import numpy.typing as npt

from quincunx import _check
from quincunx._types import Floats
from quincunx.errors import ConvergenceWarning
from quincunx.leakage import _checks
from quincunx.leakage._exact import ExactMatrix, log, outward
from quincunx.leakage._floats import FloatMatrix
from quincunx.leakage._parts import leakage_doc

Values = TypeVar("Values")


class CapacityResult(NamedTuple):
    """An interval that holds a Shannon capacity, in bits, with the input distribution that reaches its lower end."""

    lower: float
    upper: float
    prior: Floats
    iterations: int


class Rows:
    """What the methods of a `Channel` stand on: it says who its inputs are."""

    __slots__ = ()

    _entries: ExactMatrix | FloatMatrix

    @property
    def inputs(self) -> Sequence[Hashable]:
        """Names of the rows."""
        raise NotImplementedError


@leakage_doc
class Measures(Rows):
    """The methods of a `Channel` that tell what an observer learns."""

    __slots__ = ()

    def _ordered(self, value: Values, name: str = "prior") -> Values:
        """Return a prior or a gain, unless its labels are the inputs in another order."""
        _checks.labels_in_order(value, self.inputs, name)
        return value

    def bayes_vulnerability(self, prior: npt.ArrayLike | None = None) -> float | Fraction:
        """Return the chance that the best guess of the input is right once the output is seen.

        ``sum_y max_x prior[x] C[x, y]``.

        {prior}

        Returns
        -------
        float, or Fraction for an exact channel and prior

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> round(randomized_response(3, 0.0).bayes_vulnerability([0.5, 0.25, 0.25]), 12)
        0.5
        """
        return _told(self._entries.vulnerability(self._ordered(prior)), prior)

    def conditional_min_entropy(self, prior: npt.ArrayLike | None = None) -> float:
        """Return the min-entropy of the input given the output, ``-log2(bayes_vulnerability(prior))``.

        {prior}

        Returns
        -------
        float
            In bits.
        """
        return -_log2(self._entries.vulnerability(self._ordered(prior))) + 0.0

    def min_entropy_leakage(self, prior: npt.ArrayLike | None = None) -> float:
        """Return by how much the output lowers the min-entropy of the input.

        ``log2(bayes_vulnerability(prior) / max(prior))``.

        {prior}

        Returns
        -------
        float
            In bits, between 0 and `min_capacity`.
        """
        prior = self._ordered(prior)
        return max(_log2(self._entries.vulnerability(prior) / self._entries.prior_vulnerability(prior)), 0.0)

    def additive_leakage(self, prior: npt.ArrayLike | None = None) -> float | Fraction:
        """Return by how much the output raises the chance of a right guess.

        {prior}

        Returns
        -------
        float, or Fraction for an exact channel and prior
        """
        gained = self._entries.vulnerability(self._ordered(prior)) - self._entries.prior_vulnerability(prior)
        return _told(max(gained, 0 * gained), prior)

    def min_capacity(self) -> float:
        """Return the largest min-entropy leakage over all priors; the uniform one reaches it.

        ``log2(sum_y max_x C[x, y])``.

        Returns
        -------
        float
            In bits, between 0 and ``log2(min(n_inputs, n_outputs))``.

        Examples
        --------
        >>> import math
        >>> from quincunx.leakage import randomized_response
        >>> round(randomized_response(4, math.log(2)).min_capacity(), 12)
        0.678071905113
        """
        return max(_log2(self._entries.column_maxima_sum()), 0.0)

    def g_vulnerability(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> float:
        """Return the expected gain of the best guess once the output is seen.

        ``sum_y max_w sum_x prior[x] C[x, y] gain[w, x]``.

        Parameters
        ----------
        gain : array_like of float, shape (guesses, n_inputs)
            What guess ``w`` is worth if the input is ``x``, >= 0.
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.leakage import Channel
        >>> Channel([[0.75, 0.25], [0.5, 0.5]]).g_vulnerability(np.eye(2))
        0.625
        """
        _, after, unit = self._entries.g_vulnerability(self._ordered(gain, "gain"), self._ordered(prior))
        return after * unit if isinstance(after, float) else outward(after)

    def g_leakage(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> float:
        """Return the logarithm of the factor by which the output raises the expected gain.

        Parameters
        ----------
        gain : array_like of float, shape (guesses, n_inputs)
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float
            In bits, between 0 and `min_capacity` whatever the gain; 0 if nothing can be gained at all.
        """
        before, after, _ = self._entries.g_vulnerability(self._ordered(gain, "gain"), self._ordered(prior))
        return max(_log2(after / before), 0.0) if before > 0 else 0.0

    def mutual_information(self, prior: npt.ArrayLike | None = None) -> float:
        """Return the mutual information of input and output, in bits.

        {prior}

        Returns
        -------
        float

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> round(Channel([[0.89, 0.11], [0.11, 0.89]]).mutual_information(), 12)
        0.500084041835
        """
        return self._entries.mutual_information(self._ordered(prior))

    def shannon_capacity(self, tol: float = 1e-9) -> CapacityResult:
        """Return an interval that holds the largest mutual information over all priors.

        Parameters
        ----------
        tol : float
            Width of the interval in bits, > 0.

        Returns
        -------
        CapacityResult
            ``(lower, upper, prior, iterations)``; `prior` reaches the lower end.

        Raises
        ------
        ValueError
            If `tol` is not positive.

        Warns
        -----
        ConvergenceWarning
            If the interval is still wider than `tol` after 20,000 steps. It holds the capacity all the same.

        Notes
        -----
        Blahut-Arimoto with growing steps [1]_. Every input distribution gives a lower and an upper bound; the best of
        each are kept and widened by a bound for their rounding errors, so the interval is proved. Rows that do not sum
        to 1, as `atol` allows, are divided by their sums here, and not in `mutual_information`.

        References
        ----------
        .. [1] R. E. Blahut (1972), Computation of channel capacity and rate-distortion functions, IEEE Trans.
           Inf. Theory.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> found = Channel([[1.0, 0.0], [0.5, 0.5]]).shannon_capacity()
        >>> found.lower <= 0.321928094887362 <= found.upper
        True
        """
        tol = _check.real(tol, "tol", positive=True)
        found = CapacityResult(*self._entries.capacity(tol))
        if not found.upper - found.lower <= tol:
            warnings.warn(
                f"the capacity lies in an interval of width {found.upper - found.lower:.2g}, wider than {tol:.2g}, "
                f"after {found.iterations} steps",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found

    def capacity(self, kind: Literal["min", "shannon"] = "min", tol: float = 1e-9) -> float | CapacityResult:
        """Return the capacity: `min_capacity` or `shannon_capacity`.

        Parameters
        ----------
        kind : {"min", "shannon"}
        tol : float
            Width of the interval for the Shannon capacity.

        Returns
        -------
        float or CapacityResult
        """
        if _check.one_of(kind, "kind", ["min", "shannon"]) == "min":
            return self.min_capacity()
        return self.shannon_capacity(tol)


def _log2(value: float | Fraction) -> float:
    return math.log2(value) if isinstance(value, float) else log(value, None)


def _told(value: float | Fraction, prior: npt.ArrayLike | None) -> float | Fraction:
    """Return an exact answer as a float where the question was put in floats."""
    return value if isinstance(value, float) or _checks.is_exact(prior) else outward(value)
