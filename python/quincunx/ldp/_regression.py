"""Linear and logistic regression from noisy records or noisy second moments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._categories import Categories
from quincunx._inference import Array, Arrays, Facts, Floats, Run, Variable, parameters
from quincunx._optional import require
from quincunx._sklearn import Deferred, validation
from quincunx._summary import Part, Summary, total
from quincunx._types import Tags
from quincunx.ldp._groups import (
    Group,
    LinearInputs,
    LinearStatistics,
    LogisticInputs,
    LogisticStatistics,
    Records,
    RecordSums,
    exact_sums,
    rounded,
)
from quincunx.ldp._model import PrivateModel
from quincunx.ldp._noise import (
    RECORDS,
    SUMMED,
    Known,
    MechanismLike,
    Pair,
    are_populations,
    names_of,
    noise_of,
    one_each,
    one_of,
    refuse_different,
    refuse_few,
    refuse_other_columns,
    refuse_raw,
    sigmas,
    single_sigma,
    split,
    summed_sigmas,
    warn_of_clipping,
)
from quincunx.ldp._problem import Block, PosteriorDraws
from quincunx.ldp._simulation import DataSet, covariance, generated, noisy
from quincunx.ldp.priors import HalfNormal, Normal
from quincunx.ldp.statistics import _of_linear, _of_logistic, _pair, _ratio, smat
from quincunx.privacy import Release
from quincunx.privacy.noise import GaussianNoise, LaplaceNoise, Noise, RandomizedResponseNoise


@parameters
class Regression(Deferred, PrivateModel, sklearn=("BaseEstimator",)):
    """What both regressions share."""

    PUBLISHED: ClassVar = PrivateModel.PUBLISHED | {
        "n_features_in_": "shape",
        "feature_names_in_": "shape",
        "coef_": "released",
        "intercept_": "released",
    }
    _with_residual: ClassVar[bool]
    _ratios: ClassVar[str]
    _known_of_labels: ClassVar[Known]
    _known = SUMMED
    #: Before the data are seen, for `predict` and messages of scikit-learn.
    n_features_in_: int = field(init=False)
    intercept_: float = field(init=False)
    classes_: Array = field(init=False)

    # The noisy records go by position, and are no metadata to route.
    _data_arguments: ClassVar = {"fit": "x"}

    kind: str = "inputs"
    _switches: ClassVar = ("fit_intercept",)
    fit_intercept: bool = False
    x_bound: float | None = None

    def fit(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        mechanism: MechanismLike | Pair = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior.

        Parameters
        ----------
        x : Release, array_like or list of these
            With ``kind="inputs"`` the noisy records, shape (n, d); with ``kind="statistics"`` the sum of the noisy
            statistics of all users, or a Release (or array of two axes) with a row for each user, which is summed.
            A list with a Release in it is of groups of users: each release has its own noise, raw values none. Or a
            summary.
        y : Release, array_like or list of these
            With ``kind="inputs"`` the noisy answers, shape (n,); a list goes with a list of records. None with moments.
        n : int, optional
            With a sum: the number of users; a list for groups.
        mechanism : optional
            With ``kind="inputs"`` a pair, for x and for y.
        {fitted}
        """
        groups, bound, classes = self._data(x, y, n, mechanism)
        names = self._names(x)

        def kept(stopped: object) -> None:
            if classes is not None:
                self.classes_ = classes
            self._set_names(names)

        self._fit(groups, executor, kept)
        self._warn_of_clipping(bound)
        return self

    def _names(self, x: Any) -> Array | None:
        """Return the names of the columns of a frame, a release or a summary; None where it has none, or moments."""
        if self.kind != "inputs":
            return None
        parts = split(x, "x") or [x]
        if not any(isinstance(part, (Release, Summary)) for part in parts):
            found: Array | None = validation()._get_feature_names(x)
            return found
        several = (part.parts if isinstance(part, Summary) else [part] for part in parts)
        known = [one.named if isinstance(one, Part) else names_of(one) for some in several for one in some]
        names = next((own for own in known if own is not None), ())
        # Numbers are no names to scikit-learn.
        return None if all(map(str.isdecimal, names)) else np.array(names, dtype=object)

    def _set_names(self, names: Array | None) -> None:
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if names is not None:
            self.feature_names_in_ = names

    def summarize(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        mechanism: MechanismLike | Pair = None,
        unsafe: bool = False,
    ) -> Summary:
        """Return what a fit needs of released records or moments, so that parts of the users can be added.

        Second moments of the records, or the sum of released moments, without rounding; a logistic regression on
        records has no sums that would do.

        Parameters
        ----------
        x, y, n, mechanism
            As in `fit`.
        {summarized}
        """
        if _with_summaries(x):
            return self._mixed(x, y, n, mechanism)
        if self._by_moments(y):
            several = self._split(x, mechanism, n=n)
            found = [self._totals(part, own["n"], mechanism) for part, own in several]
        elif not self._with_residual:
            raise ValueError(f"there is no summary of {LogisticInputs.unsummed}")
        elif y is None:
            raise ValueError('`y` must be given with kind="inputs"')
        else:
            found = []
            for pair in self._pairs(x, y, mechanism):
                (rows, numbers, noise, for_y), _, _ = self._records(*pair, mechanism)
                sums = exact_sums(np.column_stack([rows, numbers]), products=True)
                variances = (*noise, single_sigma(for_y) ** 2)
                found.append(RecordSums("inputs", variances, len(rows), tuple(sums), names=names_of(pair[0])))
        return Summary._of(self._summarized_as(), found, unsafe)

    def _mixed(self, x: Any, y: Any, n: Any, mechanism: Any) -> Summary:
        """Return the sum of summaries and of releases beside them."""
        parts = [x] if isinstance(x, Summary) else x
        if mechanism is not None and any(isinstance(part, Summary) for part in parts):
            raise ValueError("`mechanism` must be None with a summary, which knows the noise of its reports")
        refuse_raw(parts, "any", "x")
        each = zip(parts, one_each(y, len(parts), "y"), one_each(n, len(parts), "n"), strict=True)
        summed = [
            part if isinstance(part, Summary) else self.summarize(part, own, n=count) for part, own, count in each
        ]
        return total([Summary(self._summarized_as()), *summed])

    def _by_moments(self, y: object) -> bool:
        """Whether users release moments and not records, and then no answers beside them."""
        if _check.one_of(self.kind, "kind", ("inputs", "statistics")) == "inputs":
            return False
        if self.fit_intercept:
            raise ValueError(
                '`fit_intercept` must be False with kind="statistics": append a constant to each record before '
                "the statistics are made"
            )
        if y is not None:
            raise TypeError('`y` must be None with kind="statistics": the answers are in the moments, which are `x`')
        return True

    def _summarized_as(self) -> str:
        changes = "fit_intercept" if self.kind == "inputs" else self._ratios
        return f"{type(self).__name__}(kind={self.kind!r}, {changes}={getattr(self, changes)!r})"

    def _of_summary(self, summary: Summary, mechanism: object) -> list[Records]:  # type: ignore[override]
        return self._alike(super()._of_summary(summary, mechanism))

    def _of_part(self, part: Part) -> Group:
        if not isinstance(part, RecordSums):
            return super()._of_part(part)
        if part.laplace:
            refuse_few(part.users)
        totals = np.array([rounded(number) for number in part.totals])
        if part.form != "inputs":
            return self._of_total(totals, part.users, np.array(part.noise))
        moments = np.zeros((len(part.noise),) * 2)
        moments[np.triu_indices(len(moments))] = totals
        return LinearInputs(np.triu(moments) + np.triu(moments, 1).T, float(part.users), part.noise, names=part.names)

    def partial_fit(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        mechanism: MechanismLike | Pair = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior from what was fitted before and more released records or moments.

        Parameters
        ----------
        x, y, n, mechanism
            As in `fit`: of users that it has not seen.
        {more}
        """
        chunk = self.summarize(x, y, n=n, mechanism=mechanism)
        frames = self.kind == "inputs" and not isinstance(x, (Release, Summary, list))
        first = not hasattr(self, "_posterior")
        if frames and not first:  # before anything is added
            validation()._check_n_features(self, x, reset=False)
            validation()._check_feature_names(self, x, reset=False)
        names = self._names(x)
        return self._fit_more(chunk, executor, (lambda: self._set_names(names)) if first else None)

    def _warn_of_clipping(self, bound: float | None) -> None:
        """Warn where the posterior mean of the covariance puts many records beyond the clients' bound."""
        if bound is None:
            return
        from scipy import stats

        size = self.n_features_in_
        values = np.linalg.eigvalsh(np.asarray(self.posterior_mean_["covariance"])[:size, :size])
        # A sum of weighted chi-squares has nearly the law of one that has its first two moments (Satterthwaite).
        weight = np.sum(values**2) / np.sum(values)
        share = float(stats.chi2.sf(bound**2 / weight, np.sum(values) / weight))
        warn_of_clipping(share, "records", bound, "coefficients")

    def log_likelihood(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        gradient: bool = False,
        mechanism: MechanismLike | Pair = None,
        **parameters: npt.ArrayLike,
    ) -> float | tuple[float, dict[str, float | Floats]]:
        """Return the log-likelihood; no fit is needed.

        Parameters
        ----------
        x, y, n, mechanism
            As in `fit`.
        gradient : bool
            Whether derivatives are wanted too; that by the covariance S is the symmetric G of ``tr(G dS)``.
        {total}
        """
        return self._log_likelihood(self._data(x, y, n, mechanism)[0], gradient, parameters)

    def log_likelihoods(self, x: npt.ArrayLike, y: npt.ArrayLike, *, mechanism: Pair | None = None) -> Floats:
        """Return the log-likelihood of each user at each draw of the fitted posterior.

        Parameters
        ----------
        x, y, mechanism
            As in `fit` with ``kind="inputs"``, of the users of the fit or of others.

        {each}

        Raises
        ------
        ValueError
            With ``kind="statistics"``: a sum has no likelihood of one user.
        """
        if self.kind != "inputs":
            raise ValueError('`kind` must be "inputs": a sum over users has no likelihood of one of them')
        each_group = []
        if (names := self._names(x)) is not None and list(names) != list(getattr(self, "feature_names_in_", names)):
            raise ValueError("The feature names should match those that were passed during fit.")
        for records in self._pairs(x, y, mechanism):
            known = self.__dict__.get("classes_")
            (rows, answers, noise, for_y), _, classes = self._records(*records, mechanism, known)
            features = rows.shape[1] - bool(self.fit_intercept)
            if features != self.n_features_in_:
                raise ValueError(f"`x` must have as many features as in the fit, got {features}")
            if rows.shape[1:] != self._fitted().problem.variables[0].shape:
                raise ValueError(f"`fit_intercept` must be as in the fit, got {self.fit_intercept}")
            if classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"`y` must have the labels of the fit, {self.classes_.tolist()}, got {classes.tolist()}"
                )
            each = [self._inputs(rows[i : i + 1], answers[i : i + 1], noise, for_y) for i in range(len(rows))]
            each_group.append((each, np.arange(len(rows))))
        return self._log_likelihoods(each_group)

    def _pairs(
        self, x: npt.ArrayLike, y: npt.ArrayLike, mechanism: object
    ) -> list[tuple[npt.ArrayLike, npt.ArrayLike]]:
        """Return the records and the answers of each group of users."""
        of_x, of_y = split(x, "x"), split(y, "y")
        if of_x is None and of_y is None:
            return [(x, y)]
        records, answers = (list(part) if isinstance(part, (list, tuple)) else [] for part in (x, y))
        if len(records) != len(answers):
            raise ValueError("`y` must be a list of as many releases as `x`")
        refuse_other_columns(records, "x")
        given = self._pair(self.mechanism if mechanism is None else mechanism, "mechanism")
        refuse_raw(records, given[0], "x")
        refuse_raw(answers, given[1], "y")
        return list(zip(records, answers, strict=True))

    def _data(
        self, x: npt.ArrayLike, y: npt.ArrayLike | None, n: int | None, mechanism: object
    ) -> tuple[list[Records], float | None, Array | None]:
        """Return the groups of users, the clients' bound on x where it is known, and the labels."""
        bound = None if self.x_bound is None else _check.real(self.x_bound, "x_bound", positive=True)
        if are_populations(x):
            self._by_label(x)  # which refuses
        by_moments = self._by_moments(y)
        if _with_summaries(x):
            return self._of_summary(self._mixed(x, y, n, mechanism), None), bound, None
        if by_moments:
            several = self._split(x, mechanism, n=n)
            refuse_other_columns([part for part, _ in several], "x")
            sums = (self._totals(part, own["n"], mechanism) for part, own in several)
            return self._alike(list(map(self._of_part, sums))), bound, None
        if y is None:
            raise ValueError('`y` must be given with kind="inputs": requires y to be passed, but the target y is None')
        groups, radii, classes = [], [bound], None
        for records, answers in self._pairs(x, y, mechanism):
            inputs, radius, labels = self._records(records, answers, mechanism)
            groups.append(replace(self._inputs(*inputs), names=names_of(records)))
            radii.append(radius)
            if labels is not None and classes is not None and not np.array_equal(labels, classes):
                raise ValueError(
                    f"`y` must have the same labels throughout, got {classes.tolist()} and {labels.tolist()}"
                )
            classes = labels if labels is not None else classes
        known = [radius for radius in radii if radius is not None]
        return self._alike(groups), min(known, default=None), classes

    def _alike(self, groups: Sequence[Group]) -> list[Records]:
        records = [group for group in groups if isinstance(group, Records)]
        refuse_different((group.features for group in records), "x", "as many features")
        return records

    def _records(
        self, x: npt.ArrayLike, y: npt.ArrayLike, mechanism: object, known: Array | None = None
    ) -> tuple[tuple[Floats, Floats, tuple[float, ...], Noise | None], float | None, Array | None]:
        """Return records, answers and their noise, the clients' bound on x, and the labels, which may be known."""
        given = self._pair(mechanism, "mechanism")
        own = self._pair(self.mechanism, "mechanism")
        name = type(self).__name__
        for_x = noise_of(x, given[0], own[0], RECORDS, f"the records of {name}")
        for_y = noise_of(y, given[1], own[1], self._known_of_labels, f"the answers of {name}")
        if isinstance(x, Release):
            rows = _check.reals(x, "x")
            if rows.ndim != 2 or rows.shape[1] == 0:
                raise ValueError(f"`x` must have shape (n, d), got {rows.shape}")
        else:
            _check.fits(x, "x")
            how = {"estimator": self, "input_name": "x", "ensure_min_samples": 0, "ensure_all_finite": False}
            try:
                rows = validation().check_array(x, dtype=np.float64, **how)
            except OverflowError as error:
                raise ValueError(f"`x` must be within the range of a double: {error}") from None
            rows = _check.reals(rows, "x")
        answers, classes = self._answers(y, for_y, rows, known)
        if self.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        noise = (sigmas(for_x, rows.shape[1] - bool(self.fit_intercept)) ** 2).tolist()
        inputs = np.ascontiguousarray(rows), answers, (*noise, 0.0) if self.fit_intercept else tuple(noise), for_y
        return inputs, for_x.radius if isinstance(for_x, GaussianNoise) else None, classes

    def _answers(
        self, y: npt.ArrayLike, for_y: Noise | None, rows: Floats, known: Array | None = None
    ) -> tuple[Floats, Array | None]:
        """Return the answers as numbers, and what the labels 0 and 1 stand for."""
        if not isinstance(y, Release):
            y = column = _column(y)
            if column.dtype == object:
                try:
                    y = column.astype(np.float64)
                except (TypeError, ValueError) as reason:
                    raise ValueError(f"Unknown label type: `y` must hold numbers: {reason}") from None
        answers = np.ascontiguousarray(_check.reals(y, "y"))
        if answers.shape != (len(rows),):
            raise ValueError(f"`y` must have shape ({len(rows)},), got {answers.shape}")
        return answers, None

    def _pair(self, mechanism: object, name: str) -> Pair:
        if mechanism is None:
            return None, None
        if not isinstance(mechanism, (tuple, list)) or len(mechanism) != 2:
            raise TypeError(f'`{name}` must be a pair with kind="inputs": for x and for y')
        return mechanism[0], mechanism[1]

    def _inputs(self, x: Floats, y: Floats, noise: tuple[float, ...], for_y: Noise | None) -> Records:
        raise NotImplementedError

    def _totals(self, x: npt.ArrayLike, n: int | None, mechanism: object) -> RecordSums:
        """Return the sum of released moments, without rounding, and the deviations of their noise."""
        noise = self._noise(x, mechanism)
        rows = _check.reals(x, "total")
        if rows.ndim == 2:
            if n is not None and n != len(rows):
                raise ValueError(f"`n` must be {len(rows)}, the number of rows, got {n}")
            users = len(rows)
        elif rows.ndim == 1:
            if n is None:
                raise TypeError("`n`, the number of users, must be given with a sum")
            users, rows = _check.whole(n, "n", maximum=2**53), rows[None]
        else:
            raise ValueError(f"`total` must have one or two axes, got shape {rows.shape}")
        self._features(rows.shape[1])
        form = "linear" if self._with_residual else "logistic"
        deviations = summed_sigmas(noise, rows.shape[1]).tolist()
        about: Facts = {"laplace": isinstance(noise, LaplaceNoise), "names": names_of(x)}
        return RecordSums(form, tuple(deviations), users, tuple(exact_sums(rows)), **about)

    def _features(self, length: int) -> int:
        """Return d, of which released moments have this length: with y squared among them where answers are numbers."""
        squared = self._with_residual
        products = length + (not squared)
        d = (math.isqrt(8 * products + 1) - 3) // 2
        if d < 1 or (d + 1) * (d + 2) // 2 != products:
            rule = "C(d + 2, 2) = (d + 1) (d + 2) / 2" if squared else "C(d + 2, 2) - 1 = d + d (d + 1) / 2"
            raise ValueError(f"`total` must have {rule} entries for some d, got {length}")
        return d

    def _of_total(self, total: Floats, users: int, deviations: Floats) -> Records:
        raise NotImplementedError

    def _dimension(self, groups: Sequence[Group]) -> int:
        group = groups[0]
        assert isinstance(group, Records)
        return group.features

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        d = self._dimension(groups)
        residual = (Variable("residual_sd"),) if self._with_residual else ()
        covariance = Variable("covariance", (d, d), ("feature", "feature_other"))
        return Variable("coefficients", (d,), ("feature",)), *residual, covariance

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        d = self._dimension(groups)
        blocks = [self._scalar("coefficients", "real", Normal(0, 5**0.5))] * d
        if self._with_residual:
            blocks.append(self._scalar("residual_sd", "positive", HalfNormal(1)))
        return [*blocks, self._covariance(d)]

    def _scores(self, x: npt.ArrayLike) -> Floats:
        """Return the draws of the linear predictor, shape (n, draws)."""
        rows, draws = self._design(x), self._flat_draws("coefficients").T
        slopes, intercept = np.split(draws, [self.n_features_in_])
        return np.asarray(rows @ slopes + intercept.sum(axis=0))

    def _predictive(self, scores: Floats) -> Floats:
        """Return draws of what intervals are of, from draws of the linear predictor."""
        raise NotImplementedError

    def predict_interval(self, X: npt.ArrayLike, level: float = 0.95) -> Floats:
        """Return central posterior intervals: predictive ones of answers, or those of the probability of a one.

        {records}
        level : float
            The probability of an interval, in (0, 1).

        Returns
        -------
        ndarray, shape (n_samples, 2)
        """
        tail = (1 - _check.open_probability(level, "level")) / 2
        return np.quantile(self._predictive(self._scores(X)), [tail, 1 - tail], axis=1).T

    def _design(self, x: npt.ArrayLike) -> Floats:
        validation().check_is_fitted(self)
        _check.fits(x, "X")
        try:
            return np.asarray(validation().validate_data(self, x, reset=False, dtype=np.float64))
        except OverflowError as error:
            raise ValueError(f"`X` must be within the range of a double: {error}") from None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_posterior")

    def _set_fitted(self, posterior: PosteriorDraws) -> None:
        super()._set_fitted(posterior)
        coefficients = np.asarray(self.posterior_mean_["coefficients"])
        self.intercept_ = float(coefficients[-1]) if self.fit_intercept else 0.0
        self.coef_ = coefficients[:-1] if self.fit_intercept else coefficients
        self.n_features_in_ = len(self.coef_)

    def _flat_draws(self, name: str) -> Floats:
        draws = self.draws_[name]
        return draws.reshape(-1, *draws.shape[2:])

    def _simulate(self, rng: np.random.Generator, n: int) -> DataSet:
        """Return parameters drawn from their priors, and what n users of theirs release: x of two coordinates."""
        d = 2
        coefficients = self._prior("coefficients", Normal(0, 5**0.5))
        truth: dict[str, float | Floats] = {"coefficients": np.array([generated(coefficients, rng) for _ in range(d)])}
        if self._with_residual:
            truth["residual_sd"] = generated(self._prior("residual_sd", HalfNormal(1)), rng)
        truth["covariance"] = spread = covariance(d, *self._of_covariance(), rng)
        x = rng.multivariate_normal(np.zeros(d), spread, n, method="cholesky")
        score = x @ truth["coefficients"]
        y = self._respond(score, truth, rng)
        if self.kind == "statistics":
            moments = self._moments_of(x, y)
            noise, size = self._noise(None, None), moments.shape[1]
            if isinstance(noise, LaplaceNoise):
                told = noise.scale * (rng.standard_gamma(n, size) - rng.standard_gamma(n, size))
            else:
                told = np.sqrt(n) * sigmas(noise, size) * rng.normal(size=size)
            return truth, (moments.sum(axis=0) + told,), {"n": n}
        for_x, for_y = self._pair(self.mechanism, "mechanism")
        noise_x = noise_of(None, for_x, None, RECORDS, type(self).__name__)
        noisy_x = x + rng.normal(size=x.shape) * sigmas(noise_x, d)
        noise_y = noise_of(None, for_y, None, self._known_of_labels, type(self).__name__)
        return truth, (noisy_x, noisy(noise_y, y, rng)), {}

    def _respond(self, score: Floats, truth: dict[str, float | Floats], rng: np.random.Generator) -> Floats:
        raise NotImplementedError

    def _moments_of(self, x: Floats, y: Floats) -> Floats:
        raise NotImplementedError


@parameters
class LinearRegression(Regression, sklearn=("RegressorMixin",)):
    """Bayesian linear regression on noisy data.

    ``y ~ N(x . coefficients, residual_sd**2)`` with ``x ~ N(0, covariance)``.

    Parameters
    ----------
    mechanism : optional
        With ``kind="inputs"`` a pair of `GaussianMechanism`, for x and for y; with ``kind="statistics"`` one, whose
        sigma is per user and scaled coordinate, or a `LaplaceMechanism`; None for data without noise.
    kind : {"inputs", "statistics"}
        Whether users release (x, y) or the second moments that `statistics.linear` makes of them.
    noise_ratios : tuple of float
        As given to `statistics.linear`.
    {bounded}
    priors : dict, optional
        Of ``coefficients``, by default Normal(0, sqrt 5) each, ``residual_sd`` HalfNormal(1), ``scales`` of the inputs
        HalfNormal(2.5), their ``correlation`` LKJ(2).
    {settings}

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
        Posterior means of the coefficients.
    intercept_ : float
        That of the intercept, 0 without one.
    draws_, posterior_mean_, posterior_sd_ : dict
        By parameter: ``coefficients``, ``residual_sd``, ``covariance``.

    Notes
    -----
    A scikit-learn estimator. With ``kind="statistics"`` an intercept is a constant that the client appends to each
    record before the statistics. The sum of Laplace noise over n users is taken as normal, off by at most (ln n -
    psi(n)) / (2 pi) in its distribution function, psi the digamma function: fewer users than 1e-3 needs, 80 in each
    part, are refused. That clients clip x is not modelled: where the posterior puts more than 5 % of the
    records beyond the bound (of the mechanism's ball, or `x_bound`), the fit warns.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X @ [1.0, -0.5] + 0.1 * rng.normal(size=100)
    >>> model = LinearRegression(random_state=0, n_warmup=300, n_draws=500).fit(X, y)  # without noise
    >>> model.coef_.round(1).tolist()
    [1.0, -0.5]
    """

    _with_residual = True
    _ratios = "noise_ratios"
    _known_of_labels = RECORDS
    _prior_names = ("coefficients", "residual_sd", "scales", "correlation")

    noise_ratios: tuple[float, float] = (1.0, 1.0)

    def _inputs(self, x: Floats, y: Floats, noise: tuple[float, ...], for_y: Noise | None) -> Records:
        joint = np.column_stack([x, y])
        scatter = np.ascontiguousarray(joint.T @ joint)
        return LinearInputs(scatter, float(len(x)), (*noise, single_sigma(for_y) ** 2))

    def _respond(self, score: Floats, truth: dict[str, float | Floats], rng: np.random.Generator) -> Floats:
        return np.asarray(score + truth["residual_sd"] * rng.normal(size=score.shape))

    def _moments_of(self, x: Floats, y: Floats) -> Floats:
        return _of_linear(x, y, *self.noise_ratios)

    def _of_total(self, total: Floats, users: int, deviations: Floats) -> Records:
        d = self._features(total.size)
        first, second = _pair(self.noise_ratios)
        size = d * (d + 1) // 2
        blocks = deviations[:size], deviations[size : size + d], deviations[size + d :]
        names = ("product of x and x", "product of x and y", "square of y")
        sigma, of_cross, of_square = (one_of(part, name) for part, name in zip(blocks, names, strict=True))
        joint = np.empty((d + 1, d + 1))
        joint[:d, :d] = smat(total[:size])
        cross, square = total[size : size + d], float(total[-1])
        if sigma == 0:
            joint[:d, d] = joint[d, :d] = cross / np.sqrt(first)
            joint[d, d] = square / np.sqrt(second)
            return LinearInputs(joint, float(users), (0.0,) * (d + 1))
        # Noise in other proportions is that of other ratios, on moments in other units.
        wider, widest = sigma / of_cross, sigma / of_square
        cross, first, square, second = cross * wider, first * wider**2, square * widest, second * widest**2
        # y in units of sqrt(2 / first): then its products with x have the weight of svec.
        joint[:d, d] = joint[d, :d] = cross / np.sqrt(2)
        joint[d, d] = square * first / 2 / np.sqrt(second)
        log_jacobian = d * math.log(wider) + math.log(widest)
        return LinearStatistics(joint, float(users), sigma * sigma, (first, second), offset=log_jacobian)

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return the posterior means of answers.

        {predicted}
        """
        rows = self._design(X)
        return np.asarray(rows @ self.coef_ + self.intercept_)

    def _predictive(self, scores: Floats) -> Floats:
        return scores + np.random.default_rng(0).normal(size=scores.shape) * self._flat_draws("residual_sd")

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the coefficient of determination of predictions.

        {scored}
        """
        _check.fits(y, "y")
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


@parameters
class LogisticRegression(Regression, sklearn=("ClassifierMixin",)):
    """Bayesian logistic regression on noisy data.

    ``P(y = 1) = sigmoid(x . coefficients)`` with ``x ~ N(0, covariance)``.

    Parameters
    ----------
    mechanism : optional
        With ``kind="inputs"`` a pair, a `GaussianMechanism` for x and `RandomizedResponse` for y; with
        ``kind="statistics"`` one `GaussianMechanism`, or a `LaplaceMechanism` and 80 users or more (`LinearRegression`
        says why); None for data without noise.
    kind : {"inputs", "statistics"}
        Whether users release (x, y) or the moments that `statistics.logistic` makes of them.
    noise_ratio : float
        As given to `statistics.logistic`.
    {bounded}
    priors : dict, optional
        Of ``coefficients``, by default Normal(0, sqrt 5) each, ``scales`` of the inputs HalfNormal(2.5), their
        ``correlation`` LKJ(2).
    {settings}

    Notes
    -----
    The logistic-normal integrals and moments are exact to 1e-12; no polynomial stands for the sigmoid.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = (rng.random(100) < 1 / (1 + np.exp(-X @ [2.0, -1.0]))).astype(int)
    >>> model = LogisticRegression(random_state=0, n_warmup=300, n_draws=500).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    _with_residual = False
    _ratios = "noise_ratio"
    _known_of_labels: ClassVar[Known] = {RandomizedResponseNoise: ("flip", "categories")}
    _prior_names = ("coefficients", "scales", "correlation")

    noise_ratio: float = 1.0

    PUBLISHED: ClassVar = Regression.PUBLISHED | {"classes_": "released"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _answers(
        self, y: npt.ArrayLike, for_y: Noise | None, rows: Floats, known: Array | None = None
    ) -> tuple[Floats, Array | None]:
        declared = for_y.declared if isinstance(for_y, RandomizedResponseNoise) else Categories(2)
        classes = declared.decode(np.arange(2))
        if not isinstance(y, Release):
            y = column = _column(y)
            if column.dtype.kind == "f":
                _check.reals(y, "y")
            if for_y is None and len(column):
                require("sklearn.utils.multiclass", "sklearn").check_classification_targets(column)
                found = np.unique(column)
                if known is not None and np.isin(found, known).all():
                    classes, y = known, np.searchsorted(known, column)
                elif not np.isin(found, classes).all():
                    if len(found) != 2:
                        raise ValueError(
                            "Only binary classification is supported. `y` must have the labels 0 and 1, or two others, "
                            f"got {len(found)} class" + ("es" if len(found) > 1 else "")
                        )
                    classes, y = np.unique(column, return_inverse=True)
        labels = declared.encode(y, "y").astype(float)
        if labels.shape != (len(rows),):
            raise ValueError(f"`y` must have shape ({len(rows)},), got {labels.shape}")
        return labels, classes

    def _inputs(self, x: Floats, y: Floats, noise: tuple[float, ...], for_y: Noise | None) -> Records:
        return LogisticInputs(
            x, y, noise, for_y.keep_probability if isinstance(for_y, RandomizedResponseNoise) else 1.0
        )

    def _respond(self, score: Floats, truth: dict[str, float | Floats], rng: np.random.Generator) -> Floats:
        return (rng.random(score.shape) < _sigmoid(score)).astype(float)

    def _moments_of(self, x: Floats, y: Floats) -> Floats:
        return _of_logistic(x, y, self.noise_ratio)

    def _set_fitted(self, posterior: PosteriorDraws) -> None:
        super()._set_fitted(posterior)
        self.classes_ = np.array([0, 1])

    def _problem_to_archive(self) -> tuple[Facts, Arrays]:
        facts, arrays = super()._problem_to_archive()
        return facts, arrays | {"classes": np.asarray(self.classes_.tolist())}

    def _restore(self, header: Facts, arrays: Mapping[str, Array], runs: list[Run]) -> None:
        super()._restore(header, arrays, runs)
        self.classes_ = arrays["classes"]

    def _of_total(self, total: Floats, users: int, deviations: Floats) -> Records:
        d = self._features(total.size)
        blocks = (deviations[:d], "product of x and y"), (deviations[d:], "product of x and x")
        of_cross, of_squares = (one_of(*block) for block in blocks)
        if of_cross == 0:
            raise ValueError('`mechanism` must be given with kind="statistics": labels have no sufficient statistics')
        ratio = _ratio(self.noise_ratio, "noise_ratio")
        second = np.ascontiguousarray(smat(total[d:]) / np.sqrt(ratio))
        noise = of_cross**2, of_squares**2 / ratio
        # The core takes the units of x x' to be those in which all moments have one deviation.
        log_jacobian = (total.size - d) * math.log(of_cross / of_squares)
        return LogisticStatistics(np.ascontiguousarray(total[:d]), second, float(users), noise, offset=log_jacobian)

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the posterior means of the probabilities of both labels.

        {records}

        Returns
        -------
        ndarray, shape (n_samples, 2)
        """
        ones = _sigmoid(self._scores(X)).mean(axis=1)
        return np.column_stack([1 - ones, ones])

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the more probable labels.

        {predicted}
        """
        ones = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[ones.astype(np.int64)])

    def _predictive(self, scores: Floats) -> Floats:
        return _sigmoid(scores)

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the share of labels that are predicted.

        {scored}
        """
        _check.fits(y, "y")
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


def _with_summaries(x: object) -> bool:
    """Whether there is a summary, or a list with summaries in it."""
    return any(isinstance(part, Summary) for part in (x if isinstance(x, (list, tuple)) else [x]))


def _column(y: npt.ArrayLike) -> Array:
    """Return answers as scikit-learn reads them."""
    _check.fits(y, "y")
    return np.asarray(validation().column_or_1d(y, warn=True))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))
