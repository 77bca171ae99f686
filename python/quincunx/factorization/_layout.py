"""How a model's factors lie in the core, and how its users see them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._inference import Variable
from quincunx._types import Array, Floats

#: Shapes or rates of priors: a number, or for each factor a number or an array.
PriorLike: TypeAlias = float | Sequence[npt.ArrayLike] | Floats
#: The first of some rows of the table whose columns are the last axis, and the one after the last; None for all.
Rows: TypeAlias = tuple[int, int] | None


@dataclass(frozen=True)
class Factor(Variable):
    """One factor: a table (length, n_components) in the core, and how its user sees it.

    Attributes
    ----------
    turned : "as is", "transposed", "vector" or "folded"
        Whether the user sees the table, its transpose, its only row, or an array whose last axis are its columns.
    sets : tuple of int or None
        Which set of components lies along each axis of the table, or of the array; None where it is something else.
    folded : tuple of int
        The shape of that array.
    fixed : bool
        Whether it stays at the mean of its prior.
    """

    turned: Literal["as is", "transposed", "vector", "folded"] = "as is"
    sets: tuple[int | None, ...] = (None, 0)
    folded: tuple[int, ...] = ()
    fixed: bool = False

    @property
    def length(self) -> int:
        """Rows of the table in the core."""
        return self.shape[0]

    def shown(self, draws: Array) -> Array:
        """Return a table of the core, or a stack of them, as the user sees it."""
        if self.turned == "transposed":
            return draws.swapaxes(-1, -2)
        if self.turned == "folded":
            return draws.reshape((*draws.shape[:-2], *self.folded))
        return draws[..., 0, :] if self.turned == "vector" else draws

    def permuted(self, draws: Floats, orders: Sequence[npt.NDArray[np.intp]]) -> Floats:
        """Return a stack of tables of the core with components in other orders: for each set one for each draw."""
        found = draws.reshape(len(draws), *(self.folded or self.shape))
        for axis, one in enumerate(self.sets, start=1):
            if one is not None:
                order = orders[one].reshape(len(draws), *(-1 if axis == i else 1 for i in range(1, found.ndim)))
                found = np.take_along_axis(found, order, axis=axis)
        return found.reshape(draws.shape)

    @property
    def shape_shown(self) -> tuple[int, ...]:
        """The shape that the user sees."""
        return self.shown(np.empty(self.shape)).shape


def products(weights: Floats, factors: Sequence[Floats]) -> Floats:
    """Return the products of weights and of factors (extent, width), of shape (width, extent, extent, ...)."""
    found = weights.copy()
    for factor in factors:
        found = found[..., None] * factor.T.reshape(len(weights), *(1,) * (found.ndim - 1), len(factor))
    return found


@dataclass(frozen=True)
class Layout:
    """A model of the core, its extents and its factors.

    Attributes
    ----------
    model : str
        ``"cp"``, ``"directed"``, ``"undirected"``, ``"tucker"``, ``"tucker-tied"``, ``"dynamics"`` or
        ``"layers"``.
    extents : tuple of int
        What the core takes as extents.
    n_components : int
        Columns of the factor of the last axis.
    factors : tuple of Factor
        In the order of the core.
    cells : tuple of str
        The names of the axes of the data.
    symmetric : bool
        Whether each pair of indices has one count, told above the diagonal.
    """

    model: str
    extents: tuple[int, ...]
    n_components: int
    factors: tuple[Factor, ...]
    cells: tuple[str, ...]
    symmetric: bool = False

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of components of each set of them."""
        found: dict[int | None, int] = {}
        for factor in self.factors:
            found |= {one: width for one, width in zip(factor.sets, factor.folded or factor.shape, strict=True)}
        return tuple(width for one, width in sorted((one, w) for one, w in found.items() if one is not None))

    @property
    def apart(self) -> range:
        """Which factors are redrawn by themselves, so that their priors can be learnt."""
        chained = self.model in ("dynamics", "layers")
        return range(1, len(self.cells)) if chained else range(len(self.factors))

    @property
    def entries(self) -> int:
        """Entries of all factors, or if those are more of the counts of a sweep by row and component."""
        rows = math.prod(self.extents[: len(self.cells) - 1]) if self.model.startswith("tucker") else 0
        return max(sum(math.prod(factor.shape) for factor in self.factors), rows * self.n_components)

    def rates(self, factors: Sequence[Floats], threads: int, rows: Rows = None) -> Floats:
        """Return the rates of all cells, or of some rows of the table, as one row."""
        tables = [np.ascontiguousarray(factor) for factor in factors]
        return _core.factor_rates(self.model, list(self.extents), tables, threads, rows)

    def mirrored(self, table: Array) -> Array:
        """Return a table of cells whose pairs are told above the diagonal, if they are, with both of each."""
        return np.triu(table) + np.triu(table, 1).T if self.symmetric else table

    def priors(
        self, shape: PriorLike, rate: PriorLike, dirichlet: Mapping[str, tuple[str, npt.ArrayLike]] | None = None
    ) -> list[tuple[Floats, Floats]]:
        """Return the priors as the core takes them: per factor a shape and a rate, each of length 1 or its size.

        `dirichlet` has the name and the value of the argument that is the concentration of a factor, by the factor's
        name: the core knows Dirichlet laws by an empty rate, and `shape` and `rate` have no entries for them.
        """
        found = {
            i: (self._one(value, name, i), np.empty(0))
            for i, factor in enumerate(self.factors)
            for name, value in [(dirichlet or {}).get(factor.name, (None, 0.0))]
            if name is not None
        }
        gammas = [i for i in range(len(self.factors)) if i not in found]
        pairs = zip(self._spread(shape, "prior_shape", gammas), self._spread(rate, "prior_rate", gammas), strict=True)
        found |= dict(zip(gammas, pairs, strict=True))
        return [found[i] for i in range(len(self.factors))]

    def _spread(self, value: PriorLike, name: str, factors: list[int]) -> list[Floats]:
        """Return one array for each of some factors, in the order of the core; for the user, weights come last."""
        order = sorted(factors, key=lambda i: self.factors[i].turned == "vector")
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
            entries = list(value)
            if len(entries) != len(factors):
                names = ", ".join(self.factors[i].name for i in order)
                many = "entries" if len(factors) > 1 else "entry"
                why = "" if len(factors) == len(self.factors) else " where the others have Dirichlet laws"
                raise ValueError(
                    f"`{name}` must be a number or hold {len(factors)} {many} ({names}){why}, got {len(entries)}"
                )
        else:
            entries = [value] * len(factors)
        return [self._one(entries[order.index(i)], name, i) for i in factors]

    def _one(self, entry: npt.ArrayLike, name: str, i: int) -> Floats:
        factor, where = self.factors[i], f"{name} of {self.factors[i].name}" if np.ndim(entry) else name
        numbers = _check.reals_where(entry, where, "positive", lambda x: x > 0)
        if numbers.ndim == 0:
            return numbers.reshape(1)
        _check.room(8 * math.prod(factor.shape), f"a prior of each entry of {factor.name}")
        shape = factor.shape_shown
        try:
            wide = np.broadcast_to(numbers, shape)
        except ValueError:
            raise ValueError(f"`{where}` must be a number or broadcast to shape {shape}, got {numbers.shape}") from None
        return np.ascontiguousarray(wide.T if factor.turned == "transposed" else wide).reshape(-1)
