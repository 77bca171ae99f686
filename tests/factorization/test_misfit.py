"""A fit says when its model does not fit, and is silent where the data are from the model."""

import json
import tracemalloc
import warnings

import numpy as np
import pytest
from tests.factorization.chains import enron

from quincunx import _core, cli
from quincunx.errors import MisfitWarning
from quincunx.factorization import PoissonBlockmodel, PoissonFactorization, PoissonTensorFactorization, _misfit
from quincunx.factorization._misfit import _ITERATIONS, _LEAST, _looked_at, _Noise
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

SHORT = {"n_chains": 2, "n_warmup": 100, "n_draws": 50, "thin": 2, "max_iter": 200, "tol": 1e-5, "random_state": 1}
RNG = np.random.default_rng(8)
COUNTS = RNG.poisson(RNG.gamma(0.5, 6.0, (25, 2)) @ RNG.gamma(0.5, 1.0, (2, 18)))
ALPHA = RNG.choice([0.0, 0.2, 0.6], COUNTS.shape)
RELEASED = COUNTS + RNG.geometric(1 - ALPHA) - RNG.geometric(1 - ALPHA)
MASK = RNG.random(COUNTS.shape) < 0.2


def dispersed(shape, seed=5):
    """Return counts whose mean is 5 and whose variance is 130."""
    return np.random.default_rng(seed).negative_binomial(0.2, 0.2 / 5.2, shape)


MODELS = {
    "matrix": (PoissonFactorization, (40, 30), {}),
    "directed": (PoissonBlockmodel, (35, 35), {}),
    "undirected": (PoissonBlockmodel, (50, 50), {"directed": False}),
    "tensor": (PoissonTensorFactorization, (12, 10, 10), {}),
}


# What the numbers are.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_sums_are_those_of_expected_counts_over_observed_cells(inference):
    model = PoissonFactorization(2, inference=inference, **SHORT | {"n_draws": 2}).fit(RELEASED, alpha=ALPHA, mask=MASK)
    found, expected = model.misfit_, np.where(MASK, 0.0, model.expected_counts_)
    variances = np.where(MASK, 0.0, 2 * ALPHA / (1 - ALPHA) ** 2)
    noise = np.where(MASK, 0.0, RELEASED) - expected
    assert found.released == RELEASED[~MASK].sum()
    # A chain's own total is that of drawn counts, and not of their means.
    assert found.expected == pytest.approx(
        expected.sum(), abs=5 * variances.sum() ** 0.5 if inference == "mcmc" else 1e-6
    )
    assert found.total == pytest.approx((found.released - found.expected) / variances.sum() ** 0.5)
    if inference == "vi":
        for axis, z in enumerate(found.margins):
            np.testing.assert_allclose(z, noise.sum(axis=1 - axis) / np.sqrt(variances.sum(axis=1 - axis)))
    assert [len(z) for z in found.margins] == [25, 18]
    assert found.complaint is None
    assert found.beyond == (0.0, 0.0)


def test_margins_of_chains_are_means_over_a_few_draws():
    model = PoissonFactorization(2, **SHORT | {"n_chains": 1, "n_draws": 2}).fit(RELEASED, alpha=0.6)
    noise = RELEASED - model.expected_counts_  # of two draws, all of which are looked at
    for axis, z in enumerate(model.misfit_.margins):
        np.testing.assert_allclose(z, noise.sum(axis=1 - axis) / np.sqrt(RELEASED.shape[1 - axis] * 2 * 0.6) * 0.4)


def test_the_tail_of_sums_of_noise_is_bernsteins():
    for epsilon in np.concatenate([np.logspace(-6, 0, 50), np.linspace(1, 30, 60)]):
        variance, c = 0.5 / np.sinh(epsilon / 2) ** 2, max(1 / 3, 1 / epsilon)
        t = np.linspace(1e-3, 1 - 1e-6, 2000) / c
        alpha = np.exp(-epsilon)  # log E exp(t noise), from the generating function of the geometric law
        logs = 2 * np.log1p(-alpha) - np.log1p(-np.exp(t - epsilon)) - np.log1p(-np.exp(-t - epsilon))
        assert (logs <= variance * t**2 / 2 / (1 - c * t) * (1 + 1e-5) + 1e-9).all()
    # One cell is off where a law with its tails is, and many are off beyond six standard deviations.
    limit = _Noise(np.linspace(0, 2000, 200_001), np.full(200_001, 2.0 * 100), 1.0)
    first = limit.seen[limit.off][0]
    assert first == pytest.approx(18 + (18**2 + 36 * 200) ** 0.5, abs=0.02)
    assert not _Noise(np.array([1e9]), np.zeros(1), 1.0).off.any()


def test_the_numbers_do_not_depend_on_threads_and_survive_a_file(tmp_path):
    one = PoissonFactorization(2, threads=1, **SHORT).fit(RELEASED, alpha=ALPHA)
    two = PoissonFactorization(2, threads=2, **SHORT).fit(RELEASED, alpha=ALPHA)
    one.save(tmp_path / "model.npz")
    loaded = PoissonFactorization.load(tmp_path / "model.npz")
    assert one.misfit_.summary() == two.misfit_.summary() == loaded.misfit_.summary()
    assert repr(one.misfit_).startswith("Misfit(released=")
    assert "dispersion" in one.misfit_._repr_html_()


def test_of_many_cells_some_are_looked_at(monkeypatch):
    whole = PoissonFactorization(2, **SHORT).fit(RELEASED, alpha=ALPHA, mask=MASK).misfit_
    monkeypatch.setattr("quincunx.factorization._misfit._CELLS", 300)
    some = PoissonFactorization(2, **SHORT).fit(RELEASED, alpha=ALPHA, mask=MASK).misfit_
    assert some.total == whole.total
    np.testing.assert_array_equal(some.margins[0], whole.margins[0])
    assert some.dispersion != whole.dispersion


IN_ROWS = {name: (model, shape, how) for name, (model, shape, how) in MODELS.items()} | {
    "rows": (PoissonFactorization, (40, 30), {"likelihood": "negative_binomial", "dispersion": "row"}),
    "columns": (PoissonFactorization, (40, 30), {"likelihood": "negative_binomial", "dispersion": "column"}),
    "tucker": (PoissonTensorFactorization, (12, 10, 10), {"core": "dense"}),
}


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("name", IN_ROWS)
def test_a_few_rows_at_a_time_say_what_all_rows_say(name, inference, monkeypatch):
    model, shape, how = IN_ROWS[name]
    alpha = np.random.default_rng(2).choice([0.0, 0.3], shape)
    mask = np.random.default_rng(3).random(shape) < 0.1
    short = SHORT | {"n_warmup": 10, "n_draws": 6, "max_iter": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(2, inference=inference, **short, **how).fit(dispersed(shape), alpha=alpha, mask=mask)
    whole = fitted.misfit_
    monkeypatch.setattr(_misfit, "_BLOCK", 7 * shape[-1] + 1)
    monkeypatch.setattr(fitted, "_misfit", None)
    parts = fitted.misfit_
    assert parts is not whole
    np.testing.assert_allclose(list(parts.summary().values()), list(whole.summary().values()), rtol=1e-12, atol=1e-12)
    for one, other in zip(parts.margins, whole.margins, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_a_check_of_many_cells_takes_less_than_two_bytes_for_each(inference, monkeypatch):
    monkeypatch.setattr(_misfit, "_BLOCK", 1 << 16)
    monkeypatch.setattr(_misfit, "_CELLS", 1 << 14)
    rows, cols = 6000, 1000
    released = np.broadcast_to(np.arange(100, dtype=np.int8) % 3, (rows * cols // 100, 100)).reshape(rows, cols)
    short = {"n_chains": 1, "n_warmup": 1, "n_draws": 1, "thin": 1, "max_iter": 1, "random_state": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PoissonFactorization(1, inference=inference, **short).fit(released, alpha=0.3)
    fitted._misfit = None
    tracemalloc.start()
    assert fitted.misfit_.released == released.sum()
    _, peak = tracemalloc.get_traced_memory()  # of arrays of NumPy, and of what the core returns
    tracemalloc.stop()
    assert peak < 2 * released.size, f"{peak / released.size:.2f} bytes for each cell"


def test_an_ascent_has_a_share_of_its_cells_looked_at_by_its_iterations():
    data = PoissonFactorization(2)._data(RELEASED.repeat(40, axis=0), ALPHA.repeat(40, axis=0), None, reset=True)
    size = data.values.size
    sizes = [len(_looked_at(data, iterations / _ITERATIONS)) for iterations in (1, _ITERATIONS // 2, _ITERATIONS)]
    # Of n places chosen as often, 1 - 1/e are; all of them where that is wanted.
    np.testing.assert_allclose(sizes, [size * -np.expm1(-n / size) for n in (_LEAST, size / 2)] + [size], rtol=0.03)
    held_out = np.zeros(data.shape, dtype=bool)
    held_out[:, 3] = True
    masked = PoissonFactorization(2)._data(data.values, data.alpha, held_out, reset=True)
    cells = _looked_at(masked, 0.5)
    assert not held_out.reshape(-1)[cells].any()
    assert (np.diff(cells) > 0).all()


@pytest.mark.parametrize("observed", [200, 4500, 6000])
def test_where_most_cells_are_held_out_the_others_are_looked_at(observed):
    held_out = np.ones((400, 400), dtype=bool)
    held_out.reshape(-1)[np.random.default_rng(1).permutation(held_out.size)[:observed]] = False
    cells = _looked_at(PoissonFactorization(2)._data(np.ones_like(held_out), 0.3, held_out, reset=True), 0.02)
    wanted = observed if observed <= _LEAST else observed * -np.expm1(-_LEAST / observed)
    assert len(cells) == pytest.approx(wanted, rel=0.03)
    assert (np.diff(cells) > 0).all()
    assert not held_out.reshape(-1)[cells].any()


def test_every_chain_is_looked_at():
    posterior = PoissonFactorization(2, **SHORT | {"n_chains": 4}).fit(RELEASED, alpha=ALPHA)._posterior
    first = [state[0] for state, _ in posterior.far_apart(6)]
    for draws in posterior.draws()["embedding"]:
        assert any((one == draw).all() for one in first for draw in draws)


def test_noise_drawn_anew_may_be_beyond_what_a_release_can_be():
    model = PoissonFactorization(1, **SHORT).fit(RELEASED, alpha=1 - 2**-53)
    assert model.misfit_.released == RELEASED.sum()


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_nothing_is_said_of_noise_that_is_not_there(inference):
    found = PoissonFactorization(2, inference=inference, **SHORT).fit(COUNTS).misfit_
    assert found.released == found.expected == COUNTS.sum()
    assert np.isnan([found.total, found.top]).all()
    assert all(np.isnan(z).all() for z in found.margins)
    assert 0.5 < found.dispersion < 1.5
    nothing = PoissonFactorization(2, inference=inference, **SHORT).fit(np.zeros((3, 4), dtype=int))
    assert nothing.misfit_.complaint is None
    masked = PoissonFactorization(2, inference=inference, **SHORT).fit(
        COUNTS, alpha=0.3, mask=np.ones(COUNTS.shape, bool)
    )
    assert masked.misfit_.complaint is None


# What is warned of.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, None])
def test_counts_that_vary_more_than_poisson_are_warned_of(name, epsilon, inference):
    model, shape, how = MODELS[name]
    counts = dispersed(shape)
    released = counts if epsilon is None else privatize(counts, epsilon=epsilon, insecure_seed=2).values
    alpha = None if epsilon is None else np.exp(-epsilon)
    with pytest.warns(MisfitWarning, match=r"the model does not fit: .*counts vary more than it allows") as caught:
        fitted = model(2, inference=inference, **SHORT, **how).fit(released, alpha=alpha)
    assert caught[0].filename == __file__
    found = fitted.misfit_
    assert found.dispersion > 2
    assert found.log_likelihood < -6
    if epsilon is not None:
        assert found.top > 6
        assert "largest of" in found.complaint
    else:
        assert "squared distances from the rates" in found.complaint


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")
def test_the_ratio_of_a_cell_held_out_excuses_no_misfit():
    released = privatize(dispersed((40, 30)), epsilon=1.0, insecure_seed=2).values
    mask = np.arange(1200).reshape(40, 30) == 7
    model = PoissonFactorization(2, inference="vi", **SHORT)
    found = [model.fit(released, alpha=np.where(mask, a, np.exp(-1)), mask=mask).misfit_ for a in (0.1, 1 - 1e-9)]
    assert found[0].beyond[0] > 0
    assert found[0].complaint == found[1].complaint


@pytest.mark.filterwarnings("error::quincunx.errors.MisfitWarning")
@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("name", ["matrix", "directed"])
def test_a_model_that_allows_such_counts_is_not_warned_of(name, inference):
    model, shape, how = MODELS[name]
    release = privatize(dispersed(shape), epsilon=1.0, insecure_seed=2)
    how = SHORT | how | {"likelihood": "negative_binomial", "n_warmup": 400}
    found = [model(1, inference=inference, **how | {"random_state": seed}).fit(release).misfit_ for seed in range(1, 5)]
    assert [each.complaint for each in found] == [None] * 4
    # Squares of releases drawn from a fit have long tails: one of sixty chains had .26, and .59 was the mean.
    assert 0.3 < np.mean([each.dispersion for each in found]) < 2


def test_a_warning_names_rows_and_what_to_do():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dispersed((40, 30)), index=[f"row {i}" for i in range(40)])
    model = PoissonFactorization(1, **SHORT)
    with pytest.warns(MisfitWarning, match=r"of 40 sums along axis 0 are off, most at 'row ") as caught:
        model.fit(privatize(frame, epsilon=1.0, insecure_seed=2))
    z = np.abs(model.misfit_.margins[0])
    assert any(f"most at 'row {z.argmax()}' by {z.max():.0f} " in str(warning.message) for warning in caught)
    assert any('`likelihood="negative_binomial"`' in str(warning.message) for warning in caught)
    assert "negative_binomial" not in model.set_params(likelihood="negative_binomial")._remedy()


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 50), (0.25, 15)])
def test_a_network_of_mails_is_warned_of(epsilon, least):
    model = PoissonBlockmodel(5, n_warmup=300, n_draws=50, n_chains=1, random_state=0)
    with pytest.warns(MisfitWarning, match=r"standard deviations of the noise; in the 242 largest of 24180 releases"):
        model.fit(privatize(enron(), epsilon=epsilon, insecure_seed=1))
    assert model.misfit_.total > least
    assert model.misfit_.top > least
    assert max(model.misfit_.beyond) > 0.01


def drawn(case, rng):
    """Return a model, data drawn from it, and their rates: one of many kinds by its number."""
    shape, rate = [(0.1, 1.0), (0.3, 0.3), (2.0, 1.0)][case % 3]

    def gammas(*size):
        return rng.gamma(shape, 1 / rate, size)

    kind, epsilon = case % 4, [0.1, 0.25, 1.0, 4.0][case // 4 % 4]
    how = {"prior_shape": shape, "prior_rate": rate}
    if kind == 0:
        model, rates = PoissonFactorization(2, **how), gammas(20, 2) @ gammas(2, 15)
    elif kind == 1:
        tables = gammas(8, 2), gammas(7, 2), gammas(6, 2)
        model, rates = PoissonTensorFactorization(2, **how), np.einsum("ik,jk,lk->ijl", *tables)
    else:
        people, blocks = gammas(20, 2), gammas(2, 2)
        model = PoissonBlockmodel(2, directed=kind == 2, **how)
        blocks = blocks if kind == 2 else np.triu(blocks) + np.triu(blocks, 1).T
        rates = people @ blocks @ people.T
    noise = case // 16 % 4
    alpha = np.full(rates.shape, 0.0 if noise == 2 else np.exp(-epsilon))
    if noise == 1:
        alpha = rng.choice([0.0, 0.3, np.exp(-epsilon)], rates.shape)
    released = rng.poisson(rates) + rng.geometric(1 - alpha) - rng.geometric(1 - alpha)
    mask = rng.random(rates.shape) < 0.2 if noise == 3 else None
    return model, {"released": released, "alpha": alpha, "mask": mask}, rates


@pytest.mark.statistical
def test_data_from_the_model_are_not_warned_of():
    # Of each sum 3e-8 are off by chance: 6e-6 of the totals, and 2e-4 of all margins, of these 192 fits.
    rng = np.random.default_rng(11)
    totals, missed = [], 0
    for case in range(192):
        model, data, rates = drawn(case, rng)
        model.set_params(n_chains=1, n_warmup=400, n_draws=50, random_state=case)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(**data)
        posterior = model._posterior
        if any(issubclass(warning.category, MisfitWarning) for warning in caught):
            # A chain may be caught far from the best of the model: a misfit, as the true rates are much likelier.
            truth = _core.log_likelihoods(posterior.problem.data.counts, rates.reshape(-1), 1).sum()
            assert posterior.best.log_likelihood.max() < truth - 30, (case, model.misfit_)
            missed += 1
        else:
            totals.append(model.misfit_.total)
    assert missed < 8
    assert np.nanmax(np.abs(totals)) < 5.3
    # What is expected of noise varies less than noise does.
    assert 0.05 < np.nanmean(np.square(totals)) < 1.5


# Releases drawn anew.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("name", MODELS)
def test_releases_of_a_model_that_fits_look_like_the_release(name, inference):
    model, shape, how = MODELS[name]
    release = privatize(np.random.default_rng(2).poisson(4.0, shape), epsilon=1.0, insecure_seed=2)
    mask = np.random.default_rng(3).random(shape) < 0.1
    fitted = model(1, inference=inference, **SHORT, **how).fit(release, mask=mask)
    check = fitted.check_predictive(n_draws=200)
    observed = release.values[fitted._posterior.problem.data.observed]
    assert check.observed["total"] == observed.sum()
    assert check.observed["zeros"] == pytest.approx((observed == 0).mean())
    assert check.observed["max"] == observed.max()
    assert 0.7 < check.observed["dispersion"] < 1.3
    assert all(values.shape == (200,) for values in check.replicated.values())
    assert all(0.005 < p < 0.995 for p in check.p_values.values()), check
    again = fitted.check_predictive(n_draws=200)
    np.testing.assert_array_equal(check.replicated["total"], again.replicated["total"])
    assert repr(check).startswith("PredictiveCheck(total=")
    assert "max" in check._repr_html_()


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")
def test_releases_of_a_model_that_does_not_fit_look_otherwise():
    fitted = PoissonFactorization(2, **SHORT).fit(privatize(dispersed((40, 30)), epsilon=1.0, insecure_seed=2))
    check = fitted.check_predictive(("dispersion", "total"), n_draws=500)  # more than there are draws
    assert list(check.p_values) == ["dispersion", "total"]
    assert check.p_values["dispersion"] == 0.0
    assert check.observed["dispersion"] > 2


def test_a_replicate_is_that_of_the_tree():
    model = PoissonFactorization(2, **SHORT | {"n_chains": 1, "n_draws": 20}).fit(RELEASED, alpha=ALPHA)
    tree = model.to_datatree(posterior_predictive=True)
    check = model.check_predictive(["total"], n_draws=20)
    np.testing.assert_array_equal(
        check.replicated["total"], tree["posterior_predictive"]["released"].sum(axis=(0, 2, 3))[:]
    )


def test_a_predictive_check_refuses_what_it_cannot_do():
    model = PoissonFactorization(2, **SHORT)
    with pytest.raises(ValueError, match="not fitted"):
        model.check_predictive()
    with pytest.raises(AttributeError, match="not fitted"):
        _ = model.misfit_
    model.fit(RELEASED, alpha=ALPHA)
    with pytest.raises(ValueError, match=r"`statistics` must be one of .*'total'.*, got 'mean'"):
        model.check_predictive(["mean"])
    with pytest.raises(TypeError, match="`statistics` must be a sequence of names, got 'total'"):
        model.check_predictive("total")
    with pytest.raises(TypeError, match="`statistics` must be a sequence of names, got None"):
        model.check_predictive(None)
    with pytest.raises(ValueError, match="`n_draws` must be at least 1, got 0"):
        model.check_predictive(n_draws=0)
    model.fit(RELEASED, alpha=ALPHA, mask=np.ones(RELEASED.shape, bool))
    with pytest.raises(ValueError, match="`mask` must leave a cell at least, got all held out"):
        model.check_predictive()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rates_that_underflow_are_no_distance_from_zeros():
    model = PoissonFactorization(1, prior_shape=1e-6, inference="vi", **SHORT).fit(np.zeros((3, 4), dtype=int))
    assert set(model.check_predictive(n_draws=20).p_values.values()) == {0.5}


def test_a_picture_of_a_predictive_check():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = PoissonFactorization(2, **SHORT).fit(RELEASED, alpha=ALPHA)
    axes = model.plot_predictive_check(n_draws=20)
    assert [axis.get_xlabel() for axis in axes] == ["total", "zeros", "max", "dispersion"]
    assert all(axis.get_title().startswith("p = ") and len(axis.lines) == 1 for axis in axes)
    (own,) = pyplot.subplots(1, 1, squeeze=False)[1].ravel()
    assert model.plot_predictive_check([own], statistics=["max"], n_draws=20) == [own]
    with pytest.raises(ValueError, match="`ax` must hold 4 axes"):
        model.plot_predictive_check([own], n_draws=20)


# The command line.


@pytest.mark.parametrize("counts", [np.full((12, 10), 7), dispersed((12, 10))], ids=["fits", "does not"])
def test_the_command_line_prints_the_check_and_the_warning(tmp_path, capsys, counts):
    file = tmp_path / "released.npz"
    privatize(counts, epsilon=1.0, insecure_seed=1).save(file)
    command = ["factorize", str(file), "--components", "2", "--inference", "vi", "--iterations", "2000", "--seed", "1"]
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    (line,) = [line for line in out.splitlines() if line.startswith("misfit")]
    assert ("the model does not fit" in err) == (counts.max() > 7)
    assert cli.main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["misfit"]
    assert f"total {facts['total']:.6g}, top {facts['top']:.6g}" in line
    assert list(facts)[-2:] == ["dispersion", "log_likelihood"]


def test_counts_of_cells_held_out_are_not_taken_for_released_ones():
    """Where a model draws them with the others, the counts of a sweep are more than those that are compared."""
    counts = np.random.default_rng(3).poisson(6.0, (20, 12))
    mask = np.random.default_rng(4).random(counts.shape) < 0.4
    release = privatize(counts, epsilon=1.0, insecure_seed=1)
    how = {"topics": "dirichlet", "n_warmup": 200, "n_draws": 50, "thin": 1, "n_chains": 1, "random_state": 0}
    found = PoissonFactorization(1, **how).fit(release, mask=mask).misfit_
    assert found.released == release.values[~mask].sum()
    assert abs(found.total) < 6
