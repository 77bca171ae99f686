"""Laws on junction trees, and their fits to noisy tables, against sums over all records and least squares."""

import itertools
import math
import pickle

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from quincunx.posterior import AdaptiveMarginals, DiscreteBayesNet, _law_fit, fit_marginals, synthesize
from quincunx.posterior._junction_tree import JunctionTree, axes_beyond, cells, eliminated
from quincunx.posterior._law_fit import NoisyMarginal, _Fit, fit_law, nearest_law
from quincunx.privacy import (
    AddRemove,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    PrivacyGuarantee,
    Release,
    ReplaceOne,
    noise,
)


@st.composite
def trees(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    columns = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    scopes = [tuple(sorted(scope)) for scope in draw(st.lists(columns, max_size=6))]
    return JunctionTree(sizes, scopes), scopes, np.random.default_rng(draw(st.integers(0, 2**32)))


def spread_over_all(tree, tables):
    """The sum of tables of cliques as one table of all columns."""
    everything = tuple(range(len(tree.sizes)))
    found = np.zeros(tree.sizes)
    for link, table in zip(tree.links, tables, strict=True):
        found = found + tree.spread(table, link.clique, everything)
    return found


@given(trees())
@settings(max_examples=150, deadline=None)
def test_a_law_is_the_product_of_its_factors(problem):
    tree, scopes, rng = problem
    everything = tuple(range(len(tree.sizes)))
    for scope in scopes:
        assert set(scope) <= set(tree.links[tree.home(scope)].clique)
    theta = [3 * table for table in map(rng.normal, [0] * len(tree.links), [1] * len(tree.links), map_shapes(tree))]
    joint = spread_over_all(tree, theta)
    most = joint.max()
    log_z = most + math.log(np.exp(joint - most).sum())
    joint = np.exp(joint - log_z)
    law = tree.calibrated(theta)
    assert law.log_z == pytest.approx(log_z, abs=1e-10)
    assert tree.least(theta) == pytest.approx(spread_over_all(tree, theta).min(), abs=1e-12)
    for size in range(len(everything) + 1):
        for scope in itertools.combinations(everything, size):
            np.testing.assert_allclose(law.marginal(scope), joint.sum(axis=axes_beyond(everything, scope)), atol=1e-13)
    product = np.ones(tree.sizes)
    for column, parents, table in law.conditionals():
        scope = (*parents, column)
        product = product * tree.spread(table.transpose(np.argsort(scope)), tuple(sorted(scope)), everything)
    np.testing.assert_allclose(product, joint, atol=1e-13)
    # The derivative of what tables expect is their covariance with the direction, of a million records.
    scopes = [scope for place, scope in enumerate(scopes) if scope not in scopes[:place]]
    if not scopes:
        return
    tables = [NoisyMarginal(s, np.zeros(tree.shape(s)), rng.gamma(2.0, size=tree.shape(s))) for s in scopes]
    fit = _Fit(tree.sizes, tables, 1e6)
    direction = rng.normal(size=len(fit.values))
    parts = zip(tables, fit.arrays(direction * fit.weights), strict=True)
    pushed = sum(tree.spread(part, table.columns, everything) for table, part in parts)
    change = 1e6 * joint * (pushed - (joint * pushed).sum())
    exact = np.concatenate([change.sum(axis=axes_beyond(everything, s)).reshape(-1) for s in scopes]) * fit.weights
    rounding = 1e-13 * fit.total * fit.weights.max() ** 2
    np.testing.assert_allclose(fit.covariance(law, direction), exact, atol=rounding)


def map_shapes(tree):
    return [tree.shape(link.clique) for link in tree.links]


def test_cliques_are_those_of_a_good_order():
    # A cycle of four columns needs one chord; the cheaper one is taken.
    cliques = eliminated([2, 9, 2, 9], [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert sorted(cliques) == [(0, 1, 2), (0, 2, 3)]
    assert cells([2, 9, 2, 9], cliques) == 72
    assert eliminated([2, 2], []) == [(0,), (1,)]


def least_misfit(sizes, tables, total):
    """The least sum over all laws, by non-negative least squares on all records."""
    count = math.prod(sizes)
    index = np.indices(sizes).reshape(len(sizes), count)
    rows, right = [], []
    for table in tables:
        matrix = np.zeros((table.values.size, count))
        flat = np.ravel_multi_index([index[i] for i in table.columns], table.values.shape)
        matrix[flat, np.arange(count)] = table.variance**-0.5
        rows.append(matrix)
        right.append(table.values.reshape(-1) * table.variance**-0.5)
    heavy = 1e4 * min(table.variance for table in tables) ** -0.5  # the total is a constraint
    matrix, values = np.vstack([*rows, np.full((1, count), heavy)]), np.append(np.concatenate(right), heavy * total)
    records, _ = optimize.nnls(matrix, values, maxiter=100 * count)
    records *= total / records.sum()
    return float(((matrix[:-1] @ records - values[:-1]) ** 2).sum() / 2)


@pytest.mark.parametrize("seed", range(40))
def test_the_nearest_law_is_within_a_nat_of_the_least_sum(seed):
    # Tables that contain, cross and repeat one another; from three records to a hundred thousand, from less noise than
    # a record to more than all of them; empty cells in half of the cases.
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, rng.integers(2, 7)).tolist()
    everything = tuple(range(len(sizes)))
    total, spread = int(10 ** rng.uniform(0.5, 5)), 10 ** rng.uniform(0, 2.5)
    chances = rng.dirichlet(np.full(math.prod(sizes), [0.1, 1.0][seed % 2]))
    records = rng.multinomial(total, chances).reshape(sizes)
    every = [scope for size in (1, 2, 3) for scope in itertools.combinations(everything, size)]
    tables = []
    for place in rng.choice(len(every), min(len(every), int(rng.integers(1, 9))), replace=False):
        true, variance = records.sum(axis=axes_beyond(everything, every[place])), spread**2 * rng.choice([1, 4])
        tables.append(NoisyMarginal(every[place], true + rng.normal(0, variance**0.5, true.shape), float(variance)))
    found = nearest_law(sizes, tables, total)
    least = least_misfit(sizes, tables, total)
    assert least - 1e-6 * (1 + least) <= found.misfit <= least + 1 + 0.01 * least
    # What it minimizes is the sum over its own tables, which are those of one law.
    expected = [total * found.law.marginal(table.columns) for table in tables]
    sums = sum(((e - t.values) ** 2).sum() / (2 * t.variance) for e, t in zip(expected, tables, strict=True))
    assert found.misfit == pytest.approx(sums, rel=1e-9, abs=1e-9)
    # Going on from there changes little.
    again = nearest_law(sizes, tables, total, start=found.factors)
    assert again.misfit == pytest.approx(found.misfit, abs=1 + 0.01 * least)


def test_ten_binary_columns_are_fitted_as_all_records_are():
    rng = np.random.default_rng(7)
    sizes, total = [2] * 10, 2000
    chances = rng.dirichlet(np.full(1024, 0.2)).reshape(sizes)
    everything = tuple(range(10))
    scopes = [(i, (i + 1) % 10) if i < 9 else (0, 9) for i in range(10)] + [(0, 5), (2, 7), (1, 4, 8)]
    tables = []
    for scope in scopes:
        true = total * chances.sum(axis=axes_beyond(everything, scope))
        tables.append(NoisyMarginal(scope, true + rng.normal(0, 15, true.shape), 225.0))
    found = nearest_law(sizes, tables, total)
    assert least_misfit(sizes, tables, total) <= found.misfit + 1e-6 <= 1.01 * least_misfit(sizes, tables, total) + 1


@pytest.mark.parametrize("fit", [fit_law, nearest_law])
def test_of_the_laws_that_fit_the_one_of_largest_entropy_is_found(fit):
    # Pairs of three columns without noise: no factor of all three, so that the odds ratios of two do not depend on the
    # third; other laws with the same pairs differ by a multiple of the parity.
    rng = np.random.default_rng(8)
    pairs = [rng.normal(size=(2, 2)) for _ in range(3)]
    scopes = [(0, 1), (0, 2), (1, 2)]
    joint = np.exp(pairs[0][:, :, None] + pairs[1][:, None, :] + pairs[2][None])
    joint /= joint.sum()
    tables = [NoisyMarginal(s, 1e5 * joint.sum(axis=axes_beyond((0, 1, 2), s)), 1.0) for s in scopes]
    found = fit([2, 2, 2], tables, 10**5)
    np.testing.assert_allclose(found.law.marginal((0, 1, 2)), joint, atol=2e-5)


RING = [8, 12, 6, 15, 9]


def ring(seed, total, deviation):
    """Tables of a ring of columns, and of each, with noise: the tables, and the true ones as one vector."""
    rng = np.random.default_rng(seed)
    records = np.zeros((total, len(RING)), dtype=np.int64)
    for place, size in enumerate(RING):
        image = rng.integers(0, size, RING[place - 1])
        own = rng.choice(size, total, p=rng.dirichlet(np.full(size, 0.5)))
        records[:, place] = np.where(rng.random(total) < 0.6 * (place > 0), image[records[:, place - 1]], own)
    tables, true = [], []
    for scope in [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]:
        shape = [RING[i] for i in scope]
        flat = np.ravel_multi_index(tuple(records[:, scope].T), shape)
        true.append(np.bincount(flat, minlength=math.prod(shape)).astype(float))
        values = true[-1].reshape(shape) + rng.normal(0, deviation, shape)
        tables.append(NoisyMarginal(scope, values, float(deviation**2)))
    return tables, np.concatenate(true)


def squares(law, tables, true, total):
    """The squared error of a law's tables, over the variance of the noise."""
    found = np.concatenate([total * law.marginal(table.columns).reshape(-1) for table in tables])
    return float(((found - true) ** 2).sum() / tables[0].variance)


@pytest.mark.slow
@pytest.mark.parametrize("total", [3000, 100_000])
@pytest.mark.parametrize("share", [1e-3, 1e-2, 0.1], ids=["little-noise", "noise", "much-noise"])
def test_tables_are_nearer_to_the_true_ones_than_those_of_the_nearest_law(total, share):
    # Draws of records and noise, whose deviation is a share of the records: from 3 of them to 10 000.
    gains, errors, least = [], [], []
    for seed in range(40):
        tables, true = ring(seed, total, share * total)
        way = itertools.islice(_Fit(RING, tables, total).way(lambda: None), 6)
        least.append(min(squares(law, tables, true, total) for _, law, _, _ in way))
        errors.append(squares(fit_law(RING, tables, total).law, tables, true, total))
        gains.append(squares(nearest_law(RING, tables, total).law, tables, true, total) - errors[-1])
    # False alarms, if there were no gain on average: below 1e-6.
    threshold = stats.t.isf(1e-6, 39) * np.std(gains, ddof=1) / math.sqrt(40)
    print(
        f"error {np.mean(errors):.1f}, least {np.mean(least):.1f}, {np.mean(gains):.1f} gained, above {threshold:.1f}"
    )
    assert np.mean(gains) > threshold
    assert np.mean(errors) < 1.1 * np.mean(least)


@pytest.mark.parametrize("deviation", [10.0, 300.0])
def test_degrees_of_freedom_are_the_derivative_by_the_noisy_tables(deviation, monkeypatch):
    monkeypatch.setattr(_law_fit, "NEAR", 1e-4)  # differences see what steps leave
    tables, _ = ring(1, 3000, deviation)
    fit = _Fit(RING, tables, 3000)
    signs = 1.0 - 2.0 * (np.random.PCG64(0).random_raw(len(fit.values)) >> np.uint64(63))
    found = [freedom for _, _, _, freedom in itertools.islice(fit.way(lambda: None), 4)]
    ends, width = [], 0.02
    for side in (1, -1):
        moved = [
            table._replace(values=table.values + side * width * deviation * part)
            for table, part in zip(tables, fit.arrays(signs), strict=True)
        ]
        way = _Fit(RING, moved, 3000).way(lambda: None)
        ends.append([expected for _, _, expected, _ in itertools.islice(way, 4)])
    right = [float(signs @ (up - down)) / deviation / (2 * width) for up, down in zip(*ends, strict=True)]
    np.testing.assert_allclose(found, right, rtol=0.05, atol=0.5)


@pytest.mark.parametrize("deviation", [1.0, 0.1, 1e-2, 1e-3, 1e-4])
def test_the_law_comes_to_the_tables_as_noise_vanishes(deviation):
    # Dense tables: all cells of three columns hold records. And sparse ones: half of the cells have none.
    rng = np.random.default_rng(5)
    for chance in (1.0, 0.5):
        records = rng.integers(1, 400, (3, 4, 2)) * (rng.random((3, 4, 2)) < chance)
        total, tables, true = int(records.sum()), [], []
        for scope in [(0, 1), (1, 2), (0, 2), (1,)]:
            true.append(records.sum(axis=axes_beyond((0, 1, 2), scope)))
            noisy = true[-1] + rng.normal(0, deviation, true[-1].shape)
            tables.append(NoisyMarginal(scope, noisy, deviation**2))
        law = fit_law([3, 4, 2], tables, total).law
        for table, exact in zip(tables, true, strict=True):
            assert np.abs(total * law.marginal(table.columns) - exact).max() < 6 * deviation


# What is public.


@pytest.mark.parametrize(
    ("mechanism", "variance"),
    [
        (DiscreteGaussianMechanism(sensitivity=1.0, variance=50.0), 50.0),
        (GeometricMechanism(alpha=0.9), 2 * 0.9 / 0.01),
        (LaplaceMechanism(1.0, sensitivity=7.0), 98.0),
        (GaussianMechanism(1.0, 1e-6, sensitivity=2.0), None),
    ],
    ids=["discrete-gaussian", "geometric", "laplace", "gaussian"],
)
def test_tables_of_any_noise_are_fitted_at_once(mechanism, variance):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 5000)
    b = np.where(rng.random(5000) < 0.8, a, rng.integers(0, 3, 5000))
    c = np.where(rng.random(5000) < 0.8, b % 2, rng.integers(0, 2, 5000))
    true = {("b", "a"): (b, a, 3, 3), ("b", "c"): (b, c, 3, 2), ("c",): (c, None, 2, None)}
    released = {}
    for names, (x, y, rows, cols) in true.items():
        counts = np.bincount(x, minlength=rows) if y is None else np.bincount(cols * x + y).reshape(rows, cols)
        released[names] = mechanism.release(counts, insecure_seed=len(released))
    law = fit_marginals(released, domain={"a": 3, "b": 3, "c": ["x", "y"]}, n_records=5000)
    assert law.n_records == 5000
    assert law.consistent
    spread = math.sqrt(variance) if variance else released["c",].noise.sigma
    joint = 5000 * law.query(["a", "b"])
    assert np.abs(joint.T - np.bincount(3 * b + a).reshape(3, 3)).max() < 6 * spread
    np.testing.assert_allclose(law.query(["c"]), law.query(["b", "c"]).sum(axis=0), rtol=1e-12)
    assert law.guarantee.numerics == "insecure"
    assert law.guarantee.epsilon <= sum(release.guarantee.epsilon for release in released.values()) * (1 + 1e-12)
    assert law.sample(10, rng=0)["c"].isin(["x", "y"]).all()


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(1.0, sensitivity=2.0),
        GeometricMechanism(1.0, n=2),
        DiscreteGaussianMechanism(variance=16.0, delta=1e-6, sensitivity=2.0),
        GaussianMechanism(sigma=4.0, delta=1e-6, sensitivity=2.0),
    ],
)
def test_releases_of_one_mechanism_add_up_and_parts_of_one_release_do_not(mechanism):
    counts = np.array([[400, 100], [100, 400]])
    pairs, domain = (("a", "b"), ("b", "c")), {"a": 2, "b": 2, "c": 2}
    apart = {pair: mechanism.release(counts) for pair in pairs}
    both = mechanism.release(np.array([counts, counts]))
    together = {pair: both[place] for place, pair in enumerate(pairs)}
    for releases in (apart, pickle.loads(pickle.dumps(apart))):
        assert fit_marginals(releases, domain=domain).guarantee == 2 * mechanism.guarantee
    for releases in (together, pickle.loads(pickle.dumps(together))):
        assert fit_marginals(releases, domain=domain).guarantee == mechanism.guarantee


def test_the_number_of_records_is_what_the_tables_say():
    counts = {("a",): [300, 700], ("b",): [500, 480]}
    released = {
        ("a",): Release(counts["a",], PrivacyGuarantee(1.0), noise=noise.DiscreteGaussianNoise(4.0)),
        ("b",): Release(counts["b",], PrivacyGuarantee(1.0), noise=noise.DiscreteGaussianNoise(12.0)),
    }
    law = fit_marginals(released, domain={"a": 2, "b": 2})
    assert law.n_records == 995  # (3 * 1000 + 980) / 4
    assert law.guarantee.epsilon == 2.0
    shared = PrivacyGuarantee(1.0)
    parts = {key: Release(value.values, shared, noise=value.noise) for key, value in released.items()}
    assert fit_marginals(parts, domain={"a": 2, "b": 2}).guarantee.epsilon == 1.0
    # A column that no table has is uniform.
    wide = fit_marginals(parts, domain={"a": 2, "b": 2, "d": 4})
    np.testing.assert_allclose(wide.query(["d"]), 0.25)


def released(values, law=None):
    return Release(values, PrivacyGuarantee(1.0), noise=law or noise.DiscreteGaussianNoise(4.0))


@pytest.mark.parametrize(
    ("marginals", "error", "words"),
    [
        ([], TypeError, "`marginals` must be a mapping"),
        ({}, ValueError, "at least one table"),
        ({"a": released([1, 2])}, TypeError, "tuples of columns"),
        ({(): released([1, 2])}, TypeError, "tuples of columns"),
        ({("a",): [1, 2]}, TypeError, "must be releases"),
        ({("a",): Release([1, 2], PrivacyGuarantee(1.0))}, TypeError, "must be releases"),
        ({("z",): released([1, 2])}, ValueError, r"columns of `domain`, .*'z'"),
        ({("a",): released([1, 2, 3])}, ValueError, "an axis for each column"),
        ({("a", "a"): released([[1, 2], [3, 4]])}, ValueError, "once each in a key"),
        ({("a", "b"): released([[1, 2], [float("nan"), 4]])}, ValueError, r"finite numbers, got nan at index \(1, 0\)"),
        ({("a",): released([1, 2], noise.GeometricNoise(0.5, 0, 9))}, ValueError, "not clipped"),
        ({("a",): released([1, 2], noise.GeometricNoise([0.5, 0.6]))}, ValueError, "one variance"),
        ({("a",): released([1, 1], noise.RandomizedResponseNoise(0.25))}, ValueError, "geometric, Laplace or"),
    ],
)
def test_what_is_no_noisy_table_is_refused(marginals, error, words):
    with pytest.raises(error, match=words):
        fit_marginals(marginals, domain={"a": 2, "b": 2})


def test_tables_go_by_their_labels():
    table = pandas.DataFrame([[60, 10], [5, 25]], index=["rain", "dry"], columns=["wet", "clear"])
    mechanism = GeometricMechanism(epsilon_per_unit=60.0, n=1)
    domain = {"sky": ["dry", "rain"], "road": ["clear", "wet"]}
    for frame in (table, table.rename_axis(index="sky", columns="road")):
        law = fit_marginals({("sky", "road"): mechanism.release(frame)}, domain=domain)
        np.testing.assert_allclose(law.query(["sky", "road"]), [[0.25, 0.05], [0.1, 0.6]], atol=1e-6)
    with pytest.raises(ValueError, match="axes in this order, got 'sky' for 'road'"):
        fit_marginals({("road", "sky"): mechanism.release(frame)}, domain=domain)
    with pytest.raises(ValueError, match=r"must have the columns \['clear', 'wet'\], got \['wet', 'icy'\]"):
        fit_marginals({("sky", "road"): mechanism.release(table.rename(columns={"clear": "icy"}))}, domain=domain)
    codes = {"sky": 2, "road": 2}  # whose own names stay as they are, and whose numbers are the codes
    for frame, first in ((table, 0.7), (table.set_axis([1, 0]), 0.3)):
        law = fit_marginals({("sky", "road"): mechanism.release(frame)}, domain=codes)
        assert law.query(["sky"])[0] == pytest.approx(first, abs=1e-6)


def test_a_tree_that_no_memory_holds_is_refused():
    pairs = itertools.combinations(range(40), 2)
    marginals = {pair: released([[5, 5], [5, 5]]) for pair in pairs}
    with pytest.raises(MemoryError, match="the junction tree"):
        fit_marginals(marginals, domain=dict.fromkeys(range(40), 2))


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_reconciled_tables_agree_and_are_nearer_to_the_truth(relation):
    edges = [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]
    net = DiscreteBayesNet(edges, {"A": 3, "B": 2, "C": 3, "D": 2, "E": 2})
    rng = np.random.default_rng(3)
    data = rng.integers(0, 2, (400, 5))
    data[:, 0] += data[:, 1] * (rng.random(400) < 0.7)
    true = net.count_tables(data)
    before = after = 0.0
    for seed in range(20):
        fitted = net.fit_private(data, 0.5, "laplace", relation=relation, insecure_seed=seed)
        agreed = fitted.reconcile(n_records=400)
        assert agreed.consistent
        assert agreed.guarantee == fitted.guarantee
        for node, parents in net.parents.items():
            for parent in parents:
                axis = parents.index(parent)
                others = tuple(i for i in range(len(parents) + 1) if i != axis)
                alone = agreed.counts[parent].sum(axis=tuple(range(len(net.parents[parent]))))
                np.testing.assert_allclose(agreed.counts[node].sum(axis=others), alone, rtol=1e-9)
            np.testing.assert_allclose(agreed.cpds[node].sum(axis=-1), 1, rtol=1e-12)
            before += ((fitted.noisy_counts[node].astype(float) - true[node]) ** 2).sum()
            after += ((agreed.counts[node] - true[node]) ** 2).sum()
    assert after < 0.7 * before


def test_tables_whose_noise_is_none_are_their_own_reconciled_ones():
    net = DiscreteBayesNet([("a", "b")], {"a": 2, "b": 2})
    records = [[0, 0], [0, 1], [1, 1], [1, 1]]
    agreed = net.fit_private(records, epsilon=1e4, mechanism="laplace", insecure_seed=1).reconcile()
    assert agreed.cpds["b"] == pytest.approx(np.array([[0.5, 0.5], [0.0, 1.0]]), abs=1e-6)


def test_only_noisy_counts_are_reconciled():
    net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2})
    fitted = net.fit_private([[0, 1], [1, 0]] * 50, 1.0, "fourier_l1", insecure_seed=1)
    with pytest.raises(ValueError, match="'laplace', got 'fourier_l1'"):
        fitted.reconcile()
    noisy = net.fit_private([[0, 1], [1, 0]] * 50, 1.0, "laplace", insecure_seed=1)
    with pytest.raises(ValueError, match="`n_records`"):
        noisy.reconcile(n_records=0)


def test_records_of_cliques_have_the_fitted_law_within_one_in_each_stratum():
    rng = np.random.default_rng(12)
    a, b = rng.integers(0, 2, (2, 3000))
    data = np.stack([a, b, a ^ b ^ (rng.random(3000) < 0.1)], axis=1)
    aim = AdaptiveMarginals(5.0, 1e-6, domain=dict.fromkeys("abc", 2), workload=[("a", "b", "c")])
    made = aim.release(data, insecure_seed=1)
    assert max(len(parents) for parents in made.net.parents.values()) == 2
    law = made.query(["a", "b", "c"])
    assert law.sum() == pytest.approx(1, abs=1e-12)
    drawn = made.sample(999, rng=1)
    last = made.net._order[-1]
    for above, rows in drawn.groupby(list(made.net.parents[last])):
        numbers = np.bincount(rows[last], minlength=2)
        assert np.abs(numbers - len(rows) * made.cpds[last][tuple(above)]).max() < 1
    for stratified in (True, False):
        rng = np.random.default_rng(13)
        found = np.zeros((2, 2, 2))
        for _ in range(3000):
            found[tuple((made._stratified if stratified else made._codes)(3, rng)[1])] += 1
        assert stats.chisquare(found.ravel(), 3000 * law.ravel()).pvalue > 1e-6
    parity = synthesize(data, 5.0, 1e-6, domain=dict.fromkeys("abc", 2), insecure_seed=1).query(["a", "b", "c"])
    assert np.abs(parity - 0.125).max() < 0.05 < np.abs(law - 0.125).max()  # a tree of pairs does not see it


@pytest.mark.parametrize("sizes", [[2, 2], [10, 10], [3, 4, 2]], ids=str)
@pytest.mark.parametrize("ratio", [1.0, 10.0, 100.0, 1e3, 1e4])
def test_tables_of_very_different_noise_are_fitted_by_what_each_tells(sizes, ratio):
    """Columns with little noise, pairs with much, up to the size of the number of records."""
    everything = tuple(range(len(sizes)))
    for total, deviation, seed in itertools.product((10**4, 10**6), (0.1, 1.0), range(2)):
        rng = np.random.default_rng([seed, int(ratio), total, len(sizes)])
        records = rng.multinomial(total, rng.dirichlet(np.full(math.prod(sizes), 0.5))).reshape(sizes)
        tables, true = [], []
        for scope in [(i,) for i in everything] + list(itertools.combinations(everything, 2)):
            true.append(records.sum(axis=axes_beyond(everything, scope)))
            spread = deviation * (ratio if len(scope) > 1 else 1)
            tables.append(NoisyMarginal(scope, true[-1] + rng.normal(0, spread, true[-1].shape), spread**2))

        def error(law, tables=tables, true=true, total=total):
            found = [
                ((total * law.marginal(t.columns) - x) ** 2 / t.variance).sum()
                for t, x in zip(tables, true, strict=True)
            ]
            return sum(found) / sum(x.size for x in true)

        # Of all of these the worst is 1.2 a cell; it was 1838, fifteen deviations of the noisier table in each of them.
        assert error(fit_law(sizes, tables, total).law) < 3 * max(error(nearest_law(sizes, tables, total).law), 0.6)
