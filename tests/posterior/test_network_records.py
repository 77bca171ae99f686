"""Chains over the records that all noisy tables or parities count: laws by enumeration, calibration, coverage."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.posterior.test_network_posterior import geometric
from tests.statistics import assert_discrete_fit

from quincunx.errors import ConvergenceWarning
from quincunx.posterior import DiscreteBayesNet, PrivateBayesNet, _mechanisms
from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne

PAIR = DiscreteBayesNet([("x", "y")], {"x": 2, "y": 2})
CHAIN = DiscreteBayesNet([("x", "y"), ("y", "z")], {"x": 2, "y": 2, "z": 2})
COMMON = DiscreteBayesNet([("x", "y"), ("x", "z")], {"z": 2, "x": 2, "y": 2})
COLLIDER = DiscreteBayesNet([("x", "z"), ("y", "z")], {"x": 2, "y": 2, "z": 2})
THREE = DiscreteBayesNet([], {"x": 3})
BESIDE = DiscreteBayesNet([("x", "y")], {"w": 2, "x": 2, "y": 2})  # the ones of w alone are released

#: Cells of a measured table that are summed to one of a node that is read from it, where there are several.
SUMMED = {(net, "x"): 2 for net in (PAIR, CHAIN, COMMON, BESIDE)} | {(COLLIDER, "x"): 4, (COLLIDER, "y"): 4}


@pytest.fixture
def _unjudged(monkeypatch):
    monkeypatch.setattr("quincunx.posterior._network_records.complaint_of", lambda scalars, advice: None)


#: Without diagnostics, which take longer than short chains.
unjudged = pytest.mark.usefixtures("_unjudged")


def released(net, tables, exponent, relation=None):
    """A fitted network of these noisy tables of the nodes measured, with that exponent of the noise."""
    relation = ReplaceOne() if relation is None else relation
    epsilon = exponent * net.count_sensitivity(relation)
    return PrivateBayesNet(
        net,
        counts={},
        cpds={node: np.full(net._shape(node), 1 / net._sizes[node]) for node in net.nodes},
        guarantee=PrivacyGuarantee(epsilon, relation=relation),
        mechanism="laplace",
        consistent=False,
        noisy_counts={node: np.array(table) for node, table in tables.items()},
        coefficients=None,
    )


def released_parities(net, coefficients, epsilon, mechanism, relation):
    """A fitted network of these noisy coefficients, by set of nodes."""
    places = dict(zip(net.fourier_closure(), net._masks, strict=True))
    found = {places[frozenset(name)]: Fraction(value) for name, value in coefficients.items()}
    return PrivateBayesNet(
        net,
        counts={},
        cpds={node: np.full(net._shape(node), 0.5) for node in net.nodes},
        guarantee=PrivacyGuarantee(epsilon, relation=relation),
        mechanism=mechanism,
        consistent=True,
        noisy_counts={node: _mechanisms._table(net, node, found) for node in net.nodes},
        coefficients=found,
    )


def tables_of(net, records):
    """The tables of all families, record by record."""
    found = {node: np.zeros(net._shape(node), dtype=int) for node in net.nodes}
    for record in records:
        for node, table in found.items():
            table[tuple(record[net.nodes.index(other)] for other in net.family(node))] += 1
    return found


def dirichlet_multinomial(counts, concentration):
    """The logarithm of the chance of a sequence with these counts."""
    total = math.lgamma(concentration * len(counts)) - math.lgamma(concentration * len(counts) + sum(counts))
    return total + sum(math.lgamma(concentration + n) - math.lgamma(concentration) for n in counts)


def energy_of_tables(tables, exponent, lone=()):
    """Of records and their tables: how far what was released is from them, times the exponent."""

    def energy(records, found):
        away = [abs(found[node] - np.array(table)).reshape(-1)[node in lone :].sum() for node, table in tables.items()]
        return exponent * sum(away)

    return energy


def energy_of_parities(net, coefficients, epsilon, mechanism, replaced):
    """The same for noise on the numbers of odd records, or on coefficients where records are added."""
    sensitivity = net.fourier_sensitivity(ReplaceOne() if replaced else AddRemove())

    def energy(records, found):
        away = []
        for name, value in coefficients.items():
            odd = sum(sum(record[net.nodes.index(node)] for node in name) % 2 for record in records)
            if replaced:
                away.append(abs((len(records) - value) / 2 - odd) if name else 0.0)
            else:
                away.append(abs(value - (len(records) - 2 * odd)))
        return epsilon * (max(away) if mechanism == "fourier_linf" else sum(away) / sensitivity)

    return energy


def law_of_tables(net, energy, prior, sizes):
    """The posterior of the tables of all families: (of their bytes, its mass), with the tables.

    Every multiset of so many records is enumerated, with the multinomial number of its sequences. A pair has the
    Dirichlet law of all cells of its one table; else rows have the concentrations that `posterior` documents.
    """
    masses, seen = Counter(), {}
    codes = list(itertools.product(*[range(net._sizes[node]) for node in net.nodes]))
    for size in sizes:
        for records in itertools.combinations_with_replacement(codes, size):
            found = tables_of(net, records)
            log = math.lgamma(size + 1) - sum(math.lgamma(n + 1) for n in Counter(records).values())
            if net is PAIR:
                log += dirichlet_multinomial(found["y"].reshape(-1).tolist(), prior)
            else:
                rows = [(node, row.tolist()) for node in net.nodes for row in found[node].reshape(-1, net._sizes[node])]
                log += sum(dirichlet_multinomial(row, prior * SUMMED.get((net, node), 1)) for node, row in rows)
            log -= energy(records, found)
            key = b"".join(found[node].tobytes() for node in net.nodes)
            masses[key] += math.exp(log)
            seen[key] = found
    whole = sum(masses.values())
    return {key: mass / whole for key, mass in masses.items()}, seen


CASES = {
    "three categories": (THREE, {"x": [4, -1, 2]}, 0.7, 1.0, 6, None),
    "a pair": (PAIR, {"y": [[3, 1], [-2, 4]]}, 0.3, 1.0, 6, None),
    "a pair, weak prior": (PAIR, {"y": [[5, 0], [0, 3]]}, 0.5, 0.3, 5, None),
    "a chain": (CHAIN, {"y": [[2, 1], [0, 1]], "z": [[-1, 2], [3, 1]]}, 0.4, 1.0, 5, None),
    "a chain, tables far apart": (CHAIN, {"y": [[9, -7], [0, 1]], "z": [[-1, 2], [12, -5]]}, 0.2, 2.0, 4, None),
    "a common cause": (COMMON, {"y": [[2, 1], [0, 1]], "z": [[-1, 2], [3, 1]]}, 0.6, 0.5, 4, None),
    "a collider": (COLLIDER, {"z": [[[1, 2], [0, 1]], [[0, 3], [-2, 1]]]}, 0.5, 1.0, 4, None),
    "a lone binary node": (BESIDE, {"w": [1, 3], "y": [[2, 1], [-1, 1]]}, 0.5, 1.0, 4, ("w",)),
    "records unknown": (PAIR, {"y": [[3, 1], [-2, 4]]}, 0.9, 1.0, None, None),
    "records of a chain unknown": (CHAIN, {"y": [[1, 0], [0, 1]], "z": [[0, 1], [1, -1]]}, 1.2, 1.0, None, None),
}


@pytest.mark.statistical
@unjudged
@pytest.mark.parametrize("case", CASES)
def test_records_follow_their_posterior(case):
    """Tables of all families beside the enumeration of all records; means of probabilities. False alarm 1e-6 each."""
    net, tables, exponent, prior, size, lone = CASES[case]
    sizes = [size] if size else range(14 if len(tables) == 1 else 8)
    fitted = released(net, tables, exponent, ReplaceOne() if size else AddRemove())
    follows(fitted, energy_of_tables(tables, exponent, lone or ()), prior, sizes)


#: Of empty sets the coefficient is the number of records: as it is where records are replaced, else with noise.
PARITIES = {
    "a pair": (PAIR, {"": 6, "x": 2, "y": -3, "xy": 5}, 1.5, 1.0, True),
    "a chain": (CHAIN, {"": 5, "x": 3, "y": -1, "z": 7, "xy": 2, "yz": -6}, 2.0, 0.5, True),
    "a collider": (COLLIDER, {"": 4, "x": 1, "y": 2, "z": -3, "xy": 0, "xz": 5, "yz": -2, "xyz": 1}, 1.0, 1.0, True),
    "halves": (PAIR, {"": 5, "x": 1.5, "y": -2.25, "xy": 3.5}, 1.2, 0.3, True),
    "records unknown": (PAIR, {"": 3, "x": 1, "y": -2, "xy": 2}, 4.0, 1.0, False),
    "records of a chain unknown": (CHAIN, {"": 2, "x": 1, "y": -2, "z": 1, "xy": 2, "yz": 0}, 6.0, 1.0, False),
}


@pytest.mark.statistical
@unjudged
@pytest.mark.parametrize("mechanism", ["fourier_l1", "fourier_linf"])
@pytest.mark.parametrize("case", PARITIES)
def test_records_follow_their_posterior_given_parities(case, mechanism):
    net, coefficients, epsilon, prior, replaced = PARITIES[case]
    sizes = [coefficients[""]] if replaced else range(14 if net is PAIR else 8)
    fitted = released_parities(net, coefficients, epsilon, mechanism, ReplaceOne() if replaced else AddRemove())
    follows(fitted, energy_of_parities(net, coefficients, epsilon, mechanism, replaced), prior, sizes)


def follows(fitted, energy, prior, sizes):
    """Check draws against the law by enumeration."""
    net = fitted.net
    law, seen = law_of_tables(net, energy, prior, sizes)
    size = sizes[0] if len(sizes) == 1 else None
    found = fitted.posterior(1500, prior=prior, consistent=True, n_records=size, n_warmup=200, thin=40, rng=3)
    keys = [b"".join(found.counts[node][i].tobytes() for node in net.nodes) for i in range(len(found))]
    inside = [i for i, key in enumerate(keys) if key in law]  # of numbers of records that are enumerated
    assert len(inside) == len(found) if size else len(inside) > 0.97 * len(found)
    drawn = Counter(keys)
    assert_discrete_fit([drawn[key] for key in law], list(law.values()))
    for node in net.nodes:
        rows = prior * SUMMED.get((net, node), 1)
        given = {key: (counts[node] + rows) for key, counts in seen.items()}
        mean = sum(mass * given[key] / given[key].sum(axis=-1, keepdims=True) for key, mass in law.items())
        draws = found.cpds[node][inside]
        error = draws.std(axis=0) / math.sqrt(len(draws))
        assert (abs(draws.mean(axis=0) - mean) < 5.5 * error).all(), node


def from_the_prior(net, prior, rng):
    """Probabilities from the law that `posterior` documents."""
    return {
        node: rng.dirichlet(np.full(net._sizes[node], prior * SUMMED.get((net, node), 1)), net._shape(node)[:-1])
        for node in net.nodes
    }


def ranks(prior, exponent, size, seed, wrong=1.0, replicates=500):
    """Ranks of the truth of a chain of three nodes among 19 draws: of three probabilities, with the noise scaled."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(replicates):
        truth = from_the_prior(CHAIN, prior, rng)
        records = released(CHAIN, {}, exponent)._with(truth)._codes(size, rng)
        counts = tables_of(CHAIN, records)
        tables = {node: counts[node] + geometric(counts[node].shape, exponent * wrong, rng) for node in ("y", "z")}
        drawn = released(CHAIN, tables, exponent).posterior(
            19, prior=prior, consistent=True, n_records=size, n_chains=1, n_warmup=150, thin=25, rng=rng
        )
        of_last = (drawn.query(["z"])[:, 1], truth["x"] @ truth["y"] @ truth["z"][:, 1])
        pairs = [(drawn.cpds["x"][:, 0], truth["x"][0]), (drawn.cpds["z"][:, 1, 0], truth["z"][1, 0]), of_last]
        found.append([(draws < value).sum() for draws, value in pairs])
    return np.array(found)


@pytest.mark.statistical
@unjudged
@pytest.mark.parametrize(
    ("prior", "exponent", "size"), [(1.0, 0.2, 10), pytest.param(0.5, 1.0, 15, marks=pytest.mark.slow)]
)
def test_ranks_of_the_truth_are_uniform(prior, exponent, size):
    """Truth, records and noise from the model (Cook, Gelman, Rubin 2006). False alarm 1e-6 for each of 6."""
    for column in ranks(prior, exponent, size, 11).T:
        assert_discrete_fit(np.bincount(column, minlength=20), np.full(20, 1 / 20))


@pytest.mark.statistical
@unjudged
def test_ranks_see_noise_of_another_law():
    """Noise ten times as wide as the model says must not pass the test of ranks."""
    found = ranks(1.0, 1.0, 15, 12, wrong=0.1, replicates=300)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_discrete_fit(np.bincount(found.T.reshape(-1), minlength=20), np.full(20, 1 / 20))


STAR = DiscreteBayesNet([("x", f"y{i}") for i in range(6)], {"x": 3} | {f"y{i}": 2 for i in range(6)})
SUMMED[STAR, "x"] = 2


@pytest.mark.slow
@pytest.mark.statistical
@unjudged
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_intervals_cover(epsilon):
    """Truth from the prior, records released by `fit_private`, intervals of every probability of x and some of others.

    False alarm 1e-6 each, with 2.5 % allowed for intervals that are read from some hundred effective draws.
    """
    rng, covered = np.random.default_rng(13), []
    for seed in range(60):
        truth = from_the_prior(STAR, 1.0, rng)
        records = released(STAR, {}, 1.0)._with(truth)._codes(400, rng)
        fitted = STAR.fit_private(records, epsilon=epsilon, mechanism="laplace", insecure_seed=seed)
        found = fitted.posterior(500, consistent=True, n_records=400, n_chains=2, n_warmup=300, thin=4, rng=rng)
        for node, place in (("x", (0,)), ("y0", (0, 0)), ("y1", (1, 0)), ("y2", (2, 0)), ("y3", (0, 0))):
            low, high = found.interval(node, 0.8)
            covered.append(low[place] <= truth[node][place] <= high[place])
    hits, draws = sum(covered), len(covered)
    # Those of one replicate may depend on one another: as if every second counted.
    spread = math.sqrt(2 * draws * 0.8 * 0.2)
    assert -0.025 * draws - 4.9 * spread < hits - 0.8 * draws < 4.9 * spread


@pytest.mark.slow
@pytest.mark.statistical
@unjudged
@pytest.mark.parametrize("mechanism", ["fourier_l1", "fourier_linf"])
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()])
def test_intervals_cover_given_parities(mechanism, relation):
    """Truth from the prior, records released by `fit_private`: false alarm 1e-6, 3 % allowed as above."""
    rng, covered = np.random.default_rng(23), []
    for seed in range(60):
        truth = from_the_prior(CHAIN, 1.0, rng)
        records = released(CHAIN, {}, 1.0)._with(truth)._codes(200, rng)
        fitted = CHAIN.fit_private(records, epsilon=2.0, mechanism=mechanism, insecure_seed=seed, relation=relation)
        found = fitted.posterior(400, consistent=True, n_chains=2, n_warmup=300, thin=4, rng=rng)
        for node, place in (("x", (0,)), ("y", (0, 0)), ("y", (1, 0)), ("z", (0, 0)), ("z", (1, 1))):
            low, high = found.interval(node, 0.8)
            covered.append(low[place] <= truth[node][place] <= high[place])
    hits, draws = sum(covered), len(covered)
    spread = math.sqrt(2 * draws * 0.8 * 0.2)
    assert abs(hits - 0.8 * draws) < 4.9 * spread + 0.03 * draws


@unjudged
@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 0.6), (2.0, 0.92)])
def test_intervals_are_narrower_than_those_of_tables_alone(epsilon, most):
    """Of a node in six tables, 1000 records: the mean ratio of widths over four releases is .49 and .84."""
    rng, ratios = np.random.default_rng(14), []
    truth = from_the_prior(STAR, 4.0, rng)
    for seed in range(4):
        records = released(STAR, {}, 1.0)._with(truth)._codes(1000, rng)
        fitted = STAR.fit_private(records, epsilon=epsilon, mechanism="laplace", insecure_seed=seed)
        joint = fitted.posterior(400, consistent=True, n_records=1000, n_chains=2, n_warmup=200, thin=2, rng=seed)
        alone = fitted.posterior(4000, rng=seed)
        widths = [np.diff(one.interval("x", 0.9), axis=0).mean() for one in (joint, alone)]
        ratios.append(widths[0] / widths[1])
    assert np.mean(ratios) < most


@unjudged
def test_tables_of_a_draw_count_the_same_records():
    rng = np.random.default_rng(15)
    data = rng.integers(0, 2, (200, 4))
    net = DiscreteBayesNet([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], dict.fromkeys("abcd", 2))
    fitted = net.fit_private(data, epsilon=2.0, mechanism="laplace", insecure_seed=1, relation=AddRemove())
    found = fitted.posterior(300, consistent=True, n_warmup=200, rng=2)
    b, c, d = (found.counts[node] for node in "bcd")
    assert np.array_equal(b.sum(axis=2), c.sum(axis=2))
    assert np.array_equal(b.sum(axis=2), found.counts["a"])
    assert np.array_equal(b.sum(axis=1), d.sum(axis=(2, 3)))
    assert np.array_equal(c.sum(axis=1), d.sum(axis=(1, 3)))
    assert min(table.min() for table in found.counts.values()) >= 0
    numbers = found.counts["a"].sum(axis=1)
    assert numbers.std() > 0
    assert abs(numbers.mean() - 200) < 60
    assert "number of records" in found._scalars


@unjudged
def test_draws_depend_on_the_seed_alone(monkeypatch):
    fitted = released(CHAIN, {"y": [[20, 10], [7, 9]], "z": [[9, 15], [13, 5]]}, 0.5)
    one, other, again = (
        fitted.posterior(100, consistent=True, n_records=45, n_warmup=10, n_chains=4, rng=seed) for seed in (1, 2, 1)
    )
    monkeypatch.setenv("QUINCUNX_NUM_THREADS", "1")
    alone = fitted.posterior(100, consistent=True, n_records=45, n_warmup=10, n_chains=4, rng=1)
    for node in CHAIN.nodes:
        assert np.array_equal(one.cpds[node], again.cpds[node])
        assert np.array_equal(one.cpds[node], alone.cpds[node])
        assert not np.array_equal(one.cpds[node], other.cpds[node])
        chains = one.cpds[node].reshape(4, 100, -1)
        assert not np.array_equal(chains[0], chains[1])


@unjudged
@pytest.mark.parametrize(("exponent", "prior"), [(0.01, 0.1), (1.0, 1000.0), (300.0, 0.1), (1e4, 1000.0), (1e4, 0.1)])
@pytest.mark.parametrize("size", [0, 1, 40, None])
def test_the_ends_of_what_is_taken_give_probabilities(exponent, prior, size):
    """At exponents of thousands masses leave the range of doubles, and these tables contradict one another."""
    fitted = released(CHAIN, {"y": [[20, 10], [7, 9]], "z": [[-9, 10], [13, 6]]}, exponent)
    found = fitted.posterior(20, prior=prior, consistent=True, n_records=size, n_warmup=50, n_chains=2, rng=1)
    for node in CHAIN.nodes:
        np.testing.assert_allclose(found.cpds[node].sum(axis=-1), 1.0)
        assert found.counts[node].min() >= 0
        assert size is None or (found.counts[node].reshape(len(found), -1).sum(axis=1) == size).all()


@unjudged
@pytest.mark.filterwarnings("ignore:the distance of .* is the same")
@pytest.mark.parametrize("mechanism", ["laplace", "fourier_l1", "fourier_linf"])
def test_counts_are_those_released_where_noise_vanishes(mechanism):
    rng = np.random.default_rng(16)
    data = rng.integers(0, 2, (300, 3))
    fitted = CHAIN.fit_private(data, epsilon=40.0, mechanism=mechanism, insecure_seed=1)
    found = fitted.posterior(200, consistent=True, n_records=300, n_warmup=2000, rng=1)
    for node, table in CHAIN.count_tables(data).items():
        assert np.array_equal(found.counts[node], np.broadcast_to(table, found.counts[node].shape))


@unjudged
@pytest.mark.filterwarnings("ignore:the distance of .* is the same")
@pytest.mark.parametrize("mechanism", ["fourier_l1", "fourier_linf"])
def test_narrow_noise_on_parities_does_not_hold_chains_where_they_began(mechanism):
    """Each single turn of a record is uphill from many places: chains that did not begin mildly kept to these."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (100, 4))
    data[:, 3] = data[:, 0] & data[:, 1] | (rng.random(100) < 0.2)
    net = DiscreteBayesNet([("a", "d"), ("b", "d"), ("c", "d")], dict.fromkeys("abcd", 2))
    fitted = net.fit_private(data, 50.0, mechanism=mechanism, insecure_seed=3)
    found = fitted.posterior(20, consistent=True, n_chains=12, rng=3)
    assert (found.counts["d"] == net.count_tables(data)["d"]).all()


@unjudged
def test_chains_that_keep_to_one_place_are_warned_of():
    fitted = released_parities(PAIR, {"": 4, "x": 1, "y": 1, "xy": 1}, 400.0, "fourier_l1", ReplaceOne())
    with pytest.warns(ConvergenceWarning, match="distance of x is the same in all draws of 2 of 2 chains"):
        fitted.posterior(20, consistent=True, n_chains=2, rng=1)


def test_chains_go_out_to_networks_and_arviz():
    fitted = released(CHAIN, {"y": [[20, 10], [7, 9]], "z": [[9, 15], [13, 5]]}, 0.5)
    found = fitted.posterior(250, consistent=True, n_records=45, rng=1)
    assert repr(found) == "NetworkPosterior(1000 draws of 3 nodes from 4 chains)"
    assert found.network(999).cpds["y"].shape == (2, 2)
    assert found.query(["z"], {"x": 1}).shape == (1000, 2)
    assert fitted.posterior(5).diagnostics() == {}
    pytest.importorskip("arviz_stats")
    names = [f"{what} of {node}" for what, nodes in (("log-likelihood", "xyz"), ("distance", "yz")) for node in nodes]
    assert list(found.diagnostics()) == names
    assert all(rhat < 1.05 and ess > 100 for rhat, ess in found.diagnostics().values())
    tree = found.to_datatree()
    assert tree["posterior"]["y"].dims == ("chain", "draw", "x_category", "y_category")
    np.testing.assert_array_equal(tree["posterior"]["y"].to_numpy().reshape(1000, 2, 2), found.cpds["y"])


def test_chains_that_are_too_short_are_warned_of():
    pytest.importorskip("arviz_stats")
    fitted = released(CHAIN, {"y": [[20, 10], [7, 9]], "z": [[9, 15], [13, 5]]}, 0.5)
    with pytest.warns(ConvergenceWarning, match="raise `n_draws`, `n_warmup` or `thin`"):
        fitted.posterior(20, consistent=True, n_records=45, n_warmup=0, rng=1)


def test_what_has_no_answer_is_refused():
    fitted = released(PAIR, {"y": [[20, 10], [7, 9]]}, 0.5)
    with pytest.raises(ValueError, match="`total` is for tables taken alone"):
        fitted.posterior(5, consistent=True, total=40.0)
    with pytest.raises(ValueError, match="`n_records` is for `consistent=True`"):
        fitted.posterior(5, n_records=40)
    with pytest.raises(TypeError, match="`consistent`"):
        fitted.posterior(5, consistent="yes")
    for bad in ({"n_chains": 0}, {"n_warmup": -1}, {"thin": 0}, {"n_draws": 0}, {"n_records": -1}, {"prior": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fitted.posterior(consistent=True, **bad)
    beside = released(BESIDE, {"w": [1, 3], "y": [[2, 1], [-1, 1]]}, 0.5)
    with pytest.raises(ValueError, match="`n_records` must be 4, the sum of the table of 'w'"):
        beside.posterior(5, consistent=True, n_records=5)
    drawn = PAIR.fit_private([[0, 0], [1, 1]] * 50, epsilon=1.0, mechanism="posterior_sample")
    with pytest.raises(ValueError, match="noise was added to counts or parities; got 'posterior_sample'"):
        drawn.posterior(5, consistent=True)
    for mechanism in ("fourier_l1", "fourier_linf"):
        parities = PAIR.fit_private([[0, 0], [1, 1]] * 50, epsilon=1.0, mechanism=mechanism)
        with pytest.raises(ValueError, match=f"`consistent` must be True for parities.*{mechanism}"):
            parities.posterior(5)
        with pytest.raises(ValueError, match="`n_records` must be 100, which replacing"):
            parities.posterior(5, consistent=True, n_records=99)
