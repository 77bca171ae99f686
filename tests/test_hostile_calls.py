"""Nothing takes the interpreter down: calls of everything public with arguments that nobody should give."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from quincunx import counting, distributions, entropy, graphs, lattices, ldp, leakage, posterior, privacy, spectra
from quincunx.errors import TooLargeError
from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonFactorization,
    PoissonTensorFactorization,
    cross_validate,
)

ROOT = Path(__file__).resolve().parent.parent


class Shard:
    """Every so-many-th call, by one process after the other: a death costs the call that killed it."""

    def __init__(self, number: int, step: int, calls: int, seconds: float, folder: Path) -> None:
        self.number, self.step, self.calls, self.seconds = number, step, calls, seconds
        self.journal = folder / f"journal-{number}"
        self.made = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        """Make all calls."""
        first = self.number
        while first is not None and first < self.calls:
            self.journal.unlink(missing_ok=True)
            first = self.go(first)

    def go(self, first: int) -> int | None:
        """Make calls until the last, or until the process dies; return the number of the next."""
        command = [sys.executable, str(ROOT / "tests" / "hostile.py"), "--first", str(first)]
        command += ["--calls", str(self.calls - first), "--step", str(self.step)]
        command += ["--seconds", str(self.seconds), "--journal", str(self.journal)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "QUINCUNX_NUM_THREADS": "2", "RUST_BACKTRACE": "0"}
        errors = self.journal.with_suffix(".errors")
        with (
            open(errors, "wb") as ears,
            subprocess.Popen(command, cwd=ROOT, env=environment, stderr=ears, stdout=subprocess.DEVNULL) as process,
        ):
            size = -1
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                    break
                grown = self.journal.stat().st_size if self.journal.exists() else 0
                if grown == size:  # one call has taken more than half a minute and hears no signal
                    process.kill()
                size = grown
        heard = errors.read_text(errors="replace")
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []
        self.made += sum("call" in line for line in lines)
        self.wrong += [f"{line['is']}: {line['wrong']}" for line in lines if "finding" in line]
        if process.returncode == 0 and lines and "done" in lines[-1]:
            return None
        last = next((line for line in reversed(lines) if "call" in line), None)
        if last is None:
            self.wrong.append(f"no call was made: {heard[-2000:]}")
            return None
        self.wrong.append(f"{last['is']}: died with {process.returncode}: {heard[-300:]}")
        return last["call"] + self.step


def hostile_calls(calls: int, seconds: float, folder: Path, processes: int) -> tuple[int, list[str]]:
    """Make that many calls in processes side by side; return how many were made and what went wrong."""
    shards = [Shard(number, processes, calls, seconds, folder) for number in range(processes)]
    runners = [threading.Thread(target=shard.run) for shard in shards]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    wrong = [line for shard in shards for line in shard.wrong]
    return sum(shard.made for shard in shards), wrong


def test_ten_thousand_hostile_calls_end_as_documented(tmp_path):
    made, wrong = hostile_calls(10_000, 0.02, tmp_path, processes=1)  # the imports and examples of each cost 9 s
    assert not wrong, f"{len(wrong)} of {made} calls:\n" + "\n".join(wrong[:40])
    assert made == 10_000


# What calls of the like once raised, of other types than are documented.

HUGE = {
    "a range": lambda: range(10**12),
    "a view": lambda: np.broadcast_to(np.int64(1), (10**7, 10**6)),
    "a sparse array": lambda: scipy.sparse.csr_array((2 * 10**6, 10**6), dtype=int),
}
MODELS = (PoissonFactorization, PoissonTensorFactorization, PoissonBlockmodel)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE)
def test_data_that_no_memory_holds_are_a_too_large_error(model, data):
    small = np.ones((4, 4), int)
    fitted = model(2, inference="vi", n_chains=1, max_iter=500, tol=1e-2, random_state=0).fit(small)
    for name in ("fit", "fit_transform", "fit_predict", "transform", "score", "predict"):
        if hasattr(model, name):
            with pytest.raises((TooLargeError, ValueError), match=r"memory|bytes|must have|expecting"):
                getattr(fitted, name)(data())
    with pytest.raises(TooLargeError, match="`released`"):
        model(2).fit(data())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "data",
    [[], (), [[]], [[], []], [[[]]], [[[1]], []], np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 0, 3)), {}],
    ids=repr,
)
def test_data_without_cells_are_a_value_error_or_a_type_error(model, data):
    for name in ("fit", "fit_transform", "fit_predict"):
        if hasattr(model, name):
            with pytest.raises((ValueError, TypeError)):
                getattr(model(2, inference="vi", n_chains=1, max_iter=3), name)(data)


LONG = 10**400
NUMBERS = {
    "beta_hockey_stick": lambda n: posterior.beta_hockey_stick(1.0, 1.0, 2.0, n),
    "gamma_hockey_stick": lambda n: posterior.gamma_hockey_stick(1.0, 1.0, 20.0, n, data_bound=1.0),
    "BetaBernoulli.delta": lambda n: posterior.BetaBernoulli(2.0, 3.0).delta(1.0, n),
    "BetaBernoulli.guarantee": lambda n: posterior.BetaBernoulli(2.0, 3.0, trim=0.2).guarantee(n=n),
    "DirichletCategorical.guarantee": lambda n: posterior.DirichletCategorical([2.0, 1.0], trim=0.2).guarantee(n=n),
    "DirichletCategorical of three": lambda n: posterior.DirichletCategorical([2.0, 1.0, 3.0], 0.1).guarantee(n=n),
    "LaplaceGamma.guarantee": lambda n: posterior.LaplaceGamma(2.0, 1.0, (0.2, 1.0), 2.0).guarantee(n=n),
    "ExponentialGamma.guarantee": lambda n: posterior.ExponentialGamma(2.0, 1.0, (0.2, 1.0), 2.0).guarantee(n=n),
    "BallRegression.guarantee": lambda n: posterior.BallRegression(1.0, 1.0, 1.0, 1.0, 1.0).guarantee(n=n),
}


@pytest.mark.parametrize("call", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("n", [LONG, -LONG, LONG // 7, 2**70], ids=["10**400", "-10**400", "10**400 / 7", "2**70"])
def test_numbers_of_records_beyond_doubles_are_value_errors(call, n):
    with pytest.raises(ValueError, match="`n` must be"):
        call(n)


@pytest.mark.parametrize("name", ["beta_hockey_stick", "BetaBernoulli.delta"])
def test_a_sum_over_all_counts_of_records_is_refused_where_memory_ends(name):
    with pytest.raises(TooLargeError, match="a divergence for each count of the records needs"):
        NUMBERS[name](10**15)


@pytest.mark.parametrize("interval", [(LONG, 1.0), (0.0, LONG), (-LONG, 0.0), (0.0, Fraction(LONG, 3))])
def test_ends_of_an_interval_beyond_doubles_are_value_errors(interval):
    with pytest.raises(ValueError, match="`interval` must be within the range of a double"):
        ldp.tractable_log_density(1.0, [1.0], [0.0, 1.0], interval, 1.0)


@pytest.mark.parametrize("data", [HUGE["a range"], HUGE["a view"]], ids=["a range", "a view"])
def test_arguments_that_no_memory_holds_are_named(data):
    ball = posterior.BallRegression(1.0, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(TooLargeError, match=r"`X`|`data`"):
        ball.posterior(data(), np.ones(3))
    with pytest.raises(TooLargeError, match="`epsilons`"):
        leakage.plot_utility(graphs.path(3), data())
    with pytest.raises(TooLargeError, match="`values`"):
        privacy.Release(data(), privacy.PrivacyGuarantee(1.0))


MANY, WIDE = range(10**12), np.broadcast_to(1.0, 10**12)


class Claimed:
    """Claims a length, and holds nothing."""

    def __len__(self):
        return 2**62

    def __getitem__(self, place):
        raise IndexError(place)


NETWORK = posterior.DiscreteBayesNet([("sky", "road")], {"sky": 2, "road": 2})
LABELLED = pd.Series([2, 1], index=["tea", "coffee"])
RELEASE = privacy.privatize(np.ones((3, 3), dtype=int), epsilon=1.0, insecure_seed=1)
IN_WORDS = {
    "annealed_entropy_limit": lambda: entropy.annealed_entropy_limit(10**12, 0.3),
    "transfer_matrices": lambda: counting.transfer_matrices((4 * 10**9, []), [[0, 1], [2, 3]]),
    "GaussianMechanism": lambda: privacy.GaussianMechanism(1.0, 1e-5, radius=1.0, dimension=3, scales=MANY),
    "Dirichlet": lambda: ldp.priors.Dirichlet(MANY),
    "Dirichlet.concentrations": lambda: ldp.priors.Dirichlet([1.0, 2.0]).concentrations(WIDE),
    "variances_of_none": lambda: privacy.HadamardResponse(1.0, 5).noise.variances_of_none(MANY, 3),
    "cross_validate": lambda: cross_validate(RELEASE, n_components=[1], folds=MANY),
    "masked": lambda: RELEASE.masked(MANY),
    "Channel": lambda: leakage.Channel(WIDE, exact=True),
    "bayes_vulnerability": lambda: leakage.Channel(np.eye(2)).bayes_vulnerability(prior=WIDE),
    "GeometricNoise": lambda: privacy.noise.GeometricNoise(LONG, 2.5),
    "Skellam.sample": lambda: distributions.Skellam(1.0, 1.0).sample(WIDE),
    "algebraic_connectivity": lambda: spectra.algebraic_connectivity((10**12, [])),
    "privatize": lambda: privacy.privatize([1, 2], epsilon=MANY),
    "BallRegression": lambda: posterior.BallRegression(1.0, 1.0, 1.0, 1.0, MANY),
    "OptimalMechanism": lambda: leakage.OptimalMechanism(print, MANY, 1.0, "sphere"),
    "distance_channel": lambda: leakage.distance_channel(lattices.king(2000, 2000), float("inf")),
    "induced_graph": lambda: graphs.induced_graph(graphs.path(2), iter(int, 1)),
    "count_tables": lambda: NETWORK.count_tables([[0, 1]], nodes=Claimed()),
    "privatize on labels": lambda: privacy.privatize(MANY, epsilon=1.0, domain=["a", "b"]),
    "privatize on claimed labels": lambda: privacy.privatize(LABELLED, epsilon=1.0, domain=Claimed()),
    "Channel of claimed outputs": lambda: leakage.Channel(np.eye(2), outputs=Claimed()),
    "of_loss_distribution": lambda: privacy.PrivacyGuarantee.of_loss_distribution(Claimed()),
    "LinearRegression.score": lambda: ldp.LinearRegression().score(np.zeros((2, 1)), WIDE),
    "LogisticRegression.score": lambda: ldp.LogisticRegression().score(np.zeros((2, 1)), WIDE),
    "plot": lambda: privacy.PrivacyGuarantee(1.0).plot(points=10**5000),
    "naive_bayes_loss": lambda: posterior.naive_bayes_loss(LONG, 50, 0.22),
}


@pytest.mark.parametrize("call", IN_WORDS.values(), ids=IN_WORDS)
def test_what_once_ended_in_want_of_memory_ends_in_words(call):
    with pytest.raises((TooLargeError, ValueError, TypeError), match=r"`\w+` must|needs \d+ bytes"):
        call()


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_million_hostile_calls_end_as_documented(tmp_path):
    made, wrong = hostile_calls(1_000_000, 0.1, tmp_path, processes=2)
    assert not wrong, f"{len(wrong)} of {made} calls:\n" + "\n".join(sorted(wrong)[:200])
    assert made == 1_000_000


if __name__ == "__main__":
    import tempfile

    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as here:
        found = hostile_calls(many, 0.02, Path(here), processes=2)
    print(f"{found[0]} calls, {len(found[1])} findings", *found[1], sep="\n")
