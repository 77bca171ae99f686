"""Best private mechanisms: known answers, agreement of methods, bounds on all small graphs."""

import itertools
import math
from fractions import Fraction as F

import mpmath
import networkx as nx
import numpy as np
import pytest
from leakage_graphs import FORK, GRAPHS, TWO_SQUARES, small_connected_graphs
from scipy.optimize import linprog

from quincunx.errors import ConvergenceError
from quincunx.graphs import automorphism_group, complete, cycle, distances, hamming, path
from quincunx.leakage import (
    Channel,
    _program,
    _solver,
    distance_channel,
    geometric_channel,
    leakage_bound,
    optimal_mechanism,
    randomized_response,
    utility_bound,
)
from quincunx.leakage._checks import graph_on
from quincunx.leakage._solver import Deadline, Found

LN2 = math.log(2)


@pytest.fixture(autouse=True)
def no_program_has_a_process(monkeypatch):
    """Solve all programs here, to the same answers (`test_interrupts.py`): a process of its own takes half a second."""
    monkeypatch.setattr(_solver, "_SMALL", 10**9)


def brute_force(graph, epsilon, prior):
    """The program with one variable for each pair."""
    n = graph.num_vertices
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    rows = np.zeros((len(ends) * n, n * n))
    for i, (h, other) in enumerate(ends):
        for k in range(n):
            rows[i * n + k, h * n + k], rows[i * n + k, other * n + k] = 1, -math.exp(epsilon)
    equal = np.kron(np.eye(n), np.ones(n))
    found = linprog(-np.diag(prior).ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=equal, b_eq=np.ones(n))
    return -found.fun


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", ["auto", "linear program"])
def test_utilities_are_the_known_ones(name, method):
    graph, utility = GRAPHS[name][0], GRAPHS[name][4]
    found = optimal_mechanism(graph, LN2, method=method)
    assert math.isclose(found.utility, utility, rel_tol=1e-12)
    assert math.isclose(found.dual_bound, utility, rel_tol=1e-12)
    assert found.tight
    assert found.channel.dp_epsilon(graph) <= LN2 + 1e-12
    assert math.isclose(found.channel.bayes_vulnerability(), utility, rel_tol=1e-12)
    assert math.isclose(found.channel.min_capacity(), math.log2(graph_on(graph).num_vertices * utility), rel_tol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_bounds_by_vertices_are_the_known_ones(name):
    graph, bounds = GRAPHS[name][0], GRAPHS[name][5]
    each = utility_bound(graph, LN2, "vertex")
    low, high = bounds or (GRAPHS[name][4],) * 2
    if name != "5x5 grid":
        assert math.isclose(each.min(), low, rel_tol=1e-14)
        assert math.isclose(each.max(), high, rel_tol=1e-14)
    assert utility_bound(graph, LN2) == each.max()


def test_three_quarters_as_known():
    level = -math.log(0.75)
    assert math.isclose(optimal_mechanism(path(3), level).utility, 3 / 7, rel_tol=1e-13)
    assert math.isclose(optimal_mechanism(nx.star_graph(3), level).utility, 1 / 3, rel_tol=1e-12)


def test_the_fork_needs_the_program():
    found = optimal_mechanism(FORK, LN2)
    assert found.method == "linear program"
    assert found.variables == 17
    assert math.isclose(utility_bound(FORK, LN2, "relaxation"), 2 / 5, rel_tol=1e-12)
    with pytest.raises(ValueError, match="`epsilon` must be large enough"):
        distance_channel(FORK, LN2)
    with pytest.raises(ValueError, match="`method` must be one that applies, got 'weighting'"):
        optimal_mechanism(FORK, LN2, method="weighting")


@pytest.mark.parametrize(
    ("graph", "bound"),
    [
        (cycle(7), F(4, 11)),
        (nx.paley_graph(13).to_undirected(), F(2, 11)),
        (complete(5), F(1, 3)),
        (cycle(6), F(8, 15)),
        (hamming(3, 2), F(8, 15)),
        (nx.petersen_graph(), F(4, 13)),
    ],
)
def test_bounds_by_smallest_spheres_are_the_known_ones(graph, bound):
    np.testing.assert_allclose(utility_bound(graph, LN2, "vertex-sphere"), float(bound), rtol=1e-14)
    assert math.isclose(utility_bound(graph, LN2, "sphere"), bound, rel_tol=1e-14)


def test_a_binomial_prior_on_the_path_of_six():
    prior = [math.comb(5, k) / 32 for k in range(6)]
    for method in ("auto", "linear program"):
        assert math.isclose(optimal_mechanism(path(6), LN2, prior, method=method).utility, 5 / 12, rel_tol=1e-12)
    assert math.isclose(optimal_mechanism(path(6), LN2).utility, 4 / 9, rel_tol=1e-12)
    assert math.isclose(geometric_channel(6, LN2).bayes_vulnerability(prior), 5 / 12, rel_tol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, LN2, 2.0])
def test_every_small_graph_has_its_optimum_below_its_bounds(epsilon):
    for graph in small_connected_graphs()[2:]:
        found = optimal_mechanism(graph, epsilon)
        assert found.tight
        relaxation = utility_bound(graph, epsilon, "relaxation")
        weakest = utility_bound(graph, epsilon)
        assert found.utility <= relaxation + 1e-12
        assert relaxation <= weakest + 1e-12
        assert weakest <= utility_bound(graph, epsilon, "sphere") + 1e-12
        if found.method != "linear program":
            assert math.isclose(found.utility, relaxation, rel_tol=1e-9)


@pytest.mark.parametrize(("people", "values"), [(1, 2), (3, 2), (2, 5), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, LN2, 3.0, math.inf])
def test_leakage_of_databases_is_bounded_as_by_alvim_and_others(people, values, epsilon):
    # Their closed form, with e^-epsilon; and the channel that attains it, whose columns are summed.
    graph, closed = hamming(people, values), people * math.log2(values / (1 + (values - 1) * math.exp(-epsilon)))
    assert math.isclose(leakage_bound(graph, epsilon), closed, rel_tol=1e-12, abs_tol=1e-12)
    best = distance_channel(graph, epsilon)
    assert math.isclose(best.min_capacity(), closed, rel_tol=1e-12, abs_tol=1e-12)
    assert best.min_capacity() <= leakage_bound(graph, epsilon) <= math.nextafter(math.log2(values**people), math.inf)


@pytest.mark.parametrize("epsilon", [0.1, LN2, 2.0])
def test_no_private_channel_on_a_small_graph_leaks_more_than_the_bounds(epsilon):
    # The largest leakage of all channels, by the linear program with one variable for each pair; and channels of more
    # outputs, products of private ones drawn at random, for priors drawn at random.
    rng = np.random.default_rng(7)
    for graph in small_connected_graphs()[1:60:3]:
        n = graph.num_vertices
        largest = math.log2(n * brute_force(graph, epsilon, np.full(n, 1 / n)))
        for kind in ("weakest-vertex", "sphere", "relaxation"):
            assert largest <= leakage_bound(graph, epsilon, kind) + 1e-9
        far = distances(graph)
        # Weights exp(-epsilon d / 2) of columns that repeat, normalized by rows, are epsilon-private.
        columns = rng.integers(0, n, 2 * n)
        table = np.exp(-epsilon * far[:, columns] / 2) * rng.random(2 * n)
        channel = Channel(table / table.sum(axis=1, keepdims=True))
        assert channel.dp_epsilon(graph) <= epsilon + 1e-12
        for prior in (None, rng.dirichlet(np.ones(n))):
            assert channel.min_entropy_leakage(prior) <= leakage_bound(graph, epsilon, "relaxation")


def test_alvims_mechanism_has_one_constant_where_spheres_are_alike():
    # The constant of the theorem, a = 1 / sum_d |Border_d| e^(-epsilon d), with borders counted by networkx.
    for graph in (nx.petersen_graph(), nx.cycle_graph(7), nx.hypercube_graph(3), nx.complete_graph(4)):
        graph = nx.convert_node_labels_to_integers(graph)
        far = np.array([[nx.shortest_path_length(graph, h, k) for k in graph] for h in graph])
        border = np.bincount(far[0])
        constant = 1 / sum(size * math.exp(-0.7 * d) for d, size in enumerate(border))
        channel = distance_channel(graph, 0.7)
        np.testing.assert_allclose(channel.matrix, constant * np.exp(-0.7 * far), rtol=1e-12)
        assert math.isclose(channel.bayes_vulnerability(), optimal_mechanism(graph, 0.7).dual_bound, rel_tol=1e-12)
        assert math.isclose(channel.min_capacity(), leakage_bound(graph, 0.7), rel_tol=1e-11)


def test_methods_agree_with_brute_force_on_small_graphs():
    for seed, graph in enumerate(small_connected_graphs()[3:40]):
        prior = np.random.default_rng(seed).dirichlet(np.ones(graph.num_vertices))
        for p, given in ((np.full(graph.num_vertices, 1 / graph.num_vertices), None), (prior, prior)):
            expected = brute_force(graph, 0.4, p)
            for found in (
                optimal_mechanism(graph, 0.4, given),
                optimal_mechanism(graph, 0.4, given, method="linear program"),
                optimal_mechanism(graph, 0.4, given, method="linear program", use_symmetry=False),
            ):
                assert math.isclose(found.utility, expected, rel_tol=1e-8)
                assert found.utility <= found.dual_bound * (1 + 1e-12)
                assert found.tight
                assert found.channel.dp_epsilon(graph) <= 0.4 + 1e-12
                np.testing.assert_allclose(found.channel.matrix.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "epsilon"),
    [
        *itertools.product([10, 25], [1e-4, 0.1, 0.5, 1.0, 3.0, 9.0, 50.0]),
        *((40, epsilon) for epsilon in (1e-4, 0.5, 9.0)),
        *(pytest.param(40, epsilon, marks=pytest.mark.slow) for epsilon in (0.1, 1.0, 3.0, 50.0)),
        *(pytest.param(100, epsilon, marks=pytest.mark.slow) for epsilon in (1e-4, 0.1, 0.5, 1.0, 9.0)),
        *(pytest.param(n, epsilon, marks=pytest.mark.slow) for n in (200, 400) for epsilon in (0.5, 1.0, 3.0, 50.0)),
    ],
)
def test_programs_of_many_inputs_reach_what_is_proved_best(inputs, epsilon):
    best = optimal_mechanism(path(inputs), epsilon)
    assert best.method == "weighting"
    assert best.tight
    found = optimal_mechanism(path(inputs), epsilon, method="linear program")
    assert math.isclose(found.utility, best.utility, rel_tol=1e-9)
    assert found.utility <= best.dual_bound * (1 + 1e-12)
    assert found.tight
    assert found.channel.dp_epsilon(path(inputs)) <= epsilon * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_programs_of_any_graph_and_prior_are_within_their_gap(epsilon):
    graphs = [path(24), nx.star_graph(20), nx.random_labeled_tree(20, seed=2), nx.gnp_random_graph(16, 0.2, seed=1)]
    for seed, graph in enumerate(graphs):
        prior = np.random.default_rng(seed).dirichlet(np.ones(graph_on(graph).num_vertices))
        for given in (None, prior):
            found = optimal_mechanism(graph, epsilon, given, method="linear program")
            assert found.utility <= found.dual_bound <= found.utility * (1 + 1e-6)
            assert found.channel.dp_epsilon(graph) <= epsilon + 1e-12
            assert math.isclose(found.channel.bayes_vulnerability(given), found.utility, rel_tol=1e-9)
        # On a path the geometric channel and the best guess are best for every prior.
        if seed == 0:
            known = geometric_channel(24, epsilon).map_remap(prior).bayes_vulnerability(prior)
            assert math.isclose(found.utility, known, rel_tol=1e-7)


@pytest.mark.parametrize("value", [0.0, 1.0, math.nan])
def test_a_program_that_is_not_solved_is_an_error_in_words(monkeypatch, value):
    def found(end, *, c, b_ub, **_):
        return Found(np.full(len(c), value), np.zeros(len(b_ub)), np.zeros(5))

    monkeypatch.setattr(_program, "linear_program", found)
    with pytest.raises(ConvergenceError, match="the linear program was not solved to a relative 1e-06"):
        optimal_mechanism(cycle(5), 0.5, [0.1, 0.2, 0.3, 0.3, 0.1], method="linear program", use_symmetry=False)


def test_programs_of_hamming_graphs_are_small_and_right():
    found = optimal_mechanism(hamming(9, 2), LN2, method="linear program")
    assert (found.variables, found.inequalities) == (10, 18)
    assert math.isclose(found.utility, (2 / 3) ** 9, rel_tol=1e-12)
    assert found.tight
    for length, letters, epsilon in [(16, 2, 0.1), (20, 2, 0.5), (9, 5, 1.0), (40, 2, 5.0)]:
        known = (1 + (letters - 1) * math.exp(-epsilon)) ** -length
        solved = _program.solve(_program.hamming_program(length, letters), epsilon, Deadline(None))
        assert math.isclose(solved.utility, known, rel_tol=1e-9), (length, letters)
    searched = optimal_mechanism(
        nx.convert_node_labels_to_integers(nx.hypercube_graph(5)), LN2, method="linear program"
    )
    assert (searched.variables, searched.inequalities) == (6, 10)
    for length, letters, epsilon in [(3, 4, 0.2), (2, 5, 3.0), (6, 3, 1.0)]:
        found = optimal_mechanism(hamming(length, letters), epsilon)
        assert found.method == "closed form"
        assert math.isclose(found.utility, (1 + (letters - 1) * math.exp(-epsilon)) ** -length, rel_tol=1e-13)


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_closed_forms(q):
    level = -math.log(q)
    assert math.isclose(optimal_mechanism(complete(6), level).utility, 1 / (1 + 5 * q), rel_tol=1e-13)
    assert math.isclose(optimal_mechanism(cycle(9), level).utility, (1 - q) / (1 + q - 2 * q**5), rel_tol=1e-13)
    assert math.isclose(optimal_mechanism(cycle(8), level).utility, (1 - q) / ((1 + q) * (1 - q**4)), rel_tol=1e-13)
    n = 11
    best = optimal_mechanism(path(n), level)
    assert math.isclose(best.utility, (n - (n - 2) * q) / (n * (1 + q)), rel_tol=1e-11)
    np.testing.assert_allclose(best.channel.matrix, geometric_channel(n, level).matrix, rtol=1e-9)
    np.testing.assert_allclose(distance_channel(path(n), level).matrix, geometric_channel(n, level).matrix, rtol=1e-9)
    np.testing.assert_allclose(distance_channel(complete(4), level).matrix, randomized_response(4, level).matrix)


def test_a_singular_kernel_with_equal_spheres_has_its_closed_form():
    # K of K(3,3) is singular at q = 1/2.
    found = optimal_mechanism(nx.complete_bipartite_graph(3, 3), LN2)
    assert found.method == "closed form"
    assert math.isclose(found.utility, 1 / 3, rel_tol=1e-13)


def test_the_geometric_channel_and_a_remap_are_best_for_every_prior_on_a_path():
    for seed in range(25):
        prior = np.random.default_rng(seed).dirichlet(np.full(5, 0.7))
        remapped = geometric_channel(5, 0.6).map_remap(prior)
        best = optimal_mechanism(path(5), 0.6, prior)
        assert math.isclose(remapped.bayes_vulnerability(prior), best.utility, rel_tol=1e-9)


def test_a_gain_is_maximized():
    rng = np.random.default_rng(8)
    for guesses in (3, 5):
        gain, prior = rng.random((guesses, 5)), rng.dirichlet(np.ones(5))
        found = optimal_mechanism(cycle(5), 0.5, prior, gain)
        assert found.tight
        assert found.channel.n_outputs == guesses
        assert found.channel.dp_epsilon(cycle(5)) <= 0.5 + 1e-12
        assert math.isclose(found.channel.g_vulnerability(gain, prior), found.utility, rel_tol=1e-9)
        assert found.utility >= optimal_mechanism(cycle(5), 0.0, prior, gain).utility
    same = optimal_mechanism(cycle(5), 0.5, gain=np.eye(5))
    assert math.isclose(same.utility, optimal_mechanism(cycle(5), 0.5).utility, rel_tol=1e-9)
    assert same.variables == automorphism_group(cycle(5)).rank


def test_the_ends_of_the_range_of_levels():
    prior = [0.1, 0.2, 0.3, 0.4]
    nothing = optimal_mechanism(cycle(4), 0.0, prior)
    assert nothing.utility == 0.4
    assert (nothing.channel.matrix == nothing.channel.matrix[0]).all()
    everything = optimal_mechanism(cycle(4), math.inf, prior)
    assert everything.utility == 1.0
    assert np.array_equal(everything.channel.matrix, np.eye(4))
    assert optimal_mechanism((4, []), 0.5, prior).utility == 1.0
    assert optimal_mechanism((4, [(0, 1), (2, 3)]), 0.0, prior).utility == pytest.approx(0.6)
    assert optimal_mechanism(path(1), 0.3).utility == 1.0
    assert utility_bound(path(3), math.inf) == 1.0
    assert utility_bound(cycle(4), 0.0) == 0.25
    assert geometric_channel(1, 0.5).matrix.tolist() == [[1.0]]
    assert np.array_equal(geometric_channel(3, math.inf).matrix, np.eye(3))
    assert np.array_equal(distance_channel(path(3), math.inf).matrix, np.eye(3))
    assert np.array_equal(randomized_response(3, math.inf).matrix, np.eye(3))
    for level in (1e-6, 50.0):
        for graph in (path(6), cycle(5), FORK):
            found = optimal_mechanism(graph, level)
            assert found.tight
            assert found.channel.dp_epsilon(graph) <= level * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("epsilon", [1e-16, 1e-3, 4.1, 7.44, 8.2, 100.0, 340.0, 350.0, 700.0, 710.0, 750.0, 1e300])
def test_no_float_breaks_the_level_of_a_channel_where_its_powers_underflow(epsilon):
    gain = np.random.default_rng(0).random((4, 6))
    channels = [(path(180), geometric_channel(180, epsilon)), (complete(3), randomized_response(3, epsilon))]
    for graph in (path(3), path(100), cycle(180), cycle(200), complete(4), hamming(8, 2), TWO_SQUARES):
        channels.append((graph, optimal_mechanism(graph, epsilon).channel))
        if epsilon > 1e-3:
            channels.append((graph, distance_channel(graph, epsilon)))
    for how in ({}, {"gain": gain}, {"prior": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]}, {"method": "linear program"}):
        found = optimal_mechanism(FORK, epsilon, **how)
        assert found.dual_bound - found.utility <= 1e-6 * found.dual_bound
        channels.append((FORK, found.channel))
    for graph, channel in channels:
        assert channel.dp_epsilon(graph) <= epsilon * (1 + 1e-12) + 1e-15
        np.testing.assert_allclose(channel.matrix.sum(axis=1), 1, rtol=1e-12)
        guarantee = channel.guarantee(graph) if epsilon < 1e3 and graph is not TWO_SQUARES else None
        assert guarantee is None or guarantee.epsilon <= epsilon * (1 + 1e-12) + 3e-15


def test_weights_that_cannot_be_told_in_floats_are_not_called_negative():
    assert distance_channel(path(3), 0.0).dp_epsilon(path(3)) == 0
    assert distance_channel(TWO_SQUARES, 0.0).dp_epsilon(TWO_SQUARES) == 0
    for epsilon in (1e-300, 1e-16):
        with pytest.raises(ValueError, match="`epsilon` must be large enough to solve for weights in floats"):
            distance_channel(path(6), epsilon)
    with pytest.raises(ValueError, match="`epsilon` must be large enough for weights of at least 0"):
        distance_channel(nx.star_graph(4), 1e-3)


def test_the_bound_of_a_leakage_is_not_below_what_is_reached():
    for n in range(1, 401):
        with mpmath.workdps(40):
            assert mpmath.mpf(leakage_bound(complete(n), math.inf)) >= mpmath.log(n, 2)
            closed = mpmath.log(n / (1 + (n - 1) * mpmath.exp(-mpmath.mpf(3.5))), 2)
            assert closed <= mpmath.mpf(leakage_bound(complete(n), 3.5)) <= closed + (n + 1010) * 2.0**-52
    assert leakage_bound(complete(9), math.inf) >= distance_channel(complete(9), math.inf).min_capacity()


def test_products_multiply():
    product = nx.convert_node_labels_to_integers(nx.cartesian_product(nx.path_graph(3), nx.path_graph(4)))
    expected = optimal_mechanism(path(3), 0.8).utility * optimal_mechanism(path(4), 0.8).utility
    assert math.isclose(optimal_mechanism(product, 0.8).utility, expected, rel_tol=1e-12)


def test_levels_of_the_largest_floats_leave_nothing_private():
    for level in (1e308, math.inf):
        assert utility_bound(path(3), level) == optimal_mechanism(path(3), level).utility == 1.0
        assert geometric_channel(3, level).min_capacity() == math.log2(3)
