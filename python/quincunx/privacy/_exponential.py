"""The exponential mechanism: a choice from a finite set by private scores, made with whole numbers, and its law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx._types import Facts, Floats, Ints
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Ranged
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import Noise, checked_exponent, log_of_choice
from quincunx.privacy._mechanism import Mechanism
from quincunx.privacy._privacy_map import Declared
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words

#: Steps of the grid of scores per sensitivity, as a power of two: rounding widens the sensitivity by a step, a
#: billionth.
SCORE_BITS = 30
#: Scores of more steps are counted from the best one, to twice as many below it, so that differences stay within 64
#: bits. Others differ by no more, so that either way a score moves by no more than it did.
LARGEST_SCORE = 2**61


@dataclass(frozen=True, eq=False)
class ExponentialChoice(Noise):
    """A choice i with ``P(i)`` proportional to ``exp(exponent score(i) / step)``, scores rounded to multiples of step.

    Parameters
    ----------
    exponent : Fraction
        Of a step, > 0.
    step : float
        The grid of the scores, > 0.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.ExponentialChoice(0.5, 1.0).log_likelihood(1, [0.0, 2.0])), 6)
    -0.313262
    """

    exponent: Fraction
    step: float
    kind = "exponential"
    _by_cell = False
    _instead = "`ExponentialMechanism.utility_bound` says how far below the best score a choice lies"

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", checked_exponent(self.exponent))
        _check.real(self.step, "step", positive=True)

    @classmethod
    def _of_facts(cls, facts: Facts) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        return cls(facts["exponent"], facts["step"] if "step" in facts else _grid(facts["sensitivity"]))

    def units(self, scores: npt.ArrayLike, name: str = "x") -> Ints:
        """Return scores in steps.

        Parameters
        ----------
        scores : array_like of float, shape (..., k)
            The score of each element.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int64, shape (..., k)
            But for a number of steps that is the same for all, where some are beyond 2**61.

        Raises
        ------
        ValueError, TypeError
            If a score is not finite, or the set is empty.
        """
        given = _check.unrounded(scores, name)
        values = _check.reals(given, name)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ValueError(f"`{name}` must have a last axis of at least one element, got shape {values.shape}")
        with np.errstate(over="ignore"):
            steps = np.rint(values / self.step)
        rounded = given.dtype.kind in "iu" and np.abs(values).max(initial=0) >= 2**53
        rounded |= given.itemsize > 8 and bool((given != values).any())
        if not rounded and np.abs(steps).max(initial=0) <= LARGEST_SCORE:
            return steps.astype(np.int64)
        numbers = (Fraction(*score.as_integer_ratio()) for score in given.reshape(-1).tolist())
        exact = [round(number / Fraction(self.step)) for number in numbers]
        whole = np.array(exact, dtype=object).reshape(values.shape)
        from_best = whole - whole.max(axis=-1, keepdims=True)
        return np.asarray(np.maximum(from_best, -2 * LARGEST_SCORE), dtype=np.int64)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        units = self.units(x)
        chosen = _check.categories(z, "z", units.shape[-1]).astype(np.int64)
        logs = log_of_choice((units - units.max(axis=-1, keepdims=True)) * float(self.exponent))
        shape = np.broadcast_shapes(chosen.shape, logs.shape[:-1])
        logs = np.broadcast_to(logs, (*shape, logs.shape[-1]))
        return np.take_along_axis(logs, np.broadcast_to(chosen, shape)[..., None], axis=-1)[..., 0]


def _grid(sensitivity: float) -> float:
    """Return the grid of scores of a sensitivity."""
    exponent = math.frexp(sensitivity)[1] - SCORE_BITS
    if not -1000 <= exponent <= 960:
        raise ValueError(f"`sensitivity` must leave a grid that floats can hold, got {sensitivity}")
    return math.ldexp(1.0, exponent)


@sections
class ExponentialMechanism(Mechanism):
    """A choice i from a finite set with ``P(i)`` proportional to ``exp(epsilon score(i) / (2 sensitivity))``.

    Scores are rounded to a grid of about ``2**-30`` of the sensitivity, which is widened by one step; the choice is
    made by comparing random bits with shares that are enclosed between integers, so its law is exact.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    sensitivity : float
        How much any one score changes at most between neighbors, > 0.
    monotonic : bool
        Whether a neighbor moves all scores in one direction, as counts do when a record is added.
        Then ``exp(epsilon score / sensitivity)`` has the same epsilon.
    relation : ReplaceOne, AddRemove or DataMetric
        Which neighbors the sensitivity is about.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        Range-bounded: its zCDP is ``epsilon**2 / 8``.
    step : float
        The grid of the scores, a power of two.

    {domain}

    Notes
    -----
    About 10 ns per element of the set and 0.3 us per choice, whatever the scores are; 3 us per element where one is
    beyond ``2**31`` sensitivities, or a whole number beyond ``2**53``. With weight ``exp(epsilon score /
    (2 sensitivity))`` the chosen score lies more than ``(2 sensitivity / epsilon) (log(k / s) + t)`` below the best
    with probability at most ``exp(-t)``, for a set of k elements of which s are best: `utility_bound`.

    References
    ----------
    .. [1] F. McSherry and K. Talwar (2007), Mechanism design via differential privacy, FOCS.
    .. [2] J. Dong, D. Durfee and R. Rogers (2020), Optimal differential privacy composition for exponential mechanisms,
       ICML.

    Examples
    --------
    >>> from quincunx.privacy import ExponentialMechanism
    >>> mechanism = ExponentialMechanism(1.0, sensitivity=1.0)
    >>> int(mechanism.release([0.0, 0.0, 500.0]).values)
    2
    >>> mechanism.guarantee.zcdp
    0.125
    >>> round(float(mechanism.log_likelihood(1, [0.0, 2.0])), 6)  # weights 1 and e
    -0.313262
    """

    def __init__(
        self, epsilon: float, sensitivity: float, *, monotonic: bool = False, relation: Relation = ReplaceOne()
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True)
        self.sensitivity = _check.real(sensitivity, "sensitivity", positive=True)
        self.monotonic = _check.flag(monotonic, "monotonic")
        self.relation = _relations.check(relation)
        self.step = _grid(self.sensitivity)
        # Rounding moves two neighboring scores apart by less than one more step.
        steps = math.ceil(Fraction(self.sensitivity) / Fraction(self.step)) + 1
        width = steps if monotonic else 2 * steps
        self._exponent = _rational.exponent(level, width)
        words = f"declared to move each score by at most {self.sensitivity:g}"
        self.guarantee = guarantee_of(Declared(Ranged(self._exponent * width), self.relation, words), self.relation)

    @cached_property
    def noise(self) -> ExponentialChoice:
        return ExponentialChoice(self._exponent, self.step)

    @property
    def rate(self) -> float:
        """What a score is multiplied by in the exponent, about ``epsilon / (2 sensitivity)``."""
        return float(self._exponent / Fraction(self.step))

    def release(self, scores: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Choose by private scores.

        Parameters
        ----------
        scores : array_like of float, shape (..., k)
            The score of each element; the leading axes are separate choices, each of which spends `epsilon`.
        insecure_seed : int, optional
            Makes the choice repeatable, for tests: the guarantee then says so.

        Returns
        -------
        Release
            With the indices chosen, int64 of shape ``(...)``. The guarantee is about all choices together.

        Raises
        ------
        ValueError, TypeError
            If a score is not finite, or the set is empty.
        """
        units = self.noise.units(scores, "scores")
        chosen = _core.choose(
            units.reshape(-1),
            units.shape[-1],
            self._exponent.numerator,
            self._exponent.denominator,
            seed_words(insecure_seed),
        )
        about = {"sensitivity": self.sensitivity, "monotonic": self.monotonic}
        release = self._published(chosen.reshape(units.shape[:-1]), scores, insecure_seed, **about)
        release.guarantee *= max(len(chosen), 1)
        return release

    def utility_bound(self, options: int, *, beta: float, best: int = 1) -> float:
        """Return how far below the best score the chosen one lies at most, with probability 1 - beta.

        Parameters
        ----------
        options : int
            Elements of the set.
        beta : float
            In (0, 1).
        best : int
            Elements that have the best score.

        Returns
        -------
        float
            ``log(options / (best beta)) / rate``, plus the rounding of the scores.

        {domain}

        Examples
        --------
        >>> from quincunx.privacy import ExponentialMechanism
        >>> round(ExponentialMechanism(1.0, 1.0).utility_bound(100, beta=0.05), 4)
        15.2018
        """
        count = _check.whole(options, "options", minimum=1)
        among = _check.whole(best, "best", minimum=1, maximum=count)
        rate = _check.open_probability(beta, "beta")
        return math.log(count / (among * rate)) / self.rate + self.step

    def __repr__(self) -> str:
        more = ", monotonic=True" if self.monotonic else ""
        return f"ExponentialMechanism({self.epsilon}, sensitivity={self.sensitivity}{more})"
