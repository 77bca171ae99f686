"""Mechanisms for bits and categories: exact guarantees, laws, privacy, estimates, bad input."""

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from tests.statistics import assert_discrete_fit, assert_share

from quincunx.privacy import (
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LocalHashing,
    PrivacyGuarantee,
    RandomizedResponse,
    ReplaceOne,
    SubsetSelection,
    UnaryEncoding,
)

EPSILONS = [1e-9, 0.01, 0.5, 1.0, 3.0, 20.0, 60.0, 1e4]


def exact_loss(mechanism):
    """The largest log ratio of probabilities, from the whole numbers that the sampler compares with, in 60 digits."""
    word = mpmath.mpf(2) ** 64
    if isinstance(mechanism, GeneralizedRandomizedResponse):
        other = mpmath.mpf(mechanism._redraw) / word / mechanism.categories
        keep = 1 - mpmath.mpf(mechanism._redraw) / word + other
        return mpmath.log(keep / other)
    q = mpmath.mpf(mechanism._flip) / word
    times = 2 if isinstance(mechanism, UnaryEncoding) and mechanism.variant == "symmetric" else 1
    return times * mpmath.log((1 - q) / q)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_stated_epsilon_is_that_of_the_probabilities_used(epsilon):
    for mechanism in (
        RandomizedResponse(epsilon),
        GeneralizedRandomizedResponse(epsilon, 7),
        UnaryEncoding(epsilon, 5),
        UnaryEncoding(epsilon, 5, "symmetric"),
    ):
        with mpmath.workdps(60):
            loss = exact_loss(mechanism)
            assert loss <= mechanism.guarantee.exact_epsilon.numerator / mpmath.mpf(
                mechanism.guarantee.exact_epsilon.denominator
            )
            assert loss <= epsilon
            assert loss >= mechanism.epsilon * (1 - mpmath.mpf(2) ** -49)
            if 0.01 <= epsilon <= 20:
                assert loss > epsilon * (1 - mpmath.mpf(10) ** -9)


def test_epsilons_of_several_records_sum_to_at_most_the_one_asked_for():
    for epsilon, records in itertools.product((0.1, 0.3, 0.7, 1.1), (3, 5, 7, 9)):
        assert RandomizedResponse(epsilon, relation=ReplaceOne(records)).epsilon <= epsilon
        assert UnaryEncoding(epsilon, 4, relation=ReplaceOne(records)).epsilon <= epsilon


def test_probabilities_are_the_known_ones():
    assert RandomizedResponse(1.0).keep_probability == pytest.approx(0.7310585786300049, rel=1e-15)
    e = math.e
    mechanism = GeneralizedRandomizedResponse(1.0, 5)
    assert mechanism.keep_probability == pytest.approx(e / (e + 4), rel=1e-15)
    assert mechanism.other_probability == pytest.approx(1 / (e + 4), rel=1e-15)
    optimal, symmetric = UnaryEncoding(1.0, 5), UnaryEncoding(1.0, 5, "symmetric")
    assert (optimal.one_probability, optimal.zero_probability) == pytest.approx((0.5, 1 / (e + 1)), rel=1e-15)
    p = math.exp(0.5) / (1 + math.exp(0.5))
    assert (symmetric.one_probability, symmetric.zero_probability) == pytest.approx((p, 1 - p), rel=1e-15)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(0.8),
        GeneralizedRandomizedResponse(0.8, 4),
        UnaryEncoding(0.8, 4),
        UnaryEncoding(0.8, 4, "symmetric"),
    ],
    ids=repr,
)
def test_every_output_for_every_pair_of_inputs_keeps_the_ratio(mechanism):
    k = getattr(mechanism, "categories", 2)
    outputs = list(itertools.product((0, 1), repeat=k)) if isinstance(mechanism, UnaryEncoding) else list(range(k))
    table = np.array([mechanism.log_likelihood(outputs, x) for x in range(k)])  # inputs by outputs
    assert np.exp(table).sum(axis=1) == pytest.approx(np.ones(k), rel=1e-13)
    worst = np.ptp(table, axis=0).max()
    assert worst <= mechanism.epsilon * (1 + 1e-12)
    assert worst == pytest.approx(0.8, rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("variant", ["optimal", "symmetric"])
def test_rows_fit_their_likelihood(variant):
    mechanism = UnaryEncoding(1.2, 4, variant)
    rows = mechanism.release(np.full(100_000, 2), insecure_seed=5).values
    outputs = np.array(list(itertools.product((0, 1), repeat=4)))
    counts = np.bincount(rows @ [8, 4, 2, 1], minlength=16)
    assert_discrete_fit(counts, np.exp(mechanism.log_likelihood(outputs, 2)))


@pytest.mark.statistical
def test_responses_fit_their_likelihood():
    response = RandomizedResponse(0.7)
    bits = response.release(np.ones(100_000, dtype=bool), insecure_seed=6).values
    assert_share(bits.sum(), bits.size, response.keep_probability)
    mechanism = GeneralizedRandomizedResponse(0.7, 5)
    values = mechanism.release(np.full(100_000, 3), insecure_seed=6).values
    assert_discrete_fit(np.bincount(values, minlength=5), np.exp(mechanism.log_likelihood(range(5), 3)))


@pytest.mark.statistical
def test_estimates_find_the_shares():
    # Six standard deviations: far beyond a false-alarm rate of 1e-6 over all coordinates.
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    users = 200_000
    values = np.repeat(np.arange(5), (shares * users).astype(int))
    for mechanism in (GeneralizedRandomizedResponse(1.0, 5), UnaryEncoding(1.0, 5), UnaryEncoding(1.0, 5, "symmetric")):
        estimate = mechanism.estimate(mechanism.release(values, insecure_seed=9))
        assert np.abs(estimate - shares).max() < 6 * 0.0045
    released = RandomizedResponse(1.0).release(values < 2, insecure_seed=10)
    assert RandomizedResponse(1.0).estimate(released) == pytest.approx(0.7, abs=6 * 0.0025)


def test_estimates_are_unbiased_by_enumeration():
    for mechanism in (UnaryEncoding(0.9, 3), UnaryEncoding(0.9, 3, "symmetric")):
        outputs = np.array(list(itertools.product((0, 1), repeat=3)))
        for x in range(3):
            probabilities = np.exp(mechanism.log_likelihood(outputs, x))
            mean = sum(p * mechanism.estimate(row[None]) for p, row in zip(probabilities, outputs, strict=True))
            assert mean == pytest.approx(np.eye(3)[x], abs=1e-13)
    mechanism = GeneralizedRandomizedResponse(0.9, 3)
    mean = sum(np.exp(mechanism.log_likelihood(z, 1)) * mechanism.estimate([z]) for z in range(3))
    assert mean == pytest.approx([0, 1, 0], abs=1e-13)


def test_insecure_seeds_repeat_the_answers_and_are_told():
    for mechanism in (RandomizedResponse(1.0), GeneralizedRandomizedResponse(1.0, 2), UnaryEncoding(1.0, 2)):
        bits = np.tile([0, 1, 1], 100)
        one, same = (mechanism.release(bits, insecure_seed=3) for _ in range(2))
        assert one == same
        assert one.guarantee.numerics == "insecure"
        assert mechanism.release(bits).guarantee.numerics == "exact"
        assert not np.array_equal(mechanism.release(bits).values, mechanism.release(bits).values)


def test_bad_input_is_refused_with_name_rule_value_and_index():
    for bad in (0, -1.0, math.nan, math.inf):
        for make in (
            lambda bad=bad: RandomizedResponse(bad),
            lambda bad=bad: GeneralizedRandomizedResponse(bad, 3),
            lambda bad=bad: UnaryEncoding(bad, 3),
        ):
            with pytest.raises(ValueError, match="`epsilon`"):
                make()
    for mechanism in (GeneralizedRandomizedResponse(1.0, 3), UnaryEncoding(1.0, 3)):
        with pytest.raises(ValueError, match=r"`x` must hold whole numbers between 0 and 2, got 3 at index \(1,\)"):
            mechanism.release([0, 3, 9])
        with pytest.raises(ValueError, match=r"got -1"):
            mechanism.release(-1)
        with pytest.raises(ValueError, match="`x`"):
            mechanism.release([0.5])
    with pytest.raises(ValueError, match=r"`x` must hold whole numbers between 0 and 1, got 2"):
        RandomizedResponse(1.0).release([0, 2])
    with pytest.raises(ValueError, match="`categories` must be between 2"):
        UnaryEncoding(1.0, 1)
    with pytest.raises(ValueError, match="`variant`"):
        UnaryEncoding(1.0, 3, "best")
    with pytest.raises(ValueError, match="last axis of length 3"):
        UnaryEncoding(1.0, 3).log_likelihood([0, 1], 0)
    with pytest.raises(ValueError, match="at least one report"):
        RandomizedResponse(1.0).estimate([])
    with pytest.raises(ValueError, match="at most `users` = 10"):
        UnaryEncoding(1.0, 2).estimate_from_counts([11, 0], 10)
    with pytest.raises(TypeError, match="`x`"):
        RandomizedResponse(1.0).release(["yes"])
    with pytest.raises(ValueError, match="`epsilon`"):
        RandomizedResponse(1e-30)


def test_empty_and_scalar_inputs_keep_their_shape():
    assert RandomizedResponse(1.0).release([]).values.shape == (0,)
    assert RandomizedResponse(1.0).release(True).values.shape == ()
    assert UnaryEncoding(1.0, 4).release(2).values.shape == (4,)
    assert UnaryEncoding(1.0, 4).release(np.zeros((2, 0), dtype=int)).values.shape == (2, 0, 4)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(3.0),
        GeneralizedRandomizedResponse(3.0, 4),
        UnaryEncoding(3.0, 4),
        HadamardResponse(3.0, 4),
        LocalHashing(3.0, 4),
        SubsetSelection(3.0, 4),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_is_masked_in_a_release_is_not_taken_for_zeros(mechanism):
    release = mechanism.release(np.full(100, 1))
    hidden = release.masked(np.arange(release.values.size).reshape(release.values.shape) < 10)
    for call in (
        lambda z: mechanism.estimate(z),
        lambda z: mechanism.log_likelihood(z, np.full(100, 1)),
        lambda z: mechanism.estimate([z]),
        lambda z: mechanism.estimate([[z.values]]),
    ):
        with pytest.raises(ValueError, match="masked"):
            call(hidden)


@pytest.mark.parametrize("epsilon", [1e-14, 1e-9, 3e-8, 1e-3])
@pytest.mark.parametrize("variant", ["optimal", "symmetric", "threshold"])
def test_unary_encoding_of_tiny_levels_keeps_them_and_comes_back_from_words(epsilon, variant):
    for threshold in (None, 0.5, 0.8) if variant == "threshold" else (None,):
        found = UnaryEncoding(epsilon, 3, variant, threshold=threshold).guarantee
        assert 0.99 * epsilon < found.epsilon <= epsilon
        assert PrivacyGuarantee.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    with pytest.raises(ValueError, match=r"`epsilon` must be .*large enough"):
        UnaryEncoding(1e-20, 3, variant)
