"""Results of long jobs, computed once more by other ways."""

import secrets
from collections.abc import Callable, Iterator

from quincunx import _units
from quincunx._job_folder import Folder
from quincunx._types import Facts
from quincunx.errors import TooLargeError

#: A recount by another way is done if it is forecast to take no longer than so many seconds, or twice the job's.
_SHORT = 60.0
#: A count of more states than these is not begun again on the bare graph, where there are as many at the least.
_MOST_STATES = 2_000_000
#: How many primes beyond those of a count one is drawn from to verify it.
_BEYOND = 64


def verify(verb: str, job: Folder, given: Facts, progress: bool) -> list[str]:
    """Compute a result once more, by other ways, and add to it what agreed; return that.

    Raises
    ------
    ValueError
        If the job is not done, or there is no other way that is short enough.
    quincunx.errors.InternalError
        If a way disagrees: a bug, or a fault of the machine on which one of them was computed.
    """
    result = job.result
    if result is None:
        raise ValueError("`dir` must hold a job that is done")
    checks = {"count": _count_again, "entropy": _entropy_again}.get(verb)
    if checks is None:
        raise ValueError(f"`dir` must hold a count or an entropy: of `{verb}` there is no other way")
    agreed, reasons = [], []
    limit = max(_SHORT, 2 * result["cpu_seconds"])
    for check in checks(given, result["value"], job.facts["forecast"], limit, progress):
        try:
            agreed.append(check())
        except (TooLargeError, ValueError) as reason:
            reasons.append(str(reason))
    if not agreed:
        raise ValueError(f"`dir` must hold a result that can be had in another way: {'; '.join(reasons)}")
    lines = [line for line in agreed if line not in result["verified"]]
    job.write("result.json", result | {"verified": [*result["verified"], *lines]})
    job.log("verified", ways=agreed, not_done=reasons)
    return agreed + [f"not done: {reason}" for reason in reasons]


_Checks = Iterator[Callable[[], str]]


def _count_again(given: Facts, value: Facts, forecast: Facts | None, limit: float, progress: bool) -> _Checks:
    """Yield a residue modulo a prime that served nowhere, and a count of the graph with its vertices renumbered."""
    import numpy as np

    from quincunx import counting
    from quincunx.graphs import Graph

    graph, what = given["on"].graph, given["what"]
    limits = {"threads": given["threads"], "memory_limit": given["memory_limit"]}
    numbers = value["coefficients"] if given["polynomial"] else [value["count"]]
    found = [_whole(text) for text in numbers]

    def residue() -> str:
        used = 0 if forecast is None else forecast["primes"]
        prime = counting.primes(used + _BEYOND)[used + secrets.randbelow(_BEYOND)]
        activity = 1 + secrets.randbelow(2**50) if given["polynomial"] else 1
        again = counting.residue(graph, prime, activity=activity, **limits)
        there = 0
        for number in reversed(found):
            there = (there * activity + number) % prime
        at = f" at activity {activity}" if given["polynomial"] else ""
        _agree(again == there, f"the residue modulo {prime}{at}")
        rows = ", over whole rows where the count had halves" if forecast and "reflection" in forecast["engine"] else ""
        return f"the residue modulo {prime}{at}, a prime that had no part in it, by `counting.residue`{rows}"

    def renumbered() -> str:
        if forecast is not None and forecast["states"] > _MOST_STATES:
            raise ValueError("a count of the graph with its vertices renumbered would need more states by far")
        size, edges = int(graph.num_vertices), np.asarray(graph.edges)
        order = np.random.default_rng(secrets.randbits(128)).permutation(size)
        other = Graph(size, order[edges][secrets.SystemRandom().sample(range(len(edges)), len(edges))])
        cost = counting.estimate_cost(other, what, **limits)
        needed = _units.in_time(cost.seconds)
        if cost.seconds > limit:
            raise ValueError(f"a count of the graph with its vertices renumbered would take {needed}")
        by_size = {"independent-sets": "independence_polynomial", "matchings": "matching_polynomial"}
        name = by_size[what] if given["polynomial"] else f"count_{what.replace('-', '_')}"
        again = getattr(counting, name)(other, progress=progress, **limits)
        _agree((list(again) if given["polynomial"] else [again]) == found, "the count of the graph renumbered")
        return f"a whole count of the graph with its vertices renumbered at random, by {cost.engine}"

    if what == "independent-sets":
        yield residue
    yield renumbered


def _entropy_again(given: Facts, value: Facts, forecast: object, limit: float, progress: bool) -> _Checks:
    """Yield bounds by strips and rings, which must have a number in common with those of corner tensors."""
    from decimal import Decimal

    from quincunx import entropy

    def bounds() -> str:
        if "corner" in value["evidence"]:
            raise ValueError(f"strips and rings gave the bounds themselves: {value['evidence']['corner']}")
        how: Facts = {name: given[name] for name in ("model", "activity")}
        again = entropy.entropy_bounds(given["lattice"], **how, width=8, progress=progress, time_limit=limit)
        lower, upper = (Decimal(value["entropy"][side]) for side in ("lower", "upper"))
        other = Decimal(f"{again.lower:f}"), Decimal(f"{again.upper:f}")
        _agree(lower <= other[1] and other[0] <= upper, f"the bounds {other[0]} and {other[1]}")
        way = "strips and rings of 8 lines, which have numbers in common with those here"
        return f"bounds {other[0]} and {other[1]} by {way}"

    yield bounds


def _agree(same: bool, what: str) -> None:
    if not same:
        from quincunx.errors import InternalError

        raise InternalError(f"{what} contradicts the result: a fault of a machine, or a bug")


def _whole(text: str) -> int:
    """Read an int of any length; Python itself refuses more than 4300 digits."""
    number = 0
    for start in range(0, len(text), 4000):
        part = text[start : start + 4000]
        number = number * 10 ** len(part) + int(part)
    return number
