"""What guarantees say at every distance, for every mechanism and relation, beside exact laws; false claims."""

import itertools
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quincunx.privacy import (
    AddRemove,
    Budget,
    DataMetric,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    LaplaceMechanism,
    NoGuarantee,
    PrivacyGuarantee,
    RandomizedResponse,
    ReplaceOne,
    UnaryEncoding,
    gaussian_delta,
    parallel,
    privatize,
    subsampled,
)

LOG2, LOG3 = math.log(2), math.log(3)
V = Fraction(7455117, 2**20)


def profile(p, q, growth):
    """The excess of one law over another, and the other way: exact if the numbers are."""
    return max(sum(max(a - growth * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))


def discrete_gaussian(variance, shifts, growth, span=60):
    """The excess of a discrete Gaussian vector over its shift, by the law of the scalar product, in 40 digits."""
    with mpmath.workdps(40):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        mass = {y: mpmath.exp(-y * y / (2 * v)) for y in range(-span, span + 1)}
        whole = sum(mass.values())
        law = {0: mpmath.mpf(1)}
        for shift in shifts:
            new = {}
            for (total, p), (y, m) in itertools.product(law.items(), mass.items()):
                if p * m > 1e-40:
                    new[total + y * shift] = new.get(total + y * shift, 0) + p * m / whole
            law = new
        size = sum(shift * shift for shift in shifts)
        return sum(p * max(1 - growth * mpmath.exp(-(2 * t + size) / (2 * v)), 0) for t, p in law.items())


# --- known answers


@pytest.mark.parametrize(
    ("guarantee", "epsilon", "delta", "sharp"),
    [
        (PrivacyGuarantee.of_gaussian(2.0, 1e-6), 1, 0.0068295949831145753842, 1e-13),
        (PrivacyGuarantee.of_gaussian(1 / 0.09, 1e-6), 0, 0.035892691044278134878, 1e-13),
        (PrivacyGuarantee.of_gaussian(1.0, 1e-6), 20, 2.6647067053654976526e-86, 1e-12),
        (DiscreteGaussianMechanism(variance=16).guarantee, 1, 3.0554546492668226426e-6, 1e-11),
        (GeometricMechanism(alpha=0.5, relation=DataMetric("l1", 3)).guarantee, LOG2, 0.5, 1e-12),
        (LaplaceMechanism(1.0, sensitivity=1).guarantee, 0.25, 0.31271072120902780145, 1e-6),
        (UnaryEncoding(LOG3, 2).guarantee, LOG2, 0.125, 1e-9),
        (GeneralizedRandomizedResponse(LOG3, 4).guarantee, LOG2, 1 / 6, 1e-9),
        (20 * PrivacyGuarantee(0.1), 0.5, 0.038255573847233130476, 1e-12),
        (10**4 * PrivacyGuarantee(0.01), 2, 0.020915810707248357324, 1e-11),
        (PrivacyGuarantee(0.5) & PrivacyGuarantee.of_gaussian(2.0, 1e-6), 1, 0.032790612518120909395, 1e-12),
        (PrivacyGuarantee(1.0, range_bounded=True), 0.25, 0.15469833055309968329, 1e-12),
        (PrivacyGuarantee.of_zcdp(0.125, 1e-6), 2, 3.9485085566836721595e-5, 1e-12),
    ],
)
def test_profiles_have_the_known_values_and_are_never_below(guarantee, epsilon, delta, sharp):
    assert delta * (1 - 1e-15) <= guarantee.delta_at(epsilon) <= delta * (1 + sharp)


def test_two_sided_directions_compose_as_the_relation_ties_them():
    # Two-piece geometric, 1/2 to the left and 1/4: up ln 2 with 6/7 else -ln 4; down ln 4 with 4/7 else -ln 2.
    p, q = [Fraction(6, 7), Fraction(1, 7)], [Fraction(3, 7), Fraction(4, 7)]
    one, other = (
        PrivacyGuarantee.of_outcomes(*pair, relation=relation)
        for pair, relation in (((p, q), AddRemove()), ((q, p), AddRemove()))
    )
    assert (2 * one).delta_at(LOG3) == pytest.approx(13 / 49, rel=1e-12)  # both up 9/49, both down 13/49
    assert (one & other).delta_at(LOG3) == pytest.approx(15 / 49, rel=1e-12)  # F7: parts that oppose
    free = PrivacyGuarantee.of_outcomes(p, q)
    assert (2 * free).delta_at(LOG3) == pytest.approx(17 / 49, rel=1e-12)
    for guarantee in (one, free):
        assert PrivacyGuarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def test_groups_have_the_known_delta():
    group = PrivacyGuarantee(Fraction(LOG2), 0.1).at(2)
    assert 0.3 * (1 - 1e-12) <= group.delta_at(2 * LOG2) <= 0.3 * (1 + 1e-9)  # not .2


def test_concentrated_levels_and_renyi_divergences_have_the_known_values():
    assert PrivacyGuarantee(1.0).to_zcdp() == pytest.approx(0.4621171572600097585, rel=1e-12)
    assert LaplaceMechanism(1.0, sensitivity=1).guarantee.to_zcdp() == pytest.approx(0.3678794411714423216, rel=1e-6)
    assert PrivacyGuarantee.of_zcdp(0.125, 1e-6).epsilon == pytest.approx(2.4190931768671950708, rel=1e-12)
    assert PrivacyGuarantee(1.0).renyi(2) == pytest.approx(0.73532566405552, rel=1e-12)
    assert 0 <= LaplaceMechanism(1.0, sensitivity=1).guarantee.renyi(8) - 0.91019880117745 < 1e-5
    assert PrivacyGuarantee(1.0, 1e-6).renyi(2) == math.inf
    with pytest.raises(NoGuarantee, match="no zCDP"):
        PrivacyGuarantee(1.0, 1e-6).to_zcdp()
    with pytest.raises(ValueError, match="`order`"):
        PrivacyGuarantee(1.0).renyi(1)


def test_subsampling_has_the_known_values():
    response = subsampled(PrivacyGuarantee(LOG3, relation=AddRemove()), 0.25)
    assert response.epsilon == pytest.approx(math.log(1.5), rel=1e-12)
    assert response.delta_at(math.log(1.25)) == pytest.approx(1 / 16, rel=1e-9)
    batch = subsampled(PrivacyGuarantee.of_gaussian(1.0, 1e-6, relation=AddRemove()), 0.01)
    assert batch.delta_at(0.1) == pytest.approx(7.2900376957612e-5, rel=1e-3)
    assert batch.delta_at(0.1) >= 7.2900376957612e-5
    assert batch.renyi(8) == pytest.approx(8.9364390760603e-4, rel=1e-10)
    assert batch.renyi(2) == pytest.approx(1.7181342207455e-4, rel=1e-10)
    with pytest.raises(ValueError, match="`order` must be at most 10000 for a sample"):
        batch.renyi(10_001)
    assert batch.delta == pytest.approx(1e-8)
    assert PrivacyGuarantee.from_dict(json.loads(json.dumps(batch.to_dict()))) == batch
    assert (100 * batch).epsilon_at(1e-5) < 2.0
    replaced = subsampled(PrivacyGuarantee(1.0, 1e-3), 0.25)
    assert (replaced.epsilon, replaced.delta) == (1.0, 2.5e-4)
    with pytest.raises(NoGuarantee):
        subsampled(PrivacyGuarantee(1.0, relation=DataMetric("l1")), 0.25)
    # F10: P = 3/4, Q = 1/12, absent 1/4: replaced records see a ratio of 1.8 where log(1 + q (e^e - 1)) says 1.5.
    with_p, with_q = (Fraction(1, 4) * x + Fraction(3, 4) * Fraction(1, 4) for x in (Fraction(3, 4), Fraction(1, 12)))
    assert with_p / with_q == Fraction(9, 5)
    assert subsampled(PrivacyGuarantee(2 * LOG3), 0.25).epsilon >= math.log(1.8)


# --- planted false claims


def test_a_discrete_gaussian_at_ten_times_its_radius_is_not_linear():
    guarantee = DiscreteGaussianMechanism(2.0, 1e-8, relation=DataMetric("l1", 1)).guarantee
    far = guarantee.at(10)
    assert far.delta_at(20.0) >= 1.2276014924857678124e-4  # F1 claims 1e-7
    assert far.delta == 1e-8
    assert float(discrete_gaussian(V, [10], mpmath.exp(far.epsilon))) <= 1e-8
    beside = guarantee & PrivacyGuarantee.of_gaussian(5.0, 1e-8, relation=DataMetric("l1", 1))
    assert beside.at(2).epsilon > beside.epsilon


def test_a_discrete_gaussian_vector_has_more_than_the_scalar_profile():
    mechanism = DiscreteGaussianMechanism(variance=0.3, delta=0.15, sensitivity=2, relation=DataMetric("l2", 2))
    assert mechanism.guarantee.delta_at(20 / 3) >= 0.29375271558906050719  # F2 claims .1376
    exact = discrete_gaussian(mechanism._variance, [1, 1, 1, 1], mpmath.exp(mechanism.epsilon), span=12)
    assert exact <= 0.15


def test_a_replaced_record_that_moves_between_blocks_counts_twice():
    block = GeometricMechanism(alpha=0.5, sensitivity=1, relation=AddRemove()).guarantee
    assert parallel([block] * 5).epsilon == block.epsilon
    assert parallel([block, 3 * block, block & block]) == 3 * block  # a composition bounds each part of it
    with pytest.raises(NoGuarantee, match="is known to bound the others"):
        parallel([2 * block, block & PrivacyGuarantee(9.0, relation=AddRemove())])
    moved = parallel([block] * 5, relation=ReplaceOne())
    assert moved.relation == ReplaceOne()
    assert moved.epsilon >= 2 * LOG2  # F8: 4/9 against 1/9
    with pytest.raises(NoGuarantee, match="may move"):
        parallel([PrivacyGuarantee(1.0)] * 2)
    assert parallel([PrivacyGuarantee(1.0)] * 2, by="key").epsilon == 1.0
    # A record that stays in its block may change there: a sum of numbers in [-1, 1] moves by 2.
    blocks = [PrivacyGuarantee(1.0, relation=AddRemove()), PrivacyGuarantee(0.1, relation=AddRemove())]
    assert parallel(blocks, relation=ReplaceOne()).epsilon == 2.0  # not 1.1
    metric = [GeometricMechanism(e, n=1).guarantee for e in (0.5, 1.0)]
    assert parallel(metric).epsilon == 1.0
    given = [PrivacyGuarantee(e, relation=DataMetric("l1")) for e in (0.5, 1.0)]
    assert parallel(given).epsilon == 1.5


def test_whole_numbers_in_the_plane_have_no_chain():
    with pytest.raises(NoGuarantee, match=r"stated within 1.2; nothing is known at 2.83"):
        PrivacyGuarantee(LOG2, relation=DataMetric("l2", 1.2, integers=True)).at(2.83)  # F9: 16, not 8
    mechanism = GeometricMechanism(alpha=0.5, relation=DataMetric("l2", 1.2))
    assert mechanism.guarantee.at(2.83).epsilon >= 4 * LOG2


def test_a_sensitivity_says_nothing_of_shorter_distances():
    guarantee = GeometricMechanism(alpha=0.5, sensitivity=2, relation=DataMetric("l1", 2)).guarantee
    assert guarantee.at(1).epsilon >= 2 * LOG2  # F11: 0 against 2 at distance 1
    assert PrivacyGuarantee(2.0, relation=DataMetric("l1", 2)).at(1).epsilon == 2.0


# --- defects


def test_clipped_records_are_charged_for_each_record_that_moves():
    one = GaussianMechanism(1.0, 1e-6, radius=1.0)
    two = GaussianMechanism(1.0, 1e-6, radius=1.0, relation=ReplaceOne(2))
    assert two.sigma >= one.sigma * math.sqrt(2) * (1 - 1e-12)
    assert gaussian_delta(1.0, two.sigma, 2 * math.sqrt(2)) <= 1e-6
    for relation in (DataMetric("l2", 4), DataMetric("linf", 1), DataMetric("l1", 1)):
        with pytest.raises(NoGuarantee):
            GaussianMechanism(1.0, 1e-6, radius=1.0, relation=relation)
    assert GaussianMechanism(1.0, 1e-6, relation=DataMetric("l2", 4)).sigma >= 4 * 4.22
    discrete = DiscreteGaussianMechanism(1.0, 1e-6, lower=0, upper=1, relation=ReplaceOne(2))
    assert discrete_gaussian(discrete._variance, [1, 1], mpmath.e, span=90) <= 1e-6
    makers = [
        lambda: GaussianMechanism(1.0, 1e-6, radius=1.0, relation=AddRemove()),
        lambda: DiscreteGaussianMechanism(1.0, 1e-6, lower=0, upper=1, relation=AddRemove()),
        lambda: GeometricMechanism(1.0, lower=0, upper=1, relation=AddRemove()),
        lambda: LaplaceMechanism(1.0, 0, 1, relation=AddRemove()),
        lambda: RandomizedResponse(1.0, relation=AddRemove()),
        lambda: GeneralizedRandomizedResponse(1.0, 3, relation=AddRemove()),
        lambda: UnaryEncoding(1.0, 3, relation=AddRemove()),
    ]
    for make in makers:
        with pytest.raises(NoGuarantee, match="number tells"):
            make()


def test_a_vanishing_ratio_is_spent_at_once():
    total = Budget(1.0, 1e-6).spend(GaussianMechanism(sigma=1.0, delta=1e-6, sensitivity=1e-160))
    assert total.epsilon >= 0


def test_compositions_too_many_for_thirty_two_bits_have_figures():
    many = 2**33 * PrivacyGuarantee(1e-6)
    assert 0 < many.delta_at(0.5) < 1e-4
    assert (2**70 * PrivacyGuarantee(1e-12)).delta_at(0.5) > 0


def test_small_negative_inputs_do_not_lose_their_last_bits():
    # sigma 2^40 times the sensitivity: inputs of 2^-60 steps differ from one another as they should.
    mechanism = GaussianMechanism(sigma=2.0**40, delta=1e-6, sensitivity=2.0**-20)
    assert Fraction(mechanism.guarantee.zcdp) >= Fraction(2) ** -121
    with pytest.raises(ValueError, match=r"2\*\*-62 sigma"):
        GaussianMechanism(0.0, 1e-30, sensitivity=1.0)


def test_subnormal_sensitivities_have_a_noise():
    from quincunx.privacy import gaussian_sigma

    for sensitivity in (5e-324, 1e-320, 1e-310):
        sigma = gaussian_sigma(1.0, 1e-5, sensitivity)
        assert Fraction(sigma) >= Fraction(sensitivity) * Fraction(37306316348, 10**10)
    assert gaussian_sigma(50.0, 1e-5, 5e-324) > 0


def test_tampered_descriptions_are_refused():
    good = (2 * GaussianMechanism(1.0, 1e-6, sensitivity=1).guarantee).to_dict()
    assert PrivacyGuarantee.from_dict(good).epsilon == 2.0
    for path, value in [
        (("delta",), "-1/10"),
        (("epsilon",), "0"),
        (("parts", 0, "delta"), "-1/10"),
        (("parts", 0, "epsilon"), "1/2"),
        (("parts", 0, "times"), 0),
        (("parts", 0, "times"), -1),
        (("parts", 0, "reach", "curve", "squared"), "-1"),
        (("parts", 0, "reach", "curve", "kind"), "free"),
        (("parts", 0, "reach", "kind"), "free"),
        (("parts", 0, "reach", "relation"), ["AddRemove", 1]),
        (("parts", 0, "reach", "whole"), 1),
        (("parts", 0, "reach", "words"), 1),
        (("parts", 0, "more"), 1),
        (("numerics",), "best"),
    ]:
        bad = json.loads(json.dumps(good))
        place = bad
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValueError, match="`values`"):
            PrivacyGuarantee.from_dict(bad)


# --- every mechanism, relation and distance, beside its exact law


def geometric_law(x, z, alpha):
    return (1 - alpha) / (1 + alpha) * alpha ** abs(z - x)


def rows(mechanism, inputs):
    """The law of a mechanism's output for each of some inputs, over all outputs that count."""
    if isinstance(mechanism, GeometricMechanism):
        outputs = range(-70, 90)
        return [[math.exp(mechanism.log_likelihood(z, x)) for z in outputs] for x in inputs]
    if isinstance(mechanism, DiscreteGaussianMechanism):
        return [[math.exp(mechanism.log_likelihood(z, x)) for z in range(-60, 70)] for x in inputs]
    if isinstance(mechanism, UnaryEncoding):
        outputs = list(itertools.product((0, 1), repeat=mechanism.categories))
        return [[math.exp(mechanism.log_likelihood(list(z), x)) for z in outputs] for x in inputs]
    size = getattr(mechanism, "categories", 2)
    return [[math.exp(mechanism.log_likelihood(z, x)) for z in range(size)] for x in inputs]


def product(laws):
    return [math.prod(masses) for masses in itertools.product(*laws)]


BOUNDED = [
    lambda relation: RandomizedResponse(1.0, relation=relation),
    lambda relation: GeneralizedRandomizedResponse(1.5, 3, relation=relation),
    lambda relation: UnaryEncoding(1.2, 3, relation=relation),
    lambda relation: UnaryEncoding(1.2, 2, "symmetric", relation=relation),
    lambda relation: GeometricMechanism(0.8, lower=0, upper=2, relation=relation),
    lambda relation: DiscreteGaussianMechanism(1.0, 1e-3, lower=0, upper=2, relation=relation),
]
RELATIONS = [
    ReplaceOne(),
    ReplaceOne(2),
    AddRemove(),
    DataMetric("hamming", 1),
    DataMetric("hamming", 2),
    DataMetric("l1", 1),
    DataMetric("l1", 2.5),
    DataMetric("l2", 1),
    DataMetric("l2", 1.5),
    DataMetric("linf", 1),
]


def distance(relation, x, y):
    differences = [abs(a - b) for a, b in zip(x, y, strict=True)]
    if isinstance(relation, ReplaceOne) or relation.metric == "hamming":
        return sum(d > 0 for d in differences)
    return {"l1": sum(differences), "l2": math.sqrt(sum(d * d for d in differences)), "linf": max(differences)}[
        relation.metric
    ]


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
@pytest.mark.parametrize("make", BOUNDED, ids=range(len(BOUNDED)))
def test_records_in_two_places_are_never_promised_more_than_is_true(make, relation):
    try:
        mechanism = make(relation)
    except NoGuarantee:
        assert isinstance(relation, AddRemove) or getattr(relation, "metric", "") == "linf"
        return
    levels = range(3 if isinstance(mechanism, (GeometricMechanism, DiscreteGaussianMechanism)) else 2)
    laws = rows(mechanism, levels)
    tested = 0
    for far in (1, 2, 2.5) if isinstance(relation, DataMetric) else (1, 2):
        guarantee = mechanism.guarantee.at(far)
        pairs = itertools.product(itertools.product(levels, repeat=2), repeat=2)
        inside = [(x, y) for x, y in pairs if x < y and 0 < distance(relation, x, y) <= far]
        for x, y in inside[:: max(1, len(inside) // 6)]:
            p, q = (np.array(product([laws[i] for i in place])) for place in (x, y))
            for epsilon in (0.0, 0.4, guarantee.epsilon):
                excess = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
                assert excess <= guarantee.delta_at(epsilon) * (1 + 1e-9) + 1e-12
                tested += 1
    assert tested


def test_laplace_and_gaussian_noise_on_arrays_follow_their_metric():
    for relation, shift in [
        (DataMetric("l1", 2), lambda d: d),
        (DataMetric("l2", 2), lambda d: d),
        (DataMetric("linf", 2), lambda d: d * math.sqrt(3)),
    ]:
        mechanism = GaussianMechanism(1.0, 1e-5, dimension=3, relation=relation)
        for far in (0.5, 1, 2, 3.7, 20):
            exact = gaussian_delta(1.0, mechanism.sigma, shift(far))
            found = mechanism.guarantee.at(far).delta_at(1.0)
            assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-8)
    with pytest.raises(NoGuarantee):
        GaussianMechanism(1.0, 1e-5, relation=DataMetric("hamming", 2))
    laplace = LaplaceMechanism(1.0, relation=DataMetric("l1", 2))
    assert laplace.guarantee.at(3).epsilon == pytest.approx(1.5, rel=1e-6)
    assert laplace.guarantee.at(1).delta_at(0.2) == pytest.approx(-math.expm1(-0.15), rel=1e-6)
    with pytest.raises(NoGuarantee):
        LaplaceMechanism(1.0, relation=DataMetric("l2", 2))
    with pytest.raises(NoGuarantee):
        LaplaceMechanism(1.0, 0, 1, relation=DataMetric("l1", 2))


def test_laplace_noise_on_vectors_has_its_law():
    mechanism = LaplaceMechanism(0.5, sensitivity=2.0)
    assert mechanism.epsilon <= 0.5
    assert mechanism.scale == pytest.approx(4.0, rel=1e-6)
    x = np.full((400, 500), -3.25)
    noise = mechanism.release(x, insecure_seed=11).values - x
    assert np.all(noise / mechanism.step * 4 == np.round(noise / mechanism.step * 4))
    from tests.statistics import assert_continuous_fit

    def cdf(t):
        return np.where(t < 0, np.exp(np.minimum(t, 0) / 4) / 2, 1 - np.exp(-np.maximum(t, 0) / 4) / 2)

    assert_continuous_fit(noise.reshape(-1), cdf)


def test_a_scale_for_each_coordinate_is_charged_by_the_scaled_sensitivity():
    mechanism = GaussianMechanism(1.0, 1e-5, sensitivity=[3.0, 4.0], scales=[1.0, 2.0])
    exact = math.sqrt(9 + 4)
    assert mechanism.sensitivity == pytest.approx(exact)
    noise = mechanism.release([1.0, 5.0]).values
    assert noise.shape == (2,)
    draws = np.array([mechanism.release([0.0, 0.0], insecure_seed=i).values for i in range(4000)])
    assert draws.std(axis=0) == pytest.approx(np.array([1.0, 2.0]) * mechanism.sigma, rel=0.1)
    near = GaussianMechanism(sigma=2.0, delta=1e-5, scales=[1.0, 0.5], relation=DataMetric("linf", 1))
    assert near.guarantee.zcdp == pytest.approx((1 + 4) / 4 / 2, rel=1e-9)
    with pytest.raises(ValueError, match="last axis of length 2"):
        mechanism.release([1.0, 2.0, 3.0])


def test_counts_may_have_an_epsilon_each():
    counts = np.zeros((2, 40_000), dtype=int)
    release = privatize(counts, epsilon=[[0.5], [2.0]], n=2)
    assert release.epsilon == 2.0
    assert release.guarantee.relation == DataMetric("l1", 2)
    assert np.array(release.alpha)[:, 0] == pytest.approx([math.exp(-0.25), math.exp(-1.0)])
    for row, alpha in zip(release.values, (math.exp(-0.25), math.exp(-1.0)), strict=True):
        assert row.var() == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.15)
    with pytest.raises(ValueError, match="`epsilon` must have a shape"):
        privatize(counts, epsilon=[0.5, 2.0])


# --- never below


def exact_gaussian(epsilon, u):
    epsilon, u = mpmath.mpf(epsilon), mpmath.mpf(u)
    tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
    return tail(epsilon / u - u / 2) - mpmath.exp(epsilon) * tail(epsilon / u + u / 2)


def gaussian_points(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        u = float(np.exp(rng.uniform(-9, 2.5)))
        yield float(rng.choice([0.0, u * rng.uniform(0, 2), u * rng.uniform(0, 30)])), u


def check_gaussian(count, seed):
    worst = 0
    for epsilon, u in gaussian_points(count, seed):
        with mpmath.workdps(60 + int((epsilon / u) ** 2 / 4)):
            exact = exact_gaussian(epsilon, u)
        found = gaussian_delta(epsilon, 1.0, u)
        if exact > mpmath.mpf(2) ** -1000:
            assert mpmath.mpf(found) >= exact, (epsilon, u)
            worst = max(worst, float(mpmath.mpf(found) / exact - 1) / (30 + (epsilon / u + u / 2) ** 2))
    assert worst < 3e-15


def exact_responses(times, e, at, digits):
    """The delta of so many randomized responses, by the binomial sum."""
    with mpmath.workdps(digits):
        odds = mpmath.exp(mpmath.mpf(e))
        term, exact = (odds / (1 + odds)) ** times, mpmath.mpf(0)
        for k in range(times, -1, -1):
            rest = mpmath.mpf(at) - (2 * k - times) * mpmath.mpf(e)
            if rest >= 0:
                break
            exact += term * -mpmath.expm1(rest)
            term *= mpmath.mpf(k) / (times - k + 1) / odds
        return exact


def check_responses(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        times, e = int(np.exp(rng.uniform(0, 6))), float(np.exp(rng.uniform(-6, 1)))
        at = float(rng.uniform(0, 1)) * min(times * e, 8 * math.sqrt(times) * e + times * e * e)
        exact = exact_responses(times, e, at, 40)
        found = (times * PrivacyGuarantee(e)).delta_at(at)
        assert mpmath.mpf(found) >= min(exact, 1), (times, e, at)  # the sum of some is 1 + 1e-39 by its roundings
        assert found <= exact * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -300


def test_never_below_on_a_thousand_points():
    check_gaussian(700, 1)
    check_responses(300, 2)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_never_below_on_a_hundred_thousand_points():
    check_gaussian(80_000, 3)
    check_responses(20_000, 4)


@pytest.mark.slow
def test_responses_by_the_hundred_thousand_are_never_below():
    for times, e, at in [(10**4, 0.01, 2.0), (10**5, 0.003, 3.0), (10**5, 0.0005, 0.3)]:
        exact = exact_responses(times, e, at, 60)
        found = (times * PrivacyGuarantee(e)).delta_at(at)
        assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -11)
