"""Groups with a common law that is learnt: densities against SciPy, posteriors against a grid, calibration."""

import math

import numpy as np
import pandas
import pytest
from scipy import special, stats
from tests.saved import reread

from quincunx import ldp, privacy
from quincunx.ldp.priors import Dirichlet, HalfNormal, LogNormal, Normal

BITS, KINDS = privacy.RandomizedResponse(1.0), privacy.GeneralizedRandomizedResponse(2.0, 3)
BOXED, POSITIVE = privacy.LaplaceMechanism(2.0, -5, 5), privacy.LaplaceMechanism(2.0, 0, 5)
WHOLE = privacy.GeometricMechanism(1.0, lower=0, upper=10)
FEW = {"n_chains": 2, "n_warmup": 300, "n_draws": 500, "random_state": 0}
X = np.random.default_rng(3).normal(1.0, 1.0, 60)
SIZES = {"b": 40, "a": 15, "c": 5}

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

# A model, its mechanism, what is private, and the link of its parameter with the name of its law.
SCALARS = {
    "normal": (ldp.GaussianModel, BOXED, X, "mu", "mu"),
    "exponential": (ldp.ExponentialModel, POSITIVE, X**2, "rate", "log_rate"),
    "Poisson": (ldp.PoissonModel, WHOLE, np.round(X**2).astype(int), "rate", "log_rate"),
    "geometric": (ldp.GeometricModel, WHOLE, np.round(X**2).astype(int), "probability", "logit_probability"),
    "bits": (ldp.BernoulliModel, BITS, (X > 0.5).astype(int), "probability", "logit_probability"),
}


def parts(mechanism, x):
    """Return what groups of different sizes release; users of one of them release in two ways, or as they are."""
    cuts = np.split(x, np.cumsum(list(SIZES.values())))
    told = {g: mechanism.release(cut, insecure_seed=i) for i, (g, cut) in enumerate(zip(SIZES, cuts, strict=False))}
    return told | {"b": [told["b"], x[:3]]}


@pytest.mark.parametrize("name", SCALARS)
def test_densities_of_groups_are_those_of_scipy(name):
    kind, mechanism, x, own, law = SCALARS[name]
    told = parts(mechanism, x)
    model = kind(priors={f"{law}_mean": Normal(0.3, 0.8), f"{law}_sd": HalfNormal(1.5)}, **FEW).fit(told)
    core = model._posterior.problem.core
    rng = np.random.default_rng(0)
    for _ in range(5):
        u = 0.7 * rng.normal(size=core.dimension)
        m, t, linked = u[0], math.exp(u[1]), u[0] + math.exp(u[1]) * u[2:5]
        values = {"mu": linked, "log_rate": np.exp(linked), "logit_probability": special.expit(linked)}[law]
        expected = stats.norm(0.3, 0.8).logpdf(m) + stats.halfnorm(scale=1.5).logpdf(t) + u[1]
        expected += stats.norm(m, t).logpdf(linked).sum() + 3 * u[1]  # d linked / d z = t
        other = {}
        if own == "mu":
            sigma = math.exp(u[5])
            other = {"sigma": sigma}
            expected += stats.gamma(2, scale=10 / 4).logpdf(sigma) + u[5]
        for g, value in zip("abc", values, strict=True):  # labels are sorted
            expected += kind().log_likelihood(told[g], **{own: value}, **other)
        offset = sum(group.offset for group in model._posterior.problem.groups)
        value, gradient = core.log_density(u)
        assert value + offset == pytest.approx(expected, rel=1e-11, abs=1e-10)
        slopes = [(core.log_density(u + h)[0] - core.log_density(u - h)[0]) / 2e-5 for h in 1e-5 * np.eye(u.size)]
        assert gradient == pytest.approx(np.array(slopes), rel=2e-6, abs=2e-6)
        natural = core.natural(u[None])[0]
        assert natural[2:5] == pytest.approx(values, rel=1e-13)
        assert core.coordinates(natural) == pytest.approx(u, abs=1e-9)
        whole = kind().log_likelihood(told, **{f"{law}_mean": m, f"{law}_sd": t, own: values}, **other)
        each = [kind().log_likelihood(told[g], **{own: v}, **other) for g, v in zip("abc", values, strict=True)]
        assert whole == pytest.approx(sum(each), rel=1e-12)


@pytest.mark.parametrize("spread", [0.3, 0.7])
def test_densities_of_shares_of_groups_are_those_of_scipy(spread):
    """Dirichlet laws in the coordinates of sticks, whose Jacobian is here found by differences."""
    x = np.random.default_rng(1).integers(0, 3, 60)
    priors = {"theta_mean": Dirichlet([4, 1, 2]), "theta_concentration": LogNormal(1.0, 0.7)}
    model = ldp.HistogramModel(priors=priors, categories=3, **FEW).fit(parts(KINDS, x))
    core = model._posterior.problem.core
    rng, kept = np.random.default_rng(2), [0, 1, 3, 4, 5, 7, 8, 10, 11]  # one share of each law follows from the others
    for _ in range(5):
        u = spread * rng.normal(size=core.dimension)
        u[2] += 2  # shares that differences can see
        natural = core.natural(u[None])[0]
        mean, strength, theta = natural[:3], natural[3], natural[4:].reshape(3, 3)
        assert theta.sum(axis=1) == pytest.approx(np.ones(3), rel=1e-13)
        step = 1e-5
        jacobian = [
            (core.natural((u + h)[None]) - core.natural((u - h)[None]))[0] / (2 * step) for h in step * np.eye(9)
        ]
        expected = np.linalg.slogdet(np.array(jacobian)[:, kept])[1]
        expected += stats.dirichlet([4, 1, 2]).logpdf(mean) + stats.lognorm(0.7, scale=math.e).logpdf(strength)
        expected += sum(stats.dirichlet(strength * mean).logpdf(each / each.sum()) for each in theta)
        for group in model._posterior.problem.groups:
            expected += group.likelihood().value(theta["abc".index(group.population)], False)[0]
        value, gradient = core.log_density(u)
        assert value == pytest.approx(expected, abs=1e-6)
        slopes = [(core.log_density(u + h)[0] - core.log_density(u - h)[0]) / (2 * step) for h in step * np.eye(9)]
        assert gradient == pytest.approx(np.array(slopes), rel=2e-6, abs=2e-6)
        assert core.coordinates(natural) == pytest.approx(u, abs=1e-9)


def test_the_posterior_of_groups_is_that_of_a_grid():
    """Integrals over the mean, the spread and each group's own number, one group after the other."""
    ones = {"a": (3, 20), "b": (14, 20), "c": (9, 10)}
    told = {g: [1] * k + [0] * (n - k) for g, (k, n) in ones.items()}
    model = ldp.BernoulliModel(BITS, n_draws=8000, random_state=0).fit(told)
    m, log_t = np.linspace(-6, 6, 241)[:, None, None], np.linspace(-9, 2.2, 221)[:, None]
    t, (z, weights) = np.exp(log_t), np.polynomial.hermite_e.hermegauss(60)
    p, keep = special.expit(m + t * z), BITS.noise.keep_probability
    logs = stats.norm(0, 1).logpdf(m[..., 0]) + (stats.halfnorm.logpdf(t) + log_t)[:, 0]
    first = {}
    for g, (k, n) in ones.items():
        one = keep * p + (1 - keep) * (1 - p)
        each = one**k * (1 - one) ** (n - k) * weights
        logs = logs + np.log(each.sum(axis=-1))
        first[g] = (each * p).sum(axis=-1) / each.sum(axis=-1)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    expected = {"logit_probability_mean": (mass * m[..., 0]).sum(), "logit_probability_sd": (mass * t[:, 0]).sum()}
    expected |= {f"probability[{g}]": (mass * first[g]).sum() for g in ones}
    for name, row in model.summary().items():
        # Five standard errors: 6e-7 for each, 3e-6 for all.
        assert abs(row["mean"] - expected[name]) < 5 * row["sd"] / math.sqrt(row["ess_bulk"]), name


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (ldp.BernoulliModel(BITS, **FEW), 100),
        (ldp.PoissonModel(WHOLE, **FEW), 100),
        (ldp.GeometricModel(WHOLE, **FEW), 50),
        (ldp.GaussianModel(BOXED, **FEW), 20),
        (ldp.ExponentialModel(POSITIVE, **FEW), 20),
        (ldp.HistogramModel(KINDS, **FEW), 100),
        (ldp.HistogramModel(privacy.UnaryEncoding(2.0, 3), data="counts", **FEW), 100),
    ],
    ids=str,
)
def test_posteriors_of_groups_are_calibrated(model, n):
    """Kolmogorov's distance over 60 simulated populations, at a false-alarm rate of 1e-6 for each model."""
    found = ldp.calibration(model, n_repeats=60, n=n, groups=3, rng=1)
    assert found.passed, found.distances


# Effective draws for a thousand gradients where coordinates were never centred: what no case may fall below.
NEVER_CENTRED = {
    ("bits", 3, 10, 0.03): 43.2,
    ("bits", 3, 300, 0.5): 7.4,
    ("bits", 3, 30_000, 0.03): 2.2,
    ("bits", 8, 10, 0.5): 66.5,
    ("bits", 8, 300, 0.03): 15.9,
    ("bits", 8, 30_000, 0.5): 2.3,
    ("bits", 40, 10, 0.03): 26.7,
    ("bits", 40, 30_000, 0.03): 1.3,
    ("bits", 40, 30_000, 0.5): 0.4,
    ("normal", 3, 10, 0.03): 0.5,
    ("normal", 3, 300, 0.5): 1.5,
    ("normal", 3, 30_000, 0.5): 0.2,
    ("normal", 8, 10, 0.03): 36.9,
    ("normal", 8, 30_000, 0.03): 0.6,
    ("normal", 40, 10, 0.5): 5.8,
    ("normal", 40, 300, 0.03): 9.5,
    ("normal", 40, 30_000, 0.03): 0.05,
}


@pytest.mark.parametrize(
    ("case", "before"),
    [
        pytest.param(case, before, id="-".join(map(str, case)), marks=[pytest.mark.slow] if case[1] == 40 else [])
        for case, before in NEVER_CENTRED.items()
    ],
)
def test_no_funnel_hinders_few_groups_or_many_of_few_users_or_many(case, before):
    """No divergences at the default `target_accept`, and more effective draws for each gradient."""
    kind, among, n, spread = case
    rng = np.random.default_rng([0, among, n, int(1000 * spread)])
    if kind == "bits":
        chances = special.expit(0.3 + spread * rng.normal(size=among))
        told = {g: BITS.release((rng.random(n) < p).astype(int), insecure_seed=g) for g, p in enumerate(chances)}
        model = ldp.BernoulliModel(random_state=0)
    else:
        told = {g: rng.normal(1 + spread * rng.normal(), 1, n) for g in range(among)}
        model = ldp.GaussianModel(random_state=0)
    posterior = model.fit(told)._posterior
    assert posterior.statistic("diverging").sum() == 0
    rows = model.summary().values()
    assert max(row["r_hat"] for row in rows) < 1.02
    assert min(row["ess_bulk"] for row in rows) / posterior.statistic("n_steps").sum() > before / 1000


@pytest.mark.parametrize(
    ("among", "n", "concentration", "before"),
    [
        (3, 10, 0.8, 6.6),
        (3, 10, 222, 19.7),
        (3, 300, 0.8, 1.2),
        (3, 300, 222, 11.3),
        (8, 10, 222, 13.2),
        (8, 300, 222, 9.1),
    ],
)
def test_no_funnel_hinders_shares(among, n, concentration, before):
    mechanism = privacy.GeneralizedRandomizedResponse(2.0, 4)
    rng = np.random.default_rng([0, among, n, {0.8: 500, 222: 30}[concentration]])
    law = concentration * np.array([0.4, 0.3, 0.2, 0.1])
    told = {g: mechanism.release(rng.choice(4, n, p=rng.dirichlet(law)), insecure_seed=g) for g in range(among)}
    # Of one fit by .16 to 28 of a thousand steps, by its seed, where the concentration is .8 and n 300: of four.
    found = []
    for seed in range(4):
        model = ldp.HistogramModel(random_state=seed)
        model._quiet = True
        model.fit(told)
        assert model._posterior.statistic("diverging").sum() == 0
        worst = min(row["ess_bulk"] for row in model.summary().values())
        found.append(worst / model._posterior.statistic("n_steps").sum())
    assert np.mean(found) > before / 1000


@pytest.mark.parametrize("name", ["exponential", "Poisson", "geometric", "normal"])
@pytest.mark.parametrize("n", [20, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_funnel_hinders_any_family(name, n):
    kind, mechanism, _, _, _ = SCALARS[name]
    rng = np.random.default_rng(n)
    draw = {"exponential": rng.exponential, "Poisson": rng.poisson, "geometric": rng.exponential, "normal": rng.normal}
    told = {
        g: mechanism.release(np.floor(x) if name == "geometric" else x, insecure_seed=g)
        for g in range(6)
        for x in [draw[name](np.exp(0.1 * rng.normal()), size=n)]
    }
    model = kind(random_state=0).fit(told)
    assert model._posterior.statistic("diverging").sum() == 0
    assert min(row["ess_bulk"] for row in model.summary().values()) > 1000


def test_a_wrong_law_is_seen():
    class Wrong(ldp.BernoulliModel):
        """Takes a third of the groups' spread for it."""

        def _blocks(self, groups):
            (block,) = super()._blocks(groups)
            return [block._replace(numbers=[*block.numbers[:3], 0.05])]

        def _simulate(self, rng, n, groups=0):
            return ldp.BernoulliModel(self.mechanism)._simulate(rng, n, groups)

    assert not ldp.calibration(Wrong(BITS, **FEW), n_repeats=60, n=200, groups=3, rng=1).passed


def test_groups_shrink_towards_what_they_have_in_common():
    """Small groups more, large ones less; whether that is nearer to the truth depends on the truth."""
    rng, mechanism = np.random.default_rng(5), privacy.LaplaceMechanism(4.0, -5, 5)
    sizes = np.array([30, 30, 30, 30, 30, 3000, 3000, 3000])
    truth = rng.normal(1.0, 0.5, sizes.size)
    told = {
        i: mechanism.release(rng.normal(mu, 1.0, n), insecure_seed=i)
        for i, (mu, n) in enumerate(zip(truth, sizes, strict=True))
    }
    pooled = ldp.GaussianModel(random_state=0).fit(told)
    alone = np.array([ldp.GaussianModel(random_state=0).fit(part).posterior_mean_["mu"] for part in told.values()])
    found, centre = pooled.posterior_mean_["mu"], pooled.posterior_mean_["mu_mean"]
    kept = np.abs(found - centre) / np.abs(alone - centre)
    assert kept[:5].max() < 1
    assert np.abs(kept[5:] - 1).max() < 0.1
    assert np.median(kept[:5]) < 0.8


def test_summaries_files_and_users_of_groups():
    x = (X > 0.5).astype(int)
    told = parts(BITS, x)
    model = ldp.BernoulliModel(**FEW).fit(told)
    summed = model.summarize(told, unsafe=True)
    assert summed.n == 63
    more = ldp.BernoulliModel(**FEW).partial_fit({"b": told["b"]}).partial_fit({g: told[g] for g in "ac"})
    for same in (ldp.BernoulliModel(**FEW).fit(summed), more):
        for u in np.random.default_rng(0).normal(size=(3, 5)):
            assert same.log_density(u)[0] == pytest.approx(model.log_density(u)[0], rel=1e-13)
    loaded = reread(model)
    assert loaded.summary() == model.summary()
    assert list(loaded.summary())[2:] == ["probability[a]", "probability[b]", "probability[c]"]
    tree = model.to_datatree()
    assert tree["posterior"]["probability"].coords["group"].values.tolist() == ["a", "b", "c"]
    each = model.log_likelihoods(told)
    assert each.shape == (2, 500, 63)
    draw = {name: draws[1, 7] for name, draws in model.draws_.items()}
    assert each[1, 7].sum() == pytest.approx(model.log_likelihood(told, **draw), rel=1e-12)
    with pytest.raises(ValueError, match="must be of the groups"):
        model.log_likelihoods({"d": told["a"]})


def test_labels_of_groups_and_of_categories_are_both_shown():
    words = privacy.UnaryEncoding(1.0, ["tea", "mate"])
    told = {g: words.release(["tea", "mate", "tea"], insecure_seed=i) for i, g in enumerate((2020, 2019))}
    model = ldp.HistogramModel(**FEW).fit(told)
    assert list(model.summary())[3:] == [f"theta[{g}, {c}]" for g in (2019, 2020) for c in ("tea", "mate")]
    assert model.to_datatree()["posterior"]["theta"].sizes == {"chain": 2, "draw": 500, "group": 2, "category": 2}
    sums = {g: np.array([5, 3]) for g in told}
    counts = ldp.HistogramModel(words, data="counts", **FEW)
    given = {"theta_mean": [0.5, 0.5], "theta_concentration": 3.0, "theta": [[0.4, 0.6], [0.7, 0.3]]}
    both = counts.log_likelihood(sums, n={2019: 6, 2020: 7}, **given)
    alone = [counts.log_likelihood(sums[2019], n=n, theta=t) for n, t in zip((6, 7), given["theta"], strict=True)]
    assert both == pytest.approx(sum(alone), rel=1e-12)


def share_of_b(theta):
    return ldp.HistogramModel(categories=["a", "b"]).log_likelihood(["a", "b", "b"], theta=theta)


def test_parameters_with_the_labels_of_the_model_are_read():
    labelled = pandas.Series([0.7, 0.3], index=["a", "b"])
    assert share_of_b(labelled) == share_of_b([0.7, 0.3]) == pytest.approx(math.log(0.7 * 0.3 * 0.3))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ldp.BernoulliModel().fit({}), "a group at the least"),
        (lambda: ldp.BernoulliModel().fit({1.5: [0, 1]}), "strings or whole numbers"),
        (lambda: ldp.BernoulliModel().fit({1: [0, 1], "1": [1]}), "differ as words, got .1, '1'."),
        (lambda: ldp.BernoulliModel(priors={"probability": "flat"}).fit([0, 1]), "must be one of quincunx.ldp.priors"),
        (lambda: ldp.BernoulliModel().fit({"a": {"b": [0, 1]}}), "groups within groups"),
        (lambda: ldp.TractableModel().fit({"a": [0.5]}), "one population"),
        (lambda: ldp.LinearRegression().fit({"a": X}, {"a": X}), "one population"),
        (lambda: ldp.GaussianModel(priors={"mu": Normal()}).fit({"a": [0.5]}), "must not have 'mu' for groups"),
        (lambda: ldp.GaussianModel(priors={"mu_sd": HalfNormal()}).fit([0.5]), "must not have 'mu_sd' for one group"),
        (lambda: ldp.HistogramModel(priors={"theta": Dirichlet()}).fit({"a": [0, 1]}), "must not have 'theta'"),
        (lambda: ldp.HistogramModel(priors={"theta": Dirichlet([1, 2])}).fit([0, 1, 2]), "each of 3 categories"),
        (lambda: ldp.GaussianModel(inference="quadrature").fit({"a": [0.5]}), "quadrature|one or two"),
        (lambda: ldp.calibration(ldp.TractableModel(), groups=2), "`groups` must be 0"),
        (lambda: Dirichlet([1, 0]), "positive"),
        (lambda: Dirichlet(pandas.Series([4, 1], index=["b", "a"])), "must have no labels"),
        (lambda: share_of_b(pandas.Series([0.3, 0.7], index=["b", "a"])), "`theta` must have the labels of the model"),
    ],
)
def test_what_groups_cannot_be_is_refused(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_labels_of_groups_may_be_those_that_numpy_finds():
    year = np.array([2019, 2020, 2020])
    one, other = ({label(year): [0, 1] for year in np.unique(year)} for label in (np.int64, int))
    given = {"logit_probability_mean": 0.1, "logit_probability_sd": 1.0, "probability": [0.4, 0.7]}
    assert ldp.BernoulliModel(BITS).log_likelihood(one, **given) == ldp.BernoulliModel(BITS).log_likelihood(
        other, **given
    )
    assert ldp.BernoulliModel(BITS).summarize(one) == ldp.BernoulliModel(BITS).summarize(other)


def test_a_summary_of_groups_and_one_without_are_not_one_population():
    model = ldp.BernoulliModel(BITS)
    both = model.summarize({"a": [0, 1]}) + model.summarize([1, 1])
    with pytest.raises(ValueError, match="groups throughout"):
        model.fit(both)


def test_asymmetric_and_log_normal_priors_have_conjugate_and_integrated_posteriors():
    shares = ldp.HistogramModel(priors={"theta": Dirichlet([4, 1, 1])}, **FEW).fit([0, 0, 1, 2])
    assert shares.posterior_mean_["theta"] == pytest.approx(np.array([6, 2, 2]) / 10, rel=1e-6)
    assert reread(shares).priors == shares.priors
    rates = ldp.PoissonModel(priors={"rate": LogNormal(0.5, 0.4)}).fit([3, 1, 2])
    log_rate = np.linspace(-3, 4, 4001)
    mass = np.exp(stats.norm(0.5, 0.4).logpdf(log_rate) + 6 * log_rate - 3 * np.exp(log_rate))
    assert rates.posterior_mean_["rate"] == pytest.approx((mass * np.exp(log_rate)).sum() / mass.sum(), rel=1e-8)
