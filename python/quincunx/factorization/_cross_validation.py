"""How many components a release asks for: models are judged by cells that they were fitted without.

    score = mean over held-out cells of log (1/S) sum_s P(released | rate of draw s),  the count before noise summed out

Every cell is held out once. The cells of one fold are held out of the same fit, as `mask` does it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._executors import Listen, Tasks
from quincunx._html import table_html
from quincunx._inference._runs import keys
from quincunx._job import Job
from quincunx._optional import require
from quincunx._progress import Progress
from quincunx._rng import RandomSource
from quincunx._types import DataFrame, Floats
from quincunx.errors import ConvergenceWarning
from quincunx.factorization._blockmodel import PoissonBlockmodel
from quincunx.factorization._data import Counts, Data, Given, as_data
from quincunx.factorization._estimator import CountFactorization
from quincunx.factorization._matrix import PoissonFactorization
from quincunx.factorization._posterior import Posterior
from quincunx.factorization._tensor import PoissonTensorFactorization

#: A number of components, or one for each mode of a tensor with a core.
Size: TypeAlias = int | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What `cross_validate` found: the predictive density of each held-out cell for each number of components.

    Attributes
    ----------
    n_components : tuple of int, or of tuple of int
        The numbers of components that were tried.
    log_densities : ndarray of float64, shape (len(n_components), ...)
        The log predictive density of each cell of the data by the fit without its fold, in nats; NaN where a cell was
        in none.
    fold_of_cell : ndarray of int, of the shape of the data
        The fold in which each cell is held out, -1 where in none.
    random_state : int
        That of every fit.
    converged : ndarray of bool, shape (len(n_components), n_folds)
        Whether a fit would have ended without a ConvergenceWarning.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonFactorization, cross_validate
    >>> from quincunx.privacy import privatize
    >>> counts = np.random.default_rng(1).poisson(20.0, (12, 8))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonFactorization(inference="vi", max_iter=5000, tol=1e-4)
    >>> found = cross_validate(release, model=model, n_components=[1, 2], folds=3, random_state=1)
    >>> found.scores.shape, found.means.shape, found.simplest
    ((2, 3), (2,), 1)
    """

    n_components: tuple[Size, ...]
    log_densities: Floats
    fold_of_cell: npt.NDArray[np.intp]
    random_state: int
    converged: npt.NDArray[np.bool_]

    @property
    def scores(self) -> Floats:
        """Mean log predictive density of the cells of each fold, of shape (len(n_components), n_folds)."""
        folds = range(self.converged.shape[1])
        return np.stack([self.log_densities[:, self.fold_of_cell == fold].mean(axis=1) for fold in folds], axis=1)

    @property
    def means(self) -> Floats:
        """Mean log predictive density of all cells, in nats per cell, for each number of components."""
        found: Floats = self._cells.mean(axis=1)
        return found

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of `means`, by the spread of the cells."""
        return _standard_error(self._cells)

    @property
    def differences(self) -> Floats:
        """How far `means` are below the highest of them."""
        found, highest = np.zeros(len(self.means)), self.means.max()
        np.subtract(highest, self.means, out=found, where=self.means < highest)  # all may be infinite
        return found

    @property
    def difference_errors(self) -> Floats:
        """Standard errors of `differences`, by the spread of the differences of single cells."""
        with np.errstate(invalid="ignore"):  # of cells with a density of 0 in both
            return _standard_error(self._cells - self._cells[self.means.argmax()])

    @property
    def best(self) -> Size:
        """The number of components of highest mean."""
        return self.n_components[int(self.means.argmax())]

    @property
    def simplest(self) -> Size:
        """The least number of components whose mean is within one standard error of the highest.

        Of tuples, the one of the least product: where each mode has its number, the fewest entries of the core.

        The rule of [1]_, with the standard error of the difference: the same cells judge all.

        References
        ----------
        .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984), Classification and regression trees,
           section 3.4.3.
        """
        near = (self.differences == 0) | (self.differences <= self.difference_errors)
        fitting = [number for number, fits in zip(self.n_components, near, strict=True) if fits]
        return min(fitting, key=lambda number: (np.prod(number, dtype=float), number))

    @property
    def _cells(self) -> Floats:
        return self.log_densities[:, self.fold_of_cell >= 0]

    def mask(self, fold: int) -> npt.NDArray[np.bool_]:
        """Return the cells of a fold: the `mask` of its fits.

        Parameters
        ----------
        fold : int
            The number of the fold, from 0.

        Returns
        -------
        ndarray of bool, of the shape of the data
            True where a cell is held out.

        Raises
        ------
        ValueError, TypeError
            If there is no such fold.
        """
        found: npt.NDArray[np.bool_] = self.fold_of_cell == _check.whole(
            fold, "fold", maximum=self.converged.shape[1] - 1
        )
        return found

    def to_pandas(self) -> DataFrame:
        """Return the table: a row for each number of components, its scores by fold, mean and standard errors.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = require("pandas", "pandas")
        return pandas.DataFrame(
            self._columns(), index=pandas.Index(self.n_components, name="n_components", tupleize_cols=False)
        )

    def _columns(self) -> dict[str, Floats]:
        folds = {f"fold_{fold}": column for fold, column in enumerate(self.scores.T)}
        names = ("mean", "standard_error", "difference", "difference_error")
        values = (self.means, self.standard_errors, self.differences, self.difference_errors)
        return folds | dict(zip(names, values, strict=True))

    def __repr__(self) -> str:
        means = ", ".join(f"{k}: {mean:.4f}" for k, mean in zip(self.n_components, self.means, strict=True))
        return f"CrossValidation({{{means}}}, best={self.best}, simplest={self.simplest})"

    def _repr_html_(self) -> str:
        columns = [self.means, self.differences, self.difference_errors]
        rows: dict[str, object] = {
            str(number): f"{mean:.4f}, {difference:.4f} below the best (standard error {error:.4f})"
            for number, mean, difference, error in zip(self.n_components, *columns, strict=True)
        }
        return table_html("log predictive density of a held-out cell, by components", rows)


def cross_validate(
    released: Counts,
    *,
    n_components: Sequence[Size],
    model: CountFactorization | None = None,
    folds: int | npt.ArrayLike = 5,
    alpha: Given = None,
    mask: Given = None,
    threads: int | None = None,
    executor: Executor | None = None,
    random_state: RandomSource | np.random.RandomState = None,
    progress: Progress = False,
) -> CrossValidation:
    """Judge numbers of components by the predictive density of held-out cells under the noise of their release.

    The cells are divided into folds at random. For each number of components and each fold a model is fitted with the
    cells of the fold held out, and judged by ``log mean_s P(released | rate of draw s)`` of these: the probability of
    what was released there, noise and all. So it needs no true counts, and costs no privacy.

    Parameters
    ----------
    released : Release, array_like, data frame, sparse array or networkx graph
        As in `fit` of the model.
    n_components : sequence of int, or of tuples of int
        The numbers of components to try, each >= 1 and given once; tuples for a tensor with a dense core or topics in
        layers, all of them then.
    model : PoissonFactorization, PoissonTensorFactorization, PoissonBlockmodel or PoissonDynamics, optional
        The model, with all other parameters; it is left as it is, and its `callback`, `progress` and `warm_start` are
        not used. By default a `PoissonFactorization` for a matrix, a `PoissonBlockmodel` for a networkx graph, a
        `PoissonTensorFactorization` for more axes, with Gibbs sampling. A network that is a matrix needs its model.
    folds : int or array_like of int
        Number of folds, >= 2; or the fold of each cell from 0, -1 for one that is in none.
    alpha, mask
        As in `fit`. Cells of the mask are in no fold, nor is the diagonal of a network, nor below it what an
        undirected one leaves out.
    threads : int, optional
        Threads of each fit; by default those of the model.
    executor : concurrent.futures.Executor, optional
        Where each fit is one task; give ``threads=1`` with as many tasks at once as there are cores.
    random_state : int, SeedSequence, Generator, RandomState or None
        Makes the folds, and is that of every fit; by default that of the model. What is no int gives one.
    progress : bool or callable
        `True` shows a bar; a function is called as ``progress(done, total)`` after each fit.

    Returns
    -------
    CrossValidation
        With `scores`, `means`, `standard_errors`, `best`, `simplest` and `to_pandas`. They do not depend on threads or
        executors.

    Raises
    ------
    ValueError, TypeError
        If an argument, the data or a parameter of the model is not what it should be.
    TooLargeError
        If what a fit keeps, or a number for each cell and number of components, does not fit into memory.

    Warns
    -----
    ConvergenceWarning
        If fits did not converge; `converged` says which.

    Notes
    -----
    ``len(n_components) * folds`` fits, and for each kept draw (200 of the approximation by variational inference) a
    pass over all cells. Rows split by scikit-learn answer another question: there each held-out row finds its
    embedding by the very cells that it is judged by, which suits more components.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonFactorization, cross_validate
    >>> from quincunx.privacy import privatize
    >>> rng = np.random.default_rng(1)
    >>> counts = rng.poisson(rng.gamma(0.3, 20.0, (30, 2)) @ rng.gamma(0.3, 1.0, (2, 20)))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonFactorization(inference="vi", max_iter=5000, tol=1e-5, n_chains=2)
    >>> found = cross_validate(release, model=model, n_components=[1, 2, 3], folds=4, random_state=0)
    >>> found.best, found.simplest
    (2, 2)
    >>> again = PoissonFactorization(2, inference="vi", max_iter=5000, tol=1e-5, n_chains=2, random_state=0)
    >>> again = again.fit(release, mask=found.mask(0))  # a fit of the first fold by hand
    """
    numbers = _numbers(n_components)
    if model is None:
        model = _default(released)
    if not isinstance(model, CountFactorization):
        raise TypeError(f"`model` must be a model of released counts or None, got {type(model).__name__}")
    job = Job(model.threads if threads is None else threads, progress=progress, executor=executor)
    seed = _seed(model.random_state if random_state is None else random_state)
    fixed = {
        "callback": None,
        "progress": False,
        "warm_start": False,
        "random_state": seed,
        "threads": job.threads_asked,
    }
    clone = require("sklearn.base", "sklearn").clone
    models = [clone(model).set_params(**fixed, n_components=number) for number in numbers]
    for one in models:
        one._check_parameters(None)

    data = models[0]._data(released, alpha, mask, reset=True)
    _check.room(8 * (len(models) + 2) * data.values.size, "a predictive density for each cell and model")
    fold_of_cell = _folds(folds, data, seed)
    number = int(fold_of_cell.max()) + 1
    densities = np.full((len(models), *data.shape), np.nan)
    messages: dict[tuple[int, int], str | None] = {}
    tasks = [(place, fold) for place in range(len(models)) for fold in range(number)]
    with job.reporting("cross-validation"):
        for (place, fold), (found, message) in _judged(job.executor, models, data, fold_of_cell, tasks):
            densities[place][fold_of_cell == fold] = found
            messages[place, fold] = message
            if job.report is not None:
                job.report(len(messages), len(tasks))
    if bad := [message for message in messages.values() if message is not None]:
        words = f"{len(bad)} of {len(tasks)} fits did not converge, one of them since {bad[0]}"
        warnings.warn(words, ConvergenceWarning, stacklevel=2)
    converged = np.array([[messages[place, fold] is None for fold in range(number)] for place in range(len(models))])
    return CrossValidation(tuple(numbers), densities, fold_of_cell, seed, converged)


def _numbers(n_components: Sequence[Size]) -> list[Size]:
    """Return the numbers of components to try."""
    _check.fits(n_components, "n_components")
    try:
        numbers: list[Size] = [_size(number) for number in n_components]
    except TypeError:
        if isinstance(n_components, (Sequence, np.ndarray)) and not isinstance(n_components, (str, bytes)):
            raise
        kind = type(n_components).__name__
        raise TypeError(f"`n_components` must be a sequence of whole numbers, got {kind}") from None
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"`n_components` must hold a number at least, and each once, got {numbers[:20]}")
    if len({isinstance(number, tuple) for number in numbers}) > 1:
        raise ValueError(f"`n_components` must hold numbers or tuples of them, got both: {numbers[:20]}")
    return numbers


def _size(number: Size) -> Size:
    if isinstance(number, (tuple, list)):
        return tuple(_check.whole(one, "n_components", minimum=1) for one in number)
    return _check.whole(number, "n_components", minimum=1)


def _default(released: Counts) -> CountFactorization:
    """Return the model of data of a kind."""
    if _tables.is_network(released):
        return PoissonBlockmodel(directed=released.is_directed())
    if _tables.is_long(released):
        axes = released.index.nlevels
    else:
        _check.fits(released, "released")
        axes = len(released.shape) if hasattr(released, "shape") else np.ndim(released)
    return PoissonTensorFactorization() if axes > 2 else PoissonFactorization()


def _seed(random_state: RandomSource | np.random.RandomState) -> int:
    """Return a random state as an int, which is the same for every fit."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return _check.whole(random_state, "random_state")
    return keys(random_state, 1)[0][0]


def _folds(folds: int | npt.ArrayLike, data: Data, seed: int) -> npt.NDArray[np.intp]:
    """Return the fold of each cell, -1 where a cell is held out of all fits."""
    _check.fits(folds, "folds")
    if not np.ndim(folds):
        number, cells = _check.whole(folds, "folds", minimum=2), np.flatnonzero(data.observed)
        if len(cells) < number:
            raise ValueError(
                f"`folds` must be at most the number of cells that are not masked, {len(cells)}, got {number}"
            )
        found = np.full(data.values.size, -1, dtype=np.intp)
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0x666F6C64]))  # "fold": a stream of its own
        found[rng.permutation(cells)] = np.arange(len(cells)) % number
        return found.reshape(data.shape)
    _tables.refuse_other_labels(_tables.axes(folds), data.axes, "folds")
    found = _check.counts(folds, "folds", minimum=-1).astype(np.intp)
    if found.shape != data.shape:
        raise ValueError(f"`folds` must be a number or have shape {data.shape}, got {found.shape}")
    found = np.where(data.observed, found, -1)
    used = np.unique(found[found >= 0])
    if len(used) < 2 or len(used) != used[-1] + 1:
        raise ValueError(
            f"`folds` must number two folds at least from 0 on, each with a cell, got {used[:20].tolist()}"
        )
    return found


def _judged(
    executor: Executor | None,
    models: list[CountFactorization],
    data: Data,
    fold_of_cell: npt.NDArray[np.intp],
    tasks: list[tuple[int, int]],
) -> Iterator[tuple[tuple[int, int], tuple[Floats, str | None]]]:
    """Yield what each task found, as the tasks end."""
    if executor is None:
        for place, fold in tasks:
            yield (place, fold), judge(models[place], data, fold_of_cell == fold)
        return
    calls = [(models[place], data, fold_of_cell == fold) for place, fold in tasks]
    names = [f"model-{place}-fold-{fold}" for place, fold in tasks]
    with Tasks(executor, judge, calls, names) as judged:
        for task, found in judged:
            yield tasks[task], found


def judge(
    model: CountFactorization, data: Data, held: npt.NDArray[np.bool_], listen: Listen | None = None
) -> tuple[Floats, str | None]:
    """Fit a model without some cells; return the log predictive density of these, and what to warn of."""
    model = copy(model)  # threads of an executor share it
    model.progress = listen
    others = ~data.observed | held
    part = as_data(data.values, data.alpha, others, noise=model.noise, non_integer="error", axes=data.axes)
    _, stopped = model._fit_to(model._problem(part), None)
    if stopped is not None:
        raise stopped
    posterior: Posterior = model._posterior
    alpha = data.alpha[held][None] if data.alpha.ndim else data.alpha
    cells = Data(data.values[held][None], alpha, None)
    return posterior.log_predictive(cells, held, _check.threads(model.threads)), posterior.complaint()


def _standard_error(cells: Floats) -> Floats:
    """Return the standard error of the mean of each row."""
    with np.errstate(invalid="ignore"):  # NaN where a density is 0
        found: Floats = cells.std(axis=1, ddof=1) / np.sqrt(cells.shape[1])
    return found
