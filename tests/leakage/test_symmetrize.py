"""Averaging over symmetries: known answers, all small graphs, and what the report may say."""

import json
import math
from fractions import Fraction as F

import numpy as np
import pytest
from leakage_graphs import GRAPHS, small_connected_graphs

from quincunx.graphs import AutomorphismGroup, automorphism_group, complete, cycle, grid, hamming, path, torus
from quincunx.leakage import Channel, geometric_channel
from quincunx.leakage._symmetry import as_hamming, hamming_distances

KEYS = [
    "row_stochastic",
    "dp_preserved",
    "diagonal_maximal",
    "capacity_preserved",
    "constant_diagonal",
    "leakage_preserved",
]


def tenths(rows):
    return Channel([[F(entry, 10) for entry in row] for row in rows], exact=True)


def random_channel(seed, n):
    rows = np.random.default_rng(seed).random((n, n)) ** 2 + 0.01
    return Channel(rows / rows.sum(axis=1, keepdims=True))


def elements(graph):
    """All automorphisms, listed."""
    group = automorphism_group(graph)
    found = {tuple(range(graph.num_vertices))}
    frontier = list(found)
    while frontier:
        frontier = [tuple(g[list(p)]) for p in frontier for g in group.generators]
        frontier = [p for p in set(frontier) if p not in found]
        found.update(frontier)
    assert len(found) == group.order
    return [np.array(p) for p in found]


@pytest.mark.parametrize("name", GRAPHS)
def test_groups_have_the_known_orders_orbits_and_ranks(name):
    graph, order, orbits, rank, *_ = GRAPHS[name]
    group = automorphism_group(graph)
    assert (group.order, len(set(group.orbits.tolist())), group.rank) == (order, orbits, rank)


def test_path_of_three_as_published():
    channel = tenths([[5, 3, 2], [4, 4, 2], [4, 2, 4]])
    result = channel.symmetrize(path(3))
    assert result.channel.fractions == (
        (F(9, 20), F(1, 4), F(3, 10)),
        (F(3, 10), F(2, 5), F(3, 10)),
        (F(3, 10), F(1, 4), F(9, 20)),
    )
    assert channel.likelihood_ratio(path(3)) == 2
    assert result.channel.likelihood_ratio(path(3)) == F(8, 5)
    assert result.vulnerability_before == result.vulnerability_after == F(13, 30)
    assert result.guarantees["constant_diagonal"] == "false"
    assert result.guarantees["capacity_preserved"] == result.guarantees["leakage_preserved"] == "proved"
    assert math.isclose(result.epsilon_before, math.log(2))
    assert math.isclose(result.epsilon_after, math.log(1.6))
    assert (result.group_order, result.rank, result.transitive, result.trace) == (2, 5, False, F(13, 10))


def test_cycle_of_four_as_published():
    channel = tenths([[4, 2, 2, 2], [3, 3, 2, 2], [3, 2, 3, 2], [3, 2, 2, 3]])
    result = channel.symmetrize(cycle(4))
    expected = [[F(13, 40) if h == k else F(9, 40) for k in range(4)] for h in range(4)]
    assert [list(row) for row in result.channel.fractions] == expected
    assert channel.likelihood_ratio(cycle(4)) == F(3, 2)
    assert result.channel.likelihood_ratio(cycle(4)) == F(13, 9)
    assert result.vulnerability_before == result.vulnerability_after == F(13, 40)
    # The maxima of the original's columns are 2/5, 3/10, 3/10, 3/10: none of them is the new diagonal.
    assert all(value == "proved" for value in result.guarantees.values())


def test_two_points_with_an_uneven_prior_move_either_way():
    channel = Channel([["3/4", "1/4"], ["1/2", "1/2"]], exact=True)
    down = channel.symmetrize(path(2), prior=[F(3, 5), F(2, 5)])
    up = channel.symmetrize(path(2), prior=[F(2, 5), F(3, 5)])
    assert down.channel.fractions == up.channel.fractions == ((F(5, 8), F(3, 8)), (F(3, 8), F(5, 8)))
    assert (down.vulnerability_before, down.vulnerability_after) == (F(13, 20), F(5, 8))
    assert (up.vulnerability_before, up.vulnerability_after) == (F(3, 5), F(5, 8))
    assert down.guarantees["leakage_preserved"] == up.guarantees["leakage_preserved"] == "false"
    assert "rose" in up.reasons["leakage_preserved"]
    assert "fell" in down.reasons["leakage_preserved"]


def test_column_maxima_off_the_diagonal_lose_capacity():
    channel = tenths([[1, 7, 1, 1], [1, 7, 1, 1], [1, 1, 7, 1], [7, 1, 1, 1]])
    result = channel.symmetrize(cycle(4))
    assert result.channel.fractions[0] == (F(2, 5), F(1, 4), F(1, 10), F(1, 4))
    assert (result.vulnerability_before, result.vulnerability_after) == (F(11, 20), F(2, 5))
    assert result.guarantees["capacity_preserved"] == "false"
    assert result.guarantees["diagonal_maximal"] == "not guaranteed"
    assert result.capacity_after < result.capacity_before


def test_the_report_has_its_keys_and_values():
    result = geometric_channel(4, 0.5).symmetrize(path(4))
    assert list(result.guarantees) == list(result.reasons) == KEYS
    assert set(result.guarantees.values()) <= {"proved", "not guaranteed", "false"}
    assert all(result.reasons.values())
    assert str(result).startswith("averaged over a group of order 2: 4 inputs in 2 orbits")
    assert "constant_diagonal false" in repr(result)


def test_averages_over_all_small_graphs_keep_what_is_proved():
    for seed, graph in enumerate(small_connected_graphs()):
        n = graph.num_vertices
        channel = random_channel(seed, n)
        result = channel.symmetrize(graph, threads=1)
        matrix = result.channel.matrix
        listed = np.mean([channel.matrix[np.ix_(p, p)] for p in elements(graph)], axis=0)
        np.testing.assert_allclose(matrix, listed, rtol=1e-13)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-14)
        assert math.isclose(np.trace(matrix), np.trace(channel.matrix), rel_tol=1e-14)
        assert result.epsilon_after <= result.epsilon_before + 1e-13
        for epsilon in (0.0, 0.3, 1.0):
            assert (
                result.channel.dp_delta(graph, epsilon, threads=1)
                <= channel.dp_delta(graph, epsilon, threads=1) + 1e-14
            )
        for alpha in (0.5, 1, 2, 10):
            assert result.channel.renyi_dp(graph, alpha, threads=1) <= channel.renyi_dp(graph, alpha, threads=1) + 1e-13
        assert result.capacity_after <= result.capacity_before + 1e-13
        assert np.array_equal(result.channel.symmetrize(graph, threads=1).channel.matrix, matrix)
        assert np.array_equal(channel.symmetrize(graph, threads=2).channel.matrix, matrix)
        assert (result.guarantees["constant_diagonal"] == "proved") == result.transitive


def test_with_maxima_on_the_diagonal_capacity_is_kept_on_every_small_graph():
    for seed, graph in enumerate(small_connected_graphs()):
        channel = random_channel(seed, graph.num_vertices).map_remap()
        result = channel.symmetrize(graph, threads=1)
        names = ("diagonal_maximal", "capacity_preserved", "leakage_preserved")
        assert all(result.guarantees[name] == "proved" for name in names)
        assert math.isclose(result.capacity_before, result.capacity_after, abs_tol=1e-13)
        assert math.isclose(result.vulnerability_before, result.vulnerability_after, rel_tol=1e-13)


def test_an_invariant_prior_never_leaks_more_after_averaging():
    for seed, graph in enumerate(small_connected_graphs()[::5]):
        channel = random_channel(seed, graph.num_vertices)
        weights = np.random.default_rng(seed).random(graph.num_vertices)[automorphism_group(graph).orbits]
        prior = weights / weights.sum()
        result = channel.symmetrize(graph, prior=prior)
        assert result.vulnerability_after <= result.vulnerability_before + 1e-14
        assert result.channel.mutual_information(prior) <= channel.mutual_information(prior) + 1e-13


def test_exact_and_floating_averages_agree():
    rows = np.random.default_rng(5).integers(1, 9, (6, 6))
    exact = Channel([[F(int(e), int(row.sum())) for e in row] for row in rows], exact=True)
    plain = Channel(exact.matrix)
    for graph in (path(6), cycle(6), grid(2, 3)):
        one, two = exact.symmetrize(graph), plain.symmetrize(graph)
        np.testing.assert_allclose(one.channel.matrix, two.channel.matrix, rtol=1e-15)
        assert one.channel.symmetrize(graph).channel == one.channel


@pytest.mark.parametrize(
    "graph", [torus(6, 7), grid(9, 9), cycle(97), hamming(5, 3)], ids=["torus", "grid", "cycle", "H(5,3)"]
)
def test_larger_averages_are_means_over_orbitals_and_stay_when_repeated(graph):
    channel = random_channel(1, graph.num_vertices)
    result = channel.symmetrize(graph, threads=2)
    labels = automorphism_group(graph).orbitals().labels().ravel()
    means = np.bincount(labels, weights=channel.matrix.ravel()) / np.bincount(labels)
    np.testing.assert_allclose(result.channel.matrix.ravel(), means[labels], rtol=1e-12)
    assert np.array_equal(result.channel.symmetrize(graph, threads=1).channel.matrix, result.channel.matrix)


@pytest.mark.parametrize(("length", "letters"), [(1, 2), (2, 2), (3, 2), (6, 2), (1, 5), (2, 3), (3, 4), (2, 7)])
def test_hamming_graphs_are_known_by_their_edges_and_groups(length, letters):
    graph = hamming(length, letters)
    assert as_hamming(graph) == (length, letters)
    assert np.array_equal(hamming_distances(length, letters) == 1, graph.to_scipy().toarray() > 0)
    channel = random_channel(2, graph.num_vertices)
    fast = channel.symmetrize(graph).channel.matrix
    assert np.array_equal(channel.symmetrize(AutomorphismGroup.hamming(length, letters)).channel.matrix, fast)
    generated = AutomorphismGroup.from_generators(graph.num_vertices, automorphism_group(graph).generators)
    np.testing.assert_allclose(channel.symmetrize(generated).channel.matrix, fast, rtol=1e-14)


def test_graphs_that_are_like_hamming_graphs_are_not_taken_for_them():
    assert as_hamming(cycle(8)) is None
    assert as_hamming(cycle(4)) is None  # the square, but not vertex for vertex
    assert as_hamming(complete(4)) == (1, 4)
    assert as_hamming(path(1)) is None


def test_a_group_may_be_smaller_than_all_automorphisms():
    rotations = AutomorphismGroup.from_generators(5, [[1, 2, 3, 4, 0]])
    channel = random_channel(3, 5)
    result = channel.symmetrize(rotations, graph=cycle(5))
    assert result.rank == 5
    assert result.guarantees["constant_diagonal"] == "proved"
    assert result.epsilon_after <= result.epsilon_before
    alone = channel.symmetrize(rotations)
    assert alone.epsilon_before is None
    assert "every graph" in alone.reasons["dp_preserved"]
    trivial = channel.symmetrize(AutomorphismGroup.from_generators(5, []))
    assert np.array_equal(trivial.channel.matrix, channel.matrix)


def test_outputs_may_be_permuted_in_their_own_way():
    # Three inputs turned round while two outputs stay: all rows become the mean row.
    channel = Channel([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
    turn = AutomorphismGroup.from_generators(3, [[1, 2, 0]])
    result = channel.symmetrize(turn, output_action=[[0, 1]])
    np.testing.assert_allclose(result.channel.matrix, [[0.25, 0.75]] * 3, rtol=1e-15)
    assert result.trace is None
    assert result.guarantees["constant_diagonal"] == "not guaranteed"
    assert result.guarantees["dp_preserved"] == "proved"
    # Two inputs and four outputs, exchanged together.
    channel = Channel([["1/2", "1/4", "1/8", "1/8"], ["1/4", "1/4", "1/4", "1/4"]], exact=True)
    swap = AutomorphismGroup.from_generators(2, [[1, 0]])
    result = channel.symmetrize(swap, output_action=[[1, 0, 3, 2]])
    assert result.channel.fractions == (
        (F(3, 8), F(1, 4), F(3, 16), F(3, 16)),
        (F(1, 4), F(3, 8), F(3, 16), F(3, 16)),
    )


def test_the_average_can_be_written_to_a_given_array():
    channel, out = random_channel(4, 8), np.empty((8, 8))
    result = channel.symmetrize(hamming(3, 2), out=out)
    assert np.shares_memory(result.channel.matrix, out)
    assert np.array_equal(out, channel.symmetrize(hamming(3, 2)).channel.matrix)


def test_a_report_of_an_infinite_level_is_json():
    report = Channel([[1.0, 0.0], [0.5, 0.5]]).symmetrize(path(2)).to_dict()
    assert json.loads(json.dumps(report, allow_nan=False))["epsilon_before"] == "inf"


def test_a_report_does_not_follow_an_array_that_is_changed_after_it_was_given():
    prior = np.array([0.5, 0.5])
    report = Channel([[0.75, 0.25], [0.5, 0.5]]).symmetrize(path(2), prior=prior)
    prior[:] = 0.9, 0.1
    assert report.prior.tolist() == [0.5, 0.5]
    assert report.vulnerability_before == 0.625
