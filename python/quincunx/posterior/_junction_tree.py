"""Laws of discrete columns that factor over a junction tree: their marginals and conditional probabilities.

A law is ``p(x) = exp(sum over cliques C of theta_C(x_C)) / Z``. The cliques are those of a triangulation, made by
eliminating the column whose clique is smallest next; their tree has the running intersection property, so that

    p(x) = product over cliques C, with separator S towards the root, of p(x_(C without S) | x_S),

and two passes over the tree, towards the root and back, give Z and all p(x_C), and one the least sum of costs of
cliques. Their derivative along a direction of theta is the core's (`posterior::covariance`).

Sources: S. L. Lauritzen and D. J. Spiegelhalter (1988), Local computations with probabilities on graphical structures,
J. R. Statist. Soc. B 50; F. V. Jensen and F. Jensen (1994), Optimal junction trees, UAI, for the tree as a maximum
spanning tree of separators.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Floats

#: Columns by their places, in rising order.
Columns = tuple[int, ...]
Number = TypeVar("Number", np.float64, np.uint32)
Numbers = npt.NDArray[np.uint32]
#: Cells of a clique that the core takes side by side, at the least. Of 4 to 4096 the fastest on Adult.
WIDE = 16


def eliminated(sizes: Sequence[int], scopes: Iterable[Iterable[int]]) -> list[Columns]:
    """Return the maximal cliques of a triangulation of the graph in which the columns of each scope are neighbors."""
    near = [{column} for column in range(len(sizes))]
    for scope in scopes:
        members = set(scope)
        for column in members:
            near[column] |= members
    logs = [math.log(size) for size in sizes]
    weights = {column: math.fsum(logs[other] for other in clique) for column, clique in enumerate(near)}
    cliques = list[set[int]]()
    while weights:
        column = min(weights, key=lambda one: (weights[one], one))
        del weights[column]
        clique = near[column]
        for other in clique - {column}:
            near[other] = (near[other] | clique) - {column}
            weights[other] = math.fsum(logs[beside] for beside in near[other])
        if not any(clique <= found for found in cliques):
            cliques.append(set(clique))
    return [tuple(sorted(clique)) for clique in cliques]


def cells(sizes: Sequence[int], cliques: Iterable[Columns]) -> int:
    """Return how many cells the tables of cliques have together."""
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)


class Link(NamedTuple):
    """A clique in its tree: what it is beside, towards the root, and what both have."""

    clique: Columns
    parent: int | None
    separator: Columns

    @property
    def own(self) -> tuple[int, ...]:
        """The axes that the separator has not."""
        return axes_beyond(self.clique, self.separator)


def axes_beyond(clique: Columns, kept: Iterable[int]) -> tuple[int, ...]:
    """Return the axes of a table that stand for columns not kept."""
    few = set(kept)
    return tuple(axis for axis, column in enumerate(clique) if column not in few)


class JunctionTree:
    """Cliques of columns that are linked as a tree, the root first: parents stand before their children."""

    def __init__(self, sizes: Sequence[int], scopes: Iterable[Columns]) -> None:
        self.sizes = tuple(sizes)
        cliques = eliminated(sizes, scopes)
        self.links = _linked(cliques)

    @property
    def cells(self) -> int:
        return cells(self.sizes, (link.clique for link in self.links))

    def shape(self, columns: Columns) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)

    def home(self, scope: Columns) -> int:
        """Return the smallest clique that has all columns of a scope; there must be one."""
        members = set(scope)
        wide = (place for place, link in enumerate(self.links) if members <= set(link.clique))
        return min(wide, key=lambda place: math.prod(self.shape(self.links[place].clique)))

    def zeros(self) -> list[Floats]:
        """Return a table of zeros for each clique."""
        return [np.zeros(self.shape(link.clique)) for link in self.links]

    def spread(self, table: npt.NDArray[Number], scope: Columns, clique: Columns) -> npt.NDArray[Number]:
        """Return a table of some columns of a clique in the clique's axes, for broadcasting."""
        members = set(scope)
        return table.reshape([self.sizes[column] if column in members else 1 for column in clique])

    def within(self, scope: Columns, clique: Columns, first: int = 0) -> tuple[int, int, Numbers, Numbers]:
        """Return which cells of a table of some columns of a clique the clique's cells are, as the core takes it.

        That is: the first cell, in a vector of tables; the extent of the table's last columns; and for the clique's
        first columns together and its last ones the number of what the table has of them. The last ones are as few as
        have `WIDE` cells.
        """
        cut = len(clique)
        while cut and math.prod(self.shape(clique[cut:])) < WIDE:
            cut -= 1
        parts, widths = [], []
        for columns in (clique[:cut], clique[cut:]):
            kept = tuple(column for column in columns if column in scope)
            widths.append(math.prod(self.shape(kept)))
            numbers = self.spread(np.arange(widths[-1], dtype=np.uint32), kept, columns)
            parts.append(np.broadcast_to(numbers, self.shape(columns)).reshape(-1))
        return first, widths[1], parts[0], parts[1]

    def calibrated(self, theta: Sequence[Floats]) -> Law:
        """Return the law with these logarithms of factors."""
        psi = [table.copy() for table in theta]
        given: list[Floats] = [table for table in psi]
        log_z = 0.0
        for place in reversed(range(len(self.links))):
            link, table = self.links[place], psi[place]
            most = table.max(axis=link.own, keepdims=True)
            table -= most
            chances = np.exp(table, out=table)
            sums = chances.sum(axis=link.own, keepdims=True)
            chances /= sums
            given[place] = chances
            message = np.log(sums) + most
            if link.parent is None:
                log_z = float(message.reshape(()))
            else:
                psi[link.parent] += self.spread(message, link.separator, self.links[link.parent].clique)
        return Law(self, given, log_z)

    def least(self, costs: Sequence[Floats]) -> float:
        """Return the least sum, over all records, of costs of cliques."""
        sums = [table.copy() for table in costs]
        for place in reversed(range(1, len(self.links))):
            link = self.links[place]
            assert link.parent is not None
            message = sums[place].min(axis=link.own)
            sums[link.parent] += self.spread(message, link.separator, self.links[link.parent].clique)
        return float(sums[0].min())


class Law:
    """A law of records along a junction tree: of each clique the probabilities given its separator."""

    def __init__(self, tree: JunctionTree, given: list[Floats], log_z: float) -> None:
        self.tree, self.given, self.log_z = tree, given, log_z
        self.marginals: list[Floats] = []
        for link, chances in zip(tree.links, given, strict=True):
            if link.parent is not None:
                chances = chances * tree.spread(self._of_separator(link), link.separator, link.clique)
            self.marginals.append(chances)

    def _of_separator(self, link: Link) -> Floats:
        assert link.parent is not None
        above = self.tree.links[link.parent].clique
        found: Floats = self.marginals[link.parent].sum(axis=axes_beyond(above, link.separator))
        return found

    def marginal(self, scope: Columns) -> Floats:
        """Return the law of any columns, axes in the rising order of the scope.

        Cliques that no column of the scope needs are left out; the others send their tables towards the root.
        """
        tree, wanted = self.tree, set(scope)
        kept = set(range(len(tree.links)))
        top = 0
        children: list[set[int]] = [set() for _ in kept]
        for place, link in enumerate(tree.links):
            if link.parent is not None:
                children[link.parent].add(place)
        for place in reversed(range(1, len(tree.links))):  # leaves that have nothing of their own to tell
            link = tree.links[place]
            assert link.parent is not None
            if not children[place] and not (set(link.clique) - set(link.separator)) & wanted:
                children[link.parent].discard(place)
                kept.discard(place)
        while len(children[top]) == 1:  # a root that has nothing that its only child has not
            (child,) = children[top]
            if set(tree.links[top].clique) & wanted <= set(tree.links[child].separator):
                kept.discard(top)
                top = child
            else:
                break
        messages: dict[int, list[tuple[Floats, Columns]]] = {place: [] for place in kept}
        for place in sorted(kept, reverse=True):
            link = tree.links[place]
            parts = [(self.marginals[top] if place == top else self.given[place], link.clique), *messages[place]]
            target = wanted if place == top else set(link.separator) | wanted
            result = _contracted(parts, target)
            if place == top:
                return result[0]
            assert link.parent is not None
            messages[link.parent].append(result)
        raise AssertionError("a tree has a root")

    def conditionals(self) -> list[tuple[int, Columns, Floats]]:
        """Return the law as a Bayesian network: (column, its parents, probabilities with the column as the last axis).

        Columns stand behind their parents; those of a clique that its separator has not are told one after the other.
        """
        found = []
        for link, table in zip(self.tree.links, self.marginals, strict=True):
            above = list(link.separator)
            for column in (link.clique[axis] for axis in link.own):
                axes = (*above, column)
                places = [link.clique.index(one) for one in axes]
                joint = table.sum(axis=axes_beyond(link.clique, axes))
                joint = joint.transpose(np.argsort(np.argsort(places)))
                found.append((column, tuple(above), conditional(joint)))
                above.append(column)
        return found


def conditional(joint: Floats) -> Floats:
    """Return the probabilities along the last axis given the others, all equal where there is nothing."""
    sums = joint.sum(axis=-1, keepdims=True)
    chances = np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), 1 / joint.shape[-1])
    return np.asarray(chances / chances.sum(axis=-1, keepdims=True))


def _linked(cliques: list[Columns]) -> list[Link]:
    """Return the cliques as a tree: the spanning tree of largest separators, by Prim's algorithm."""
    members = [set(clique) for clique in cliques]
    last = len(cliques) - 1
    best = {place: (len(members[place] & members[last]), last) for place in range(last)}
    order, links = {last: 0}, [Link(cliques[last], None, ())]
    while best:
        place = max(best, key=lambda one: (best[one][0], one))
        _, parent = best.pop(place)
        order[place] = len(links)
        links.append(Link(cliques[place], order[parent], tuple(sorted(members[place] & members[parent]))))
        for other, (shared, _) in best.items():
            if (wider := len(members[other] & members[place])) > shared:
                best[other] = wider, place
    return links


def _contracted(parts: list[tuple[Floats, Columns]], wanted: set[int]) -> tuple[Floats, Columns]:
    """Return the product of tables, summed over all columns but those wanted, which stand in rising order."""
    result, columns = parts[0]
    for number, (table, scope) in enumerate(parts[1:], 2):
        later = {column for _, other in parts[number:] for column in other}
        kept = tuple(sorted((set(columns) | set(scope)) & (wanted | later)))
        sizes = {**dict(zip(columns, result.shape, strict=True)), **dict(zip(scope, table.shape, strict=True))}
        _check.room(8 * math.prod(sizes[column] for column in kept), "a marginal")
        label = {column: place for place, column in enumerate(sizes)}  # einsum knows 52 of them
        axes = [[label[column] for column in one] for one in (columns, scope, kept)]
        operands: list[Floats | list[int]] = [result, axes[0], table, axes[1]]
        result, columns = np.einsum(*operands, axes[2]), kept  # type: ignore[arg-type]
    kept = tuple(column for column in columns if column in wanted)
    return result.sum(axis=axes_beyond(columns, kept)), kept


def downward_closure(scopes: Iterable[Columns]) -> list[Columns]:
    """Return all subsets, but the empty one, of scopes: by size, then in order."""
    found = {part for scope in scopes for size in range(1, len(scope) + 1) for part in combinations(scope, size)}
    return sorted(found, key=lambda scope: (len(scope), scope))
