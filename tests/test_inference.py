"""What rooms with a posterior share, by a sampler in Python of a law that is known: a random walk on a normal law."""

import io
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from quincunx import _inference as inference
from quincunx import errors


class Walk:
    """Metropolis' random walk; every step has a stream of its own."""

    rounds = 8

    def __init__(self, problem, run, schedule):
        self._problem, self._run, self._schedule = problem, run, schedule
        self._place = float(run.state["place"]) if run.state else 0.0
        self._draws, self._accepted = (
            list(run.draws[0]) if run.draws else [],
            list(run.step_statistics.get("moved", ())),
        )
        self._kept = list(run.kept)
        self.iteration = run.iteration

    def advance(self, steps, report):
        for i in range(steps):
            rng = np.random.default_rng([*self._run.key, self.iteration])
            proposal = self._place + rng.normal(0.0, 2.0)
            moved = np.log(rng.random()) < (self._place**2 - proposal**2) / 2 + (proposal - self._place) * 3.0
            self._place = proposal if moved else self._place
            self._accepted.append(float(moved))
            self.iteration += 1
            if self.iteration > self._schedule.n_warmup and self.iteration % self._schedule.thin == 0:
                self._draws.append(np.array([self._place, self._place**2]))
                self._kept.append(self.iteration)
            if report is not None:
                report(i + 1, steps)
        return False

    @property
    def left(self):
        return max(0, self._schedule.until - self.iteration)

    def statistics(self):
        return {"moved": self._accepted[-1]}

    def results(self):
        run = replace(
            self._run,
            iteration=self.iteration,
            state={"place": np.array(self._place)},
            draws=[np.array(self._draws).reshape(-1, 2)],
            kept=np.array(self._kept, dtype=np.int64),
            step_statistics={"moved": np.array(self._accepted)},
        )
        return [run]


@dataclass(frozen=True)
class Problem:
    """The normal law of mean 3 and variance 1."""

    sampled = True
    variables = (inference.Variable("moments", (2,), ("power",)),)

    def samplers(self, runs, schedule):
        return [Walk(self, run, schedule) for run in runs]


class Judged(inference.Posterior):
    def scalars(self):
        return {"place": self.draws()["moments"][..., 0], "moves": self.statistic("moved")}


class Normal(inference.PosteriorEstimator):
    _room = "normal"
    _posterior_type = Judged

    def __init__(self, n_chains=2, n_iter=60, random_state=None, warm_start=False, callback=None, progress=False):
        self.n_chains, self.n_iter, self.random_state = n_chains, n_iter, random_state
        self.warm_start, self.callback, self.progress = warm_start, callback, progress

    def fit(self, executor=None):
        def work():
            self._check_runs(executor)
            runs = self._fresh_or_continued(Problem(), lambda old: True)
            schedule = inference.Schedule(max(run.iteration for run in runs) + self.n_iter, n_warmup=10, thin=2)
            return self._infer(Problem(), runs, schedule, executor)

        self._fit_or_restore(work)
        return self

    def _set_fitted(self, posterior):
        self.mean_ = posterior.draws()["moments"].mean(axis=(0, 1))

    def _fixed_settings(self):
        return {"n_chains": self.n_chains}

    def _problem_to_archive(self):
        return {"settings": self._settings}, {}

    def _problem_from_archive(self, header, arrays):
        return Problem()


def draws(model):
    return model.draws_["moments"]


def test_draws_have_chains_first_and_the_law_that_was_asked_for():
    model = Normal(4, 3010, random_state=1).fit()
    assert draws(model).shape == (4, 1500, 2)
    (rhat, ess), _ = model._posterior.diagnostics().values()
    assert rhat < 1.01
    assert abs(model.mean_[0] - 3) < 4.9 / np.sqrt(ess)  # false alarm 1e-6


def test_no_interrupt_finds_an_estimator_without_its_settings():
    """Looked at between any two lines of a fit that fails: a second interrupt may come there."""
    model, seen = Normal(random_state=1).fit(), []

    def look(frame, event, argument):
        seen.append(hasattr(model, "n_iter") and hasattr(model, "mean_"))
        return look

    model.n_chains = 0
    before = sys.gettrace()
    sys.settrace(look)
    try:
        with pytest.raises(ValueError, match="n_chains"):
            model.fit()
    finally:
        sys.settrace(before)
    assert len(seen) > 10
    assert all(seen)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_does_not_show_and_progress_counts_chains(kind):
    heard = []
    model = Normal(random_state=1, progress=lambda *told: heard.append(told))
    if kind == "threads":
        executor = ThreadPoolExecutor(2)
    else:
        executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    with executor:
        np.testing.assert_array_equal(draws(model.fit(executor)), draws(Normal(random_state=1).fit()))
    assert heard == [(1, 2), (2, 2)]


def test_a_warm_start_or_a_file_continues_as_if_there_had_been_no_stop():
    whole = draws(Normal(n_iter=60, random_state=1).fit())
    parts = Normal(n_iter=23, random_state=1, warm_start=True).fit()
    file = io.BytesIO()
    parts.save(file)
    file.seek(0)
    parts.n_iter = 37
    np.testing.assert_array_equal(draws(parts.fit()), whole)
    loaded = Normal.load(file)
    assert loaded.get_params() == parts.get_params() | {"n_iter": 23}
    loaded.n_iter = 37
    np.testing.assert_array_equal(draws(loaded.fit()), whole)
    loaded.n_chains = 3
    with pytest.raises(ValueError, match="`n_chains` must be 2, as in the fit that goes on, got 3"):
        loaded.fit()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OverflowError])
def test_what_a_callback_raises_comes_back_and_what_was_kept_stays(error):
    def stop(iteration, told):
        assert set(told) == {"chain", "moved"}
        if iteration == 31 and told["chain"] == 1:
            raise error

    model = Normal(random_state=1, callback=stop)
    with pytest.raises(error):
        model.fit()
    np.testing.assert_array_equal(draws(model), draws(Normal(random_state=1).fit())[:, :10])
    before = dict(vars(model))
    model.callback = lambda *_: False
    with pytest.raises(errors.ConvergenceError, match="before anything was kept"):
        model.fit()
    assert vars(model) == before | {"callback": model.callback}


def test_what_a_sampler_raises_is_an_error_and_leaves_the_earlier_fit(monkeypatch):
    model = Normal(random_state=1).fit()
    before = dict(vars(model))
    monkeypatch.setattr(Walk, "statistics", lambda self: 1 / 0)
    model.callback = lambda *_: None
    with pytest.raises(ZeroDivisionError):
        model.fit()
    assert vars(model) == before | {"callback": model.callback}


def test_short_and_divergent_chains_are_warned_of():
    posterior = Normal(random_state=1).fit()._posterior
    posterior.complaint = lambda: inference.complaint_of(posterior.scalars(), "draw more", divergences=3)
    with pytest.warns(errors.ConvergenceWarning, match=r"effective draws .*; 3 transitions .* diverged: draw more"):
        posterior.warn()
    fine = {"place": np.random.default_rng(1).normal(size=(4, 1000))}
    posterior.complaint = lambda: inference.complaint_of(fine, "draw more")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.warn()
    assert inference.complaints({"place": (np.nan, np.nan)}) == []


def test_a_datatree_has_dimensions_labels_and_what_made_it():
    posterior = Normal(random_state=1).fit()._posterior
    groups = {
        "posterior": posterior.draws(),
        "sample_stats": {"moved": posterior.statistic("moved")},
        "constant_data": {},
    }
    tree = inference.datatree(groups, {"moments": ("power",)}, {"power": ["x", "x^2"]}, {"walk": "metropolis"})
    assert tree["posterior"]["moments"].dims == ("chain", "draw", "power")
    assert tree["posterior"].coords["power"].values.tolist() == ["x", "x^2"]
    assert tree["sample_stats"]["moved"].dims == ("chain", "draw")
    assert tree["posterior"].attrs["walk"] == "metropolis"
    assert tree["posterior"].attrs["inference_library"] == "quincunx"
    assert "constant_data" not in tree.children
