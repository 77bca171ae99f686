"""Choosing a model on a release: every split and every held-out cell is judged under the noise it was released with."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate, learning_curve

from quincunx.distributions import TwoPiecePoisson
from quincunx.factorization import PoissonFactorization, PoissonTensorFactorization
from quincunx.privacy import Release, privatize


def counts(shape, seed, mean=150.0):
    return np.random.default_rng(seed).poisson(mean, shape)


SHAPES = {"matrix": (24, 8), "tensor": (18, 4, 3)}
KINDS = {"matrix": PoissonFactorization, "tensor": PoissonTensorFactorization}


def releases():
    # Counts so large that none is negative: without their noise they would be fitted without a word.
    for structure, shape in SHAPES.items():
        table = counts(shape, 3)
        assert privatize(table, epsilon=0.2, insecure_seed=5).values.min() > 0
        yield pytest.param(structure, privatize(table, epsilon=0.2, insecure_seed=5), id=structure)
        levels = np.linspace(0.15, 0.5, shape[0]).reshape(-1, *(1,) * (len(shape) - 1)) * np.ones(shape)
        yield pytest.param(structure, privatize(table, epsilon=levels, insecure_seed=6), id=f"{structure}, ratios")
        masked = np.ma.array(table, mask=np.random.default_rng(4).random(shape) < 0.1)
        yield pytest.param(structure, privatize(masked, epsilon=0.2, insecure_seed=7), id=f"{structure}, masked")
    frame = pd.DataFrame(counts((24, 8), 8, 2.0), columns=list("abcdefgh"))
    yield pytest.param("matrix", privatize(frame, epsilon=0.5, insecure_seed=9), id="labels and negative values")


def model(structure, **how):
    return KINDS[structure](2, **{"inference": "vi", "n_iter": 40, "tol": 1e-2, "random_state": 0} | how)


def by_hand(fitted, release, rows):
    """Return the mean log-likelihood of rows of a release, its noise said by hand."""
    masked = np.ma.getmaskarray(release.values)[rows]
    alpha = np.broadcast_to(np.asarray(release.alpha), release.shape)[rows]
    values = np.asarray(release)[rows]
    embedding = fitted.transform(values, alpha=alpha, mask=masked)
    rates = np.tensordot(embedding, fitted.components_, axes=1)
    return TwoPiecePoisson(values, rates, alpha).log_marginal()[~masked].mean()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(("structure", "release"), [*releases()])
def test_row_cross_validation_fits_and_scores_every_split_under_its_noise(structure, release):
    folds = KFold(3, shuffle=True, random_state=1)
    found = cross_validate(model(structure), release, cv=folds, return_estimator=True, error_score="raise")
    fits = zip(folds.split(release), found["estimator"], found["test_score"], strict=True)
    for (train, test), fitted, score in fits:
        alpha = np.broadcast_to(np.asarray(release.alpha), release.shape)[train]
        mask = np.ma.getmaskarray(release.values)[train]
        expected = model(structure).fit(np.asarray(release)[train], alpha=alpha, mask=mask)
        assert fitted._posterior.problem.data.alpha.min() > 0
        assert np.allclose(fitted.components_, expected.components_, rtol=1e-9)
        assert score == pytest.approx(by_hand(fitted, release, test), rel=1e-9)
        # Taken for counts without noise, the same values have another score: the noise is what makes it.
        assert abs(score - fitted.score(np.maximum(np.asarray(release)[test], 0), alpha=0.0)) > 1e-3


@pytest.mark.parametrize(("structure", "release"), [*releases()])
def test_a_grid_search_on_a_release_sees_its_noise_in_every_fit(structure, release):
    seen = []

    class Watched(KINDS[structure]):
        def fit(self, released, y=None, **how):
            seen.append(("fit", released))
            return super().fit(released, y, **how)

        def score(self, released, y=None, **how):
            seen.append(("score", released))
            return super().score(released, y, **how)

    watched = Watched(2, inference="vi", n_iter=20, tol=1e-1, random_state=0)
    search = GridSearchCV(watched, {"n_components": [1, 2]}, cv=3, error_score="raise").fit(release)
    assert [what for what, _ in seen] == ["fit", "score"] * 6 + ["fit"]
    assert all(type(part) is Release and part.alpha is not None for _, part in seen)
    assert search.best_params_["n_components"] in (1, 2)
    rows = KFold(3).split(np.empty(len(release)))
    expected = np.mean([clone(watched).fit(release[a]).score(release[b]) for a, b in rows])
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(expected, rel=1e-9)


def test_other_searches_of_scikit_learn_take_releases():
    release = privatize(counts((24, 8), 3), epsilon=0.2, insecure_seed=5)
    fast = model("matrix", n_iter=20, tol=1e-1)
    assert np.isfinite(cross_val_score(fast, release, cv=3, n_jobs=2, error_score="raise")).all()
    sizes, _, scores = learning_curve(fast, release, None, train_sizes=[0.5, 1.0], cv=3, error_score="raise")
    assert sizes.tolist() == [8, 16]
    assert np.isfinite(scores).all()
