"""Residues of counts: the part of the work that other processes can do, and putting it together."""

from collections.abc import Iterable

from quincunx import _check, _core
from quincunx._job import Job
from quincunx.counting._problem import Order, as_problem
from quincunx.graphs._graph import GraphLike


def primes(count: int) -> list[int]:
    """List the largest primes below 2**55: the moduli of exact counts.

    Parameters
    ----------
    count : int
        How many, >= 0.

    Returns
    -------
    list of int
        In falling order.

    Raises
    ------
    ValueError, TypeError
        If `count` is negative or not whole.

    Examples
    --------
    >>> from quincunx.counting import primes
    >>> primes(2)
    [36028797018963913, 36028797018963901]
    """
    return _core.primes(_check.whole(count, "count", maximum=2**64 - 1))


def residue(
    graph: "GraphLike",
    modulus: int,
    *,
    activity: int = 1,
    order: Order = None,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> int:
    """Compute the hard-core partition function of a graph modulo a number.

    At activity one this is the number of independent sets modulo `modulus`. A residue is a task of its own: compute
    them wherever there are machines, and put them together with `combine_residues`.

    Parameters
    ----------
    graph, order, threads, memory_limit
        As in `count_independent_sets`.
    modulus : int
        Any number from 2 to 2**32, or one of `primes`.
    activity : int, optional
        The weight of a vertex; reduced modulo `modulus`.

    Returns
    -------
    int
        In ``0 .. modulus - 1``.

    Raises
    ------
    ValueError
        If the modulus is out of reach.
    TooLargeError, TypeError
        As `count_independent_sets`.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import residue
    >>> residue(lattices.square(8, 8), 1000003)
    981020
    """
    number = _check.whole(modulus, "modulus", minimum=2, maximum=2**55 - 1)
    point = (number, _check.whole(activity, "activity", minimum=None) % number)
    (found,) = _core.residues(as_problem(graph, order), [point], Job(threads=threads, memory_limit=memory_limit))
    return found


def combine_residues(residues: Iterable[tuple[int, int]], bound: int | None = None) -> int:
    """Put residues together to the number they belong to, and verify it.

    Parameters
    ----------
    residues : iterable of (modulus, residue)
        Odd moduli below 2**63, no two with a common factor. With all of them the number is determined; the more there
        are to spare, the safer.
    bound : int, optional
        The number is known to be at most this. Moduli beyond what the bound needs verify the result; without a bound,
        the last modulus does.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError
        If a modulus or residue is out of range, the moduli are not odd or have a common factor, they do not suffice for
        the bound, or the number is above it or a spare modulus contradicts the others: then a residue is wrong.
    TypeError
        If `residues` does not hold pairs of whole numbers.

    Examples
    --------
    >>> from quincunx.counting import combine_residues
    >>> combine_residues([(7, 3), (11, 1), (13, 6)])
    45
    """
    pairs = _pairs(residues)
    if not pairs:
        raise ValueError("`residues` must hold at least one pair (modulus, residue), got none")
    if bound is None and len(pairs) == 1:
        raise ValueError("`residues` must hold a second pair, which verifies the first, unless `bound` is given")
    needed = len(pairs) - 1
    if bound is not None:
        limit, product, needed = _check.whole(bound, "bound"), 1, 0
        while product <= limit:
            if needed == len(pairs):
                raise ValueError(f"`residues` must have moduli with a product above `bound`, got {len(pairs)} moduli")
            product *= pairs[needed][0]
            needed += 1
    value, _ = map(_core.combine_residues, (pairs[:needed], pairs))  # of all: those to spare must be coprime, too
    for modulus, expected in pairs[needed:]:
        if value % modulus != expected % modulus:
            found = value % modulus
            message = f"`residues` must belong to one number, got {expected} modulo {modulus}, the others say {found}"
            raise ValueError(message)
    if bound is not None and value > limit:
        most, got = _check.shown(limit), _check.shown(value)
        raise ValueError(f"`residues` must belong to a number of at most `bound`, {most}, got {got}")
    return value


def _pairs(residues: object) -> list[tuple[int, int]]:
    """Return pairs of a modulus and a residue below it."""
    if not isinstance(residues, Iterable):
        raise TypeError(f"`residues` must hold pairs (modulus, residue), got {type(residues).__name__}")
    pairs = []
    for pair in residues:
        try:
            modulus, found = pair
        except (TypeError, ValueError):
            raise TypeError(f"`residues` must hold pairs (modulus, residue), got {pair!r}") from None
        modulus = _check.whole(modulus, "modulus", minimum=3, maximum=2**63 - 1)
        pairs.append((modulus, _check.whole(found, "residue", maximum=modulus - 1)))
    return pairs
