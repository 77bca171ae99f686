"""Marginals selected round by round: what is spent, the law of a choice, the tables that come out, what is refused."""

import gzip
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.interrupts import Stopped, stop_after

from quincunx.posterior import AdaptiveMarginals, synthesize
from quincunx.posterior._adaptive import _Release
from quincunx.posterior._measuring import PARTS
from quincunx.posterior._selection import ReleaseJob
from quincunx.privacy import AddRemove, Budget, BudgetExceeded, DataMetric, ReplaceOne

ADULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult_train.csv.gz"


def chain_records(n, sizes, rng):
    data = np.zeros((n, len(sizes)), dtype=np.int64)
    for place, size in enumerate(sizes):
        keep = rng.random(n) < (0.8 if place else 0.0)
        data[:, place] = np.where(keep, data[:, place - 1] % size, rng.integers(0, size, n))
    return data


def table(data, columns, sizes):
    found = np.zeros([sizes[column] for column in columns])
    np.add.at(found, tuple(data[:, column] for column in columns), 1)
    return found


def begun(aim, data, seed=0):
    """A release of which nothing is drawn yet."""
    columns = np.ascontiguousarray(data.T, dtype=np.int32)
    return _Release(aim, ReleaseJob(columns, len(data), seed, None))


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-9), (0.5, 1e-6), (3.0, 1e-9), (40.0, 1e-3)])
@pytest.mark.parametrize(("columns", "rare"), [(1, None), (2, None), (5, None), (5, 1.0)])
def test_a_release_spends_its_level_and_no_more(epsilon, delta, relation, columns, rare):
    sizes = [3, 2, 4, 2, 3][:columns]
    aim = AdaptiveMarginals(epsilon, delta, domain=dict(enumerate(sizes)), relation=relation, rare_threshold=rare)
    work, spent = begun(aim, chain_records(400, sizes, np.random.default_rng(1))), []
    moved = 2 if relation == ReplaceOne() else 1
    measure, choose = work.measure, work.choose

    def measured(scope, noise):
        spent.append(Fraction(moved) / (2 * noise.variance))  # each cell that moves: 1 / (2 variance)
        measure(scope, noise)

    def chosen(fitted, now):
        range_ = 2 * now.exponent * moved * PARTS * max(aim._weights)  # of the exponential mechanism
        spent.append(range_**2 / 8)
        return choose(fitted, now)

    work.measure, work.choose = measured, chosen
    work.run()
    assert sum(spent) == work.spent <= aim._level
    assert work.spent > Fraction(999, 1000) * aim._level
    assert len(spent) <= columns + 2 * 16 * columns
    assert aim.guarantee.zcdp == aim.rho == float(aim._level)
    assert (aim.guarantee.epsilon, aim.guarantee.delta, aim.guarantee.relation) == (epsilon, delta, relation)


@pytest.mark.parametrize("grouped", [False, True])
def test_choices_have_the_probabilities_of_the_mechanism(grouped):
    # By hand: weights of the workload, errors of the law so far, what noise alone would do.
    sizes, workload = [2, 3, 2, 2], [(0, 1), (1, 2), (1, 2, 3)]
    data = chain_records(60, sizes, np.random.default_rng(2))
    aim = AdaptiveMarginals(2.0, 1e-6, domain=dict(enumerate(sizes)), workload=workload)
    work = begun(aim, data)
    for place in range(4):
        work.measure((place,), aim._first.noise)
    work.total = len(data)
    if grouped:
        work.group([((0,), (1,)), ((0,), (1, 2)), ((0,), (1,)), ((0, 1),)])
    fitted, now = work.fit(None), aim._first
    assert aim.candidates == ((0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3), (2, 3), (1, 2, 3))
    weights = [1, 3, 2, 1, 3, 5, 3, 3, 6]
    scores = []
    coarse, fewer = np.minimum(data, [1, 1, 1, 0]), [2, 2, 2, 1]
    for scope, weight in zip(aim.candidates, weights, strict=True):
        expected = len(data) * fitted.law.marginal(scope)
        true = table(data, scope, sizes)
        if grouped and scope in ((1,), (3,)):  # the rest of a group is halved, but for what the noisy counts differ by
            first, second = work.released[scope][0][-2:]
            share = np.clip(1 / 2 + (first - second) / (2 * expected[-1]), 0, 1)
            expected = np.append(expected[:-1], [expected[-1] * share, expected[-1] * (1 - share)])
        elif grouped:
            true = table(coarse, scope, fewer)
        assert expected.shape == true.shape
        expected = np.round(PARTS * expected) / PARTS
        error = np.abs(true - expected).sum()
        scores.append(weight * (error - math.sqrt(2 / math.pi * float(now.noise.variance)) * expected.size))
    for sharper in (1, 400):
        rate = sharper * float(now.exponent) * PARTS
        logs = rate * np.array(scores)
        chances = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        if grouped:  # the last column is one group, and tells nothing beside another
            chances[[6, 7, 8]] = 0
            chances /= chances.sum()
        exponent, now_ = now.exponent * sharper, now
        now_.exponent = exponent
        counts = dict.fromkeys(aim.candidates, 0)
        for seed in range(1500):
            work.seed, work.step = seed, 0
            counts[work.choose(fitted, now_)] += 1
        now_.exponent = exponent / sharper
        expected = 1500 * chances
        kept = expected > 5
        found = np.array(list(counts.values()))
        rest = expected[~kept].sum()
        statistic = ((found - expected)[kept] ** 2 / expected[kept]).sum() + (found[~kept].sum() - rest) ** 2 / max(
            rest, 5
        )
        assert stats.chi2.sf(statistic, max(1, kept.sum())) > 1e-6


def test_rounds_sharpen_where_a_table_taught_nothing():
    aim = AdaptiveMarginals(1.0, 1e-6, domain={"a": 2, "b": 2})
    first, second = aim._first, aim._first.sharper()
    assert second.exponent == 2 * first.exponent
    assert float(second.noise.variance) == pytest.approx(float(first.noise.variance) / 4, rel=1e-5)
    assert float(second.rho) == pytest.approx(4 * float(first.rho), rel=1e-4)
    # Nine tenths of a round are its noise's: those of the source.
    assert float(first.noise.rho / first.rho) == pytest.approx(0.9, rel=1e-4)
    assert float(first.rho * 16 * 2) == pytest.approx(aim.rho, rel=1e-4)


def test_with_little_noise_all_tables_of_the_workload_are_the_true_ones():
    sizes = [2, 3, 2, 4]
    data = chain_records(2000, sizes, np.random.default_rng(3))
    data[:, 3] = (data[:, 0] + data[:, 1] + 2 * data[:, 2]) % 4  # an interaction of all
    triples = list(itertools.combinations(range(4), 3))
    made = synthesize(
        data, 1e4, 1e-6, domain=dict(enumerate(sizes)), mechanism="aim", workload=triples, insecure_seed=1
    )
    assert made.mechanism == "aim"
    for scope in triples:
        np.testing.assert_allclose(2000 * made.query(scope), table(data, scope, sizes), atol=2)


def test_errors_are_smaller_than_those_of_a_tree():
    # A cycle of dependences, and a three-way one: no tree has them.
    rng = np.random.default_rng(4)
    data = chain_records(20_000, [3, 4, 3, 2, 5], rng)
    data[:, 4] = np.where(rng.random(20_000) < 0.7, (data[:, 0] + data[:, 3]) % 5, data[:, 4])
    sizes, domain = [3, 4, 3, 2, 5], dict(enumerate([3, 4, 3, 2, 5]))
    triples = list(itertools.combinations(range(5), 3))

    def error(made):
        return np.mean([np.abs(made.query(s) - table(data, s, sizes) / 20_000).sum() / 2 for s in triples])

    tree = [error(synthesize(data, 1.0, 1e-9, domain=domain, insecure_seed=seed)) for seed in range(3)]
    aim = AdaptiveMarginals(1.0, 1e-9, domain=domain, workload=triples)
    rounds = [error(aim.release(data, insecure_seed=seed)) for seed in range(3)]
    assert max(rounds) < 0.5 * min(tree)


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_releases_carry_their_noise_and_the_number_of_records(relation):
    sizes = [2, 3, 2]
    data = chain_records(5000, sizes, np.random.default_rng(5))
    aim = AdaptiveMarginals(1.0, 1e-6, domain=dict(zip("abc", sizes, strict=True)), relation=relation)
    made = aim.release(data, insecure_seed=2)
    assert (made.n_records == 5000) == (relation == ReplaceOne())
    assert made.n_records == pytest.approx(5000, abs=400)
    variance = float(aim._first.noise.variance)
    for columns, release in made.marginals.items():
        assert columns in aim.candidates
        assert release.noise.variance <= variance * (1 + 1e-9)
        true = table(data, ["abc".index(column) for column in columns], sizes)
        assert np.abs(release.values - true).max() < 7 * math.sqrt(release.noise.variance)
        assert release.guarantee.numerics == "insecure"
    assert {(column,) for column in "abc"} <= set(made.marginals)
    again = aim.release(data, insecure_seed=2)
    assert again.marginals == made.marginals
    np.testing.assert_array_equal(again.query("abc"), made.query("abc"))
    assert aim.release(data).marginals != aim.release(data).marginals


def test_the_tree_stays_as_small_as_was_asked():
    sizes = [4] * 6
    data = chain_records(3000, sizes, np.random.default_rng(6))
    data[:, 5] = data[:, 0]
    aim = AdaptiveMarginals(20.0, 1e-6, domain=dict(enumerate(sizes)), max_cells=70)
    made = aim.release(data, insecure_seed=1)
    assert sum(table.size for table in made.cpds.values()) <= 70
    assert len(made.edges) <= 4


def sparse_records(n, sizes, rng):
    """Columns that depend on one another in four categories each, and hardly ever have another."""
    kind = rng.integers(0, 4, n)
    data = [np.where(rng.random(n) < 0.15, rng.integers(0, 4, n), (kind + 1) % 4) for _ in sizes]
    return np.stack(
        [
            np.where(rng.random(n) < 0.02, rng.integers(0, size, n), column)
            for size, column in zip(sizes, data, strict=True)
        ],
        axis=1,
    )


def test_rare_categories_taken_together_leave_half_the_error_in_wide_columns():
    sizes, n = [150, 5, 150, 4], 20_000
    data = sparse_records(n, sizes, np.random.default_rng(7))
    errors = {}
    for threshold in (None, 3):
        aim = AdaptiveMarginals(1.0, 1e-9, domain=dict(enumerate(sizes)), rare_threshold=threshold)
        made = aim.release(data, insecure_seed=1)
        pairs = itertools.combinations(range(4), 2)
        errors[threshold] = np.mean([np.abs(made.query(s) - table(data, s, sizes) / n).sum() / 2 for s in pairs])
    assert errors[3] < 0.5 * errors[None]
    few = [len(groups) for groups in made.groups.values()]
    assert [sum(map(len, groups)) for groups in made.groups.values()] == sizes
    assert few[0] < 12 > few[2]
    wide = [scope for scope in made.marginals if len(scope) > 1]
    assert wide
    for scope, release in made.marginals.items():
        assert release.shape == tuple((few if len(scope) > 1 else sizes)[i] for i in scope)
    for node, chances in made.cpds.items():
        assert chances.shape == tuple(sizes[i] for i in (*made.net.parents[node], node))
        np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-12)
        for axis, parent in enumerate(made.net.parents[node]):
            group = chances.take(made.groups[parent][-1], axis=axis)
            assert np.ptp(group, axis=axis).max() == 0  # of one group nothing else was measured
    # The shares of a group are those of its table, whose categories below zero have none.
    for place in (0, 2):
        group = list(made.groups[place][-1])
        noisy, found = made.marginals[place,].values[group], n * made.query([place])[group]
        order = np.argsort(noisy)
        assert (np.diff(found[order]) > -1e-9).all()
        kept = found > 0
        np.testing.assert_allclose(noisy[kept] - found[kept], (noisy - found)[kept].mean(), atol=1e-6)


def test_the_network_of_all_categories_stays_as_small_as_is_said():
    sizes = [60] * 4
    data = sparse_records(30_000, sizes, np.random.default_rng(8))
    aim = AdaptiveMarginals(3.0, 1e-6, domain=dict(enumerate(sizes)), max_cells=3600, rare_threshold=3)
    made = aim.release(data, insecure_seed=1)
    few = [len(groups) for groups in made.groups.values()]
    assert max(few) < 15
    families = [made.net.family(node) for node in made.net.nodes]
    assert sum(math.prod(few[i] for i in family) for family in families) < 2 * 3600
    # Three columns together would have 60^3 cells; the shorter families lie in longer ones.
    assert sum(chances.size for chances in made.cpds.values()) < 16 * 3600 * (1 + 2 / 60)
    assert len(made.edges) == 3


def test_columns_that_noise_hides_altogether_are_one_group():
    data = chain_records(40, [3, 2, 4], np.random.default_rng(9))
    aim = AdaptiveMarginals(0.05, 1e-9, domain={"a": 3, "b": 2, "c": 4}, rare_threshold=1e6)
    made = aim.release(data, insecure_seed=1)
    assert [len(groups) for groups in made.groups.values()] == [1, 1, 1]
    assert {len(scope) for scope in made.marginals} == {1}
    assert made.edges == ()
    assert made.sample(rng=1).shape == (40, 3)


def test_budget_takes_a_release_and_refuses_the_one_too_many():
    aim = AdaptiveMarginals(1.0, 1e-6, domain={"a": 2, "b": 2})
    budget = Budget(1.5, 1e-5)
    budget.spend(aim)
    with pytest.raises(BudgetExceeded):
        budget.spend(aim)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"epsilon": 0.0}, ValueError, "`epsilon`"),
        ({"delta": 0.0}, ValueError, "`delta` must be in"),
        ({"delta": 1.0}, ValueError, "`delta` must be in"),
        ({"epsilon": 1e-6, "delta": 1e-9}, ValueError, "variance of at most 1e10"),
        ({"domain": {}}, ValueError, "at least one"),
        ({"domain": [2, 2]}, (TypeError, ValueError), "`categories`|`domain`"),
        ({"domain": {"a": 2**10, "b": 2**10}}, MemoryError, "the marginal of"),
        ({"relation": DataMetric("l1", 1)}, ValueError, "`relation` must be"),
        ({"workload": "ab"}, TypeError, "`workload` must be collections"),
        ({"workload": [("a", "c")]}, ValueError, "got 'c'"),
        ({"max_cells": 0}, ValueError, "`max_cells`"),
        ({"rare_threshold": 0}, ValueError, "`rare_threshold`"),
        ({"rare_threshold": math.inf}, ValueError, "`rare_threshold`"),
        ({"rare_threshold": "3"}, TypeError, "`rare_threshold`"),
        ({"epsilon": 1e13}, ValueError, "`epsilon` must be at most 1e6, got 1e"),
        ({"max_cells": 4, "workload": []}, ValueError, "`max_cells` must be at least 5"),
    ],
)
def test_arguments_outside_their_domain_are_refused(arguments, error, words):
    given = {"epsilon": 1.0, "delta": 1e-6, "domain": {"a": 2, "b": 3}} | arguments
    with pytest.raises(error, match=words):
        AdaptiveMarginals(given.pop("epsilon"), given.pop("delta"), **given)


def test_data_outside_the_domain_are_refused_before_anything_is_drawn():
    aim = AdaptiveMarginals(1.0, 1e-6, domain={"a": 2, "b": 3})
    with pytest.raises(ValueError, match=r"data\[:, 1\]"):
        aim.release([[0, 3]])
    with pytest.raises(ValueError, match="at least one record"):
        aim.release(np.zeros((0, 2), dtype=int))
    nobody = AdaptiveMarginals(1.0, 1e-6, domain={"a": 2, "b": 3}, relation=AddRemove())
    assert nobody.release(np.zeros((0, 2), dtype=int), insecure_seed=1).n_records >= 1
    with pytest.raises(ValueError, match="`mechanism` must be"):
        synthesize([[0, 1]], 1.0, 1e-6, domain={"a": 2, "b": 3}, mechanism="pgm")
    with pytest.raises(ValueError, match="`delta` must be in"):
        synthesize([[0, 1]], 1.0, domain={"a": 2, "b": 3}, mechanism="aim")


def test_progress_is_told_and_may_stop_the_work():
    seen = []
    aim = AdaptiveMarginals(1.0, 1e-6, domain=dict.fromkeys("abcd", 3))
    data = np.random.default_rng(15).integers(0, 3, (50, 4))
    aim.release(data, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {1000}
    assert seen[-1][0] >= 999
    with pytest.raises(Stopped):
        aim.release(data, progress=stop_after(-1))


@pytest.mark.slow
@pytest.mark.skipif(not ADULT.exists(), reason="the census records are not there")
def test_census_records_have_a_third_less_error_than_those_of_a_tree():
    with gzip.open(ADULT, "rt") as file:
        rows = [line.strip().split(", ") for line in file if line.strip()]
    kept = (1, 3, 5, 6, 7, 8, 9, 14)
    labels = [sorted({row[column] for row in rows}) for column in kept]
    data = np.array([[labels[i].index(row[column]) for i, column in enumerate(kept)] for row in rows])
    sizes = [len(names) for names in labels]
    pairs = list(itertools.combinations(range(len(kept)), 2))

    def error(made):
        return np.mean([np.abs(made.query(s) - table(data, s, sizes) / len(data)).sum() / 2 for s in pairs])

    found = {
        kind: np.mean(
            [
                error(synthesize(data, 1.0, 1e-9, domain=dict(enumerate(sizes)), mechanism=kind, insecure_seed=seed))
                for seed in range(3)
            ]
        )
        for kind in ("mst", "aim")
    }
    assert found["aim"] < 0.75 * found["mst"]
