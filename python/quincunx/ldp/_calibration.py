"""Simulation-based calibration: where the truth lies in posteriors of data simulated from the priors."""

import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from quincunx import _check, _optional
from quincunx._inference import Floats
from quincunx._rng import RandomSource, generator

#: The chance that a model without fault does not pass: as of the tests of this package, one verdict in a million.
FALSE_ALARM = 1e-6


@dataclass(frozen=True, eq=False)
class Calibration:
    """Places of the truth in its posteriors, uniform on the unit interval where all is right.

    Attributes
    ----------
    places : dict of ndarray
        By parameter: the posterior probability below the truth, one for each repeat.
    levels : tuple of float
        Of central intervals.
    coverage : dict of ndarray
        By parameter: the share of repeats whose interval of each level holds the truth.
    distances : dict of float
        By parameter: Kolmogorov's distance from uniform.
    limit : float
        What a distance exceeds with a probability of 1e-6 over all parameters where all is right.
    passed : bool
        Whether none does.
    """

    places: dict[str, Floats]
    levels: tuple[float, ...]
    coverage: dict[str, Floats]
    distances: dict[str, float]
    limit: float
    passed: bool

    def plot(self, ax: Any = None) -> Any:
        """Draw the distribution functions of the places with the limits.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to.

        Returns
        -------
        matplotlib axes
        """
        axes = _optional.axes(ax)
        for name, places in self.places.items():
            steps = np.arange(1, len(places) + 1) / len(places)
            axes.plot(np.sort(places), steps - np.sort(places), label=name)
        axes.axhspan(-self.limit, self.limit, alpha=0.15)
        axes.set(xlabel="place of the truth", ylabel="share below, less the place")
        axes.legend()
        return axes


def _repeat(model: Any, n: int, groups: int, seed: Any) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    truth, data, named = model._simulate(rng, n, groups) if groups else model._simulate(rng, n)
    fitted = copy(model)
    fitted.progress, fitted._quiet = False, True
    fitted._tolerance = 1e-4  # what a verdict can see is coarser still
    fitted.random_state = int(rng.integers(2**62))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(*data, **named)
    posterior = fitted._posterior
    places = {}
    for index, (name, value) in enumerate(truth.items()):
        if posterior.computed is not None and np.ndim(value) == 0:
            places[name] = float(posterior.computed.probabilities(index, np.array([value]))[0])
            continue
        draws = fitted.draws_[name]
        thinned = draws[:, :: max(1, draws.shape[1] // 64)].reshape(-1, *np.shape(value))
        ranks = (np.sum(thinned < value, axis=0) + rng.random(np.shape(value))) / (len(thinned) + 1)
        for at in np.ndindex(np.shape(value)):
            if name != "covariance" or at[0] >= at[1]:  # which is symmetric
                places[f"{name}{list(at)}" if at else name] = float(np.asarray(ranks)[at])
    return places


def calibration(
    model: Any,
    *,
    n_repeats: int = 500,
    n: int = 1000,
    groups: int = 0,
    levels: Sequence[float] = (0.5, 0.7, 0.9, 0.95),
    rng: RandomSource = None,
    executor: Executor | None = None,
) -> Calibration:
    """Check a model by simulation: parameters from the priors, users, noise, a fit, and the place of the truth in it.

    Parameters
    ----------
    model : GaussianModel, HistogramModel, LinearRegression, ...
        Its constructor has the mechanism. Regressions are simulated with two inputs, which nobody clips.
    n_repeats : int
        Simulated data sets, >= 10.
    n : int
        Users of each, or of each group.
    groups : int
        Of how many partly pooled groups the users are; 0 for one population.
    levels : sequence of float
        Of central intervals.
    rng : int, Generator or None
        Seeds the simulation.
    executor : concurrent.futures.Executor, optional
        Where each repeat is one task.

    Returns
    -------
    Calibration
        With `passed`, a verdict at a false-alarm rate of 1e-6.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it should be.

    Notes
    -----
    Places are exact probability transforms where posteriors are computed, and ranks among thinned draws else.

    References
    ----------
    .. [1] S. Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based calibration.

    Examples
    --------
    >>> from quincunx.ldp import BernoulliModel, calibration
    >>> from quincunx.privacy import RandomizedResponse
    >>> calibration(BernoulliModel(RandomizedResponse(1.0)), n_repeats=50, rng=0).passed
    True
    """
    number = _check.whole(n_repeats, "n_repeats", minimum=10, maximum=2**31)
    users = _check.whole(n, "n", minimum=1)
    among = _check.whole(groups, "groups", minimum=0, maximum=2**20)
    if among and not getattr(model, "_with_populations", False):
        raise ValueError(f"`groups` must be 0: {type(model).__name__} has none that are partly pooled")
    _check.room(16 * users * max(among, 1), "a table of so many users")
    wanted = tuple(_check.open_probability(level, "levels") for level in levels)
    if not hasattr(model, "_simulate"):
        raise TypeError(f"`model` must be a model that can be simulated, got {type(model).__name__}")
    words = generator(rng, "rng").integers(0, 2**63, size=4)
    seeds = np.random.SeedSequence([int(word) for word in words]).spawn(number)
    repeat = partial(_repeat, model, users, among)
    if executor is None:
        found = list(map(repeat, seeds))
    else:
        _check.executor(executor)
        found = list(executor.map(repeat, seeds, chunksize=max(1, number // 64)))
    places = {name: np.array([row[name] for row in found]) for name in found[0]}
    steps = np.arange(1, number + 1) / number
    distances = {}
    for name, values in places.items():
        ordered = np.sort(values)
        distances[name] = float(max(np.max(steps - ordered), np.max(ordered - steps + 1 / number)))
    limit = float(np.sqrt(np.log(2 * len(places) / FALSE_ALARM) / (2 * number)))
    coverage = {
        name: np.array([np.mean(np.abs(values - 0.5) < level / 2) for level in wanted])
        for name, values in places.items()
    }
    return Calibration(places, wanted, coverage, distances, limit, all(d <= limit for d in distances.values()))
