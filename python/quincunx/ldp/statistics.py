"""What a data owner computes before a mechanism: clipped second moments whose sensitivity is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats
from quincunx.privacy._gaussian import in_ball

__all__ = ["linear", "logistic", "smat", "svec"]


def svec(matrices: npt.ArrayLike) -> Floats:
    """Return the upper triangles of symmetric matrices as vectors, off-diagonal entries times sqrt 2.

    Parameters
    ----------
    matrices : array_like, shape (..., p, p)
        Symmetric.

    Returns
    -------
    ndarray, shape (..., p (p + 1) / 2)
        Row by row: an isometry.

    Raises
    ------
    ValueError
        If they are not square and symmetric.

    Examples
    --------
    >>> from quincunx.ldp import statistics
    >>> statistics.svec([[1.0, 2.0], [2.0, 3.0]]).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    array = _check.reals(matrices, "matrices")
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"`matrices` must be square, got shape {array.shape}")
    if not np.allclose(array, np.swapaxes(array, -1, -2), rtol=1e-12, atol=0):
        raise ValueError("`matrices` must be symmetric")
    rows, columns = np.triu_indices(array.shape[-1])
    return np.asarray(array[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)))


def smat(vectors: npt.ArrayLike) -> Floats:
    """Return the symmetric matrices that `svec` makes these vectors of.

    Parameters
    ----------
    vectors : array_like, shape (..., p (p + 1) / 2)
        Vectors.

    Returns
    -------
    ndarray, shape (..., p, p)
        Symmetric matrices.

    Raises
    ------
    ValueError
        If the length is not p (p + 1) / 2 for any p.

    Examples
    --------
    >>> from quincunx.ldp import statistics
    >>> statistics.smat([1.0, 0.0, 3.0]).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    array = _check.reals(vectors, "vectors")
    length = array.shape[-1] if array.ndim else 0
    p = (math.isqrt(8 * length + 1) - 1) // 2
    if p * (p + 1) // 2 != length or not length:
        raise ValueError(f"`vectors` must have a length of p (p + 1) / 2, got {length}")
    rows, columns = np.triu_indices(p)
    out = np.zeros((*array.shape[:-1], p, p))
    values = array / np.where(rows == columns, 1.0, math.sqrt(2))
    out[..., rows, columns] = values
    out[..., columns, rows] = values
    return out


def _rows(x: npt.ArrayLike, bound: float) -> Floats:
    """Return rows clipped to the ball of a radius."""
    array = _check.reals(x, "X")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"`X` must have shape (n, d), got {array.shape}")
    return in_ball(array, _check.real(bound, "x_bound", positive=True))


def _one_each(answers: Floats, rows: Floats) -> Floats:
    """Return answers, of which each row has one."""
    if answers.shape != (len(rows),):
        raise ValueError(f"`y` must have shape ({len(rows)},), got {answers.shape}")
    return answers


def _pair(ratios: object) -> tuple[float, float]:
    """Return the ratios of noise, checked."""
    if not (isinstance(ratios, (tuple, list, np.ndarray)) and np.ndim(ratios) == 1 and len(ratios) == 2):
        raise TypeError(f"`noise_ratios` must be a pair of numbers, got {ratios!r:.40}")
    first, second = (_ratio(ratio, "noise_ratios") for ratio in ratios)
    return first, second


def _ratio(ratio: object, name: str) -> float:
    """Return a ratio of noise, checked: of others `privacy.sensitivity` has no figure."""
    number = _check.real(ratio, name, positive=True)
    if not 1e-60 <= number <= 1e60:
        raise ValueError(f"`{name}` must be between 1e-60 and 1e60, got {number}")
    return number


def _of_linear(x: Floats, y: Floats, first: float, second: float) -> Floats:
    """Return the moments of `linear`, of records as they are."""
    squares = svec(x[:, :, None] * x[:, None, :])
    return np.column_stack([squares, math.sqrt(first) * y[:, None] * x, math.sqrt(second) * y**2])


def _of_logistic(x: Floats, y: Floats, ratio: float) -> Floats:
    """Return the moments of `logistic`, of records as they are and labels 0 and 1."""
    squares = svec(x[:, :, None] * x[:, None, :])
    return np.column_stack([(2.0 * y - 1.0)[:, None] * x, math.sqrt(ratio) * squares])


def linear(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_bound: float,
    y_bound: float,
    noise_ratios: tuple[float, float] = (1.0, 1.0),
) -> Floats:
    """Return the second moments of each user for `LinearRegression(kind="statistics")`.

    Rows are clipped to the ball of radius `x_bound`, answers to ``[-y_bound, y_bound]``. The blocks are scaled so that
    one `GaussianMechanism` with one sigma releases all; its sensitivity is
    ``privacy.sensitivity.linear_regression(x_bound, y_bound, ratios=noise_ratios)``.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Records.
    y : array_like, shape (n,)
        Answers.
    x_bound, y_bound : float
        The bounds, > 0.
    noise_ratios : tuple of float
        Variance of the noise on ``x x'`` over that on ``y x``, and over that on ``y**2``.

    Returns
    -------
    ndarray, shape (n, (d + 1) (d + 2) / 2)
        ``[svec(x x'), sqrt(c1) y x, sqrt(c2) y**2]``.

    Raises
    ------
    ValueError
        If shapes do not fit or a bound or ratio is not positive.

    Examples
    --------
    >>> from quincunx.ldp import statistics
    >>> statistics.linear([[3.0, 4.0]], [2.0], x_bound=1.0, y_bound=1.0).round(4).tolist()
    [[0.36, 0.6788, 0.64, 0.6, 0.8, 1.0]]
    """
    rows, bound = _rows(X, x_bound), _check.real(y_bound, "y_bound", positive=True)
    answers = np.clip(_one_each(_check.reals(y, "y"), rows), -bound, bound)
    return _of_linear(rows, answers, *_pair(noise_ratios))


def logistic(X: npt.ArrayLike, y: npt.ArrayLike, *, x_bound: float, noise_ratio: float = 1.0) -> Floats:
    """Return the moments of each user for `LogisticRegression(kind="statistics")`.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Records, clipped to the ball of radius `x_bound`.
    y : array_like of {0, 1}, shape (n,)
        Labels, coded -1 and 1 inside.
    x_bound : float
        The bound, > 0.
    noise_ratio : float
        Variance of the noise on ``y x`` over that on ``x x'``.

    Returns
    -------
    ndarray, shape (n, d + d (d + 1) / 2)
        ``[y x, sqrt(c) svec(x x')]``; the sensitivity is
        ``privacy.sensitivity.logistic_regression(x_bound, ratio=noise_ratio)``.

    Raises
    ------
    ValueError
        If shapes do not fit, a label is not 0 or 1, or a bound or ratio is not positive.

    Examples
    --------
    >>> from quincunx.ldp import statistics
    >>> statistics.logistic([[0.6, 0.8]], [0], x_bound=1.0).round(4).tolist()
    [[-0.6, -0.8, 0.36, 0.6788, 0.64]]
    """
    rows = _rows(X, x_bound)
    labels = _one_each(_check.categories(y, "y", 2), rows)
    return _of_logistic(rows, labels, _ratio(noise_ratio, "noise_ratio"))
