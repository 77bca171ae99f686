"""Every curve and every question (delta, epsilon, Renyi, zCDP, Kullback-Leibler, total variation), beside exact laws.

A law of losses is written down as pairs of probabilities, continuous ones in narrow bins: a function of the output, so
that its figures are never above the true ones, and close to them. What a guarantee says may not be below any of them.
"""

import ast
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import quincunx.privacy
from quincunx.privacy import (
    AddRemove,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    NoGuarantee,
    PrivacyGuarantee,
    ReplaceOne,
    _curves,
    subsampled,
)
from quincunx.privacy._curves import CURVES
from quincunx.privacy._guarantee import guarantee_of

ONE = AddRemove()
#: Sharp to this, relative; None where only a bound is known (any law of that range, level, or pair may be meant).
SHARP = {"pure": 1e-9, "gaussian": 1e-2, "geometric": 1e-9, "laplace": 3e-3, "outcomes": 1e-9, "subsampled": 0.1}
EPSILONS = (0.0, 0.2, 0.7, 1.5)
ORDERS = (1.05, 2.0, 7.5, 30.0)


def binned(log_cdf, shift, reach, width):
    """Logarithms of the masses of bins under a symmetric law, and under the same law moved by a shift."""
    edges = np.concatenate([[-np.inf], np.arange(-reach, reach + shift + width, width), [np.inf]])

    def log_mass(center):
        left, right = edges[:-1] - center, edges[1:] - center
        upper, lower = np.where(left > 0, -left, right), np.where(left > 0, -right, left)  # in the lower tail
        return log_cdf(upper) + np.log1p(-np.exp(log_cdf(lower) - log_cdf(upper)))

    return log_mass(0.0), log_mass(shift)


def gaussian(u, width=0.1):
    return binned(stats.norm.logcdf, u, 34, width)


def laplace(x, width=0.03):
    return binned(stats.laplace.logcdf, x, 6, width)


def two_sided(log_weight, shift, span):
    z = np.arange(-span, span + shift + 1)
    return tuple(w - np.logaddexp.reduce(w) for w in (log_weight(z), log_weight(z - shift)))


def logs(p, q):
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(p, dtype=float)), np.log(np.asarray(q, dtype=float))


def response(epsilon, failure=0.0):
    p = np.array([1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))]) * (1 - failure)
    return logs(np.append(p, [failure, 0.0]), np.append(p[::-1], [0.0, failure]))


def ranged(r, t):
    """Two outcomes of losses t and t - r."""
    p = math.expm1(t - r) / math.expm1(-r)
    return logs([p, 1 - p], [p * math.exp(-t), (1 - p) * math.exp(r - t)])


def sampled(pair, rate):
    """The pair (with the record, without it) of a mechanism that sees the record with a probability."""
    p, q = pair
    return np.logaddexp(math.log(rate) + p, math.log1p(-rate) + q), q


def noise(mechanism):
    return mechanism.guarantee


#: For each curve a guarantee with it, and laws that it promises to bound: all for one record that comes or goes.
CASES = {
    "pure": (PrivacyGuarantee(0.8, relation=ONE), [response(0.8)]),
    "ranged": (PrivacyGuarantee(0.9, relation=ONE, range_bounded=True), [ranged(0.9, t) for t in (0.2, 0.45, 0.7)]),
    "gaussian": (noise(GaussianMechanism(sigma=2.0, sensitivity=1.4, relation=ONE)), [gaussian(0.7)]),
    "geometric": (
        noise(GeometricMechanism(epsilon_per_unit=0.3, sensitivity=3, relation=ONE)),
        [two_sided(lambda z: -0.3 * np.abs(z), 3, 120)],
    ),
    "laplace": (noise(LaplaceMechanism(0.9, sensitivity=2.0, relation=ONE)), [laplace(0.9)]),
    "discrete-gaussian": (
        noise(DiscreteGaussianMechanism(variance=7.0, sensitivity=2, relation=ONE)),
        [two_sided(lambda z: -z * z / 14.0, 2, 90)],
    ),
    "outcomes": (
        PrivacyGuarantee.of_outcomes([Fraction(6, 7), Fraction(1, 7)], [Fraction(3, 7), Fraction(4, 7)], relation=ONE),
        [logs([6 / 7, 1 / 7], [3 / 7, 4 / 7])],
    ),
    "approx": (PrivacyGuarantee(0.6, 1e-4, relation=ONE), [response(0.6, 1e-4)]),
    "zcdp": (PrivacyGuarantee.of_zcdp(0.18, 1e-6, relation=ONE), [gaussian(0.6)]),
    "renyi": (PrivacyGuarantee.of_renyi([1.5, 3, 10, 40], [0.12, 0.24, 0.8, 3.2], 1e-6, relation=ONE), [gaussian(0.4)]),
    "subsampled": (
        subsampled(noise(GaussianMechanism(sigma=1.0, sensitivity=0.9, relation=ONE)), 0.2),
        [sampled(gaussian(0.9), 0.2)],
    ),
}
PAIRS = sorted({tuple(sorted(pair)) for pair in itertools.product(CASES, CASES)})


def excess(p, q, epsilon):
    return float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum())


def answers(p, q):
    """The answer to each question about one pair of laws, in logarithms, in this direction."""
    p, q = p[p > -np.inf], q[p > -np.inf]
    found = {("delta", e): excess(p, q, e) for e in EPSILONS}
    found |= {("renyi", a): float(np.logaddexp.reduce(p + (a - 1) * (p - q)) / (a - 1)) for a in ORDERS}
    found["zcdp"] = max(found["renyi", a] / a for a in ORDERS)
    found["kl"] = float(np.exp(p) @ (p - q))
    found["tv"] = found["delta", 0.0]
    return found


def truth(laws):
    """The largest answer over laws that are all bounded, and over both directions."""
    every = [answers(*pair) for law in laws for pair in (law, law[::-1])]
    return {question: max(one[question] for one in every) for question in every[0]}


def claims(guarantee):
    found = {("delta", e): guarantee.delta_at(e) for e in EPSILONS}
    found |= {("renyi", a): guarantee.renyi(a) for a in ORDERS}
    if guarantee.zcdp is not None:
        found["zcdp"] = guarantee.to_zcdp()
    else:
        with pytest.raises(NoGuarantee, match="no zCDP"):
            guarantee.to_zcdp()
    return found | {"kl": guarantee.kl_divergence(), "tv": guarantee.total_variation()}


def check(guarantee, laws, sharp):
    """Nothing below the truth; sharp, but for Kullback-Leibler and zCDP, and for samples between two whole orders."""
    true, told = truth(laws), claims(guarantee)
    sample = any(part.curve.kind == "subsampled" for part in guarantee.parts)
    for question, value in told.items():
        assert value >= true[question] * (1 - 1e-9) - 1e-15, (question, value, true[question])
        loose = question in ("kl", "zcdp") or (sample and question[0] == "renyi" and question[1] % 1)
        if sharp is not None and not loose:
            assert value <= true[question] * (1 + sharp) + 1e-9, (question, value, true[question])
    for delta in (1e-9, 1e-5, 0.01, 0.2):
        level = guarantee.epsilon_at(delta)
        if math.isfinite(level):
            least = max(excess(p, q, level) for law in laws for p, q in (law, law[::-1]))
            assert least <= delta * (1 + 1e-9), ("epsilon", delta, level, least)


def test_there_is_a_case_for_each_curve():
    assert set(CASES) == set(CURVES)
    for kind, (guarantee, _) in CASES.items():
        assert {part.curve.kind for part in guarantee.parts} == {kind}


@pytest.mark.parametrize("kind", CASES)
def test_no_answer_of_a_curve_is_below_the_truth(kind):
    guarantee, laws = CASES[kind]
    check(guarantee, laws, SHARP.get(kind))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_answer_of_a_composition_is_below_the_truth(one, other):
    (g, laws), (h, others) = CASES[one], CASES[other]
    together = [tuple(np.add.outer(a[i], b[i]).ravel() for i in (0, 1)) for a in laws for b in others]
    sharp = None if SHARP.get(one) is None or SHARP.get(other) is None else SHARP[one] + SHARP[other] + 1e-2
    check(g & h, together, sharp)


@pytest.mark.parametrize("kind", CASES)
def test_words_of_a_guarantee_keep_all_its_answers(kind):
    guarantee = CASES[kind][0]
    again = PrivacyGuarantee.from_dict(json.loads(json.dumps(guarantee.to_dict())))
    assert again == guarantee
    assert claims(again) == claims(guarantee)


# --- parts are a multiset, and signed for one record that comes or goes alone


@pytest.mark.parametrize("times", [2, 3, 5])
def test_no_guarantee_equals_its_multiple(times):
    for guarantee, _ in CASES.values():
        several = PrivacyGuarantee.of_parts(guarantee.parts * times, relation=ONE)
        assert several == times * guarantee != guarantee
        assert several.epsilon == pytest.approx(times * guarantee.epsilon)
        assert hash(several) == hash(times * guarantee)
        assert len(several.parts) == 1


def test_parts_that_become_equal_at_another_distance_are_counted():
    near = quincunx.privacy.DataMetric("l2", 1)
    one = PrivacyGuarantee.of_gaussian(5.0, 1e-6, relation=near)
    other = PrivacyGuarantee.of_gaussian(5.0, 1e-6, relation=near, epsilon=2.0)
    both, single = (one & other).at(3), one.at(3)
    assert both == 2 * single != single
    assert both.epsilon > 1.9 * single.epsilon
    assert both.delta == 2 * single.delta


@pytest.mark.parametrize("relation", [AddRemove(2), AddRemove(3), ReplaceOne(), quincunx.privacy.DataMetric("l1", 4)])
def test_directions_are_free_but_for_one_record_that_comes_or_goes(relation):
    # Two-piece geometric, 1/2 to the left and 1/4: where directions are free, the worst of each part is due: 17/49.
    p, q = [Fraction(6, 7), Fraction(1, 7)], [Fraction(3, 7), Fraction(4, 7)]
    free = PrivacyGuarantee.of_outcomes(p, q, relation=relation)
    tied = PrivacyGuarantee.of_outcomes(p, q, relation=AddRemove())
    assert (2 * tied).delta_at(math.log(3)) == pytest.approx(13 / 49, rel=1e-12)
    for moved in (free, free.at(1)):
        assert (moved & moved).delta_at(math.log(3)) == pytest.approx(17 / 49, rel=1e-12)
        assert all(part.curve.symmetric for part in moved.parts)
    assert not tied.parts[0].curve.symmetric


def test_one_function_makes_guarantees():
    """Parts are made in `_guarantee` alone; what other files compose of them is named here."""
    makers = {}
    for file in sorted(Path(quincunx.__file__).parent.rglob("*.py")):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if "Part" in text or "of_parts" in text else ():
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in ("Part", "Part.of") or name.endswith("of_parts"):
                    makers.setdefault(file.name, set()).add(name)
    assert makers.pop("_composition.py")
    assert makers.pop("_guarantee.py")
    assert makers == {"_guarantee_json.py": {"Part.of"}, "_together.py": {"PrivacyGuarantee.of_parts"}}


@pytest.mark.parametrize(("loss", "length"), [("4.79", "5.89"), ("1", "1.1"), ("0.01", "0.019"), ("300", "500")])
def test_a_loss_known_by_size_and_range_is_bounded_by_both(loss, length):
    both = _curves.Ranged(Fraction(length), Fraction(loss))
    for one in (_curves.Pure(Fraction(loss)), _curves.Ranged(Fraction(length))):
        for epsilon in np.linspace(0, float(length) * 1.01, 13):
            assert both.delta_at(epsilon) <= one.delta_at(epsilon)
        assert all(both.epsilon_at(delta) <= one.epsilon_at(delta) for delta in (1e-9, 1e-3, 0.1))
        assert all(both.renyi(order) <= one.renyi(order) * (1 + 1e-12) for order in (1.5, 2, 100))
    guarantee = guarantee_of(both, ReplaceOne())
    assert PrivacyGuarantee.from_dict(guarantee.to_dict()) == guarantee
    words = PrivacyGuarantee(float(length), range_bounded=True).to_dict()
    del words["parts"][0]["reach"]["curve"]["loss"]  # as it was written before
    assert PrivacyGuarantee.from_dict(words) == PrivacyGuarantee(float(length), range_bounded=True)
