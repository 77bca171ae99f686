"""Several reports of each user: their joint likelihood by enumeration, fits, summaries, estimates, refusals."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import stats
from tests.ldp.reports import all_reports

from quincunx import ldp, privacy
from quincunx.ldp._simulation import noisy_reports

DAILY = [
    privacy.MemoizedUnaryEncoding(0.7, 2.0, 3),
    privacy.MemoizedUnaryEncoding(1.5, 1.6, 3, "symmetric"),
    privacy.MemoizedUnaryEncoding(0.1, 6.0, 3),
]
AGAIN = [
    privacy.UnaryEncoding(1.0, 3),
    privacy.UnaryEncoding(1.0, 3, "threshold"),
    privacy.GeneralizedRandomizedResponse(0.8, 4),
    privacy.SubsetSelection(0.9, 4, size=2),
    privacy.LocalHashing(1.0, 4),
    privacy.HadamardResponse(0.5, 3),
    privacy.HadamardResponse(2.0, 5),
]
X = np.repeat(np.arange(3), [250, 150, 100])
SHORT = {"random_state": 0, "n_chains": 1, "n_warmup": 50, "n_draws": 50}


def shares(k):
    return np.random.default_rng(k).dirichlet(np.ones(k))


def of_kept_rows(mechanism, reports):
    """P(reports | category) of shape (n, k), for reports of shape (n, r, k): a sum over all permanent rows."""
    law, k = mechanism.noise, mechanism.categories
    kept, f = law.permanent, float(law.flip)
    rows = np.array(list(itertools.product((0, 1), repeat=k)))
    prior = np.exp(kept.log_likelihood(rows[:, None], np.arange(k)))
    same = reports[:, :, None, :] == rows
    copied = np.where(same, 1 - f, f).prod(axis=(1, 3))
    return copied @ prior


def check(model, reports, laws, total):
    """Compare the model's likelihood of each user, and its gradient, with the mixture of the laws of shape (n, k)."""
    theta = shares(laws.shape[1])
    each = np.array([model.log_likelihood(reports[i : i + 1], theta=theta) for i in range(len(reports))])
    assert np.exp(each).sum() / total == pytest.approx(1, abs=1e-10)
    assert each == pytest.approx(np.log(laws @ theta), rel=1e-12)
    value, slope = model.log_likelihood(reports, theta=theta, gradient=True)
    assert value == pytest.approx(each.sum(), rel=1e-12)
    by_hand = (laws / (laws @ theta)[:, None]).sum(axis=0)
    assert slope["theta"] == pytest.approx(by_hand, rel=1e-10)


@pytest.mark.parametrize("reports", [1, 2, 3])
@pytest.mark.parametrize("mechanism", DAILY, ids=repr)
def test_reports_of_permanent_rows_have_the_sum_over_all_of_these(mechanism, reports):
    rows = list(itertools.product((0, 1), repeat=3))
    told = np.array(list(itertools.product(rows, repeat=reports)), dtype=np.uint8)
    laws = of_kept_rows(mechanism, told)
    assert laws.sum(axis=0) == pytest.approx(1, abs=1e-12)
    check(ldp.HistogramModel(mechanism, data="repeated"), told, laws, 1.0)


@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize("mechanism", AGAIN, ids=repr)
def test_independent_reports_have_the_product_of_their_likelihoods(mechanism, reports):
    one, total = all_reports(mechanism)
    which = np.array(list(itertools.product(range(len(one)), repeat=reports)))
    laws = np.exp([mechanism.log_likelihood(one, x) for x in range(mechanism.categories)])
    check(ldp.HistogramModel(mechanism, data="repeated"), one[which], laws[:, which].prod(axis=2).T, total**reports)


def absences(reports):
    """Which of the reports of a user may be missing together: all patterns but those of none and of all."""
    return [np.array(bits) for bits in itertools.product((False, True), repeat=reports) if 0 < sum(bits) < reports]


def masked(told, absent, junk):
    """Reports with more of them that are missing, and something else under the mask."""
    wide = np.full((len(told), len(absent), *told.shape[2:]), junk, dtype=told.dtype)
    wide[:, ~absent] = told
    return np.ma.array(wide, mask=np.broadcast_to(absent.reshape(-1, *[1] * (told.ndim - 2)), wide.shape))


@pytest.mark.parametrize("reports", [2, 3])
@pytest.mark.parametrize("mechanism", DAILY, ids=repr)
def test_reports_of_permanent_rows_that_are_missing_are_summed_over(mechanism, reports):
    # All reports there may be, given which are missing: their probabilities sum to one, whatever is masked.
    rows, model = list(itertools.product((0, 1), repeat=3)), ldp.HistogramModel(mechanism, data="repeated")
    every = np.array(list(itertools.product(rows, repeat=reports)), dtype=np.uint8)
    whole = of_kept_rows(mechanism, every)
    for absent in absences(reports):
        told = np.array(list(itertools.product(rows, repeat=int((~absent).sum()))), dtype=np.uint8)
        laws = of_kept_rows(mechanism, told)
        # The sum over what the missing ones would have been, of all reports.
        same = (every[:, ~absent][None] == told[:, None]).all(axis=(2, 3))
        np.testing.assert_allclose(same @ whole, laws, rtol=1e-10)
        check(model, masked(told, absent, 1), laws, 1.0)


@pytest.mark.parametrize("mechanism", AGAIN, ids=repr)
def test_independent_reports_that_are_missing_leave_the_product_of_the_others(mechanism):
    one, total = all_reports(mechanism)
    laws = np.exp([mechanism.log_likelihood(one, x) for x in range(mechanism.categories)])
    model = ldp.HistogramModel(mechanism, data="repeated")
    for reports in (2, 3):
        for absent in absences(reports):
            there = int((~absent).sum())
            which = np.array(list(itertools.product(range(len(one)), repeat=there)))[:300]
            part = masked(one[which], absent, 99)
            found = laws[:, which].prod(axis=2).T
            if len(one) ** there <= 300:
                check(model, part, found, total**there)
            theta = shares(mechanism.categories)
            assert model.log_likelihood(part, theta=theta) == pytest.approx(np.log(found @ theta).sum(), rel=1e-12)


@pytest.mark.parametrize("mechanism", [*DAILY, *AGAIN], ids=repr)
def test_users_who_missed_every_round_tell_nothing_and_are_counted(mechanism):
    told = noisy_reports(mechanism.noise, X, 3, np.random.default_rng(1))
    absent = np.random.default_rng(2).random(told.shape[:2]) < 0.5
    absent[:40] = True
    hidden = np.ma.array(told, mask=np.broadcast_to(absent.reshape(500, 3, *[1] * (told.ndim - 2)), told.shape))
    model, theta = ldp.HistogramModel(mechanism, data="repeated"), shares(mechanism.categories)
    whole = model.log_likelihood(hidden, theta=theta)
    assert whole == pytest.approx(model.log_likelihood(hidden[40:], theta=theta), rel=1e-12)
    # Users one by one, each with the reports that there are.
    some = [told[i : i + 1, ~absent[i]] for i in range(500) if not absent[i].all()]
    assert whole == pytest.approx(sum(model.log_likelihood(part, theta=theta) for part in some), rel=1e-10)
    days = hidden.transpose(1, 0, *range(2, told.ndim))
    releases = [privacy.Release(day, mechanism.guarantee, noise=mechanism.noise) for day in days]
    assert model.log_likelihood(releases, theta=theta) == pytest.approx(whole, rel=1e-12)
    summary = model.summarize(hidden)
    assert summary == model.summarize(hidden[:77]) + model.summarize(hidden[77:])
    assert (summary.n, len(summary.parts)) == (500, 1)
    # Users of three rounds, of whom none is missing, are of the same law as those of two.
    assert len((model.summarize(told) + model.summarize(told[:, :2])).parts) == 1


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_missing_reports_are_saved_fitted_and_looked_at_user_by_user(tmp_path):
    told = noisy_reports(DAILY[0].noise, X, 3, np.random.default_rng(1))
    absent = np.random.default_rng(2).random(told.shape[:2]) < 0.5
    hidden = np.ma.array(told, mask=np.repeat(absent[:, :, None], 3, axis=2))
    model = ldp.HistogramModel(DAILY[0], data="repeated", **SHORT)
    whole = model.summarize(hidden)
    whole.save(tmp_path / "sum.npz")
    assert ldp.Summary.load(tmp_path / "sum.npz") == whole
    fitted = model.fit(hidden)
    draws = fitted.draws_["theta"]
    assert np.array_equal(model.fit(whole).draws_["theta"], draws)
    each = fitted.log_likelihoods(hidden)[0, 0]
    assert (np.abs(each) < 1e-12).tolist() == absent.all(axis=1).tolist()
    assert each.sum() == pytest.approx(model.log_likelihood(hidden, theta=draws[0, 0]), rel=1e-12)
    best = ldp.estimate_frequencies(hidden, "likelihood", data="repeated", mechanism=DAILY[0], tolerance=1e-6)
    top = model.log_likelihood(hidden, theta=best)
    for other in np.random.default_rng(2).dirichlet(np.ones(3), 50):
        assert model.log_likelihood(hidden, theta=other) <= top + 1e-6


@pytest.mark.parametrize("mechanism", [*DAILY, *AGAIN], ids=repr)
def test_one_report_of_each_of_each_has_the_likelihood_that_it_has_by_itself(mechanism):
    release = mechanism.release(X, insecure_seed=1)
    theta = shares(mechanism.categories)
    found = ldp.HistogramModel(data="repeated").log_likelihood(release, theta=theta)
    assert found == pytest.approx(ldp.HistogramModel().log_likelihood(release, theta=theta), rel=1e-12)
    assert found == ldp.HistogramModel(data="repeated").log_likelihood([release], theta=theta)
    assert found == ldp.HistogramModel(mechanism, data="repeated").log_likelihood(
        np.asarray(release)[:, None], theta=theta
    )


def test_reports_of_several_mechanisms_are_multiplied():
    parts = [*DAILY[:2], privacy.UnaryEncoding(1.0, 3), privacy.LocalHashing(1.0, 3), privacy.SubsetSelection(1.0, 3)]
    kept = [part.memoize(X, insecure_seed=3) for part in DAILY[:2]]
    told = [part.report(kept[i], insecure_seed=day) for i, part in enumerate(DAILY[:2]) for day in range(4, 6)]
    others = [part.release(X, insecure_seed=6 + i) for i, part in enumerate(parts[2:])]
    laws = np.exp([[release.noise.log_likelihood(release, x) for x in range(3)] for release in others]).prod(axis=0).T
    for i, part in enumerate(DAILY[:2]):
        laws = laws * of_kept_rows(part, np.stack([release.values for release in told[2 * i : 2 * i + 2]], axis=1))
    theta = shares(3)
    model = ldp.HistogramModel(data="repeated")
    found = model.log_likelihood([*told, *others], theta=theta)
    assert found == pytest.approx(np.log(laws @ theta).sum(), rel=1e-12)
    assert found == model.log_likelihood([*reversed(others), *reversed(told)], theta=theta)


@pytest.mark.parametrize("variant", ["optimal", "symmetric"])
def test_reports_of_one_row_at_several_levels_or_beside_it_are_refused(variant):
    """They are not independent, and their product would tell more than the row."""
    first, second, other = (
        privacy.MemoizedUnaryEncoding(*own, 3, variant) for own in ((1.0, 3.0), (2.0, 3.0), (2.0, 4.0))
    )
    kept = first.memoize(X, insecure_seed=1)
    one, two = first.report(kept, insecure_seed=2), second.report(kept, insecure_seed=3)
    third = other.report(other.memoize(X, insecure_seed=4), insecure_seed=5)
    model = ldp.HistogramModel(data="repeated", **SHORT)
    for parts in itertools.permutations([kept, one, two, third]):
        for few in (parts[:2], parts[:3], parts):
            mixed = sum(part is not third for part in few) > 1
            for call in (model.summarize, lambda given: model.log_likelihood(given, theta=shares(3))):
                if mixed:
                    with pytest.raises(ValueError, match="at one level and without the row"):
                        call(list(few))
    for parts in ([one, one, third], [kept, third]):
        assert model.summarize(parts).n == len(X)


def test_many_reports_of_many_categories_are_finite_and_tell_the_category():
    k, r = 500, 400
    mechanism = privacy.MemoizedUnaryEncoding(0.5, 20.0, k, "symmetric")
    kept = mechanism.memoize([7, 499], insecure_seed=1)
    told = np.stack([mechanism.report(kept, insecure_seed=day).values for day in range(2, r + 2)], axis=1)
    theta = np.full(k, 1e-9)
    theta[7] = 1 - 1e-9 * (k - 1)
    model = ldp.HistogramModel(mechanism, data="repeated")
    first, second = (model.log_likelihood(told[i : i + 1], theta=theta) for i in range(2))
    swapped = np.roll(theta, 492)  # the share of 7 is that of 499
    assert model.log_likelihood(told[1:], theta=swapped) > second + 10
    assert model.log_likelihood(told[:1], theta=swapped) < first - 10


@pytest.mark.parametrize("mechanism", DAILY[:2], ids=repr)
def test_the_client_has_the_joint_law_of_the_model(mechanism):
    # Two reports of one category among 2: chi-square of 16 cells, a false alarm once in 10^6; so simulated ones.
    two, n = type(mechanism)(*mechanism._levels, 2, mechanism.variant), 200_000
    cells = np.array(list(itertools.product(itertools.product((0, 1), repeat=2), repeat=2)), dtype=np.uint8)
    model = ldp.HistogramModel(two, data="repeated")
    expected = n * np.exp([model.log_likelihood(cell[None], theta=[0.0, 1.0]) for cell in cells])
    kept = two.memoize(np.ones(n, dtype=int), insecure_seed=3)
    told = np.stack([two.report(kept, insecure_seed=day).values for day in (4, 5)], axis=1)
    for reports in (told, noisy_reports(two.noise, np.ones(n, dtype=int), 2, np.random.default_rng(1))):
        counts = np.bincount(reports.reshape(n, 4) @ [8, 4, 2, 1], minlength=16)
        assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_repeated_reports_are_calibrated():
    for mechanism in (DAILY[0], DAILY[2], privacy.UnaryEncoding(0.5, 3), privacy.LocalHashing(0.7, 3)):
        model = ldp.HistogramModel(mechanism, data="repeated", n_chains=1, n_draws=200, n_warmup=100)
        found = ldp.calibration(model, n_repeats=40, n=300, rng=1)
        assert found.passed, (model, found.distances, found.limit)


class Forgetful(ldp.HistogramModel):
    """Users miss two rounds of five, by chance or, if `zeros`, those in which the first bit would be 0."""

    zeros = False
    _simulated_reports = 4

    def fit(self, released, y=None, **given):
        rng, told = np.random.default_rng(int(np.sum(released, dtype=np.uint64))), np.asarray(released)
        absent = rng.random(told.shape[:2]) < 0.4
        if self.zeros:
            absent = told[:, :, 0] == 0
        axes = (..., *[None] * (told.ndim - 2))
        return super().fit(np.ma.array(told, mask=np.broadcast_to(absent[axes], told.shape)), **given)


def test_reports_that_are_missing_by_chance_leave_the_posterior_calibrated():
    for mechanism in (DAILY[0], DAILY[2], privacy.UnaryEncoding(0.5, 3), privacy.LocalHashing(0.7, 3)):
        model = Forgetful(mechanism, data="repeated", n_chains=1, n_draws=200, n_warmup=100)
        found = ldp.calibration(model, n_repeats=40, n=300, rng=1)
        assert found.passed, (model, found.distances, found.limit)


def test_reports_that_are_missing_for_what_they_say_are_not_ignorable():
    class Shy(Forgetful):
        zeros = True

    model = Shy(DAILY[0], data="repeated", n_chains=1, n_draws=200, n_warmup=100)
    assert not ldp.calibration(model, n_repeats=40, n=300, rng=1).passed


def test_copies_of_permanent_rows_that_are_taken_as_independent_are_not_calibrated():
    class Independent(ldp.HistogramModel):
        """Forgets that reports are copies of one row."""

        def fit(self, released, y=None, **given):
            law = self.mechanism.noise
            return super().fit(released, mechanism=privacy.noise.UnaryEncodingNoise(3, law.one, law.zero))

    Independent._simulated_reports = 12
    model = Independent(
        privacy.MemoizedUnaryEncoding(1.9, 2.0, 3), data="repeated", n_chains=1, n_draws=200, n_warmup=100
    )
    assert not ldp.calibration(model, n_repeats=40, n=300, rng=1).passed


def test_more_reports_never_widen_the_posterior_on_average():
    # The expected variance falls with what is known: by more than 6 standard errors here, over 12 simulated samples.
    sds, rng = {1: [], 4: []}, np.random.default_rng(5)
    for _ in range(12):
        told = noisy_reports(DAILY[0].noise, rng.choice(3, 300, p=[0.5, 0.3, 0.2]), 4, rng)
        for reports, found in sds.items():
            model = ldp.HistogramModel(DAILY[0], data="repeated", n_chains=1, random_state=0, n_draws=400)
            found.append(model.fit(told[:, :reports]).posterior_sd_["theta"].mean())
    less = np.array(sds[1]) - sds[4]
    assert less.mean() > 6 * less.std(ddof=1) / np.sqrt(12)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.parametrize("mechanism", [DAILY[0], AGAIN[0], AGAIN[4]], ids=repr)
def test_summaries_add_and_save_and_fit_as_the_whole(mechanism, tmp_path):
    told = noisy_reports(mechanism.noise, X, 3, np.random.default_rng(1))
    model = ldp.HistogramModel(mechanism, data="repeated", **SHORT)
    whole = model.summarize(told)
    assert model.summarize(told[:200]) + model.summarize(told[200:]) == whole
    assert whole.n == len(X)
    assert whole.is_protected
    whole.save(tmp_path / "sum.npz")
    assert ldp.Summary.load(tmp_path / "sum.npz") == whole
    fitted = model.fit(told)
    model.save(tmp_path / "model.npz")
    back = ldp.HistogramModel.load(tmp_path / "model.npz")
    assert np.array_equal(back.draws_["theta"], fitted.draws_["theta"])
    assert back.data == "repeated"
    each = fitted.log_likelihoods(told)
    assert each.shape == (1, 50, len(X))
    first = {"theta": fitted.draws_["theta"][0, 0]}
    assert each[0, 0].sum() == pytest.approx(model.log_likelihood(told, **first), rel=1e-12)
    draws = fitted.draws_["theta"]
    assert np.array_equal(model.fit(whole).draws_["theta"], draws)
    other = ldp.HistogramModel(mechanism, **SHORT).summarize(mechanism.release(X, insecure_seed=2))
    assert (whole + other).n == 2 * len(X)  # users who reported once beside those who did so again and again
    assert model.fit(whole + other).posterior_mean_["theta"].shape == (mechanism.categories,)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_groups_have_shares_of_their_own_and_labels_come_back():
    mechanism = privacy.MemoizedUnaryEncoding(1.0, 2.0, ["tea", "coffee", "mate"])
    kept = {town: mechanism.memoize(["tea", "mate"] * 20, insecure_seed=i) for i, town in enumerate(("A", "B"))}
    days = {town: [mechanism.report(rows, insecure_seed=day) for day in (3, 4)] for town, rows in kept.items()}
    model = ldp.HistogramModel(data="repeated", **SHORT).fit(days)
    assert model.posterior_mean_["theta"].shape == (2, 3)
    one = ldp.HistogramModel(data="repeated", **SHORT).fit(days["A"])
    assert list(one.summary()) == ["theta[tea]", "theta[coffee]", "theta[mate]"]


def test_estimates_have_the_greatest_joint_likelihood():
    told = noisy_reports(DAILY[0].noise, X, 3, np.random.default_rng(1))
    best = ldp.estimate_frequencies(told, "likelihood", data="repeated", mechanism=DAILY[0], tolerance=1e-6)
    model = ldp.HistogramModel(DAILY[0], data="repeated")
    top, slope = model.log_likelihood(told, theta=best, gradient=True)
    assert slope["theta"].max() - best @ slope["theta"] <= 1e-6
    for other in np.random.default_rng(2).dirichlet(np.ones(3), 50):
        assert model.log_likelihood(told, theta=other) <= top + 1e-6
    unbiased = ldp.estimate_frequencies(told, "unbiased", data="repeated", mechanism=DAILY[0])
    assert unbiased == pytest.approx(DAILY[0].estimate(told), abs=1e-12)


def test_the_threshold_of_several_reports_is_that_of_permanent_rows():
    # 400 samples without category 2: above the threshold of its one false alarm in 2 k = 6 a binomial number of them.
    mechanism, rng = privacy.MemoizedUnaryEncoding(1.9, 2.0, 3), np.random.default_rng(1)
    above = [0, 0]
    for _ in range(400):
        told = noisy_reports(mechanism.noise, rng.choice(2, 400), 10, rng)
        how = {"mechanism": mechanism, "significance": 0.5}
        above[0] += ldp.estimate_frequencies(told, "base-cut", **how)[2] > 0
        above[1] += ldp.estimate_frequencies(told.reshape(-1, 3), "base-cut", **how)[2] > 0  # as of 4000 users
    assert stats.binomtest(above[0], 400, 1 / 6).pvalue > 1e-6
    assert stats.binomtest(above[1], 400, 1 / 6).pvalue < 1e-6


def test_what_are_no_repeated_reports_is_refused():
    daily, model = DAILY[0], ldp.HistogramModel(data="repeated")
    first = daily.release([0, 1, 2], insecure_seed=1)
    named = daily.memoize(pandas.Series([0, 1, 2], index=["ada", "bo", "cy"]))
    for call, kind, words in [
        (lambda: model.fit([first, first[:2]]), ValueError, "same users throughout, got 3 and 2"),
        (lambda: model.fit([first, [[0, 1, 0]]]), TypeError, "a list of releases alone"),
        (lambda: model.fit([first.values, first.values], mechanism=daily), TypeError, r"np\.stack"),
        (
            lambda: model.fit(first.masked(np.ones(first.shape, bool))),
            ValueError,
            "at least one report, got 3 that are",
        ),
        (lambda: model.fit(first.masked(np.eye(3, dtype=bool))), ValueError, "whole reports masked, .* at index"),
        (lambda: ldp.HistogramModel().fit(first.masked(np.eye(3, dtype=bool))), ValueError, "a masked release"),
        (lambda: ldp.estimate_frequencies(first.masked(np.eye(3, dtype=bool))), ValueError, "a masked release"),
        (lambda: model.fit([[0, 1, 2]]), ValueError, "`mechanism` must be given"),
        (lambda: model.fit(first, counts=[1, 1, 1]), TypeError, "`counts` must be None but with data=.patterns"),
        (lambda: model.fit([daily.report(named), daily.report(named[::-1])]), ValueError, "same users in one order"),
        (lambda: ldp.HistogramModel().fit(first, counts=[1, 1, 1]), TypeError, "`counts` must be None but with data="),
        (lambda: ldp.HistogramModel().fit(first, n=3), TypeError, "`n` must be None but with data=.counts"),
        (lambda: model.fit(np.zeros((2, 1, 1, 3), int), mechanism=daily), ValueError, r"\(n, reports, \.\.\.\)"),
        (lambda: model.fit(np.zeros((2, 0, 3), int), mechanism=daily), ValueError, r"\(n, reports, \.\.\.\)"),
        (lambda: model.fit(np.zeros((2, 2, 4), int), mechanism=daily), ValueError, "last axis of length 3"),
        (lambda: model.fit([[0, 1, 2, 3]], mechanism=AGAIN[4]), ValueError, "last axis of length 2"),
        (lambda: model.fit([first, AGAIN[2].release([0, 1, 2])]), ValueError, "same categories throughout"),
        (lambda: ldp.HistogramModel().fit(np.zeros((2, 2, 3), int), mechanism=daily), ValueError, 'data="repeated"'),
        (lambda: ldp.estimate_frequencies(first, data="counts"), ValueError, "`data` must be"),
    ]:
        with pytest.raises(kind, match=words):
            call()


def test_laws_and_tallies_that_no_users_have_are_refused():
    whole = ldp.HistogramModel(data="repeated").summarize(DAILY[0].release([0, 1, 2], insecure_seed=1))
    part = whole.parts[0]
    part.check()
    for changed in (
        {"laws": (("kept", 0.2, 0.5, 0.1),)},
        {"laws": (("kept", 0.5, 0.2, 0.6),)},
        {"laws": (("copied", 0.5, 0.2),)},
        {"laws": (("supports", 0.5, -1.0),)},
        {"laws": ()},
        {"rows": part.rows + np.array([1, 1, 1, 0], np.uint16)},
        {"rows": part.rows[:, :-1]},
        {"rows": part.rows[::-1]},
        {"weights": -part.weights},
    ):
        with pytest.raises(ValueError, match=r"no users have|none that reports have"):
            type(part)(**(vars(part) | changed)).check()


@pytest.mark.parametrize(("name", "variant"), [("L_SUE", "symmetric"), ("L_OSUE", "optimal")])
def test_one_report_is_estimated_as_by_multi_freq_ldpy(name, variant):
    module = pytest.importorskip(f"multi_freq_ldpy.long_freq_est.{name}")
    mechanism = privacy.MemoizedUnaryEncoding(1.0, 2.0, 3, variant)
    release = mechanism.report(mechanism.memoize(X, insecure_seed=1), insecure_seed=2)
    aggregate = getattr(module, f"{name}_Aggregator_MI")  # sets what is negative to 0 and multiplies
    theirs = aggregate(release.values.astype(float), 2.0, 1.0)
    assert ldp.estimate_frequencies(release, "norm-mul") == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("kind", [list, "?", "i1", "u1", "i4", "i8", "u8", "f8"], ids=str)
def test_bits_of_any_kind_are_repeated_reports(kind):
    reports = [[[1, 0, 1], [1, 1, 1]], [[0, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 0, 1]]]
    given = reports if kind is list else np.array(reports).astype(kind)
    mechanism, theta = privacy.UnaryEncoding(1.0, 3), [0.2, 0.3, 0.5]
    found = ldp.HistogramModel(data="repeated").log_likelihood(given, mechanism=mechanism, theta=theta)
    total = 0.0
    for user in reports:
        chances = [
            share * np.exp(sum(float(mechanism.log_likelihood(np.array(one), value)) for one in user))
            for value, share in enumerate(theta)
        ]
        total += np.log(sum(chances))
    assert found == pytest.approx(total, rel=1e-12)
