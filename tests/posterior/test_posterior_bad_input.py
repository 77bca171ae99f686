"""Bad input: every argument is refused with its name, and private data never cause an error or a warning."""

import copy
import math
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas
import pytest

from quincunx import posterior, privacy
from quincunx.errors import InsecureGuaranteeWarning, TooLargeError
from quincunx.posterior import (
    BallRegression,
    BetaBernoulli,
    DirichletCategorical,
    DiscreteBayesNet,
    ExponentialGamma,
    _mechanisms,
)
from quincunx.privacy import AddRemove, DataMetric, PrivacyGuarantee, ReplaceOne

BAD = [0, -1.0, math.nan, math.inf, -math.inf]
NET = DiscreteBayesNet([("a", "b")], {"a": 2, "b": 2})


@pytest.mark.parametrize("epsilon", BAD)
def test_an_epsilon_that_is_none_is_refused(epsilon):
    calls = [
        lambda: NET.fit_private([[0, 1]], epsilon),
        lambda: BetaBernoulli(1, 1).calibrate(epsilon),
        lambda: BetaBernoulli(1, 1, trim=0.1).calibrate(epsilon),
        lambda: ExponentialGamma(1, 1, bounds=(1, 2), data_bound=1).calibrate(epsilon),
        lambda: DirichletCategorical([1, 1, 1]).calibrate(epsilon),
        lambda: BallRegression(1, 1, 1, 1, 1).calibrate(epsilon),
        lambda: privacy.ExponentialMechanism(epsilon, 1.0),
        lambda: NET.cell_deviation("a", "laplace", epsilon),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="epsilon"):
            call()


@pytest.mark.parametrize("trim", [0, 0.5, 0.7, -0.1, math.nan, math.inf])
def test_a_trimming_outside_its_interval_is_refused(trim):
    with pytest.raises(ValueError, match="trim"):
        BetaBernoulli(1, 1, trim=trim)
    with pytest.raises(ValueError, match="trim"):
        DirichletCategorical([1, 1, 1], trim=trim / 1.4)
    with pytest.raises(ValueError, match="trim"):
        NET.fit_private([[0, 1]], 1.0, "map", trim=trim)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-9, 1e-7, 1e4, 1e300])
def test_calibration_and_draws_of_networks_answer_extreme_levels_or_refuse_them(epsilon):
    heavy = DirichletCategorical([1e6] * 3, trim=0.1)
    calls = [
        *(lambda n=n: BetaBernoulli(1, 1).calibrate(epsilon, n=n) for n in (None, 9)),
        *(lambda n=n: BetaBernoulli(1, 1, trim=0.1).calibrate(epsilon, n=n) for n in (None, 9)),
        *(lambda n=n: ExponentialGamma(1, 1, bounds=(1, 2), data_bound=1).calibrate(epsilon, n=n) for n in (None, 9)),
        *(lambda way=way: heavy.calibrate(epsilon, knob=way) for way in ("trim", "temper")),
    ]
    for call in calls:
        try:
            found = call().posterior([1] * 9).sample().guarantee.epsilon
        except ValueError as reason:
            found = str(reason)
        assert found <= epsilon if isinstance(found, float) else found.startswith("`epsilon` must be large enough")
        assert isinstance(found, float) or epsilon < 1e-5
    for mechanism in ("posterior_sample", "map"):
        if epsilon > 1e-12:
            assert NET.fit_private([[0, 1]], epsilon, mechanism).guarantee.epsilon <= epsilon
        else:
            with pytest.raises(ValueError, match="`epsilon` must be large enough"):
                NET.fit_private([[0, 1]], epsilon, mechanism)
    with pytest.raises(ValueError, match="`trim` must be in"):
        BetaBernoulli(1, 1, trim=1e-200)


def test_parameters_of_models_are_checked_by_name():
    for value in BAD:
        for name in ("a", "b", "temper"):
            with pytest.raises(ValueError, match=name):
                BetaBernoulli(**{"a": 1, "b": 1, name: value})
        for name in ("a0", "rate", "data_bound", "temper"):
            with pytest.raises(ValueError, match=name):
                ExponentialGamma(**{"a0": 1, "rate": 1, "bounds": (1, 2), "data_bound": 1, name: value})
        for name in ("W", "sigma2", "x_norm", "y_bound", "temper"):
            keywords = {"W": 1, "sigma2": 1, "x_norm": 1, "y_bound": 1, "prior_precision": 1, name: value}
            with pytest.raises(ValueError, match=name):
                BallRegression(**keywords)
    for bounds in [(2, 1), (1, 1), (0, 1), (-1, 1), (1, math.inf), (1,), 3, None]:
        with pytest.raises(ValueError, match="bounds"):
            ExponentialGamma(1, 1, bounds=bounds, data_bound=1)
    for alphas in [[1], [1, 0], [1, math.nan], [[1, 1]], [1, -2]]:
        with pytest.raises(ValueError, match="alphas"):
            DirichletCategorical(alphas)
    # Of eigenvalues as far apart as 1 and 1e20, doubles do not have the smaller one.
    for precision in [[[1, 2], [2, 1]], [[1, 0]], [[1, 1], [0, 1]], [[1, 0], [0, 1e20]]]:
        with pytest.raises(ValueError, match="`precision` must"):
            posterior.MultivariateNormalMean(precision, 1, 1)
        with pytest.raises(ValueError, match="`prior_precision` must"):
            BallRegression(1, 1, 1, 1, precision)
    with pytest.raises(ValueError, match="dof"):
        posterior.MultivariateNormalPrecision(1.0, np.eye(2), 1, 1)
    with pytest.raises(ValueError, match="mean"):
        posterior.MultivariateNormalPrecision(3.0, np.eye(2), 1, 1, mean=[1])


@pytest.mark.parametrize(
    "take",
    [
        lambda one, rows: BetaBernoulli(1, 1, trim=0.25).posterior(one),
        lambda one, rows: DirichletCategorical([1, 1], trim=0.25).posterior(one),
        lambda one, rows: posterior.GridModel(np.multiply, [0.1, 0.2], records=[0, 1]).posterior(one),
        lambda one, rows: posterior.MultivariateNormalMean(np.eye(2), 1, 1).posterior(rows),
        lambda one, rows: BallRegression(1, 1, 1, 1, 1).posterior(np.ones((2, 1)), one),
        lambda one, rows: posterior.PosteriorSampleRegressor().fit(rows, [0, 1]),
        lambda one, rows: posterior.PrivateBernoulliNB(classes=2).fit([[1], [0]], one),
        lambda one, rows: posterior.PrivateBernoulliNB(classes=2).fit(np.eye(2), [0, 1]).predict(rows),
    ],
)
def test_masks_are_refused(take):
    one, rows = (np.ma.masked_array(np.eye(2, dtype=int)[where], np.eye(2)[where]) for where in (0, slice(None)))
    with pytest.raises(ValueError, match=r"must have no masked cells, got [12] of them"):
        take(one, rows)


@pytest.mark.parametrize("size", [1e7, 1e9, 1e15])
def test_large_vectors_of_one_direction_have_a_posterior(size):
    model = posterior.MultivariateNormalPrecision(3.0, np.eye(2), radius=1e3, data_bound=size)
    draw = model.posterior([[size, size]] * 10).sample(insecure_seed=1).values[0]
    assert np.isfinite(draw).all()
    assert np.linalg.norm(draw) <= 1e3


def test_an_untrimmed_prior_gives_no_private_draw():
    for model in (BetaBernoulli(1, 1), DirichletCategorical([1, 1, 1])):
        with pytest.raises(ValueError, match="trim"):
            model.guarantee(5)
        with pytest.raises(ValueError, match="trim"):
            model.posterior([0, 1]).sample()


def test_relations_that_are_not_known_are_refused():
    model = BetaBernoulli(1, 1, trim=0.2)
    for relation in (ReplaceOne(2), DataMetric("l1"), "one"):
        with pytest.raises(ValueError, match="relation"):
            model.guarantee(3, relation=relation)
        with pytest.raises(ValueError, match="relation"):
            NET.fit_private([[0, 1]], 1.0, relation=relation)
    with pytest.raises(ValueError, match="AddRemove"):
        posterior.MultivariateNormalPrecision(3.0, np.eye(2), 1, 1).guarantee(relation=AddRemove())


def test_sizes_and_sources_are_checked():
    drawn = BetaBernoulli(1, 1, trim=0.2).posterior([1])
    for size in (0, -1, 1.5, "2", None):
        with pytest.raises((ValueError, TypeError), match="size"):
            drawn.sample(size)
    with pytest.raises(TypeError, match="rng"):
        drawn.sample(1, rng=3)
    with pytest.raises((ValueError, TypeError), match="insecure_seed"):
        drawn.sample(1, insecure_seed=-1)


WILD = [
    (BetaBernoulli(1, 1, trim=0.2), [np.nan, np.inf, -np.inf, 1e300, -4, 0.3]),
    (ExponentialGamma(1, 1, bounds=(1, 2), data_bound=1), [np.nan, np.inf, -np.inf, 1e300, -4, 0.3]),
    (posterior.LaplaceGamma(1, 1, bounds=(1, 2), data_bound=1, mean=4), [np.nan, np.inf, -np.inf, 1e300, 0.3]),
    (posterior.NormalPrecisionGamma(1, 1, bounds=(1, 2), data_bound=1), [np.nan, np.inf, -np.inf, 1e300, 0.3]),
    (DirichletCategorical([1, 1, 1], trim=0.1), [np.nan, np.inf, -np.inf, 1e300, 7, -7, 2.4]),
    (posterior.MultivariateNormalMean(np.eye(2), 1, 1), [[np.nan, 1], [np.inf, 0], [1e300, -1e300], [5e-324, 0]]),
    (posterior.MultivariateNormalPrecision(3, np.eye(2), 90, 1), [[np.nan, 1], [np.inf, 0], [1e300, -1e300]]),
]


@pytest.mark.parametrize(("model", "data"), WILD, ids=lambda value: type(value).__name__)
def test_wild_records_are_clipped_without_an_error_or_a_warning(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.posterior(data)
        values = found.sample(2).values
    assert found.n == len(data)
    assert np.isfinite(values).all()
    assert model.posterior(np.array(data)[:0]).sample(1).values.shape[0] == 1  # no records: the prior


def test_wild_rows_of_a_regression_are_clipped():
    model = BallRegression(1, 1, 1, 1, 1)
    X = [[np.nan, 1], [np.inf, 0], [1e300, -1e300], [3, 4]]
    found = model.posterior(X, [np.nan, np.inf, 1e300, -7])
    assert np.isfinite(found.sample(3).values).all()
    rows = np.array([[0, 0], [0, 0], [0.5**0.5, -(0.5**0.5)], [0.6, 0.8]])
    assert np.allclose(found.precision, rows.T @ rows + np.eye(2))
    assert np.allclose(found.precision @ found.mean, rows.T @ [-1, 1, 1, -1])
    with pytest.raises(ValueError, match="`y`"):
        model.posterior(X, [1, 2])


WORDS = DiscreteBayesNet([("a", "b")], {"a": ["x", "y"], "b": 2})
WILD_RECORDS = [
    (NET, [[0, 1], [5, 0]], "`data[:, 0] ('a')` must hold whole numbers between 0 and 1, got 5 at index (1,)"),
    (NET, [[0, 1], [1, -1]], "`data[:, 1] ('b')` must hold whole numbers between 0 and 1, got -1 at index (1,)"),
    (NET, np.array([[2**62, 0]]), "`data[:, 0] ('a')`"),
    (NET, np.array([[2, 0]], dtype=np.uint8), "got 2 at"),
    (NET, np.array([[255, 0]], dtype=np.uint64), "got 255 at"),
    (NET, [[0.5, 1]], "got 0.5 at"),
    (NET, [[0, np.nan]], "`data[:, 1] ('b')` must hold whole numbers, got nan at"),
    (NET, [["0", 1]], "labels must be declared"),
    (NET, pandas.DataFrame({"b": [1], "a": [3]}), "`data['a']` must hold whole numbers between 0 and 1, got 3 at"),
    (WORDS, [["x", 1], ["z", 0]], "`data[:, 0] ('a')` must hold categories among ['x', 'y'], got 'z' at index (1,)"),
    (WORDS, [["x", 2]], "`data[:, 1] ('b')` must hold whole numbers"),
    (WORDS, [[0, 1]], "got 0 at"),
    (WORDS, [["x", "1"]], "`data[:, 1] ('b')` must hold whole numbers, got"),
    (
        WORDS,
        pandas.DataFrame({"a": ["x", None], "b": [0, 1]}),
        "`data['a']` must hold categories among ['x', 'y'], got",
    ),
    (WORDS, pandas.DataFrame({"a": ["x"]}), "got none of ['b']"),
    (NET, pandas.DataFrame([[0, 1, 1]], columns=["a", "b", "a"]), "once, got 'a' again"),
]


@pytest.mark.parametrize("mechanism", ["laplace", "posterior_sample", "map"])
@pytest.mark.parametrize(("net", "data", "found"), WILD_RECORDS)
def test_records_outside_the_declared_categories_are_refused_before_anything_is_drawn(
    net, data, found, mechanism, monkeypatch
):
    for name in ("_completed", "_models"):  # what comes before, and after, the noise
        monkeypatch.setattr(_mechanisms, name, None)
    fitted = DiscreteBayesNet.fit_private
    for call in (lambda: fitted(net, data, 1.0, mechanism), lambda: net.count_tables(data)):
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        assert found in str(error.value)


@pytest.mark.parametrize("mechanism", ["laplace", "fourier_l1", "fourier_linf", "posterior_sample", "map"])
def test_a_network_is_fitted_to_no_records(mechanism):
    for data in (np.zeros((0, 2)), np.zeros((0, 2), np.uint8), [], pandas.DataFrame({"a": [], "b": []}, dtype=int)):
        fitted = NET.fit_private(data, 1.0, mechanism)
        assert all(np.allclose(table.sum(axis=-1), 1) for table in fitted.cpds.values())
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        posterior.PackedRecords([[0, 2]])


def test_graphs_that_are_none_are_refused():
    with pytest.raises(ValueError, match="cycle"):
        DiscreteBayesNet([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2))
    with pytest.raises(ValueError, match="cycle"):
        DiscreteBayesNet([("a", "a")], {"a": 2})
    with pytest.raises(ValueError, match="twice"):
        DiscreteBayesNet([("a", "b"), ("a", "b")], {"a": 2, "b": 2})
    with pytest.raises(ValueError, match="24 parents"):
        DiscreteBayesNet([(i, 25) for i in range(25)], dict.fromkeys(range(26), 2))
    with pytest.raises(ValueError, match="categories"):
        DiscreteBayesNet([("a", "b")], {"a": 2})
    with pytest.raises(TypeError, match="categories"):
        DiscreteBayesNet([("a", "b")], None)
    for size in (1, 0, -2, 1.5):
        with pytest.raises((ValueError, TypeError), match="categories"):
            DiscreteBayesNet([], {"a": size})
    with pytest.raises(ValueError, match="directed"):
        DiscreteBayesNet(nx.path_graph(3), dict.fromkeys(range(3), 2))
    with pytest.raises(ValueError, match="pairs"):
        DiscreteBayesNet([("a", "b", "c")], {"a": 2, "b": 2, "c": 2})


def test_what_does_not_fit_a_fit_is_refused():
    for data in (np.zeros(3), np.zeros((3, 3)), [["x", "y"]], None):
        with pytest.raises((ValueError, TypeError), match="data"):
            NET.fit_private(data, 1.0)
    fitted = NET.fit_private([[0, 1]], 1.0)
    for data in (posterior.PackedRecords([[0, 1]]), NET.summarize([[0, 1]])):
        with pytest.raises(TypeError, match="`data` must be records one by one, got"):
            fitted.log_likelihood(data)
    with pytest.raises(ValueError, match="mechanism"):
        NET.fit_private([[0, 1]], 1.0, "gauss")
    with pytest.raises(ValueError, match="nonneg"):
        NET.fit_private([[0, 1]], 1.0, nonneg="none")
    with pytest.raises(ValueError, match="nonneg"):
        NET.fit_private([[0, 1]], 1.0, "map", nonneg="clip")
    with pytest.raises(ValueError, match="nonneg"):
        NET.fit_private([[0, 1]], 1.0, "laplace", nonneg="fixed_shift")
    with pytest.raises(ValueError, match="smooth"):
        NET.fit_private([[0, 1]], 1.0, smooth=-1)
    with pytest.raises(ValueError, match="trim"):
        NET.fit_private([[0, 1]], 1.0, "laplace", trim=0.1)
    three = DiscreteBayesNet([("a", "b")], {"a": 3, "b": 2})
    with pytest.raises(ValueError, match="binary"):
        three.fit_private([[0, 1]], 1.0, "fourier_l1")
    wide = DiscreteBayesNet([(i, 9) for i in range(9)], dict.fromkeys(range(10), 64))
    with pytest.raises(TooLargeError):
        wide.fit_private(np.zeros((2, 10), int), 1.0)


def test_the_exponential_mechanism_refuses_what_it_cannot_choose_from():
    mechanism = privacy.ExponentialMechanism(1.0, 1.0)
    for scores in ([], 3.0, [1.0, math.nan], [math.inf], ["a"], np.zeros((2, 0))):
        with pytest.raises((ValueError, TypeError), match="scores"):
            mechanism.release(scores)
    for sensitivity in BAD:
        with pytest.raises(ValueError, match="sensitivity"):
            privacy.ExponentialMechanism(1.0, sensitivity)
    with pytest.raises(TypeError, match="monotonic"):
        privacy.ExponentialMechanism(1.0, 1.0, monotonic=1)
    with pytest.raises(ValueError, match="`z`"):
        mechanism.log_likelihood(3, [0.0, 1.0])
    with pytest.raises(ValueError, match="beta"):
        mechanism.utility_bound(10, beta=0)


def test_functions_of_the_range_refuse_what_is_outside_their_domain():
    g = PrivacyGuarantee(1.0, range_bounded=True)
    for err in (0, 0.25, 0.7, math.nan):
        with pytest.raises(ValueError, match="err"):
            posterior.min_samples_to_distinguish(g, err)
    with pytest.raises(TypeError, match="`g`"):
        posterior.kl_bound(1.0)
    for beta in (0, 1, math.nan):
        with pytest.raises(ValueError, match="beta"):
            posterior.query_error_bound(n_samples=1, n_responses=1, n_queries=1, beta=beta)
    for case in [(-1, 1, 1, 5), (1, 0, 1, 5), (1, 1, math.inf, 5), (1, 1, 1, -1)]:
        with pytest.raises(ValueError):
            posterior.beta_hockey_stick(*case)
    with pytest.raises(ValueError, match="distance"):
        posterior.le_cam_lower_bound(g, distance=0)
    with pytest.raises(ValueError, match="`C`"):
        posterior.LipschitzConstants(1.0, 0.0, 0.5)
    with pytest.raises(ValueError, match="`L`"):
        posterior.LipschitzConstants(1.0, 1.0, 1.5).guarantee(0.5)
    with pytest.raises(ValueError, match="eta"):
        posterior.prior_change_bounds(-0.1)
    with pytest.raises(ValueError, match="total_variation"):
        posterior.regret_bound(1.5)


def test_query_answerers_check_their_sample_and_utilities():
    sample = BetaBernoulli(1, 1, trim=0.2).posterior([1]).sample(3)
    answerer = posterior.QueryAnswerer(sample)
    with pytest.raises(TypeError, match="sample"):
        posterior.QueryAnswerer(sample.values)
    with pytest.raises(ValueError, match="responses"):
        answerer.answer(lambda t, r: t, [])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        answerer.answer(lambda t, r: t + 1, [1])
    with pytest.raises(ValueError, match="shape"):
        answerer.answer(lambda t, r: np.zeros(7), [1])


def test_a_guarantee_by_a_large_delta_alone_is_none():
    constants = posterior.LipschitzConstants(c=20.0, L0=0.0, C=1.5)
    with pytest.warns(InsecureGuaranteeWarning, match="guarantees nothing"):
        g = constants.delta_guarantee()
    assert not g.is_meaningful
    with pytest.warns(InsecureGuaranteeWarning, match="guarantees nothing"):
        assert not constants.guarantee(0.1).is_meaningful
    assert constants.guarantee(1.0).is_meaningful
    assert PrivacyGuarantee(1.0, 1e-6).is_meaningful
    # The thesis's own bound is a delta of at least sqrt(1/2) in every case, since C is at least 1.
    with pytest.raises(ValueError, match="delta"):
        BetaBernoulli(2, 2).lipschitz_constants(10).delta_guarantee()


@pytest.mark.parametrize("again", [lambda made: made, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_arrays_of_posteriors_and_laws_are_read_only_also_in_copies(again):
    grid = posterior.GridModel(lambda rate, y: y * np.log(rate) - rate, [1.0, 2.0, 3.0], records=range(5))
    ball = posterior.MultivariateNormalMean(np.eye(2), 1.0, 1.0)
    wishart = posterior.MultivariateNormalPrecision(4.0, np.eye(2), 50.0, 1.0)
    beside = posterior.BallRegression(1, 1, 1, 1, np.eye(2))
    dirichlet = DirichletCategorical([1, 1, 1], trim=0.05).posterior([0, 2])
    owners = {
        "alphas": [dirichlet],
        "mean": [ball.posterior([[0.5, 0.0]]), wishart],
        "precision": [ball.posterior([[0.5, 0.0]]), ball],
        "prior_precision": [beside],
        "scale": [wishart.posterior([[0.5, 0.0]]), wishart],
        "parameters": [grid],
        "records": [grid],
        "units": [grid.posterior([1, 2])],
        "probabilities": [grid.posterior([1, 2])],
        "values": [dirichlet.sample(2), privacy.privatize([1, 2], epsilon=1.0)],
        "alpha": [privacy.privatize([1, 2], epsilon=[1.0, 2.0]).noise],
        "scales": [privacy.noise.GaussianNoise(0.5, scales=[1.0, 4.0])],
    }
    for name, found in owners.items():
        for owner in map(again, found):
            with pytest.raises(ValueError, match="read-only"):
                getattr(owner, name)[0] = 0
