"""What the models of this room have in common: settings, fit, results, densities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._docs import assembled
from quincunx._inference import (
    Array,
    Arrays,
    Facts,
    Floats,
    PosteriorEstimator,
    Run,
    Variable,
    datatree,
    decode,
    encode,
    parameters,
)
from quincunx._progress import Progress, reporting
from quincunx._rng import RandomSource
from quincunx._sklearn import estimator_doc
from quincunx._summary import Part, Summary
from quincunx.errors import ConvergenceError, ConvergenceWarning
from quincunx.ldp import priors
from quincunx.ldp._groups import KINDS, Group, Users
from quincunx.ldp._noise import (
    Known,
    MechanismLike,
    Pair,
    are_populations,
    codes,
    law,
    noise_of,
    one_each,
    refuse_raw,
    refuse_summaries,
    split,
)
from quincunx.ldp._pointwise import log_likelihoods
from quincunx.ldp._problem import (
    STATISTICS,
    Block,
    PosteriorDraws,
    Problem,
    Schedule,
    likelihood,
    placed,
    populations,
)
from quincunx.ldp.priors import LKJ, Gamma, HalfNormal, Normal, Prior
from quincunx.privacy._law import Noise, from_json, to_json


def _fitted(to: str) -> str:
    """Return what methods that fit end with."""
    return f"""
    executor : concurrent.futures.Executor, optional
        Where each chain is one task.

    Returns
    -------
    self
        {to}

    Raises
    ------
    ValueError, TypeError
        If an argument or a parameter is not what it should be.
    """


#: What the models' docstrings have in common.
model_doc = assembled(
    settings="""
    inference, n_chains, n_warmup, n_draws, target_accept, max_depth, random_state, threads, warm_start, progress
        As in `GaussianModel`.
    """,
    bounded="""
    fit_intercept : bool
        With ``kind="inputs"``: whether an intercept is inferred; it is the last of the ``coefficients``, and the last
        row of the ``covariance`` then holds the means of x.
    x_bound : float, optional
        The norm to which clients clip x where the mechanism does not say it: for the warning alone.
    """,
    fitted=_fitted("Fitted to these users."),
    summarized="""
    unsafe : bool
        Whether a summary of data without noise may be pickled.

    Returns
    -------
    Summary
        To be added to others and given to `fit`; computing it costs one pass over the reports.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it should be, or the likelihood of the reports has no sums of fixed size.
    """,
    more=_fitted(
        "Fitted to all users since the last `fit`, and those of that. A call that was interrupted is to be made again."
    ),
    total="""
    **parameters : array_like
        The parameters by name.

    Returns
    -------
    float, or (float, dict)
        The total, a sum over users; with `gradient`, its derivatives by parameter too.
    """,
    each="""
    Returns
    -------
    ndarray, shape (n_chains, n_draws, n_users)
        For `to_datatree`, and so for ArviZ's ``loo``. It takes some 3 us for each draw and different value.
    """,
)


@parameters
class PrivateModel(PosteriorEstimator):
    """Settings, fit and results of all models of this room."""

    _room = "ldp"
    _posterior_type = PosteriorDraws
    PUBLISHED: ClassVar = PosteriorEstimator.PUBLISHED | dict.fromkeys(
        ("log_evidence_", "posterior_mean_", "posterior_sd_"), "released"
    )
    #: Laws of noise that the model integrates over, and what it knows of each.
    _known: ClassVar[Known] = {}
    #: Whether users may be of several groups with parameters of their own.
    _with_populations = False
    #: Whether fits are many and short, so that nobody wants to hear of each: those of a calibration.
    _quiet = False
    #: The error of computed moments, in standard deviations.
    _tolerance = 1e-9
    #: Names of priors.
    _prior_names: ClassVar[tuple[str, ...]] = ()
    _posterior: PosteriorDraws = field(init=False)
    #: What `partial_fit` has seen.
    _total: Summary = field(init=False)

    mechanism: MechanismLike | Pair = field(default=None, kw_only=False)
    priors: Mapping[str, Prior] | None = None
    inference: str = "auto"
    n_chains: int = 4
    n_warmup: int = 1000
    n_draws: int = 1000
    target_accept: float = 0.9
    max_depth: int = 10
    random_state: RandomSource = None
    threads: int | None = None
    warm_start: bool = False
    progress: Progress = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        estimator_doc(model_doc(cls))

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if name in ("mechanism", "data", "kind")}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    # What each model says of itself.

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        raise NotImplementedError

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        raise NotImplementedError

    def _group(self, released: npt.ArrayLike, mechanism: object, exact: bool) -> Group:
        """Return a group of users; an `exact` likelihood is not compressed."""
        raise NotImplementedError

    def _groups(self, released: npt.ArrayLike, mechanism: object, exact: bool, **data: Any) -> list[Group]:
        """Return the groups of users; those of a dictionary have parameters of their own."""
        found: list[Group] = []
        if are_populations(released):
            for label, part, own in self._of_populations(released, data):
                for group in self._groups(part, mechanism, exact, **own):
                    if group.population is not None:
                        raise ValueError("`released` must not hold groups within groups")
                    found.append(replace(group, population=label))
            return found
        for part, own in self._split(released, mechanism, **data):
            if isinstance(part, Summary):
                found += self._of_summary(part, mechanism)
            else:
                found.append(self._group(part, mechanism, exact, **own))
        return found

    def _of_populations(self, released: Mapping[Any, Any], data: Facts) -> Iterator[tuple[Any, Any, Facts]]:
        """Yield the label of each group of a dictionary, what it released, and what was given of it."""
        for label, part in self._by_label(released).items():
            own = {name: self._by_label(value, released)[label] for name, value in data.items() if value is not None}
            yield str(label) if isinstance(label, str) else int(label), part, data | own

    def _by_label(self, given: Any, like: Mapping[Any, Any] | None = None) -> Mapping[Any, Any]:
        """Return what is given of groups by their labels."""
        if not self._with_populations:
            raise ValueError(
                f"`released` must be of one population: {type(self).__name__} has none that are partly pooled"
            )
        if not isinstance(given, Mapping) or (like is not None and set(given) != set(like)):
            raise ValueError(f"what is given of groups must be a dictionary with their labels, got {given!r:.40}")
        for label in given:
            if not isinstance(label, (str, int, np.integer)) or isinstance(label, bool):
                raise TypeError(f"`released` must have strings or whole numbers as labels of groups, got {label!r}")
        if not given:
            raise ValueError("`released` must have a group at the least")
        return given

    # Summaries.

    def _summarized_as(self) -> str:
        """Return what a summary must be for: the class, and what changes what it needs of users."""
        return type(self).__name__

    def _of_summary(self, summary: Summary, mechanism: object) -> list[Group]:
        """Return the groups of users that a summary sums."""
        if summary.model != (own := self._summarized_as()):
            raise ValueError(f"the summary must be for {own}, got one for {summary.model}")
        if mechanism is not None:
            raise ValueError("`mechanism` must be None with a summary, which knows the noise of its reports")
        return [self._of_part(part) for part in summary.parts]

    def _of_part(self, part: Part) -> Group:
        if not isinstance(part, Group):
            raise TypeError(f"the summary must hold groups of users, got {type(part).__name__}")
        return part

    def _summed(self, groups: Sequence[Group], unsafe: bool) -> Summary:
        return Summary._of(self._summarized_as(), map(_summed, groups), unsafe)

    def _fit_more(self, chunk: Summary, executor: Executor | None, begun: Callable[[], None] | None = None) -> Self:
        """Fit the users known so far and those of a chunk; `begun` sets what the first chunk tells."""
        known = self.__dict__.get("_total")
        if known is None:
            groups = self._posterior.problem.groups if hasattr(self, "_posterior") else []
            known = self._summed(groups, False)
        total = known + chunk

        def kept(stopped: BaseException | None) -> None:
            # A call that was stopped is made again, with the same chunk: what it kept must not count that twice.
            self._total = total if stopped is None else known
            if begun is not None:
                begun()

        return self._fit(self._of_summary(total, None), executor, kept)

    def _split(
        self, released: npt.ArrayLike, mechanism: object, **data: Any
    ) -> list[tuple[npt.ArrayLike, dict[str, Any]]]:
        """Return what each group of users released, and what was given of it."""
        if (parts := split(released)) is None:
            return [(released, data)]
        refuse_raw(parts, self.mechanism if mechanism is None else mechanism)
        each = {name: one_each(value, len(parts), name) for name, value in data.items()}
        return [(part, {name: values[i] for name, values in each.items()}) for i, part in enumerate(parts)]

    def _users(self, released: npt.ArrayLike, mechanism: object, **data: Any) -> list[Users]:
        """Return what the users of each group released."""
        if are_populations(released):
            return [
                ([replace(group, population=label) for group in groups], index)
                for label, part, own in self._of_populations(released, data)
                for groups, index in self._users(part, mechanism, **own)
            ]
        refuse_summaries(released)
        return [
            self._group(part, mechanism, True, **own).each(self._told(part, mechanism, **own))
            for part, own in self._split(released, mechanism, **data)
        ]

    def _told(self, released: npt.ArrayLike, mechanism: object) -> npt.ArrayLike:
        """Return what users released, categories as their codes."""
        return codes(released, self._noise(released, mechanism))

    def _noise(self, released: npt.ArrayLike | None, given: object) -> Noise | None:
        return noise_of(released, given, self.mechanism, self._known, type(self).__name__)

    def _prior(self, name: str, default: Prior) -> Prior:
        """Return the prior of a parameter."""
        given = self.priors or {}
        if not isinstance(given, Mapping):
            raise TypeError(f"`priors` must be a dictionary by parameter, got {type(given).__name__}")
        for known in given:
            if known not in self._prior_names:
                raise ValueError(f"`priors` must be named {list(self._prior_names)}, got {known!r}")
        found = given.get(name, default)
        if not isinstance(found, Prior):
            raise TypeError(f"`priors[{name!r}]` must be one of quincunx.ldp.priors, got {found!r:.60}")
        return found

    def _scalar(self, name: str, support: str, default: Prior) -> Block:
        prior = self._prior(name, default)
        allowed = {
            "real": ("normal",),
            "positive": ("gamma", "half-normal", "normal", "log-normal"),
            "unit": ("beta",),
            "negative": ("normal",),
        }[support]
        if prior.kind not in allowed:
            raise ValueError(f"`priors[{name!r}]` must be one of {list(allowed)}, got {prior!r}")
        return Block(support, prior.kind, prior.numbers)

    def _covariance(self, d: int) -> Block:
        """Return a covariance matrix: scales of one prior, correlations of another."""
        scales, correlation = self._of_covariance()
        return Block("covariance", scales.kind, [float(d), *correlation.numbers, *scales.numbers])

    def _of_covariance(self) -> tuple[HalfNormal | Gamma, LKJ]:
        """Return the priors of scales and correlations."""
        scales, correlation = self._prior("scales", HalfNormal(2.5)), self._prior("correlation", LKJ(2))
        if not isinstance(scales, (HalfNormal, Gamma)):
            raise ValueError(f"`priors['scales']` must be a HalfNormal or a Gamma, got {scales!r}")
        if not isinstance(correlation, LKJ):
            raise ValueError(f"`priors['correlation']` must be an LKJ, got {correlation!r}")
        return scales, correlation

    def _of_groups(
        self,
        groups: Sequence[Group],
        name: str,
        support: str,
        default: Prior,
        law: tuple[Normal, HalfNormal] | None = None,
    ) -> Block:
        """Return a scalar, or that of each group after the normal law of its link; `law` has the defaults of that."""
        labels = populations(groups)
        names = law_names(name, support)
        self._refuse_priors(names if not labels else (name,), bool(labels))
        if not labels:
            return self._scalar(name, support, default)
        defaults = law or (Normal(), HalfNormal())
        centre = self._scalar(names[0], "real", defaults[0])
        spread = self._scalar(names[1], "positive", defaults[1])
        return Block(f"groups of {support}s", spread.prior, [float(len(labels)), *centre.numbers, *spread.numbers])

    def _refuse_priors(self, names: Sequence[str], grouped: bool) -> None:
        """Refuse priors of parameters that are not there with groups, or without."""
        for name in set(names) & set(self.priors or {}):
            what = "groups, whose common law is learnt" if grouped else "one group: its law is not learnt"
            raise ValueError(f"`priors` must not have {name!r} for {what}")

    def _variables_of_groups(self, groups: Sequence[Group], name: str, support: str) -> tuple[Variable, ...]:
        """Return the variables of `_of_groups`."""
        if not (labels := populations(groups)):
            return (Variable(name),)
        law = (Variable(own) for own in law_names(name, support))
        return *law, Variable(name, (len(labels),), ("group",), labels=tuple(labels))

    # Fit.

    def _fit(
        self,
        groups: Sequence[Group],
        executor: Executor | None,
        kept: Callable[[BaseException | None], object] = lambda stopped: None,
    ) -> Self:
        """Infer the posterior; `kept` sets what else is known of it, also where an interrupt left part of its draws."""
        self._check_runs(executor)
        threads = _check.threads(self.threads)
        groups = [replace(group.condensed(), population=group.population) for group in groups]
        schedule = Schedule(self.n_warmup, self.n_draws, self.max_depth, self.target_accept, threads)
        _check.one_of(self.inference, "inference", ("auto", "quadrature", "nuts"))

        def work() -> tuple[bool, BaseException | None]:
            blocks = tuple(self._blocks(groups))
            problem = Problem(self._variables(groups), blocks, tuple(groups), False, self._tolerance)
            small = problem.core.dimension <= 2
            problem.quadrature = self.inference == "quadrature" or (self.inference == "auto" and small)
            needed = 8 * (sum(problem.sizes) + 8) * schedule.n_draws * int(self.n_chains) * 3
            _check.room(needed, "an array of draws")
            runs = self._fresh_or_continued(problem, problem.same)
            if problem.quadrature:
                try:
                    return self._infer(problem, runs, schedule, None)
                except ConvergenceError as reason:
                    if self.inference == "quadrature":
                        raise
                    if "several modes" in str(reason) and not self._quiet:
                        words = "the posterior has modes far apart, of which chains may see one alone: look at `priors`"
                        warnings.warn(words, ConvergenceWarning, stacklevel=6)
                problem.quadrature = False
            return self._infer(problem, runs, schedule, executor)

        def work_and_tell() -> tuple[bool, BaseException | None]:
            found = work()
            self.__dict__.pop("_total", None)
            kept(found[1])
            return found

        self._fit_or_restore(work_and_tell)
        if not self._quiet:
            self._posterior.warn(stacklevel=4)
        return self

    def _fixed_settings(self) -> Facts:
        return {"n_chains": self.n_chains}

    def _set_fitted(self, posterior: PosteriorDraws) -> None:
        problem = posterior.problem
        self.__dict__.pop("log_evidence_", None)
        if posterior.computed is not None:
            facts = posterior.computed.summary()
            means, sds = ([part[0] for part in problem.split(facts[name][None])] for name in ("mean", "sd"))
            self.log_evidence_ = float(facts["log_evidence"]) + sum(group.offset for group in problem.groups)
        else:
            draws = posterior.draws()
            means = [part.mean(axis=(0, 1)) for part in draws.values()]
            sds = [part.std(axis=(0, 1), ddof=1) for part in draws.values()]
        names = [variable.name for variable in problem.variables]
        self.posterior_mean_ = {name: _plain(mean) for name, mean in zip(names, means, strict=True)}
        self.posterior_sd_ = {name: _plain(sd) for name, sd in zip(names, sds, strict=True)}

    def _fitted(self) -> PosteriorDraws:
        super()._fitted()
        return self._posterior

    # Results.

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, standard deviation, quantiles and diagnostics of each number of the posterior.

        Returns
        -------
        dict of dict
            By name, as ``theta[0]``; with ``r_hat`` where there are chains.
        """
        return self._fitted().summary()

    def quantile(self, name: str, probabilities: npt.ArrayLike) -> Floats:
        """Return posterior quantiles of a parameter: exact where it was computed, else of the draws.

        Parameters
        ----------
        name : str
            The parameter.
        probabilities : array_like of float
            In (0, 1); of draws in [0, 1].

        Returns
        -------
        ndarray
            Of the shape of `probabilities`, then that of the parameter.
        """
        posterior = self._fitted()
        names = [variable.name for variable in posterior.problem.variables]
        _check.one_of(name, "name", names)
        if posterior.computed is not None and all(block.support != "simplex" for block in posterior.problem.blocks):
            p = _check.reals_where(probabilities, "probabilities", "in (0, 1)", lambda q: (q > 0) & (q < 1))
            found = posterior.computed.quantiles(names.index(name), p.reshape(-1))
            return np.asarray(found).reshape(p.shape)
        p = _check.reals_where(probabilities, "probabilities", "in [0, 1]", lambda q: (q >= 0) & (q <= 1))
        draws = self.draws_[name]
        return np.quantile(draws.reshape(-1, *draws.shape[2:]), p, axis=0)

    def to_datatree(self, *, log_likelihood: npt.ArrayLike | None = None) -> Any:
        """Return the draws as an xarray DataTree, as ArviZ makes it.

        Parameters
        ----------
        log_likelihood : array_like of float, shape (n_chains, n_draws, n_users), optional
            What `log_likelihoods` gives of some users: a group of that name, which ArviZ's ``loo`` works on.

        Returns
        -------
        xarray.DataTree
            With the groups ``posterior`` and, where chains were run, ``sample_stats``.
        """
        posterior = self._fitted()
        groups: dict[str, Any] = {"posterior": posterior.draws(), "sample_stats": {}}
        if posterior.computed is None:
            groups["sample_stats"] = {name: posterior.statistic(name) for name in STATISTICS}
        dims = {variable.name: variable.dims for variable in posterior.problem.variables}
        if log_likelihood is not None:
            each = _check.reals(log_likelihood, "log_likelihood")
            shape = (len(posterior.with_draws), posterior.n_draws)
            if each.ndim != 3 or each.shape[:2] != shape:
                raise ValueError(f"`log_likelihood` must have shape {shape} and an axis of users, got {each.shape}")
            groups["log_likelihood"], dims = {"released": each}, dims | {"released": ("user",)}
        about = {"inference": "quadrature" if posterior.computed is not None else "nuts"}
        labels = {v.dims[0]: list(v.labels) for v in posterior.problem.variables if v.labels is not None}
        return datatree(groups, dims, labels, about)

    def log_density(self, u: npt.ArrayLike) -> tuple[float, Floats]:
        """Return the log posterior density of a fitted model in unconstrained coordinates, with its gradient.

        The hook for other samplers: NumPyro, PyMC, BlackJAX, or one's own.

        Parameters
        ----------
        u : array_like of float, shape (dimension,)
            Real numbers: mu, ln sigma, ...

        Returns
        -------
        value : float
        gradient : ndarray, shape (dimension,)
        """
        core = self._fitted().problem.core
        value, gradient = core.log_density(np.ascontiguousarray(_check.reals(u, "u")))
        return value, gradient

    def _log_likelihood(
        self, groups: Sequence[Group], gradient: bool, parameters: Mapping[str, npt.ArrayLike]
    ) -> float | tuple[float, dict[str, float | Floats]]:
        variables = self._variables(groups)
        names = [variable.name for variable in variables]
        if set(parameters) != set(names):
            raise TypeError(f"the parameters must be {names}, got {list(parameters)}")
        values = []
        for variable in variables:
            given = parameters[variable.name]
            if variable.labels is not None:
                own = (_tables.Axis(labels=tuple(variable.labels)),)
                _tables.refuse_other_labels(_tables.axes(given)[:1], own, variable.name, "the model")
            value = _check.reals(given, variable.name)
            if value.shape != variable.shape:
                raise ValueError(f"`{variable.name}` must have shape {variable.shape}, got {value.shape}")
            self._check_value(variable.name, value)
            values.append(value.reshape(-1))
        natural = np.concatenate(values)
        total, slope = likelihood(groups, self._blocks(groups)).value(natural, _check.flag(gradient, "gradient"))
        total += sum(group.offset for group in groups)
        if slope is None:
            return total
        slopes = np.split(slope, np.cumsum([value.size for value in values])[:-1])
        return total, {v.name: _plain(part.reshape(v.shape)) for v, part in zip(variables, slopes, strict=True)}

    def _log_likelihoods(self, users: Sequence[Users]) -> Floats:
        posterior = self._fitted()
        draws = [posterior.stacked(parts) for parts in zip(*(run.draws for run in posterior.with_draws), strict=True)]
        problem = posterior.problem
        labels = populations(problem.groups)
        with reporting(self.progress, self._room) as report:
            return log_likelihoods(users, draws, report, lambda group: placed(group, problem.blocks, labels))

    def _check_value(self, name: str, value: Floats) -> None:
        positive = name in ("sigma", "rate", "residual_sd", "theta_concentration") or name.endswith("_sd")
        if positive and not (value > 0).all():
            raise ValueError(f"`{name}` must be positive, got {value.tolist()}")
        if name == "probability" and not ((value > 0) & (value < 1)).all():
            raise ValueError(f"`probability` must be in (0, 1), got {value.tolist()}")
        shares = name in ("theta", "theta_mean")
        if shares and not ((value >= 0).all() and (np.abs(value.sum(axis=-1) - 1) < 1e-9).all()):
            raise ValueError(f"`{name}` must be probabilities that sum to 1, got {value.tolist()}")
        if name == "covariance":
            if not np.allclose(value, value.T, rtol=1e-12, atol=0):
                raise ValueError("`covariance` must be symmetric")
            if not (np.linalg.eigvalsh(value) > 0).all():
                raise ValueError("`covariance` must be positive definite")

    # Files.

    def _problem_to_archive(self) -> tuple[Facts, Arrays]:
        problem = self._posterior.problem
        arrays: Arrays = {}
        facts = {
            "variables": [
                [v.name, list(v.shape), list(v.dims), None if v.labels is None else list(v.labels)]
                for v in problem.variables
            ],
            "blocks": [list(block) for block in problem.blocks],
            "groups": [
                [group.kind, {name: encode(value, f"{i}_{name}", arrays) for name, value in vars(group).items()}]
                for i, group in enumerate(problem.groups)
            ],
            "quadrature": problem.quadrature,
            "settings": self._settings,
            "mechanism": _law_to_json(self.mechanism),
            "features": list(getattr(self, "feature_names_in_", ())),
            "priors": {name: [type(prior).__name__, prior.arguments] for name, prior in (self.priors or {}).items()},
        }
        return facts, arrays

    def _restore(self, header: Facts, arrays: Mapping[str, Array], runs: list[Run]) -> None:
        super()._restore(header, arrays, runs)
        self.mechanism = _law_from_json(header["mechanism"])
        if names := header.get("features"):
            self.feature_names_in_ = np.array(names, dtype=object)
        self.priors = {
            name: getattr(priors, kind)(*arguments) for name, (kind, arguments) in header["priors"].items()
        } or None

    def _problem_from_archive(self, header: Facts, arrays: Mapping[str, Array]) -> Problem:
        variables = tuple(
            Variable(name, tuple(shape), tuple(dims), labels=own) for name, shape, dims, own in header["variables"]
        )
        groups = [
            KINDS[kind](**{name: decode(value, arrays) for name, value in facts.items()})
            for kind, facts in header["groups"]
        ]
        blocks = tuple(Block(*block) for block in header["blocks"])
        known = tuple(map(self._of_part, groups))
        return Problem(variables, blocks, known, header["quadrature"], self._tolerance)


def law_names(name: str, support: str) -> tuple[str, str]:
    """Return the names of the mean and the standard deviation of the law of a link of groups' parameters."""
    linked = {"real": "", "positive": "log_", "unit": "logit_"}[support] + name
    return f"{linked}_mean", f"{linked}_sd"


def _summed(group: Group) -> Part:
    part = group.summed()
    return replace(part, population=group.population) if isinstance(part, Group) else part


def _law_to_json(mechanism: object) -> Any:
    """Return the law of a mechanism, or of each of a pair, as JSON can hold it."""
    if isinstance(mechanism, (tuple, list)):
        return [_law_to_json(part) for part in mechanism]
    return to_json(None if mechanism is None else law(mechanism))


def _law_from_json(found: Any) -> Any:
    if isinstance(found, list):
        return tuple(_law_from_json(part) for part in found)
    return from_json(found["mechanism"], found["parameters"])


def _plain(value: Floats) -> float | Floats:
    """Return a number as a float, an array as it is."""
    return value if np.ndim(value) else float(value)
