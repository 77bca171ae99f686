"""Synthetic records: the law of what is released, the guarantee, the fit, the draws; each by a second way."""

import gzip
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special, stats
from tests.interrupts import Stopped, stop_after

from quincunx.posterior import MarginalTree, SyntheticBayesNet, synthesize
from quincunx.posterior._measuring import PARTS, Steps
from quincunx.privacy import AddRemove, Budget, BudgetExceeded, DataMetric, PrivacyGuarantee, ReplaceOne
from quincunx.privacy._categorical import on_simplex

ADULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult_train.csv.gz"
TREE = [(0, 1), (0, 2), (2, 3), (2, 4), (4, 5)]  # what `tree_records` draws along


def tree_records(n, sizes, rng):
    """Records that are Markov along TREE, with strong edges."""
    data = np.zeros((n, len(sizes)), dtype=np.int64)
    data[:, 0] = rng.integers(0, sizes[0], n)
    for parent, child in TREE:
        same = rng.random(n) < 0.7
        data[:, child] = np.where(same, data[:, parent] % sizes[child], rng.integers(0, sizes[child], n))
    return data


def table(data, columns, sizes):
    found = np.zeros([sizes[column] for column in columns])
    np.add.at(found, tuple(np.asarray(data)[:, column] for column in columns), 1)
    return found


def spanning_forests(nodes, pairs, count):
    """All sets of so many pairs without a cycle."""
    for edges in itertools.combinations(pairs, count):
        matrix = np.zeros((nodes, count))
        for place, (i, j) in enumerate(edges):
            matrix[i, place], matrix[j, place] = 1, -1
        if count == 0 or np.linalg.matrix_rank(matrix) == count:
            yield edges


# What is released.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_without_noise_marginals_are_the_true_ones(delta, relation):
    sizes = [3, 4, 3, 2, 5, 4]
    data = tree_records(3000, sizes, np.random.default_rng(1))
    made = synthesize(data, 1e5, delta, domain=dict(enumerate(sizes)), relation=relation, insecure_seed=1)
    assert made.n_records == 3000
    assert {frozenset(edge) for edge in made.edges} == {frozenset(edge) for edge in TREE}
    for parent, child in made.edges:
        np.testing.assert_allclose(made.counts[child], table(data, (parent, child), sizes), atol=0.02)
    for column in made.net.nodes:
        alone = made.counts[column] if column == made.net._order[0] else made.counts[column].sum(axis=0)
        np.testing.assert_allclose(alone, table(data, (column,), sizes), atol=0.02)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 1e-6)])
def test_the_tree_of_the_records_is_found(epsilon, delta):
    sizes = [3, 4, 3, 2, 5, 4]
    data = tree_records(30_000, sizes, np.random.default_rng(2))
    made = synthesize(data, epsilon, delta, domain=dict(enumerate(sizes)), insecure_seed=2)
    # The tree of largest total score, over all 6**4 of them; a pair off the tree scores less by thousands of records.
    scores = {}
    for i, j in itertools.combinations(range(6), 2):
        product = np.outer(table(data, (i,), sizes), table(data, (j,), sizes)) / len(data)
        scores[i, j] = np.abs(table(data, (i, j), sizes) - product).sum()
    trees = list(spanning_forests(6, list(scores), 5))
    assert len(trees) == 6**4
    best = max(trees, key=lambda edges: sum(scores[edge] for edge in edges))
    assert {tuple(sorted(edge)) for edge in made.edges} == set(best) == {tuple(sorted(edge)) for edge in TREE}


def test_categories_that_are_rare_are_one_group():
    rng = np.random.default_rng(3)
    common = rng.integers(0, 3, 5000)
    data = np.stack([common, (common + (rng.random(5000) < 0.2)) % 3], axis=1)
    made = synthesize(data, 1.0, 1e-6, domain={"a": 40, "b": 3}, insecure_seed=3)
    assert made.groups["a"] == ((0,), (1,), (2,), tuple(range(3, 40)))
    assert made.marginals["a", "b"].shape == (4, 3)
    assert made.marginals[("a",)].shape == (40,)
    assert made.cpds["b"].shape == (40, 3)
    given = made.cpds["b"][3:]
    assert np.ptp(given, axis=0).max() == 0  # of one group nothing else was measured
    np.testing.assert_allclose(made.cpds["a"].sum(), 1, rtol=1e-14)


def test_groups_of_a_child_keep_the_shares_of_its_table():
    rng = np.random.default_rng(30)
    parent = rng.integers(0, 2, 20_000)
    child = np.where(rng.random(20_000) < 0.99, parent, rng.integers(2, 30, 20_000))
    made = synthesize(np.stack([parent, child], axis=1), 3.0, 1e-6, domain={"a": 2, "b": 30}, insecure_seed=31)
    assert len(made.groups["b"][-1]) > 1
    found, true = made.counts["b"].sum(axis=0), np.bincount(child, minlength=30)
    assert found.sum() == pytest.approx(20_000, rel=1e-12)
    assert np.abs(found - true).sum() < 30 * math.sqrt(made.marginals[("b",)].noise.variance)  # else thousands


def test_a_hub_that_comes_last_is_a_parent():
    sizes = [2, 3, 4, 5]
    rng = np.random.default_rng(32)
    hub = rng.integers(0, 5, 4000)
    data = np.stack([*(np.where(rng.random(4000) < 0.8, hub % k, rng.integers(0, k, 4000)) for k in sizes[:3]), hub], 1)
    made = synthesize(data, 1e5, domain=dict(enumerate(sizes)), insecure_seed=33)
    assert set(made.edges) == {(0, 3), (3, 1), (3, 2)}
    for parent, child in made.edges:
        np.testing.assert_allclose(made.counts[child], table(data, (parent, child), sizes), atol=0.02)


def test_steps_of_a_seed_draw_apart():
    data, first, second = np.zeros((1, 2), dtype=np.int64), [], []
    for seed in range(400):
        made = synthesize(data, 1.0, 1e-6, domain={"a": 2, "b": 2}, relation=AddRemove(), insecure_seed=seed)
        first.append(int(made.marginals[("a",)].values[0]))
        second.append(int(made.marginals["a", "b"].values.flat[0]))
    assert stats.spearmanr(first, second).pvalue > 1e-6


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_noise_is_that_of_the_laws_released(relation):
    # 12 000 cells of records that are all alike: what is released is the noise.
    domain = {"a": 6000, "b": 6000}
    for delta in (0.0, 1e-6):
        made = synthesize(
            np.zeros((1, 2), dtype=np.int64), 3.0, delta, domain=domain, relation=relation, workload=[], insecure_seed=4
        )
        found = np.concatenate([np.asarray(made.marginals[(name,)]) for name in domain])
        found[[0, 6000]] -= 1
        law = made.marginals[("a",)].noise
        values = np.arange(-200, 201)
        chances = np.exp(law.log_likelihood(values, 0))
        inner = np.abs(values) <= 2
        expected = np.append(chances[inner], 1 - chances[inner].sum()) * len(found)
        observed = np.append([(found == value).sum() for value in values[inner]], (np.abs(found) > 2).sum())
        assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1) > 1e-6


def test_the_number_of_records_is_a_noisy_one_where_records_come_and_go():
    data = np.random.default_rng(5).integers(0, 4, (2000, 3))
    found = [
        synthesize(data, 1.0, 1e-6, domain=[4] and dict.fromkeys("abc", 4), relation=AddRemove(), insecure_seed=s)
        for s in range(40)
    ]
    numbers = np.array([made.n_records for made in found])
    # Three sums of four cells: their mean has deviation sqrt(4 v / 3).
    spread = math.sqrt(4 * found[0].marginals[("a",)].noise.variance / 3)
    assert len(set(numbers)) > 10
    assert abs(numbers.mean() - 2000) < 5 * spread / math.sqrt(40)
    assert stats.chi2.sf(((numbers - 2000) ** 2).sum() / spread**2, 40) > 1e-6
    nobody = synthesize(np.zeros((0, 3), dtype=int), 1.0, domain=dict.fromkeys("abc", 4), relation=AddRemove())
    assert nobody.n_records >= 1


# The guarantee.


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7])
def test_pure_guarantee_is_the_sum_of_its_steps(epsilon, relation):
    tree = MarginalTree(epsilon, domain=dict.fromkeys("abcde", 3), relation=relation)
    moved = 2 if relation == ReplaceOne() else 1
    ones = 5 * moved * tree._first.decay
    choices = 4 * tree._exponent * 2 * (moved * PARTS)
    twos = 4 * moved * tree._second.decay
    assert tree.guarantee.exact_epsilon == ones + choices + twos
    assert tree.guarantee.epsilon == epsilon
    assert tree.guarantee.is_pure
    assert tree.rho is None
    for part in (ones, choices, twos):
        assert float(part) == pytest.approx(epsilon / 3, rel=1e-12)
    assert tree.guarantee.relation == relation


def epsilon_by_hand(rho, delta):
    """Of proposition 12 of Canonne, Kamath and Steinke: the least over all orders."""

    def at(log_order):
        order = 1 + math.exp(log_order)
        return rho * order + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    return optimize.minimize_scalar(at, bounds=(-5, 12), method="bounded", options={"xatol": 1e-10}).fun


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-9), (1.0, 1e-5), (8.0, 1e-6)])
def test_approximate_guarantee_is_the_sum_of_the_levels(epsilon, delta, relation):
    tree = MarginalTree(epsilon, delta, domain=dict.fromkeys("abcdefgh", 3), relation=relation)
    moved = 2 if relation == ReplaceOne() else 1
    # Noise: cells moved / (2 variance). A choice of range e: e**2 / 8.
    ones = 8 * moved / (2 * tree._first.variance)
    choices = 7 * (tree._exponent * 2 * moved * PARTS) ** 2 / 8
    twos = 7 * moved / (2 * tree._second.variance)
    assert Fraction(tree.rho) >= ones + choices + twos
    assert tree.rho == pytest.approx(float(ones + choices + twos), rel=1e-15)
    assert epsilon_by_hand(tree.rho, delta) == pytest.approx(epsilon, rel=1e-5)
    assert epsilon_by_hand(tree.rho, delta) <= epsilon * (1 + 1e-12)
    assert (tree.guarantee.epsilon, tree.guarantee.delta, tree.guarantee.zcdp) == (epsilon, delta, tree.rho)
    for part in (ones, choices, twos):
        assert float(part) == pytest.approx(tree.rho / 3, rel=1e-4)


def test_budget_takes_releases_and_refuses_the_one_too_many():
    tree = MarginalTree(1.0, 1e-6, domain={"a": 2, "b": 2})
    budget = Budget(2.5, 1e-5)
    budget.spend(tree)
    budget.spend(tree)
    with pytest.raises(BudgetExceeded):
        budget.spend(tree)
    concentrated = Budget(2.5, 1e-6, filter="zcdp")
    for _ in range(3):  # levels add up: the third release fits
        concentrated.spend(tree)
    made = tree.release([[0, 0], [1, 1]])
    assert made.guarantee == tree.guarantee == made.marginals["a", "b"].guarantee
    seeded = tree.release([[0, 0], [1, 1]], insecure_seed=1)
    assert seeded.guarantee.numerics == "insecure"
    with pytest.raises(BudgetExceeded):
        Budget(5.0, 1e-3).spend(seeded)


def log_softmax(values):
    return values - special.logsumexp(values)


class Law:
    """The law of what `release` gives out, from the description in words: without the code that draws it.

    An outcome is (one-way tables, edges in the order of their choice, two-way tables of groups).
    """

    def __init__(self, tree, sizes, weights):
        self.tree, self.sizes, self.weights = tree, sizes, weights

    def log_noise(self, step, noisy, true):
        difference = np.abs(np.asarray(noisy, dtype=float) - true)
        decay = float(step.decay)
        return float((math.log(math.tanh(decay / 2)) - decay * difference).sum())

    def scores(self, data, ones, total):
        """In records: the L1 distance of each pair's table and its product, categories that are rare taken together."""
        deviation = math.sqrt(0.5) / math.sinh(float(self.tree._first.decay) / 2)
        places = []
        for one in ones:
            rare, place, following = one < 3 * deviation, [], 0
            for gone in rare:
                place.append(-1 if gone else following)
                following += not gone
            places.append([following if at < 0 else at for at in place])
        alone = []
        for one, place in zip(ones, places, strict=True):
            sums = np.zeros(max(place) + 1)
            for value, at in zip(one, place, strict=True):
                sums[at] += value
            low, high = sums.min() - total - 1, sums.max() + 1  # the threshold of the projection, by bisection
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if np.maximum(sums - middle, 0).sum() > total else (low, middle)
            alone.append(np.maximum(sums - low, 0))
        found = {}
        for (i, j), weight in self.weights.items():
            counts = np.zeros((len(alone[i]), len(alone[j])))
            for record in data:
                counts[places[i][record[i]], places[j][record[j]]] += 1
            expected = np.round(PARTS * alone[i][:, None] * alone[j] / total) / PARTS
            found[i, j] = weight * np.abs(counts - expected).sum()
        return found, places

    def log_likelihood(self, outcome, data):
        ones, edges, twos = outcome
        total = len(data)
        logs = 0.0
        for column, one in enumerate(ones):
            logs += self.log_noise(self.tree._first, one, table(data, (column,), self.sizes))
        scores, places = self.scores(data, ones, total)
        rate = float(self.tree._exponent) * PARTS
        component = {i: {i} for i in range(len(self.sizes))}
        for edge in edges:
            candidates = [(i, j) for i, j in scores if component[i] is not component[j]]
            logs += log_softmax(rate * np.array([scores[pair] for pair in candidates]))[candidates.index(edge)]
            joined = component[edge[0]] | component[edge[1]]
            for node in joined:
                component[node] = joined
        for (i, j), two in zip(edges, twos, strict=True):
            counts = np.zeros(np.shape(two))
            for record in data:
                counts[places[i][record[i]], places[j][record[j]]] += 1
            logs += self.log_noise(self.tree._second, two, counts)
        return logs


def run(tree, data, seed):
    """Return an outcome of a release, with the edges in the order of their choice."""
    made = tree.release(data, insecure_seed=seed)
    names = tree.columns
    ones = [np.asarray(made.marginals[(name,)]) for name in names]
    edges = [key for key in made.marginals if len(key) == 2]
    twos = [np.asarray(made.marginals[key]) for key in edges]
    return ones, [tuple(names.index(name) for name in key) for key in edges], twos


@pytest.mark.parametrize("workload", [None, [(0, 1, 2), (0, 1)]], ids=["all pairs", "weighted"])
@pytest.mark.parametrize("epsilon", [1.5, 60.0])  # all categories rare, or none
def test_no_outcome_tells_neighbors_apart_by_more_than_epsilon(epsilon, workload):
    # Data sets of two records of a tiny domain, their neighbors, and outcomes: the loss of each, exactly.
    sizes = [2, 3, 2]
    tree = MarginalTree(epsilon, domain=dict(enumerate(sizes)), workload=workload)
    weights = {(0, 1): 1, (0, 2): 1, (1, 2): 1} if workload is None else {(0, 1): 2, (0, 2): 1, (1, 2): 1}
    law = Law(tree, sizes, weights)
    records = list(itertools.product(*map(range, sizes)))
    rng = np.random.default_rng(6)
    largest = 0.0
    for seed in range(80):
        first, second, third = (records[i] for i in rng.integers(0, len(records), 3))
        data, neighbor = np.array([first, second]), np.array([first, third])
        outcome = run(tree, data, seed)
        loss = law.log_likelihood(outcome, data) - law.log_likelihood(outcome, neighbor)
        assert abs(loss) <= epsilon * (1 + 1e-9)
        largest = max(largest, abs(loss))
    assert largest > (0.3 if epsilon < 2 else 0.6) * epsilon  # of the choices nothing is seen where all are one group


def test_selected_trees_have_the_probabilities_of_the_mechanism():
    # The one-way tables held fast, every forest's probability by enumeration of all orders, against 8 000 choices.
    sizes, rounds = [2, 2, 2, 2], 3
    tree = MarginalTree(4.0, domain=dict(enumerate(sizes)))
    data = tree_records(12, [2] * 6, np.random.default_rng(7))[:, :4]
    columns = [np.ascontiguousarray(column, dtype=np.int32) for column in data.T]
    alone = [np.bincount(column, minlength=2).astype(float) for column in columns]
    rate = float(tree._exponent) * PARTS
    scores = {}
    for i, j in itertools.combinations(range(4), 2):
        product = np.round(PARTS * np.outer(alone[i], alone[j]) / 12) / PARTS
        scores[i, j] = float(np.abs(table(data, (i, j), sizes) - product).sum())
    expected = {}
    for order in itertools.permutations(scores, rounds):
        log, labels = 0.0, [0, 1, 2, 3]
        for i, j in order:
            candidates = [pair for pair in scores if labels[pair[0]] != labels[pair[1]]]
            if (i, j) not in candidates:
                break
            weights = rate * np.array([scores[pair] for pair in candidates])
            log += log_softmax(weights)[candidates.index((i, j))]
            labels = [labels[i] if label == labels[j] else label for label in labels]
        else:
            expected[order] = math.exp(log)
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    work = Steps(None, 1)
    observed = dict.fromkeys(expected, 0)
    for seed in range(8_000):
        observed[tuple(tree._select(columns, alone, 12, seed, work))] += 1
    pairs = [(observed[order], 8_000 * chance) for order, chance in expected.items()]
    assert min(chance for _, chance in pairs) > 25
    statistic = sum((found - chance) ** 2 / chance for found, chance in pairs)
    assert stats.chi2.sf(statistic, len(pairs) - 1) > 1e-6


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_scores_of_neighbors_differ_by_no_more_than_they_are_said_to(relation):
    sizes = [2, 3]
    tree = MarginalTree(1.0, domain=dict(enumerate(sizes)), relation=relation)
    records = list(itertools.product(*map(range, sizes)))
    rng, largest = np.random.default_rng(8), 0
    work = Steps(None, 1)

    def score(data, alone):
        columns = [np.ascontiguousarray(column, dtype=np.int32) for column in np.array(data).T]
        return tree._scores(columns, alone, 3, work)[0, 1]

    for _ in range(20):
        alone = [on_simplex(rng.normal(1, 1, size), 3.0) for size in sizes]
        for first, second, third in itertools.product(records, repeat=3):
            other = [(first, second), (first, third)] if relation == ReplaceOne() else [(first, second), (first,)]
            one, two = (score(data, alone) for data in other)
            largest = max(largest, abs(one - two))
    assert largest == tree._reach


# The fit.


def test_a_table_is_projected_to_its_total():
    values = np.array([5.0, -3.0, 9.0])
    np.testing.assert_allclose(on_simplex(values, 10.0), [3.0, 0.0, 7.0], atol=1e-12)


def test_fit_makes_the_noise_smaller_on_average():
    # Consistency is information: the fitted tables are nearer to the true ones than the noisy ones are.
    sizes = [3, 4, 3, 2, 5, 4]
    data = tree_records(3000, sizes, np.random.default_rng(10))
    before = after = 0.0
    for seed in range(10):
        made = synthesize(data, 0.5, 1e-6, domain=dict(enumerate(sizes)), insecure_seed=seed)
        for parent, child in made.edges:
            key = (parent, child) if (parent, child) in made.marginals else (child, parent)
            if made.marginals[key].shape != (sizes[key[0]], sizes[key[1]]):
                continue
            true = table(data, key, sizes)
            fitted = made.counts[child] if key == (parent, child) else made.counts[child].T
            before += np.abs(np.asarray(made.marginals[key]) - true).sum()
            after += np.abs(fitted - true).sum()
    assert 0 < after < 0.8 * before


# The draws.


def test_records_are_within_one_of_their_expectation_in_each_stratum():
    data = tree_records(2000, [3, 4, 3, 2, 5, 4], np.random.default_rng(11))
    made = synthesize(data, 2.0, 1e-6, domain=dict(zip("abcdef", [3, 4, 3, 2, 5, 4], strict=True)), insecure_seed=5)
    drawn = made.sample(777, rng=1)
    assert drawn.shape == (777, 6)
    assert drawn.columns.tolist() == list("abcdef")
    root = made.net._order[0]
    numbers = np.bincount(drawn[root], minlength=len(made.cpds[root]))
    assert np.abs(numbers - 777 * made.cpds[root]).max() < 1
    for parent, child in made.edges:
        for above in range(len(made.cpds[child])):
            rows = drawn[child][drawn[parent] == above]
            numbers = np.bincount(rows, minlength=made.cpds[child].shape[1])
            assert np.abs(numbers - len(rows) * made.cpds[child][above]).max() < 1
    assert made.sample(777, rng=1).equals(drawn)
    assert not made.sample(777, rng=2).equals(drawn)


@pytest.mark.parametrize("stratified", [True, False])
def test_each_record_has_the_fitted_law(stratified):
    data = tree_records(500, [2, 3, 2, 2, 2, 2], np.random.default_rng(12))[:, :3]
    made = synthesize(data, 3.0, 1e-6, domain={"a": 2, "b": 3, "c": 2}, insecure_seed=6)
    law = np.zeros((2, 3, 2))
    for record in np.ndindex(law.shape):
        law[record] = math.exp(made.log_likelihood([record]))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    rng = np.random.default_rng(13)
    first = np.array([(made._stratified if stratified else made._codes)(3, rng)[1] for _ in range(8_000)])
    found = np.zeros(law.shape)
    np.add.at(found, tuple(first.T), 1)
    expected = 8_000 * law
    kept = expected > 25
    rest = (found[~kept].sum() - expected[~kept].sum()) ** 2 / max(expected[~kept].sum(), 25)
    assert stats.chi2.sf(((found - expected) ** 2 / expected)[kept].sum() + rest, kept.sum()) > 1e-6


def test_labels_come_back_and_seeds_repeat():
    records = [["dry", "no"], ["rain", "yes"], ["rain", "yes"]] * 200
    domain = {"sky": ["dry", "rain"], "wet": ["no", "yes"]}
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(records, columns=["sky", "wet"])
    frame["key"] = range(len(frame))  # no column of the domain: not read
    made, again = (synthesize(frame, 2.0, domain=domain, insecure_seed=7) for _ in range(2))
    other = synthesize(frame, 2.0, domain=domain, insecure_seed=8)
    assert made.marginals == again.marginals != other.marginals
    drawn = made.sample(rng=0)
    assert drawn.shape == (600, 2)
    assert drawn["sky"].cat.categories.tolist() == ["dry", "rain"]
    assert (drawn["sky"] == "rain").mean() == pytest.approx(2 / 3, abs=0.05)
    assert (pandas.crosstab(drawn["sky"], drawn["wet"]).to_numpy()[[0, 1], [1, 0]] < 40).all()
    unseeded = [synthesize(frame, 2.0, domain=domain) for _ in range(2)]
    assert unseeded[0].marginals != unseeded[1].marginals
    assert isinstance(made, SyntheticBayesNet)
    assert made.net.categories == {k: tuple(v) for k, v in domain.items()}


# The arguments.


def test_edges_lie_within_the_workload():
    data = tree_records(4000, [3] * 6, np.random.default_rng(14))
    domain = dict(zip("abcdef", [3] * 6, strict=True))
    tree = MarginalTree(1.0, domain=domain, workload=[("a", "b", "c"), ["d", "e"], {"f"}])
    assert tree.rounds == 3  # a tree of three, one of two, and one alone
    found = {frozenset(edge) for edge in tree.release(data).edges}
    assert frozenset("de") in found
    assert len(found) == 3
    assert all(edge <= set("abc") or edge == frozenset("de") for edge in found)
    alone = synthesize(data, 1.0, 1e-6, domain=domain, workload=[])
    assert alone.edges == ()
    assert alone.sample(10, rng=0).shape == (10, 6)
    assert MarginalTree(1.0, 1e-6, domain={"a": 3}).release(data[:, :1]).edges == ()


def test_multipliers_are_common_ones_taken_out_and_widen_the_account():
    domain = dict.fromkeys("abc", 2)
    plain = MarginalTree(1.0, domain=domain)
    twice = MarginalTree(1.0, domain=domain, workload=[("a", "b", "c")] * 2)
    more = MarginalTree(1.0, domain=domain, workload=[("a", "b", "c"), ("a", "b")])
    assert twice._weights == plain._weights
    assert more._weights == {(0, 1): 2, (0, 2): 1, (1, 2): 1}
    assert more._reach == 2 * plain._reach
    assert more._exponent == plain._exponent / 2
    assert more.guarantee.exact_epsilon == plain.guarantee.exact_epsilon


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"epsilon": 0.0}, ValueError, "`epsilon`"),
        ({"epsilon": math.inf}, ValueError, "`epsilon`"),
        ({"delta": 1.0}, ValueError, "`delta` must be in"),
        ({"delta": -0.1}, ValueError, "`delta` must be in"),
        ({"epsilon": 1e-6, "delta": 1e-9}, ValueError, "variance of at most 1e10"),
        ({"domain": [2, 2]}, TypeError, "`domain` must be a mapping"),
        ({"domain": {}}, ValueError, "`domain` must name at least one"),
        ({"domain": {"a": 1}}, ValueError, r"`domain\['a'\]` must be between 2 and"),
        ({"domain": {"a": 2**14, "b": 2**14}}, MemoryError, "the table of 'a' and 'b'"),
        ({"relation": DataMetric("l1", 1)}, ValueError, "`relation` must be"),
        ({"relation": ReplaceOne(2)}, ValueError, "`relation` must be"),
        ({"workload": "ab"}, TypeError, "`workload` must be collections"),
        ({"workload": ["ab"]}, TypeError, "`workload` must hold collections"),
        ({"workload": [("a", "c")]}, ValueError, "got 'c'"),
        ({"workload": [("a", "b")] * 1025 + [("a", "x"), ("a", "b", "x")]}, ValueError, "at most 512 marginals"),
    ],
)
def test_arguments_outside_their_domain_are_refused(arguments, error, words):
    domain = {"a": 2, "b": 3, "x": 2}
    given = {"epsilon": 1.0, "domain": domain} | arguments
    with pytest.raises(error, match=words):
        MarginalTree(given.pop("epsilon"), given.pop("delta", 0.0), **given)


def test_data_outside_the_domain_are_refused_before_anything_is_drawn():
    tree = MarginalTree(1.0, domain={"a": 2, "b": 3})
    with pytest.raises(ValueError, match=r"data\[:, 1\]"):
        tree.release([[0, 3]])
    with pytest.raises(ValueError, match="shape"):
        tree.release([[0, 1, 2]])
    with pytest.raises(ValueError, match="at least one record"):
        tree.release(np.zeros((0, 2), dtype=int))
    made = tree.release([[0, 1]])
    with pytest.raises(TypeError, match="`stratified`"):
        made.sample(stratified=1)


def test_progress_is_told_and_may_stop_the_work():
    seen = []
    tree = MarginalTree(1.0, domain=dict.fromkeys("abcd", 3))
    data = np.random.default_rng(15).integers(0, 3, (50, 4))
    tree.release(data, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k + 1, 16) for k in range(16)]  # 4 tables, 6 scores, 3 choices, 3 tables
    with pytest.raises(Stopped):
        tree.release(data, progress=stop_after(-1))


@pytest.mark.parametrize("epsilon", [1e-3, 1e12])
def test_ends_of_the_domain_work(epsilon):
    data = np.random.default_rng(16).integers(0, 3, (50, 4))
    for delta in (0.0, 1e-6):
        made = synthesize(data, epsilon, delta, domain=dict.fromkeys("abcd", 3))
        assert all(np.isfinite(cpd).all() and (cpd >= 0).all() for cpd in made.cpds.values())
        assert made.sample().shape == (50, 4)


def test_guarantee_is_stated_at_most_at_the_epsilon_asked_for():
    for epsilon in np.random.default_rng(17).uniform(0.01, 20, 50):
        pure = MarginalTree(epsilon, domain=dict.fromkeys("abcdefg", 3)).guarantee
        assert epsilon * (1 - 1e-9) <= pure.epsilon <= epsilon
        approximate = MarginalTree(epsilon, 1e-7, domain=dict.fromkeys("abcdefg", 3)).guarantee
        known = PrivacyGuarantee.of_zcdp(approximate.zcdp, 1e-7)
        assert epsilon * (1 - 1e-5) <= known.epsilon <= epsilon == approximate.epsilon


# Real records.


@pytest.mark.skipif(not ADULT.exists(), reason="the census records are not here")
def test_two_way_marginals_of_the_census_are_nearer_than_products():
    with gzip.open(ADULT, "rt") as file:
        rows = [line.strip().split(", ") for line in file if line.strip()]
    words = [1, 3, 5, 6, 7, 8, 9, 14]
    domain, codes = {}, []
    for column in words:  # the categories are those of the survey's documentation
        labels = sorted({row[column] for row in rows})
        domain[column] = len(labels)
        codes.append([labels.index(row[column]) for row in rows])
    data = np.array(codes).T

    def error(found):
        total = []
        for i, j in itertools.combinations(range(len(words)), 2):
            one, two = (
                np.bincount(part[:, i] * domain[words[j]] + part[:, j], minlength=domain[words[i]] * domain[words[j]])
                for part in (data, found)
            )
            total.append(np.abs(one / len(data) - two / len(found)).sum() / 2)
        return float(np.mean(total))

    made = synthesize(data, 1.0, 1e-9, domain=domain, insecure_seed=9)
    product = synthesize(data, 1.0, 1e-9, domain=domain, workload=[], insecure_seed=9)
    assert error(made.sample(rng=0).to_numpy()) < 0.06 < 0.09 < error(product.sample(rng=0).to_numpy())
    assert frozenset((5, 7)) in {frozenset(edge) for edge in made.edges}  # marital status and relationship
