"""Public calls of `quincunx.distributions` beside NumPy and SciPy: one process, interleaved, least of several rounds.

Run with `python benches/bench_distributions.py`. Times are processor time, in nanoseconds per value on one thread; the
ratio is the peer's time over ours. The last two columns measure the machine in turns with each call: the fraction of
our time that it takes to write as many numbers of eight bytes to memory, and how many additions and multiplications
registers could have done per value, by a product of matrices that stay in the cache.
"""

import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from measuring import keep, print_build
from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

ROUNDS = 9
# What the machine is measured by.
SWEPT = np.empty(1_000_000, dtype=np.int64)
TILE, RESULT = np.full((128, 128), 1e-3), np.empty((128, 128))


def measure(*calls: Callable[[], object] | None) -> list[float]:
    """Least processor time of each call, in seconds; the calls take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            if call is not None:
                start = time.process_time()
                call()
                best[i] = min(best[i], time.process_time() - start)
    return best


def row(
    name: str, size: int, ours: Callable[[], object], peer: Callable[[], object] | None, peer_name: str = ""
) -> None:
    """Print one line of the table."""
    swept = SWEPT[:size]
    mine, theirs, sweep, product = measure(ours, peer, lambda: swept.fill(1), lambda: np.matmul(TILE, TILE, out=RESULT))
    ratio = f"{theirs / mine:7.1f}x  {1e9 * theirs / size:9.1f}" if peer else f"{'-':>8}  {'-':>9}"
    operations = 2 * len(TILE) ** 3 * mine / product / size
    print(f"{name:46} {1e9 * mine / size:9.1f}  {ratio}  {sweep / mine:7.0%}  {operations:10.0f}  {peer_name}")
    keep(f"{name}, each", mine / size, {peer_name: theirs / size} if peer else {})


def sweep_mix(cells: int) -> Bessel:
    """Return orders and arguments as in a Gibbs sweep over a sparse table at one unit of privacy loss per count."""
    rng = np.random.default_rng(1)
    alpha = np.exp(-1.0)
    rate = rng.exponential(0.5, cells)
    plus, minus = (rng.geometric(1 - alpha, cells) - 1 for _ in range(2))
    rate_plus, rate_minus = (rng.gamma(1 + g, alpha) for g in (plus, minus))
    released = rng.poisson(rate) + plus - minus
    return Bessel(np.abs(released), 2 * np.sqrt(rate_minus * (rate_plus + rate)))


def draws() -> None:
    """Draws, a million of each."""
    size = 1_000_000
    rng = np.random.default_rng(1)
    out = np.empty(size, dtype=np.int64)
    mix = sweep_mix(size)
    row("Bessel sweep-like mix", size, lambda: mix.sample(rng=1, out=out, threads=1), None)
    size //= 4
    out = out[:size]
    for order, argument in [
        (0, 0.1), (0, 1), (0, 5), (1, 2), (2, 1), (5, 3), (1, 30), (10, 20), (0, 100), (50, 100), (100, 10),
        (1000, 1000), (0, 1e4), (10**5, 1e3), (10**6, 1e5), (0, 1e6), (0, 1e8),
        # just beyond the longest series, where a proposal is rarely kept at once
        (0, 41), (100, 65), (1000, 201), (10**6, 6400),
    ]:  # fmt: skip
        law = Bessel(order, argument)
        row(f"Bessel({order}, {argument:g})", size, lambda law=law: law.sample(size, rng=1, out=out, threads=1), None)
    for plus, minus in [(0.5, 0.5), (10, 20), (1e5, 1e4)]:
        law = Skellam(plus, minus)
        row(
            f"Skellam({plus:g}, {minus:g})",
            size,
            lambda law=law: law.sample(size, rng=1, out=out, threads=1),
            lambda plus=plus, minus=minus: stats.skellam.rvs(plus, minus, size=size, random_state=rng),
            "scipy.stats.skellam.rvs",
        )
    law = TwoSidedGeometric(epsilon_per_unit=1.0)
    row(
        "TwoSidedGeometric(epsilon_per_unit=1)",
        size,
        lambda: law.sample(size, rng=1, out=out, threads=1),
        lambda: stats.dlaplace.rvs(1.0, size=size, random_state=rng),
        "scipy.stats.dlaplace.rvs",
    )
    row(
        "TwoSidedGeometric(epsilon_per_unit=1)",
        size,
        lambda: law.sample(size, rng=1, out=out, threads=1),
        lambda: rng.geometric(0.63, size) - rng.geometric(0.63, size),
        "numpy geometric difference",
    )
    for rate in (0.02, 0.1, 1.0, 9.0, 30.0, 1000.0, 1e4):
        # One law for all draws, and rates that differ from draw to draw.
        rates = rate * rng.uniform(0.9, 1.1, size)
        for name, law, peer in [("rate", Skellam(rate, 0.0), rate), ("rates", Skellam(rates, 0.0), rates)]:
            row(
                f"Skellam({name} {rate:g}, 0), Poisson counts",
                size,
                lambda law=law: law.sample(() if law.shape else size, rng=1, out=out, threads=1),
                lambda peer=peer: rng.poisson(peer, size),
                "numpy poisson",
            )
        two = Skellam(rates, rates[::-1])
        row(
            f"Skellam(rates {rate:g}, rates)",
            size,
            lambda two=two: two.sample(rng=1, out=out, threads=1),
            lambda rates=rates: rng.poisson(rates) - rng.poisson(rates),
            "numpy poisson difference",
        )
    for released, rate, alpha in [(-1, 0.5, 0.37), (3, 0.5, 0.37), (100, 20, 0.5), (100, 300, 0.5), (100, 100, 0.5)]:
        law = TwoPiecePoisson(released, rate, alpha)
        row(
            f"TwoPiecePoisson({released}, {rate}, {alpha})",
            size,
            lambda law=law: law.sample(size, rng=1, out=out, threads=1),
            None,
        )


def masses() -> None:
    """Masses and tails."""
    size = 100_000
    for plus, minus in [(1.0, 1.0), (20.0, 15.0), (100.0, 80.0), (1e4, 1e4), (1e5, 1e5)]:
        law, sigma = Skellam(plus, minus), (plus + minus) ** 0.5
        k = np.round(plus - minus + sigma * np.linspace(-4, 4, size)).astype(np.int64)
        name = f"Skellam({plus:g}, {minus:g})"
        peer = stats.skellam(plus, minus)
        row(
            f"{name}.logpmf",
            size,
            lambda law=law, k=k: law.logpmf(k),
            lambda peer=peer, k=k: peer.logpmf(k),
            "scipy.stats",
        )
        few = k[:: size // 1000]
        row(
            f"{name}.cdf",
            few.size,
            lambda law=law, k=few: law.cdf(k),
            lambda peer=peer, k=few: peer.cdf(k),
            "scipy.stats",
        )
    spread = np.random.default_rng(1).permutation(np.linspace(-4, 4, 1000))
    for plus, minus in [
        (0.1, 0.1),
        (0.1, 10),
        (1, 1),
        (10, 10),
        (50, 20),
        (100, 80),
        (1000, 1),
        (1e3, 1e3),
        (1e4, 1e4),
    ]:
        pluses, minuses = plus * np.linspace(0.9, 1.1, 1000), minus * np.linspace(1.1, 0.9, 1000)
        family = Skellam(pluses, minuses)
        k = np.round(pluses - minuses + spread * np.sqrt(pluses + minuses)).astype(np.int64)
        row(
            f"Skellam(rates {plus:g}, rates {minus:g}).cdf",
            k.size,
            lambda family=family, k=k: family.cdf(k),
            lambda pluses=pluses, minuses=minuses, k=k: stats.skellam.cdf(k, pluses, minuses),
            "scipy.stats",
        )
    rates = np.linspace(1, 300, size)
    family, k = Skellam(rates, rates[::-1]), np.round(rates - rates[::-1]).astype(np.int64)
    row("Skellam(rates, rates).logpmf, a law per value", size, lambda: family.logpmf(k), None)
    for order, argument in [(0, 1.0), (3, 50.0), (1000, 1000.0), (0, 1e6)]:
        law = Bessel(order, argument)
        n = np.maximum(0, law.mode() + np.arange(size) % 999 - 500)
        row(f"Bessel({order}, {argument:g}).logpmf", size, lambda law=law, n=n: law.logpmf(n), None)
    released = np.arange(size) % 12 - 3
    cells = TwoPiecePoisson(released, 0.5 + 0.01 * released**2, 0.37)
    row("TwoPiecePoisson(o, mu, alpha).log_marginal", size, lambda: cells.log_marginal(), None)


def construction() -> None:
    """Laws made of a million parameters each, beside the copies of their arrays alone."""
    size = 1_000_000
    rng = np.random.default_rng(1)
    orders, rates, others = rng.integers(0, 9, size), rng.gamma(1, 5, size), rng.gamma(1, 5, size)
    copies = "copies of the arrays"
    row("Skellam(rates, rates)", size, lambda: Skellam(rates, others), lambda: (rates.copy(), others.copy()), copies)
    row(
        "Bessel(orders, arguments)",
        size,
        lambda: Bessel(orders, rates),
        lambda: (orders.copy(), orders.copy(), rates.copy()),
        copies,
    )


def overhead() -> None:
    """One value at a time."""
    rng = np.random.default_rng(1)
    law = Bessel(0, 1.0)
    row("Bessel.sample(), one draw", 1, lambda: law.sample(rng=rng), lambda: rng.poisson(1.0), "numpy poisson")
    row(
        "Skellam.logpmf(k), one value",
        1,
        lambda: Skellam(1.0, 2.0).logpmf(3),
        lambda: stats.skellam.logpmf(3, 1, 2),
        "scipy.stats",
    )


if __name__ == "__main__":
    print_build()
    print(f"{'call':46} {'ours, ns':>9}  {'ratio':>8}  {'peer, ns':>9}  {'memory':>7}  {'operations':>10}  peer")
    for part in (construction, draws, masses, overhead):
        part()
