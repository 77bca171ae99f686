"""What a private posterior draw comes as, and answers to queries from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._docs import sections
from quincunx._types import Array, Floats
from quincunx.posterior._bounds import query_error_bound
from quincunx.privacy import PrivacyGuarantee
from quincunx.privacy._law import ReadOnly


@dataclass(frozen=True, eq=False)
class PrivateSample(ReadOnly):
    """Draws from a posterior with the guarantee of all of them together.

    Attributes
    ----------
    values : ndarray, shape (size, ...)
        One parameter, or parameter vector, per draw; read-only.
    guarantee : PrivacyGuarantee or None
        Of all draws together; None for draws without one.

    Examples
    --------
    >>> from quincunx.posterior import BetaBernoulli
    >>> sample = BetaBernoulli(1, 1, trim=0.25).posterior([1, 0, 1]).sample(4)
    >>> sample.values.shape, len(sample)
    ((4,), 4)
    """

    values: Array
    guarantee: PrivacyGuarantee | None

    def __post_init__(self) -> None:
        if not isinstance(self.values, np.ndarray):
            raise TypeError(f"`values` must be an array, got {type(self.values).__name__}")
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


T = TypeVar("T")


@sections
class QueryAnswerer:
    """Answers to any number of queries from one private sample, at no further cost.

    A query is a utility u(theta, response) in [0, 1]; its answer is the response with the largest mean utility over the
    draws. All answers are post-processing of the sample.

    Parameters
    ----------
    sample : PrivateSample
        Draws of a posterior.

    Attributes
    ----------
    guarantee : PrivacyGuarantee or None
        That of the sample, however many queries are answered.

    Raises
    ------
    TypeError
        If `sample` is none.

    Notes
    -----
    For T queries fixed in advance, each answer is nearly optimal under the posterior: `error_bound`. A query chosen in
    the light of earlier answers must come from a finite set, whose size is then T.

    Examples
    --------
    >>> from quincunx.posterior import BetaBernoulli, QueryAnswerer
    >>> sample = BetaBernoulli(1, 1, trim=0.25).posterior([1] * 90 + [0] * 10).sample(50)
    >>> answerer = QueryAnswerer(sample)
    >>> answerer.answer(lambda theta, r: 1 - abs(theta - r), [0.3, 0.5, 0.7])
    0.7
    """

    def __init__(self, sample: PrivateSample) -> None:
        if not isinstance(sample, PrivateSample):
            raise TypeError(f"`sample` must be a PrivateSample, got {type(sample).__name__}")
        if len(sample) == 0:
            raise ValueError("`sample` must hold at least one draw, got none")
        self.sample = sample
        self.guarantee = sample.guarantee

    def utilities(self, utility: Callable[[Array, T], npt.ArrayLike], responses: Sequence[T]) -> Floats:
        """Return the mean utility of each response over the draws.

        Parameters
        ----------
        utility : function
            ``utility(theta, response)`` in [0, 1], for all draws at once: theta has the draws along its first axis.
        responses : sequence
            A finite, non-empty set.

        Returns
        -------
        ndarray of float64, shape (n_responses,)
            The mean utility of each response.

        Raises
        ------
        ValueError
            If there is no response, or a utility leaves [0, 1] or has another shape.
        """
        _check.fits(responses, "responses")
        options = [response for response in responses]  # list() would ask for the length, and believe it
        if not options:
            raise ValueError("`responses` must hold at least one response, got none")
        means = []
        for response in options:
            found = np.asarray(utility(self.sample.values, response), dtype=np.float64)
            if found.shape not in ((), (len(self.sample),)):
                raise ValueError(f"`utility` must return shape ({len(self.sample)},), got {found.shape}")
            if not ((found >= 0) & (found <= 1)).all():
                raise ValueError(f"`utility` must return numbers in [0, 1], got {found.min()} to {found.max()}")
            means.append(float(found.mean()))
        return np.array(means)

    def answer(self, utility: Callable[[Array, T], npt.ArrayLike], responses: Sequence[T]) -> T:
        """Return the response of the largest mean utility, the first of several.

        Parameters
        ----------
        utility, responses
            As for `utilities`.

        Returns
        -------
        object
            One of `responses`.

        Raises
        ------
        ValueError
            As `utilities`.
        """
        options = [response for response in responses]
        return options[int(np.argmax(self.utilities(utility, options)))]

    def error_bound(self, n_responses: int, n_queries: int = 1, *, beta: float = 0.05) -> float:
        """Return the posterior expected utility that each of T answers loses at most, with probability 1 - beta.

        Parameters
        ----------
        n_responses, n_queries : int
            Responses of each query, and queries.
        beta : float
            In (0, 1).

        Returns
        -------
        float
            As `quincunx.posterior.query_error_bound`.

        {domain}
        """
        return query_error_bound(n_samples=len(self.sample), n_responses=n_responses, n_queries=n_queries, beta=beta)


def sample_size(size: object) -> int:
    """Return a number of draws, at least one."""
    return _check.whole(size, "size", minimum=1, maximum=2**48)
