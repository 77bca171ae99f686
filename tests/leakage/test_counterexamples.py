"""Published statements that are false: each counterexample is one, and is as small as can be."""

import math
from fractions import Fraction as F

import networkx as nx
import numpy as np
import pytest
from leakage_graphs import small_connected_graphs

from quincunx.graphs import automorphism_group, complete, path
from quincunx.leakage import Channel, counterexamples, optimal_mechanism, utility_bound


def test_every_counterexample_prints_its_claim_and_finding():
    found = counterexamples()
    assert len(found) == 7
    for one in found:
        assert str(one).startswith("claim:   ")
        assert one.channel.is_exact
        assert one.graph.num_vertices <= 3


def test_lemma_5_3_2_claim_2_no_channel_of_the_same_leakage_has_a_constant_diagonal():
    one = counterexamples()[0]
    assert one.channel.likelihood_ratio(one.graph) == 2
    averaged = one.channel.symmetrize(one.graph)
    assert averaged.channel == one.channel
    assert one.channel.bayes_vulnerability() == F(5, 9)
    # A private channel with p on the diagonal has at least p / 2 beside the middle: p + 2 (p / 2) <= 1.
    assert F(5, 9) * 2 > 1
    assert averaged.guarantees["constant_diagonal"] == "false"


def test_lemma_5_3_2_claim_2_holds_on_smaller_connected_graphs():
    for graph in small_connected_graphs():
        if graph.num_vertices < 3:
            assert automorphism_group(graph).is_transitive


def test_lemma_5_3_2_claim_3_the_diagonal_is_not_the_maximum_of_the_original_column():
    one = counterexamples()[1]
    assert one.graph == complete(2)
    assert one.channel.symmetrize(one.graph).channel.fractions[0][0] == F(5, 8)
    assert [max(column) for column in zip(*one.channel.fractions, strict=True)] == [F(3, 4), F(1, 2)]


def test_lemma_5_3_2_nothing_happens_where_only_the_identity_is_an_automorphism():
    rigid = (6, [(0, 2), (1, 2), (1, 3), (1, 4), (2, 4), (3, 5)])
    channel = optimal_mechanism(rigid, math.log(2)).channel
    averaged = channel.symmetrize(rigid)
    assert np.array_equal(averaged.channel.matrix, channel.matrix)
    assert averaged.guarantees["constant_diagonal"] == "false"


def test_capacity_falls_on_three_points_and_never_on_two():
    one = counterexamples()[3]
    averaged = one.channel.symmetrize(one.graph)
    assert (averaged.vulnerability_before, averaged.vulnerability_after) == (F(2, 3), F(1, 3))
    for a in range(11):
        for b in range(11):
            channel = Channel([[F(a, 10), F(10 - a, 10)], [F(b, 10), F(10 - b, 10)]], exact=True)
            averaged = channel.symmetrize(complete(2))
            assert averaged.vulnerability_before == averaged.vulnerability_after


def test_theorem_5_3_3_the_middle_of_a_path_does_not_bound_the_utility():
    one = counterexamples()[4]
    for kind in ("vertex", "vertex-sphere"):
        assert utility_bound(path(3), math.log(2), kind)[1] == 0.5
    assert one.channel.bayes_vulnerability() == F(5, 9)
    assert one.channel.likelihood_ratio(path(3)) == 2


def test_theorem_5_3_3_the_center_of_a_star_does_not_bound_the_utility():
    star = nx.star_graph(6)
    assert math.isclose(utility_bound(star, 2.0, "vertex-sphere")[0], 0.5519, abs_tol=5e-5)
    assert math.isclose(optimal_mechanism(star, 2.0).utility, 0.7957, abs_tol=5e-5)


@pytest.mark.parametrize(("epsilon", "failing"), [(0.1, 52), (math.log(2), 62), (2.0, 66)])
def test_theorem_5_3_3_fails_at_some_vertex_of_many_small_graphs_and_never_at_all(epsilon, failing):
    uneven = exceeded = coarse = 0
    for graph in small_connected_graphs()[1:]:
        sharp, smallest = (utility_bound(graph, epsilon, kind) for kind in ("vertex", "vertex-sphere"))
        utility = optimal_mechanism(graph, epsilon).utility - 1e-9
        uneven += np.ptp(sharp) > 1e-12
        exceeded += (utility > sharp).any()
        coarse += (utility > smallest).any()
        assert not (utility > sharp).all()
    assert (uneven, exceeded, coarse) == (131, 131, failing)


def test_theorem_5_3_3_needs_a_uniform_prior():
    one = counterexamples()[5]
    assert one.channel.bayes_vulnerability([F(9, 10), F(1, 10)]) == F(9, 10)
    assert one.channel.likelihood_ratio(one.graph) == 1
    assert utility_bound(complete(2), math.log(2)) < 0.9


def test_one_constant_does_not_make_a_channel():
    assert "7/4, 2, 7/4" in counterexamples()[6].finding
