"""Independent sets of a weighted graph, vertex by vertex: tables forwards, then marginals or draws backwards.

A state says which vertices of the frontier, those with neighbors still to come, are occupied. With the sums A_t(s) over
what came before step t and B_t(s) over what comes after, the weight of all sets with state s is A_t(s) B_t(s); reading
the tables A backwards draws a set with exactly its probability.
"""

import math
from collections.abc import Callable, Sequence

from quincunx import _check
from quincunx.counting._activities import Activity, activities_of
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph

#: States kept in all tables together, and the bytes of one beside the digits of its weight.
_MOST_STATES, _BYTES_OF_A_STATE = 20_000_000, 150
#: What lists and tables of one vertex take before any state is in them.
_BYTES_OF_A_VERTEX = 400

Table = dict[int, int]


class WeightedFrontier:
    """The tables of a graph with integer weights `free[v]` and `taken[v]` of an empty and an occupied vertex."""

    def __init__(self, graph: Graph, free: Sequence[int], taken: Sequence[int], memory_limit: int) -> None:
        n = graph.num_vertices
        _check.room(_BYTES_OF_A_VERTEX * n, f"the frontier of {n} vertices", memory_limit)
        self.order = _order(graph)
        place = [0] * n
        for step, v in enumerate(self.order):
            place[v] = step
        looped = set(graph.edges[graph.edges[:, 0] == graph.edges[:, 1], 0].tolist())
        earlier: list[list[int]] = [[] for _ in range(n)]
        last = list(range(n))
        for u, v in graph.edges.tolist():
            if u != v:
                a, b = sorted((place[u], place[v]))
                earlier[b].append(a)
                last[a] = max(last[a], b)
        self.free = [free[v] for v in self.order]
        self.taken = [0 if v in looped else taken[v] for v in self.order]
        # A vertex has a bit of the state while it is in the frontier; then another one has it.
        self.bits, self.before, self.keep = [0] * n, [0] * n, [-1] * n
        spare, width, leaving = list[int](), 0, [list[int]() for _ in range(n)]
        for step in range(n):
            if not spare:
                spare.append(1 << width)
                width += 1
            self.bits[step] = spare.pop()
            self.before[step] = sum({self.bits[a] for a in earlier[step]})
            leaving[last[step]].append(self.bits[step])
            self.keep[step] = ~sum(leaving[step])
            spare += leaving[step]
        _check_room(last, earlier, self.taken, memory_limit)
        self.tables: list[Table] = [{0: 1}]
        states, used = 1, 0
        for step in range(n):
            table = self._after(step, self.tables[-1])
            self.tables.append(table)
            states += len(table)
            used += len(table) * (_BYTES_OF_A_STATE + max(table.values(), default=0).bit_length() // 7)
            if states > _MOST_STATES or used > memory_limit:
                most = min(used * _MOST_STATES // states, memory_limit)
                needed = used * n // (step + 1)
                raise TooLargeError(
                    f"the states of the frontier need {needed} bytes or more, the limit is {most} bytes", needed, most
                )
        self.total = self.tables[-1].get(0, 0)

    def _after(self, step: int, table: Table) -> Table:
        after: Table = {}
        keep, mask, bit = self.keep[step], self.before[step], self.bits[step]
        free, taken = self.free[step], self.taken[step]
        for state, weight in table.items():
            if free:
                without = state & keep
                after[without] = after.get(without, 0) + free * weight
            if taken and not state & mask:
                occupied = (state | bit) & keep
                after[occupied] = after.get(occupied, 0) + taken * weight
        return after

    def _choices(self, step: int, state: int) -> list[tuple[int, int, bool]]:
        """Weight of the step, state after it and whether its vertex is occupied, for each choice at a state."""
        keep, bit = self.keep[step], self.bits[step]
        choices = [(self.free[step], state & keep, False)]
        if not state & self.before[step]:
            choices.append((self.taken[step], (state | bit) & keep, True))
        return choices

    def occupied_weights(self) -> list[int]:
        """Return for each vertex the weight of the sets that hold it."""
        found = [0] * len(self.order)
        later: Table = {0: 1}
        for step in range(len(self.order) - 1, -1, -1):
            earlier: Table = {}
            held = 0
            for state, weight in self.tables[step].items():
                total = 0
                for factor, after, occupied in self._choices(step, state):
                    rest = factor * later.get(after, 0)
                    total += rest
                    if occupied:
                        held += weight * rest
                earlier[state] = total
            found[self.order[step]] = held
            later = earlier
        return found

    def draw(self, below: Callable[[int], int], size: int = 1) -> list[list[int]]:
        """Draw so many sets, each with its probability; `below(n)` is uniform on ``0 .. n-1``."""
        chosen: list[list[int]] = [[] for _ in range(size)]
        states = [0] * size
        for step in range(len(self.order) - 1, -1, -1):
            # For each state after this step those before it that lead to it, each with the weight of its step.
            onto: dict[int, list[tuple[int, int, bool]]] = {state: [] for state in states}
            for earlier, weight in self.tables[step].items():
                for factor, after, occupied in self._choices(step, earlier):
                    if factor and after in onto:
                        onto[after].append((weight * factor, earlier, occupied))
            totals = {state: sum(weight for weight, _, _ in found) for state, found in onto.items()}
            for one, state in enumerate(states):
                ticket = below(totals[state])
                for weight, earlier, occupied in onto[state]:
                    ticket -= weight
                    if ticket < 0:
                        states[one] = earlier
                        if occupied:
                            chosen[one].append(self.order[step])
                        break
        return [sorted(one) for one in chosen]


def _check_room(last: list[int], earlier: list[list[int]], taken: list[int], memory_limit: int) -> None:
    """Refuse a frontier that is certainly too wide: any of its vertices that are no neighbors may be occupied."""
    ends, width, widest = [0] * len(last), 0, (0, 0)
    for step, end in enumerate(last):
        ends[end] += 1
        width += 1 - ends[step]
        widest = max(widest, (width, step))
    apart = set[int]()
    for v, end in enumerate(last[: widest[1] + 1]):
        if end > widest[1] and taken[v] and apart.isdisjoint(earlier[v]):
            apart.add(v)
    if (needed := _BYTES_OF_A_STATE << len(apart)) > (most := min(_BYTES_OF_A_STATE * _MOST_STATES, memory_limit)):
        needed = min(needed, 1 << 127)
        said = needed if needed < 1 << 127 else "2^127"
        raise TooLargeError(
            f"the states of the frontier need at least {said} bytes, the limit is {most} bytes", needed, most
        )


class LargestFrontier(WeightedFrontier):
    """The same with the largest sets alone: a weight is their size, above digits for their number."""

    def __init__(self, graph: Graph, memory_limit: int) -> None:
        self.shift = graph.num_vertices + 1
        one = [1] * graph.num_vertices
        super().__init__(graph, one, one, memory_limit)

    def _after(self, step: int, table: Table) -> Table:
        after: Table = {}
        keep, mask, bit = self.keep[step], self.before[step], self.bits[step]
        shift, more = self.shift, 1 << self.shift if self.taken[step] else None

        def add(state: int, weight: int) -> None:
            other = after.get(state, 0)
            level = weight >> shift
            if other >> shift == level:
                after[state] = other + weight - (level << shift)
            elif weight > other:
                after[state] = weight

        for state, weight in table.items():
            add(state & keep, weight)
            if more is not None and not state & mask:
                add((state | bit) & keep, weight + more)
        return after


def largest_set(graph: Graph) -> tuple[int, int, list[int]]:
    """Return the size of a largest independent set, how many there are, and one of them."""
    frontier = LargestFrontier(graph, _check.memory_limit(None))
    shift = frontier.shift
    size = frontier.total >> shift
    chosen, state, level = [], 0, size
    for step in range(graph.num_vertices - 1, -1, -1):
        state, occupied = next(
            (earlier, occupied)
            for earlier, weight in frontier.tables[step].items()
            for factor, after, occupied in frontier._choices(step, earlier)
            if after == state and factor and (weight >> shift) + occupied == level
        )
        if occupied:
            level -= 1
            chosen.append(frontier.order[step])
    return size, frontier.total - (size << shift), sorted(chosen)


def frontier_of(graph: Graph, activity: Activity, memory_limit: int | None) -> WeightedFrontier:
    """Return the frontier of sets of activities >= 0, with integer weights of empty and occupied vertices."""
    activities = activities_of(graph, activity, negative=False)
    free, taken = [a.denominator for a in activities], [a.numerator for a in activities]
    return WeightedFrontier(graph, free, taken, _check.memory_limit(memory_limit))


def _order(graph: Graph) -> list[int]:
    """Return the better of two orders: as numbered, or breadth first from a far vertex."""
    n = graph.num_vertices
    around: list[set[int]] = [set() for _ in range(n)]
    for u, v in graph.edges.tolist():
        if u != v:
            around[u].add(v)
            around[v].add(u)
    neighbors = [sorted(found) for found in around]

    def breadth(start: int, seen: set[int]) -> list[int]:
        queue = [start]
        seen.add(start)
        for v in queue:
            for u in sorted(neighbors[v], key=lambda u: len(neighbors[u])):
                if u not in seen:
                    seen.add(u)
                    queue.append(u)
        return queue

    walked: list[int] = []
    seen: set[int] = set()
    for v in range(n):
        if v not in seen:
            far = breadth(v, set())[-1]
            walked += breadth(far, seen)

    # Of d + 1 vertices one may be occupied if all are neighbors: bits of a vertex that has d of them in the frontier.
    bits = [math.log2(d + 2) / (d + 1) for d in range(2 + max(map(len, neighbors), default=0))]

    def cost(order: list[int]) -> float:
        place = {v: i for i, v in enumerate(order)}
        leaving: list[list[int]] = [[] for _ in order]
        for i, v in enumerate(order):
            leaving[max([i, *(place[u] for u in neighbors[v])])].append(v)
        among: dict[int, int] = {}  # neighbors in the frontier of each vertex of it
        states, total = 0.0, 0.0
        for i, v in enumerate(order):
            near = [u for u in neighbors[v] if u in among]
            among[v] = len(near)
            states += bits[len(near)]
            for u in near:
                among[u] += 1
                states += bits[among[u]] - bits[among[u] - 1]
            for gone in leaving[i]:
                states -= bits[among.pop(gone)]
                for u in neighbors[gone]:
                    if u in among:
                        among[u] -= 1
                        states += bits[among[u]] - bits[among[u] + 1]
            total += 2.0 ** min(states, 1000)
        return total

    return min(list(range(n)), walked, key=cost)
