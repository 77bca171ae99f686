"""The estimators keep scikit-learn's contract: its own checks, clones, pickles, names, containers of data."""

import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from quincunx import factorization as room
from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonDynamics,
    PoissonFactorization,
    PoissonTensorFactorization,
)
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

SHORT = {"n_warmup": 10, "n_draws": 10, "thin": 2, "max_iter": 30, "n_chains": 1, "random_state": 7}
RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (12, 2)) @ RNG.gamma(0.5, 1.0, (2, 9)))
NETWORK = RNG.poisson(1.0, (8, 8))
TENSOR = RNG.poisson(1.0, (5, 4, 3))

MODELS = [
    (PoissonFactorization(2, **SHORT), COUNTS),
    (PoissonFactorization(2, inference="vi", **SHORT), COUNTS),
    (PoissonFactorization(2, topics="dirichlet", **SHORT), COUNTS),
    (PoissonFactorization(2, topics="dirichlet", topic_concentration=0.5, inference="vi", **SHORT), COUNTS),
    (PoissonBlockmodel(2, **SHORT), NETWORK),
    (PoissonBlockmodel(2, directed=False, inference="vi", **SHORT), NETWORK),
    (PoissonTensorFactorization(2, **SHORT), TENSOR),
    (PoissonTensorFactorization(2, weights=True, **SHORT), TENSOR),
    (PoissonTensorFactorization(2, weights=True, inference="vi", **SHORT), TENSOR),
    (PoissonTensorFactorization((2, 3, 1), core="dense", **SHORT), TENSOR),
    (PoissonTensorFactorization(2, core="dense", tied=[(0, 1)], inference="vi", **SHORT), NETWORK[:, :, None] + [0, 1]),
    (PoissonDynamics(2, delta="learnt", **SHORT), COUNTS),
    (PoissonDynamics(2, tau=1.0, **SHORT), TENSOR),
    (PoissonFactorization((2, 2), topics="dirichlet", **SHORT), COUNTS),
]
each_model = pytest.mark.parametrize(("model", "counts"), MODELS, ids=lambda x: repr(x) if hasattr(x, "fit") else "")


@parametrize_with_checks(
    [
        PoissonFactorization(non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonFactorization(3, non_integer="round", noise="naive", inference="vi", n_chains=1, max_iter=30),
        PoissonFactorization(3, non_integer="round", noise="naive", inference="svi", n_chains=1, max_iter=5),
        PoissonFactorization(topics="dirichlet", non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonFactorization((3, 2), topics="dirichlet", non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonBlockmodel(non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonTensorFactorization(non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonTensorFactorization(3, core="dense", non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
        PoissonDynamics(non_integer="round", n_warmup=10, n_draws=5, n_chains=1),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_estimators_nan_inf": "the NaN is on the diagonal, where a cell is held out and may hold anything"}
        if isinstance(estimator, PoissonBlockmodel)
        else {}
    ),
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([PoissonFactorization(non_integer="round")])
def test_scikit_learns_own_checks_pass_with_all_defaults(estimator, check):
    check(estimator)


@each_model
def test_a_fit_publishes_what_the_docstring_says(model, counts):
    released = privatize(counts, epsilon=1.0, insecure_seed=3)
    fitted = clone(model).fit(released)
    assert fitted.embedding_.shape == (len(counts), 2)
    assert fitted.components_.shape == (2, *counts.shape[1:])
    assert fitted.rates_.shape == fitted.expected_counts_.shape == counts.shape
    assert (fitted.rates_ >= 0).all()
    assert (fitted.expected_counts_ >= 0).all()
    assert 1 <= fitted.n_iter_ <= 30
    assert np.isfinite(fitted.score(released))
    if model.inference == "vi":
        assert len(fitted.elbo_) == fitted.n_iter_
        assert not hasattr(fitted, "draws_")
    else:
        assert not hasattr(fitted, "elbo_")
        assert all(draws.shape[:2] == (1, 10) for draws in fitted.draws_.values())
    if model.inference == "vi" and not isinstance(model, PoissonBlockmodel):
        mixed = np.tensordot(fitted.embedding_, fitted.components_, 1)
        np.testing.assert_allclose(mixed, fitted.rates_, rtol=1e-9)


@each_model
def test_clones_and_pickles_are_equal(model, counts):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    fitted = copy.fit(counts)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(again.expected_counts_, fitted.expected_counts_)
    np.testing.assert_array_equal(clone(again).fit(counts).embedding_, fitted.embedding_)


def test_the_constructor_only_stores():
    odd = object()
    model = PoissonFactorization(odd, method=odd, n_draws=odd)
    assert model.n_components is model.method is model.n_draws is odd


def test_data_frames_give_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS, columns=[f"word{v}" for v in range(9)])
    model = PoissonFactorization(2, **SHORT).set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.transform(frame).columns) == ["poissonfactorization0", "poissonfactorization1"]
    plain = PoissonFactorization(2, **SHORT).fit(COUNTS)
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array, list])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_what_holds_the_counts_does_not_matter(container, dtype):
    array = COUNTS.astype(dtype)
    data = array.tolist() if container is list else container(array)
    model = PoissonFactorization(2, n_warmup=4, n_draws=2, n_chains=1, random_state=7)
    expected = clone(model).fit(COUNTS)
    np.testing.assert_array_equal(clone(model).fit(data).embedding_, expected.embedding_)


def test_a_network_may_hold_booleans():
    model = PoissonBlockmodel(2, n_warmup=4, n_draws=2, n_chains=1, random_state=7)
    edges = NETWORK > 0
    np.testing.assert_array_equal(clone(model).fit(edges).embedding_, clone(model).fit(edges * 1).embedding_)


def test_the_data_of_the_user_are_neither_changed_nor_kept():
    counts, alpha, mask = COUNTS.copy(), np.full(COUNTS.shape, 0.5), COUNTS % 5 == 0
    model = PoissonFactorization(2, **SHORT).fit(counts, alpha=alpha, mask=mask)
    np.testing.assert_array_equal(counts, COUNTS)
    before = pickle.dumps(model)
    counts[:], alpha[:], mask[:] = 0, 0.1, False
    assert pickle.dumps(model) == before
    model.fit(np.asfortranarray(COUNTS))
    np.testing.assert_array_equal(model.embedding_, clone(model).fit(COUNTS).embedding_)


def test_pipelines_and_cross_validation_take_the_estimator():
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=20, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(np.abs), model)
    assert pipeline.fit_transform(COUNTS).shape == (12, 2)
    assert np.isfinite(cross_val_score(model, COUNTS, cv=3)).all()


def test_the_noise_is_routed_through_cross_validation():
    released = privatize(COUNTS, epsilon=1.0, insecure_seed=3).values
    each = np.full(len(released), 0.5)[:, None]
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=20, random_state=0)
    assert np.isfinite(cross_val_score(model, released, cv=3, params={"alpha": 0.5})).all()
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(alpha=True).set_score_request(alpha=True)
        scores = cross_val_score(model, released, cv=3, params={"alpha": each})
    assert np.isfinite(scores).all()
    assert not hasattr(model, "set_inverse_transform_request")


def test_new_rows_have_the_same_embedding_in_any_company():
    released = privatize(COUNTS, epsilon=1.0, insecure_seed=3)
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=100).fit(released)
    together = model.transform(released)
    alone = [model.transform(released.values[i : i + 1])[0] for i in range(len(COUNTS))]
    np.testing.assert_allclose(alone, together, rtol=1e-6)
    rates = model.inverse_transform(together)
    np.testing.assert_allclose(rates, together @ model.components_)


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_the_embedding_of_the_rows_of_the_fit_is_found_again(inference):
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.5, 50.0, (30, 3)) @ rng.gamma(0.5, 1.0, (3, 40)))
    released = privatize(counts, epsilon=1.0, insecure_seed=3)
    how = {"n_warmup": 400, "n_draws": 50, "max_iter": 600, "n_chains": 1, "random_state": 2}
    model = PoissonFactorization(3, inference=inference, **how).fit(released)
    size = model.embedding_.max(axis=1)
    assert (np.abs(model.transform(released) - model.embedding_).max(axis=1) < 0.1 * size + 0.5).all()
    assert np.abs(model.transform(released) - model.embedding_).mean() < 0.02 * model.embedding_.mean()


def test_slices_of_a_tensor_are_transformed_along_the_first_mode():
    model = PoissonTensorFactorization(2, weights=True, inference="vi", n_chains=1, max_iter=100).fit(TENSOR)
    np.testing.assert_allclose(model.transform(TENSOR[1:3]), model.transform(TENSOR)[1:3], rtol=1e-6)
    with pytest.raises(ValueError, match=r"`released` must have shape \(n, 4, 3\), got \(5, 3, 4\)"):
        model.transform(TENSOR.swapaxes(1, 2))


def test_a_tensor_of_two_modes_is_a_matrix():
    matrix = PoissonFactorization(2, **SHORT).fit(COUNTS)
    tensor = PoissonTensorFactorization(2, **SHORT).fit(COUNTS)
    np.testing.assert_array_equal(tensor.factors_[0], matrix.embedding_)
    np.testing.assert_array_equal(tensor.factors_[1].T, matrix.components_)
    np.testing.assert_array_equal(tensor.weights_, np.ones(2))


def test_priors_may_differ_from_factor_to_factor_and_entry_to_entry():
    shape = np.linspace(0.1, 1.0, 9)
    one = PoissonFactorization(2, prior_shape=(0.5, shape), prior_rate=[np.array([1.0, 2.0]), 1.0], **SHORT).fit(COUNTS)
    wide = (np.full((12, 2), 0.5), np.broadcast_to(shape, (2, 9)))
    rates = (np.broadcast_to([1.0, 2.0], (12, 2)), np.ones((2, 9)))
    same = PoissonFactorization(2, prior_shape=wide, prior_rate=rates, **SHORT).fit(COUNTS)
    np.testing.assert_array_equal(one.embedding_, same.embedding_)
    # A strong prior shows: weights come last, the first mode first.
    sure = (1e6, 1.0, 1.0, 2e6)
    tensor = PoissonTensorFactorization(1, weights=True, prior_shape=sure, prior_rate=(1e6, 1.0, 1.0, 1e6), **SHORT)
    tensor.fit(TENSOR)
    np.testing.assert_allclose(tensor.factors_[0], 1.0, atol=0.01)
    np.testing.assert_allclose(tensor.weights_, 2.0, atol=0.02)


def test_scikit_learn_is_loaded_when_an_estimator_is_made(output):
    program = (
        "import sys\n"
        "from quincunx.factorization import PoissonFactorization as Model\n"
        "from quincunx.posterior import PrivateBernoulliNB\n"
        "class Own(Model):\n"
        "    def transform(self, X): return super().transform(X)\n"
        "print('sklearn' in sys.modules)\n"
        "first, second = Own(3), Model(4)\n"
        "import pickle\n"
        "from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_classifier\n"
        "print(isinstance(first, Model), type(second) is Model, issubclass(PrivateBernoulliNB, ClassifierMixin))\n"
        "print(issubclass(Own, BaseEstimator) and issubclass(Own, TransformerMixin), "
        "is_classifier(PrivateBernoulliNB()))\n"
        "again = pickle.loads(pickle.dumps(second))\n"
        "print(type(again) is Model, clone(first).n_components, hasattr(Own, 'set_output'))\n"
    )
    assert output(program).split("\n")[:4] == ["False", "True True True", "True True", "True 3 True"]


def test_without_scikit_learn_the_room_opens_and_its_classes_name_the_extra(output):
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import quincunx.factorization as room\n"
        "try: room.PoissonFactorization\n"
        "except ImportError as error: print(error)\n"
        "print(dir(room), hasattr(room, 'nothing'))"
    )
    said = output(program)
    assert "pip install 'quincunx[sklearn]'" in said
    assert f"{sorted(room.__all__)} False" in said
