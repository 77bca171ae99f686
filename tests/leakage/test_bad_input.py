"""Bad input: every line names the argument and the first thing that is wrong with it."""

import math
from fractions import Fraction as F

import networkx as nx
import numpy as np
import pytest

from quincunx.graphs import AutomorphismGroup, Graph, automorphism_group, cycle, hamming, path
from quincunx.leakage import (
    Channel,
    distance_channel,
    geometric_channel,
    leakage_bound,
    optimal_mechanism,
    plot_symmetrization,
    randomized_response,
    renyi_entropy,
    utility_bound,
)
from quincunx.privacy import ExponentialMechanism

HALVES = Channel([[0.5, 0.5], [0.25, 0.75]])


def refused(message, call, kind=ValueError):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([[0.5, 0.5], [math.nan, 1.0]], "NaN at row 1, column 0"),
        ([[0.5, 0.5], [0.0, math.inf]], "inf at row 1, column 1"),
        ([[0.5, 0.5], [1.1, -0.1]], "-0.1 at row 1, column 1"),
    ],
)
def test_entries_that_are_no_probabilities(rows, found):
    refused(f"`matrix` must be made of finite entries of at least 0, got {found}", lambda: Channel(rows))
    refused("`matrix` must be", lambda: Channel(rows, normalize=True))


def test_a_tiny_negative_entry_is_refused_unless_rows_are_normalized():
    refused("got -1e-12 at row 0, column 1", lambda: Channel([[1.0, -1e-12]]))
    assert Channel([[1.0, -1e-12]], normalize=True).matrix.tolist() == [[1.0, 0.0]]


def test_a_row_that_does_not_sum_to_one():
    refused(
        "`matrix` must be made of rows that sum to 1, got the sum 0.75 in row 1", lambda: Channel([[1, 0], [0.25, 0.5]])
    )
    assert Channel([[1, 0], [0.25, 0.5]], atol=0.3).n_inputs == 2
    refused("such as '1/3', got '1e99999999' at row 0, column 1", lambda: Channel([["1/2", "1e99999999"]], exact=True))
    refused("got the sum 5/6 in row 0", lambda: Channel([["1/2", "1/3"]], exact=True))
    refused("`matrix` must be", lambda: Channel([[0.0, 0.0]], normalize=True))


@pytest.mark.parametrize("matrix", [[], [[]], np.empty((0, 3)), np.empty((3, 0))])
def test_an_empty_matrix(matrix):
    refused("`matrix` must", lambda: Channel(matrix))
    refused("`matrix` must not be empty", lambda: Channel([[]], exact=True))


def test_a_matrix_that_is_none():
    refused("`matrix` must have two dimensions, got 1", lambda: Channel([1.0]))
    refused("`matrix` must have rows of one length", lambda: Channel([[1.0], [0.5, 0.5]]))
    refused("`matrix` must have rows of one length", lambda: Channel([[1], ["1/2", "1/2"]], exact=True))
    refused("exact=True", lambda: Channel([[F(1, 2), F(1, 2)]]), TypeError)
    refused("`matrix` must hold real numbers", lambda: Channel([[1j]]), TypeError)
    refused(
        "`matrix` must hold ints, Fractions or strings, got float at row 0, column 1",
        lambda: Channel([[1, 0.5]], exact=True),
        TypeError,
    )
    refused("got 'x' at row 0, column 0", lambda: Channel([["x"]], exact=True))
    refused("got -1/2 at row 0, column 0", lambda: Channel([["-1/2", "3/2"]], exact=True))
    refused("`inputs` must hold 2 names, got 1", lambda: Channel([[1], [1]], inputs=["a"]))
    refused("`atol` must be at least 0", lambda: Channel([[1]], atol=-1))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1.0], r"`prior` must have shape \(2,\), got \(1,\)"),
        ([1.5, -0.5], "got -0.5 at index 1"),
        ([0.5, math.nan], "got nan at index 1"),
        ([0.5, 0.25], "`prior` must sum to 1, got the sum 0.75"),
        ([[0.5, 0.5]], r"`prior` must have shape \(n,\)"),
    ],
)
def test_a_prior_that_is_none(prior, message):
    for call in (
        lambda: HALVES.bayes_vulnerability(prior),
        lambda: HALVES.mutual_information(prior),
        lambda: HALVES.map_remap(prior),
        lambda: HALVES.symmetrize(path(2), prior=prior),
        lambda: optimal_mechanism(path(2), 0.5, prior),
    ):
        refused(message, call)


def test_an_exact_prior_that_is_none():
    exact = Channel([["1/2", "1/2"], ["1/4", "3/4"]], exact=True)
    refused("`prior` must sum to 1, got the sum 3/4", lambda: exact.bayes_vulnerability(["1/2", "1/4"]))
    refused("got -1/2 at index 1", lambda: exact.bayes_vulnerability(["3/2", "-1/2"]))
    refused(r"`prior` must have shape \(2,\), got \(1,\)", lambda: exact.bayes_vulnerability([1]))
    refused("`prior` must hold real numbers", lambda: HALVES.bayes_vulnerability(np.array(["a", "b"])), TypeError)


def test_a_relation_that_is_not_symmetric():
    refused(
        r"`relation` must be symmetric, got True at \(0, 1\) and False at \(1, 0\)",
        lambda: HALVES.dp_epsilon(Graph.from_relation([[0, 1], [0, 0]])),
    )


def test_a_metric_that_is_not_symmetric():
    refused(
        "`metric` must be symmetric and at least 0, got 1.0 and 2.0", lambda: HALVES.metric_epsilon([[0, 1], [2, 0]])
    )
    refused("`metric` must be symmetric", lambda: HALVES.metric_epsilon([[0, -1], [-1, 0]]))
    refused("`metric` must be symmetric", lambda: HALVES.metric_epsilon([[0, math.nan], [math.nan, 0]]))
    refused(r"`metric` must have shape \(2, 2\)", lambda: HALVES.metric_epsilon(np.zeros((3, 3))))


def test_an_edge_that_ends_nowhere():
    refused(r"`edges` must be pairs of vertices in 0..1, got \(0, 2\)", lambda: HALVES.dp_epsilon((2, [(0, 2)])))


def test_a_generator_that_is_no_permutation_or_of_another_length():
    refused("permutation", lambda: AutomorphismGroup.from_generators(2, [[0, 0]]))
    refused(r"`generators` must have shape \(k, 2\)", lambda: AutomorphismGroup.from_generators(2, [[0, 1, 2]]))


def test_a_generator_that_is_no_automorphism_of_the_graph():
    group = AutomorphismGroup.from_generators(3, [[1, 0, 2]])
    channel = geometric_channel(3, 0.5)
    refused(r"automorphisms of the graph.*edge", lambda: channel.symmetrize(group, graph=path(3)))


def test_a_channel_that_is_not_square_needs_an_action_on_outputs():
    channel = Channel([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    refused("`output_action` must be given", lambda: channel.symmetrize(path(2)))
    swap = AutomorphismGroup.from_generators(2, [[1, 0]])
    refused(
        r"`output_action` must have shape \(1, 3\), got \(1, 2\)",
        lambda: channel.symmetrize(swap, output_action=[[1, 0]]),
    )
    refused("permutations of 0..2, got row 0", lambda: channel.symmetrize(swap, output_action=[[1, 1, 0]]))
    refused("`output_action` must come with a group", lambda: channel.symmetrize(path(2), output_action=[[2, 1, 0]]))


def test_a_graph_or_group_of_another_size():
    for call in (
        lambda: HALVES.dp_epsilon(path(3)),
        lambda: HALVES.dp_delta(path(3), 0.1),
        lambda: HALVES.renyi_dp(path(3), 2),
        lambda: HALVES.likelihood_ratio(path(3)),
        lambda: HALVES.symmetrize(path(3)),
    ):
        refused("must have 2 vertices, one for each input, got 3", call)
    refused("must act on 2 inputs, got 3 points", lambda: HALVES.symmetrize(AutomorphismGroup.hamming(1, 3)))
    refused("`other` must have 2 inputs, got 3", lambda: HALVES.compose(geometric_channel(3, 1)))
    refused("`group_or_graph` must be a Graph", lambda: HALVES.symmetrize(7), TypeError)
    refused("`graph` must be left out", lambda: HALVES.symmetrize(path(2), graph=path(2)))


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, -math.inf])
def test_an_epsilon_below_zero(epsilon):
    for call in (
        lambda: HALVES.dp_delta(path(2), epsilon),
        lambda: optimal_mechanism(path(2), epsilon),
        lambda: utility_bound(path(2), epsilon),
        lambda: geometric_channel(2, epsilon),
        lambda: randomized_response(2, epsilon),
        lambda: distance_channel(path(2), epsilon),
    ):
        refused("`epsilon` must be", call)


@pytest.mark.parametrize("alpha", [-1, math.nan])
def test_an_order_below_zero(alpha):
    refused("`alpha` must be", lambda: renyi_entropy([0.5, 0.5], alpha))
    refused("`alpha` must be", lambda: HALVES.renyi_dp(path(2), alpha))


def test_an_entropy_of_something_else():
    refused("`p` must sum to 1", lambda: renyi_entropy([0.5], 1))
    refused(r"`p` must have shape \(n,\)", lambda: renyi_entropy([], 1))


def test_no_inputs_at_all():
    nothing = Graph(0, [])
    for call in (
        lambda: optimal_mechanism(nothing, 0.5),
        lambda: utility_bound(nothing, 0.5),
        lambda: distance_channel(nothing, 0.5),
    ):
        refused("`graph` must have at least one vertex, got none", call)
    refused("`n` must be at least 1", lambda: geometric_channel(0, 0.5))
    refused("`n` must be at least 1", lambda: randomized_response(0, 0.5))


def test_a_gain_that_is_none():
    refused(r"`gain` must have shape \(guesses, 2\), got \(1, 3\)", lambda: HALVES.g_vulnerability([[1, 0, 0]]))
    refused("got -1.0 at row 0, column 1", lambda: HALVES.g_leakage([[1, -1]]))
    refused("`gain` must be made of", lambda: optimal_mechanism(path(2), 0.5, gain=[[math.nan, 1]]))


def test_words_and_arrays_that_do_not_fit():
    refused("`kind` must be one of", lambda: HALVES.capacity("max"))
    refused("`kind` must be one of", lambda: utility_bound(path(2), 0.5, "best"))
    refused("`kind` must be one of", lambda: leakage_bound(path(2), 0.5, "vertex"))
    refused("`method` must be one of", lambda: optimal_mechanism(path(2), 0.5, method="guess"))
    refused("`tol` must be positive", lambda: HALVES.shannon_capacity(0))
    refused("`out` must be C-contiguous", lambda: HALVES.symmetrize(path(2), out=np.empty((3, 3))))
    refused(
        "`out` must be an array of float64", lambda: HALVES.symmetrize(path(2), out=np.empty((2, 2), int)), TypeError
    )
    exact = Channel([[1, 0], [0, 1]], exact=True)
    refused("`out` must be left out", lambda: exact.symmetrize(path(2), out=np.empty((2, 2))))
    refused("`threads` must be between 1 and 256", lambda: HALVES.dp_epsilon(path(2), threads=0))
    refused("`other` must be a Channel", lambda: HALVES.compose([[1]]), TypeError)
    refused("`symmetrization` must be a Symmetrization", lambda: plot_symmetrization(HALVES), TypeError)


def test_a_search_that_takes_too_long():
    graph = hamming(4, 8)
    prior = np.full(4096, 1 / 4096)
    prior[0] += 1e-10
    with pytest.raises(TimeoutError):
        optimal_mechanism(graph, 0.5, prior, time_limit=1e-6)


def test_columns_of_zeros_change_nothing():
    plain = Channel([[0.75, 0.25], [0.5, 0.5]])
    wider = Channel([[0.75, 0.0, 0.25, 0.0], [0.5, 0.0, 0.5, 0.0]])
    for measure in (
        lambda c: c.bayes_vulnerability([0.25, 0.75]),
        lambda c: c.min_capacity(),
        lambda c: c.mutual_information(),
        lambda c: c.dp_epsilon(path(2)),
        lambda c: c.dp_delta(path(2), 0.1),
        lambda c: c.renyi_dp(path(2), 2),
    ):
        assert measure(wider) == pytest.approx(measure(plain), rel=1e-15)
    assert wider.map_remap() == plain.map_remap()
    bounds = wider.shannon_capacity()
    assert bounds.lower <= plain.shannon_capacity().upper
    assert bounds.upper >= plain.shannon_capacity().lower


def test_a_graph_in_pieces_counts_only_within_them():
    apart = (4, [(0, 1), (2, 3)])
    channel = Channel([[0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]])
    assert channel.dp_epsilon(apart) == pytest.approx(math.log(2), rel=1e-15)
    assert optimal_mechanism(apart, math.log(2)).utility == pytest.approx(2 / 3, rel=1e-13)


def test_edge_cases_that_are_no_errors():
    loops = Graph(3, [(0, 0), (0, 1), (1, 0), (1, 2)])
    channel = geometric_channel(3, 0.5)
    assert channel.dp_epsilon(loops) == channel.dp_epsilon(path(3))
    assert channel.symmetrize(loops).channel == channel.symmetrize(path(3)).channel
    apart = (4, [(0, 1), (2, 3)])
    assert Channel([[1, 0], [1, 0], [0, 1], [0, 1]]).dp_epsilon(apart) == 0.0
    assert Channel([[1, 0, 0], [0, 1, 0]]).min_capacity() == 1.0
    result = Channel(np.eye(4)).symmetrize((4, []))
    assert result.group_order == 24
    assert result.epsilon_after == 0.0
    assert Channel([[1.0]]).symmetrize(path(1)).channel.matrix.tolist() == [[1.0]]
    assert cycle(3).num_vertices == 3


MASKED = np.ma.masked_array([[1.0, 0.0], [0.0, 1.0]], [[0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("matrix", lambda: Channel(MASKED)),
        ("matrix", lambda: Channel([MASKED[0], MASKED[1]])),
        ("matrix", lambda: Channel(MASKED.astype(int), exact=True)),
        ("prior", lambda: HALVES.bayes_vulnerability(MASKED[1])),
        ("gain", lambda: HALVES.g_vulnerability(MASKED)),
        ("metric", lambda: HALVES.metric_epsilon(MASKED)),
        ("p", lambda: renyi_entropy(MASKED[1], 2)),
        ("scores", lambda: Channel.from_mechanism(ExponentialMechanism(1.0, sensitivity=1.0), scores=MASKED)),
    ],
)
def test_masked_cells_are_not_uncovered(name, call):
    refused(f"`{name}` must have no masked cells, got 1 of them", call)


@pytest.mark.parametrize("prior", ["10", {F(1, 3), F(2, 3)}, {F(1, 3): 0, F(2, 3): 1}, (F(p, 3) for p in (1, 2))])
@pytest.mark.parametrize("exact", [False, True])
def test_a_prior_without_an_order(prior, exact):
    channel = Channel([[1, 0], [0, 1]], exact=exact)
    refused("`prior` must hold real numbers, got dtype", lambda: channel.bayes_vulnerability(prior), TypeError)


@pytest.mark.parametrize("exact", [False, True])
def test_products_that_floats_do_not_hold(exact):
    # Of 5e-200 and 1e-200 the level is ln 5, and 2 ln 5 of two side by side, whose products are 0 in floats.
    rows = [[1 - F(c, 10**200), F(c, 10**200)] for c in (1, 5)]
    tiny = Channel(rows if exact else np.array(rows, dtype=float), exact=exact)
    floats, rare = Channel(tiny.matrix), Channel([[1.0, 0.0], [1.0, 1e-200]])
    refused("`other` must have entries whose products floats hold", lambda: tiny.kron(floats))
    refused("`other` must have entries whose products floats hold", lambda: floats @ rare)
    rarest = Channel([[1, 0], [1 - F(1, 10**400), F(1, 10**400)]], exact=True)
    refused("`other` must have entries whose products floats hold", lambda: rarest @ Channel(np.eye(2)))
    if exact:
        assert tiny.kron(tiny).likelihood_ratio((4, [(0, 3)])) == 25
    zeros = Channel([[1.0, 0.0], [0.0, 1.0]])
    assert zeros @ floats == floats
    assert zeros.kron(floats).dp_epsilon((4, [(0, 1)])) == floats.dp_epsilon(path(2))


def test_names_in_another_order():
    first, second = Channel(np.eye(2), outputs="ab"), Channel(np.eye(2), inputs="ba")
    refused("`other` must have the outputs as inputs, got 'b' for 'a' at index 0", lambda: first @ second)
    assert (first @ Channel(np.eye(2))).n_outputs == (Channel(np.eye(2)) @ second).n_outputs == 2


@pytest.mark.parametrize("flag", ["exact", "normalize"])
def test_a_flag_that_is_a_word(flag):
    refused(f"`{flag}` must be True or False, got 'no'", lambda: Channel([[1.0]], **{flag: "no"}), TypeError)


@pytest.mark.parametrize("inputs", [None, "abc"])
def test_vertices_in_another_order_than_the_inputs(inputs):
    # A graph of networkx has its nodes in the order of the edges they were seen at: b, c, a.
    a, b, c = inputs or range(3)
    graph = nx.Graph([(b, c), (a, b)])
    channel = Channel([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]], inputs=inputs)
    for call in (
        lambda: channel.dp_epsilon(graph),
        lambda: channel.guarantee(graph),
        lambda: channel.metric_epsilon(graph),
    ):
        refused(f"`graph` must be in the order of the inputs, got {b!r} for {a!r} at index 0", call)
    square = Channel(np.eye(3), inputs=inputs)
    for group_or_graph in (graph, automorphism_group(graph)):
        refused("`group_or_graph` must be in the order", lambda on=group_or_graph: square.symmetrize(on))
    for made in (optimal_mechanism(graph, 1.0).channel, distance_channel(graph, 1.0), distance_channel(graph, 0.0)):
        assert list(made.inputs) == list(made.outputs) == [b, c, a]
        assert made.dp_epsilon(graph) <= 1.0 + 1e-12
    graph = nx.Graph([(a, b), (b, c)])
    assert (
        channel.dp_epsilon(graph) == channel.dp_epsilon(path(3)) == channel.dp_epsilon(nx.path_graph(["x", "y", "z"]))
    )


def test_labels_in_another_order_than_the_inputs():
    pandas = pytest.importorskip("pandas")
    channel = Channel([[0.5, 0.5], [0.25, 0.75]], inputs="ab")
    prior = pandas.Series([0.9, 0.1], index=["b", "a"])
    gain = pandas.DataFrame(np.eye(2), columns=["b", "a"])
    for call in (
        lambda: channel.bayes_vulnerability(prior),
        lambda: channel.min_entropy_leakage(prior),
        lambda: channel.mutual_information(prior),
        lambda: channel.posterior(prior),
        lambda: channel.map_remap(prior),
        lambda: channel.g_leakage(np.eye(2), prior),
        lambda: Channel(np.eye(2), inputs="ab").symmetrize(path(2), prior=prior),
    ):
        refused("`prior` must be in the order of the inputs, got 'b' for 'a' at index 0", call)
    refused("`gain` must be in the order of the inputs", lambda: channel.g_vulnerability(gain))
    refused("`metric` must be in the order of the inputs", lambda: channel.metric_epsilon(gain))
    rows = pandas.DataFrame([[0.0, 1.0], [1.0, 0.0]], index=["b", "a"])
    refused("`metric` must be in the order of the inputs", lambda: channel.metric_epsilon(rows))
    graph = nx.path_graph(["a", "b"])
    refused("`prior` must be in the order of the inputs", lambda: optimal_mechanism(graph, 1.0, prior))
    refused("`gain` must be in the order of the inputs", lambda: optimal_mechanism(graph, 1.0, gain=gain))
    assert optimal_mechanism(graph, 1.0, prior[::-1]).channel.matrix.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert channel.bayes_vulnerability(prior[::-1]) == channel.bayes_vulnerability([0.1, 0.9])
    assert channel.bayes_vulnerability(prior.reset_index(drop=True)) == channel.bayes_vulnerability([0.9, 0.1])


@pytest.mark.parametrize("argument", ["inputs", "outputs"])
@pytest.mark.parametrize("names", [5, [["a"]]])
def test_names_that_are_no_sequence_or_cannot_be_told_apart(names, argument):
    with pytest.raises(TypeError, match=f"`{argument}` must be a sequence of hashable names"):
        Channel([[1.0]], **{argument: names})
