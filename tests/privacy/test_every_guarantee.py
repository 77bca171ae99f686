"""Every mechanism made from every subset of its arguments, for every relation: is what it claims true of its neighbors?

The worst neighbors that a relation allows are written down here, a line for each relation, and the law of the noise by
its textbook formula; nothing is asked of the mechanism but its parameters. What is refused claims nothing.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quincunx.factorization import CentralPoissonFactorization
from quincunx.posterior import GridModel
from quincunx.privacy import (
    AddRemove,
    DataMetric,
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    HadamardResponse,
    LaplaceMechanism,
    LocalHashing,
    MemoizedUnaryEncoding,
    PrivacyGuarantee,
    RandomizedResponse,
    ReplaceOne,
    SubsetSelection,
    UnaryEncoding,
    audit,
    gaussian_delta,
    parallel,
    privatize,
    subsampled,
)

FAR = 10**4  # an entry that nothing bounds moves by so much
WIDE = 12  # entries of an array that all move
RELATIONS = [
    None,
    *(ReplaceOne(k) for k in (1, 3)),
    *(AddRemove(k) for k in (1, 2)),
    *(DataMetric(metric, r) for metric in ("l1", "l2", "linf", "hamming") for r in (0.5, 1, 1.5, 2, 5)),
]


def neighbors(relation, whole):
    """Arrays by which two neighbors may differ, the worst of each kind; None where even their number may."""
    if isinstance(relation, AddRemove):
        return None
    r = Fraction(relation.radius)
    if isinstance(relation, ReplaceOne) or relation.metric == "hamming":
        return [[FAR] * math.floor(r)]
    if relation.metric == "l1":
        return [[math.floor(r)], [1] * math.floor(r)] if whole else [[float(r)], [float(r) / WIDE] * WIDE]
    if relation.metric == "l2":
        return [[math.floor(r)], [1] * math.floor(r * r)] if whole else [[float(r)], [float(r) / WIDE**0.5] * WIDE]
    return [[math.floor(r) if whole else float(r)] * WIDE]


def subsets(options):
    """Every choice of one value for each argument, None being its absence."""
    for values in itertools.product(*options.values()):
        flat = {}
        for name, value in zip(options, values, strict=True):
            if value is not None:
                flat |= dict(zip(name, value, strict=True)) if isinstance(name, tuple) else {name: value}
        yield flat


TABLE = {
    GeometricMechanism: {
        ("epsilon",): [None, (1.0,)],
        ("alpha",): [None, (0.4,)],
        ("n",): [None, (1,), (4,)],
        ("lower", "upper"): [None, (0, 6)],
        ("sensitivity",): [None, (3,)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    LaplaceMechanism: {
        ("epsilon",): [(1.0,)],
        ("lower", "upper"): [None, (-1.5, 2.0)],
        ("sensitivity",): [None, (0.7,)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    DiscreteGaussianMechanism: {
        ("epsilon", "delta"): [None, (1.0, 1e-3)],
        ("variance", "delta"): [None, (3.0, 1e-3)],
        ("lower", "upper"): [None, (0, 3)],
        ("sensitivity",): [None, (2,), (1.5,)],
        ("norm",): [None, ("l1",), ("l2",)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    GaussianMechanism: {
        ("epsilon", "delta"): [None, (1.0, 1e-3)],
        ("sigma", "delta"): [None, (2.0, 1e-3)],
        ("sensitivity",): [None, (0.7,), ([0.4, 0.9],)],
        ("radius",): [None, (1.5,)],
        ("lower", "upper"): [None, (-1.5, 2.0)],
        ("dimension",): [None, (2,)],
        ("scales",): [None, ([1.0, 3.0],)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    RandomizedResponse: {("epsilon",): [(1.0,)], ("relation",): [None if r is None else (r,) for r in RELATIONS]},
    GeneralizedRandomizedResponse: {
        ("epsilon", "categories"): [(1.0, 4)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    UnaryEncoding: {
        ("epsilon", "categories"): [(1.0, 3)],
        ("variant",): [None, ("symmetric",), ("threshold",), ("optimized",)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    MemoizedUnaryEncoding: {
        ("epsilon", "lifetime", "categories"): [(1.0, 2.0, 3)],
        ("variant",): [None, ("symmetric",), ("optimized",)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    SubsetSelection: {
        ("epsilon", "categories"): [(1.0, 7)],
        ("size",): [None, (4,)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    LocalHashing: {
        ("epsilon", "categories"): [(1.0, 7)],
        ("buckets",): [None, (2,)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
    HadamardResponse: {
        ("epsilon", "categories"): [(1.0, 7)],
        ("blocks",): [None, (1,), (3,)],
        ("relation",): [None if r is None else (r,) for r in RELATIONS],
    },
}


def made(kind):
    """Every mechanism of a kind that its constructor accepts, with its arguments."""
    for arguments in subsets(TABLE[kind]):
        try:
            mechanism = kind(**arguments)
        except (TypeError, ValueError):
            continue
        yield arguments, mechanism


def shifts(mechanism, arguments, relation):
    """How far the clipped values of neighbors may lie apart, as lists of numbers; None where they can be told apart."""
    whole = not isinstance(mechanism, (LaplaceMechanism, GaussianMechanism))
    if "sensitivity" in arguments:  # what the user said, of arrays of a fixed shape
        moved = arguments["sensitivity"]
        if isinstance(moved, list):
            return [moved]
        if isinstance(mechanism, GaussianMechanism):
            scales = arguments.get("scales", [1.0])
            return [[moved * scale] for scale in scales[:1]]
        if whole and getattr(mechanism, "norm", "l1") == "l2":
            return [[math.floor(moved)], [1] * math.floor(Fraction(moved) ** 2)]
        return [[moved]]
    moves = neighbors(relation, whole)
    if moves is None:
        return None
    width = None
    if "lower" in arguments:
        width = arguments["upper"] - arguments["lower"]
    elif "radius" in arguments:
        width = 2 * arguments["radius"]
    found = [[min(move, width) if width is not None else move for move in moves_] for moves_ in moves]
    if isinstance(mechanism, GaussianMechanism) and arguments.get("scales") and "radius" not in arguments:
        size = len(arguments["scales"])  # the array is one vector: the release refuses another length
        if isinstance(relation, DataMetric) and relation.metric == "linf":
            return [move[:size] for move in found]
        return [[float(relation.radius)]]
    if isinstance(mechanism, GaussianMechanism) and isinstance(relation, DataMetric) and relation.metric == "linf":
        return [move[: mechanism.dimension] for move in found]
    return found


def true_delta(mechanism, moves, epsilon):
    """The excess of the law about one data set over that about the other, in 40 digits; or a bound from below."""
    with mpmath.workdps(40):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        if isinstance(mechanism, GaussianMechanism):
            scales = list(mechanism.scales or [1.0] * len(moves))
            if len(moves) < len(scales):
                scales = [min(scales)] * len(moves)
            if len(moves) > len(scales):
                scales = [min(scales)] * len(moves)
            u = mpmath.sqrt(
                sum((mpmath.mpf(m) / (mechanism.sigma * s)) ** 2 for m, s in zip(moves, scales, strict=True))
            )
            if not u:
                return mpmath.mpf(0)
            a, b = mpmath.mpf(epsilon) / u - u / 2, mpmath.mpf(epsilon) / u + u / 2
            return mpmath.ncdf(-a) - growth * mpmath.ncdf(-b)
        if isinstance(mechanism, DiscreteGaussianMechanism):
            return discrete_gaussian_delta(mechanism.variance, [move for move in moves if move], epsilon)
        if isinstance(mechanism, GeometricMechanism):
            loss = mpmath.mpf(-mpmath.log(mechanism.alpha)) * sum(moves)
        elif isinstance(mechanism, LaplaceMechanism):
            loss = sum(mpmath.mpf(move) for move in moves) / mechanism.scale
        else:
            loss = sum(move > 0 for move in moves) * one_response(mechanism)
        return mpmath.mpf(0) if loss <= epsilon * (1 + 1e-12) else mpmath.inf


def discrete_gaussian_delta(variance, moves, epsilon):
    """The excess of a vector of discrete normal noise over its shift, all coordinates moved alike, in doubles."""
    if not moves:
        return 0.0
    (move,) = set(moves)
    span = math.ceil(10 + 9 * math.sqrt(variance))
    move = min(move, 2 * span)
    mass = np.exp(-(np.arange(-span, span + 1) ** 2) / (2 * variance))
    mass /= mass.sum()
    law, center = np.ones(1), 0
    for _ in moves:
        law, center = np.convolve(law, mass), center + span
    losses = (2 * (np.arange(len(law)) - center) * move + len(moves) * move**2) / (2 * variance)
    return float(law @ np.maximum(-np.expm1(np.minimum(epsilon - losses, 1.0)), 0.0))


def one_response(mechanism):
    """The largest loss of one response, from its probabilities."""
    if isinstance(mechanism, RandomizedResponse):
        return mpmath.log(mechanism.keep_probability / (1 - mpmath.mpf(mechanism.keep_probability)))
    if isinstance(mechanism, GeneralizedRandomizedResponse):
        return mpmath.log(mpmath.mpf(mechanism.keep_probability) / mechanism.other_probability)
    p = mpmath.mpf(mechanism.one_probability)
    sets = {  # the reports with the truth, and those without, as a ratio
        SubsetSelection: lambda: Fraction(mechanism.size, 7 - mechanism.size),
        LocalHashing: lambda: Fraction(1, mechanism.buckets - 1),
        HadamardResponse: lambda: Fraction(1, 2 * mechanism.blocks - 1),
    }
    if type(mechanism) in sets:
        ratio = sets[type(mechanism)]()
        return mpmath.log(p / (1 - p) * ratio.denominator / ratio.numerator)
    q = mpmath.mpf(mechanism.zero_probability)
    return mpmath.log(p / q) + mpmath.log((1 - q) / (1 - p))


@pytest.mark.parametrize("kind", TABLE)
def test_no_mechanism_claims_more_than_its_worst_neighbors_allow(kind):
    accepted, wrong = 0, []
    for arguments, mechanism in made(kind):
        claims = [mechanism.guarantee]
        if isinstance(mechanism.guarantee.relation, (DataMetric, ReplaceOne)):
            for factor in (2, Fraction(1, 2)):
                try:
                    claims.append(mechanism.guarantee.at(float(mechanism.guarantee.relation.radius * factor)))
                except (TypeError, ValueError):
                    continue  # refused, or half a record
        for claim in claims if "sensitivity" not in arguments else claims[:1]:
            accepted += 1
            moves = shifts(mechanism, arguments, claim.relation)
            if moves is None:
                wrong.append((arguments, claim, "their number tells"))
                continue
            for move in moves:
                lost = true_delta(mechanism, move, claim.epsilon)
                if not lost <= claim.delta * (1 + 1e-9):
                    wrong.append((arguments, claim, float(lost)))
    assert accepted > 5
    assert not wrong, f"{len(wrong)} of {accepted}: " + "; ".join(map(str, wrong[:5]))


def test_the_audit_rejects_none_of_them():
    # Each at a false-alarm rate of 1e-9; pairs of single numbers, as far apart as the relation allows.
    seen = 0
    for kind in (GeometricMechanism, LaplaceMechanism, DiscreteGaussianMechanism, RandomizedResponse):
        for arguments, mechanism in made(kind):
            relation = mechanism.guarantee.relation
            if "sensitivity" in arguments or neighbors(relation, True) is None or relation.radius < 1:
                continue
            move = 1 if kind is RandomizedResponse else neighbors(relation, True)[0][0]
            report = audit(mechanism, 0, move, n_draws=2000, confidence=1 - 1e-9)
            assert not report.rejected, (arguments, report)
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("choices", [1, 7])
def test_choices_claim_what_all_of_them_together_give_away(monotonic, choices):
    mechanism = ExponentialMechanism(0.8, 2.0, monotonic=monotonic)
    release = mechanism.release(np.zeros((choices, 3)))
    # The worst neighbor moves one score up by the sensitivity and, unless all move the same way, the others down.
    rate = mpmath.mpf(mechanism.rate)
    high, low = [2.0, 0.0, 0.0], [0.0, 0.0, 0.0] if monotonic else [0.0, 2.0, 2.0]
    shares = [[mpmath.exp(rate * score) for score in scores] for scores in (high, low)]
    loss = mpmath.log((shares[0][0] / sum(shares[0])) / (shares[1][0] / sum(shares[1])))
    assert choices * loss <= release.guarantee.epsilon <= choices * 0.8
    assert release.guarantee.epsilon == pytest.approx(choices * mechanism.epsilon)
    single = mechanism.release([0.0, 1.0])
    assert single.guarantee == mechanism.guarantee


def test_scores_of_any_size_are_told_apart():
    mechanism = ExponentialMechanism(1.0, 1.0)
    near = mechanism.log_likelihood(0, [2.0, 0.0])
    for scores in ([4e9 + 2, 4e9], [2**53 + 3, 2**53 + 1], np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64)):
        assert mechanism.log_likelihood(0, scores) == pytest.approx(near)
        assert np.diff(mechanism.noise.units(scores)) == np.diff(mechanism.noise.units([2.0, 0.0]))
    assert mechanism.release([[5e9, 6e9], [1e308, -1e308]]).values.tolist() == [1, 0]
    if np.finfo(np.longdouble).nmant > 60:  # of which doubles lose the difference
        assert np.diff(mechanism.noise.units(np.longdouble(2**30) + np.array([2.0**-28, 0]))) == [-2]
    # At the end of where steps are counted from zero, neighbors are no further apart than elsewhere.
    step, most = mechanism.step, 2.0**61
    law = [mechanism.noise.units([(most + more) * step, -(most + more) * step]) for more in (0, 2**30)]
    assert law[0][0] - law[0][1] == law[1][0] - law[1][1] == 2**62


@pytest.mark.parametrize("seed", range(12))
def test_grid_models_claim_what_the_worst_data_sets_give_away(seed):
    # All data sets of three records or fewer and all their neighbors, in 40 digits: a family made of random numbers.
    rng = np.random.default_rng(seed)
    table, prior = rng.normal(size=(int(rng.integers(2, 5)), 3)) * 10.0 ** rng.integers(-2, 2), rng.normal(size=4)
    k = len(table)
    model = GridModel(lambda t, x: table[int(t)], range(k), range(3), log_prior=prior[:k], temper=rng.uniform(0.1, 2))
    for epsilon in (None, 0.3):
        own = model if epsilon is None else model.calibrate(epsilon)
        laws = {}
        with mpmath.workdps(40):
            rate = mpmath.mpf(own._exponent.numerator) / own._exponent.denominator
            for n in range(4):
                for data in itertools.combinations_with_replacement(range(3), n):
                    weights = [mpmath.exp(rate * int(unit)) for unit in own.posterior(list(data)).units]
                    laws[data] = [weight / mpmath.fsum(weights) for weight in weights]
            for relation in (ReplaceOne(), AddRemove()):
                spent, ranges = own.guarantee(relation=relation).epsilon, [mpmath.mpf(0)]
                for one, other in itertools.permutations(laws, 2):
                    moved = sum((np.bincount(one, minlength=3) - np.bincount(other, minlength=3)).clip(0))
                    if moved != 1 or len(one) - len(other) != (relation == AddRemove()):
                        continue
                    losses = [mpmath.log(p / q) for p, q in zip(laws[one], laws[other], strict=True)]
                    assert max(losses) - min(losses) <= spent * (1 + 1e-15)
                    ranges.append(max(losses) - min(losses))
                assert float(max(ranges)) == pytest.approx(spent, rel=1e-12)


class Transcript(CentralPoissonFactorization):
    """A fit that keeps what its steps had before the noise, and may be told what they release."""

    def _released(self, statistics, variance, step):
        self.tables.append(statistics)
        if self.outcomes is None:
            self.said.append(super()._released(statistics, variance, step))
            return self.said[-1]
        return self.outcomes[step]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_central_factorizations_claim_what_the_worst_transcripts_give_away(n, epsilon):
    # Given the same outcomes of all steps, by how much do the tables of every neighbor differ? Of normal noise the loss
    # at the end has a law of that shift alone, and tables that move by less have less of it.
    counts = np.random.default_rng(n).poisson(1.5, (4, 3))
    largest = 0
    for components in (1, 2, 5):
        model = Transcript(components, epsilon=epsilon, n=n, n_iter=6, random_state=1, insecure_seed=components)
        parts, variance, spent = model._noise()
        model.outcomes, model.said, model.tables = None, [], []
        model.fit(counts)
        tables = model.tables
        moves = [np.zeros_like(counts) for _ in range(2 * counts.size)]
        for i, move in enumerate(moves):
            move.flat[i // 2] = n if i % 2 else -min(n, counts.flat[i // 2])
        if n > 1:  # units that come and go in several cells
            moves += [np.eye(4, 3, dtype=int), 1 - counts.clip(0, 1), -np.eye(4, 3, dtype=int) * (counts > 0)]
            moves = [move for move in moves if abs(move).sum() <= n]
        for move in moves:
            other = Transcript(components, epsilon=epsilon, n=n, n_iter=6, random_state=1)
            other.outcomes, other.tables = model.said, []
            other.fit(counts + move)
            shifts = [int(((a - b) ** 2).sum()) for a, b in zip(tables, other.tables, strict=True)]
            assert len(shifts) == 12
            assert max(shifts) <= (n * parts) ** 2
            total = sum(Fraction(shift) / (2 * variance) for shift in shifts)
            assert total <= spent <= Fraction(model.guarantee.zcdp)
            largest = max(largest, total / spent)
            assert gaussian_delta(epsilon, 1.0, max(float(2 * total) ** 0.5, 1e-9)) <= model.guarantee.delta
    assert largest == 1  # one component has all of each unit


@pytest.mark.parametrize("bound", [1, 3, 10])
@pytest.mark.parametrize("width", [1, 4])
def test_clipped_records_claim_what_a_replaced_row_gives_away(bound, width):
    release = privatize(np.zeros((5, width), dtype=int), epsilon=0.5, record_bound=bound)
    moved = bound if width == 1 else 2 * bound  # one number, or one cell full and then another
    assert -mpmath.log(release.alpha) * moved <= release.guarantee.epsilon * (1 + 1e-13)
    assert -mpmath.log(release.alpha) * moved * 3 <= release.guarantee.at(3).epsilon * (1 + 1e-13)
    assert f"each clipped to a sum of at most {bound}" in release.protects


def test_what_was_declared_is_repeated():
    for mechanism, words in [
        (LaplaceMechanism(1.0, sensitivity=0.7), "declared to move the array by at most 0.7 in the l1 distance"),
        (GeometricMechanism(1.0, sensitivity=3), "declared to move the array by at most 3 in the l1 distance"),
        (GaussianMechanism(1.0, 1e-6, sensitivity=2.5), "declared to move the array by at most 2.5 in the l2 distance"),
        (GaussianMechanism(1.0, 1e-6, sensitivity=[1, 2]), "declared to move each coordinate by at most [1.0, 2.0]"),
        (GaussianMechanism(1.0, 1e-6, sensitivity=2, scales=[1, 3]), "2 in the l2 distance, over its scales"),
        (DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=2, norm="l2"), "by at most 2 in the l2 distance"),
        (ExponentialMechanism(1.0, 0.5), "declared to move each score by at most 0.5"),
    ]:
        release = mechanism.release([1, 2])
        assert words in release.protects
        assert words in repr(release)
        assert words in (release.guarantee & release.guarantee).protects
    count = LaplaceMechanism(1.0, sensitivity=0.7, relation=AddRemove()).guarantee
    blocks = [parallel([count, count]), parallel([count, count], relation=ReplaceOne())]
    for rule in (*blocks, count.at(3), subsampled(count, 0.1)):
        assert "declared to move the array by at most 0.7" in rule.protects


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_noise_on_an_array_counts_what_its_inputs_are_cut_by_at_every_distance(metric, size):
    # Inputs are cut to 2^-64 grid steps of 2^-20 deviations: in n <= 2^40 numbers two arrays come 2^-84 sqrt(n) apart.
    numbers = size if metric == "linf" else 2**40
    mechanism = GaussianMechanism(sigma=1.5, delta=1e-6, dimension=size, relation=DataMetric(metric, 0.7))
    for radius in (2.0**-60, 2.0**-35, 0.7, 100.0):
        (part,) = mechanism.guarantee.at(radius).parts
        with mpmath.workdps(60):
            moved = mpmath.mpf(radius) / 1.5 * (mpmath.sqrt(size) if metric == "linf" else 1)
            least = (moved + mpmath.ldexp(mpmath.sqrt(numbers), -84)) ** 2
            ratio = mpmath.mpf(part.ratio.numerator) / part.ratio.denominator
            assert least <= ratio <= (moved * (1 + mpmath.mpf(2) ** -39) + mpmath.mpf(2) ** -63) ** 2


def test_declared_changes_of_coordinates_fix_the_length():
    mechanism = GaussianMechanism(1.0, 1e-6, sensitivity=[1, 1, 1])
    assert mechanism.release(np.zeros(3)).shape == (3,)
    for shape in ((1000,), (2,), (3, 3), ()):
        with pytest.raises(ValueError, match="`x` must hold 3 numbers"):
            mechanism.release(np.zeros(shape))


def test_what_was_declared_of_many_coordinates_comes_back_from_a_file():
    for count in (8, 9, 3000):
        guarantee = GaussianMechanism(1.0, 1e-6, sensitivity=[1 / 3] * count).guarantee
        assert PrivacyGuarantee.from_dict(guarantee.to_dict()) == guarantee
