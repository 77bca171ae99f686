"""Stochastic gradient descent under local privacy: the baseline that every user serves once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats, Parametrized, parameters
from quincunx._rng import RandomSource, generator
from quincunx._sklearn import estimator_doc
from quincunx.privacy import GaussianMechanism

#: The learning rates that `tune` tries: two for each power of ten about 1. More would cost as many more runs.
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@estimator_doc
@parameters
class LDPSGD(Parametrized):
    """Linear or logistic regression by noisy gradients, one per user, in groups.

    Each group of users gets the weights, clips its gradients to norm 1, releases them with normal noise, and the
    server takes a step along their mean.

    Parameters
    ----------
    task : {"linear", "logistic"}
        The loss: squared error, or log-loss with labels 0 and 1.
    epsilon : float
        Of each user's release, > 0.
    delta : float
        In (0, 1).
    group_factor : float
        A group has ``group_factor d log(d) / epsilon**2`` users, at least 1.
    learning_rate : float
        The j-th step has ``learning_rate / sqrt(j)``; `tune` chooses it on public data.
    random_state : int, Generator or None
        Seeds the order in which users are served, which is public; it has no part in the noise.
    insecure_seed : int, optional
        Makes the noise repeatable, for tests: what is released with it protects nobody.

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
        The weights.
    n_groups_ : int
        Rounds of interaction.
    n_messages_ : int
        Uploads and downloads.
    tuned_losses_ : dict
        After `tune`: the mean loss by learning rate.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LDPSGD
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> LDPSGD("linear", epsilon=2.0, insecure_seed=1, random_state=0).fit(X, X @ [1.0, 0.0]).coef_.shape
    (2,)
    """

    PUBLISHED: ClassVar[dict[str, str]] = {  # as for `PosteriorEstimator`
        "coef_": "noise",
        "n_features_in_": "shape",
        "n_groups_": "shape",
        "n_messages_": "shape",
        "tuned_losses_": "declared",  # of public records
    }

    task: str = field(default="linear", kw_only=False)
    epsilon: float = 1.0
    delta: float = 1e-5
    group_factor: float = 1.0
    learning_rate: float = 1.0
    random_state: RandomSource = None
    insecure_seed: int | None = None

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Run the protocol on private records, here on one machine.

        {private}

        {fitted}
        """
        task, rows, answers = self._data(X, y)
        n, d = rows.shape
        rate = _check.real(self.learning_rate, "learning_rate", positive=True)
        mechanism = GaussianMechanism(self._level(), self.delta, radius=1.0, dimension=d)
        group = self._group(n, d)
        first = None if self.insecure_seed is None else _check.whole(self.insecure_seed, "insecure_seed")

        def release(step: int, gradients: Floats) -> Floats:
            # No two seeds share the noise of a step: what is repeated with 0, 1, 2, ... is independent.
            seed = None if first is None else (first << 32) + step
            return np.asarray(mechanism.release(gradients, insecure_seed=seed))

        weights = self._descend(task, rows, answers, rate, group, release)
        self.coef_, self._task = weights, task
        self.n_features_in_ = d
        self.n_groups_ = -(-n // group)
        self.n_messages_ = 2 * n - group
        return self

    def tune(self, X: npt.ArrayLike, y: npt.ArrayLike, rates: Sequence[float] = RATES, *, n_repeats: int = 10) -> Self:
        """Choose the learning rate on public records, by the protocol with its noise.

        Tuned on private records a rate is one more release, which the guarantee does not cover; tuned without the noise
        it is too large by far.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Public records.
        y : array_like, shape (n,)
            Their answers.
        rates : sequence of float
            The candidates, > 0.
        n_repeats : int
            Runs of each, of which the losses are averaged.

        Returns
        -------
        self
            With the `learning_rate` of the least mean loss, and the losses in `tuned_losses_`.

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not what it should be.
        """
        task, rows, answers = self._data(X, y)
        candidates = [_check.real(rate, "rates", positive=True) for rate in rates]
        if not candidates:
            raise ValueError("`rates` must hold at least one rate, got none")
        number = _check.whole(n_repeats, "n_repeats", minimum=1)
        n, d = rows.shape
        sigma = GaussianMechanism(self._level(), self.delta, radius=1.0, dimension=d).sigma
        losses = {}
        for rate in candidates:
            rng, runs = np.random.default_rng(0), []  # the same noise for every rate; it need not protect

            def release(_: int, gradients: Floats, rng: np.random.Generator = rng) -> Floats:
                return np.asarray(gradients + sigma * rng.normal(size=gradients.shape))

            for _ in range(number):
                weights = self._descend(task, rows, answers, rate, self._group(n, d), release)
                runs.append(float(np.mean(_losses(task, rows @ weights, answers))))
            losses[rate] = float(np.nan_to_num(np.mean(runs), nan=np.inf, posinf=np.inf))  # of weights that are none
        best = min(losses, key=losses.__getitem__)
        if not losses[best] < np.inf:
            raise ValueError(f"`rates` must hold one of a finite loss, got the losses {losses}")
        self.learning_rate = best
        self.tuned_losses_ = losses
        return self

    def _data(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[str, Floats, Floats]:
        task = _check.one_of(self.task, "task", ("linear", "logistic"))
        rows = _check.reals(X, "X")
        if rows.ndim != 2 or rows.shape[1] == 0 or len(rows) == 0:
            raise ValueError(f"`X` must have shape (n, d), got {rows.shape}")
        answers = _check.reals(y, "y") if task == "linear" else 2.0 * _check.categories(y, "y", 2) - 1
        if answers.shape != (len(rows),):
            raise ValueError(f"`y` must have shape ({len(rows)},), got {answers.shape}")
        return task, rows, answers

    def _level(self) -> float:
        return _check.real(self.epsilon, "epsilon", positive=True)

    def _group(self, n: int, d: int) -> int:
        factor = _check.real(self.group_factor, "group_factor", positive=True)
        size = factor * d * math.log(d) / self._level() / self._level()  # the square of a level may be no double
        return int(max(math.ceil(min(size, n)), 1))

    def _descend(
        self,
        task: str,
        rows: Floats,
        answers: Floats,
        rate: float,
        group: int,
        release: Callable[[int, Floats], Floats],
    ) -> Floats:
        """Serve each user once, group by group."""
        order = generator(self.random_state, "random_state").permutation(len(rows))
        weights = np.zeros(rows.shape[1])
        for step, start in enumerate(range(0, len(rows), group), 1):
            users = order[start : start + group]
            gradients = release(step, _gradients(task, weights, rows[users], answers[users]))
            weights = weights - rate / math.sqrt(step) * gradients.mean(axis=0)
        return weights

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return answers, or labels.

        {predicted}
        """
        if not hasattr(self, "coef_"):
            raise ValueError("this LDPSGD is not fitted yet: call `fit` first")
        rows = _check.reals(X, "X")
        if rows.ndim != 2 or rows.shape[1] != len(self.coef_):
            raise ValueError(f"`X` must have shape (n, {len(self.coef_)}), got {rows.shape}")
        scores = np.asarray(rows @ self.coef_)
        return scores if self._task == "linear" else (scores > 0).astype(np.int64)


def _losses(task: str, scores: Floats, y: Floats) -> Floats:
    """Return the loss of each record."""
    return np.asarray(0.5 * (scores - y) ** 2 if task == "linear" else np.logaddexp(0, -y * scores))


def _gradients(task: str, weights: Floats, x: Floats, y: Floats) -> Floats:
    """Return the gradient of each record's loss, clipped to norm 1, of records of any size.

    It is a number times x, so what may overflow is only how long it is, and that does not matter beyond 1.
    """
    largest = np.abs(x).max(axis=1)
    scaled = x / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.where(largest > 0, np.linalg.norm(scaled, axis=1), 1.0)
    units = scaled / lengths[:, None]
    with np.errstate(over="ignore"):
        norms = np.minimum(lengths * largest, np.finfo(np.float64).max)
        scores = units @ weights * norms
        slopes = scores - y if task == "linear" else -y * 0.5 * (1 - np.tanh(0.5 * y * scores))
        return np.asarray(units * np.clip(slopes * norms, -1.0, 1.0)[:, None])
