"""Bonds that a unit cell gets by distance or by displacement, and those that pass over sites."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from quincunx._types import Floats, Ints
from quincunx.errors import TooLargeError

Vector: TypeAlias = tuple[float, float]
#: From site, to site, cells from one to the other.
Bond: TypeAlias = tuple[int, int, tuple[int, int]]

#: Lengths and places are the same if they differ by less than this times the longest basis vector: far above what
#: doubles round, far below what tells shells apart.
_TOLERANCE = 1e-9
#: Pairs of sites that are looked at, of 64 bytes each: a quarter of a gigabyte.
_MOST_PAIRS = 1 << 22


class Surroundings:
    """The sites around each site of a cell, by places in the plane."""

    def __init__(self, basis_vectors: tuple[Vector, Vector], site_offsets: tuple[Vector, ...]) -> None:
        _refuse_many(len(site_offsets) ** 2)
        self.basis, offsets = np.array(basis_vectors), np.array(site_offsets)
        self.from_to = offsets[None, :] - offsets[:, None]
        self.coordinates = np.linalg.inv(self.basis)
        self.tolerance = _TOLERANCE * float(np.hypot(*self.basis.T).max())

    def within(self, radius: float) -> tuple[Ints, Floats]:
        """Return rows (from, to, dx, dy) of all other sites at most so far, and the vectors to them."""
        spread = np.abs(self.from_to @ self.coordinates).max(axis=(0, 1))
        reach = np.ceil(radius * np.hypot(*self.coordinates) + spread + 1e-6)
        _refuse_many(self.from_to.size / 2 * float(np.prod(2 * reach + 1)))
        i, j = (np.arange(-r, r + 1) for r in reach.astype(int).tolist())
        steps = np.stack(np.meshgrid(i, j, indexing="ij"), axis=-1).reshape(-1, 2)
        vectors = self.from_to[:, :, None] + steps @ self.basis
        length = np.hypot(vectors[..., 0], vectors[..., 1])
        u, v, step = np.nonzero((length <= radius) & (length > self.tolerance))
        return np.column_stack([u, v, steps[step]]), vectors[u, v, step]

    def shells(self, wanted: list[int]) -> list[list[Bond]]:
        """Return the bonds of each of some shells: the pairs of sites at the k-th smallest distance, from 1 on."""
        radius = math.sqrt(abs(float(np.linalg.det(self.basis))) / len(self.from_to))
        while True:
            rows, vectors = self.within(radius)
            length = np.hypot(*vectors.T)
            order = np.argsort(length, kind="stable")
            rows, length = rows[order], length[order]
            shell = np.cumsum(np.diff(length, prepend=0.0) > self.tolerance)
            # The last one found may go on beyond the radius.
            if len(shell) and shell[-1] > max(wanted):
                break
            radius *= 1.5
        once = (rows[:, 0] < rows[:, 1]) | (
            (rows[:, 0] == rows[:, 1]) & ((rows[:, 2] > 0) | ((rows[:, 2] == 0) & (rows[:, 3] > 0)))
        )
        return [sorted(map(_bond, rows[once & (shell == k)].tolist())) for k in wanted]

    def along(self, vectors: list[Vector]) -> list[Bond]:
        """Return the bonds of all pairs of sites of which one is such a vector from the other."""
        found = []
        for vector in vectors:
            if np.hypot(*vector) <= self.tolerance:
                raise ValueError(f"`vectors` must lead from a site to another, got {vector}")
            steps = np.rint((np.array(vector) - self.from_to) @ self.coordinates)
            if np.abs(steps).max() > 2**20:
                raise ValueError(f"`vectors` must reach at most {2**20} cells, got {vector}")
            missed = np.abs(self.from_to + steps @ self.basis - vector).max(axis=-1)
            u, v = np.nonzero(missed <= self.tolerance)
            if not len(u):
                raise ValueError(f"`vectors` must lead from a site to another, got {vector}")
            found += [_bond(row) for row in np.column_stack([u, v, steps[u, v].astype(np.int64)]).tolist()]
        return found

    def passing(self, bonds: Iterable[Bond]) -> list[bool]:
        """Return for each bond whether it passes over a site."""
        along = [self.from_to[u, v] + np.array(step) @ self.basis for u, v, step in bonds]
        if not along:
            return []
        rows, vectors = self.within(max(float(np.hypot(*vector)) for vector in along))
        found = []
        for (u, _, _), (x, y) in zip(bonds, along, strict=True):
            other = vectors[rows[:, 0] == u]
            length = np.hypot(x, y)
            beside, forwards = other @ (y, -x) / length, other @ (x, y) / length
            on = (np.abs(beside) <= self.tolerance) & (forwards > 0) & (forwards < length - self.tolerance)
            found.append(bool(on.any()))
        return found


def _refuse_many(pairs: float) -> None:
    if pairs > _MOST_PAIRS:
        needed, limit = 64 * int(min(pairs, 2e30)), 64 * _MOST_PAIRS
        raise TooLargeError(f"looking for bonds needs {needed} bytes, at most {limit} are used", needed, limit)


def unlisted(bonds: Iterable[Bond], listed: Iterable[Bond]) -> list[Bond]:
    """Return the bonds that are not listed, each once, whichever way they are written."""
    seen = set(map(_either_way, listed))
    found = []
    for bond in bonds:
        if (name := _either_way(bond)) not in seen:
            seen.add(name)
            found.append(bond)
    return found


def _bond(row: list[int]) -> Bond:
    u, v, dx, dy = row
    return u, v, (dx, dy)


def _either_way(bond: Bond) -> Bond:
    u, v, (dx, dy) = bond
    return min(bond, (v, u, (-dx, -dy)))
