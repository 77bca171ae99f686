"""Mean and covariance of normal vectors from noisy ones."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._core import LdpLikelihood
from quincunx._inference import Floats, Variable, parameters
from quincunx._summary import Summary, are_counts
from quincunx.ldp._groups import Group, Users, exact_sums, rounded
from quincunx.ldp._noise import (
    RECORDS,
    MechanismLike,
    names_of,
    refuse_different,
    refuse_other_columns,
    sigmas,
    warn_of_clipping,
)
from quincunx.ldp._problem import Block
from quincunx.ldp._scalar import ScalarModel
from quincunx.ldp._simulation import DataSet, covariance, generated
from quincunx.ldp.priors import Normal
from quincunx.privacy.noise import GaussianNoise


class VectorSums(Group, kind="vector_sums"):
    """Normal vectors with normal noise: their number, and the sums of products of (1, z), without rounding.

    `noise` has the variance of each coordinate.
    """

    noise: tuple[float, ...]
    users: int
    totals: tuple[Fraction, ...]
    names: tuple[str, ...] | None = field(default=None, kw_only=True)
    sums = ("users", "totals")

    @property
    def protected(self) -> bool:
        return all(variance > 0 for variance in self.noise)

    def check(self) -> None:
        width = len(self.noise) + 1
        if not are_counts([self.users]) or len(self.totals) != width * (width + 1) // 2 or self.totals[0] != self.users:
            raise ValueError("it has sums that no vectors have")

    def likelihood(self) -> LdpLikelihood:
        d, n = len(self.noise), max(self.users, 1)
        first, second = self.totals[1 : d + 1], iter(self.totals[d + 1 :])
        scatter = np.zeros((d, d))
        for i in range(d):
            for j in range(i, d):
                scatter[i, j] = scatter[j, i] = rounded(next(second) - first[i] * first[j] / n)
        return LdpLikelihood.vectors([rounded(one / n) for one in first], scatter, float(self.users), list(self.noise))


class Vectors(Group, kind="vectors"):
    """The same, one by one."""

    rows: Floats
    noise: tuple[float, ...]
    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def likelihood(self) -> LdpLikelihood:
        return self.summed().likelihood()

    def summed(self) -> VectorSums:
        sums = exact_sums(np.column_stack([np.ones(len(self.rows)), self.rows]), products=True)
        return VectorSums(self.noise, len(self.rows), tuple(sums) or (Fraction(),), names=self.names)

    def each(self, codes: npt.ArrayLike) -> Users:
        found = [replace(self, rows=self.rows[i : i + 1]) for i in range(len(self.rows))]
        return found, np.arange(len(self.rows))


@parameters
class MultivariateNormalModel(ScalarModel):
    """Mean and covariance of normal vectors that were released with Gaussian noise on all coordinates.

    ``x ~ N(mean, covariance)`` of each user, who releases ``x`` with normal noise.

    Parameters
    ----------
    mechanism : GaussianMechanism, optional
        The mechanism, where the data do not bring their own; None for data without noise.
    priors : dict, optional
        Of ``mean``, by default Normal(0, 5) for each coordinate, of ``scales``, the standard deviations,
        HalfNormal(2.5), and of their ``correlation`` LKJ(2).
    {settings}

    Notes
    -----
    What is released is normal with the covariance plus that of the noise, so that the number of users, the mean of what
    they released and the scatter about it are sufficient: a gradient costs O(d^3) for any number of users, and a
    summary keeps the sums without rounding. That clients clip vectors to the ball of a mechanism is not modelled: where
    the posterior puts more than 5 % of them beyond its radius, a fit warns.

    References
    ----------
    .. [1] T. Kulkarni, J. Jälkö, S. Kaski and A. Honkela (2021), Locally differentially private Bayesian inference.
    .. [2] D. Lewandowski, D. Kurowicka and H. Joe (2009), Generating random correlation matrices based on vines and
       extended onion method, J. Multivariate Analysis 100.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import MultivariateNormalModel
    >>> from quincunx.privacy import GaussianMechanism
    >>> rng = np.random.default_rng(0)
    >>> x = rng.multivariate_normal([1.0, -1.0], [[1.0, 0.8], [0.8, 1.0]], 5000)
    >>> release = GaussianMechanism(sigma=2.0, sensitivity=4.0).release(x, insecure_seed=1)
    >>> model = MultivariateNormalModel(random_state=0, n_draws=500).fit(release)
    >>> model.posterior_mean_["mean"].round().tolist()
    [1.0, -1.0]
    >>> model.posterior_mean_["covariance"].round().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    _known = RECORDS
    _prior_names: ClassVar[tuple[str, ...]] = ("mean", "scales", "correlation")

    def fit(
        self,
        released: npt.ArrayLike,
        y: None = None,
        *,
        mechanism: MechanismLike = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior from released vectors.

        Parameters
        ----------
        released : Release, array_like, Summary or list of these
            The vectors after their noise, shape (n, d). A list with a Release in it is of groups of users, of any
            sizes: each release has its own noise, and raw vectors beside one have none. A summary serves as well.
        y : None
            Not used.
        mechanism : optional
            The mechanism that made them; goes before the release's own and the constructor's. Where there is none, the
            vectors have no noise.
        {fitted}
        """
        super().fit(released, mechanism=mechanism, executor=executor)
        self._warn_of_clipping(released, mechanism)
        return self

    def _warn_of_clipping(self, released: npt.ArrayLike, mechanism: MechanismLike) -> None:
        """Warn where the posterior means put many vectors beyond the clients' ball."""
        parts = [part for part, _ in self._split(released, mechanism) if not isinstance(part, Summary)]
        laws = [self._noise(part, mechanism) for part in parts]
        radii = [law.radius for law in laws if isinstance(law, GaussianNoise) and law.radius is not None]
        if not radii:
            return
        mean, spread = (np.asarray(self.posterior_mean_[name]) for name in ("mean", "covariance"))
        drawn = np.random.default_rng(0).multivariate_normal(mean, spread, 20_000, method="cholesky")
        share = float((np.linalg.norm(drawn, axis=1) > min(radii)).mean())
        warn_of_clipping(share, "vectors", min(radii), "the posterior")

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        rows = self._numbers(released)
        noise = tuple((sigmas(self._noise(released, mechanism), rows.shape[1]) ** 2).tolist())
        found = Vectors(rows, noise, names=names_of(released))
        return found if exact else found.summed()

    def _groups(self, released: npt.ArrayLike, mechanism: object, exact: bool, **data: object) -> list[Group]:
        if isinstance(released, dict):
            refuse_other_columns(released.values(), "released")
        found = super()._groups(released, mechanism, exact, **data)
        _refuse_other_names(found)
        refuse_different((self._dimension([group]) for group in found), "released", "as many coordinates")
        return found

    def _log_likelihoods(self, users: Sequence[Users]) -> Floats:
        _refuse_other_names([*self._fitted().problem.groups, *(group for some, _ in users for group in some[:1])])
        return super()._log_likelihoods(users)

    def _numbers(self, released: npt.ArrayLike) -> Floats:
        rows = np.ascontiguousarray(_check.reals(released, "released"))
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise ValueError(f"`released` must have shape (n, d), got {rows.shape}")
        return rows

    def _dimension(self, groups: Sequence[Group]) -> int:
        group = groups[0]
        assert isinstance(group, (Vectors, VectorSums))
        return len(group.noise)

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        d = self._dimension(groups)
        return Variable("mean", (d,), ("feature",)), Variable("covariance", (d, d), ("feature", "feature_other"))

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        d = self._dimension(groups)
        return [*[self._scalar("mean", "real", Normal(0, 5))] * d, self._covariance(d)]

    def _simulate(self, rng: np.random.Generator, n: int, groups: int = 0) -> DataSet:
        """Return parameters drawn from their priors, and what n users of theirs release: vectors of two coordinates."""
        d = 2
        prior = self._prior("mean", Normal(0, 5))
        truth: dict[str, float | Floats] = {"mean": np.array([generated(prior, rng) for _ in range(d)])}
        truth["covariance"] = spread = covariance(d, *self._of_covariance(), rng)
        x = truth["mean"] + rng.multivariate_normal(np.zeros(d), spread, n, method="cholesky")
        return truth, (x + rng.normal(size=x.shape) * sigmas(self._noise(None, None), d),), {}


def _refuse_other_names(groups: Sequence[Group]) -> None:
    """Refuse groups whose columns have other names, or the same in another order."""
    if len(names := {group.named for group in groups if group.named is not None}) > 1:
        raise ValueError(f"`released` must have the same columns in the same order throughout, got {sorted(names)}")
