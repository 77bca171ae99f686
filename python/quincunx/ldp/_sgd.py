"""Stochastic gradient descent under local privacy: the baseline that every user serves once."""

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats
from quincunx.privacy import GaussianMechanism


class LDPSGD:
    """Linear or logistic regression by noisy gradients, one per user, in groups.

    Each group of users gets the weights, clips its gradients to norm 1, tells them with normal noise, and the server
    takes a step along their mean.

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
        The j-th step has ``learning_rate / sqrt(j)``.
    random_state : int or None
        Seeds the public order of the users.
    insecure_seed : int, optional
        Makes the noise repeatable, for tests.

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
        The weights.
    n_groups_ : int
        Rounds of interaction.
    n_messages_ : int
        Uploads and downloads.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import LDPSGD
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> LDPSGD("linear", epsilon=2.0, insecure_seed=1, random_state=0).fit(X, X @ [1.0, 0.0]).coef_.shape
    (2,)
    """

    def __init__(
        self,
        task: str = "linear",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        group_factor: float = 1.0,
        learning_rate: float = 1.0,
        random_state: int | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.task = task
        self.epsilon = epsilon
        self.delta = delta
        self.group_factor = group_factor
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor by name.

        Parameters
        ----------
        deep : bool
            Not used; there is nothing below.

        Returns
        -------
        dict
        """
        names = ("task", "epsilon", "delta", "group_factor", "learning_rate", "random_state", "insecure_seed")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor by name.

        Parameters
        ----------
        **parameters
            New values.

        Returns
        -------
        LDPSGD
            Itself.

        Raises
        ------
        ValueError
            If a name is not that of a parameter.
        """
        for name, value in parameters.items():
            if name not in self.get_params():
                raise ValueError(f"`{name}` must be one of {list(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Run the protocol on private records, here on one machine.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Private records.
        y : array_like, shape (n,)
            Private answers.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not what it should be.
        """
        task = _check.one_of(self.task, "task", ("linear", "logistic"))
        rows = _check.reals(X, "X")
        if rows.ndim != 2 or rows.shape[1] == 0 or len(rows) == 0:
            raise ValueError(f"`X` must have shape (n, d), got {rows.shape}")
        n, d = rows.shape
        answers = _check.reals(y, "y") if task == "linear" else 2.0 * _check.categories(y, "y", 2) - 1
        if answers.shape != (n,):
            raise ValueError(f"`y` must have shape ({n},), got {answers.shape}")
        level = _check.real(self.epsilon, "epsilon", positive=True)
        rate = _check.real(self.learning_rate, "learning_rate", positive=True)
        factor = _check.real(self.group_factor, "group_factor", positive=True)
        mechanism = GaussianMechanism(level, self.delta, radius=1.0, dimension=d)
        group = int(min(max(math.ceil(factor * d * math.log(d) / level**2), 1), n))
        order = np.random.default_rng(self.random_state).permutation(n)
        weights = np.zeros(d)
        starts = range(0, n, group)
        for step, start in enumerate(starts, 1):
            users = order[start : start + group]
            told = mechanism.release(
                _gradients(task, weights, rows[users], answers[users]),
                insecure_seed=None if self.insecure_seed is None else self.insecure_seed + step,
            )
            weights = weights - rate / math.sqrt(step) * np.asarray(told).mean(axis=0)
        self.coef_ = weights
        self.n_features_in_ = d
        self.n_groups_ = len(starts)
        self.n_messages_ = 2 * n - group
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return answers, or labels.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Records.

        Returns
        -------
        ndarray, shape (n,)
        """
        if not hasattr(self, "coef_"):
            raise ValueError("this LDPSGD is not fitted yet: call `fit` first")
        scores = np.asarray(_check.reals(X, "X") @ self.coef_)
        return scores if self.task == "linear" else (scores > 0).astype(np.int64)


def _gradients(task: str, weights: Floats, x: Floats, y: Floats) -> Floats:
    """Return the gradient of each record's loss, clipped to norm 1."""
    scores = x @ weights
    if task == "linear":
        gradients = (scores - y)[:, None] * x
    else:
        gradients = (-y * 0.5 * (1 - np.tanh(0.5 * y * scores)))[:, None] * x
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients / np.maximum(norms, 1.0))
