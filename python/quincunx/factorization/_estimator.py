"""What the estimators of this room have in common: scikit-learn's contract around runs of the core."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, field, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypedDict

import numpy as np

from quincunx import _check, _core, _tables
from quincunx._docs import assembled
from quincunx._inference import Arrays, Callback, Run, Schedule, parameters
from quincunx._inference._checkpoint import Checkpoint, kept_until_the_end
from quincunx._inference._shards import Host, current
from quincunx._progress import Progress
from quincunx._rng import RandomSource
from quincunx._sklearn import Deferred, validation
from quincunx._tables import Axes
from quincunx._types import Array, Client, Facts, Floats, Tags
from quincunx.errors import MisfitWarning, TooLargeError
from quincunx.factorization._chains import Problem
from quincunx.factorization._data import Counts, Data, Given, as_data, as_mask, unpack
from quincunx.factorization._dispersion import Dispersion, Likelihood, Shapes
from quincunx.factorization._layout import Factor, Layout, PriorLike
from quincunx.factorization._misfit import working_memory
from quincunx.factorization._parts import Lazy, Parts, are_files, is_lazy
from quincunx.factorization._posterior import Posterior
from quincunx.factorization._results import Results
from quincunx.factorization._rows import infer_rows, row_prior
from quincunx.factorization._sharded import sharded
from quincunx.privacy._release import Release

#: The methods of both kinds of inference.
Method: TypeAlias = Literal["auto", "collapsed", "event", "split", "bessel", "bessel-mean", "bessel-mode", "published"]

METHODS = {
    "mcmc": ("auto", "collapsed", "event", "split", "bessel"),
    "vi": ("auto", "collapsed", "bessel-mean", "bessel-mode", "published"),
    "svi": ("auto", "collapsed"),
}


#: The parameters that all models have, and what methods that fit first have.
model_doc = assembled(
    as_fit="""
    Parameters
    ----------
    released, y, **how
        As in `fit`.
    """,
    learnt="""
    priors_ : dict
        Shape and rate of each gamma prior, by the name of its factor: posterior means where `hyperpriors` says that
        they are learnt. Each is one number, or of the shape of the factor, where a rate of each row stands for each of
        its entries.
    dispersion_ : float or ndarray
        Posterior mean of the dispersion of negative binomial counts, over all chains.
    """,
    done="""
    elbo_ : ndarray
        The ELBO after each iteration of variational inference.
    n_iter_ : int
        Sweeps or iterations done.
    """,
    in_nats="""
    y : None
        Not used.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError, TypeError
        If the data are not what they should be, or all is held out.
    """,
    inference="""
    hyperpriors : {"factor", "row"} or None, default=None
        Whether the gamma priors are learnt, from `prior_shape` and `prior_rate`: a shape and a rate for each factor, or
        a shape for each factor and a rate for each of its rows, as hierarchical Poisson factorization has. Shapes are
        exponential of mean 1 a priori, cut to [1/20, 100], and rates without the cut; variational inference takes the
        values of highest bound. Dirichlet laws have one concentration for all entries of a factor, exponential of
        mean 1 as well and in variational inference at least 1/500. `priors_` has what was learnt.
    likelihood : {"poisson", "negative_binomial"}, default="poisson"
        The law of a count given its rate. Negative binomial counts are overdispersed: of variance ``rate + rate**2 *
        dispersion``. Where counts are, as those of messages mostly, a Poisson model takes cells far above their rates
        for noise and loses them.
    dispersion : {"global", "row", "column"} or float, default="global"
        With negative binomial counts, what has a dispersion of its own, which is learnt, or the dispersion of all, in
        [1e-7, 1e7]. Rows and columns are those of a matrix or of ordered pairs. The logarithm of what is learnt is
        normal a priori, of mean 0 and standard deviation 3, or 1.5 where each row or column has its own; variational
        inference takes the value of highest bound.
    inference : {"mcmc", "vi", "svi"}, default="mcmc"
        Gibbs sampling, or variational inference by coordinate ascent, which is faster and approximate; of
        `PoissonFactorization` alone ``"svi"``, the same by batches of rows.
    method : str, default="auto"
        For ``"mcmc"``: ``"collapsed"`` draws each count given its release in closed form; ``"event"`` proposes single
        events, so that its work follows their number and not that of the cells; ``"split"`` uses events where the
        release is not positive and draws the other cells; ``"bessel"`` is the published sampler with its auxiliary
        variables. All four have the same posterior; ``"auto"`` takes the one that costs least. For ``"vi"``:
        ``"collapsed"`` (which is also ``"auto"``), ``"bessel-mean"``, ``"bessel-mode"``, or ``"published"``, which is
        no coordinate ascent: its ELBO can fall, and at strong privacy it collapses to the prior. For ``"svi"``:
        ``"collapsed"``.
    noise : {"geometric", "none", "naive"}, default="geometric"
        ``"geometric"``: the release carries two-sided geometric noise. The others are references: ``"none"``: it is the
        true counts; ``"naive"``: it is taken for the true counts after negative ones are set to 0.
    n_chains : int, default=4
        Independent chains, or starts of variational inference, of which the one of highest ELBO wins.
    n_warmup : int, default=1000
        Sweeps of each chain before the first that may be kept.
    n_draws : int, default=500
        Draws that each chain keeps.
    thin : int, default=4
        Sweeps for each draw: of those after the warm-up, ``n_draws * thin`` in all, the ones are kept whose number it
        divides. Each draw costs another pass over all cells, for its likelihood.
    max_iter : int, default=3000
        The most iterations of variational inference; by batches, of passes over all rows.
    tol : float, default=1e-6
        Relative change of the ELBO below which variational inference ends; by batches, of its mean over a pass.
    threads : int, optional
        Threads to use; by default all this process may use. The result does not depend on it.
    random_state : int, SeedSequence, Generator, RandomState or None
        Where all randomness comes from. Each chain has a stream of its own, whatever the number of chains.
    warm_start : bool, default=False
        Whether `fit` goes on where the last one ended: with the same data and priors, `n_draws` more draws or
        `max_iter` more iterations, bit for bit as if they had been done at once; with others of the same shape, a new
        posterior that begins at the last factors.
    progress : bool or callable, default=False
        `True` shows a bar; a function is called as ``progress(done, total)``.
    callback : callable, optional
        Called as ``callback(sweep, statistics)`` after each sweep or iteration, with a dict of ``chain``,
        ``total_rate``, ``total_count`` and ``log_likelihood`` (None at a sweep that is not kept), or of ``chain`` and
        ``elbo``. The fit ends when it returns False.
    non_integer : {"error", "round"}, default="error"
        What happens to values that are not whole.
    """,
)


class FitOptions(TypedDict, total=False):
    """What `fit` takes by name besides the data."""

    alpha: Given
    mask: Given
    executor: Executor | None
    client: Client | Host | int | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_interval: float
    draws_dir: str | os.PathLike[str] | None


@parameters
class CountFactorization(Deferred, Results, sklearn=("BaseEstimator",)):
    """Parameters, fit, results and files of all models of this room."""

    _room: ClassVar = "factorization"
    _posterior_type: ClassVar = Posterior
    #: The parameters that decide the layout, beside its switches.
    _sizes_of: ClassVar[tuple[str, ...]] = ("n_components",)
    #: The kinds of inference it has.
    _inferences: ClassVar[tuple[str, ...]] = ("mcmc", "vi")
    #: Whether data may have more axes than a matrix.
    _of_tensors: ClassVar[bool] = False
    #: Whether data after those of the fit are of other rows.
    _takes_new_rows: ClassVar[bool] = False
    PUBLISHED: ClassVar = Results.PUBLISHED | {
        "n_features_in_": "shape",
        "feature_names_in_": "shape",
        "components_": "released",
        "embedding_": "released",
        "dispersion_": "released",
        "priors_": "released",
    }
    _posterior: Posterior = field(init=False)

    # The data go by position, and are no metadata to route.
    _data_arguments: ClassVar = {
        "fit": "released",
        "partial_fit": "released",
        "transform": "released",
        "score": "released",
        "predict": "released",
        "inverse_transform": "embedding",
    }

    n_components: int = field(default=10, kw_only=False)
    prior_shape: PriorLike = 0.1
    prior_rate: PriorLike = 1.0
    hyperpriors: Literal["factor", "row"] | None = None
    likelihood: Likelihood = "poisson"
    dispersion: str | float = "global"
    inference: Literal["mcmc", "vi"] = "mcmc"
    method: Method = "auto"
    noise: Literal["geometric", "none", "naive"] = "geometric"
    n_chains: int = 4
    n_warmup: int = 1000
    n_draws: int = 500
    thin: int = 4
    max_iter: int = 3000
    tol: float = 1e-6
    threads: int | None = None
    random_state: RandomSource | np.random.RandomState = None
    warm_start: bool = False
    progress: Progress = False
    callback: Callback | None = None
    non_integer: Literal["error", "round"] = "error"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = self._of_tensors
        tags.input_tags.positive_only = self.noise != "naive"  # of plain arrays without an `alpha`
        return tags

    # What each model says of itself.

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        raise NotImplementedError

    def _checked_values(self, released: Counts, *, reset: bool) -> Array:
        """Return the values as an array of the model's number of axes, scikit-learn's way."""
        if self._of_tensors and (released.ndim if hasattr(released, "ndim") else np.ndim(np.asarray(released))) > 2:
            return self._checked_tensor(released, reset=reset)
        values = validation().validate_data(
            self, released, reset=reset, accept_sparse=["csr", "csc", "coo"], ensure_all_finite=False
        )
        return _tables.array(values, "released")  # type: ignore[no-any-return]

    def _checked_tensor(self, released: Counts, *, reset: bool) -> Array:
        """Return data of more axes than a matrix as an array; scikit-learn knows the second as features."""
        values: Array = validation().check_array(
            released, allow_nd=True, ensure_all_finite=False, input_name="released"
        )
        if not values.size:
            raise ValueError(f"`released` must have a cell at least, got shape {values.shape}")
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = values.shape[1]
        return values

    # Fit.

    def fit(
        self,
        released: Counts,
        y: object = None,
        *,
        alpha: Given = None,
        mask: Given = None,
        executor: Executor | None = None,
        client: Client | Host | int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        draws_dir: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Infer the posterior from released counts.

        Parameters
        ----------
        released : Release, array_like, data frame, sparse array or list of paths
            The counts after their noise. A masked array's mask is heeded. Labels of a release, a data frame or an
            xarray DataArray are kept. A Series of pandas whose index has a level for each axis is a long table, whose
            missing cells are zero. A networkx graph is its matrix of weights. A list of npz files, which `Release.save`
            wrote, is a matrix or tensor whose rows (slices along the first axis) they have one after the other, each
            but the last a multiple of 128: each is read where it is used, and what is warned of with other data is
            left to `misfit_`, which reads all. With a `client` so is an array of Dask, whose rows its workers compute.
        y : None
            Not used.
        alpha : float or array_like, optional
            Ratio of the two-sided geometric noise, in [0, 1): a number, or one for each cell. A Release knows its
            own. A plain array without it is taken for counts without noise, and a negative value is then refused.
            Without effect unless ``noise="geometric"``.
        mask : array_like of bool, optional
            True where a cell is held out, as in `numpy.ma`; such a cell has no influence, whatever it holds.
        executor : concurrent.futures.Executor, optional
            Where each chain is one task: a thread or process pool, loky, Dask's ``Client.get_executor()``, MPI. The
            draws do not depend on it. Progress then counts chains, and there can be no callback.
        client : distributed.Client, MPIShards or int, optional
            Where the rows of a matrix or tensor are, in one part for each worker of Dask or rank of MPI, or in so many
            parts in this process, one after the other. Every chain lives in all of them. The draws do not depend on it,
            bit for bit; an ascent is the same for any number of parts, and differs by rounding from one without them.
            There can be no callback, and no executor beside it. Each axis must have a factor of its own.
        checkpoint : path, optional
            Where the fit keeps its chains. Called again with the same path, data and parameters after a stop, even by
            ``kill -9``, it goes on from there and gives the same draws, bit for bit; with ``random_state=None``, those
            of the stream that was begun; with ``warm_start=True`` by an estimator that is as it was before the stop.
            The file is removed at the end. An array of Dask, with a `client`, is known by its name, which may be the
            path that it is read from: what is there must not change.
        checkpoint_interval : float, default=60
            Seconds between two checkpoints, and more where writing would take over a twentieth of the time. With an
            `executor` tasks end as often and go on in new ones.
        draws_dir : path, optional
            A folder on whose disk the draws lie, where they are too many for the memory: in files without names, which
            are gone with the estimator. They are read as they are asked for: posterior means pass through them, while
            `draws_` of several chains, `align`, `to_datatree`, `save`, pickles and a checkpoint that is read have all
            of them in memory. Not with an `executor`, and for ``inference="mcmc"`` only.

        Returns
        -------
        self

        Raises
        ------
        TooLargeError
            If what is to be kept does not fit into the available memory, or a part into that of a worker; before any
            work.
        ValueError, TypeError
            If an argument or a parameter is not what it should be.
        OSError
            If a file of a list cannot be read, or the disk of `draws_dir` has no room for the draws.
        ConvergenceError
            If the callback stopped the fit before anything was kept.
        CheckpointError
            If the checkpoint cannot be written, is damaged or in use, or belongs to another fit.
        WorkerError
            If the workers of an executor are gone, as in `quincunx.counting.count_independent_sets`; nothing is kept
            but the checkpoint.

        Warns
        -----
        ConvergenceWarning
            If R-hat exceeds 1.01 or fewer than 400 draws are effective, for the total rate or the log-likelihood; with
            variational inference, if the tolerance was not met. R-hat and effective sizes are ArviZ's and not looked at
            where ``arviz-stats`` is not installed.
        MisfitWarning
            If the noise would have to be what it cannot be for the model to be true: see `misfit_`.

        Notes
        -----
        After Ctrl-C, or an exception of `callback` or of a progress function, the fitted attributes hold what was kept
        until then, if anything was, and the exception goes on. A fit that fails otherwise leaves the earlier one as it
        was.

        With ``inference="svi"`` a pass reads one of several files after the other, and batches do not reach from one
        into another: their cells are never together in memory, but what is found of their rows is.
        """
        keep = None if checkpoint is None else (checkpoint, checkpoint_interval)
        with kept_until_the_end():
            stopped = self._fit_or_restore(lambda: self._fit(released, alpha, mask, executor, client, keep, draws_dir))
            if stopped is None:
                self._posterior.warn()
                parts = isinstance(self._posterior.problem.data, Parts)  # which need not fit into this memory
                if not parts and (complaint := self.misfit_.complaint) is not None:
                    words = f"the model does not fit: {complaint}. {self._remedy()}"
                    warnings.warn(words, MisfitWarning, stacklevel=2)
        return self

    def _fit(
        self,
        released: Counts,
        alpha: Given,
        mask: Given,
        executor: Executor | None,
        client: Client | Host | int | None,
        keep: tuple[object, float] | None,
        draws_dir: str | os.PathLike[str] | None,
    ) -> tuple[bool, BaseException | None]:
        """Fit, and say whether anything was kept and what stopped it."""
        self._check_parameters(executor)
        folder = _check.path(draws_dir, "draws_dir")
        if folder is not None:
            if executor is not None or self.inference != "mcmc":
                where = "with an `executor`" if executor is not None else f"with inference={self.inference!r}"
                raise ValueError(f"`draws_dir` must be None {where}")
            if not os.path.isdir(folder):
                raise ValueError(f"`draws_dir` must be a folder, got {folder!r}")
        for name, value in (("executor", executor), ("callback", self.callback)):
            if client is not None and value is not None:
                raise ValueError(f"`{name}` must be None with a `client`, whose workers have a part of all chains each")
        data: Data
        if client is not None and is_lazy(released):
            if mask is not None:
                raise ValueError("`mask` must be None with an array of Dask")
            data = self._named(Lazy(released, alpha, self.noise, self.non_integer))
        elif are_files(released):
            data = self._parts(released, alpha, mask)
        else:
            data = self._data(released, alpha, mask, reset=True)
        with current(client):
            return self._fit_to(self._problem(data), executor, keep, client, folder)

    def _problem(self, data: Data) -> Problem:
        """Return what the parameters make of data."""
        layout = self._layout(data.shape)
        priors = self._priors(layout)
        self._refuse_other_priors(data)
        dispersion = None
        if self.likelihood == "negative_binomial":
            dispersion = Dispersion.of(self.dispersion, layout, data)
        return Problem(data, layout, priors, self.inference, self._core_method(), dispersion, self.hyperpriors)

    def _refuse_other_priors(self, data: Data) -> None:
        """Refuse priors that have the labels of an axis in another order."""
        for name in ("prior_shape", "prior_rate", "topic_concentration"):
            value = getattr(self, name, None)
            entries = value if isinstance(value, (list, tuple)) else [value]
            for axis, own in itertools.product(itertools.chain(*map(_tables.axes, entries)), data.axes):
                if set(axis.labels or ()) == set(own.labels or ()):
                    _tables.refuse_other_labels((axis,), (own,), name)

    def _fit_to(
        self,
        problem: Problem,
        executor: Executor | None,
        keep: tuple[object, float] | None = None,
        client: Client | Host | int | None = None,
        draws_dir: str | None = None,
    ) -> tuple[bool, BaseException | None]:
        runs = self._runs(problem)
        schedule = replace(self._schedule(runs), draws_dir=draws_dir)
        by_parts = problem.inference == "svi" and isinstance(problem.data, Parts)  # one after the other
        self._forecast(problem, runs, schedule, here=client is None and not by_parts)
        shards = None if client is None else sharded(problem, client, self.threads)
        return self._infer(problem, runs, schedule, executor, keep, shards)

    def _remedy(self) -> str:
        """Return what to do about a model that does not fit."""
        problem = self._posterior.problem
        poisson_only = any(problem.dirichlet) or problem.layout.model == "dynamics"
        named = self.likelihood == "poisson" and not poisson_only
        other = ', which `likelihood="negative_binomial"` allows' if named else ""
        return (
            "Either the fit has not found the best that the model can do (more sweeps, starts or components help), or "
            f"counts vary more than it allows{other}: they then pass for noise, and what the fit says of sums and of "
            "counts to come is off by as much"
        )

    def _fixed_settings(self) -> Facts:
        dispersion: str | float = "global"  # Poisson counts have none
        if self.likelihood != "poisson":
            dispersion = self.dispersion if isinstance(self.dispersion, str) else float(self.dispersion)
        found = self._sizes() | {"inference": self.inference, "n_chains": int(self.n_chains)}
        found |= {"likelihood": self.likelihood, "dispersion": dispersion, "hyperpriors": self.hyperpriors}
        return found | {name: bool(getattr(self, name)) for name in self._switches}

    def _sizes(self) -> Facts:
        """Return the parameters of `_sizes_of`, checked, as JSON can hold them."""
        return {"n_components": _check.whole(self.n_components, "n_components", minimum=1)}

    def _check_parameters(self, executor: Executor | None) -> None:
        self._sizes()
        _check.one_of(self.inference, "inference", self._inferences)
        _check.one_of(self.method, "method", METHODS[self.inference])
        if self.hyperpriors is not None:
            _check.one_of(self.hyperpriors, "hyperpriors", ("factor", "row"))
        _check.one_of(self.likelihood, "likelihood", ("poisson", "negative_binomial"))
        if self.likelihood != "poisson" and self.method not in ("auto", "collapsed"):
            raise ValueError(f"`method` must be 'auto' or 'collapsed' for overdispersed counts, got {self.method!r}")
        _check.one_of(self.noise, "noise", ("geometric", "none", "naive"))
        _check.one_of(self.non_integer, "non_integer", ("error", "round"))
        _check.whole(self.n_warmup, "n_warmup")
        for name in ("n_draws", "thin", "max_iter"):
            _check.whole(getattr(self, name), name, minimum=1)
        _check.nonnegative(self.tol, "tol")
        self._check_runs(executor)

    def _priors(self, layout: Layout) -> list[tuple[Floats, Floats]]:
        """Return the priors as the core takes them."""
        return layout.priors(self.prior_shape, self.prior_rate)

    def _core_method(self) -> str:
        return "collapsed" if self.inference != "mcmc" and self.method == "auto" else self.method

    def _table(self, released: Counts) -> tuple[Counts, Axes, bool]:
        """Return data as an array where they are a long table or a network, their axes, and whether all is told."""
        if _tables.is_long(released):
            return _tables.from_long(released, "released")
        return _tables.array(released, "released") if _tables.is_network(released) else released, *(
            _tables.axes(released),
            True,
        )

    def _data(self, released: Counts, alpha: Given, mask: Given, *, reset: bool) -> Data:
        if are_files(released):
            raise ValueError("`released` must be one table here, got a list of files, which `fit` alone takes")
        table, axes, complete = self._table(_check.computed(released))
        _tables.refuse_other_labels(_tables.axes(alpha), axes, "alpha")
        _tables.refuse_other_labels(_tables.axes(mask), axes, "mask")
        values, ratios, held_out = unpack(table, alpha, mask, self.noise)
        if not complete and ratios.any():
            raise ValueError(
                "`released` must have a line for each cell where there is noise, for that is in zeros as well"
            )
        checked = self._checked_names(values, axes, reset=reset)
        held_out = as_mask(held_out, checked.shape)
        told = self if reset else self._as_fitted()
        own = told._own_held_out(checked.shape, new_rows=not reset and self._takes_new_rows)
        if own is not None:
            held_out = own if held_out is None else held_out | own
        named = _tables.fitting(axes, checked.shape)
        if not reset:
            of_fit = self._posterior.problem.data.axes
            _tables.refuse_other_labels(named, of_fit, "released", "the fit", first=int(self._takes_new_rows))
        how = {"noise": self.noise, "non_integer": self.non_integer}
        return as_data(checked, ratios, held_out, **how, axes=named, kept=isinstance(table, Release))

    def _parts(self, paths: Sequence[str | os.PathLike[str]], alpha: Given, mask: Given) -> Parts:
        """Return the rows of several files, of which nothing is read but shapes and labels."""
        for name, value in (("alpha", alpha), ("mask", mask)):
            if value is not None:
                raise ValueError(f"`{name}` must be None with files of releases, which have their own")
        return self._named(Parts(paths, self.noise, self.non_integer))

    def _named(self, data: Parts) -> Parts:
        """Take the names of the columns from data that are not read yet."""
        if not self._of_tensors and len(data.shape) > 2:
            raise ValueError(f"`released` must have two axes for this model, got {len(data.shape)}")
        if self._own_held_out((1,) * len(data.shape)) is not None:
            raise ValueError(
                "`released` must be one table for this model, which holds out the cells in which indices agree"
            )
        self.n_features_in_ = data.shape[1]
        names = data.axes[1].labels if data.axes and len(data.shape) == 2 else None
        self.__dict__.pop("feature_names_in_", None)
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return data

    def _checked_names(self, values: Counts, axes: Axes, *, reset: bool) -> Array:
        """Check values; the columns of a release have names as those of a data frame do."""
        names = axes[1].labels if len(axes) > 1 and not hasattr(values, "columns") else None
        if not names or not all(isinstance(name, str) for name in names):
            return self._checked_values(values, reset=reset)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            checked = self._checked_values(values, reset=reset)
        if reset and checked.ndim == 2:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif not reset and list(names) != list(getattr(self, "feature_names_in_", names)):
            raise ValueError("The feature names should match those that were passed during fit.")
        return checked

    def _runs(self, problem: Problem) -> list[Run]:
        """Return the runs that are to continue: fresh ones, or with `warm_start` those of the last fit."""

        def same(old: Problem) -> bool:
            shape = old.data.shape
            if problem.data.shape != shape:
                raise ValueError(
                    f"`released` must have shape {shape}, as in the fit that goes on, got {problem.data.shape}"
                )
            return problem.data.is_same(old.data) and _equal(problem.priors, old.priors)

        return self._fresh_or_continued(problem, same)

    def _carried(self, state: Arrays) -> Arrays:
        return {name: array for name, array in state.items() if not name.startswith(("noise", "seen", "prior"))}

    def _schedule(self, runs: list[Run]) -> Schedule:
        done, warmup, thin = max(run.iteration for run in runs), int(self.n_warmup), int(self.thin)
        until = max(done, warmup) + int(self.n_draws) * thin
        if self.inference != "mcmc":
            until = done + min(int(self.max_iter), 2**53)
        return Schedule(until, warmup, thin, float(self.tol), self.threads)

    def _forecast(self, problem: Problem, runs: list[Run], schedule: Schedule, *, here: bool = True) -> None:
        """Refuse a fit whose draws, or whose cells, would not fit into memory.

        Where the cells are elsewhere, the draws alone are here.
        """
        entries, cells = problem.layout.entries, math.prod(problem.data.shape) if here else 0
        kept = 0
        if problem.inference == "mcmc" and schedule.draws_dir is None:
            kept = schedule.until // schedule.thin - schedule.n_warmup // schedule.thin
        # What a run works with: its factors and the tallies of each thread; an ascent has laws instead, and their sums.
        arrays = (4 if problem.inference == "mcmc" else 14) + _check.threads(self.threads)
        draws = 8 * entries * (kept + arrays) * len(runs)
        totals = 16 * schedule.until * len(runs) if problem.inference == "mcmc" else 0  # of rates and counts, by sweep
        state = cells * (25 if problem.method == "bessel" else 1)
        if problem.dispersion is not None:
            state += cells * (31 if problem.sampled else 65)
        if here and problem.data.alpha.ndim == 0 and problem.data.alpha > 0:
            state += 4 * int(np.count_nonzero(problem.data.values > 0))  # their lists by row and value
        state *= len(runs)
        check = working_memory(cells, problem.data.shape[-1])
        limit = _check.available_memory()
        if (needed := draws + totals + state + check) > limit:
            raise TooLargeError(
                f"the fit needs about {needed} bytes, {draws} of them for {kept} draws of each of {len(runs)} chains "
                f"and {totals} for the totals of {schedule.until} sweeps, and {limit} are available: take fewer draws, "
                "sweeps or components, or a `draws_dir`",
                needed,
                limit,
            )

    # New data.

    def _new_data(self, released: Counts, alpha: Given, mask: Given) -> Data:
        """Check data to judge by the fit; their noise is by default that of the fit."""
        if alpha is None and not isinstance(released, Release):
            alpha = self._earlier_alpha()
        return self._data(released, alpha, mask, reset=False)

    def _earlier_alpha(self) -> Floats:
        """Return the ratio of the noise of the fit, if it was one number."""
        alpha: Floats = self._posterior.problem.data.alpha
        if alpha.ndim:
            raise ValueError("`alpha` must be given for new data, as that of the fit differs from cell to cell")
        return alpha

    @property
    def priors_(self) -> dict[str, tuple[Floats, Floats]]:
        """Shape and rate of each prior by the name of its factor; posterior means where they are learnt.

        Each is one number, or of the shape of the factor. A Dirichlet law has its concentration for a shape, and no
        rate.
        """
        posterior: Posterior = self._lazily()
        layout, found = posterior.problem.layout, posterior.priors()

        def shown(factor: Factor, part: Floats) -> Floats:
            return part if part.size <= 1 else factor.shown(part.reshape(factor.shape))

        return {
            factor.name: (shown(factor, shape), shown(factor, rate))
            for factor, (shape, rate) in [(layout.factors[i], found[i]) for i in layout.apart]
        }

    @property
    def dispersion_(self) -> float | Floats:
        """The posterior mean of the dispersion, over all chains; not there for Poisson counts."""
        posterior: Posterior = self._lazily()
        if posterior.problem.dispersion is None:
            raise AttributeError("Poisson counts have no dispersion")
        found = posterior.dispersion()
        return float(found) if found.ndim == 0 else found

    def _shapes(self, *, new_rows: bool) -> Shapes | None:
        """Return what the core is told of the dispersion of other data; new rows have that of a middling row."""
        dispersion = self._posterior.problem.dispersion
        if dispersion is None:
            return None
        values = np.atleast_1d(np.asarray(self._posterior.dispersion(), dtype=np.float64))
        if new_rows and dispersion.axis == "rows":
            return "table", 1 / np.exp(np.log(values).mean(keepdims=True))
        return dispersion.shapes(values)

    def _mean_log_likelihood(self, data: Data, rates: Floats, *, new_rows: bool) -> float:
        """Return the mean over observed cells of the log-likelihood at given rates."""
        number = int(data.observed.sum())
        if not number:
            raise ValueError("`mask` must leave a cell at least, got all held out")
        flat = np.ascontiguousarray(rates).reshape(-1)
        used = _check.threads(self.threads)
        return float(_core.log_likelihoods(data.counts, flat, used, self._shapes(new_rows=new_rows)).sum() / number)

    def _infer_rows(self, data: Data, components: Floats) -> Floats:
        """Return the expected embedding of rows, the components being known."""
        problem = self._posterior.problem
        layers = problem.layout.model == "layers"
        prior = self._posterior.of_rows_to_come() if layers else self._posterior.priors()[0]
        shape, rate = (row_prior(part, problem.layout.factors[0].shape[1]) for part in prior)
        shapes, threads = self._shapes(new_rows=True), _check.threads(self.threads)
        return infer_rows(data, components, (shape, rate), shapes, threads)

    # Files.

    def _problem_to_archive(self) -> tuple[Facts, Arrays]:
        problem = self._posterior.problem
        axes = _tables.to_json(problem.data.axes)
        arrays = {"values": problem.data.values, "alpha": problem.data.alpha}
        if problem.data.held_out is not None:
            arrays["held_out"] = problem.data.held_out
        for i, (shape, rate) in enumerate(problem.priors):
            arrays |= {f"prior_{i}_shape": shape, f"prior_{i}_rate": rate}
        if self._posterior.order is not None:
            arrays["order"] = self._posterior.order
        return {
            "inference": problem.inference,
            "method": problem.method,
            "batches": problem.batches and asdict(problem.batches),
            "settings": self._settings,
            "n_features": int(self.n_features_in_),
            "axes": axes,
            "features": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
        }, arrays

    def _checkpoint(self, problem: Any, runs: Sequence[Run], schedule: Any, keep: tuple[object, float]) -> Checkpoint:
        data = problem.data
        if isinstance(data, Lazy if problem.batches is None else Parts):  # which need not fit into this memory
            name = np.frombuffer(data.digest.encode(), dtype=np.uint8)
            problem = replace(problem, data=Data(name, np.zeros(()), None))
        return super()._checkpoint(problem, runs, schedule, keep)

    def _restore(self, header: Facts, arrays: Mapping[str, Array], runs: list[Run]) -> None:
        super()._restore(header, arrays, runs)
        if "order" in arrays:
            self._posterior.order = arrays["order"]
            self._set_fitted(self._posterior)

    def _problem_from_archive(self, header: Facts, arrays: Mapping[str, Array]) -> Problem:
        self.n_features_in_ = header["n_features"]
        if header["features"] is not None:
            self.feature_names_in_ = np.array(header["features"], dtype=object)
        values = arrays["values"]  # each look at an archive reads the array anew
        data = Data(
            values,
            arrays["alpha"],
            arrays["held_out"] if "held_out" in arrays else None,
            _tables.from_json(header.get("axes", ()), values.shape),
        )
        # The parameters that decided the layout; they may have been changed since.
        settings = header["settings"]
        layout = type(self)(**settings)._layout(data.shape)
        dispersion = None
        if settings["likelihood"] != "poisson":
            dispersion = Dispersion.of(settings["dispersion"], layout, data)
        priors = [(arrays[f"prior_{i}_shape"], arrays[f"prior_{i}_rate"]) for i in range(len(layout.factors))]
        return Problem(data, layout, priors, header["inference"], header["method"], dispersion, settings["hyperpriors"])


def _equal(some: list[tuple[Floats, Floats]], others: list[tuple[Floats, Floats]]) -> bool:
    return all(
        np.array_equal(a, b) for pair, other in zip(some, others, strict=True) for a, b in zip(pair, other, strict=True)
    )
