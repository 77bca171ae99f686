"""Transfer operators of strips and rings that repeat along one axis, site by site, and their Perron roots, enclosed.

The sites of a period come one at a time; the state is the occupation of the sites that still wait for a neighbor. A
root is enclosed after Collatz and Wielandt: for positive x it lies between the least and the greatest of
``(T x)_i / x_i``. All sums and products are of numbers that are not negative, so that each rounding errs by at most
``2**-53``, relatively.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.errors import TooLargeError


class Root(NamedTuple):
    """An enclosed Perron root."""

    lower: float
    upper: float


class _Step(NamedTuple):
    site: int
    neighbors: tuple[int, ...]
    forgotten: tuple[int, ...]
    #: Whether no neighbor is still to come, so that the site is summed over at once.
    over: bool


class PeriodicOperator:
    """The operator of one period.

    Parameters
    ----------
    sites : int
        Sites of a period, in the order they are taken.
    bonds : iterable of (int, int, int)
        Site, site, periods from the first to the second, at most one in size.
    """

    def __init__(self, sites: int, bonds: Iterable[tuple[int, int, int]]) -> None:
        near: list[set[tuple[int, int]]] = [set() for _ in range(sites)]
        for u, v, step in bonds:
            near[u].add((v, step))
            near[v].add((u, -step))
        if any((v, step) == (u, 0) for u in range(sites) for v, step in near[u]):
            raise ValueError("a site is bonded to itself")
        # A site is forgotten once its last neighbor has come.
        last = [max([step * sites + v for v, step in near[u]] + [u]) for u in range(sites)]
        waiting: list[int] = []
        for time in range(4 * sites):
            waiting.append(time)
            waiting = [other for other in waiting if other // sites * sites + last[other % sites] > time]
        # One more period from there, labels counted from its beginning.
        base = 4 * sites
        axes = [time - base for time in waiting]
        start = list(axes)
        self._steps: list[_Step] = []
        self.roundings = 0
        widest = len(axes)
        for site in range(sites):
            earlier = {step * sites + v for v, step in near[site] if step * sites + v < site}
            neighbors = tuple(i for i, label in enumerate(axes) if label in earlier)
            done = [label // sites * sites + last[label % sites] <= site for label in axes]
            forgotten = tuple(i for i, over in enumerate(done) if over)
            self._steps.append(_Step(site, neighbors, forgotten, last[site] <= site))
            axes = [label for label, over in zip(axes, done, strict=True) if not over]
            axes += [site] if last[site] > site else []
            widest = max(widest, len(axes) + 1)
            self.roundings += len(forgotten) + (last[site] <= site) + 1
        shifted = [label + sites for label in start]
        assert sorted(axes) == sorted(shifted)
        self._order = [axes.index(label) for label in shifted]
        self.frontier = len(start)
        self.widest = widest

    def bytes(self) -> int:
        """Return the bytes that a root needs at most."""
        return 32 << self.widest

    def apply(self, vector: npt.NDArray[np.float64], weights: Mapping[int, float]) -> npt.NDArray[np.float64]:
        """Return the vector one period on; sites have their weights, 1 where none is given."""
        state = vector.reshape((2,) * self.frontier)
        for site, neighbors, forgotten, over in self._steps:
            kept = [axis for axis in range(state.ndim) if axis not in forgotten]
            out = np.zeros((2,) * (len(kept) + 1))
            np.sum(state, axis=forgotten, out=out[..., 0]) if forgotten else np.copyto(out[..., 0], state)
            free = state[tuple(0 if axis in neighbors else slice(None) for axis in range(state.ndim))]
            left = [axis for axis in range(state.ndim) if axis not in neighbors]
            summed = tuple(i for i, axis in enumerate(left) if axis in forgotten)
            target = out[tuple(0 if axis in neighbors else slice(None) for axis in kept)][..., 1]
            np.sum(free, axis=summed, out=target) if summed else np.copyto(target, free)
            if (weight := weights.get(site, 1.0)) != 1.0:
                target *= weight
            state = out.sum(axis=-1) if over else out
        return np.ascontiguousarray(state.transpose(self._order)).reshape(-1)

    def root(self, weights: Mapping[int, float] | None = None, tolerance: float = 4e-16) -> Root:
        """Return the Perron root at these weights, enclosed."""
        if self.bytes() > (available := _check.available_memory()):
            raise TooLargeError(
                f"a frontier of {self.widest} sites needs {self.bytes()} bytes, {available} are available",
                self.bytes(),
                available,
            )
        weights = weights or {}
        vector = self.apply(np.ones(2**self.frontier), weights)
        vector /= vector.max()
        there = vector > 0
        best = Root(0.0, math.inf)
        calm = 0
        for _ in range(500):
            image = self.apply(vector, weights)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = (image / vector)[there]
            found = Root(float(ratios.min()), float(ratios.max()))
            closer = found.upper / found.lower - 1 < 0.9 * (best.upper / best.lower - 1) if best.lower else True
            if closer:
                best, calm = found, 0
            else:
                calm += 1
            if calm >= 3 or best.upper / best.lower - 1 < tolerance:
                break
            vector = image / image.max()
        slack = (self.roundings + 8) * 1.01 * 2.0**-53
        return Root(best.lower * (1 - slack), best.upper * (1 + slack))
