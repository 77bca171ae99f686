"""Exact channels: every figure that a channel tells is a fraction, or a float on the side of the weaker promise.

The figures are found by introspection: a new method of `Channel` has to be put into one of the two tables here.
"""

import inspect
import itertools
import math
import random
import re
from fractions import Fraction as F
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from quincunx.graphs import complete, path
from quincunx.leakage import Channel
from quincunx.leakage._exact import outward
from quincunx.leakage._symmetrization import Symmetrization

GAIN = [[1.0, 0.25, 0.0, 0.0], [0.5, 0.5, 0.5, 0.0], [0.1, 0.0, 0.3, 2.0]]
METRIC = [[0, 1, 2.5, 3], [1, 0, 1.5, F(8, 3)], [2.5, 1.5, 0, math.inf], [3, F(8, 3), math.inf, 0]]


def real(value):
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, F) else mp.mpf(value)


def uniform(channel):
    return [F(1, channel.n_inputs)] * channel.n_inputs


def weights(prior, channel):
    return uniform(channel) if prior is None else list(map(F, prior))


def vulnerability(channel, prior):
    p = weights(prior, channel)
    return sum(max(a * b for a, b in zip(p, column, strict=True)) for column in zip(*channel.fractions, strict=True))


def gains(channel, prior, gain):
    p, rows = weights(prior, channel), channel.fractions
    gain = [[F(entry) for entry in row[: len(rows)]] for row in gain]
    before = max(sum(a * g for a, g in zip(p, row, strict=True)) for row in gain)
    after = sum(
        max(sum(a * row[y] * g for a, row, g in zip(p, rows, guess, strict=True)) for guess in gain)
        for y in range(len(rows[0]))
    )
    return before, after


def neighbors(channel):
    rows = channel.fractions
    return [pair for u, v in itertools.pairwise(rows) for pair in ((u, v), (v, u))]


def ratio(p, q):
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a]
    return math.inf if any(not b for _, b in pairs) else max([F(1), *(a / b for a, b in pairs)])


def log_ratio(p, q):
    found = ratio(p, q)
    return mp.inf if found == math.inf else mp.log(real(found))


def renyi(p, q, alpha):
    if alpha == math.inf:
        return log_ratio(p, q)
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a]
    if (alpha >= 1 and any(not b for _, b in pairs)) or not any(b for _, b in pairs):
        return mp.inf
    if alpha == 0:
        return -mp.log(real(sum(b for _, b in pairs)))
    pairs = [(real(a), real(b)) for a, b in pairs if b]
    if alpha == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in pairs)
    return mp.log(mp.fsum(b * (a / b) ** mp.mpf(alpha) for a, b in pairs)) / (mp.mpf(alpha) - 1)


def information(channel, prior):
    p = weights(prior, channel)
    p = [a / sum(p) for a in p]
    outputs = [sum(a * b for a, b in zip(p, column, strict=True)) for column in zip(*channel.fractions, strict=True)]
    return mp.fsum(real(a) * renyi(row, outputs, 1) for a, row in zip(p, channel.fractions, strict=True)) / mp.log(2)


def metric_level(channel):
    rows, level = channel.fractions, mp.mpf(0)
    for h, p in enumerate(rows):
        for k, q in enumerate(rows):
            if h != k and METRIC[h][k] != math.inf:
                level = max(level, log_ratio(p, q) / real(METRIC[h][k]))
    return level


def over_pairs(figure, least=0):
    return lambda channel: max((figure(p, q) for p, q in neighbors(channel)), default=mp.mpf(least))


def chain(channel):
    return path(channel.n_inputs)


def square(table, channel):
    return [row[: channel.n_inputs] for row in table[: channel.n_inputs]]


PRIORS = {
    "uniform": lambda channel: None,
    "fractions": lambda channel: [F(2 * x + 1, channel.n_inputs**2) for x in range(channel.n_inputs)],
    "floats": lambda channel: np.random.default_rng(channel.n_inputs).dirichlet(np.ones(channel.n_inputs)).tolist(),
}
EPSILONS = [0.0, 1e-320, 1e-17, 0.1, math.log(2), 3.0, 900.0, 1e300, math.inf]
ALPHAS = [0.0, 1e-300, 0.3, math.nextafter(1, 0), 1.0, math.nextafter(1, 2), 1.5, 2.0, 7.25, 1e3, 1e300, math.inf]
UP, DOWN = 1, -1

#: For each figure: which way it is rounded, how it is asked, and what it is.
FIGURES = {
    "bayes_vulnerability": {
        name: (UP, lambda c, f=f: c.bayes_vulnerability(f(c)), lambda c, f=f: vulnerability(c, f(c)))
        for name, f in PRIORS.items()
    },
    "additive_leakage": {
        name: (
            UP,
            lambda c, f=f: c.additive_leakage(f(c)),
            lambda c, f=f: vulnerability(c, f(c)) - max(weights(f(c), c)),
        )
        for name, f in PRIORS.items()
    },
    "conditional_min_entropy": {
        name: (
            DOWN,
            lambda c, f=f: c.conditional_min_entropy(f(c)),
            lambda c, f=f: -mp.log(real(vulnerability(c, f(c))), 2),
        )
        for name, f in PRIORS.items()
    },
    "min_entropy_leakage": {
        name: (
            UP,
            lambda c, f=f: c.min_entropy_leakage(f(c)),
            lambda c, f=f: mp.log(real(vulnerability(c, f(c)) / max(weights(f(c), c))), 2),
        )
        for name, f in PRIORS.items()
    },
    "g_vulnerability": {
        name: (
            UP,
            lambda c, f=f: c.g_vulnerability([row[: c.n_inputs] for row in GAIN], f(c)),
            lambda c, f=f: gains(c, f(c), GAIN)[1],
        )
        for name, f in PRIORS.items()
    },
    "g_leakage": {
        name: (
            UP,
            lambda c, f=f: c.g_leakage([row[: c.n_inputs] for row in GAIN], f(c)),
            lambda c, f=f: mp.log(real(gains(c, f(c), GAIN)[1] / gains(c, f(c), GAIN)[0]), 2),
        )
        for name, f in PRIORS.items()
    },
    "mutual_information": {
        name: (UP, lambda c, f=f: c.mutual_information(f(c)), lambda c, f=f: information(c, f(c)))
        for name, f in PRIORS.items()
    },
    "min_capacity": {
        "": (UP, lambda c: c.min_capacity(), lambda c: mp.log(real(sum(map(max, zip(*c.fractions, strict=True)))), 2))
    },
    "capacity": {
        "": (UP, lambda c: c.capacity(), lambda c: mp.log(real(sum(map(max, zip(*c.fractions, strict=True)))), 2))
    },
    "likelihood_ratio": {"": (UP, lambda c: c.likelihood_ratio(chain(c)), over_pairs(ratio, 1))},
    "dp_epsilon": {"": (UP, lambda c: c.dp_epsilon(chain(c)), over_pairs(log_ratio))},
    "guarantee": {
        "": (
            UP,
            lambda c: math.inf if c.dp_epsilon(chain(c)) == math.inf else c.guarantee(chain(c)).epsilon,
            over_pairs(log_ratio),
        )
    },
    "dp_delta": {
        str(e): (
            UP,
            lambda c, e=e: c.dp_delta(chain(c), e),
            over_pairs(lambda p, q, e=e: delta(p, q, e)),
        )
        for e in EPSILONS
    },
    "renyi_dp": {
        str(a): (UP, lambda c, a=a: c.renyi_dp(chain(c), a), over_pairs(lambda p, q, a=a: renyi(p, q, a)))
        for a in ALPHAS
    },
    "metric_epsilon": {"": (UP, lambda c: c.metric_epsilon(square(METRIC, c)), metric_level)},
    "symmetrize": {
        name: (UP, lambda c, name=name: getattr(averaged(c), name), truth)
        for name, truth in {
            "epsilon_before": lambda c: over_all_pairs(averaged(c).original),
            "epsilon_after": lambda c: over_all_pairs(averaged(c).channel),
            "capacity_before": lambda c: FIGURES["min_capacity"][""][2](averaged(c).original),
            "capacity_after": lambda c: FIGURES["min_capacity"][""][2](averaged(c).channel),
            "vulnerability_before": lambda c: vulnerability(averaged(c).original, None),
            "vulnerability_after": lambda c: vulnerability(averaged(c).channel, None),
        }.items()
    },
}
#: What tells no figure, and what is told in float64 and says so.
OTHERS = {
    "compose": "a channel",
    "fractions": "the entries",
    "from_blocks": "a channel, whose figures `test_blocks.py` compares",
    "from_mechanism": "a channel",
    "inputs": "names",
    "is_exact": "a word",
    "kron": "a channel",
    "map_remap": "a channel",
    "matrix": "float64",
    "n_inputs": "a size",
    "n_outputs": "a size",
    "outputs": "names",
    "plot": "a picture",
    "posterior": "float64",
    "shannon_capacity": "an interval: has a test of its own",
    "to_pandas": "the entries",
}


def delta(p, q, epsilon):
    if epsilon == math.inf:
        return real(sum((a for a, b in zip(p, q, strict=True) if not b), F(0)))
    factor = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(real(a) - factor * real(b), 0) for a, b in zip(p, q, strict=True))


def averaged(channel):
    if channel.n_inputs != channel.n_outputs:
        n = min(channel.n_inputs, channel.n_outputs)
        channel = Channel([[F(int(x == y)) for y in range(n)] for x in range(n)], exact=True)
    return channel.symmetrize(complete(channel.n_inputs))


def over_all_pairs(channel):
    return max((log_ratio(p, q) for p in channel.fractions for q in channel.fractions if p != q), default=mp.mpf(0))


def random_channel(rng):
    """Rows that are wild, nearly equal, or with zeros and entries of 10^-400 in them."""
    inputs, outputs = rng.randrange(1, 5), rng.randrange(1, 6)
    kind = rng.choice(["wild", "close", "extreme"])

    def entry():
        if kind == "extreme" and rng.random() < 0.5:
            return rng.choice([F(0), F(1, 10**400), F(1, 10**30), F(rng.randrange(1, 99), 10**17)])
        return F(rng.randrange(1, 10**6), rng.randrange(1, 10**6)) ** rng.randrange(1, 4)

    base, rows = [entry() + F(1, 7) for _ in range(outputs)], []
    for _ in range(inputs):
        shift = F(1, 10 ** rng.randrange(1, 40))
        row = [a * (1 + shift * rng.randrange(0, 9)) for a in base] if kind == "close" else [entry() for _ in base]
        row[rng.randrange(outputs)] += F(1, 3) if not sum(row) else 0
        rows.append([a / sum(row) for a in row])
    return Channel(rows, exact=True)


def special_channels():
    n, e, half = 10**17, F(1, 10**400), F(1, 2)
    rows = [
        [[F(n, 2 * n + 1), F(n + 1, 2 * n + 1)], [half, half]],
        [[1 - e, e], [1, 0]],
        [[0, 1 - e, e], [e, 1 - e, 0], [F(1, 3), F(1, 3), F(1, 3)]],
        [[1, 0], [0, 1]],
        [[1]],
        [[half, half], [half, half]],
        [[1 - 2 * e, 2 * e], [1 - e, e]],
        [[F(2**53, 2**54 + 1), F(2**53 + 1, 2**54 + 1)], [F(2**53 + 1, 2**54 + 1), F(2**53, 2**54 + 1)]],
        [[half - e, half + e], [half, half], [half + e, half - e]],
    ]
    return [Channel(table, exact=True) for table in rows]


def check(channel, way, ask, truth):
    found = ask(channel)
    least = min(entry for row in channel.fractions for entry in row if entry)
    with mp.workdps(1300 if least < F(1, 10**60) else 700):
        exact = truth(channel)
        if isinstance(found, F):
            assert found == exact
        elif exact == mp.inf:
            assert found == math.inf
        else:
            beyond = (mp.mpf(found) - real(exact)) * way
            assert beyond >= 0, (found, mp.nstr(real(exact), 20))
            assert beyond <= 1e-15 * abs(real(exact)) + mp.mpf(2) ** -1073, (found, mp.nstr(real(exact), 20))


def test_every_method_is_in_one_of_the_tables():
    public = {name for name in dir(Channel) if not name.startswith("_")}
    assert public == set(FIGURES) | set(OTHERS)
    for name, kind in OTHERS.items():
        assert kind != "float64" or "float64" in inspect.getdoc(getattr(Channel, name))
    told = {n for n in dir(Symmetrization) if n.endswith(("_before", "_after"))}
    assert told == set(FIGURES["symmetrize"])


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_an_exact_channel_is_never_below_the_truth_and_close_to_it(name):
    rng, cases = random.Random(name), list(FIGURES[name].values())
    for channel, case in itertools.product(special_channels(), cases):
        check(channel, *case)
    for _ in range(60):
        check(random_channel(rng), *rng.choice(cases))


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_thousands_of_exact_channels_is_never_below_the_truth(name):
    rng = random.Random(name + "slow")
    for _ in range(4000):
        check(random_channel(rng), *rng.choice(list(FIGURES[name].values())))


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_of_an_exact_channel_comes_from_its_floats(name):
    channel = Channel([["1/2", "1/3", "1/6"], ["1/4", "1/4", "1/2"], ["2/5", "2/5", "1/5"]], exact=True)
    blind = Channel(channel.fractions, exact=True)
    blind._entries.floats = np.full((3, 3), math.nan)
    for _, ask, _ in FIGURES[name].values():
        assert ask(blind) == ask(channel)


def test_kernels_of_floats_are_called_for_channels_of_floats_only():
    kernels = re.compile(r"_core\.(channel_|column_|metric_|mutual_|shannon_)")
    room = Path(inspect.getfile(Channel)).parent
    assert {file.name for file in room.glob("*.py") if kernels.search(file.read_text())} == {"_floats.py"}


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 1e-11])
def test_a_shannon_capacity_lies_in_its_interval(tol):
    rng = random.Random(7)
    half = F(1, 2)
    for noise in [F(rng.randrange(1, 10**6), 10**7) for _ in range(20)] + [F(1, 10**400), half - F(1, 10**17)]:
        with mp.workdps(900):
            # The symmetric channel, and the one that loses a 1 (its capacity in closed form).
            one, p = 1 - real(noise), real(noise)
            symmetric = 1 + (p * mp.log(p) + one * mp.log(one)) / mp.log(2)
            lossy = mp.log(1 + one * p ** (p / one), 2)
            for rows, capacity in (
                ([[1 - noise, noise], [noise, 1 - noise]], symmetric),
                ([[1, 0], [noise, 1 - noise]], lossy),
            ):
                found = Channel(rows, exact=True).shannon_capacity(tol)
                assert found.lower <= capacity <= found.upper <= found.lower + tol
                assert found.prior.sum() == pytest.approx(1)
    for channel in special_channels():
        found = channel.shannon_capacity(tol)
        assert 0 <= found.lower <= found.upper <= found.lower + tol
        with mp.workdps(900):
            assert information(channel, found.prior) >= found.lower


def test_posteriors_of_exact_channels_are_the_nearest_floats():
    channel = Channel([["1/3", "2/3", 0], [F(1, 10**400), 1 - F(1, 10**400), 0]], exact=True)
    outer, inners = channel.posterior()
    third, tiny = F(1, 3), F(1, 10**400)
    assert outer.tolist() == [float((third + tiny) / 2), float((2 * third + 1 - tiny) / 2), 0.0]
    assert inners.tolist() == [[1.0, 0.0], [0.4, 0.6], [0.0, 0.0]]


def test_what_is_made_of_exact_channels_is_exact_and_of_others_is_not():
    exact, floats = Channel([["1/3", "2/3"], [1, 0]], exact=True), Channel([[0.25, 0.75], [0.5, 0.5]])
    assert (exact @ exact).fractions == ((F(7, 9), F(2, 9)), (F(1, 3), F(2, 3)))
    assert exact.map_remap([0.125, 0.875]).fractions == ((F(2, 3), F(1, 3)), (F(0), F(1)))
    for mixed in (exact @ floats, floats @ exact, exact.kron(floats), floats.kron(exact)):
        assert not mixed.is_exact
    assert np.array_equal((exact @ floats).matrix, exact.matrix @ floats.matrix)


def test_a_report_on_averaging_compares_fractions():
    # The capacities differ by less than a float can tell.
    shift = [[-1, 2, -1], [-1, 2, -1], [2, -1, -1]]
    rows = [[F(1, 3) + F(entry, 10**30) for entry in row] for row in shift]
    report = Channel(rows, exact=True).symmetrize(complete(3))
    assert report.guarantees["capacity_preserved"] == "false"
    assert report.guarantees["leakage_preserved"] == "false"


def test_outward_rounds_to_the_next_float():
    assert (outward(F(1, 10)), outward(F(2, 3))) == (0.1, math.nextafter(2 / 3, 1))
    assert outward(F(1, 10**400)) == 5e-324
    assert outward(F(10) ** 400) == math.inf
    assert outward(F(1, 4)) == 0.25
