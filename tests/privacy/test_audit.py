"""The audit: it accepts what is true, rejects what is planted, and its bounds hold as often as it says."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.privacy.planted import F3, F4, F5, F6, F7, F12, HALF, STRATEGIES, subsampled
from tests.privacy.test_attacks import impossible_from, textbook_laplace

from quincunx import privacy
from quincunx.errors import TooLargeError
from quincunx.privacy import (
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    UnaryEncoding,
    audit,
    privatize,
)
from quincunx.privacy._audit import lower_bound, upper_bound
from quincunx.privacy._mechanism import Mechanism

SURE = 1 - 1e-6  # a true claim is rejected, and this suite red, once in a million runs

# What each mechanism claims about a pair at its relation's distance; and how much of the claim is to be found.
TRUE = [
    (GeometricMechanism(1.0, n=1), 0, 1),
    (GeometricMechanism(1.0, n=2), [0, 5], [1, 4]),
    (GeometricMechanism(1.0, lower=0, upper=5), -3, 9),
    (GeometricMechanism(alpha=0.5), 7, 8),
    (LaplaceMechanism(1.0, 0, 1), 0.0, 1.0),
    (LaplaceMechanism(0.5, -5, 5), -9.0, 9.0),
    (GaussianMechanism(1.0, 0.01, sensitivity=1.0), 0.0, 1.0),
    (GaussianMechanism(1.0, 0.01, radius=1.0, dimension=2), [3.0, 4.0], [-0.6, -0.8]),
    (DiscreteGaussianMechanism(1.0, 0.01, sensitivity=1), 0, 1),
    (DiscreteGaussianMechanism(1.0, 0.01, lower=0, upper=3), 0, 3),
    (RandomizedResponse(1.0), 0, 1),
    (GeneralizedRandomizedResponse(1.0, 5), 0, 4),
    (UnaryEncoding(1.0, 4), 0, 1),
    (UnaryEncoding(1.0, 4, "symmetric"), 2, 1),
    (LaplaceMechanism(1.0, sensitivity=2.0), [0.0, 0.0], [1.0, 1.0]),
    (ExponentialMechanism(1.0, 1.0), [1.0] + 50 * [0.0], [0.0] + 50 * [1.0]),
]


def found(result):
    return f"claimed {result.claimed} at {result.delta}, found {result.epsilon:.4f} where {result.event}: {result.hits}"


def check_true(mechanism, x, y, draws, share):
    by_likelihood = audit(mechanism, x, y, n_draws=draws, confidence=SURE)
    assert not by_likelihood.rejected, found(by_likelihood)
    assert by_likelihood.epsilon > share * mechanism.epsilon, found(by_likelihood)

    def released(data, size):
        return mechanism.release(np.broadcast_to(data, (size, *np.shape(data))))

    claim = {"epsilon": mechanism.epsilon, "delta": mechanism.delta}
    by_cell = audit(released, x, y, n_draws=draws, confidence=SURE, vectorized=True, **claim)
    assert not by_cell.rejected, found(by_cell)
    return by_likelihood, by_cell


def times(mechanism):
    """How many times the draws. Noise has no seed: so the shares found lie ten deviations above what is asked for."""
    return 4 if isinstance(mechanism, ExponentialMechanism) else 1  # an event of 51 candidates is seen seldom


@pytest.mark.parametrize(("mechanism", "x", "y"), TRUE, ids=lambda value: repr(value)[:60])
def test_true_claims_are_accepted_and_most_of_them_is_found(mechanism, x, y):
    check_true(mechanism, x, y, 60_000 * times(mechanism), 0.3)


@pytest.mark.slow
def test_the_list_of_audited_mechanisms_is_complete():
    kinds = {thing for thing in vars(privacy).values() if isinstance(thing, type) and issubclass(thing, Mechanism)}
    assert kinds <= {type(mechanism) for mechanism, _, _ in TRUE}


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "x", "y"), TRUE, ids=lambda value: repr(value)[:60])
def test_every_mechanism_keeps_its_claim_over_many_draws(mechanism, x, y):
    by_likelihood, by_cell = check_true(mechanism, x, y, 6_000_000 * times(mechanism), 0.9)
    print(f"| {mechanism!r} | {found(by_likelihood)} | by cells {by_cell.epsilon:.4f} |")


def textbook(x, size, rng=np.random.default_rng(5)):  # noqa: B008
    return textbook_laplace(x, rng, size)


def test_the_laplace_law_in_floats_is_rejected_by_its_last_bits():
    def impossible(outputs):
        return impossible_from(0.0, outputs)

    known = {"epsilon": 1.0, "vectorized": True, "n_draws": 6000, "confidence": SURE}
    result = audit(textbook, 0.0, 1.0, statistic=impossible, **known)
    assert result.rejected, found(result)
    assert result.direction == "y over x"
    assert result.hits[1] == 0
    blind = audit(textbook, 0.0, 1.0, **known)
    assert not blind.rejected  # its law is right but for those bits
    ours = LaplaceMechanism(1.0, 0.0, 1.0)
    assert not audit(ours, 0.0, 1.0, statistic=impossible, n_draws=6000, confidence=SURE).rejected


def test_planted_claims_about_our_own_noise_are_rejected():
    planted = {
        "F8 the parallel maximum, of one replaced record": audit(HALF, [1, 0], [0, 1], epsilon=math.log(2)),
        "F9 steps in l2 counted by rounding up": audit(HALF, [0, 0], [2, 2], epsilon=math.log(8), n_draws=400_000),
        "F10 subsampling a replaced record by the add/remove formula": audit(
            subsampled, 1, 0, epsilon=math.log(1.5), vectorized=True
        ),
        "F11 a sensitivity of 2 halved at distance 1": audit(HALF, 0, 2, epsilon=math.log(2)),
        "a record moved under the wrong relation": audit(RandomizedResponse(1.0), [0, 0], [1, 1]),
        "privatize, of a whole count": audit(GeometricMechanism(1.0, n=1), [3], [0], epsilon=1.0),
    }
    for name, result in planted.items():
        print(name, found(result))
        assert result.rejected, f"{name}: {found(result)}"


def reject(claim, draws):
    result = audit(
        claim.mechanism(3),
        True,
        False,
        epsilon=claim.epsilon,
        delta=claim.delta,
        statistic=lambda ratios: ratios,
        vectorized=True,
        n_draws=draws,
    )
    print(claim.name, found(result))
    return result


@pytest.mark.parametrize("claim", [F7, F12], ids=lambda claim: claim.name)
def test_planted_strategies_are_rejected(claim):
    assert reject(claim, 200_000).rejected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "draws"),
    [(F3, 2 * 10**6), (F4, 4 * 10**8), (F5, 10**7), (F6, 10**7), (F7, 10**6), (F12, 10**6)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_planted_strategies_are_rejected_however_small_their_gain(claim, draws):
    assert reject(claim, draws).rejected


@pytest.mark.parametrize("given", [{"sensitivity": 1.0, "scales": [1.0, 2.0]}, {"sensitivity": [1.0, 0.5]}])
def test_mechanisms_of_so_many_numbers_are_audited_draw_by_draw(given):
    mechanism = GaussianMechanism(2.0, 0.01, **given)
    assert not mechanism.stacks
    assert not audit(mechanism, [0.0, 0.0], [1.0, 0.0], n_draws=3000, confidence=SURE).rejected


def test_a_vector_under_the_profile_of_one_number_is_rejected():
    # F2: at |v|_2 = 2 the profile of one number claims .13758 at 20/3. The bounds found are 7.75 +- .15.
    mechanism = DiscreteGaussianMechanism(variance=0.3, delta=0.15)
    result = audit(mechanism, [0] * 4, [-1] * 4, epsilon=20 / 3, delta=0.13759, n_draws=1_000_000, confidence=SURE)
    print("F2", found(result))
    assert result.rejected


def test_a_claim_scaled_linearly_with_the_distance_is_rejected():
    # F1 itself has an event of probability 1e-4 against less than 1e-12, which no draws can tell; so its like: at
    # distance 1 this mechanism has (.3, .01627), at 16 it is said to have (4.8, .2604), and has .7047. The bounds found
    # are 6.8 +- .14.
    mechanism = DiscreteGaussianMechanism(variance=16, delta=0.01628)
    assert mechanism.epsilon < 0.3
    result = audit(mechanism, 0, 16, epsilon=4.8, delta=16 * mechanism.delta, n_draws=240_000, confidence=SURE)
    print("F1, its like", found(result))
    assert result.rejected


@pytest.mark.parametrize("claim", STRATEGIES, ids=lambda claim: claim.name)
def test_the_planted_strategies_have_the_published_deltas(claim):
    assert claim.exact == pytest.approx(claim.truth, rel=1e-8)
    assert claim.exact > claim.delta


def test_the_bounds_are_those_of_clopper_and_pearson():
    for hits, draws in [(0, 10), (3, 10), (10, 10), (1, 10**6), (41, 333_333)]:
        low, high = float(lower_bound(hits, draws, 1e-3)), float(upper_bound(hits, draws, 1e-3))
        if hits:
            assert stats.binom.sf(hits - 1, draws, low) == pytest.approx(1e-3)
        else:
            assert low == 0
        if hits < draws:
            assert stats.binom.cdf(hits, draws, high) == pytest.approx(1e-3)
        else:
            assert high == 1


@pytest.mark.statistical
def test_a_true_claim_is_rejected_no_more_often_than_stated():
    # A claim that is tight, at confidence .5: of 300 audits at most half are rejections, false-alarm rate 1e-6.
    keep = math.e / (1 + math.e)
    rng = np.random.default_rng(8)

    def response(bit, size):
        return rng.random(size) < (keep if bit else 1 - keep)

    audits = [audit(response, 0, 1, epsilon=1.0, vectorized=True, n_draws=600, confidence=0.5) for _ in range(300)]
    assert sum(result.rejected for result in audits) <= stats.binom.isf(1e-6, 300, 0.5)


def test_outputs_of_any_kind_are_audited():
    rng = np.random.default_rng(2)
    words = audit(lambda x: ["yes", "no"][int(rng.random() < (0.9 if x else 0.1))], 1, 0, epsilon=1.0, n_draws=3000)
    assert words.event == "coordinate 0 is no"
    assert words.rejected
    ragged = audit(
        lambda x: [0] * (x + int(rng.random() < 0.5)),
        4,
        0,
        epsilon=1.0,
        n_draws=600,
        statistic=lambda z: list(map(len, z)),
    )
    assert ragged.rejected
    assert audit(lambda x: privatize(x, epsilon=1.0), [2, 0], [1, 0], n_draws=60).claimed is None
    rows = audit(lambda x, n: np.full((n, 2), x), 1, 0, epsilon=1.0, vectorized=True, n_draws=600)
    assert rows.event in ("the output is [1, 1]", "the output is [0, 0]")
    reals = audit(lambda x, n: rng.normal([0, 9 * x, 0], size=(n, 3)), 1, 0, epsilon=1.0, vectorized=True, n_draws=6000)
    assert reals.event.startswith("coordinate 1 lies in [")
    assert reals.rejected


def test_progress_is_reported_and_stops_the_audit():
    seen = []
    audit(RandomizedResponse(1.0), 0, 1, n_draws=600, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (600, 600)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(RandomizedResponse(1.0), 0, 1, n_draws=600, progress=stop)


def test_bad_input_is_refused_by_name(monkeypatch):
    fine = RandomizedResponse(1.0)
    for bad in (0, 1, math.nan):
        with pytest.raises(ValueError, match="`confidence`"):
            audit(fine, 0, 1, confidence=bad)
    for bad in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="`delta`"):
            audit(fine, 0, 1, delta=bad)
    with pytest.raises(ValueError, match="`epsilon` must be at least 0, got -1"):
        audit(fine, 0, 1, epsilon=-1)
    with pytest.raises(ValueError, match="`n_draws`"):
        audit(fine, 0, 1, n_draws=23)
    with pytest.raises(TypeError, match="`mechanism`"):
        audit(3, 0, 1)
    with pytest.raises(TypeError, match="`statistic`"):
        audit(fine, 0, 1, statistic=3)
    with pytest.raises(TypeError, match="`vectorized`"):
        audit(fine, 0, 1, vectorized=1)
    with pytest.raises(ValueError, match="`statistic` must return a number"):
        audit(fine, 0, 1, statistic=lambda z: math.nan)
    with pytest.raises(ValueError, match="`statistic` must be given"):
        audit(lambda x: {"a": x}, 1, 0, n_draws=24)
    with pytest.raises(ValueError, match="along its first axis"):
        audit(lambda x, n: np.zeros(3), 1, 0, vectorized=True, n_draws=600)
    monkeypatch.setattr("quincunx._check.available_memory", lambda: 2**20)
    with pytest.raises(TooLargeError, match="choosing an event"):
        audit(lambda x, n: np.zeros((n, 100)), 1, 0, vectorized=True, n_draws=10**7)
    with pytest.raises(TooLargeError, match="an array of `y` needs"):
        audit(lambda x, n: np.zeros(n), 0, range(10**12), vectorized=True)


def test_a_claim_is_that_of_the_release_at_the_delta_that_is_given():
    mechanism = GaussianMechanism(1.0, 0.1, sensitivity=1.0)
    result = audit(mechanism, [0.0], [1.0], delta=1e-3, n_draws=200_000, confidence=SURE)
    assert (result.claimed, result.rejected) == (mechanism.guarantee.epsilon_at(1e-3), False)
    assert result.claimed > 2 * mechanism.epsilon  # that is at a delta of .1
    assert audit(mechanism, [0.0], [1.0], delta=0.0, n_draws=2000).claimed is None
    assert audit(RandomizedResponse(1.0), 0, 1, delta=0.0, n_draws=2000).claimed == 1.0
    choices = audit(ExponentialMechanism(1.0, 1.0), np.zeros((6, 2)), np.tile([1.0, -1.0], (6, 1)), n_draws=2000)
    assert choices.claimed == 6.0


def test_the_epsilon_of_a_stranger_is_no_claim_at_another_delta():
    class Stranger:
        epsilon, delta = 1.0, 0.1

        def release(self, x):
            return x

    assert audit(Stranger(), 0, 1, n_draws=100).claimed == 1.0
    assert audit(Stranger(), 0, 1, delta=0.1, n_draws=100).claimed == 1.0
    assert audit(Stranger(), 0, 1, delta=0.01, n_draws=100).claimed is None
