"""The release of counts with two-sided geometric noise, also of whole records.

Whole records are clipped: each row of counts into an L1 ball, by a rule that looks at that row alone. A row r of sum
s > A becomes the differences of ``floor(C A / s)``, C its partial sums: whole numbers next to ``r A / s``, of sum A.
Two rows of the ball differ by at most 2A in sum, whatever they were: that is what a replaced record costs (A where a
record is one number). The rule need not be, and is not, a contraction: of rows nearby it may double the distance. Rows
within the ball take the same work, so that time does not tell which were outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._types import Array, Floats, Ints
from quincunx.privacy._geometric import GeometricMechanism, GeometricNoise
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import LARGEST
from quincunx.privacy._privacy_map import Declared
from quincunx.privacy._relations import ReplaceOne
from quincunx.privacy._release import Release, marked, seed_words
from quincunx.privacy._text import refuse_keys


def privatize(
    counts: npt.ArrayLike,
    *,
    epsilon: npt.ArrayLike,
    n: int = 1,
    record_bound: int | None = None,
    domain: Sequence[object] | None = None,
    compact: bool = False,
    insecure_seed: int | None = None,
) -> Release:
    """Release counts with limited-precision privacy, or with the privacy of whole records.

    Two-sided geometric noise of ratio ``alpha = exp(-epsilon / n)`` is added to each entry. For any two arrays at an L1
    distance of at most n, the probability of no release differs by more than a factor ``exp(epsilon)``: with n = 1 one
    unit of one count is protected, *not* a person who adds to many. With ``record_bound=A`` a record is
    ``counts[i]``: each is clipped to a sum of at most A, by itself, and n = 2A protects all of it.

    Parameters
    ----------
    counts : array_like of int, shape (records, ...) where records are clipped
        The private counts, of any shape, >= 0. Masked cells of a masked array are neither read nor released. A Series
        or DataFrame of pandas and a DataArray of xarray keep their labels in the release, which are no secret then. A
        sparse array of SciPy is made dense, as each of its zeros gets noise; so is a networkx graph, the weights of
        parallel edges added, an undirected one above the diagonal alone, so that an edge is one count.
    epsilon : float or array_like of float
        Privacy level, > 0; an array gives one for each entry, or by NumPy's rules for each row or column, whose labels,
        if it has some, must be those of the counts. The guarantee is then the largest, and `alpha` an array of the
        shape of the counts.
    n : int
        L1 distance within which arrays are to be distinguished by no more than `epsilon`, >= 1.
    record_bound : int, optional
        Instead of `n`: the largest sum of a record, >= 1, chosen without looking at the data.
    domain : sequence of labels, or one or None for each axis, optional
        The labels that rows, columns and so on may have, chosen without looking at the data; of a network its nodes.
        The release has these, in this order, whatever the data: what they lack is a zero that gets noise. Without it
        the labels that occur are published, and which ones occur is not protected: `protects` says so.
    compact : bool
        Whether to hold the release in the smallest integers that hold all of its values, which follow from them alone,
        and not in int64: 10^9 counts of a byte take a byte each once more. Sums and products of such values may not
        fit into their own kind.
    insecure_seed : int, optional
        Makes the noise repeatable, for tests: the noise can be removed by who knows the seed. The guarantee says so.

    Returns
    -------
    Release
        With int64 values, or as `compact` says, negative ones among them, the ratio `alpha` actually used, the
        guarantee, and `protects`, which says what it is about. A masked array has a masked release.

    Raises
    ------
    ValueError, TypeError
        If a count is negative, fractional or NaN, a column of a DataFrame is called and looks like an identifier, a
        label is not in its domain, or another argument lies outside its domain. The message is for the holder of the
        data: nothing was released.

    Notes
    -----
    A row of sum s > A, with partial sums C, becomes the differences of ``floor(C A / s)``, of sum A. A record that is
    one number costs n = A.

    Examples
    --------
    >>> from quincunx.privacy import privatize
    >>> release = privatize([12, 0, 3], epsilon=0.5, n=1)
    >>> release.guarantee
    PrivacyGuarantee(epsilon=0.5, delta=0.0, relation=DataMetric(metric='l1', radius=1), numerics='exact')
    >>> release.protects
    'changes of at most 1 in the sum of all counts'
    >>> whole = privatize([[12, 0, 3], [1, 1, 0]], epsilon=0.5, record_bound=10)
    >>> whole.protects, whole.n
    ('one record replaced by any other, each clipped to a sum of at most 10', 20)
    >>> import pandas
    >>> answers = pandas.Series(["tea", "coffee", "tea"]).value_counts()
    >>> privatize(answers, epsilon=1.0).protects
    'changes of at most 1 in the sum of all counts; which labels occur in axis 0 is published, unprotected'
    >>> declared = privatize(answers, epsilon=1.0, domain=["coffee", "milk", "tea"])
    >>> declared.index, declared.protects
    (('coffee', 'milk', 'tea'), 'changes of at most 1 in the sum of all counts')
    """
    if record_bound is not None and _tables.is_network(counts) and not counts.is_directed():
        raise ValueError(
            "`record_bound` must be None for an undirected network: an edge is one count, and a row of them no record"
        )
    if _tables.is_frame(counts) or _tables.is_arrow(counts):
        refuse_keys(counts)
    table, axes = _tables.array(counts, "counts", triangle=True), _tables.axes(counts)
    if domain is not None:
        table, axes = _tables.on_domain(counts, axes, domain, "counts")
    if own := _tables.axes_broadcast(epsilon):  # an array goes along the last axes
        _tables.refuse_other_labels(own, axes[-len(own) :], "epsilon", "`counts`")
    small = _check.flag(compact, "compact")
    release = _privatize(table, epsilon, n, record_bound, small, insecure_seed)
    release.axes_ = _tables.fitting(axes, release.shape)
    return release


def _privatize(
    counts: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    n: int,
    record_bound: int | None,
    compact: bool,
    insecure_seed: int | None,
) -> Release:
    """Release an array of counts."""
    mask = None
    if isinstance(counts, np.ma.MaskedArray) and np.ma.is_masked(counts):
        mask, counts = np.ma.getmaskarray(counts), counts.filled(0)
    numbers = _check.narrow_counts(counts, "counts")
    _check.fits(epsilon, "epsilon")
    if type(epsilon) is not float and np.ndim(epsilon):
        if record_bound is not None:
            raise TypeError("`epsilon` must be one number beside `record_bound`")
        if compact:
            raise TypeError("`epsilon` must be one number beside `compact`: the levels of cells take eight bytes each")
        release = _each(numbers, np.asarray(epsilon), n, insecure_seed)
        return release if mask is None else release.masked(mask)
    if record_bound is None:
        level, distance = _check.real(epsilon, "epsilon", positive=True), _check.whole(n, "n", minimum=1)
        release = _for_counts(level, distance)._release(numbers, insecure_seed, compact)
    else:
        bound = _check.whole(record_bound, "record_bound", minimum=1, maximum=LARGEST // 2)
        if _check.whole(n, "n") != 1:
            raise TypeError(f"`n` must not be given beside `record_bound`, got {n}")
        if numbers.ndim == 0:
            raise ValueError("`counts` must have a first axis, of records, where `record_bound` is given; got a number")
        mechanism = GeometricMechanism(_check.real(epsilon, "epsilon"), n=record_distance(numbers, bound))
        clipped = clip_records(numbers.astype(np.int64, copy=False), bound).astype(numbers.dtype, copy=False)
        release = mechanism._release(clipped, insecure_seed, compact)
        # The noise protects every change of n in sum, and so whatever a clipped record is replaced by.
        (part,) = release.guarantee.parts
        privacy_map = Declared(part.curve, ReplaceOne(), f"each clipped to a sum of at most {bound}", whole=True)
        whole = guarantee_of(privacy_map, ReplaceOne(), numerics=release.guarantee.numerics)
        about = release.about | {"record_bound": bound}
        release = Release(release.values, whole, noise=release.noise, about=about, _owned=True)
    return release if mask is None else release.masked(mask)


def _each(numbers: Array, epsilon: Floats, n: int, insecure_seed: int | None) -> Release:
    """Release counts with a ratio for each: an L1 distance of n costs at most n times the largest decay."""
    levels = _check.reals(epsilon, "epsilon")
    try:
        levels = np.broadcast_to(levels, numbers.shape)
    except ValueError:
        raise ValueError(f"`epsilon` must have a shape that fits {numbers.shape}, got {levels.shape}") from None
    if not levels.size:
        raise ValueError(f"`counts` must hold at least one number where `epsilon` is an array, got {numbers.shape}")
    numbers = numbers.astype(np.int64, copy=False)
    values, alphas = np.empty_like(numbers), np.empty(numbers.shape)
    different = np.unique(levels)
    for place, level in enumerate(different):
        mechanism = GeometricMechanism(float(level), n=n)
        chosen = levels == level
        words = seed_words(None if insecure_seed is None else insecure_seed * len(different) + place)
        values[chosen] = mechanism._sampler.add(numbers[chosen], *mechanism.noise.bounds, words)
        alphas[chosen] = mechanism.alpha
    # The last mechanism has the largest epsilon, so its guarantee bounds all.
    guarantee = marked(mechanism.guarantee, insecure_seed)
    return Release(values, guarantee, noise=GeometricNoise(alphas), about={"n": n}, _owned=True)


@lru_cache(maxsize=64)
def _for_counts(epsilon: float, n: int) -> GeometricMechanism:
    """Return the mechanism of `privatize`: nothing of it changes, and a release of three counts takes less time."""
    return GeometricMechanism(epsilon, n=n)


def clip_records(counts: Ints, bound: int) -> Ints:
    """Return counts whose every row, along the first axis, has a sum of at most `bound`."""
    if not counts.size:
        return counts
    return _core.clip_records(counts.reshape(-1), counts.size // len(counts), bound).reshape(counts.shape)


def record_distance(counts: Array, bound: int) -> int:
    """Return the largest L1 distance of two clipped records."""
    numbers = int(np.prod(counts.shape[1:], dtype=object))
    return bound if numbers == 1 else 2 * bound
