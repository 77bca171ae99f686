"""Measures of channels: known answers, identities between measures, exact fractions."""

import math
import pickle
import random
from fractions import Fraction as F

import mpmath as mp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.errors import ConvergenceWarning
from quincunx.graphs import complete, cycle, distances, hamming, path
from quincunx.leakage import Channel, distance_channel, geometric_channel, randomized_response, renyi_entropy
from quincunx.privacy import AddRemove, ReplaceOne

LN2 = math.log(2)


def random_channel(seed, inputs, outputs):
    rows = np.random.default_rng(seed).random((inputs, outputs)) ** 3
    return Channel(rows / rows.sum(axis=1, keepdims=True))


def random_prior(seed, n):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


def test_randomized_response_has_the_known_capacities():
    channel = randomized_response(4, LN2)
    assert math.isclose(channel.min_capacity(), 0.678071905112638, abs_tol=1e-14)
    found = channel.shannon_capacity()
    assert found.lower <= 0.0780719051126377 + 1e-15
    assert found.upper >= 0.0780719051126377 - 1e-15
    for n, epsilon in [(2, 0.1), (7, 1.5), (30, 4.0)]:
        known = math.log2(n * math.exp(epsilon) / (math.exp(epsilon) + n - 1))
        assert math.isclose(randomized_response(n, epsilon).min_capacity(), known, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("graph", "min_capacity", "shannon"),
    [
        (hamming(2, 3), 1.16992500144231, 0.169925001442312),
        (hamming(3, 2), 1.24511249783653, 0.245112497836532),
    ],
)
def test_distance_channels_have_the_known_capacities(graph, min_capacity, shannon):
    channel = distance_channel(graph, LN2)
    assert math.isclose(channel.min_capacity(), min_capacity, rel_tol=1e-13)
    found = channel.shannon_capacity()
    assert found.lower - 1e-13 <= shannon <= found.upper + 1e-13
    assert found.upper - found.lower <= 1e-9


@pytest.mark.parametrize(
    ("n", "shannon", "digits"),
    [(3, 0.2317265875893, 1e-13), (5, 0.5376454676795, 1e-13), (20, 1.78051768, 5e-9), (400, 5.746936, 5e-7)],
)
def test_truncated_geometric_channels_have_the_known_capacities(n, shannon, digits):
    found = geometric_channel(n, LN2).shannon_capacity()
    assert found.lower - digits <= shannon <= found.upper + digits
    assert found.upper - found.lower <= 1e-9
    assert math.isclose(geometric_channel(n, LN2).mutual_information(found.prior), found.lower, abs_tol=1e-9)


def test_truncated_geometric_channel_on_three_points_has_the_known_rows():
    channel = geometric_channel(3, LN2)
    np.testing.assert_allclose(channel.matrix, np.array([[4, 1, 1], [2, 2, 2], [1, 1, 4]]) / 6, rtol=1e-15)
    assert math.isclose(channel.min_capacity(), math.log2(5 / 3), rel_tol=1e-14)
    assert math.isclose(geometric_channel(5, LN2).min_capacity(), math.log2(7 / 3), rel_tol=1e-14)


@pytest.mark.parametrize(
    ("rows", "known"),
    [([[0.89, 0.11], [0.11, 0.89]], 0.500084041835472), ([[1, 0], [0.5, 0.5]], 0.321928094887362), ([[1.0]], 0.0)],
)
def test_capacity_intervals_hold_textbook_values(rows, known):
    found = Channel(rows).shannon_capacity(1e-11)
    assert found.lower <= known + 1e-15
    assert found.upper >= known - 1e-15
    assert found.upper - found.lower <= 1e-11


def test_a_capacity_that_is_not_reached_in_time_warns_and_is_an_interval_all_the_same():
    channel = geometric_channel(50, -math.log(0.9))
    with pytest.warns(ConvergenceWarning, match="interval of width"):
        found = channel.shannon_capacity(1e-11)
    assert 0.9092277 < found.lower < 0.909228 < found.upper < 0.9093


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 6))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_measures_agree_with_their_definitions(seed, inputs, outputs):
    channel, prior = random_channel(seed, inputs, outputs), random_prior(seed + 1, inputs)
    joint = prior[:, None] * channel.matrix
    vulnerability = joint.max(axis=0).sum()
    assert math.isclose(channel.bayes_vulnerability(prior), vulnerability, rel_tol=1e-14)
    assert math.isclose(channel.conditional_min_entropy(prior), -math.log2(vulnerability), abs_tol=1e-13)
    assert math.isclose(channel.min_entropy_leakage(prior), math.log2(vulnerability / prior.max()), abs_tol=1e-13)
    assert math.isclose(channel.additive_leakage(prior), vulnerability - prior.max(), abs_tol=1e-14)
    assert math.isclose(2 ** channel.min_capacity(), channel.matrix.max(axis=0).sum(), rel_tol=1e-13)
    assert -1e-12 <= channel.min_capacity() <= math.log2(min(inputs, outputs)) + 1e-12
    marginal = joint.sum(axis=0)
    expected = sum(
        j * math.log2(j / (p * q))
        for row, p in zip(joint, prior, strict=True)
        for j, q in zip(row, marginal, strict=True)
        if j
    )
    assert math.isclose(channel.mutual_information(prior), expected, abs_tol=1e-12)
    outer, inners = channel.posterior(prior)
    np.testing.assert_allclose(outer[:, None] * inners, joint.T, atol=1e-15)


def test_information_is_finite_where_the_chance_of_an_output_is_below_all_floats():
    for weight, chance in ((5e-324, 1.0), (1e-310, 1e-20), (1e-250, 1e-100)):
        assert Channel([[1.0, 0.0], [1 - chance, chance]]).mutual_information([1.0, weight]) < 1e-280
    assert Channel([[1.0, 5e-324]] * 2).mutual_information() == 0.0


@given(st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_no_gain_leaks_more_than_the_min_capacity(seed):
    channel, prior = random_channel(seed, 5, 4), random_prior(seed + 1, 5)
    gain = np.random.default_rng(seed + 2).random((6, 5)) ** 4
    leakage = channel.g_leakage(gain, prior)
    assert -1e-12 <= leakage <= channel.min_capacity() + 1e-12
    assert math.isclose(channel.g_vulnerability(np.eye(5), prior), channel.bayes_vulnerability(prior), rel_tol=1e-14)
    assert channel.g_leakage(np.zeros((2, 5))) == 0


@given(st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_post_processing_leaks_no_more(seed):
    channel, after, prior = random_channel(seed, 4, 5), random_channel(seed + 1, 5, 3), random_prior(seed + 2, 4)
    composed = channel.compose(after)
    np.testing.assert_allclose(composed.matrix, channel.matrix @ after.matrix)
    assert composed.bayes_vulnerability(prior) <= channel.bayes_vulnerability(prior) + 1e-12
    assert composed.mutual_information(prior) <= channel.mutual_information(prior) + 1e-12
    assert composed.dp_epsilon(path(4)) <= channel.dp_epsilon(path(4)) + 1e-12


@given(st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_remapping_to_the_best_guess_keeps_vulnerability_and_puts_maxima_on_the_diagonal(seed):
    channel, prior = random_channel(seed, 4, 7), random_prior(seed + 2, 4)
    remapped = channel.map_remap(prior)
    assert math.isclose(remapped.bayes_vulnerability(prior), channel.bayes_vulnerability(prior), rel_tol=1e-13)
    weighted = prior[:, None] * remapped.matrix
    assert (weighted <= np.diagonal(weighted) + 1e-15).all()
    assert remapped.dp_epsilon(cycle(4)) <= channel.dp_epsilon(cycle(4)) + 1e-12


def test_min_capacities_and_levels_of_channels_side_by_side():
    left, right = randomized_response(3, 0.4), geometric_channel(4, 0.7)
    both = left.kron(right)
    assert math.isclose(both.min_capacity(), left.min_capacity() + right.min_capacity(), rel_tol=1e-13)
    product = nx.convert_node_labels_to_integers(
        nx.cartesian_product(nx.complete_graph(3), nx.path_graph(4)), ordering="sorted"
    )
    assert math.isclose(both.dp_epsilon(product), 0.7, rel_tol=1e-13)


def test_privacy_levels_of_a_small_channel_by_hand():
    channel = Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    graph = path(2)
    assert math.isclose(channel.dp_epsilon(graph), LN2, rel_tol=1e-15)
    assert math.isclose(channel.dp_delta(graph, 0.0), 0.25, rel_tol=1e-15)
    assert math.isclose(channel.dp_delta(graph, math.log(1.5)), 0.5 - 1.5 * 0.25, rel_tol=1e-14)
    assert channel.dp_delta(graph, math.inf) == 0.0
    assert math.isclose(channel.renyi_dp(graph, 1), 0.25 * LN2, rel_tol=1e-14)
    assert math.isclose(channel.renyi_dp(graph, 2), math.log(1 + 0.125 + 0.25), rel_tol=1e-14)
    assert math.isclose(channel.renyi_dp(graph, math.inf), LN2, rel_tol=1e-15)


def test_a_zero_that_faces_more_is_an_infinite_level_and_not_an_error():
    channel = Channel([[1, 0, 0], [0.5, 0.5, 0]])
    assert channel.dp_epsilon(path(2)) == math.inf
    assert channel.renyi_dp(path(2), 2) == math.inf
    assert channel.renyi_dp(path(2), 0.5) < math.inf
    assert Channel([["1", "0"], ["1/2", "1/2"]], exact=True).likelihood_ratio(path(2)) == math.inf
    assert channel.dp_epsilon((2, [])) == 0.0
    assert channel.min_capacity() == math.log2(1.5)


def test_the_level_of_a_graph_metric_is_that_on_its_edges():
    for seed, graph in enumerate([path(5), cycle(6), hamming(3, 2), complete(4)]):
        channel = random_channel(seed, graph.num_vertices, 9)
        table = distances(graph)
        assert math.isclose(channel.metric_epsilon(table), channel.dp_epsilon(graph), rel_tol=1e-12)
        assert channel.metric_epsilon(graph) == channel.dp_epsilon(graph)


def test_for_a_general_metric_all_pairs_count():
    channel = Channel([[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]])
    metric = np.array([[0, 1, 1], [1, 0, 5], [1, 5, 0.0]])
    assert math.isclose(channel.metric_epsilon(metric), math.log(5), rel_tol=1e-14)
    metric[0, 2] = metric[2, 0] = np.inf
    assert math.isclose(channel.metric_epsilon(metric), math.log(4) / 5, rel_tol=1e-14)


def test_levels_do_not_depend_on_the_number_of_threads():
    channel, graph = random_channel(3, 64, 700), hamming(6, 2)
    for measure in (
        lambda t: channel.dp_epsilon(graph, threads=t),
        lambda t: channel.dp_delta(graph, 0.3, threads=t),
        lambda t: channel.renyi_dp(graph, 2.5, threads=t),
    ):
        assert measure(1) == measure(2) == measure(5)


def test_a_channel_promises_its_level_rounded_up():
    promise = randomized_response(4, 0.7).guarantee(complete(4))
    assert 0.7 <= promise.epsilon < 0.7 + 1e-14
    assert promise.relation == ReplaceOne()
    both = promise & geometric_channel(4, 0.3).guarantee(path(4))
    assert math.isclose(both.epsilon, 1.0, rel_tol=1e-13)
    assert geometric_channel(4, 0.3).guarantee(path(4), AddRemove()).relation == AddRemove()
    assert Channel([[1], [1]]).guarantee(path(2)).epsilon == 0
    with pytest.raises(ValueError, match="got an infinite level"):
        Channel([[1, 0], [0, 1]]).guarantee(path(2))


def test_the_promise_of_an_exact_channel_is_never_below_its_level():
    one, half = F(1), F(1, 2)
    graph = path(2)
    tiny = Channel([[F(10**17, 2 * 10**17 + 1), F(10**17 + 1, 2 * 10**17 + 1)], [half, half]], exact=True)
    assert tiny.guarantee(graph).epsilon > 0
    rng = random.Random(4)
    shifts = [F(1, 10**power) for power in (1, 9, 15, 16, 17, 40, 300, 320, 323, 330, 1000)]
    shifts += [F(rng.randrange(1, 10**30), 10 ** rng.randrange(31, 60)) for _ in range(300)]
    shifts += [half - F(1, 2 * 10**power) for power in (1, 5, 20, 310, 1000)]
    with mp.workdps(1100):
        for shift in shifts:
            first = half - shift if shift < half else shift
            rows = [[first, one - first], [half, half]]
            channel = Channel(rows, exact=True)
            ratio = max(max(a, b) / min(a, b) for a, b in zip(*rows, strict=True))
            level = mp.log1p((mp.mpf(ratio.numerator) - ratio.denominator) / ratio.denominator)
            epsilon = channel.guarantee(graph).epsilon
            assert level <= epsilon <= level * (1 + mp.mpf(2) ** -48) + mp.mpf("1e-322"), shift
            assert abs(channel.dp_epsilon(graph) / level - 1) < 1e-15 or level < 1e-300


def test_rows_that_differ_in_one_bit_are_not_promised_to_be_equal():
    # The ratio of these two rounds to 1.
    high = 1 - 2.0**-53
    one, other = [0.5, 0.5], [0.5 * high, 1 - 0.5 * high]
    epsilon = Channel([one, other]).guarantee(path(2)).epsilon
    assert epsilon >= -math.log1p(-(2.0**-53))


def test_one_input_leaks_nothing():
    channel = Channel([[0.25, 0.75]])
    assert channel.bayes_vulnerability() == 1.0
    assert channel.min_capacity() == channel.min_entropy_leakage() == channel.additive_leakage() == 0.0
    assert channel.dp_epsilon(path(1)) == channel.mutual_information() == 0.0


def test_exact_channels_answer_in_fractions():
    channel = Channel([["1/2", "1/3", "1/6"], [F(1, 4), F(1, 4), F(1, 2)]], exact=True)
    assert channel.bayes_vulnerability() == F(2, 3)
    assert channel.bayes_vulnerability([F(1, 4), F(3, 4)]) == F(3, 4)
    assert channel.additive_leakage() == F(1, 6)
    assert isinstance(channel.bayes_vulnerability([0.25, 0.75]), float)
    assert channel.likelihood_ratio(path(2)) == 3
    assert channel.map_remap().fractions == ((F(5, 6), F(1, 6)), (F(1, 2), F(1, 2)))
    assert channel.compose(Channel([[1], [1], [1]], exact=True)).fractions == ((1,), (1,))
    assert channel.kron(channel).fractions[0][0] == F(1, 4)
    assert channel.matrix[0, 1] == 1 / 3


def test_a_channel_keeps_its_own_copy_and_pickles():
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    channel = Channel(rows, inputs=["a", "b"], outputs="xy")
    rows[0, 0] = 9
    assert channel.matrix[0, 0] == 0.5
    assert not channel.matrix.flags.writeable
    restored = pickle.loads(pickle.dumps(channel))
    assert restored == channel
    assert hash(restored) == hash(channel)
    assert restored.inputs == ("a", "b")
    for unordered in ({"a", "b"}, {"a": 0, "b": 1}):
        with pytest.raises(TypeError, match="`inputs` must be in an order, as a list is"):
            Channel(channel.matrix, inputs=unordered)
    exact = Channel([["1/3", "2/3"]], exact=True)
    assert pickle.loads(pickle.dumps(exact)) == exact


def test_channels_that_are_equal_have_one_hash():
    assert Channel([[0.0, 1.0]]) == Channel([[-0.0, 1.0]])
    assert hash(Channel([[0.0, 1.0]])) == hash(Channel([[-0.0, 1.0]]))


@pytest.mark.parametrize("step", [0, 2**-10, 2**-25, 2**-38, 2**-46])
def test_figures_of_floats_are_off_by_some_1e15_absolutely_or_relatively(step):
    rng, unit = np.random.default_rng(5), 2**50
    for size in (2, 5, 40):
        rows = rng.integers(unit // 2 // size, unit // size, (3, size))
        if step:
            rows = rows[0] + rng.integers(-1, 2, (3, size)) * int(step * unit / size)
        rows[:, 0] += unit - rows.sum(axis=1)
        floats = Channel(rows / unit)
        exact = Channel([[F(entry, unit) for entry in row] for row in rows.tolist()], exact=True)
        for ask in (
            lambda c: c.dp_epsilon(complete(3)),
            *(lambda c, e=e: c.dp_delta(complete(3), e) for e in (0.0, step / 2, 0.1)),
            *(lambda c, a=a: c.renyi_dp(complete(3), a) for a in (1.0, 1.000001, 1.5, 2.0, 10.0, 100.0)),
            *(lambda c, p=p: c.mutual_information(p) for p in (None, [0.5, 0.25, 0.25])),
            lambda c: c.min_capacity(),
            lambda c: c.min_entropy_leakage([0.5, 0.25, 0.25]),
        ):
            assert float(ask(floats)) == pytest.approx(float(ask(exact)), rel=1e-14, abs=1e-14)


def test_rows_are_normalized_on_request_only():
    assert Channel([[1, 3], [2, -1e-12]], normalize=True).matrix.tolist() == [[0.25, 0.75], [1.0, 0.0]]


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 1 + 1e-12, 2, 50, math.inf])
def test_renyi_entropy_is_its_definition(alpha):
    p = np.array([0.5, 0.25, 0.125, 0.125, 0.0])
    if alpha in (0, 1, math.inf):
        expected = {0: 2.0, 1: 1.75, math.inf: 1.0}[alpha]
    elif abs(alpha - 1) < 1e-9:
        expected = 1.75
    else:
        expected = math.log2((p[p > 0] ** alpha).sum()) / (1 - alpha)
    assert math.isclose(renyi_entropy(p, alpha), expected, rel_tol=1e-11)


def test_exact_channels_have_the_capacity_of_their_column_maxima():
    exact = Channel([["3/4", "1/4", 0], ["1/2", "1/4", "1/4"]], exact=True)  # maxima 3/4, 1/4, 1/4
    assert math.isclose(exact.min_capacity(), math.log2(5 / 4), rel_tol=1e-14)


def test_tiny_gains_and_rare_outputs_keep_their_digits():
    channel = Channel([[0.75, 0.25], [0.5, 0.5]])
    assert (
        channel.g_leakage(np.eye(2) * 5e-324)
        == channel.g_leakage(np.eye(2))
        == channel.g_leakage(np.eye(2) * 2.0**1023)
    )
    assert channel.g_vulnerability(np.eye(2) * 2.0**-1060) == 0.625 * 2.0**-1060
    outer, inners = Channel([[1.0, 5e-324], [1.0, 1.5e-323]]).posterior([0.75, 0.25])
    assert outer.tolist() == [1.0, 1e-323]
    assert inners[1].tolist() == [0.5, 0.5]
