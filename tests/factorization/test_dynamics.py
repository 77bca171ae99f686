"""Dynamical systems: known answers by quadrature, the joint law, ranks of the truth, forecasts and missing times.

The faults that a sampler of this model invites, transitions drawn after theta and zeta without its recursion, are
planted in the core's own test of `factorization/dynamics.rs`, where the parts of a sweep can be put in another order.
"""

import csv
import gzip
import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone
from tests.factorization.chains import (
    assert_means,
    assert_uniform,
    by_function,
    counts_of,
    holm,
    log_grid,
    of_no_change,
    of_same_law,
    ranks_of_truths,
)

from quincunx import _core
from quincunx.distributions import TwoPiecePoisson, TwoSidedGeometric
from quincunx.errors import ConvergenceWarning
from quincunx.factorization import Forecast, PoissonDynamics, PoissonFactorization
from quincunx.factorization._command import factorize_command
from quincunx.privacy import privatize

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "enron184_monthly_counts.csv.gz"
HOW = {"n_warmup": 20, "n_draws": 20, "thin": 2, "n_chains": 2, "random_state": 7}
ALPHA = 0.5
ONES = np.ones(1)
short = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")


# Known answers.


@cache
def two_times(released, tau, nu):
    """Return ln p(released) and the posterior means of theta at two times: one component, one column, delta = 1."""
    tail, here = log_grid(-60 - 45 / (tau * nu), -60, 100), log_grid(-60, 5, 700)
    first, weight = (np.concatenate(parts) for parts in zip(tail, here, strict=True))
    theta = np.exp(first)
    prior = np.exp(stats.loggamma.logpdf(first + np.log(tau), tau * nu)) * weight
    second, weights = log_grid(-60, 5, 800)
    after = np.exp(second)
    shape = tau * theta[:, None]
    step = np.exp(shape * (np.log(tau) + second) - tau * after - special.gammaln(shape)) * weights
    gone = np.where(theta > 0, special.gammainc(np.maximum(shape[:, 0], 1e-300), tau * np.exp(-60)), 1.0)
    mass = [
        np.exp(TwoPiecePoisson(o, rate, ALPHA).log_marginal()) for o, rate in zip(released, (theta, after), strict=True)
    ]
    none = np.exp(TwoPiecePoisson(released[1], 0.0, ALPHA).log_marginal())
    joint, left = (prior * mass[0])[:, None] * step * mass[1], prior * mass[0] * gone * none
    total = joint.sum() + left.sum()
    means = (joint.sum(axis=1) @ theta + left @ theta) / total, (joint @ after).sum() / total
    return np.log(total), means


KNOWN = {
    (2, 5): (-5.3265826418, (1.3806327781, 1.8245394666)),
    (2, 0): (-3.4374436419, (0.8374225853, 0.6699380682)),
}


@pytest.mark.parametrize("released", KNOWN)
def test_the_quadrature_finds_what_another_found(released):
    found, known = two_times(released, 2.0, 0.9), KNOWN[released]
    np.testing.assert_allclose(found[0], known[0], atol=1e-8)
    np.testing.assert_allclose(found[1], known[1], rtol=1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("released", "tau", "nu"), [((2, 5), 2.0, 0.9), ((2, 0), 2.0, 0.9), ((0, 3), 0.5, 0.02), ((4, 1), 0.1, 0.01)]
)
def test_the_means_of_a_chain_are_the_known_ones(released, tau, nu):
    priors = [(ONES, ONES), (ONES, np.empty(0)), *[(ONES, ONES)] * 3, (ONES, ONES), (ONES, ONES), (ONES, ONES)]
    fixed = [False, False, False, *[True] * 5]
    counts = counts_of([[o] for o in released], ALPHA)
    chain = _core.GibbsChain(counts, "dynamics", [2, 1], 1, priors, "auto", (1, 2), fixed)
    one = np.ones((1, 1))
    chain.set_factors([np.ones((2, 1)), one, one, np.ones((1, 2)), nu * one, one, one, tau * one])
    chain.run(300, 0, 1)
    chain.run(20_000, 1, 1)
    theta = chain.take()["draws"][0][:, :, 0]
    assert_means(theta, np.array(two_times(released, tau, nu)[1]), f"theta given {released}")


# The joint law.

TIMES, WIDTH, MASS, USUAL = 4, 2, 2.4, (3.0, 2.0)
SHAPES = {"matrix": (3,), "tensor": (2, 2)}


def prior(shape, rng, concentration_of_phi=0.8):
    """Return factors in the core's order."""
    xi, beta, tau = (rng.gamma(USUAL[0], 1 / USUAL[1]) for _ in range(3))
    nu = np.maximum(rng.gamma(MASS / WIDTH, 1 / beta, WIDTH), 1e-140)
    concentration = np.outer(nu, nu)
    np.fill_diagonal(concentration, xi * nu)
    # Gamma draws in logarithms, for concentrations whose draws would all be zero.
    logs = np.log(rng.standard_gamma(concentration + 1)) + np.log(rng.random((WIDTH, WIDTH))) / concentration
    transitions = special.softmax(logs, axis=0)
    theta, mean = np.empty((TIMES, WIDTH)), nu
    for t in range(TIMES):
        theta[t] = rng.standard_gamma(tau * mean) / tau
        mean = transitions @ theta[t]
    phis = [rng.dirichlet(np.full(extent, concentration_of_phi), WIDTH).T for extent in shape]
    delta = rng.gamma(USUAL[0], 1 / USUAL[1], (1, TIMES))
    return [theta, *phis, transitions, delta, nu[None], *(np.full((1, 1), x) for x in (xi, beta, tau))]


def rates(factors):
    *front, _, delta, _, _, _, _ = factors
    table = front[0] * delta.T
    for phi in front[1:]:
        table = table[..., None, :] * phi
    return table.sum(axis=-1).reshape(-1, len(front[-1]))


def joint_chain(shape, released, hidden, method="auto", concentrations=None):
    usual = tuple(np.array([x]) for x in USUAL)
    phis = [(np.array([x]), np.empty(0)) for x in concentrations or [0.8] * len(shape)]
    priors = [(ONES, ONES), *phis, (ONES, ONES)]
    priors += [usual, (np.array([MASS / WIDTH]), ONES), usual, usual, usual]
    counts = counts_of(released, ALPHA, hidden)
    return _core.GibbsChain(counts, "dynamics", [TIMES, *shape], WIDTH, priors, method, (3, 4))


def numbers(factors, table):
    """Return functions of a draw which say something of each of its parts."""
    *front, transitions, delta, nu, xi, beta, tau = factors
    theta = np.log(np.maximum(front[0], 1e-290))
    order = np.argsort(nu[0])  # and some that do not depend on labels
    return {
        **{f"ln theta {t} {k}": theta[t, k] for t in range(TIMES) for k in range(WIDTH)},
        "least ln theta": theta.min(),
        **{f"phi {m}": phi[0, 0] for m, phi in enumerate(front[1:])},
        "stays": transitions[0, 0],
        "moves": transitions[1, 0],
        "moves to the largest": transitions[order[-1], order[0]],
        "least delta": delta.min(),
        "delta": delta[0, -1],
        "ln nu": np.log(nu[0, 0]),
        "ln all nu": np.log(nu.sum()),
        "xi": xi[0, 0],
        "beta": beta[0, 0],
        "tau": tau[0, 0],
        "tau times all nu": np.log(tau[0, 0] * nu.sum()),
        "ln sum of rates": np.log(table.sum() + 1e-290),
        "ln first rate": np.log(table[0, 0] + 1e-290),
    }


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "masked", "method"), [("matrix", False, "collapsed"), ("matrix", True, "event"), ("tensor", True, "split")]
)
def test_sweeps_leave_the_joint_law_as_it_is(kind, masked, method):
    """Draws from the prior and what rounds of data and a sweep make of others: Kolmogorov and Smirnov, Holm, 1e-6."""
    shape, rng, replicates, rounds = SHAPES[kind], np.random.default_rng(21), 1200, 5
    columns = (TIMES * int(np.prod(shape[:-1])), shape[-1])
    hidden = rng.random(columns) < 0.3 if masked else None
    if masked:
        hidden[: len(hidden) // TIMES] = True  # a whole time
    before, after, chain = [], [], joint_chain(shape, np.zeros(columns), hidden, method)
    for _ in range(replicates):
        factors = prior(shape, rng)
        before.append(numbers(factors, rates(factors)))
        factors = prior(shape, rng)
        for _ in range(rounds):
            released = rng.poisson(rates(factors)) + TwoSidedGeometric(ALPHA).sample(columns, rng=rng)
            chain.set_counts(counts_of(released, ALPHA, hidden))
            chain.set_factors([np.ascontiguousarray(factor) for factor in factors])
            chain.run(1, 0, 1)
            factors = chain.factors()
        after.append(numbers(factors, rates(factors)))
    found, worst = of_same_law(by_function(before), by_function(after))
    assert not holm(found), worst


@pytest.mark.statistical
def test_sweeps_leave_the_law_of_learnt_concentrations_as_it_is():
    """Prior, data and three sweeps: changes are zero on average (Gandy and Scott 2020); Holm, 1e-6."""
    shape, rng, changes = SHAPES["matrix"], np.random.default_rng(22), []
    for _ in range(1500):
        eta = float(np.maximum(rng.exponential(), 1e-3))
        factors = prior(shape, rng, eta)
        released = rng.poisson(rates(factors)) + TwoSidedGeometric(ALPHA).sample((TIMES, *shape), rng=rng)
        chain = joint_chain(shape, released, None, concentrations=[eta])
        chain.learn_priors("factor")
        chain.set_factors([np.ascontiguousarray(factor) for factor in factors])
        chain.iteration = len(changes) * 3
        chain.run(3, 0, 1)
        later = float(chain.priors()[1][0][0])
        both = [
            [
                np.log(one),
                np.log(one) ** 2,
                one,
                phi[0, 0] ** 2,
                phi.max() * np.log(one),
                np.arcsinh(released).mean() * one,
            ]
            for one, phi in ((eta, factors[1]), (later, chain.factors()[1]))
        ]
        changes.append(np.subtract(*both))
    assert not holm(of_no_change(np.array(changes)))


@short
@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # twenty sweeps fit nothing
def test_concentrations_of_components_can_be_learnt():
    model = PoissonDynamics(2, hyperpriors="factor", **HOW).fit(season())
    assert model.draws_["components_concentration"].shape == (2, 20)
    assert set(model.priors_) == {"components"}
    assert model.forecast(2).mean.shape == (2, 12)


@pytest.mark.statistical
def test_ranks_of_the_truth_are_uniform():
    """As in test_calibration: 160 repetitions, 31 nearly independent draws each, 8 bins of ranks, Holm at 1e-6."""
    shape, rng = SHAPES["matrix"], np.random.default_rng(99)
    hidden = rng.random((TIMES, *shape)) < 0.2
    chain = joint_chain(shape, np.zeros((TIMES, *shape)), hidden)

    def functions(factors):
        return {name: x for name, x in numbers(factors, rates(factors)).items() if name not in LABELLED}

    def released(truth):
        noise = TwoSidedGeometric(ALPHA)
        return counts_of(rng.poisson(rates(truth)) + noise.sample((TIMES, *shape), rng=rng), ALPHA, hidden)

    assert_uniform(ranks_of_truths(chain, lambda: prior(shape, rng), released, functions, rng, thin=25))


LABELLED = {
    "stays",
    "moves",
    "phi 0",
    "ln nu",
    *(f"ln theta {t} {k}" for t in range(TIMES) for k in range(WIDTH)),
}
"""Functions that change when components change places: a chain may or may not."""


# The estimator.


@cache
def season():
    """A release of twelve columns of two kinds that take turns."""
    mean = np.where(np.arange(20)[:, None] % 2 == np.arange(12) % 2, 15.0, 1.0)
    return privatize(np.random.default_rng(3).poisson(mean), epsilon=1.0, insecure_seed=3)


@cache
def seasonal(**how):
    return PoissonDynamics(2, n_warmup=400, n_draws=200, n_chains=2, random_state=2, **how).fit(season())


@short
def test_a_fit_has_laws_where_it_says_so():
    model = seasonal()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.transitions_.sum(axis=0), 1.0)
    assert model.delta_.tolist() == [1.0] * 20
    assert model.nu_.shape == (2,)
    assert model.tau_ > 0
    shapes = {name: draws.shape[2:] for name, draws in model.draws_.items()}
    assert shapes == {
        "embedding": (20, 2),
        "components": (2, 12),
        "transitions": (2, 2),
        "delta": (20,),
        "nu": (2,),
        "xi": (),
        "beta": (),
        "tau": (),
    }
    draws = model.draws_
    found = np.einsum("cdtk,cdkv->tv", draws["embedding"], draws["components"]) / 400
    np.testing.assert_allclose(found, model.rates_, rtol=1e-10)
    # The kinds take turns: what one has goes to the other.
    assert model.transitions_.diagonal().max() < 0.4


@short
def test_forecasts_are_powers_of_the_transitions_and_their_paths_have_them_as_means():
    model = seasonal()
    future, draws = model.forecast(3), model.draws_
    assert future.mean.shape == (3, 12)
    assert future.draws.shape == (2, 200, 3, 12)
    last = np.einsum("cdij,cdjk,cdk->cdi", *[draws["transitions"]] * 2, draws["embedding"][:, :, -1])
    np.testing.assert_allclose(future.mean[1], np.einsum("cdk,cdkv->v", last, draws["components"]) / 400)
    paths = future.draws.sum(axis=-1).reshape(-1, 3)
    error = np.abs(paths.mean(axis=0) - future.mean.sum(axis=-1)) / (paths.std(axis=0) / 20)
    assert (error < 6).all()  # four hundred paths of independent noise, which is skew
    lower, upper = future.interval(0.9)
    assert (lower <= upper).all()
    middle = future.quantile()
    assert ((future.draws <= middle).mean(axis=(0, 1)) >= 0.5).all()
    assert ((future.draws < middle).mean(axis=(0, 1)) < 0.5).all()
    inside = (future.draws >= lower) & (future.draws <= upper)
    assert (inside.mean(axis=(0, 1)) >= 0.9).all()
    assert (future.mean[0, ::2] > 2 * future.mean[0, 1::2]).all()
    np.testing.assert_array_equal(model.forecast(3).draws, future.draws)
    for wrong in (0, 1.5, "a"):
        with pytest.raises((ValueError, TypeError), match="`steps`"):
            model.forecast(wrong)
    with pytest.raises(ValueError, match="`confidence`"):
        future.interval(1.0)
    with pytest.raises(ValueError, match="`probability`"):
        future.quantile(0.0)


@short
def test_a_missing_time_is_what_its_neighbors_say():
    mask = np.zeros((20, 12), dtype=bool)
    mask[9:11] = True
    model = PoissonDynamics(2, n_warmup=400, n_draws=200, n_chains=2, random_state=2).fit(season(), mask=mask)
    np.testing.assert_allclose(model.expected_counts_[9:11], model.rates_[9:11])
    assert model.rates_[9, 1::2].sum() > 2 * model.rates_[9, ::2].sum()
    assert model.rates_[10, ::2].sum() > 2 * model.rates_[10, 1::2].sum()
    values = np.where(mask, -999, season().values)
    other = clone(model).fit(values, alpha=season().alpha, mask=mask)
    np.testing.assert_array_equal(other.embedding_, model.embedding_)


@short
@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # twenty sweeps with delta fixed fit nothing
def test_learnt_deltas_take_what_all_components_have_in_common():
    counts = np.random.default_rng(1).poisson(np.array([1.0, 9.0] * 8)[:, None] * np.full(8, 6.0))
    model = PoissonDynamics(1, delta="learnt", n_warmup=400, n_draws=100, n_chains=1, random_state=1).fit(counts)
    assert model.delta_[1::2].min() > 2 * model.delta_[::2].max()
    assert model.forecast(2).draws.std() > 0
    fixed = PoissonDynamics(1, tau=0.7, n_warmup=20, n_draws=10, n_chains=1, random_state=1).fit(counts)
    assert fixed.tau_ == pytest.approx(0.7)
    assert set(fixed.draws_["tau"].ravel()) == {0.7}


@short
def test_a_tensor_has_a_factor_for_each_axis_but_the_first(tmp_path):
    tensor = np.random.default_rng(2).poisson(2.0, (6, 4, 3))
    model = PoissonDynamics(2, **HOW).fit(privatize(tensor, epsilon=1.0, insecure_seed=1))
    assert [factor.shape for factor in model.factors_] == [(4, 2), (3, 2)]
    assert model.components_.shape == (2, 4, 3)
    np.testing.assert_allclose(model.components_.sum(axis=(1, 2)), 1.0)
    draws = model.draws_
    found = np.einsum("cdtk,cdik,cdjk->tij", draws["embedding"], draws["mode_1"], draws["mode_2"]) / 40
    np.testing.assert_allclose(found, model.rates_, rtol=1e-10)
    assert model.forecast(2).mean.shape == (2, 4, 3)
    # One column on the last axis makes a matrix of it.
    flat = PoissonDynamics(2, **HOW).fit(tensor[:, :, :1])
    np.testing.assert_allclose(flat.factors_[1], 1.0)
    assert len(model.top_features(0, n=2, axis=1)) == 2


@short
def test_labels_of_times_are_kept_and_components_aligned():
    pandas = pytest.importorskip("pandas")
    months = [f"2001-{month:02}" for month in range(1, 13)]
    frame = pandas.DataFrame(
        season().values[:12], index=pandas.Index(months, name="month"), columns=list("abcdefghijkl")
    )
    model = PoissonDynamics(2, n_warmup=200, n_draws=50, n_chains=2, random_state=2).fit(frame, alpha=season().alpha)
    model.align()
    first, second = model.draws_["transitions"].mean(axis=1)
    np.testing.assert_allclose(first, second, atol=0.3)
    pytest.importorskip("arviz_base")
    tree = model.to_datatree(posterior_predictive=True, log_likelihood=True)
    assert tree["posterior"]["embedding"].dims == ("chain", "draw", "time", "component")
    assert tree["posterior"]["time"].values.tolist() == months
    assert tree["posterior"]["transitions"].dims[2:] == ("to_component", "component")
    assert tree["posterior"]["tau"].shape == (2, 50)
    assert tree["posterior_predictive"]["released"].shape == (2, 50, 12, 12)


@short
def test_dates_that_go_back_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(season().values[:12], index=pandas.period_range("2001-01", periods=12, freq="M"))
    model = PoissonDynamics(2, **HOW)
    for table in (frame, frame.set_axis(frame.index.to_timestamp()), frame.set_axis(frame.index.year)):
        fitted = model.fit(table, alpha=season().alpha)
        assert fitted.forecast(1).mean.shape == (1, 12)
    for table in (frame, frame.set_axis(frame.index.to_timestamp())):
        with pytest.raises(ValueError, match=r"`released` must have its times in their order, got 2001-11.* after "):
            model.fit(table[::-1], alpha=season().alpha)


@short
def test_times_that_are_missing_are_warned_of():
    pandas = pytest.importorskip("pandas")
    periods = pandas.period_range("2001-01", periods=13, freq="M")
    dates = [period.to_timestamp().date() for period in periods]
    for times in (periods, periods.to_timestamp(), periods.year * 12 + periods.month, dates):
        frame = pandas.DataFrame(season().values[:13], index=pandas.Index(times))
        model = PoissonDynamics(2, **HOW)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(frame, alpha=season().alpha)  # months of 28 to 31 days
        missing = frame.drop(index=frame.index[[4, 5, 9]])
        said = f"2 of 9 steps between times .* from {frame.index[3]} to {frame.index[6]}, and each is taken as one"
        with pytest.warns(UserWarning, match=said):
            model.fit(missing, alpha=season().alpha)


def test_a_forecast_has_draws_of_its_cells():
    for shape in ((1, 4, 2, 1), (1, 4, 3), (1, 0, 1, 2)):
        with pytest.raises(ValueError, match=r"`draws` must have shape \(n_chains, n_draws, \*\(1, 2\)\), got"):
            Forecast(mean=np.zeros((1, 2)), draws=np.zeros(shape, dtype=int))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"inference": "vi"}, "`inference` must be 'mcmc' for dynamics"),
        ({"delta": "free"}, "`delta` must be one of"),
        ({"tau": "fixed"}, "`tau` must be a positive number or 'learnt'"),
        ({"tau": 0.0}, "`tau` must be positive"),
        ({"mass": -1.0}, "`mass` must be positive"),
        ({"topic_concentration": 0.0}, "`topic_concentration` must be positive"),
        ({"prior_shape": (1.0, 2.0)}, "`prior_shape`"),
    ],
)
def test_what_the_model_cannot_be_is_refused(how, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PoissonDynamics(2, **how).fit(np.ones((3, 2), dtype=int))


def test_the_core_refuses_an_ascent():
    priors = [(ONES, ONES)] * 8
    with pytest.raises(ValueError, match="`model` must be of factors with conditionals of their own"):
        _core.CoordinateAscent(counts_of([[1], [2]], ALPHA), "dynamics", [2, 1], 1, priors, "collapsed", (0, 0))


@short
def test_the_command_line_fits_dynamics(tmp_path):
    season().save(tmp_path / "released.npz")
    how = {"model": "dynamics", "n_components": 2, "n_warmup": 20, "n_draws": 10, "n_chains": 2, "random_state": 1}
    facts = json.loads(factorize_command(tmp_path / "released.npz", json=True, out=tmp_path / "all.json", **how))
    assert facts["model"] == "PoissonDynamics"
    assert (facts["observed_cells"], facts["kept_draws"]) == (240, 10)
    written = json.loads((tmp_path / "all.json").read_text())["factors"]
    assert np.shape(written["transitions"]) == (2, 2)
    assert written["tau"] > 0
    deep = tmp_path / "deep.npz"
    privatize(np.ones((3, 2, 2), dtype=int), epsilon=1.0).save(deep)
    with pytest.raises(ValueError, match=r"must be a .json or .npz file for a tensor"):
        factorize_command(deep, out=tmp_path / "table.csv", **how)


# Real data.


def enron():
    """Return messages by month (of 1999-12 to 2002-03) and sender."""
    with gzip.open(DATA, "rt") as lines:
        rows = [row for row in csv.DictReader(lines) if "1999-12" <= row["month"] <= "2002-03"]
    months = sorted({row["month"] for row in rows})
    table = np.zeros((len(months), 1 + max(int(row["sender"]) for row in rows)), dtype=np.int64)
    for row in rows:
        table[months.index(row["month"]), int(row["sender"])] += int(row["messages"])
    return table


@pytest.mark.slow
@short
@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # mail varies more than Poisson counts do
@pytest.mark.skipif(not DATA.is_file(), reason="the data are not here")
def test_three_months_of_mail_are_forecast_better_than_by_the_month_before_or_the_naive_sum():
    """By the continuous ranked probability score, which of a forecast by one number is its absolute error."""
    counts, rng = enron(), np.random.default_rng(0)
    release = privatize(counts, epsilon=1.0, insecure_seed=1)
    past, future = release.values[:-3], counts[-3:]
    model = PoissonDynamics(20, n_warmup=500, n_draws=200, thin=2, n_chains=2, random_state=1)
    month = PoissonFactorization(1, n_warmup=500, n_draws=100, n_chains=1, random_state=1)
    means = {
        "month": month.fit(past[-1:], alpha=release.alpha).expected_counts_[-1],
        "naive sum": np.maximum(past, 0).mean(axis=0),
        "naive month": np.maximum(past[-1], 0),
    }
    draws = {name: rng.poisson(mean, (400, *future.shape)) for name, mean in means.items()}
    forecast = model.fit(past, alpha=release.alpha).forecast(3)
    draws["dynamics"] = forecast.draws.reshape(-1, *future.shape)
    errors = {}
    for name, paths in draws.items():
        ranked, number = np.sort(paths, axis=0), len(paths)
        weights = (2 * np.arange(1, number + 1) - number - 1)[:, None, None]
        errors[name] = (np.abs(ranked - future).mean(axis=0) - (weights * ranked).sum(axis=0) / number**2).mean()
    print(errors)
    assert errors["dynamics"] < 0.95 * min(error for name, error in errors.items() if name != "dynamics")
    # Of single guesses the median has the least absolute error; that of the mean is larger than the month before's.
    absolute = {"median": forecast.quantile(), "mean": forecast.mean} | means
    absolute = {name: np.abs(guess - future).mean() for name, guess in absolute.items()}
    print(absolute)
    assert absolute["median"] < 0.95 * absolute["month"]
