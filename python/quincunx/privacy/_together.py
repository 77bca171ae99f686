"""Rules for releases about parts of the data: blocks of a partition, a random subset of the records."""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from quincunx import _check
from quincunx.privacy import _rational, _relations
from quincunx.privacy._composition import Part, counted, worse
from quincunx.privacy._curves import Approx, Curve, Pure, Subsampled
from quincunx.privacy._guarantee import PrivacyGuarantee, guarantee_of
from quincunx.privacy._privacy_map import Declared, Shift
from quincunx.privacy._relations import AddRemove, DataMetric, NoGuarantee, Relation, ReplaceOne


def parallel(
    guarantees: Iterable[PrivacyGuarantee], *, by: str = "value", relation: Relation | None = None
) -> PrivacyGuarantee:
    """Return the guarantee of releases that each saw one block of a declared partition of the records.

    Parameters
    ----------
    guarantees : iterable of PrivacyGuarantee
        One for each block, of one relation.
    by : {"value", "key"}
        What decides the block of a record: its own private value, or a public key that no neighbor changes.
    relation : ReplaceOne, optional
        With guarantees about ``AddRemove()``: the result is to be about ``ReplaceOne()``, by value.

    Returns
    -------
    PrivacyGuarantee
        For one record that comes or goes, and by a key, the largest of them. A replaced record may move from one block
        to another or change within its own: both are a removal and an addition, bounded by two steps of the largest.
        For a metric of arrays the largest, where noise follows the metric ("l1" with geometric and Laplace noise, "l2"
        with normal noise), else the sum.

    Raises
    ------
    NoGuarantee
        If none of the guarantees is known to bound all others, or no rule is known for the relation.
    ValueError, TypeError
        If there are none, or their relations differ.

    Notes
    -----
    "The maximum" is false for records that are replaced by value: geometric noise of ratio 1/2 on two counts, of which
    a record leaves one for the other, makes an outcome likelier by 4 and not 2.

    Examples
    --------
    >>> from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne, parallel
    >>> blocks = [PrivacyGuarantee(e, relation=AddRemove()) for e in (0.5, 1.0)]
    >>> parallel(blocks).epsilon, parallel(blocks, relation=ReplaceOne()).epsilon
    (1.0, 2.0)
    """
    _check.fits(guarantees, "guarantees")
    blocks: list[PrivacyGuarantee] = []
    for block in guarantees:  # one by one: what says how long it is may be wrong
        if not isinstance(block, PrivacyGuarantee):
            raise TypeError(f"`guarantees` must hold PrivacyGuarantees, got {type(block).__name__}")
        if blocks and block.relation != blocks[0].relation:
            raise TypeError(f"`guarantees` must be of one relation, got {blocks[0].relation} and {block.relation}")
        blocks.append(block)
    if not blocks:
        raise ValueError("`guarantees` must hold at least one, got none")
    _check.one_of(by, "by", ("value", "key"))
    about = blocks[0].relation
    if relation is not None and not isinstance(relation, Relation):
        raise TypeError(f"`relation` must be a relation or None, got {type(relation).__name__}")
    numerics = worse(*(block.numerics for block in blocks))
    if relation is not None and relation != about and (about, relation) != (AddRemove(), ReplaceOne()):
        raise NoGuarantee(f"no rule is known from {about} to {relation}")
    if isinstance(about, DataMetric):
        if _follows(blocks, about.metric):
            return spread(_largest(blocks), len(blocks)).marked(numerics)
        total = blocks[0]
        for block in blocks[1:]:
            total = total & block
        return total
    if about.records > 1:
        raise NoGuarantee(f"no rule is known for {about}: its records may lie in several blocks")
    largest = _largest(blocks).marked(numerics)
    if relation == ReplaceOne() and about == AddRemove():
        parts = (part.restated(relation) for part in largest.at(2).parts)
        return PrivacyGuarantee.of_parts(parts, relation=relation, numerics=numerics)
    if isinstance(about, ReplaceOne) and by == "value":
        raise NoGuarantee(
            "a replaced record may move to another block: give guarantees about AddRemove() and relation=ReplaceOne()"
        )
    return largest


def _follows(blocks: list[PrivacyGuarantee], metric: str) -> bool:
    """Whether all noise is of one kind that follows the metric, so that a distance may be spread over the blocks."""
    parts = [part for block in blocks for part in block.parts]
    one = all(len(block.parts) == 1 and block.parts[0].times == 1 for block in blocks)
    same = len({type(part.curve) for part in parts}) == 1
    return one and same and all(isinstance(part.privacy_map, Shift) and part.curve.adds_by == metric for part in parts)


def spread(block: PrivacyGuarantee, blocks: int) -> PrivacyGuarantee:
    """Return what the largest block says of a distance that is spread over several.

    What rounding adds to the distance of a block it adds in each: with l1 and l2 the blocks' shifts are at most the
    distance and as many rests. These are at most twice its own in the others: grids are powers of two.
    """
    parts = []
    for part in block.parts:
        if isinstance(part.privacy_map, Shift) and part.privacy_map.rest:
            privacy_map = replace(part.privacy_map, rest=part.privacy_map.rest * 2 * blocks)
            part = replace(part, privacy_map=privacy_map).moved(block.relation)
        parts.append(part)
    return PrivacyGuarantee.of_parts(parts, relation=block.relation, numerics=block.numerics)


def _largest(blocks: list[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Return the guarantee that is at least as weak as each other one at every epsilon."""
    for one in blocks:
        if all(_bounds(one.parts, other.parts) for other in blocks):
            return one
    raise NoGuarantee("no one of the guarantees is known to bound the others; compose them instead")


def _bounds(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    if counted(other) <= counted(one):  # what is released beside them tells no less
        return True
    if len(one) != 1 or len(other) != 1 or one[0].times != 1 or other[0].times != 1:
        return False
    if one[0].copies != other[0].copies:
        return False
    return one[0].curve.bounds(other[0].curve)


def subsampled(
    guarantee: PrivacyGuarantee,
    rate: float | None = None,
    *,
    m: int | None = None,
    n: int | None = None,
    relation: Relation | None = None,
) -> PrivacyGuarantee:
    """Return the guarantee of a mechanism that sees a secret random subset of the records.

    Either each record with a probability, independently (Poisson), or a uniform subset of m of n records (without
    replacement).

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        Of a single release about the records it sees, for ``AddRemove()`` or ``ReplaceOne()``.
    rate : float, optional
        The probability, in (0, 1].
    m, n : int, optional
        Instead of `rate`: the size of the subset, and that of the data set (or a lower bound of it), ``1 <= m <= n``.
        The guarantee must be about ``ReplaceOne()``, of a subset of size m.
    relation : ReplaceOne or AddRemove, optional
        With `m` and `n`, what the result is about, ``ReplaceOne()`` unless it is given. Of two data sets that differ by
        a record that was added n is the size of the larger, and m is below it.

    Returns
    -------
    PrivacyGuarantee
        With `m` and `n`, q = m / n: ``log(1 + q (exp(epsilon) - 1))`` at ``q delta``; about `AddRemove` with the pairs
        of laws that follow, about `ReplaceOne`, where directions are free, with nothing beyond. With `rate` q, about
        `AddRemove`, each direction with its own pair of laws, (q P + (1 - q) Q, Q) and (P, (1 - q) P + q Q): so
        ``epsilon = log(1 + q (exp(epsilon) - 1))`` at ``q delta``, and less in composition. About `ReplaceOne` delta is
        multiplied by q, and epsilon stays: no better is true.

    Raises
    ------
    NoGuarantee
        For other relations, and for compositions.
    ValueError, TypeError
        If an argument lies outside its domain, or the subset is not described in exactly one way.

    Notes
    -----
    Let A and C be the laws of the output where the record is in the subset and where it is not. Each subset with the
    record becomes one without it when the record is replaced by one of the others, so A and C are neighbors' laws of
    the mechanism, and so are A and B, B that of another value of the record. The laws to compare are
    ``q A + (1 - q) C`` with ``q B + (1 - q) C``, or with C: advanced joint convexity [1]_.

    References
    ----------
    .. [1] B. Balle, G. Barthe and M. Gaboardi (2018), Privacy amplification by subsampling, NeurIPS.
    .. [2] I. Mironov, K. Talwar and L. Zhang (2019), Renyi differential privacy of the sampled Gaussian mechanism.

    Examples
    --------
    >>> from quincunx.privacy import AddRemove, PrivacyGuarantee, subsampled
    >>> round(subsampled(PrivacyGuarantee(1.0, relation=AddRemove()), 0.1).epsilon, 6)
    0.158565
    >>> round(subsampled(PrivacyGuarantee(1.0), m=10, n=100).epsilon, 6)
    0.158565
    """
    if not isinstance(guarantee, PrivacyGuarantee):
        raise TypeError(f"`guarantee` must be a PrivacyGuarantee, got {type(guarantee).__name__}")
    about, numerics = guarantee.relation, guarantee.numerics
    if (rate is None) == (m is None) or (m is None) != (n is None) or (m is None and relation is not None):
        raise TypeError("exactly one of `rate` and `m` with `n` must be given, and `relation` with the latter only")
    if rate is None:
        relation = ReplaceOne() if relation is None else _relations.check(relation)
        if about != ReplaceOne() or relation not in (ReplaceOne(), AddRemove()):
            raise NoGuarantee(f"no rule is known from {about} to {relation} for m of n records")
        size = _check.whole(n, "n", minimum=2 if relation == AddRemove() else 1)
        share = Fraction(_check.whole(m, "m", minimum=1, maximum=size - (relation == AddRemove())), size)
    else:
        relation, share = about, _rational.fraction(rate, "rate")
        if not 0 < share <= 1:
            raise ValueError(f"`rate` must be in (0, 1], got {rate}")
        if isinstance(relation, DataMetric) or relation.records > 1:
            raise NoGuarantee(f"no rule is known for records sampled at random about {relation}")
    if share == 1:
        return guarantee
    if len(guarantee.parts) != 1 or guarantee.parts[0].count != 1:
        raise NoGuarantee("no rule is known for a composition on one random subset: sample anew for each release")
    part = guarantee.parts[0]
    level = Fraction(_rational.amplified_upwards(_rational.upwards(part.epsilon), _rational.upwards(share)))
    if isinstance(relation, ReplaceOne):
        level = part.epsilon if rate is not None else min(level, part.epsilon)
        curve: Curve = Approx(level, share * part.delta) if part.delta else Pure(level)
        return guarantee_of(Declared(curve, relation, part.words), relation, share * part.delta, numerics=numerics)
    if part.curve.pairs() is None or isinstance(part.curve, Subsampled):
        raise NoGuarantee(f"no rule is known for a random subset and a curve of kind {part.curve.kind!r}")
    privacy_map = Declared(Subsampled(share, part.curve), relation, part.words)
    return guarantee_of(privacy_map, relation, share * part.delta, epsilon=level, numerics=numerics)
