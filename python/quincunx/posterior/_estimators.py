"""scikit-learn estimators with a guarantee: naive Bayes by private counts, regression by a posterior draw."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._categories import Categories, CategoriesLike
from quincunx._inference._parameters import parameters
from quincunx._sklearn import Deferred, estimator_doc, keeps_names, validation
from quincunx._types import Array, Facts, Floats, Ints, Tags
from quincunx.posterior._mechanisms import MECHANISMS
from quincunx.posterior._network import DiscreteBayesNet
from quincunx.posterior._records import Codes
from quincunx.posterior._structure import Nonneg
from quincunx.posterior._vectors import BallRegression


def _plain(**data: npt.ArrayLike) -> None:
    """Refuse data that do not fit into memory, or with masks, which scikit-learn would not heed."""
    for name, value in data.items():
        _check.fits(value, name)
        _check.refuse_masked(value, name)


@estimator_doc
@parameters
class _PrivateNaiveBayes(Deferred, sklearn=("ClassifierMixin", "BaseEstimator")):
    """Fit of a star-shaped network, and prediction from its tables."""

    PUBLISHED: ClassVar[dict[str, str]] = {
        "classes_": "declared",
        "guarantee_": "declared",
        "n_features_in_": "shape",
        "feature_names_in_": "shape",
        **dict.fromkeys(("network_", "class_log_prior_", "feature_log_prob_"), "noise"),
    }

    epsilon: float = field(default=1.0, kw_only=False)
    mechanism: str = "auto"
    nonneg: Nonneg | None = None
    smooth: float = 1.0
    classes: CategoriesLike | None = None
    insecure_seed: int | None = None

    def _features(self, features: int) -> list[Categories]:
        """Return the declared categories of each feature."""
        raise NotImplementedError

    def _input(self) -> Facts:
        """Return what scikit-learn is to check of the features."""
        return {"ensure_all_finite": False}

    def _codes(self, X: Array, features: Sequence[Categories]) -> Ints:
        """Return the codes of features of such categories."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # fresh noise in every fit
        tags.classifier_tags.poor_score = True  # small data of the checks drown in it
        return tags

    def _declared_classes(self) -> Categories:
        """Return the classes in the order of scikit-learn, sorted."""
        if self.classes is None:
            raise ValueError(
                "`classes` must be declared, got None: the labels that occur in private data would tell who is there"
            )
        declared = Categories.of(self.classes, "classes", maximum=2**16)
        return declared if declared.labels is None else Categories(tuple(np.unique(declared.labels).tolist()))

    @keeps_names
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit by noisy counts.

        Parameters
        ----------
        X : array_like, shape (n_samples, n_features)
            Private features.
        y : array_like, shape (n_samples,)
            Private labels, each among the declared classes.

        {fitted}
            So too if no `classes` are declared, or a label is none of them: before anything is drawn or spent.
        """
        _plain(X=X, y=y)
        classes = self._declared_classes()
        rows, y = validation().validate_data(self, X, y, **self._input())
        labels = classes.encode(y, "y")
        features = self._features(rows.shape[1])
        declared: dict[Hashable, CategoriesLike] = {"y": classes, **dict(enumerate(features))}
        net = DiscreteBayesNet([("y", i) for i in range(len(features))], declared)
        data = Codes(np.column_stack((labels, self._codes(rows, features))).reshape(-1), len(rows))
        mechanism = _check.one_of(self.mechanism, "mechanism", MECHANISMS)
        if mechanism.startswith("fourier") and not net.is_binary:
            mechanism = "laplace"
        fitted = net.fit_private(
            data,
            self.epsilon,
            mechanism,
            nonneg=self.nonneg,
            smooth=self.smooth,
            insecure_seed=self.insecure_seed,
        )
        self.classes_ = classes.decode(np.arange(len(classes)))
        self.network_ = fitted
        self.guarantee_ = fitted.guarantee
        self.class_log_prior_ = np.log(fitted.cpds["y"])
        self.feature_log_prob_ = [np.log(fitted.cpds[i]) for i in range(len(features))]
        return self

    def predict_joint_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Return log P(class, features), no constant left out, of shape (n_samples, n_classes).

        {records}

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
        """
        validation().check_is_fitted(self)
        _plain(X=X)
        rows = validation().validate_data(self, X, reset=False, **self._input())
        known = self.network_.net._declared  # what `categories` says may be of the next fit
        codes = self._codes(rows, [known[place] for place in range(rows.shape[1])])
        joint = np.broadcast_to(self.class_log_prior_, (len(codes), len(self.classes_))).copy()
        for column, table in zip(codes.T, self.feature_log_prob_, strict=True):
            joint += table.T[column]
        return np.asarray(joint)

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Return log P(class | features), shape (n_samples, n_classes).

        {records}

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
        """
        joint = self.predict_joint_log_proba(X)
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return P(class | features), shape (n_samples, n_classes).

        {records}

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
        """
        proba = np.exp(self.predict_log_proba(X))
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the most probable class of each row.

        {predicted}
        """
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[np.argmax(joint, axis=1)])


@parameters
class PrivateBernoulliNB(_PrivateNaiveBayes):
    """Naive Bayes on binary features with differentially private counts.

    Two classes: noise of constant law on cubes (the L-infinity mechanism) on the parities of (class, feature). More
    classes: two-sided geometric noise on their counts.

    Parameters
    ----------
    epsilon : float
        Privacy level of one fit, for replacing one record.
    mechanism : str
        As for `DiscreteBayesNet.fit_private`; where it is a Fourier mechanism and there are more than two classes,
        "laplace".
    nonneg : str, optional
        How negative counts are dealt with, after the noise; by default "clip".
    smooth : float
        Cells get this times their noise's deviation before probabilities are formed.
    binarize : float
        A feature is one where it is above.
    classes : int or sequence
        The possible labels, declared: strings or numbers, or a number k for 0..k-1. Without them `fit` refuses, since
        the set of labels that occur is a fact about the private data.
    insecure_seed : int, optional
        Makes a fit repeatable, for tests.

    Attributes
    ----------
    guarantee_ : PrivacyGuarantee
        Of the fit.
    network_ : PrivateBayesNet
        The fitted tables.
    classes_ : ndarray
        The declared labels, sorted.

    Notes
    -----
    Features are clipped to bits, NaN to 0, record by record, without a warning. The number of records is public.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import PrivateBernoulliNB
    >>> y = np.tile([0, 1], 500)
    >>> X = np.stack((y, 1 - y, y), axis=1)
    >>> model = PrivateBernoulliNB(epsilon=2.0, classes=[0, 1]).fit(X, y)
    >>> model.predict([[1, 0, 1], [0, 1, 0]]), model.guarantee_.epsilon
    (array([1, 0]), 2.0)
    """

    mechanism: str = "fourier_linf"
    binarize: float = 0.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is not above anything
        return tags

    def _features(self, features: int) -> list[Categories]:
        return [Categories(2)] * features

    def _codes(self, X: Array, features: Sequence[Categories]) -> Ints:
        return np.asarray(X > _check.real(self.binarize, "binarize"), dtype=np.int64)


@parameters
class PrivateCategoricalNB(_PrivateNaiveBayes):
    """Naive Bayes on categorical features with differentially private counts.

    Parameters
    ----------
    epsilon : float
        Privacy level of one fit, for replacing one record.
    categories : int, sequence or mapping
        What the features may be, declared: a number k for the codes 0..k-1 of every feature, or a declaration for each,
        in a sequence or by the name of its column: a number again, or a sequence of labels. Without it `fit` refuses.
    mechanism, nonneg, smooth, classes, insecure_seed
        As for `PrivateBernoulliNB`; the mechanism is "auto".

    Attributes
    ----------
    guarantee_, network_, classes_
        As for `PrivateBernoulliNB`.

    Notes
    -----
    A value that is none of the declared categories is refused with its place, before anything is drawn or spent.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import PrivateCategoricalNB
    >>> y = np.tile([0, 1, 2], 400)
    >>> model = PrivateCategoricalNB(epsilon=3.0, categories=3, classes=3).fit(y[:, None], y)
    >>> model.predict([[0], [2]])
    array([0, 2])
    >>> drinks = np.array(["tea", "coffee"])[y % 2][:, None]
    >>> model = PrivateCategoricalNB(epsilon=3.0, categories=[["tea", "coffee"]], classes=["even", "odd"])
    >>> model.fit(drinks, np.array(["even", "odd"])[y % 2]).predict([["coffee"], ["tea"]]).tolist()
    ['odd', 'even']
    """

    categories: CategoriesLike | Sequence[CategoriesLike] | Mapping[Hashable, CategoriesLike] | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True  # codes
        tags.input_tags.string = not np.isscalar(self.categories)
        return tags

    def _input(self) -> Facts:
        return {} if np.isscalar(self.categories) else {"dtype": None}  # labels stay what they are

    def _features(self, features: int) -> list[Categories]:
        given = self.categories
        if given is None:
            raise ValueError("`categories` must be declared, got None: those that occur would tell who is there")
        if np.isscalar(given):
            return [Categories.of(given, "categories", maximum=2**16)] * features
        if isinstance(given, Mapping):
            names = list(getattr(self, "feature_names_in_", range(features)))
            if set(given) != set(names):
                raise ValueError(f"`categories` must be declared for the features {names}, got {list(given)}")
            return [Categories.of(given[name], f"categories[{name!r}]", maximum=2**16) for name in names]
        _check.fits(given, "categories")
        each = [declared for declared in given]  # type: ignore[union-attr] # list() would ask for the length, and believe it
        if len(each) != features:
            raise ValueError(f"`categories` must be a number or {features} declarations, got {len(each)}")
        return [Categories.of(declared, f"categories[{place}]", maximum=2**16) for place, declared in enumerate(each)]

    def _codes(self, X: Array, features: Sequence[Categories]) -> Ints:
        columns = []
        for place, (column, declared) in enumerate(zip(X.T, features, strict=True)):
            try:
                columns.append(declared.encode(column, f"X[:, {place}]"))
            except ValueError as error:
                if declared.labels is None and (column < 0).any():
                    raise ValueError(f"Negative values in data: {error}") from None
                raise
        return np.stack(columns, axis=1, dtype=np.int64, casting="unsafe")


@estimator_doc
@parameters
class PosteriorSampleRegressor(Deferred, sklearn=("RegressorMixin", "BaseEstimator")):
    """Linear regression by one draw of the coefficients from a posterior on a ball.

    The likelihood is tempered by epsilon over its range, so that ``P = (epsilon / r) X'X + prior_precision`` and the
    coefficients are ``N(P**-1 (epsilon / r) X'y, P**-1)`` truncated to norm at most `radius`, with
    ``r = 4 X Y W`` if ``X W <= Y`` else ``(Y + X W)**2``.

    Parameters
    ----------
    epsilon : float
        Privacy level of one fit, for replacing one record.
    radius : float
        W, the norm of the coefficients at most.
    x_norm, y_bound : float
        X and Y: the norm to which rows and the size to which responses are clipped.
    prior_precision : float
        Of the normal prior.
    insecure_seed : int, optional
        Makes a fit repeatable, for tests.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        The draw.
    guarantee_ : PrivacyGuarantee
        Of the fit; its numerics are "float64".

    Notes
    -----
    There is no intercept: add a constant column. The draw is exact up to rounding, by rejection: its *time* depends on
    the data, and must not be shown to an attacker. Rows and responses beyond their bounds are clipped, rows that are
    not finite become 0, record by record, without a warning. Responses that are not finite are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import PosteriorSampleRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, (20000, 2))
    >>> model = PosteriorSampleRegressor(epsilon=1.0).fit(X, X @ [0.5, -0.5])
    >>> bool(np.abs(model.coef_ - [0.5, -0.5]).max() < 0.5), round(model.guarantee_.epsilon, 6)
    (True, 1.0)
    """

    PUBLISHED: ClassVar[dict[str, str]] = {
        "coef_": "noise",
        "guarantee_": "declared",
        "n_features_in_": "shape",
        "feature_names_in_": "shape",
    }

    epsilon: float = field(default=1.0, kw_only=False)
    radius: float = 1.0
    x_norm: float = 1.0
    y_bound: float = 1.0
    prior_precision: float = 1.0
    insecure_seed: int | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.regressor_tags.poor_score = True
        tags.input_tags.allow_nan = True
        return tags

    @keeps_names
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Draw the coefficients.

        {private}

        {fitted}
        """
        _plain(X=X, y=y)
        try:
            rows, responses = validation().validate_data(
                self, X, y, ensure_all_finite=False, dtype=np.float64, y_numeric=True
            )
        except OverflowError as error:
            raise ValueError(f"`X` and `y` must be within the range of a double: {error}") from None
        model = BallRegression(self.radius, 1.0, self.x_norm, self.y_bound, self.prior_precision)
        sample = model.calibrate(self.epsilon).posterior(rows, responses).sample(1, insecure_seed=self.insecure_seed)
        self.coef_ = sample.values[0].copy()
        assert sample.guarantee is not None
        self.guarantee_ = sample.guarantee
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return ``X @ coef_``, shape (n_samples,).

        {predicted}
        """
        validation().check_is_fitted(self)
        _plain(X=X)
        try:
            rows = validation().validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        except OverflowError as error:
            raise ValueError(f"`X` must be within the range of a double: {error}") from None
        return np.asarray(rows @ self.coef_)
