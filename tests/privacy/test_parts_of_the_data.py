"""Parts of the data: partitions inside a budget, shares of what is left, subsets drawn without replacement.

Claims are held against exact laws on finite mechanisms, all in fractions.
"""

import copy
import itertools
import math
import os
import pickle
import random
from fractions import Fraction as F

import pytest

from quincunx.privacy import (
    AddRemove,
    Budget,
    BudgetExceeded,
    DataMetric,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    NoGuarantee,
    Partition,
    PrivacyGuarantee,
    ReplaceOne,
    gaussian_sigma,
    parallel,
    subsampled,
)

ADD, ROUNDED = AddRemove(), 1 + 1e-12


def law(rng, outcomes=3):
    """A random law, all of whose probabilities are positive fractions."""
    weights = [rng.randrange(1, 12) for _ in range(outcomes)]
    return [F(weight, sum(weights)) for weight in weights]


def log_ratio(p, q):
    """The largest loss of one law over another, as a fraction before the logarithm."""
    return max(a / b for a, b in zip(p, q, strict=True))


def product(*laws):
    return [math.prod(masses) for masses in itertools.product(*laws)]


# --- partitions -------------------------------------------------------------------------------------------------------


def mechanisms_of_parts(rng, parts):
    """For each part a law for every bag of at most three records of two values, and its exact odds for one more."""
    bags = [bag for size in range(4) for bag in itertools.combinations_with_replacement(range(2), size)]
    tables = [{bag: law(rng) for bag in bags} for _ in range(parts)]
    odds = []
    for table in tables:
        pairs = [(bag, tuple(sorted((*bag, value)))) for bag in bags if len(bag) < 3 for value in range(2)]
        odds.append(max(max(log_ratio(table[a], table[b]), log_ratio(table[b], table[a])) for a, b in pairs))
    return tables, odds


def joint(tables, data):
    """The law of all parts' outcomes for records (part, value)."""
    return product(
        *(table[tuple(sorted(value for at, value in data if at == part))] for part, table in enumerate(tables))
    )


def test_no_pair_of_neighbors_passes_what_a_partition_is_charged():
    """All data sets of at most three records; the charge of two largest parts does not cover a change within a part."""
    rng = random.Random(11)
    beyond_two_largest, sharp = 0, 0
    for _ in range(12):
        parts = rng.randrange(2, 4)
        tables, odds = mechanisms_of_parts(rng, parts)
        records = [(part, value) for part in range(parts) for value in range(2)]
        charged = {}
        for relation in (ADD, ReplaceOne()):
            budget = Budget(1000.0, relation=relation)
            partition = budget.partition(range(parts))
            for part, most in enumerate(odds):
                partition.spend(part, PrivacyGuarantee.of_outcomes(*binary(most), relation=ADD))
            charged[relation] = budget.spent().epsilon
        found = {ADD: F(1), ReplaceOne(): F(1), "within": F(1)}
        for size in range(3):
            for rest in itertools.combinations_with_replacement(records, size):
                laws = {extra: joint(tables, (*rest, extra)) for extra in records}
                bare = joint(tables, rest)
                for extra in records:
                    found[ADD] = max(found[ADD], log_ratio(laws[extra], bare), log_ratio(bare, laws[extra]))
                for one, other in itertools.permutations(records, 2):
                    ratio = log_ratio(laws[one], laws[other])
                    found[ReplaceOne()] = max(found[ReplaceOne()], ratio)
                    if one[0] == other[0]:
                        found["within"] = max(found["within"], ratio)
        for relation in (ADD, ReplaceOne()):
            assert math.log(found[relation]) <= charged[relation] * ROUNDED
        sharp += math.log(found[ADD]) >= charged[ADD] / ROUNDED
        first, second = sorted(odds)[-2:]
        beyond_two_largest += found["within"] > first * second
    print(f"{sharp} of 12 charges are reached; in {beyond_two_largest} a change within a part passes the two largest")
    assert sharp == 12


def binary(odds):
    """Two laws on two outcomes whose losses are plus and minus the logarithm of the odds."""
    return [odds / (1 + odds), 1 / (1 + odds)], [1 / (1 + odds), odds / (1 + odds)]


def test_two_largest_parts_do_not_cover_a_record_that_changes_within_its_part():
    """A release of a sum of signs in one part: +1 for -1 moves it by two, and the other parts see nothing."""
    noise = [F(1, 3) * F(1, 2) ** abs(z) for z in range(-40, 41)]

    def at_least(x, z):
        return sum((noise[k + 40] for k in range(-40, 41) if x + k >= z), F(0))

    exact = at_least(1, 1) / at_least(-1, 1)
    assert exact > F(399, 100)
    budget = Budget(10.0)
    signs = budget.partition(["signs", "nothing"])
    signs.spend("signs", PrivacyGuarantee(math.log(2) * ROUNDED, relation=ADD))
    assert budget.spent().epsilon >= math.log(exact)  # the two largest are ln 2 and 0


def test_a_record_that_moves_costs_what_it_costs_both_parts():
    """F8: geometric noise of ratio 1/2 on two counts, (1, 0) against (0, 1): z1 >= 1, z2 <= 0 is likelier by 4."""
    tail = F(2, 3)  # of the noise at 0 and above
    exact = tail * tail / ((1 - tail) * (1 - tail))
    assert exact == 4
    budget = Budget(math.log(4) * ROUNDED)
    counts = budget.partition(["left", "right"])
    one = PrivacyGuarantee(math.log(2), relation=ADD)
    counts.spend("left", one)
    counts.spend("right", one)
    assert budget.spent().epsilon >= math.log(4)
    with pytest.raises(BudgetExceeded):
        counts.spend("left", one)
    with pytest.raises(NoGuarantee, match="may move to another block"):
        counts.spend("left", PrivacyGuarantee(0.1))
    fixed = Budget(1.0).partition(["left", "right"], by="key")
    for part in fixed.blocks:
        fixed.spend(part, PrivacyGuarantee(1.0))
    with pytest.raises(TypeError, match="must be about ReplaceOne"):
        fixed.spend("left", one)


@pytest.mark.parametrize("ledger", [False, True])
def test_a_budget_pays_for_the_largest_part_of_each_partition(tmp_path, ledger):
    budget = Budget.open(tmp_path / "b", 1.0, 1e-6, relation=ADD) if ledger else Budget(1.0, 1e-6, relation=ADD)

    def piece(epsilon, delta=0.0):
        return PrivacyGuarantee(epsilon, delta, relation=ADD)

    ages, towns = budget.partition([*"abc", 1, 2], user="u"), budget.partition(["x", "y"], user="u")
    for part in ages.blocks:
        ages.spend(part, piece(0.25, 2e-7))
    towns.spend("x", piece(0.125))
    budget.spend(piece(0.125), user="u")
    spent = budget.spent("u")
    assert (spent.epsilon, round(spent.delta * 1e7, 9)) == (0.5, 2.0)
    assert (ages.remaining(1), towns.remaining("x"), towns.remaining("y")) == (0.5, 0.5, 0.625)
    with pytest.raises(BudgetExceeded):
        towns.spend("y", piece(0.626))
    towns.spend("y", piece(0.625))
    assert (budget.remaining("u"), ages.remaining(1), towns.remaining("x")) == (0.0, 0.0, 0.5)
    assert towns.spent("y").epsilon == 0.625
    assert ages.spent(2).delta == pytest.approx(2e-7)
    assert budget.partition(["x"], user="u").spent("x") is None
    assert budget.remaining() == 1.0
    assert budget.accounts()[0]["spends"] == 5 + 1 + 1 + 1
    with pytest.raises(BudgetExceeded):
        budget.spend(piece(0.001), user="u")
    towns.spend("x", piece(0.5))


def test_a_partition_keeps_the_limit_under_every_filter():
    for kind in ("zcdp", "gaussian"):
        noise = GaussianMechanism(1.0, 1e-6, sensitivity=1, relation=ADD).guarantee
        whole, plain = (Budget(1.0, 1e-6, relation=ADD, filter=kind) for _ in range(2))
        parts = whole.partition(range(4))
        quarter = PrivacyGuarantee.of_gaussian(2.0 * 3.8, 1e-6, relation=ADD)
        accepted = 0
        try:
            while True:
                plain.spend(quarter)
                accepted += 1
        except BudgetExceeded:
            pass
        assert accepted >= 2
        for part in parts.blocks:
            for _ in range(accepted):
                parts.spend(part, quarter)
            with pytest.raises(BudgetExceeded):
                parts.spend(part, quarter)
        assert whole._ledger.read(None).cost == plain._ledger.read(None).cost
        unknown = PrivacyGuarantee(0.1, 1e-9, relation=ADD)
        with pytest.raises(BudgetExceeded):
            parts.spend(0, unknown)  # failures have no part of this delta
        assert noise.zcdp is not None


def test_a_distance_is_spread_over_the_parts_where_the_noise_follows_it():
    about = DataMetric("l1", 2)
    budget = Budget(3.0, relation=about)
    parts = budget.partition(["a", "b"])
    for part in parts.blocks:
        parts.spend(part, GeometricMechanism(1.0, n=2))
    assert budget.spent().epsilon == 1.0
    # Two units in one part, or one in each: the ratio is the same.
    alpha = GeometricMechanism(1.0, n=2).alpha
    assert alpha**-2 == pytest.approx(math.e)
    for part in parts.blocks:
        parts.spend(part, PrivacyGuarantee(0.5, relation=about))  # nothing is known of shorter distances
    assert budget.spent().epsilon == 2.0
    parts.spend("a", GeometricMechanism(0.5, n=2))
    parts.spend("b", GeometricMechanism(0.25, n=2))
    assert budget.spent().epsilon == 2.5
    l2 = Budget(1.0, 1e-6, relation=DataMetric("l2", 1), filter="gaussian").partition(["a", "b"])
    noise = PrivacyGuarantee.of_gaussian(gaussian_sigma(1.0, 1e-6) * ROUNDED, 1e-6, relation=DataMetric("l2", 1))
    l2.spend("a", noise)
    with pytest.raises(BudgetExceeded):
        l2.spend("b", noise)  # declared: summed
    real = Budget(1.0, relation=DataMetric("l1", 1.0)).partition(["a", "b"])
    laplace = LaplaceMechanism(0.75, sensitivity=1.0, relation=DataMetric("l1", 1.0))
    real.spend("a", laplace)
    with pytest.raises(BudgetExceeded):
        real.spend("b", laplace)  # a sensitivity says nothing of shorter distances


@pytest.mark.parametrize("blocks", [2, 5, 16])
def test_what_rounding_adds_to_a_distance_is_paid_in_every_block(blocks):
    """Equal parts of a distance in each block, where the blocks' exact figures add up to the most."""
    for mechanism, share in (
        (LaplaceMechanism(1.0, relation=DataMetric("l1", 4.0)), 4.0 / blocks * (1 - 2.0**-52)),
        (LaplaceMechanism(0.3, relation=DataMetric("l1", 0.7)), 0.7 / blocks * (1 - 2.0**-52)),
        (GaussianMechanism(1.0, 1e-6, relation=DataMetric("l2", 3.0)), 3.0 / math.sqrt(blocks) * (1 - 2.0**-51)),
    ):
        whole = mechanism.guarantee
        near = whole.at(share)
        together = parallel([whole] * blocks)
        if whole.is_pure:
            assert together.exact_epsilon >= blocks * near.exact_epsilon > whole.exact_epsilon
        ratios = [sum(part.ratio or 0 for part in g.parts) for g in (near, together)]
        assert ratios[1] >= blocks * ratios[0] * (1 - F(1, 2**50))
        assert together.epsilon == pytest.approx(whole.epsilon, rel=1e-9)
        assert together.delta == whole.delta
        budget = Budget(
            2.0, 1e-5 if whole.delta else 0.0, relation=whole.relation, filter="gaussian" if whole.delta else "sum"
        )
        inside = budget.partition(range(blocks))
        for part in inside.blocks:
            inside.spend(part, mechanism)
        assert budget.spent().exact_epsilon >= together.exact_epsilon


def test_blocks_of_other_grids_pay_for_their_own_rounding():
    """Nearly all of a distance in the block of the most noise for a step of its grid, next to nothing in the others."""
    most, others = (LaplaceMechanism(level, relation=DataMetric("l1", 1.0)).guarantee for level in (1.01, 1.0))
    shares = [most.at(1 - 2.0**-50).exact_epsilon, *[others.at(2.0**-60).exact_epsilon] * 15]
    assert parallel([most, *[others] * 15]).exact_epsilon >= sum(shares)


def test_partitions_refuse_what_they_cannot_keep():
    budget = Budget(1.0, relation=ADD)
    for bad in ([], ["a", "a"], "ab", ()):
        with pytest.raises(ValueError, match="`blocks` must be names"):
            budget.partition(bad)
    with pytest.raises(NoGuarantee, match="several blocks"):
        Budget(1.0, relation=AddRemove(2)).partition(["a"])
    with pytest.raises(ValueError, match="`by`"):
        budget.partition(["a"], by="chance")
    with pytest.raises(TypeError, match="`budget` must be a Budget"):
        Partition(1.0, ["a"], "value", None)
    parts = budget.partition(["a", "b"])
    for call in (lambda: parts.spend("c", PrivacyGuarantee(0.1, relation=ADD)), lambda: parts.remaining("c")):
        with pytest.raises(ValueError, match="`block` must be one of the partition"):
            call()
    with pytest.raises(TypeError, match="`guarantee` must be"):
        parts.spend("a", 0.5)
    seeded = PrivacyGuarantee(0.1, relation=ADD, numerics="insecure")
    with pytest.raises(BudgetExceeded, match="a known seed"):
        parts.spend("a", seeded)
    for twice in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            twice(parts)
    assert budget.spent() is None
    child = os.fork()
    if child == 0:
        try:
            parts.spend("a", PrivacyGuarantee(0.1, relation=ADD))
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# --- shares -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "failure"), [("sum", 0.0), ("zcdp", 1e-7), ("gaussian", 1e-7)])
def test_shares_sum_to_at_most_what_is_left_and_are_all_accepted(kind, failure):
    rng = random.Random(kind)
    for _ in range(20):
        budget = Budget(rng.choice([1.0, 0.3, 7.7]), 1e-6, filter=kind, failure=failure)
        budget.spend(PrivacyGuarantee(budget.epsilon * rng.random() / (2 if kind == "sum" else 50)))
        weights = [rng.choice([F(1, 3), 1, 0.1, rng.random() + 1e-3]) for _ in range(rng.randrange(1, 9))]
        shares = budget.split(weights)
        account = budget._ledger.read(None)
        name = "epsilon" if kind == "sum" else "cost"
        limit = F(budget.epsilon) if kind == "sum" else budget._rule.most_cost()
        figures = [share.epsilon if kind == "sum" else share.rho * (1 if kind == "zcdp" else 2) for share in shares]
        left = limit - budget._rule.amount(name, getattr(account, name))
        assert left * (1 - F(1, 2**80)) <= sum(figures) <= left
        assert sum(share.delta for share in shares) <= F(failure if kind != "sum" else 1e-6)
        for weight, figure in zip(weights, figures, strict=True):
            assert abs(figure - left * F(weight) / sum(map(F, weights))) <= left / 2**90
        for share in shares:
            if kind == "sum":
                budget.spend(PrivacyGuarantee(share.epsilon, share.delta))
            elif share is shares[-1]:
                budget.spend(PrivacyGuarantee(share.epsilon))
            else:
                budget.spend(PrivacyGuarantee.of_zcdp(share.rho, 1e-9) if kind == "zcdp" else noise_of(share.rho))
    assert [float(share.epsilon) for share in Budget(1.0).split([1, 1, 2])] == [0.25, 0.25, 0.5]
    for bad, error in (([], ValueError), ([1, 0], ValueError), ([1, -1], ValueError), (["a"], TypeError)):
        with pytest.raises(error, match="`weights`"):
            Budget(1.0).split(bad)


def noise_of(rho):
    return PrivacyGuarantee.of_gaussian(math.sqrt(1 / (2 * float(rho))) * ROUNDED, 1e-9)


# --- m of n -----------------------------------------------------------------------------------------------------------


def drawn(table, data, m):
    """The law of a mechanism on a uniform subset of m records."""
    subsets = list(itertools.combinations(data, m))
    laws = [table[tuple(sorted(subset))] for subset in subsets]
    return [sum(masses) / len(subsets) for masses in zip(*laws, strict=True)]


def delta(p, q, level):
    x = F(math.exp(level))
    return float(sum((max(a - x * b, F(0)) for a, b in zip(p, q, strict=True)), F(0)))


def test_subsets_without_replacement_are_never_told_apart_better_than_claimed():
    rng = random.Random(4)
    levels = (0.0, 0.05, 0.2, 0.5, 1.0)
    for _ in range(12):
        n = rng.randrange(2, 5)
        m, values = rng.randrange(1, n), range(3)
        bags = list(itertools.combinations_with_replacement(values, m))
        table = {bag: law(rng) for bag in bags}
        odds = max(
            log_ratio(table[one], table[other])
            for one in bags
            for other in bags
            if any(sorted((*one[:i], *one[i + 1 :], value)) == list(other) for i in range(m) for value in values)
        )
        base = PrivacyGuarantee.of_outcomes(*binary(odds))
        replaced, added = (subsampled(base, m=m, n=n, relation=relation) for relation in (ReplaceOne(), ADD))
        assert replaced.epsilon == pytest.approx(math.log(1 + F(m, n) * (odds - 1)), rel=1e-12)
        worst = {"replaced": dict.fromkeys(levels, 0.0), "up": dict.fromkeys(levels, 0.0)}
        worst["down"] = dict.fromkeys(levels, 0.0)
        for rest in itertools.combinations_with_replacement(values, n - 1):
            laws = [drawn(table, (*rest, value), m) for value in values]
            bare = drawn(table, rest, m)
            for level in levels:
                pairs = [(p, q) for p in laws for q in laws]
                worst["replaced"][level] = max(worst["replaced"][level], *(delta(p, q, level) for p, q in pairs))
                worst["up"][level] = max(worst["up"][level], *(delta(p, bare, level) for p in laws))
                worst["down"][level] = max(worst["down"][level], *(delta(bare, p, level) for p in laws))
        for level in levels:
            assert worst["replaced"][level] <= replaced.delta_at(level) * ROUNDED + 1e-15
            assert max(worst["up"][level], worst["down"][level]) <= added.delta_at(level) * ROUNDED + 1e-15


@pytest.mark.parametrize("relation", [ReplaceOne(), ADD])
def test_a_response_of_one_of_n_records_reaches_its_claim(relation):
    """All other records answer against: q p + (1 - q)(1 - p) over 1 - p is 1 + q (e^epsilon - 1), twice its square."""
    p, n = F(3, 4), 4
    base = PrivacyGuarantee.of_outcomes([p, 1 - p], [1 - p, p])
    one = subsampled(base, m=1, n=n, relation=relation)
    table = {(0,): [1 - p, p], (1,): [p, 1 - p]}
    present, absent = (
        drawn(table, (1, 0, 0, 0), 1),
        drawn(table, (0, 0, 0, 0)[: n if relation == ReplaceOne() else 3], 1),
    )
    exact = log_ratio(present, absent)
    assert exact == F(3, 2)
    assert one.epsilon == pytest.approx(math.log(1.5), rel=1e-12)
    assert one.epsilon >= math.log(1.5)
    for times in (2, 3):
        for level in (0.0, 0.2, 0.5):
            true = max(
                delta(product(*[present] * times), product(*[absent] * times), level),
                delta(product(*[absent] * times), product(*[present] * times), level),
            )
            claimed = (times * one).delta_at(level)
            assert true <= claimed * ROUNDED + 1e-15
            if relation == ADD:
                assert claimed <= true * (1 + 1e-6) + 1e-12
            else:  # directions are free: one subset has the record, the other has its replacement
                mixed = delta(product(present, absent), product(absent, present), level)
                assert mixed <= claimed * ROUNDED + 1e-15


def test_what_is_not_proved_of_subsets_is_refused():
    base = PrivacyGuarantee(1.0, 1e-6)
    some = subsampled(base, m=3, n=12)
    assert (some.epsilon, some.delta) == (pytest.approx(math.log(1 + 0.25 * math.expm1(1.0))), 2.5e-7)
    assert subsampled(base, m=5, n=5) == base
    # F10: a record is present by chance, and a Poisson subset of a base about added records has 1.8, not 1.5.
    assert subsampled(PrivacyGuarantee(2 * math.log(3)), 0.25).epsilon >= math.log(1.8)
    assert subsampled(PrivacyGuarantee(2 * math.log(3)), m=1, n=4).epsilon >= math.log(1.8)
    for refused in (PrivacyGuarantee(1.0, relation=ADD), PrivacyGuarantee(1.0, relation=DataMetric("l1"))):
        with pytest.raises(NoGuarantee, match="no rule is known"):
            subsampled(refused, m=1, n=4)
    with pytest.raises(NoGuarantee, match="no rule is known"):
        subsampled(base, m=1, n=4, relation=AddRemove(2))
    with pytest.raises(NoGuarantee, match="composition"):
        subsampled(2 * base, m=1, n=4)
    for ways in ({}, {"m": 1}, {"n": 1}, {"rate": 0.5, "m": 1, "n": 2}, {"rate": 0.5, "relation": ADD}):
        with pytest.raises(TypeError, match="exactly one of"):
            subsampled(base, **ways)
    for m, n, relation in ((0, 3, None), (4, 3, None), (3, 3, ADD), (1, 1, ADD), (1.5, 3, None)):
        with pytest.raises((ValueError, TypeError), match=r"`m`|`n`"):
            subsampled(base, m=m, n=n, relation=relation)
