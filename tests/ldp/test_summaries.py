"""Summaries of reports: the same whole numbers however users are divided, and the likelihood of all of them."""

import copy
import io
import itertools
import json
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.saved import reread

from quincunx import _core, ldp, privacy
from quincunx.ldp import Summary, _command, _groups, statistics

RNG = np.random.default_rng(20261123)
FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "max_depth": 4, "random_state": 0}
X = RNG.normal(size=(90, 2))
MOMENTS = statistics.linear(X, X @ [1.0, -0.5], x_bound=2.0, y_bound=2.0)
LABELS = statistics.logistic(X, (X[:, 0] > 0).astype(int), x_bound=2.0)
NORMAL = privacy.GaussianMechanism(sigma=0.7, sensitivity=1.0)

#: Models by name, with the arguments of `summarize` for 90 users, all of which are cut along their first axis; and
#: whether a fit to few reports goes by the summary or by a rule that agrees with it to the last bit.
CASES = {
    "randomized response": (
        ldp.BernoulliModel(privacy.RandomizedResponse(1.0), **FEW),
        (RNG.integers(0, 2, 90),),
        True,
    ),
    "generalized response": (
        ldp.HistogramModel(privacy.GeneralizedRandomizedResponse(1.0, 4), **FEW),
        (RNG.integers(0, 4, 90),),
        True,
    ),
    "labels": (
        ldp.HistogramModel(privacy.GeneralizedRandomizedResponse(1.0, ["tea", "coffee", "mate"]), **FEW),
        (np.array(["tea", "coffee", "mate"])[RNG.integers(0, 3, 90)],),
        True,
    ),
    "rows of bits": (ldp.HistogramModel(privacy.UnaryEncoding(1.0, 3), **FEW), (RNG.integers(0, 2, (90, 3)),), True),
    "many columns": (ldp.HistogramModel(privacy.UnaryEncoding(1.0, 70), **FEW), (RNG.integers(0, 2, (90, 70)),), True),
    "column sums": (
        ldp.HistogramModel(privacy.UnaryEncoding(1.0, 3), data="counts", **FEW),
        (RNG.integers(0, 2, (90, 3)),),
        True,
    ),
    "normal numbers": (ldp.GaussianModel(privacy.LaplaceMechanism(1.0, -5, 5), **FEW), (RNG.laplace(1, 5, 90),), False),
    "exponential numbers": (
        ldp.ExponentialModel(privacy.LaplaceMechanism(2.0, 0, 5), **FEW),
        (RNG.laplace(1, 5, 90),),
        False,
    ),
    "counts": (
        ldp.PoissonModel(privacy.GeometricMechanism(1.0, lower=0, upper=9), **FEW),
        (RNG.integers(-9, 20, 90).astype(float),),
        True,
    ),
    "counts with real noise": (
        ldp.PoissonModel(privacy.LaplaceMechanism(1.0, 0, 9), **FEW),
        (RNG.laplace(3, 5, 90),),
        False,
    ),
    "vectors": (ldp.MultivariateNormalModel(NORMAL, **FEW), (1e3 + X,), True),
    "records": (
        ldp.LinearRegression((NORMAL, NORMAL), **FEW),
        (X, X @ [1.0, -0.5] + RNG.normal(size=90)),
        False,
    ),
    "records with an intercept": (
        ldp.LinearRegression((NORMAL, NORMAL), fit_intercept=True, **FEW),
        (X, X @ [1.0, -0.5] + RNG.normal(size=90)),
        False,
    ),
    "moments": (
        ldp.LinearRegression(NORMAL, kind="statistics", **FEW),
        (MOMENTS + 0.7 * RNG.normal(size=MOMENTS.shape),),
        True,
    ),
    "moments of labels": (
        ldp.LogisticRegression(NORMAL, kind="statistics", **FEW),
        (LABELS + 0.7 * RNG.normal(size=LABELS.shape),),
        True,
    ),
}
#: The same without noise, which is secret.
RAW = {
    "normal numbers": (ldp.GaussianModel(**FEW), (RNG.normal(size=90) * 1e6,)),
    "exponential numbers": (ldp.ExponentialModel(**FEW), (RNG.exponential(size=90),)),
    "counts": (ldp.PoissonModel(**FEW), (RNG.poisson(4, 90),)),
    "geometric counts": (ldp.GeometricModel(**FEW), (RNG.geometric(0.3, 90) - 1,)),
    "bits": (ldp.BernoulliModel(**FEW), (RNG.integers(0, 2, 90),)),
    "categories": (ldp.HistogramModel(categories=3, **FEW), (RNG.integers(0, 3, 90),)),
    "vectors": (ldp.MultivariateNormalModel(**FEW), (X,)),
    "records": (ldp.LinearRegression(**FEW), (X, X[:, 0])),
}
EVERY = {**{name: case[:2] for name, case in CASES.items()}, **{f"raw {name}": case for name, case in RAW.items()}}


def parts_of(arguments, cuts):
    """Return the arguments of the parts of users, cut at places."""
    places = [0, *sorted(cuts), len(arguments[0])]
    return [tuple(each[i:j] for each in arguments) for i, j in itertools.pairwise(places)]


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 90), max_size=6), random=st.randoms())
def test_any_division_in_any_order_has_the_summary_of_the_whole(name, cuts, random):
    model, arguments = EVERY[name]
    whole = model.summarize(*arguments)
    parts = [model.summarize(*part) for part in parts_of(arguments, cuts)]  # some of them empty
    random.shuffle(parts)
    assert sum(parts) == whole
    first, *rest = parts
    assert (sum(rest) + first if rest else first) == whole
    assert whole.n == 90


@pytest.mark.parametrize("name", EVERY)
def test_users_one_by_one_have_the_summary_of_the_whole(name):
    model, arguments = EVERY[name]
    ones = parts_of(arguments, range(1, 90))
    assert len(ones) == 90
    assert Summary.from_parts(ones, model) == model.summarize(*arguments)


@pytest.mark.parametrize("name", [name for name, (_, arguments, _) in CASES.items() if len(arguments) == 1])
def test_a_release_a_series_or_groups_are_one_part_with_its_noise(name):
    model, (reports,), _ = CASES[name]
    release = privacy.Release(reports, model.mechanism.guarantee, noise=model.mechanism.noise)
    bare = type(model)(**{key: value for key, value in model.get_params().items() if key != "mechanism"})
    parts = [release, *([pandas.Series(reports)] if reports.ndim == 1 else [])]
    for part in parts:
        assert Summary.from_parts(part, model) == Summary.from_parts([part], model) == model.summarize(reports)
    assert Summary.from_parts(release, bare) == model.summarize(reports)
    if bare._with_populations:
        groups = {0: release[:40], 1: release[40:]}
        assert Summary.from_parts(groups, bare) == bare.summarize(groups)


def draws(model):
    return [array for _, array in sorted(model.draws_.items())]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_a_fit_to_a_summary_is_the_fit_to_the_reports(name):
    model, arguments, same = CASES[name]
    one, other = copy.deepcopy(model).fit(*arguments), copy.deepcopy(model).fit(model.summarize(*arguments))
    for a, b in zip(draws(one), draws(other), strict=True):
        assert np.array_equal(a, b) if same else np.allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore")
def test_fits_to_parts_in_any_way_have_the_bits_of_the_fit_to_their_sum(name):
    model, arguments = EVERY[name]
    first, second, third = parts_of(arguments, [30, 31])
    whole = copy.deepcopy(model).fit(model.summarize(*arguments))
    listed = copy.deepcopy(model)
    listed.fit([sum(model.summarize(*part) for part in (third, first, second))])
    streamed = copy.deepcopy(model)
    for part in (first, second, third):
        streamed.partial_fit(*part)
    for a, b, c in zip(draws(whole), draws(listed), draws(streamed), strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_goes_on_from_reports_from_a_file_and_anew():
    model, (reports,), _ = CASES["counts"]
    whole = copy.deepcopy(model).fit(model.summarize(reports))
    one = copy.deepcopy(model).fit(reports[:40])
    for fitted in (one, reread(one)):
        assert fitted.partial_fit(reports[40:]).posterior_mean_ == whole.posterior_mean_
    one.fit(reports[:10]).partial_fit(reports[10:])  # `fit` begins anew
    assert one.posterior_mean_ == whole.posterior_mean_
    refused = ldp.LinearRegression(NORMAL, kind="statistics", **FEW).fit(MOMENTS)
    with pytest.raises(ValueError, match="moments of a fit, which are rounded"):
        refused.partial_fit(MOMENTS)


def interrupted(model, call):
    """Let a call of a model be interrupted when some draws are kept."""

    def stop(done, total):
        if done > 0.8 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(model.set_params(progress=stop))
    return model.set_params(progress=False)


@pytest.mark.filterwarnings("ignore")
def test_an_interrupted_chunk_is_counted_once_when_it_is_given_again():
    mechanism, codes = privacy.UnaryEncoding(1.0, 6), np.arange(600) % 6
    reports = [mechanism.release(codes[:number], insecure_seed=number) for number in (100, 200, 300)]
    how = {"n_chains": 1, "n_warmup": 20, "n_draws": 200, "max_depth": 4, "random_state": 0}
    whole = ldp.HistogramModel(**how).partial_fit(reports[0]).partial_fit(reports[1])
    for begun in ("partial_fit", "fit"):
        model = getattr(ldp.HistogramModel(**how), begun)(reports[0])
        for _ in range(2):
            interrupted(model, lambda model: model.partial_fit(reports[1]))
        assert np.array_equal(model.partial_fit(reports[1]).draws_["theta"], whole.draws_["theta"])
    model = interrupted(ldp.HistogramModel(**how), lambda model: model.partial_fit(reports[0]))
    model.partial_fit(reports[0]).partial_fit(reports[1])
    assert np.array_equal(model.draws_["theta"], whole.draws_["theta"])
    model = ldp.HistogramModel(**how).partial_fit(reports[2])
    interrupted(model, lambda model: model.fit(reports[0])).partial_fit(reports[1])  # the users of the last fit
    assert np.array_equal(model.draws_["theta"], whole.draws_["theta"])


@pytest.mark.filterwarnings("ignore")
def test_summaries_stand_beside_releases():
    mechanism, other = privacy.LaplaceMechanism(1.0, -5, 5), privacy.LaplaceMechanism(0.5, -5, 5)
    one, two = (each.release(RNG.normal(size=50), insecure_seed=1) for each in (mechanism, other))
    model = ldp.GaussianModel()
    both = model.summarize([one, two])
    assert both == model.summarize(one) + model.summarize(two)
    assert len(both.parts) == 2
    means = [
        model.fit(released).posterior_mean_["mu"]
        for released in ([one, two], [model.summarize(one), two], both, [both], [both, model.summarize(two[:0])])
    ]
    assert means == pytest.approx([means[0]] * 5, rel=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_summaries_come_back_from_files_and_pickles(name, tmp_path):
    model, arguments = EVERY[name]
    summary = model.summarize(*arguments, unsafe=True)
    assert pickle.loads(pickle.dumps(summary)) == summary
    summary.save(tmp_path / "summary.npz", unsafe=True)
    back = Summary.load(tmp_path / "summary.npz")
    assert back == summary
    assert back + summary == summary + summary
    assert copy.copy(summary) is copy.deepcopy(summary) is summary


@pytest.mark.parametrize("name", EVERY)
def test_only_summaries_of_reports_leave_the_process_unasked(name, tmp_path):
    model, arguments = EVERY[name]
    summary = model.summarize(*arguments)
    assert summary.is_protected is not name.startswith("raw")
    if summary.is_protected:
        assert pickle.loads(pickle.dumps(summary)) == summary
        summary.save(tmp_path / "summary.npz")
        assert Summary.load(tmp_path / "summary.npz") == summary
        return
    with pytest.raises(ValueError, match="must not be pickled"):
        pickle.dumps(summary)
    with pytest.raises(ValueError, match="must not be saved"):
        summary.save(tmp_path / "summary.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "most"), [("randomized response", 16), ("generalized response", 32), ("column sums", 32)]
)
def test_summaries_of_counts_have_eight_bytes_for_each_category(name, most):
    model, arguments = EVERY[name]
    assert model.summarize(*arguments).nbytes <= most
    assert len(pickle.dumps(model.summarize(*arguments))) < 400


def test_summaries_of_numbers_have_forty_bytes_for_each_cell():
    model, _ = EVERY["normal numbers"]
    summary = model.summarize(RNG.uniform(-5, 5, 200_000))
    assert summary.nbytes < 40 * 2**14 + 1000


@pytest.mark.filterwarnings("ignore")
def test_many_reports_are_fitted_by_their_summary():
    mechanism = privacy.LaplaceMechanism(1.0, -5, 5)
    reports = np.clip(RNG.normal(1, 1.5, _groups.MANY), -5, 5) + RNG.laplace(0, mechanism.scale, _groups.MANY)
    model = ldp.GaussianModel(mechanism, random_state=0)
    one, other = model.fit(reports), ldp.GaussianModel(mechanism, random_state=0).fit(model.summarize(reports))
    assert np.array_equal(one.draws_["mu"], other.draws_["mu"])
    assert one.log_evidence_ == other.log_evidence_
    assert len(pickle.dumps(one._posterior.problem)) < 700_000


# What a summary keeps of the likelihood.


def of_all_and_of_cells(group, natural):
    return [each.likelihood().value(natural, True) for each in (group, group.summed())]


@pytest.mark.parametrize(("lower", "upper"), [(-5.0, 5.0), (0.0, 1e-3), (1e6, 1e6 + 7.0), (-3e4, 1e5)])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 10.0, 100.0])
@pytest.mark.parametrize(("place", "spread"), [(0.5, 0.15), (0.1, 1.0), (0.9, 0.01), (1.2, 0.3), (0.4, 0.001)])
def test_cells_have_the_likelihood_of_all_users(lower, upper, epsilon, place, spread):
    """The error is below 1e-12 of a nat for each of 20,000 users."""
    width = upper - lower
    scale, mu, sigma = width / epsilon, lower + place * width, spread * width
    rng = np.random.default_rng(3)
    z = np.clip(rng.normal(mu, sigma, 20_000), lower, upper) + rng.laplace(0, scale, 20_000)
    group = _groups.Rectified(z, "gaussian", (lower, upper), scale, True)
    natural = np.array([mu + 0.02 * sigma, 1.05 * sigma])
    (full, slope), (kept, kept_slope) = of_all_and_of_cells(group, natural)
    # Numbers far from 0 have their own rounding, which moves each user by a unit in the last place.
    rounded = 20_000 * epsilon * max(abs(lower), abs(upper)) / width * 2.0**-53
    assert kept == pytest.approx(full, rel=3e-13, abs=1e-8 + rounded)
    assert kept_slope * sigma == pytest.approx(slope * sigma, rel=1e-8, abs=2e-6)


@pytest.mark.parametrize(("upper", "epsilon"), [(5.0, 0.5), (1.0, 20.0), (40.0, 100.0)])
@pytest.mark.parametrize("times", [0.2, 1.0, 5.0])
def test_cells_have_the_likelihood_of_all_exponential_users(upper, epsilon, times):
    rng, scale, rate = np.random.default_rng(4), upper / epsilon, times / upper
    z = np.clip(rng.exponential(1 / rate, 20_000), 0, upper) + rng.laplace(0, scale, 20_000)
    group = _groups.Rectified(z, "exponential", (0.0, upper), scale, True)
    (full, slope), (kept, kept_slope) = of_all_and_of_cells(group, np.array([rate]))
    assert kept == pytest.approx(full, rel=3e-13, abs=1e-8)
    assert kept_slope * rate == pytest.approx(slope * rate, rel=1e-8, abs=1e-6)


@pytest.mark.parametrize("family", ["poisson", "geometric"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (0, 12), (3, 900), (0, 40_000)])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 60.0])
@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_cells_have_the_likelihood_of_all_counts(family, lower, upper, epsilon, noise):
    rng, decay = np.random.default_rng(5), epsilon / (upper - lower)
    x = np.clip(rng.poisson((lower + upper) / 3, 5000), lower, upper).astype(float)
    z = x + (rng.laplace(0, 1 / decay, 5000) if noise == "laplace" else rng.integers(-9, 9, 5000))
    group = _groups.Whole(z, family, noise, decay, (lower, upper), True)
    theta = np.array([(lower + upper) / 3 if family == "poisson" else 3 / (3 + lower + upper)])
    (full, slope), (kept, kept_slope) = of_all_and_of_cells(group, theta)
    if noise == "geometric":
        assert kept == pytest.approx(full, rel=1e-14)
    assert kept == pytest.approx(full, rel=3e-13, abs=1e-8)
    assert kept_slope * theta == pytest.approx(slope * theta, rel=1e-8, abs=1e-6)


@given(st.lists(st.floats(-40, 40), min_size=1, max_size=50))
def test_cells_count_as_fractions_do(values):
    """Moments by exact fractions of what the grid defines, within the roundings that it states."""
    below, above, beyond, index, moments = _core.ldp_cells(np.array(values), (-8.0, 8.0), 64)
    inside = [Fraction(z) for z in values if -8 < z < 8]
    assert below == sum(z <= -8 for z in values)
    assert above == sum(z >= 8 for z in values)
    assert Fraction(beyond, 2**2148) == sum(Fraction(z) if z > 0 else -Fraction(z) for z in values if abs(z) >= 8)
    places = [4 * (z + 8) for z in inside]
    assert moments[:, 0].sum() == len(inside)
    # Sums of t, t**2, t**3 over all cells; a value that is rounded into the next cell is at its other end.
    total = sum((Fraction(int(c)) + Fraction(1, 2)) * int(n) for c, n in zip(index, moments[:, 0], strict=True))
    assert abs(total + Fraction(int(moments[:, 1].sum()), 2**30) - sum(places)) <= Fraction(len(inside), 2**31)
    if not any(abs(place - round(place)) < 2**-30 for place in places):
        ts = [place - math.floor(place) - Fraction(1, 2) for place in places]
        for power, kept in ((2, moments[:, 2]), (3, moments[:, 3])):
            exact = sum(t**power for t in ts)
            assert abs(Fraction(int(kept.sum()), 2**30) - exact) <= Fraction(2 * len(ts), 2**30)


@given(st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e3, 1e3)), max_size=20))
def test_sums_are_those_of_fractions(rows):
    x = np.array(rows, dtype=float).reshape(-1, 2)
    exact = [[Fraction(value) for value in row] for row in rows]
    assert _groups.exact_sums(x) == [sum((row[i] for row in exact), Fraction()) for i in (0, 1)]
    products = [sum((row[i] * row[j] for row in exact), Fraction()) for i, j in ((0, 0), (0, 1), (1, 1))]
    assert _groups.exact_sums(x, products=True) == products


@pytest.mark.parametrize("name", RAW)
@pytest.mark.filterwarnings("ignore")
def test_sums_of_raw_data_have_their_likelihood(name):
    model, arguments = RAW[name]
    points = {
        "normal numbers": {"mu": 1e5, "sigma": 2e6},
        "exponential numbers": {"rate": 1.3},
        "counts": {"rate": 3.7},
        "geometric counts": {"probability": 0.3},
        "bits": {"probability": 0.3},
        "categories": {"theta": [0.2, 0.3, 0.5]},
        "vectors": {"mean": [0.2, -0.1], "covariance": [[1.5, 0.3], [0.3, 0.5]]},
        "records": {"coefficients": [0.5, 0.1], "residual_sd": 0.7, "covariance": np.eye(2)},
    }
    point = points[name]
    found = model.log_likelihood(model.summarize(*arguments), **point)
    assert found == pytest.approx(model.log_likelihood(*arguments, **point), rel=1e-12)


def test_many_numbers_are_sorted_in_pieces(monkeypatch):
    """So that interrupts are heard between them."""
    names = ("normal numbers", "counts", "records", "moments")
    whole = [EVERY[name][0].summarize(*EVERY[name][1]) for name in names]
    monkeypatch.setattr(_groups, "PIECE", 50)
    assert [EVERY[name][0].summarize(*EVERY[name][1]) for name in names] == whole


def test_a_summary_of_nobody_leaves_the_prior():
    model = ldp.GaussianModel(random_state=0).fit(Summary("GaussianModel"))
    assert model.posterior_mean_["mu"] == pytest.approx(0, abs=1e-6)
    assert model.posterior_sd_["mu"] == pytest.approx(10, rel=1e-3)


def test_sums_beyond_the_doubles_are_told():
    huge = ldp.LinearRegression(NORMAL, kind="statistics", **FEW)
    one = huge.summarize(np.full((1, 3), 1.7e308))
    assert (one + one).n == 2
    with pytest.raises((ValueError, ArithmeticError)), np.errstate(all="ignore"):
        huge.fit(one + one)


def test_progress_tells_parts_and_its_exception_ends_the_stream():
    model, arguments = EVERY["counts"]
    parts, heard = parts_of(arguments, [20, 60]), []
    Summary.from_parts(parts, model, progress=lambda *told: heard.append(told))
    assert heard == [(1, 3), (2, 3), (3, 3)]
    Summary.from_parts(iter(parts), model, progress=lambda *told: heard.append(told))  # nobody knows how many
    assert len(heard) == 3

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Summary.from_parts(parts, model, progress=stop)


# What is refused.


def test_models_without_sums_say_so():
    tractable = ldp.TractableModel(NORMAL)
    with pytest.raises(ValueError, match="no summary of numbers with normal noise"):
        tractable.summarize([0.2])
    logistic = ldp.LogisticRegression((NORMAL, privacy.RandomizedResponse(1.0)))
    with pytest.raises(ValueError, match=r'no summary of records of a logistic regression.*kind="statistics"'):
        logistic.summarize(X, np.ones(90, int))
    with pytest.raises(ValueError, match="a summary has no likelihood of one"):
        CASES["counts"][0].log_likelihoods(CASES["counts"][0].summarize([1.0]))


def test_summaries_of_other_models_are_refused():
    summary = CASES["normal numbers"][0].summarize([0.1])
    with pytest.raises(ValueError, match="must be for ExponentialModel, got one for GaussianModel"):
        ldp.ExponentialModel().fit(summary)
    with pytest.raises(ValueError, match="for one model"):
        summary + CASES["counts"][0].summarize([1.0])
    with pytest.raises(TypeError):
        summary + 3
    with pytest.raises(ValueError, match="`mechanism` must be None with a summary"):
        ldp.GaussianModel().fit(summary, mechanism=privacy.LaplaceMechanism(1.0, -5, 5))
    with pytest.raises(ValueError, match="fit_intercept"):
        ldp.LinearRegression(fit_intercept=True).fit(ldp.LinearRegression().summarize(X, X[:, 0]))
    with pytest.raises(TypeError, match="a method `summarize`"):
        Summary.from_parts([], object())
    with pytest.raises(TypeError, match="must be a stream"):
        Summary.from_parts(3, ldp.GaussianModel())
    many = Summary._of("BernoulliModel", [_groups.Bits(2.0**32, 0.0, 0.7)])
    with pytest.raises(ValueError, match="fewer than 2\\*\\*33 users"):
        many + many


def forged(summary, change):
    """Return a file of a summary whose header, or an array of which, was changed."""
    file = io.BytesIO()
    summary.save(file, unsafe=True)
    file.seek(0)
    with np.load(file) as arrays:
        found = dict(arrays)
    header = json.loads(str(found["summary"]))
    change(header, found)
    found["summary"] = np.array(json.dumps(header))
    file = io.BytesIO()
    np.savez(file, **found)
    file.seek(0)
    return file


def part(header):
    return header["parts"][0][1]


def moved(arrays, word, place, by):
    name = next(name for name in arrays if name.endswith(word))
    arrays[name][place] += by


FORGERIES = {
    "another format": ("counts", lambda h, a: h.update(format=2), "its format is 2"),
    "an unknown part": ("counts", lambda h, a: h["parts"][0].__setitem__(0, "spell"), "none of the imported rooms"),
    "a part that is no sum": ("counts", lambda h, a: h["parts"][0].__setitem__(0, "plain"), ""),
    "a negative count": ("randomized response", lambda h, a: part(h).update(ones=-1.0), "no users have"),
    "half a user": ("randomized response", lambda h, a: part(h).update(ones=1.5), "no users have"),
    "a count that is none": (
        "randomized response",
        lambda h, a: part(h).update(ones={"float": "nan"}),
        "no users have",
    ),
    "column sums above the users": ("column sums", lambda h, a: part(h).update(users=1.0), "no users have"),
    "bits that are none": ("rows of bits", lambda h, a: moved(a, "rows", (1, 0), 2), "no users have"),
    "rows in another order": (
        "rows of bits",
        lambda h, a: a.update({n: a[n][::-1] for n in a if n[-4:] == "rows"}),
        "",
    ),
    "a cell outside": ("normal numbers", lambda h, a: moved(a, "index", -1, 2**14), "no numbers have"),
    "a cell twice": ("normal numbers", lambda h, a: moved(a, "index", slice(0, 1), 10**6), "no numbers have"),
    "no number in a cell": ("normal numbers", lambda h, a: moved(a, "moments", (0, 0), -1), "no numbers have"),
    "a mean outside its cell": ("normal numbers", lambda h, a: moved(a, "moments", (0, 1), 2**30), "no numbers have"),
    "squares below the mean's": ("counts", lambda h, a: moved(a, "moments", (0, 2), -(2**28)), "no numbers have"),
    "nothing beyond": ("normal numbers", lambda h, a: part(h).update(beyond={"fraction": "0"}), "no numbers have"),
    "another number of cells": ("counts", lambda h, a: part(h).update(cells=1), "no numbers have"),
    "a scale below 0": ("normal numbers", lambda h, a: part(h).update(scale=-1.0), "must be positive"),
    "a probability above 1": ("randomized response", lambda h, a: part(h).update(keep=1.5), "no users have"),
    "a part twice": ("counts", lambda h, a: h["parts"].append(h["parts"][0]), "several parts of one law"),
    "fewer products": ("records", lambda h, a: part(h)["totals"]["tuple"].pop(), "no records have"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused(name):
    case, change, words = FORGERIES[name]
    model, arguments = EVERY[case]
    with pytest.raises(ValueError, match="must be a summary written by quincunx.*" + words):
        Summary.load(forged(model.summarize(*arguments), change))


def test_files_of_other_things_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a summary"):
        Summary.load(io.BytesIO(b"PK no archive"))
    copy.deepcopy(CASES["counts"][0]).fit([1.0]).save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="must be a summary"):
        Summary.load(tmp_path / "model.npz")


# Streams.


@pytest.mark.parametrize("name", ["normal numbers", "labels", "rows of bits", "records"])
def test_frames_are_summarized_by_columns(name):
    pandas = pytest.importorskip("pandas")
    model, arguments = EVERY[name]
    columns = [arguments[0]] if arguments[0].ndim == 1 else list(arguments[0].T)
    frame = pandas.DataFrame({f"c{i}": column for i, column in enumerate([*columns, *arguments[1:]])})
    target = frame.columns[-1] if len(arguments) == 2 else None
    whole = model.summarize(*arguments)
    parts = [frame[i : i + 20] for i in range(0, 90, 20)]
    assert Summary.from_parts(parts, model, target=target) == whole
    assert (
        Summary.from_parts(frame.assign(other=1), model, columns=list(frame.columns[: len(columns)]), target=target)
        == whole
    )
    with pytest.raises(ValueError, match=r"`columns` must be among the columns '.*', got 'none'"):
        Summary.from_parts(parts, model, columns="none")


def test_partitions_of_a_dask_frame_are_summarized_where_they_are():
    pandas, dask = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    model, (reports,) = EVERY["normal numbers"]
    frame = dask.from_pandas(pandas.DataFrame({"z": reports}), npartitions=11)
    assert Summary.from_parts(frame, model) == model.summarize(reports)
    model = ldp.HistogramModel(privacy.UnaryEncoding(1.0, 3))
    rows = np.random.default_rng(2).integers(0, 2, (60, 3))
    for chunks in ((7, 3), (20, 2)):
        array = pytest.importorskip("dask.array").from_array(rows, chunks=chunks)
        assert Summary.from_parts(array, model) == model.summarize(rows)


def test_files_are_read_in_pieces(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet, dataset = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.dataset")
    model, (reports,) = EVERY["normal numbers"]
    table = arrow.table({"z": reports, "other": np.zeros(90)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    whole = model.summarize(reports)
    for source in (tmp_path / "a.parquet", str(tmp_path), dataset.dataset(tmp_path), table, table.to_batches()):
        assert Summary.from_parts(source, model, columns="z") == whole
    heard = []
    Summary.from_parts(str(tmp_path), model, columns="z", progress=lambda *told: heard.append(told))
    assert heard[-1] == (90, 90)
    assert len(heard) > 1
    for source in (tmp_path / "a.parquet", table):
        for argument in ("columns", "target"):
            with pytest.raises(ValueError, match=f"`{argument}` must be among the columns 'z', 'other', got 'y'$"):
                Summary.from_parts(source, model, **({"columns": "z"} | {argument: "y"}))


def test_without_pyarrow_a_path_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'quincunx\[parquet\]'"):
        Summary.from_parts("reports.parquet", EVERY["counts"][0])


@pytest.mark.parametrize("what", ["mean", "rows", "labels", "categories", "regression"])
def test_the_command_line_reads_files_in_pieces(what, tmp_path, monkeypatch):
    """Pieces of seven lines, and one of all: the same posterior, to rounding where few numbers are fitted otherwise."""
    tables = {
        "mean": (["mean", "--bounds", "-5", "5"], EVERY["normal numbers"][1][0]),
        "rows": (["histogram"], EVERY["rows of bits"][1][0]),
        "labels": (["histogram", "--categories", "tea|coffee|mate"], EVERY["labels"][1][0]),
        "categories": (["histogram", "--categories", "4"], EVERY["generalized response"][1][0]),
        "regression": (["regression", "--bounds", "2", "2"], EVERY["moments"][1][0]),
    }
    (verb, *more), table = tables[what]
    columns = table.reshape(90, -1)
    lines = [",".join(f"c{i}" for i in range(columns.shape[1])), *(",".join(map(str, row)) for row in columns.tolist())]
    (tmp_path / "file.csv").write_text("\n".join(lines) + "\n\n")
    settings = {"epsilon": 1.0, "random_state": 0, "n_draws": 50, "json": True}
    given = dict(zip(more[::2], more[1::2], strict=False))
    settings |= {"categories": given["--categories"]} if "--categories" in given else {}
    settings |= {"bounds": tuple(map(float, more[1:]))} if "--bounds" in given else {}
    with warnings.catch_warnings(action="ignore"):
        whole = json.loads(_command.ldp_command(verb, tmp_path / "file.csv", **settings))
        monkeypatch.setattr(_command, "PIECE", 7)
        pieces = json.loads(_command.ldp_command(verb, tmp_path / "file.csv", **settings))
    for name, row in whole["posterior"].items():
        assert pieces["posterior"][name] == (pytest.approx(row, rel=1e-6) if what == "mean" else row)
    if what == "mean":
        lines[20] = "nan"
        (tmp_path / "file.csv").write_text("\n".join(lines))
        with pytest.raises(ValueError, match=r"finite numbers, got nan at index \(6,\), counted from record 13 on$"):
            _command.ldp_command(verb, tmp_path / "file.csv", **settings)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_a_refused_part_adds_nothing_to_a_regression():
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.5, 0.5, (400, 2))
    mechanism = privacy.GaussianMechanism(50.0, 1e-3, sensitivity=1.0)
    noise = mechanism.noise, mechanism.noise
    frame = pandas.DataFrame(np.asarray(mechanism.release(x, insecure_seed=1)), columns=["p", "q"])
    told = np.asarray(mechanism.release(x @ [1.0, -0.5], insecure_seed=2))
    how = {"n_warmup": 50, "n_draws": 50, "random_state": 0}
    model = ldp.LinearRegression(**how).partial_fit(frame[:200], told[:200], mechanism=noise)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[200:][["q", "p"]], told[200:], mechanism=noise)
    with pytest.raises(ValueError, match="feature names"):
        model.log_likelihoods(frame[["q", "p"]], told, mechanism=noise)
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(frame[200:], told[200:], mechanism=noise)
    whole = ldp.LinearRegression(**how).partial_fit(frame[:200], told[:200], mechanism=noise)
    whole.partial_fit(frame[200:], told[200:], mechanism=noise)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_a_column_that_is_there_twice_is_refused():
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="`columns` must be once among the columns 'a', 'a', got 'a'"):
        Summary.from_parts(frame, ldp.GaussianModel(privacy.LaplaceMechanism(1.0, 0, 9)), columns="a")


def test_parts_of_a_stream_go_by_their_columns():
    mechanism = privacy.UnaryEncoding(5.0, ["tea", "coffee", "mate"])
    x = ["tea"] * 70 + ["coffee"] * 25 + ["mate"] * 5
    names = ["tea", "coffee", "mate"]
    frame = pandas.DataFrame(mechanism.release(x, insecure_seed=1).values, columns=names)
    turned = frame[["mate", "tea", "coffee"]]
    model = ldp.HistogramModel(mechanism, random_state=0)
    whole = model.summarize(frame)
    for parts in ([turned], [frame[:40], turned[40:]], [turned[:40], frame[40:]]):
        assert Summary.from_parts(parts, model) == whole
    noise = privacy.GaussianMechanism(sigma=0.1, sensitivity=20.0)
    rng = np.random.default_rng(0)
    rows = pandas.DataFrame(noise.release(rng.normal([3, -3, 1], 0.1, (60, 3))).values, columns=list("abc"))
    vectors = ldp.MultivariateNormalModel(noise, random_state=0)
    assert Summary.from_parts([rows[:20], rows[20:][list("cab")]], vectors) == vectors.summarize(rows)
    with pytest.raises(ValueError, match="`parts` must have the same columns throughout"):
        Summary.from_parts([rows, rows.rename(columns={"a": "z"})], vectors)
    pyarrow = pytest.importorskip("pyarrow")
    batches = [pyarrow.RecordBatch.from_pandas(part) for part in (rows[:20], rows[20:][list("cab")])]
    assert Summary.from_parts(batches, vectors) == vectors.summarize(rows)


@pytest.mark.parametrize("data", ["rows", "counts"])
@pytest.mark.parametrize("protocol", [privacy.UnaryEncoding, privacy.SubsetSelection])
def test_columns_of_any_order_and_library_go_to_their_categories(protocol, data, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = ["tea", "coffee", "mate"]
    mechanism = protocol(3.0, labels)
    rows = mechanism.release(["tea"] * 70 + ["coffee"] * 25 + ["mate"] * 5, insecure_seed=1).values
    model = ldp.HistogramModel(mechanism, data=data)
    whole = model.summarize(rows)
    frame = pandas.DataFrame(rows, columns=labels)[["mate", "tea", "coffee"]]
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(table, tmp_path / "rows.parquet")
    for parts in (frame, [frame[:40], frame[40:]], table, table.to_batches(), tmp_path / "rows.parquet"):
        for columns in (None, labels, labels[::-1]):
            assert Summary.from_parts(parts, model, columns=columns) == whole
        with pytest.raises(ValueError, match="columns"):
            Summary.from_parts(parts, model, columns=labels[:2])
    known = mechanism.release(["tea"] * 70 + ["coffee"] * 25 + ["mate"] * 5, insecure_seed=1)
    table_of_dims = pytest.importorskip("xarray").DataArray(frame.to_numpy(), dims=("user", "drink"))
    for turned in (
        frame,
        table,
        table.to_batches()[0],
        known[:, [2, 0, 1]],
        table_of_dims.assign_coords(drink=list(frame)),
    ):
        assert model.summarize(turned) == whole
        assert np.array_equal(mechanism.estimate(turned), mechanism.estimate(rows))
    hidden, repeated = np.repeat(np.arange(100)[:, None] % 3 == 0, 3, axis=1), ldp.HistogramModel(data="repeated")
    assert repeated.summarize(known[:, [2, 0, 1]].masked(hidden)) == repeated.summarize(known.masked(hidden))
    with pytest.raises(
        ValueError, match=r"must have the columns \['tea', 'coffee', 'mate'\], got \['mate', 'tea', 'milk'\]"
    ):
        model.summarize(table.rename_columns(["mate", "tea", "milk"]), **{"n": 100} if data == "counts" else {})


def releases_of_columns(name):
    """Return a model of columns by position, and the arguments of parts: named, in another order, without names."""
    normal = privacy.GaussianMechanism(sigma=0.7, sensitivity=1.0)
    frame = pandas.DataFrame(RNG.normal(size=(120, 3)), columns=list("uvw"))
    model = {
        "vectors": ldp.MultivariateNormalModel(**FEW),
        "records": ldp.LinearRegression(**FEW),
        "moments": ldp.LinearRegression(kind="statistics", **FEW),
        "moments of labels": ldp.LogisticRegression(kind="statistics", **FEW),
    }[name]
    frame = frame if name != "moments of labels" else frame.assign(p=1.0, q=1.0)
    y = (normal.release(np.zeros(40)),) if name == "records" else ()
    turned = frame[frame.columns[::-1]]
    return model, [(normal.release(part), *y) for part in (frame[:40], turned[40:80], frame[80:].to_numpy())]


@pytest.mark.parametrize("name", ["vectors", "records", "moments", "moments of labels"])
@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_columns_in_another_order_are_never_added(name):
    model, (one, other, unnamed) = releases_of_columns(name)
    first, second, third = (model.summarize(*part) for part in (one, other, unnamed))
    lists = [[*pair] for pair in zip(one, other, strict=True)]
    y = [[None, other[1]]] if len(other) > 1 else []
    for add in (
        lambda: first + second,
        lambda: first + third + second,
        lambda: third + second + first,
        lambda: Summary.from_parts([one, other] if y else [one[0], other[0]], model),
        lambda: model.summarize(*lists),
        lambda: model.fit(*lists),
        lambda: model.fit([first, other[0]], *y),
        lambda: model.fit([first, second]),
        lambda: model.partial_fit(*one).partial_fit(*other),
        *([lambda: model.fit(*one).partial_fit(*other)] if name in ("vectors", "records") else []),
    ):
        with pytest.raises(ValueError, match="the same columns in"):
            add()
    file = io.BytesIO()
    first.save(file)
    file.seek(0)
    loaded = Summary.load(file)
    with pytest.raises(ValueError, match="the same columns in one order"):
        loaded + second
    assert loaded + third == third + first == first + third  # what has no names goes by position
    assert len((first + third).parts) == 1


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_names_of_features_are_saved_and_forgotten():
    mechanism = privacy.GaussianMechanism(50.0, 1e-3, sensitivity=1.0)
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2))
    frame = pandas.DataFrame(mechanism.release(x, insecure_seed=1).values, columns=["a", "b"])
    y = mechanism.release(x @ [1.0, -0.5], insecure_seed=2)
    how = {"n_warmup": 20, "n_draws": 20, "random_state": 0}
    model = ldp.LinearRegression(mechanism=(mechanism, mechanism), **how).fit(frame, y.values)
    loaded = reread(model)
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a"]])
    model.fit([mechanism.release(x)], [y])
    assert not hasattr(model, "feature_names_in_")
    named = mechanism.release(pandas.DataFrame(x, columns=["a", "b"]))
    summary, more = model.summarize(named, y), model.summarize(mechanism.release(x), y)
    for fit in (
        lambda: model.fit(named, y),
        lambda: model.fit([mechanism.release(x), named], [y, y]),
        lambda: model.fit(summary),
        lambda: model.fit([more, summary]),
        lambda: ldp.LinearRegression(**how).partial_fit(named, y),
        lambda: ldp.LinearRegression(**how).partial_fit(summary),
    ):
        fitted = fit()
        assert np.array_equal(fitted.predict(frame), frame.to_numpy() @ fitted.coef_)
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(frame[["b", "a"]])
        with pytest.raises(ValueError, match="feature names"):
            fitted.log_likelihoods(mechanism.release(frame[["b", "a"]]), y)
    model.fit(mechanism.release(pandas.DataFrame(x)[[1, 0]]), y).predict(x)  # numbers are no names, nor warned of
    with pytest.raises(TypeError, match="string names"):  # before the chains
        model.set_params(progress=lambda done, total: 1 / 0).fit(frame.rename(columns={"b": 0}), y.values)


def test_an_interrupted_fit_has_its_labels_and_names():
    x = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(x[:, 0] > 0, "yes", "no")
    model = ldp.LogisticRegression(n_chains=1, n_warmup=20, n_draws=500, max_depth=4, random_state=0)
    for columns in (["a", "b"], ["c", "d"]):
        frame = pandas.DataFrame(x, columns=columns)
        interrupted(model, lambda model, frame=frame: model.fit(frame, y))
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(frame, y) > 0.8
        assert model.feature_names_in_.tolist() == columns
    assert reread(model).predict(frame).tolist() == model.predict(frame).tolist()
