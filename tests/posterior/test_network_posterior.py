"""The posterior of a network's probabilities given noisy tables: exact laws, calibration, coverage, queries."""

import itertools
import math

import numpy as np
import pytest
from tests.statistics import assert_discrete_fit, assert_share

from quincunx.errors import TooLargeError
from quincunx.posterior import DiscreteBayesNet, PrivateBayesNet, synthesize
from quincunx.posterior._network_posterior import _counts
from quincunx.posterior._network_posterior import joint as _joint
from quincunx.privacy import AddRemove, PrivacyGuarantee

CELLS = [
    *itertools.product([-40, -3, 0, 5, 300], [(1.0, 0.0), (0.5, 0.01), (10.0, 0.5), (100.0, 0.02)], [0.05, 1.0, 3.0]),
    # A prior that is stronger than the noise: the count may be far below the release, or far above.
    *[(500, (1.0, 10.0), 0.1), (20, (100.0, 0.0), 0.01), (400, (1.0, math.expm1(0.1)), 0.1)],
]


def masses(log_mass):
    """Masses from their logarithms."""
    values = np.array(log_mass)
    found = np.exp(values - values.max())
    return found / found.sum()


@pytest.mark.statistical
@pytest.mark.parametrize(("released", "prior", "exponent"), CELLS)
def test_counts_follow_their_posterior(released, prior, exponent):
    """Beside masses by `math.lgamma` on a long range. False alarm 1e-6 for each of 63 cells."""
    shape, rate = prior
    draws = _counts(np.array([released]), 3000, prior, exponent, np.random.default_rng(5))[:, 0]
    law = masses(
        [
            math.lgamma(shape + n) - math.lgamma(n + 1) - n * math.log(1 + rate) - exponent * abs(released - n)
            for n in range(30_000)
        ]
    )
    assert draws.min() >= 0
    assert_discrete_fit(np.bincount(draws, minlength=len(law)), law)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("released", "records", "exponent"), [(-3, 10, 0.5), (6, 10, 0.2), (40, 12, 1.0), (90, 1000, 0.1)]
)
def test_counts_of_known_records_follow_their_posterior(released, records, exponent):
    """Of a lone binary node with a beta prior. False alarm 1e-6 each."""
    draws = _counts(np.array([released]), 3000, (0.7, 0.0), exponent, np.random.default_rng(6), records)[:, 0]
    choose = [math.lgamma(records + 1) - math.lgamma(n + 1) - math.lgamma(records - n + 1) for n in range(records + 1)]
    law = masses(
        [
            choose[n] + math.lgamma(0.7 + n) + math.lgamma(0.7 + records - n) - exponent * abs(released - n)
            for n in range(records + 1)
        ]
    )
    assert_discrete_fit(np.bincount(draws, minlength=len(law)), law)


def geometric(shape, exponent, rng):
    """Two-sided geometric noise: the difference of two geometric numbers."""
    p = -math.expm1(-exponent)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def released(net, tables, epsilon):
    """A fitted network of these noisy tables."""
    cpds = {node: np.full(net._shape(node), 1 / net._sizes[node]) for node in net.nodes}
    return PrivateBayesNet(
        net,
        counts={},
        cpds=cpds,
        guarantee=PrivacyGuarantee(epsilon, relation=AddRemove()),
        mechanism="laplace",
        consistent=False,
        noisy_counts=tables,
        coefficients=None,
    )


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "prior", "total"), [(0.1, 1.0, 30.0), (2.0, 1.0, 8.0), (0.5, 3.0, 2000.0)])
def test_ranks_of_the_truth_are_uniform(epsilon, prior, total):
    """Truth, counts and noise drawn from the model; ranks among 19 draws of 3 probabilities. False alarm 1e-6 each."""
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 3})
    rng = np.random.default_rng(8)
    ranks = []
    for _ in range(1500):
        rates = rng.gamma(prior, total / (6 * prior), (2, 3))
        table = rng.poisson(rates) + geometric((2, 3), epsilon, rng)
        found = released(net, {"A": table.sum(axis=1), "B": table}, epsilon).posterior(
            19, prior=prior, total=total, rng=rng
        )
        given = rates / rates.sum(axis=1, keepdims=True)
        first = rates[0].sum() / rates.sum()
        both = found.query(["A"], {"B": 1})[:, 0], rates[0, 1] / rates[:, 1].sum()
        pairs = [(found.cpds["B"][:, 1, 2], given[1, 2]), (found.cpds["A"][:, 0], first), both]
        ranks.append([(draws < truth).sum() for draws, truth in pairs])
    for column in np.array(ranks).T:
        assert_discrete_fit(np.bincount(column, minlength=20), np.full(20, 1 / 20))


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("relation", [None, AddRemove()])
def test_intervals_cover(epsilon, relation):
    """Records of networks with random probabilities, released by `fit_private`. False alarm 1e-6 each."""
    net = DiscreteBayesNet([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")], {"A": 2, "B": 2, "C": 3, "D": 2, "E": 2})
    rng, covered = np.random.default_rng(9), []
    how = {} if relation is None else {"relation": relation}
    for seed in range(100):
        truth = {node: rng.dirichlet(np.ones(net._sizes[node]), net._shape(node)[:-1]) for node in net.nodes}
        records = released(net, None, 1.0)._with(truth).sample(3000, rng=rng)
        fitted = net.fit_private(records, epsilon=epsilon, mechanism="laplace", insecure_seed=seed, **how)
        found = fitted.posterior(400, rng=rng)
        for node in net.nodes:
            low, high = found.interval(node, 0.8)
            place = (0,) * truth[node].ndim
            covered.append(low[place] <= truth[node][place] <= high[place])
    assert_share(sum(covered), len(covered), 0.8)


def joint(cpds, net):
    """The table of all nodes, as a product by name."""
    letters = {node: chr(97 + place) for place, node in enumerate(net.nodes)}
    terms = ",".join("".join(letters[other] for other in net.family(node)) for node in net.nodes)
    return np.einsum(f"{terms}->{''.join(letters.values())}", *[cpds[node] for node in net.nodes])


def random_network(rng):
    names = [f"v{i}" for i in range(9)]
    edges = [(a, b) for a, b in itertools.combinations(names, 2) if rng.random() < 0.35]
    return DiscreteBayesNet(edges, {name: int(rng.integers(2, 4)) for name in names})


def test_queries_are_those_of_the_joint_table():
    rng = np.random.default_rng(10)
    for _ in range(12):
        net = random_network(rng)
        records = np.stack([rng.integers(0, net._sizes[node], 300) for node in net.nodes], axis=1)
        found = net.fit_private(records, epsilon=3.0, mechanism="laplace").posterior(3, rng=rng)
        asked = [str(node) for node in rng.permutation(net.nodes)]
        wanted, given = asked[: rng.integers(1, 4)], {node: 1 for node in asked[4 : 4 + rng.integers(0, 4)]}
        answer = found.query(wanted, given)
        for draw in range(3):
            table = joint({node: cpd[draw] for node, cpd in found.cpds.items()}, net)
            table = table[tuple(given.get(node, slice(None)) for node in net.nodes)]
            left = [node for node in net.nodes if node not in given]
            table = table.sum(axis=tuple(place for place, node in enumerate(left) if node not in wanted))
            left = [node for node in left if node in wanted]
            table = table.transpose([left.index(node) for node in wanted])
            np.testing.assert_allclose(answer[draw], table / table.sum(), rtol=1e-12)


@pytest.mark.parametrize(("length", "values"), [(3, 2), (40, 1000), (120, 1000)])
def test_queries_of_long_chains_are_those_of_logarithms(length, values):
    """Hidden states with evidence of down to 1e-361, forward in log space."""
    rng = np.random.default_rng(13)
    states, seen = [f"s{i}" for i in range(length)], [f"o{i}" for i in range(length)]
    edges = [*itertools.pairwise(states), *zip(states, seen, strict=True)]
    net = DiscreteBayesNet(edges, {**dict.fromkeys(states, 2), **dict.fromkeys(seen, values)})
    step, told, start = rng.dirichlet([1, 1], (3, 2)), rng.dirichlet(np.ones(values), (3, 2)), rng.dirichlet([1, 1], 3)
    cpds = {"s0": start, **dict.fromkeys(states[1:], step), **dict.fromkeys(seen, told)}
    evidence = dict(zip(seen, rng.integers(0, values, length).tolist(), strict=True))
    logs = np.log(start)
    for i, code in enumerate(evidence.values()):
        logs = np.logaddexp.reduce(logs[:, :, None] + np.log(step), axis=1) if i else logs
        logs = logs + np.log(told[:, :, code])
    right = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    np.testing.assert_allclose(_joint(net, cpds, [states[-1]], evidence), right, rtol=1e-9)


@pytest.mark.parametrize("children", [1, 62, 63, 64, 300])
def test_queries_of_stars_are_products_however_many_meet(children):
    rng = np.random.default_rng(14)
    names = [f"c{i}" for i in range(children)]
    net = DiscreteBayesNet([("hub", name) for name in names], {"hub": 3, **dict.fromkeys(names, 2)})
    cpds = {node: rng.dirichlet(np.ones(net._sizes[node]), (2, 3) if node != "hub" else 2) for node in net.nodes}
    right = cpds["hub"] * np.prod([cpds[name][:, :, 1] for name in names], axis=0)
    found = _joint(net, cpds, ["hub"], dict.fromkeys(names, 1))
    np.testing.assert_allclose(found, right / right.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(_joint(net, cpds, [], {}), [1, 1])
    np.testing.assert_array_equal(_joint(net, cpds, [], {"hub": 0}), [1, 1])


@pytest.mark.filterwarnings("error")
def test_what_has_probability_zero_is_no_evidence():
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2})
    cpds = {"A": np.array([[0.5, 0.5], [1.0, 0.0]]), "B": np.array([[[1.0, 0.0], [0.5, 0.5]]] * 2)}
    np.testing.assert_array_equal(_joint(net, cpds, ["B"], {"A": 0}), [[1, 0], [1, 0]])
    for wanted, given in ((["B"], {"A": 1}), (["A"], {"B": 1}), ([], {"A": 1})):
        with pytest.raises(ValueError, match="`given` must have a probability above 0"):
            _joint(net, cpds, wanted, given)


def test_pgmpy_answers_the_same():
    inference = pytest.importorskip("pgmpy.inference")
    rng = np.random.default_rng(11)
    net = random_network(rng)
    records = np.stack([rng.integers(0, net._sizes[node], 300) for node in net.nodes], axis=1)
    found = net.fit_private(records, epsilon=3.0, mechanism="laplace").posterior(2, rng=rng)
    theirs = inference.VariableElimination(found.network(1).to_pgmpy()).query(["v2"], evidence={"v7": 1})
    np.testing.assert_allclose(found.query(["v2"], {"v7": 1})[1], theirs.values, rtol=1e-10)


def test_probabilities_are_means_of_the_released_counts_where_noise_vanishes():
    """At epsilon 300 counts are as good as released: Dirichlet means and deviations by their formulas."""
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 3})
    rng = np.random.default_rng(12)
    records = np.stack([rng.integers(0, 2, 500), rng.integers(0, 3, 500)], axis=1)
    fitted = net.fit_private(records, epsilon=300.0, mechanism="laplace")
    found = fitted.posterior(20_000, rng=3)
    alphas = 1.0 + net.count_tables(records)["B"]
    whole = alphas.sum(axis=1, keepdims=True)
    deviations = np.sqrt(alphas * (whole - alphas) / whole**2 / (whole + 1))
    np.testing.assert_array_less(abs(found.cpds["B"].mean(axis=0) - alphas / whole), 6 * deviations / math.sqrt(20_000))
    np.testing.assert_allclose(found.cpds["B"].std(axis=0), deviations, rtol=0.05)


def test_draws_go_out_to_networks_and_arviz():
    net = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
    fitted = net.fit_private([["dry", "dry"], ["rain", "wet"]] * 200, epsilon=2.0, mechanism="laplace")
    found = fitted.posterior(50, rng=4)
    assert len(found) == 50
    assert repr(found) == "NetworkPosterior(50 draws of 2 nodes)"
    one = found.network(7)
    assert one.guarantee == fitted.guarantee
    assert np.array_equal(one.cpds["road"], found.cpds["road"][7])
    assert one.sample(5, rng=1).columns.tolist() == ["sky", "road"]
    again = fitted.posterior(50, rng=4)
    assert all(np.array_equal(again.cpds[node], found.cpds[node]) for node in net.nodes)
    pytest.importorskip("arviz_base")
    tree = found.to_datatree()
    assert tree["posterior"]["road"].dims == ("chain", "draw", "sky_category", "road_category")
    assert tree["posterior"]["road_category"].to_numpy().tolist() == ["dry", "wet", "ice"]
    np.testing.assert_array_equal(tree["posterior"]["road"].to_numpy()[0], found.cpds["road"])
    for nodes in [("draw", "x"), ("x", "x_category"), (1, "1")]:
        net = DiscreteBayesNet([nodes], dict.fromkeys(nodes, 2))
        found = net.fit_private([[0, 1]] * 9, epsilon=1.0, mechanism="laplace").posterior(2)
        with pytest.raises(ValueError, match="nodes must have names apart from one another and from those of axes"):
            found.to_datatree()


@pytest.mark.parametrize("prior", [0.1, 1000.0])
@pytest.mark.parametrize("total", [1.0, 2.0**53])
@pytest.mark.parametrize("epsilon", [1e-2, 1000.0])
def test_the_ends_of_what_is_taken_give_probabilities(prior, total, epsilon):
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 3})
    for records in (np.zeros((0, 2), dtype=int), np.zeros((50, 2), dtype=int)):
        fitted = net.fit_private(records, epsilon=epsilon, mechanism="laplace")
        try:
            cpds = fitted.posterior(300, prior=prior, total=total, rng=1).cpds
        except TooLargeError:
            continue
        for table in cpds.values():
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)


def test_what_has_no_answer_is_refused():
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2})
    data = [[0, 0], [1, 1]] * 50
    fitted = net.fit_private(data, epsilon=1.0, mechanism="laplace")
    found = fitted.posterior(5)
    with pytest.raises(ValueError, match="noise was added to counts"):
        net.fit_private(data, epsilon=1.0, mechanism="posterior_sample").posterior()
    with pytest.raises(ValueError, match="noise was added to counts"):
        synthesize(np.array(data), 1.0, domain={"A": 2, "B": 2}).posterior()
    for bad in (
        *({"n_draws": 0}, {"prior": 0.0}, {"total": -1.0}, {"prior": math.nan}),
        # Rates of empty cells would all be zero, weights would not be numbers, or the reach no whole number.
        *({"prior": 1e-300}, {"prior": 1e-3}, {"total": 1e-320}, {"prior": 1e300}, {"total": math.inf}),
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fitted.posterior(**bad)
    with pytest.raises(TooLargeError, match="the law of a cell"):
        net.fit_private(data, epsilon=1e-6, mechanism="laplace").posterior()
    with pytest.raises(ValueError, match="different nodes"):
        found.query(["A", "A"])
    with pytest.raises(ValueError, match="different nodes"):
        found.query(["A"], {"A": 0})
    with pytest.raises(TypeError, match="`given` must be a mapping of nodes to categories, got list"):
        found.query(["A"], ["B"])
    with pytest.raises(ValueError, match="`node` must be one of"):
        found.query(["C"])
    with pytest.raises(ValueError, match=r"given\['A'\]"):
        found.query(["B"], {"A": 2})
    with pytest.raises(ValueError, match="probability"):
        found.interval("A", 1.0)
    with pytest.raises(ValueError, match="draw"):
        found.network(5)
