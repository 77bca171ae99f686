"""Models of one number per user: normal, exponential, Poisson, geometric, Bernoulli, and the tractable family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._inference import Array, Floats, Variable, parameters
from quincunx._summary import Summary
from quincunx.ldp._groups import Bits, Clipped, Group, Plain, PlainSums, Rectified, RectifiedCells, Tractable, Whole
from quincunx.ldp._model import PrivateModel
from quincunx.ldp._noise import Known, MechanismLike, codes, refuse_different, single_sigma
from quincunx.ldp._problem import Block
from quincunx.ldp._simulation import DataSet, by_inversion, generated, noisy
from quincunx.ldp.priors import SCALARS, Beta, Gamma, HalfNormal, LogNormal, Normal, Prior
from quincunx.privacy.noise import GaussianNoise, GeometricNoise, LaplaceNoise, Noise, RandomizedResponseNoise

#: What the models know of the noise on one number.
NORMAL = ("sigma", "scales", "radius", "lower", "upper", "step")
OF_REALS: Known = {LaplaceNoise: ("scale", "lower", "upper", "step"), GaussianNoise: NORMAL}
OF_COUNTS: Known = {GeometricNoise: ("alpha", "exponent", "lower", "upper"), **OF_REALS}
#: Scales of the noise beyond the bounds from which on reports, of chance exp(-10**6), are taken as one.
FAR = 2.0**20


class ScalarModel(PrivateModel):
    """A model of one number per user."""

    _family: ClassVar[str]

    def fit(
        self,
        released: npt.ArrayLike,
        y: None = None,
        *,
        mechanism: MechanismLike = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior from released numbers.

        Parameters
        ----------
        released : Release, array_like, Summary or list of these
            The numbers after their noise. A list with a Release in it is of groups of users, of any sizes: each release
            has its own noise, and raw numbers beside one have none. A summary of them serves as well. A dictionary is
            of groups that are partly pooled, by label: see `GaussianModel`.
        y : None
            Not used.
        mechanism : optional
            The mechanism that made them; goes before the release's own and the constructor's. Where there is none, the
            numbers have no noise.
        {fitted}
        """
        return self._fit(self._groups(released, mechanism, False), executor)

    def summarize(self, released: npt.ArrayLike, *, mechanism: MechanismLike = None, unsafe: bool = False) -> Summary:
        """Return what a fit needs of released numbers, so that parts of the users can be added.

        Parameters
        ----------
        released, mechanism
            As in `fit`.
        {summarized}
        """
        return self._summed(self._groups(released, mechanism, False), unsafe)

    def partial_fit(
        self,
        released: npt.ArrayLike,
        y: None = None,
        *,
        mechanism: MechanismLike = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior from what was fitted before and more released numbers.

        Parameters
        ----------
        released, mechanism
            As in `fit`: of users that it has not seen.
        y : None
            Not used.
        {more}
        """
        return self._fit_more(self.summarize(released, mechanism=mechanism), executor)

    def log_likelihood(
        self, released: npt.ArrayLike, *, gradient: bool = False, mechanism: MechanismLike = None, **parameters: float
    ) -> float | tuple[float, dict[str, float | Floats]]:
        """Return the log-likelihood of released numbers, the sum over users; no fit is needed.

        Parameters
        ----------
        released : Release, array_like or list of these
            The numbers after their noise.
        gradient : bool
            Whether derivatives are wanted too.
        mechanism : optional
            As in `fit`.
        {total}
        """
        return self._log_likelihood(self._groups(released, mechanism, True), gradient, parameters)

    def log_likelihoods(self, released: npt.ArrayLike, *, mechanism: MechanismLike = None) -> Floats:
        """Return the log-likelihood of each user at each draw of the fitted posterior.

        Parameters
        ----------
        released : Release, array_like or list of these
            The numbers after their noise: those of the fit, or of other users.
        mechanism : optional
            As in `fit`.

        {each}
        """
        return self._log_likelihoods(self._users(released, mechanism))

    def _numbers(self, released: npt.ArrayLike) -> Floats:
        return np.ascontiguousarray(_check.reals(released, "released").reshape(-1))

    def _simulate(self, rng: np.random.Generator, n: int, groups: int = 0) -> DataSet:
        """Return parameters drawn from their priors, and what n users of theirs release: arguments of `fit`.

        With groups there are n users of each, whose own parameters are drawn from the law that is drawn from its prior.
        """
        nobody: Any = np.empty(0)
        if groups:
            nobody = dict.fromkeys(range(groups), nobody)
        among = self._groups(nobody, None, False)
        blocks, names = self._blocks(among), [variable.name for variable in self._variables(among)]
        if not groups:
            truth = self._generated(blocks, rng)
            return truth, (self._told_of(truth, rng, n),), {}
        size, mean, sd, *spread = blocks[0].numbers
        law = rng.normal(mean, sd), generated(SCALARS[blocks[0].prior](*spread), rng)
        linked = rng.normal(*law, int(size))
        own = {"groups of reals": linked, "groups of positives": np.exp(linked)}.get(
            blocks[0].support, 1 / (1 + np.exp(-linked))
        )
        others = [generated(SCALARS[block.prior](*block.numbers), rng) for block in blocks[1:]]
        truth = dict(zip(names, [*law, own, *others], strict=True))
        told = {g: self._told_of(truth | {names[2]: float(own[g])}, rng, n) for g in range(groups)}
        return truth, (told,), {}

    def _told_of(self, truth: Mapping[str, float | Floats], rng: np.random.Generator, n: int) -> Array:
        """Return what n users with these parameters release."""
        raise NotImplementedError

    def _generated(self, blocks: Sequence[Block], rng: np.random.Generator) -> dict[str, float | Floats]:
        """Return parameters drawn from the priors of blocks."""
        named = zip(self._prior_names, blocks, strict=False)
        return {name: generated(SCALARS[block.prior](*block.numbers), rng) for name, block in named}

    def _noisy(self, x: Floats, rng: np.random.Generator) -> Array:
        return noisy(self._noise(None, None), x, rng)


def _bounds(noise: GaussianNoise | GeometricNoise | LaplaceNoise) -> tuple[float, float]:
    lower, upper = (noise.bounds or (None, None)) if isinstance(noise, GaussianNoise) else (noise.lower, noise.upper)
    if lower is None or upper is None:
        raise ValueError(f"`mechanism` must have bounds, `lower` and `upper`, got {lower} and {upper}")
    return lower, upper


def _near(values: Floats, bounds: tuple[float, float], scale: float, exact: bool) -> Floats:
    """Return reports that are no farther from the bounds than noise is, but where each likelihood counts as it is.

    Farther ones say the same of a number: that it is at the bound. Their log-likelihood, a constant but for that, would
    round away all others.
    """
    far = FAR * scale if FAR * scale < 1 else float(np.ceil(FAR * scale))  # of counts a whole number, as they are
    return values if exact else np.clip(values, bounds[0] - far, bounds[1] + far)


def _rectified(values: Floats, family: str, noise: Noise, exact: bool) -> Group:
    """Return users whose real numbers were clipped, and released with a noise of `OF_REALS`."""
    if isinstance(noise, GaussianNoise):
        bounds, sigma = noise.bounds or (-math.inf, math.inf), single_sigma(noise)
        return Clipped(_near(values, bounds, sigma, exact), family, bounds, sigma, exact)
    assert isinstance(noise, LaplaceNoise)
    lower, upper = _bounds(noise)
    if family == "exponential" and lower != 0:
        raise ValueError(f"`mechanism` must have lower = 0 for an exponential variable, got {lower}")
    ends = float(lower), float(upper)
    return Rectified(_near(values, ends, noise.scale, exact), family, ends, noise.scale, exact)


class GaussianModel(ScalarModel):
    """Mean and standard deviation of normal numbers, clipped to bounds and released with Laplace or Gaussian noise.

    Parameters
    ----------
    mechanism : LaplaceMechanism or GaussianMechanism, optional
        The mechanism, where the data do not bring their own; None for data without noise. A Gaussian one may leave
        numbers as they are.
    priors : dict, optional
        Of ``mu``, by default Normal(midpoint of the bounds, half their width), and ``sigma``, Gamma(2, 4 / width).
        Without noise Normal(0, 10) and Gamma(2, 1/2).
    inference : {"auto", "quadrature", "nuts"}
        "auto" computes posteriors of one or two parameters, and samples others and those too crooked to compute.
    n_chains, n_warmup, n_draws : int
        Chains, and draws of each before and after it is adapted. Computed posteriors are drawn from independently.
    target_accept : float
        Rate of acceptance that the step size is adapted to.
    max_depth : int
        Largest depth of a tree.
    random_state : int, Generator or None
        Seeds the draws: the same for any number of threads and any executor.
    threads : int, optional
        By default all this process may use.
    warm_start : bool
        Chains continue from the last fit.
    progress : bool or callable
        A bar, or a function of (done, total).

    Attributes
    ----------
    draws_ : dict
        Draws by name, each of shape (n_chains, n_draws).
    posterior_mean_, posterior_sd_ : dict
        By name; the quadrature's own where the posterior was computed.
    log_evidence_ : float
        Logarithm of the probability of the data under the priors, where the posterior was computed.

    Notes
    -----
    Fitted to a dictionary of groups, each of what `fit` takes else, each group has a mean of its own, ``mu_g ~
    Normal(mu_mean, mu_sd)``, and all share ``sigma``: ``mu`` has an entry for each label, in sorted order, and shrinks
    towards ``mu_mean`` the more the less its group says. ``priors`` then has ``mu_mean``, by default that of ``mu``,
    and ``mu_sd``, HalfNormal(half the width). Of the models of one parameter the logarithm of a rate or the logit of a
    probability has the normal law: ``log_rate_mean`` and ``logit_probability_mean``, by default Normal(0, 1), with
    ``log_rate_sd`` and ``logit_probability_sd``, HalfNormal(1). Chains move each group between coordinates that are
    centred and that are not, by what its users say of it and by the spread [2]_: no funnel hinders them, with few users
    in each group or many.

    With Laplace noise all users beyond the bounds cost one evaluation, and those between are replaced by Chebyshev
    nodes; with Gaussian noise all are. So a gradient costs the same for any number of users.

    References
    ----------
    .. [1] T. Kulkarni, J. Jälkö, S. Kaski and A. Honkela (2021), Locally differentially private Bayesian
       inference, section 5 for hybrid and hierarchical populations.
    .. [2] O. Papaspiliopoulos, G. Roberts and M. Sköld (2007), A general framework for the parametrization of
       hierarchical models, Statistical Science 22.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import GaussianModel
    >>> from quincunx.privacy import LaplaceMechanism
    >>> x = np.random.default_rng(0).normal(1.0, 1.5, 5000)
    >>> release = LaplaceMechanism(1.0, -5, 5).release(x, insecure_seed=1)
    >>> model = GaussianModel(random_state=0).fit(release)
    >>> abs(model.posterior_mean_["mu"] - 1.0) < 4 * model.posterior_sd_["mu"]
    True
    >>> model.draws_["sigma"].shape
    (4, 1000)
    >>> each = {"south": release, "north": [0.5, 3.0]}
    >>> total = model.log_likelihood(each, mu_mean=1.0, mu_sd=0.5, mu=[0.9, 1.1], sigma=1.5)  # of north, of south
    >>> parts = model.log_likelihood([0.5, 3.0], mu=0.9, sigma=1.5), model.log_likelihood(release, mu=1.1, sigma=1.5)
    >>> abs(total - sum(parts)) < 1e-6
    True
    """

    _family = "gaussian"
    _known = OF_REALS
    _prior_names = ("mu", "sigma", "mu_mean", "mu_sd")
    _with_populations = True

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        return *self._variables_of_groups(groups, "mu", "real"), Variable("sigma")

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        noise = self._noise(released, mechanism)
        if noise is None:
            return Plain(self._numbers(released), self._family)
        return _rectified(self._numbers(released), self._family, noise, exact)

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        centre, half = 0.0, 10.0
        bounded = [group.bounds for group in groups if isinstance(group, (Rectified, RectifiedCells, Clipped))]
        bounded = [bounds for bounds in bounded if math.isfinite(bounds[1] - bounds[0])]
        width = 8.0
        if bounded:
            low, high = min(b[0] for b in bounded), max(b[1] for b in bounded)
            centre, half, width = (low + high) / 2, (high - low) / 2, high - low
        return [
            self._of_groups(groups, "mu", "real", Normal(centre, half), (Normal(centre, half), HalfNormal(half))),
            self._scalar("sigma", "positive", Gamma(2, 4 / width)),
        ]

    def _fit(self, groups: Sequence[Group], executor: Executor | None, *kept: Any) -> Self:
        self._refuse_equal(groups)
        return super()._fit(groups, executor, *kept)

    def _refuse_equal(self, groups: Sequence[Group]) -> None:
        """Refuse numbers without noise whose sigma is 0.

        At a small sigma the likelihood of n equal ones, over mu, is sigma**(1 - n), which must be integrable.
        """
        if any(isinstance(group, Plain) and group.numbers.size and np.ptp(group.numbers) for group in groups):
            return
        sums: dict[str | int | None, tuple[int, Fraction, Fraction]] = {}
        for group in groups:
            if isinstance(group, (Plain, PlainSums)):
                part = group.summed()
                assert isinstance(part, PlainSums)
                n, first, second = sums.get(group.population, (0, Fraction(), Fraction()))
                sums[group.population] = n + part.users, first + part.first, second + part.second
        if all(n * second == first**2 for n, first, second in sums.values()):
            prior = self._prior("sigma", Gamma(2, 1))
            shape = prior.shape if isinstance(prior, Gamma) else math.inf if isinstance(prior, LogNormal) else 1
            if sum(max(n - 1, 0) for n, _, _ in sums.values()) >= shape:
                raise ValueError(
                    "`released` must hold different numbers where they have no noise, or `sigma` has no posterior, got "
                    f"{max(n for n, _, _ in sums.values())} equal ones"
                )

    def _told_of(self, truth: Mapping[str, float | Floats], rng: np.random.Generator, n: int) -> Array:
        return self._noisy(rng.normal(truth["mu"], truth["sigma"], n), rng)


class _OneParameter(ScalarModel):
    """A model with a single positive rate or probability."""

    _with_populations = True
    _name: ClassVar[str]
    _support: ClassVar[str]
    _default: ClassVar[Prior]

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        return self._variables_of_groups(groups, self._name, self._support)

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        labels = (group.labels for group in groups if isinstance(group, Bits) and group.labels is not None)
        refuse_different(labels, "released", "the same categories in the same order")
        return [self._of_groups(groups, self._name, self._support, self._default)]

    def _told_of(self, truth: Mapping[str, float | Floats], rng: np.random.Generator, n: int) -> Array:
        return self._noisy(self._draw(float(truth[self._name]), rng, n), rng)

    def _draw(self, value: float, rng: np.random.Generator, n: int) -> Floats:
        raise NotImplementedError


class ExponentialModel(_OneParameter):
    """The rate of exponential numbers, clipped to ``[0, upper]`` and released with Laplace or Gaussian noise.

    Parameters
    ----------
    mechanism : LaplaceMechanism or GaussianMechanism, optional
        With ``lower = 0``; a Gaussian one may have any ``lower <= 0``, or leave numbers as they are.
    priors : dict, optional
        Of ``rate``, by default Gamma(2, 2).
    {settings}

    Examples
    --------
    >>> from quincunx.ldp import ExponentialModel
    >>> from quincunx.privacy import LaplaceMechanism
    >>> model = ExponentialModel(LaplaceMechanism(1.0, 0, 5))
    >>> round(model.log_likelihood([1.0], rate=0.7), 6)
    -2.476639
    """

    _family = "exponential"
    _name, _support, _default = "rate", "positive", Gamma(2, 2)
    _known = OF_REALS
    _prior_names = ("rate", "log_rate_mean", "log_rate_sd")

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        noise = self._noise(released, mechanism)
        values = self._numbers(released)
        if noise is None:
            if (values < 0).any():
                raise ValueError(f"`released` must be at least 0 without noise, got {values.min()}")
            return Plain(values, self._family)
        return _rectified(values, self._family, noise, exact)

    def _draw(self, value: float, rng: np.random.Generator, n: int) -> Floats:
        return rng.exponential(1 / value, n)


class _WholeModel(_OneParameter):
    _known: ClassVar[Known] = OF_COUNTS

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        noise = self._noise(released, mechanism)
        if noise is None:
            values = _check.counts(released, "released").astype(np.float64).reshape(-1)
            self._check_plain(values)
            return Plain(np.ascontiguousarray(values), self._family)
        if isinstance(noise, RandomizedResponseNoise):
            bits = np.asarray(codes(released, noise))
            ones = int(bits.sum())
            labels = None if isinstance(noise.declared.declared, int) else noise.declared.declared
            return Bits(float(bits.size - ones), float(ones), noise.keep_probability, labels=labels)
        assert isinstance(noise, (GaussianNoise, GeometricNoise, LaplaceNoise))
        if isinstance(noise, GeometricNoise) and np.ndim(noise.alpha):
            raise ValueError("`released` must have one ratio of noise: give a list of releases, one for each")
        lower, upper = _bounds(noise)
        if not all(float(bound).is_integer() and abs(bound) <= 2**53 for bound in (lower, upper)):
            raise ValueError(f"`mechanism` must have whole bounds for counts, up to 2**53, got {lower} and {upper}")
        if isinstance(noise, GaussianNoise):
            bounds, sigma = (float(lower), float(upper)), single_sigma(noise)
            values = _near(self._numbers(released), bounds, sigma, exact)
            return Clipped(values, self._family, bounds, sigma, exact)
        if isinstance(noise, GeometricNoise):
            decay, values = noise.decay, _check.counts_as_floats(released, "released", minimum=None).reshape(-1)
        else:
            decay, values = 1 / noise.scale, self._numbers(released)
        values = _near(values, (float(lower), float(upper)), 1 / float(decay), exact)
        return Whole(values, self._family, noise.kind, float(decay), (int(lower), int(upper)), exact)

    def _check_plain(self, values: Floats) -> None:
        pass


class PoissonModel(_WholeModel):
    """The rate of Poisson counts, clipped to bounds and released with two-sided geometric, Laplace or Gaussian noise.

    Parameters
    ----------
    mechanism : GeometricMechanism, LaplaceMechanism or GaussianMechanism, optional
        With bounds; those of Gaussian noise at most 2**16 apart.
    priors : dict, optional
        Of ``rate``, by default Gamma(2, 2).
    {settings}

    Examples
    --------
    >>> from quincunx.ldp import PoissonModel
    >>> from quincunx.privacy import GeometricMechanism
    >>> model = PoissonModel(GeometricMechanism(1.0, lower=0, upper=10), random_state=0)
    >>> model.fit([3, -4, 12, 5, 2]).draws_["rate"].shape
    (4, 1000)
    """

    _family = "poisson"
    _name, _support, _default = "rate", "positive", Gamma(2, 2)
    _prior_names = ("rate", "log_rate_mean", "log_rate_sd")

    def _draw(self, value: float, rng: np.random.Generator, n: int) -> Floats:
        return rng.poisson(value, n).astype(float)


class GeometricModel(_WholeModel):
    """The probability of success of geometric counts on 0, 1, 2, ..., clipped and released with noise.

    Parameters
    ----------
    mechanism : GeometricMechanism, LaplaceMechanism or GaussianMechanism, optional
        With bounds; those of Gaussian noise at most 2**16 apart.
    priors : dict, optional
        Of ``probability``, by default Beta(1, 1).
    {settings}

    Examples
    --------
    >>> from quincunx.ldp import GeometricModel
    >>> round(GeometricModel().fit([0, 1, 2]).posterior_mean_["probability"], 6)  # Beta(4, 4)
    0.5
    """

    _family = "geometric"
    _name, _support, _default = "probability", "unit", Beta(1, 1)
    _prior_names = ("probability", "logit_probability_mean", "logit_probability_sd")

    def _draw(self, value: float, rng: np.random.Generator, n: int) -> Floats:
        return (rng.geometric(max(value, 1e-12), n) - 1).astype(float)


class BernoulliModel(_WholeModel):
    """The probability of a one among bits released by randomized response, or with noise that is added to them.

    Parameters
    ----------
    mechanism : RandomizedResponse, GeometricMechanism, LaplaceMechanism or GaussianMechanism, optional
        The mechanism, where the data do not bring their own.
    priors : dict, optional
        Of ``probability``, by default Beta(1, 1).
    {settings}

    Examples
    --------
    >>> from quincunx.ldp import BernoulliModel
    >>> from quincunx.privacy import RandomizedResponse
    >>> model = BernoulliModel(RandomizedResponse(1.0)).fit([1] * 60 + [0] * 40)
    >>> 0.5 < model.posterior_mean_["probability"] < 0.9
    True
    """

    _family = "bernoulli"
    _known: ClassVar[Known] = {RandomizedResponseNoise: ("flip", "categories"), **OF_COUNTS}
    _name, _support, _default = "probability", "unit", Beta(1, 1)
    _prior_names = ("probability", "logit_probability_mean", "logit_probability_sd")

    def _check_plain(self, values: Floats) -> None:
        if (values > 1).any():
            raise ValueError(f"`released` must hold bits without noise, got {values.max():.0f}")

    def _draw(self, value: float, rng: np.random.Generator, n: int) -> Floats:
        return (rng.random(n) < value).astype(float)


@parameters
class TractableModel(ScalarModel):
    """The family ``p(x) ~ g(x) exp(t1 x + t2 x**2)`` on an interval, released with normal noise.

    Parameters
    ----------
    mechanism : GaussianMechanism, optional
        One that clips numbers clips here too: the clipped ones are atoms at its bounds.
    g : sequence of float
        Coefficients of a polynomial that is positive on the interval, the constant first.
    interval : tuple of float
        Where x lies; an end may be infinite.
    priors : dict, optional
        Of ``t1`` and ``t2``, by default Normal(0, 2.5 / scale of x) and Normal(0, 2.5 / scale of x**2), the scale being
        half the interval's width, or 1 where an end is infinite; t2 is then negative, its prior truncated.
    {settings}

    Examples
    --------
    >>> from quincunx.ldp import TractableModel
    >>> from quincunx.privacy import GaussianMechanism
    >>> mechanism = GaussianMechanism(sigma=0.5, sensitivity=2.0)
    >>> model = TractableModel(mechanism, interval=(0.0, 1.0)).fit([0.2, 0.9, 1.1])
    >>> sorted(model.posterior_mean_)
    ['t1', 't2']
    """

    _family = "tractable"
    _known: ClassVar[Known] = {GaussianNoise: NORMAL}
    _prior_names = ("t1", "t2")

    g: Sequence[float] = (1.0,)
    interval: tuple[float, float] = (0.0, 1.0)

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        return Variable("t1"), Variable("t2")

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        a, b = _interval(self.interval)
        finite = math.isfinite(a) and math.isfinite(b)
        scale = (b - a) / 2 if finite else 1.0
        return [
            self._scalar("t1", "real", Normal(0, 2.5 / scale)),
            self._scalar("t2", "real" if finite else "negative", Normal(0, 2.5 / scale**2)),
        ]

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        noise = self._noise(released, mechanism)
        interval = _interval(self.interval)
        g = _polynomial(self.g, interval)
        clip = (noise.bounds if isinstance(noise, GaussianNoise) else None) or (-math.inf, math.inf)
        values = self._numbers(released)
        if noise is None and not ((values >= interval[0]) & (values <= interval[1])).all():
            raise ValueError(f"`released` must lie in the interval {interval} without noise")
        return Tractable(values, tuple(g), interval, clip, single_sigma(noise), exact)

    def _simulate(self, rng: np.random.Generator, n: int, groups: int = 0) -> DataSet:
        blocks = self._blocks([])
        truth = self._generated(blocks, rng)
        (a, b), t1, t2 = _interval(self.interval), float(truth["t1"]), float(truth["t2"])
        if blocks[1].support == "negative":
            if not t2 < 0:  # from the part of the prior below 0, however little it is
                from scipy import special

                mean, sd = blocks[1].numbers
                t2 = mean + sd * float(special.ndtri_exp(special.log_ndtr(-mean / sd) + math.log1p(-rng.random())))
            truth["t2"] = t2
            centre, reach = -t1 / (2 * t2), 40 / math.sqrt(-2 * t2)
            a, b = max(a, centre - reach), min(b, centre + reach)
            if not a < b:
                # All but the end of the interval lies in the tail: it decays like exp((t1 + 2 t2 x) x).
                end, sign = (a, 1.0) if math.isfinite(a) and a > centre else (b, -1.0)
                far = end + sign * min(reach, 40 / abs(t1 + 2 * t2 * end))
                a, b = min(end, far), max(end, far)
        polynomial = np.polynomial.Polynomial(_polynomial(self.g, _interval(self.interval)))

        def log_density(x: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(polynomial(x), 0.0)) + x * (t1 + t2 * x))

        return truth, (self._noisy(by_inversion(log_density, a, b, n, rng), rng),), {}


def _interval(interval: object) -> tuple[float, float]:
    if not isinstance(interval, (tuple, list)) or len(interval) != 2:
        raise TypeError(f"`interval` must be a pair of numbers, got {interval!r}")
    a, b = (float(end) if end in (-math.inf, math.inf) else _check.real(end, "interval") for end in interval)
    if not a < b:
        raise ValueError(f"`interval` must have its lower end first, got {interval}")
    return a, b


def _polynomial(g: npt.ArrayLike, interval: tuple[float, float]) -> list[float]:
    """Return coefficients, checked to be positive inside the interval."""
    coefficients = [float(c) for c in np.atleast_1d(_check.reals(g, "g"))]
    polynomial = np.polynomial.Polynomial(coefficients)
    roots = polynomial.roots() if len(polynomial.trim().coef) > 1 else np.empty(0)
    real = np.sort(roots[np.abs(roots.imag) < 1e-12 * (1 + np.abs(roots))].real)
    a, b = interval
    low = a if math.isfinite(a) else min(-1.0, b - 1, *(real - 1)) if real.size else min(-1.0, b - 1)
    high = b if math.isfinite(b) else max(1.0, a + 1, *(real + 1)) if real.size else max(1.0, a + 1)
    cuts = [low, *(r for r in real if low < r < high), high]
    if not all(polynomial((x + y) / 2) > 0 for x, y in pairwise(cuts)):
        raise ValueError(f"`g` must be positive on the interval {interval}, got {coefficients}")
    return coefficients


def tractable_log_density(
    z: npt.ArrayLike,
    g: npt.ArrayLike,
    h: npt.ArrayLike,
    interval: tuple[float, float],
    noise_sd: float,
    *,
    gradient: bool = False,
) -> Floats | tuple[Floats, Floats]:
    """Return the log density of a noisy number whose true value has a tractable law.

    ``log integral of g(x) exp(h0 + h1 x + h2 x**2) N(z; x, noise_sd**2)`` over the interval.

    Parameters
    ----------
    z : array_like of float
        Noisy numbers.
    g : array_like of float
        Coefficients of a polynomial that is positive on the interval, the constant first.
    h : array_like of float, shape (3,)
        The exponent's coefficients.
    interval : tuple of float
        An end may be infinite where the integral exists: ``h2 < 1 / (2 noise_sd**2)``.
    noise_sd : float
        Standard deviation of the noise, > 0.
    gradient : bool
        Whether derivatives are wanted too.

    Returns
    -------
    ndarray, or (ndarray, ndarray)
        Of the shape of `z`; with `gradient`, derivatives in h0, h1 and h2 on a last axis of length 3.

    Raises
    ------
    ValueError
        If the integral does not exist, or g is not positive.

    References
    ----------
    .. [1] T. Kulkarni et al. (2021), Locally differentially private Bayesian inference, lemma 3.2 (its proof divides h
       by twice the variance of the noise).

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import tractable_log_density
    >>> value = tractable_log_density(0.9, [0.3, 0.1, 0.5], [0.0, 0.4, -0.8], (-2.0, 3.0), 1.0)
    >>> round(float(np.exp(value)), 12)
    0.381902581633
    """
    values = _check.reals(z, "z")
    ends = _interval(interval)
    coefficients = _polynomial(g, ends)
    exponent = _check.reals(h, "h")
    if exponent.shape != (3,):
        raise ValueError(f"`h` must have shape (3,), got {exponent.shape}")
    sd = _check.real(noise_sd, "noise_sd", positive=True)
    rows = _core.ldp_tractable(np.ascontiguousarray(values.reshape(-1)), coefficients, list(exponent), ends, sd)
    value = rows[:, 0].reshape(values.shape)
    if not _check.flag(gradient, "gradient"):
        return value
    slopes = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
    return value, slopes.reshape(*values.shape, 3)
