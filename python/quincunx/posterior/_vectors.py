"""Posteriors of vectors: normal means, precisions and regression coefficients, truncated to a ball."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx._rng import RandomSource, generator
from quincunx._types import Array, Floats
from quincunx.errors import ConvergenceError
from quincunx.posterior import _account
from quincunx.posterior._account import ONE
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._sample import PrivateSample, sample_size
from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne
from quincunx.privacy._law import ReadOnly
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import marked, seed_words

# Entries of proposals made at once: some tens of milliseconds.
_BLOCK = 1 << 20

#: Ranges of vector models are computed from norms in doubles.
ROUNDED = 1 + 2.0**-40


@sections
class _VectorModel(ReadOnly):
    """What the vector models share: the guarantee is the range, for every n."""

    temper: float

    def _range(self, relation: Relation) -> float:
        raise NotImplementedError

    def guarantee(self, n: int | None = None, *, relation: Relation = ONE) -> PrivacyGuarantee:
        """Return the guarantee of one draw: the range of one record, whatever the number of records.

        Parameters
        ----------
        n : int, optional
            Records; no account of these models needs it.
        relation : ReplaceOne or AddRemove
            About which neighbors.

        Returns
        -------
        PrivacyGuarantee
            Range-bounded, with ``numerics="float64"``: draws have the stated law up to the rounding of doubles.

        {domain}
        """
        if n is not None:
            _check.whole(n, "n", maximum=2**53)
        about = _account.relation_of(relation)
        return _account.ranged(self._range(about) * ROUNDED, about, "float64")

    def calibrate(self, epsilon: float) -> Self:
        """Return the model with the `temper` for which one draw spends epsilon; it may exceed 1.

        Parameters
        ----------
        epsilon : float
            Target, > 0.

        Returns
        -------
        object
            Of the same class.

        Raises
        ------
        ValueError, TypeError
            If epsilon is not positive and finite.
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        scale = level / (self._range(ONE) * ROUNDED) * (1 - 2.0**-48)
        return replace(self, temper=self.temper * scale)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class BallPosterior(_account.Drawn):
    """A normal law truncated to the ball of a radius.

    Attributes
    ----------
    model : object
        Where it comes from.
    n : int
        Records.
    mean : ndarray, shape (d,)
        Of the untruncated normal.
    precision : ndarray, shape (d, d)
        Of the untruncated normal.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import MultivariateNormalMean
    >>> model = MultivariateNormalMean(np.eye(2), radius=1.0, data_bound=1.0)
    >>> model.posterior([[0.5, 0.0], [0.5, 0.5]]).mean
    array([0.5 , 0.25])
    """

    model: MultivariateNormalMean | BallRegression
    n: int
    mean: Floats
    precision: Floats
    #: Eigenvalues and eigenvectors of the precision, and the mean in their coordinates.
    _spectrum: tuple[Floats, Floats, Floats] = field(repr=False)

    def _draw(self, count: int, relation: Relation, words: list[int] | None) -> Array:
        values, vectors, rotated = self._spectrum
        flat, _ = _core.ball_normal(values, rotated, self.model._radius(), count, words)
        drawn: Floats = flat.reshape(count, len(self.mean)) @ vectors.T
        # The rotation may carry a vector out of the ball by a rounding; putting it back is post-processing.
        norms = np.linalg.norm(drawn, axis=1, keepdims=True)
        drawn *= np.minimum(1.0, self.model._radius() / np.maximum(norms, 1e-300))
        return drawn


def _rounding(values: Array) -> float:
    """Return the error of eigenvalues, which are known to the rounding of the largest one."""
    return 4 * len(values) * float(np.finfo(float).eps * values[-1])


def _spectrum(precision: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, raised to their error, and eigenvectors: so a law has the slope that it had."""
    values, vectors = np.linalg.eigh(precision)
    return np.maximum(values, max(_rounding(values), np.finfo(float).tiny ** 0.5)), vectors


def _ball_posterior(
    model: MultivariateNormalMean | BallRegression, n: int, precision: Floats, target: Floats
) -> BallPosterior:
    """Return the law with this precision P and P mean = target."""
    values, vectors = _spectrum(precision)
    rotated = (vectors.T @ target) / values
    return BallPosterior(model, n, vectors @ rotated, precision, (values, vectors, rotated))


def _positive_definite(matrix: object, name: str) -> Floats:
    array = _check.reals(matrix, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"`{name}` must have shape (d, d), got {array.shape}")
    if not np.allclose(array, array.T, rtol=1e-12, atol=0):
        raise ValueError(f"`{name}` must be symmetric, got differences of {np.abs(array - array.T).max()}")
    values = np.linalg.eigvalsh(array)
    if not values[0] > _rounding(values):
        raise ValueError(
            f"`{name}` must be positive definite beyond rounding, got eigenvalues from {values[0]} to {values[-1]}"
        )
    return np.asarray((array + array.T) / 2)


@posterior_doc
@dataclass(frozen=True, eq=False)
class MultivariateNormalMean(_VectorModel):
    """Normal vectors of known precision A, the mean uniform on a ball of radius M; records within a ball of radius D.

    The posterior is ``N(mean of x, (tau n A)**-1)`` on the ball.

    Parameters
    ----------
    precision : array_like, shape (d, d)
        A, symmetric and positive definite.
    radius : float
        M > 0.
    data_bound : float
        D > 0: each record is clipped to that norm.
    temper : float
        The power tau > 0 of the likelihood.

    {domain}

    Notes
    -----
    Replacing x by y costs at most ``2 tau M norm(A (x - y)) <= 4 tau M D lambda``, lambda the largest eigenvalue of A;
    adding one ``tau lambda (D + M)**2 / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import MultivariateNormalMean
    >>> model = MultivariateNormalMean(np.eye(2), radius=1.0, data_bound=1.0)
    >>> round(model.guarantee().epsilon, 6)
    4.0
    >>> model.posterior([[0.5, 0.0]]).sample(3).values.shape
    (3, 2)
    """

    precision: Any
    radius: float
    data_bound: float
    temper: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "precision", _positive_definite(self.precision, "precision"))
        _account.set_positive(self, "radius", "data_bound", "temper")
        super().__post_init__()

    def _radius(self) -> float:
        return self.radius

    def _range(self, relation: Relation) -> float:
        largest = float(np.linalg.eigvalsh(self.precision)[-1])
        if isinstance(relation, AddRemove):
            return self.temper * largest * (self.data_bound + self.radius) ** 2 / 2
        return 4 * self.temper * self.radius * self.data_bound * largest

    def posterior(self, data: npt.ArrayLike) -> BallPosterior:
        """Return the posterior given vectors.

        {vectors}

        Returns
        -------
        BallPosterior

        {shaped}
        """
        values = _account.vectors(data, len(self.precision), self.data_bound)
        return _ball_posterior(
            self, len(values), self.temper * len(values) * self.precision, self.temper * self.precision @ values.sum(0)
        )


@sections
@dataclass(frozen=True, eq=False)
class BallRegression(_VectorModel):
    """Linear regression with known noise, coefficients w in the ball of radius W.

    ``y | x ~ N(x'w, sigma2)``, prior ``N(0, prior_precision**-1)`` on the ball. The posterior is a normal of precision
    ``P = tau X'X / sigma2 + Lambda`` and mean ``P**-1 tau X'y / sigma2`` on the ball.

    Parameters
    ----------
    W : float
        Radius of the ball, > 0.
    sigma2 : float
        Variance of the noise, > 0.
    x_norm, y_bound : float
        X and Y > 0: the norm to which each row, and the size to which each response, is clipped.
    prior_precision : float or array_like, shape (d, d)
        Lambda, >= 0.
    temper : float
        The power tau > 0 of the likelihood; above 1 it is a smaller variance.

    {domain}

    Notes
    -----
    Replacing a record costs at most ``tau r / sigma2`` with ``r = 4 X Y W`` if ``X W <= Y``, else ``(Y + X W)**2``; the
    bound is attained in the limit of many records. Adding one costs half.

    Examples
    --------
    >>> from quincunx.posterior import BallRegression
    >>> [round(BallRegression(W, 1, 1, 1, 1).guarantee().epsilon, 6) for W in (0.5, 1, 2, 3)]
    [2.0, 4.0, 9.0, 16.0]
    >>> model = BallRegression(1.0, 1.0, 1.0, 1.0, 1.0).calibrate(0.5)
    >>> round(model.temper, 6)
    0.125
    """

    W: float
    sigma2: float
    x_norm: float
    y_bound: float
    prior_precision: Any
    temper: float = 1.0

    def __post_init__(self) -> None:
        _account.set_positive(self, "W", "sigma2", "x_norm", "y_bound", "temper")
        _check.fits(self.prior_precision, "prior_precision")
        if np.ndim(self.prior_precision) == 0:
            precision: object = _check.nonnegative(self.prior_precision, "prior_precision")
        else:
            precision = _positive_definite(self.prior_precision, "prior_precision")
        object.__setattr__(self, "prior_precision", precision)
        super().__post_init__()

    def _radius(self) -> float:
        return self.W

    def _range(self, relation: Relation) -> float:
        reach = self.x_norm * self.W
        r = 4 * self.y_bound * reach if reach <= self.y_bound else (self.y_bound + reach) ** 2
        return self.temper * r / self.sigma2 / (1 if isinstance(relation, ReplaceOne) else 2)

    def lipschitz_constant(self) -> float:
        """Return L of one record in the metric of rows and responses: ``(Y + X W) sqrt(1 + W**2) / sigma2``.

        Returns
        -------
        float
        """
        return (self.y_bound + self.x_norm * self.W) * math.sqrt(1 + self.W**2) / self.sigma2

    def posterior(self, X: npt.ArrayLike, y: npt.ArrayLike) -> BallPosterior:
        """Return the posterior given rows and responses.

        Parameters
        ----------
        X : array_like of float, shape (n, d)
            Each row is clipped to the norm `x_norm` by itself; one that is not finite becomes 0.
        y : array_like of float, shape (n,)
            Each response is clipped to `y_bound` by itself, NaN to the lower end.

        Returns
        -------
        BallPosterior

        Raises
        ------
        TypeError, ValueError
            If shapes do not fit, or they do not hold numbers.
        """
        rows = _account.vectors(X, None, self.x_norm, "X")
        responses = _account.records(y, -self.y_bound, self.y_bound, "y")
        if len(rows) != len(responses):
            raise ValueError(f"`y` must have shape ({len(rows)},), got {responses.shape}")
        d = rows.shape[1]
        prior = self.prior_precision
        prior = prior * np.eye(d) if np.ndim(prior) == 0 else np.asarray(prior)
        if prior.shape != (d, d):
            raise ValueError(f"`prior_precision` must have shape ({d}, {d}), got {prior.shape}")
        scale = self.temper / self.sigma2
        return _ball_posterior(self, len(rows), scale * rows.T @ rows + prior, scale * rows.T @ responses)


@posterior_doc
@dataclass(frozen=True, eq=False)
class WishartPosterior(_account.Drawn):
    """A Wishart law of precision matrices truncated to a Frobenius ball.

    Attributes
    ----------
    model : MultivariateNormalPrecision
        Where it comes from.
    n : int
        Records.
    dof : float
        Degrees of freedom.
    scale : ndarray, shape (d, d)
        Scale matrix: the untruncated mean is ``dof * scale``.

    Examples
    --------
    >>> from quincunx.posterior import MultivariateNormalPrecision
    >>> model = MultivariateNormalPrecision(4.0, [[1.0, 0.0], [0.0, 1.0]], radius=50.0, data_bound=1.0)
    >>> model.posterior([[1.0, 0.0]]).dof
    5.0
    """

    model: MultivariateNormalPrecision
    n: int
    dof: float
    scale: Floats

    def sample(
        self,
        size: int = 1,
        *,
        private: bool = True,
        relation: Relation = ONE,
        insecure_seed: int | None = None,
        rng: RandomSource = None,
        max_proposals: int = 10**6,
    ) -> PrivateSample:
        """Draw precision matrices by rejection from the untruncated Wishart law.

        {draws}
        max_proposals : int
            After as many in all, an error: never a matrix that was not accepted.

        Returns
        -------
        PrivateSample
            With values of shape ``(size, d, d)``.

        Raises
        ------
        ConvergenceError
            If `max_proposals` did not do: the ball holds too little of the posterior.
        ValueError, TypeError
            If an argument lies outside its domain.

        Notes
        -----
        The expected number of proposals is the inverse of the posterior mass of the ball. That the call failed, and its
        time, depend on the data: choose a radius that holds most of every posterior.
        """
        from scipy import special

        count = sample_size(size)
        limit = _check.whole(max_proposals, "max_proposals", minimum=1)
        if _check.flag(private, "private") and rng is not None:
            raise TypeError("`rng` is for draws that are not private; `insecure_seed` repeats private ones")
        if private and insecure_seed is None:
            uniform = _system_uniform
        else:
            seeded = np.random.default_rng(seed_words(insecure_seed)) if private else generator(rng)
            uniform = lambda shape: seeded.random(shape) + 2.0**-54  # noqa: E731
        d = len(self.scale)
        _check.room(24 * count * d * d, "an array of draws")
        factor = np.linalg.cholesky(self.scale)
        accepted: list[Floats] = []
        proposals = 0
        while len(accepted) < count:
            if proposals >= limit:
                raise ConvergenceError(f"{proposals} proposals gave {len(accepted)} of {count} draws within the ball")
            batch = min(max(count - len(accepted), 64), limit - proposals, max(1, min(4096, _BLOCK // d**2)))
            proposals += batch
            # Bartlett's decomposition: chi variables on the diagonal, normals below it, by inversion.
            lower = np.tril(special.ndtri(uniform((batch, d, d))), -1)
            degrees = self.dof - np.arange(d)
            lower[:, range(d), range(d)] = np.sqrt(2 * special.gammaincinv(degrees / 2, uniform((batch, d))))
            roots = factor @ lower
            matrices = roots @ roots.transpose(0, 2, 1)
            inside = np.sqrt((matrices**2).sum(axis=(1, 2))) <= self.model.radius
            accepted.extend(matrices[inside])
        values = np.array(accepted[:count])
        if not private:
            return PrivateSample(values, None)
        guarantee = count * self.model.guarantee(self.n, relation=relation)
        return PrivateSample(values, marked(guarantee, insecure_seed))


def _system_uniform(shape: tuple[int, ...]) -> Floats:
    """Return uniform numbers in (0, 1) from the operating system's cryptographic generator."""
    words = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype=np.uint64).reshape(shape)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


@posterior_doc
@dataclass(frozen=True, eq=False)
class MultivariateNormalPrecision(_VectorModel):
    """Normal vectors of known mean, the precision matrix Wishart on a Frobenius ball.

    The posterior is ``Wishart(dof + tau n, (scale**-1 + tau sum (x - mean)(x - mean)')**-1)`` on ``norm(A) <= radius``.

    Parameters
    ----------
    dof : float
        Degrees of freedom of the prior, > d - 1.
    scale : array_like, shape (d, d)
        Scale matrix of the prior, positive definite.
    radius : float
        Of the ball, in the Frobenius norm, > 0.
    data_bound : float
        D > 0: each record is clipped to that norm.
    mean : array_like, shape (d,), optional
        Known; 0 if not given.
    temper : float
        The power tau > 0 of the likelihood.

    {domain}

    Notes
    -----
    Replacing x by y changes the log-likelihood by a linear function of A with the matrix ``((x - mean)(x - mean)' - (y
    - mean)(y - mean)') / 2``, so it costs at most ``tau radius`` times the Frobenius norm of the difference of the two
    squares: at most ``sqrt(2) tau radius (D + norm(mean))**2``. Adding a record has no finite range: ``ln det A`` is
    unbounded below.

    Examples
    --------
    >>> from quincunx.posterior import MultivariateNormalPrecision
    >>> model = MultivariateNormalPrecision(4.0, [[1.0, 0.0], [0.0, 1.0]], radius=2.0, data_bound=0.5)
    >>> round(model.guarantee().epsilon, 6)
    0.707107
    """

    dof: float
    scale: Any
    radius: float
    data_bound: float
    mean: Any = None
    temper: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive_definite(self.scale, "scale"))
        _account.set_positive(self, "dof", "radius", "data_bound", "temper")
        d = len(self.scale)
        if not self.dof > d - 1:
            raise ValueError(f"`dof` must be above d - 1 = {d - 1}, got {self.dof}")
        mean = np.zeros(d) if self.mean is None else _check.reals(self.mean, "mean").copy()
        if mean.shape != (d,):
            raise ValueError(f"`mean` must have shape ({d},), got {mean.shape}")
        object.__setattr__(self, "mean", mean)
        super().__post_init__()

    def _range(self, relation: Relation) -> float:
        if isinstance(relation, AddRemove):
            raise ValueError("`relation` must be ReplaceOne(): adding a record has no finite range, got AddRemove()")
        reach = self.data_bound + float(np.linalg.norm(self.mean))
        # || uu' - vv' ||_F^2 = |u|^4 + |v|^4 - 2 (u'v)^2 <= 2 reach^4.
        return self.temper * self.radius * math.sqrt(2) * reach**2

    def posterior(self, data: npt.ArrayLike) -> WishartPosterior:
        """Return the posterior given vectors.

        {vectors}

        Returns
        -------
        WishartPosterior

        {shaped}
        """
        values = _account.vectors(data, len(self.scale), self.data_bound) - self.mean
        inverses, vectors = _spectrum(np.linalg.inv(self.scale) + self.temper * values.T @ values)
        scale = vectors / inverses @ vectors.T
        return WishartPosterior(self, len(values), self.dof + self.temper * len(values), (scale + scale.T) / 2)
