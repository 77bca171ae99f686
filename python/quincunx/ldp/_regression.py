"""Linear and logistic regression from noisy records or noisy second moments."""

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats, Variable
from quincunx._progress import Progress
from quincunx._rng import RandomSource
from quincunx.ldp._model import PrivateModel
from quincunx.ldp._noise import noise_of, sigmas, single_sigma
from quincunx.ldp._problem import Block, Part
from quincunx.ldp.priors import LKJ, HalfNormal, Normal, Prior
from quincunx.ldp.statistics import smat
from quincunx.privacy import Release


class Regression(PrivateModel):
    """What both regressions share."""

    _estimator_type: ClassVar[str]
    _with_residual: ClassVar[bool]
    _label_mechanisms: ClassVar[tuple[str, ...]]
    _mechanisms = ("gaussian",)

    def __init__(
        self,
        mechanism: Any = None,
        *,
        kind: str = "inputs",
        priors: Mapping[str, Prior] | None = None,
        inference: str = "auto",
        n_chains: int = 4,
        n_warmup: int = 1000,
        n_draws: int = 1000,
        target_accept: float = 0.9,
        max_depth: int = 10,
        random_state: RandomSource = None,
        threads: int | None = None,
        warm_start: bool = False,
        progress: Progress = False,
    ) -> None:
        super().__init__(
            mechanism,
            priors=priors,
            inference=inference,
            n_chains=n_chains,
            n_warmup=n_warmup,
            n_draws=n_draws,
            target_accept=target_accept,
            max_depth=max_depth,
            random_state=random_state,
            threads=threads,
            warm_start=warm_start,
            progress=progress,
        )
        self.kind = kind

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        n: int | None = None,
        mechanism: Any = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior.

        Parameters
        ----------
        x : Release, array_like or list of Release
            With ``kind="inputs"`` the noisy records, shape (n, d); with ``kind="statistics"`` the sum of the noisy
            statistics of all users, or a Release (or array of two axes) with a row for each user, which is summed.
        y : Release or array_like, optional
            With ``kind="inputs"`` the noisy answers, shape (n,).
        n : int, optional
            With a sum: the number of users.
        mechanism : optional
            With ``kind="inputs"`` a pair, for x and for y.
        executor : concurrent.futures.Executor, optional
            Where each chain is one task.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not what it should be.
        """
        parts = self._data(x, y, n, mechanism)
        self._fit(parts, executor)
        self.n_features_in_ = self._dimension(parts)
        return self

    def log_likelihood(
        self,
        x: Any,
        y: Any = None,
        *,
        n: int | None = None,
        gradient: bool = False,
        mechanism: Any = None,
        **parameters: Any,
    ) -> Any:
        """Return the log-likelihood; no fit is needed.

        Parameters
        ----------
        x, y, n, mechanism
            As in `fit`.
        gradient : bool
            Whether derivatives are wanted too; that by the covariance S is the symmetric G of ``tr(G dS)``.
        **parameters : array_like
            By name.

        Returns
        -------
        float, or (float, dict)
            The total; with `gradient`, its derivatives too.
        """
        return self._log_likelihood(self._data(x, y, n, mechanism), gradient, parameters)

    def _data(self, x: Any, y: Any, n: int | None, mechanism: Any) -> list[Part]:
        if _check.one_of(self.kind, "kind", ("inputs", "statistics")) == "inputs":
            if y is None:
                raise TypeError('`y` must be given with kind="inputs"')
            given = self._pair(mechanism, "mechanism")
            own = self._pair(self.mechanism, "mechanism")
            name = type(self).__name__
            for_x = noise_of(x, given[0], own[0], ("gaussian",), f"the records of {name}")
            for_y = noise_of(y, given[1], own[1], self._label_mechanisms, f"the answers of {name}")
            rows = np.ascontiguousarray(_check.reals(x, "x"))
            if rows.ndim != 2 or rows.shape[1] == 0:
                raise ValueError(f"`x` must have shape (n, d), got {rows.shape}")
            answers = np.ascontiguousarray(_check.reals(y, "y"))
            if answers.shape != (len(rows),):
                raise ValueError(f"`y` must have shape ({len(rows)},), got {answers.shape}")
            return [self._inputs(rows, answers, for_x, for_y)]
        several = x if isinstance(x, list) and x and all(isinstance(part, Release) for part in x) else [x]
        return [self._statistics(part, n, mechanism) for part in several]

    def _pair(self, mechanism: Any, name: str) -> tuple[Any, Any]:
        if mechanism is None:
            return None, None
        if not isinstance(mechanism, (tuple, list)) or len(mechanism) != 2:
            raise TypeError(f'`{name}` must be a pair with kind="inputs": for x and for y')
        return mechanism[0], mechanism[1]

    def _inputs(self, x: Floats, y: Floats, for_x: Any, for_y: Any) -> Part:
        raise NotImplementedError

    def _moments(self, x: Any, n: int | None, mechanism: Any, extra: int) -> tuple[Floats, int, int, float]:
        """Return the sum, the number of users, d and sigma; `extra` is 2 where y squared is among the statistics."""
        noise = self._noise(x, mechanism)
        total = _check.reals(x, "total")
        if total.ndim == 2:
            if n is not None and n != len(total):
                raise ValueError(f"`n` must be {len(total)}, the number of rows, got {n}")
            users, total = len(total), total.sum(axis=0)
        elif total.ndim == 1:
            if n is None:
                raise TypeError("`n`, the number of users, must be given with a sum")
            users = _check.whole(n, "n")
        else:
            raise ValueError(f"`total` must have one or two axes, got shape {total.shape}")
        length = total.size
        sizes = ((d + 1) * (d + 2) // 2 if extra == 2 else d + d * (d + 1) // 2 for d in range(1, 2000))
        d = next((d for d, size in enumerate(sizes, 1) if size >= length), 0)
        right = (d + 1) * (d + 2) // 2 if extra == 2 else d + d * (d + 1) // 2
        if not d or right != length:
            rule = "C(d + 2, 2) = (d + 1) (d + 2) / 2" if extra == 2 else "C(d + 2, 2) - 1 = d + d (d + 1) / 2"
            raise ValueError(f"`total` must have {rule} entries for some d, got {length}")
        return total, users, d, single_sigma(noise)

    def _statistics(self, x: Any, n: int | None, mechanism: Any) -> Part:
        raise NotImplementedError

    def _dimension(self, parts: list[Part]) -> int:
        raise NotImplementedError

    def _variables(self, parts: list[Part]) -> tuple[Variable, ...]:
        d = self._dimension(parts)
        residual = (Variable("residual_sd"),) if self._with_residual else ()
        covariance = Variable("covariance", (d, d), ("feature", "feature_other"))
        return Variable("coefficients", (d,), ("feature",)), *residual, covariance

    def _blocks(self, parts: list[Part]) -> list[Block]:
        d = self._dimension(parts)
        blocks = [self._scalar("coefficients", "real", Normal(0, 5**0.5))] * d
        if self._with_residual:
            blocks.append(self._scalar("residual_sd", "positive", HalfNormal(1)))
        scales, correlation = self._prior("scales", HalfNormal(2.5)), self._prior("correlation", LKJ(2))
        if scales.kind not in ("half-normal", "gamma"):
            raise ValueError(f"`priors['scales']` must be a HalfNormal or a Gamma, got {scales!r}")
        if correlation.kind != "lkj":
            raise ValueError(f"`priors['correlation']` must be an LKJ, got {correlation!r}")
        return [*blocks, ("covariance", scales.kind, [float(d), *correlation.numbers, *scales.numbers])]

    def _design(self, x: npt.ArrayLike) -> Floats:
        self._fitted()
        rows = _check.reals(x, "X")
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(f"`X` must have shape (n, {self.n_features_in_}), got {rows.shape}")
        return rows

    def _set_fitted(self, posterior: Any) -> None:
        super()._set_fitted(posterior)
        self.coef_ = np.asarray(self.posterior_mean_["coefficients"])
        self.n_features_in_ = len(self.coef_)

    def _flat_draws(self, name: str) -> Floats:
        draws = self.draws_[name]
        return draws.reshape(-1, *draws.shape[2:])


class LinearRegression(Regression):
    """Bayesian linear regression on noisy data.

    ``y ~ N(x . coefficients, residual_sd**2)`` with ``x ~ N(0, covariance)``.

    Parameters
    ----------
    mechanism : optional
        With ``kind="inputs"`` a pair of `GaussianMechanism`, for x and for y; with ``kind="statistics"`` one, whose
        sigma is per user and scaled coordinate; None for data without noise.
    kind : {"inputs", "statistics"}
        Whether users tell (x, y) or the second moments that `statistics.linear` makes of them.
    noise_ratios : tuple of float
        As given to `statistics.linear`.
    priors : dict, optional
        Of ``coefficients``, by default Normal(0, sqrt 5) each, ``residual_sd`` HalfNormal(1), ``scales`` of the inputs
        HalfNormal(2.5), their ``correlation`` LKJ(2).
    inference, n_chains, n_warmup, n_draws, target_accept, max_depth, random_state, threads, warm_start, progress
        As in `GaussianModel`.

    Notes
    -----
    There is no intercept: centre the data by public constants. That the client clips x is not modelled; keep few
    records outside the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X @ [1.0, -0.5] + 0.1 * rng.normal(size=500)
    >>> model = LinearRegression(random_state=0, n_warmup=500).fit(X, y)  # without noise: the ordinary posterior
    >>> model.coef_.round(1).tolist()
    [1.0, -0.5]
    """

    _estimator_type = "regressor"
    _with_residual = True
    _label_mechanisms = ("gaussian",)
    _prior_names = ("coefficients", "residual_sd", "scales", "correlation")

    def __init__(
        self,
        mechanism: Any = None,
        *,
        kind: str = "inputs",
        noise_ratios: tuple[float, float] = (1.0, 1.0),
        priors: Mapping[str, Prior] | None = None,
        inference: str = "auto",
        n_chains: int = 4,
        n_warmup: int = 1000,
        n_draws: int = 1000,
        target_accept: float = 0.9,
        max_depth: int = 10,
        random_state: RandomSource = None,
        threads: int | None = None,
        warm_start: bool = False,
        progress: Progress = False,
    ) -> None:
        super().__init__(
            mechanism,
            kind=kind,
            priors=priors,
            inference=inference,
            n_chains=n_chains,
            n_warmup=n_warmup,
            n_draws=n_draws,
            target_accept=target_accept,
            max_depth=max_depth,
            random_state=random_state,
            threads=threads,
            warm_start=warm_start,
            progress=progress,
        )
        self.noise_ratios = noise_ratios

    def _inputs(self, x: Floats, y: Floats, for_x: Any, for_y: Any) -> Part:
        joint = np.column_stack([x, y])
        noise = [s * s for s in (*sigmas(for_x, x.shape[1]), single_sigma(for_y))]
        return "linear_inputs", (np.ascontiguousarray(joint.T @ joint), float(len(x)), noise)

    def _statistics(self, x: Any, n: int | None, mechanism: Any) -> Part:
        total, users, d, sigma = self._moments(x, n, mechanism, 2)
        first, second = (_check.real(ratio, "noise_ratios", positive=True) for ratio in self.noise_ratios)
        size = d * (d + 1) // 2
        joint = np.empty((d + 1, d + 1))
        joint[:d, :d] = smat(total[:size])
        cross, square = total[size : size + d], float(total[-1])
        if sigma == 0:
            joint[:d, d] = joint[d, :d] = cross / np.sqrt(first)
            joint[d, d] = square / np.sqrt(second)
            return "linear_inputs", (joint, float(users), [0.0] * (d + 1))
        # y in units of sqrt(2 / first): then its products with x have the weight of svec.
        joint[:d, d] = joint[d, :d] = cross / np.sqrt(2)
        joint[d, d] = square * first / 2 / np.sqrt(second)
        return "linear_statistics", (joint, float(users), sigma * sigma, (first, second))

    def _dimension(self, parts: list[Part]) -> int:
        return len(parts[0][1][0]) - 1

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return the posterior means of answers.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.

        Returns
        -------
        ndarray, shape (n,)
        """
        return np.asarray(self._design(X) @ self.coef_)

    def predict_interval(self, X: npt.ArrayLike, level: float = 0.95) -> Floats:
        """Return central posterior predictive intervals of answers.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.
        level : float
            The probability of an interval, in (0, 1).

        Returns
        -------
        ndarray, shape (n, 2)
        """
        rows = self._design(X)
        tail = (1 - _level(level)) / 2
        means = rows @ self._flat_draws("coefficients").T
        noise = np.random.default_rng(0).normal(size=means.shape) * self._flat_draws("residual_sd")
        return np.quantile(means + noise, [tail, 1 - tail], axis=1).T

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the coefficient of determination of predictions.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records without noise.
        y : array_like, shape (n,)
            Answers without noise.

        Returns
        -------
        float
        """
        truth = _check.reals(y, "y")
        residual = truth - self.predict(X)
        return float(1 - np.sum(residual**2) / np.sum((truth - truth.mean()) ** 2))


class LogisticRegression(Regression):
    """Bayesian logistic regression on noisy data.

    ``P(y = 1) = sigmoid(x . coefficients)`` with ``x ~ N(0, covariance)``.

    Parameters
    ----------
    mechanism : optional
        With ``kind="inputs"`` a pair, a `GaussianMechanism` for x and `RandomizedResponse` for y; with
        ``kind="statistics"`` one `GaussianMechanism`; None for data without noise.
    kind : {"inputs", "statistics"}
        Whether users tell (x, y) or the moments that `statistics.logistic` makes of them.
    noise_ratio : float
        As given to `statistics.logistic`.
    priors : dict, optional
        Of ``coefficients``, by default Normal(0, sqrt 5) each, ``scales`` of the inputs HalfNormal(2.5), their
        ``correlation`` LKJ(2).
    inference, n_chains, n_warmup, n_draws, target_accept, max_depth, random_state, threads, warm_start, progress
        As in `GaussianModel`.

    Notes
    -----
    The logistic-normal integrals and moments are exact to rounding; no polynomial stands for the sigmoid.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (rng.random(400) < 1 / (1 + np.exp(-X @ [2.0, -1.0]))).astype(int)
    >>> model = LogisticRegression(random_state=0, n_warmup=500).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    _estimator_type = "classifier"
    _with_residual = False
    _label_mechanisms = ("randomized-response",)
    _prior_names = ("coefficients", "scales", "correlation")

    def __init__(
        self,
        mechanism: Any = None,
        *,
        kind: str = "inputs",
        noise_ratio: float = 1.0,
        priors: Mapping[str, Prior] | None = None,
        inference: str = "auto",
        n_chains: int = 4,
        n_warmup: int = 1000,
        n_draws: int = 1000,
        target_accept: float = 0.9,
        max_depth: int = 10,
        random_state: RandomSource = None,
        threads: int | None = None,
        warm_start: bool = False,
        progress: Progress = False,
    ) -> None:
        super().__init__(
            mechanism,
            kind=kind,
            priors=priors,
            inference=inference,
            n_chains=n_chains,
            n_warmup=n_warmup,
            n_draws=n_draws,
            target_accept=target_accept,
            max_depth=max_depth,
            random_state=random_state,
            threads=threads,
            warm_start=warm_start,
            progress=progress,
        )
        self.noise_ratio = noise_ratio

    @property
    def classes_(self) -> npt.NDArray[np.int64]:
        """The labels."""
        return np.array([0, 1])

    def _inputs(self, x: Floats, y: Floats, for_x: Any, for_y: Any) -> Part:
        labels = _check.categories(y, "y", 2).astype(float)
        noise = [s * s for s in sigmas(for_x, x.shape[1])]
        return "logistic_inputs", (x, labels, noise, 1.0 if for_y is None else float(for_y[1]["keep"]))

    def _statistics(self, x: Any, n: int | None, mechanism: Any) -> Part:
        total, users, d, sigma = self._moments(x, n, mechanism, 1)
        if sigma == 0:
            raise ValueError('`mechanism` must be given with kind="statistics": labels have no sufficient statistics')
        ratio = _check.real(self.noise_ratio, "noise_ratio", positive=True)
        second = np.ascontiguousarray(smat(total[d:]) / np.sqrt(ratio))
        return "logistic_statistics", (
            np.ascontiguousarray(total[:d]),
            second,
            float(users),
            [sigma**2, sigma**2 / ratio],
        )

    def _dimension(self, parts: list[Part]) -> int:
        name, arguments = parts[0]
        return int(arguments[0].shape[1] if name == "logistic_inputs" else len(arguments[0]))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the posterior means of the probabilities of both labels.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.

        Returns
        -------
        ndarray, shape (n, 2)
        """
        ones = _sigmoid(self._design(X) @ self._flat_draws("coefficients").T).mean(axis=1)
        return np.column_stack([1 - ones, ones])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the more probable labels.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)

    def predict_interval(self, X: npt.ArrayLike, level: float = 0.95) -> Floats:
        """Return central posterior intervals of the probability of a one.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.
        level : float
            The probability of an interval, in (0, 1).

        Returns
        -------
        ndarray, shape (n, 2)
        """
        tail = (1 - _level(level)) / 2
        chances = _sigmoid(self._design(X) @ self._flat_draws("coefficients").T)
        return np.quantile(chances, [tail, 1 - tail], axis=1).T

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the share of labels that are predicted.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records without noise.
        y : array_like, shape (n,)
            Labels without noise.

        Returns
        -------
        float
        """
        return float(np.mean(self.predict(X) == _check.categories(y, "y", 2)))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _level(level: float) -> float:
    found = _check.real(level, "level")
    if not 0 < found < 1:
        raise ValueError(f"`level` must be in (0, 1), got {found}")
    return found
