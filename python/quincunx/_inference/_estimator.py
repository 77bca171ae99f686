"""What all estimators with a posterior have in common: fits that lose nothing, runs, warm starts, draws, files."""

import copy
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, ClassVar, Never, Self

from quincunx import _check
from quincunx._docs import sections
from quincunx._inference import _archive, _checkpoint
from quincunx._inference._drive import Stopped, run_here, run_on
from quincunx._inference._parameters import Parametrized
from quincunx._inference._posterior import Posterior
from quincunx._inference._runs import Arrays, P, Problem, Run, S, keys
from quincunx._optional import require
from quincunx._progress import reporting
from quincunx._types import Array, Facts, Floats
from quincunx.errors import CheckpointError, ConvergenceError


@sections
class PosteriorEstimator(Parametrized):
    """The base of a room's estimators, beside scikit-learn's where the room has those.

    A room sets `_room`, gives its estimators the parameters ``n_chains, threads, random_state, warm_start, progress``
    and ``callback`` as far as it has them, and defines `_posterior_type`, `_set_fitted`, `_problem_to_archive` and
    `_problem_from_archive`. Its ``fit`` calls `_fit_or_restore`.
    """

    #: The name of the room: in progress bars and files.
    _room: ClassVar[str]
    #: What a fit publishes, by name, and where it comes from: "declared" by arguments; the "shape" of the data and the
    #: names of their columns, which are public; "noise" that a mechanism added; computed from "released" values alone.
    PUBLISHED: ClassVar[dict[str, str]] = {"draws_": "released"}
    #: Parameters, True or False, that are its own.
    _switches: ClassVar[tuple[str, ...]] = ()
    #: What the runs of a fit amount to.
    _posterior_type: ClassVar[type[Posterior[Any]]] = Posterior
    _posterior: Posterior[Any]
    _settings: Facts

    # What each room says of itself.

    def _set_fitted(self, posterior: Any) -> None:
        """Set the fitted attributes from the posterior."""
        raise NotImplementedError

    def _fixed_settings(self) -> Facts:
        """Return the parameters that a fit which continues must not change."""
        return {}

    def _problem_to_archive(self) -> tuple[Facts, Arrays]:
        """Return what the fit worked on: facts for the header of a file, and arrays."""
        raise NotImplementedError

    def _problem_from_archive(self, header: Facts, arrays: Mapping[str, Array]) -> Problem[Never]:
        """Return the problem that was put into a file."""
        raise NotImplementedError

    def _check_runs(self, executor: Executor | None) -> None:
        """Check the parameters that all rooms share, as far as the estimator has them."""
        if hasattr(self, "n_chains"):
            _check.room(2**10 * _check.whole(self.n_chains, "n_chains", minimum=1), "what is known of so many chains")
        if hasattr(self, "threads"):
            _check.threads(self.threads)
        for name in ("warm_start", *self._switches):
            _check.flag(getattr(self, name, False), name)
        callback = getattr(self, "callback", None)
        if callback is not None and not callable(callback):
            raise TypeError(f"`callback` must be a function of (sweep, statistics), got {type(callback).__name__}")
        if executor is not None:
            _check.executor(executor)
            if callback is not None:
                raise ValueError("`callback` must be None with an `executor`, whose chains run elsewhere")

    # Fit.

    def _fit_or_restore(self, fit: Callable[[], tuple[bool, BaseException | None]]) -> BaseException | None:
        """Fit; a fit that fails or keeps nothing leaves the estimator as it was.

        `fit` says whether anything was kept and what stopped it. A request of the user is raised after the fitted
        attributes hold what was kept; a callback that returned False is no error if something was.
        """
        before = dict(self.__dict__)
        try:
            kept, stopped = fit()
        except BaseException:
            self.__dict__ = before  # in one step: a second interrupt must not find it half done
            raise
        if not kept:
            self.__dict__ = before
            if stopped is None or isinstance(stopped, Stopped):
                raise ConvergenceError("the callback stopped the fit before anything was kept")
        if stopped is not None and not isinstance(stopped, Stopped):
            raise stopped
        return stopped

    def _fresh_or_continued(self, problem: P, same: Callable[[P], bool]) -> list[Run]:
        """Return the runs that are to continue: fresh ones, or with `warm_start` those of the last fit.

        `same` says of the earlier problem whether it has the same posterior; if not, what was drawn does not count,
        but it is a good place to begin.
        """
        if not (getattr(self, "warm_start", False) and hasattr(self, "_posterior")):
            return [Run(key) for key in keys(getattr(self, "random_state", None), int(getattr(self, "n_chains", 1)))]
        self._refuse_other_settings()
        if same(self._posterior.problem):
            return self._posterior.runs
        return [Run(run.key, state=self._carried(run.state)) for run in self._posterior.runs]

    def _refuse_other_settings(self) -> None:
        """Refuse a fit that is to go on with other settings."""
        settings = self._fixed_settings()
        for name, earlier in self._settings.items():
            if (now := settings[name]) != earlier:
                raise ValueError(f"`{name}` must be {earlier!r}, as in the fit that goes on, got {now!r}")

    def _carried(self, state: Arrays) -> Arrays:
        """Return the part of a run's state that another posterior can begin at."""
        return state

    def _infer(
        self,
        problem: Problem[S],
        runs: Sequence[Run],
        schedule: S,
        executor: Executor | None,
        keep: tuple[object, float] | None = None,
        sharded: AbstractContextManager[Problem[S]] | None = None,
    ) -> tuple[bool, BaseException | None]:
        """Let the runs continue and set the fitted attributes; say whether anything was kept and what stopped it.

        `keep` is the path of a checkpoint and the seconds between two of its writes; `sharded` has the problem with its
        data in several places while the runs continue.
        """
        file = None if keep is None else self._checkpoint(problem, runs, schedule, keep)
        stopped: BaseException | None = CheckpointError()  # until it is known otherwise, a file has not served yet
        try:
            with (
                sharded or nullcontext(problem) as where,
                reporting(getattr(self, "progress", False), self._room) as report,
            ):
                if file is not None:
                    runs = file.load(where, runs, schedule)
                if executor is None:
                    callback = getattr(self, "callback", None)
                    after, stopped = run_here(where, runs, schedule, report, callback, file)
                else:
                    after, stopped = run_on(executor, problem, runs, schedule, report, file)
        finally:
            if file is not None:
                file.close(remove=stopped is None)
        posterior = self._posterior_type(problem, after)
        if not posterior.with_draws:
            return False, stopped
        self._posterior = posterior
        self._settings = self._fixed_settings()
        self._set_fitted(posterior)
        return True, stopped

    def _checkpoint(
        self, problem: Problem[Any], runs: Sequence[Run], schedule: Any, keep: tuple[object, float]
    ) -> _checkpoint.Checkpoint:
        """Return the checkpoint of a fit, which is known by what `save` would write of it."""
        known = copy.copy(self)
        known._posterior, known._settings = self._posterior_type(problem, runs), self._fixed_settings()
        facts, arrays = known._problem_to_archive()
        how = dataclasses.asdict(schedule)
        for name in ("threads", "draws_dir"):  # which change nothing that is drawn
            how.pop(name, None)
        anew = getattr(self, "random_state", None) is None
        return _checkpoint.of_fit(keep, [type(self).__name__, facts, how], arrays, runs, any_keys=anew)

    # Results.

    def _lazily(self) -> Any:
        """Return the posterior for a property, whose absence is an AttributeError."""
        if not hasattr(self, "_posterior"):
            error = require("sklearn.exceptions", "sklearn").NotFittedError  # an AttributeError and a ValueError
            raise error(f"this {type(self).__name__} is not fitted yet")
        return self._posterior

    @property
    def draws_(self) -> dict[str, Floats]:
        """The kept draws by name, each of shape (n_chains, n_draws, ...); with variational inference there are none."""
        posterior = self._lazily()
        if not posterior.sampled:
            raise AttributeError("variational inference has no draws; see `to_datatree`")
        draws: dict[str, Floats] = posterior.draws()
        return draws

    # Files.

    def save(self, target: "str | os.PathLike[str] | BinaryIO") -> None:
        """Write the estimator to an npz file, without pickle.

        The file holds the parameters, the data that were fitted, the draws and the state of the chains, so that after
        `load` a fit with ``warm_start=True`` goes on bit for bit. Functions (`callback`, `progress`) are left out,
        and so is a `random_state` that is not an int.

        Parameters
        ----------
        target : path or binary file
            Where to. A file is there wholly or not at all.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        runs = self._fitted().runs
        facts, arrays = self._problem_to_archive()
        arrays = dict(arrays)
        mine = {name: _archive.encode(value, name, arrays) for name, value in self.get_params(deep=False).items()}
        _archive.save(target, self._room, {"estimator": type(self).__name__, "parameters": mine, **facts}, arrays, runs)

    def _fitted(self) -> Posterior[Any]:
        """Return the posterior, or say that there is none."""
        try:
            self._lazily()
            return self._posterior
        except AttributeError as error:
            raise ValueError(f"{error}: call `fit` first") from None

    @classmethod
    def load(cls, source: "str | os.PathLike[str] | BinaryIO") -> Self:
        """Read an estimator that `save` wrote.

        Parameters
        ----------
        source : path or binary file
            Where from.

        Returns
        -------
        estimator
            Of this class, fitted.

        Raises
        ------
        ValueError
            If the file holds no such estimator.
        {unpacked}
        """
        return _archive.load(source, cls._room, cls.__name__, cls._from_archive)

    @classmethod
    def _from_archive(cls, header: Facts, arrays: Mapping[str, Array], runs: list[Run]) -> Self:
        """Return the estimator that a file holds."""
        model = cls(**{name: _archive.decode(value, arrays) for name, value in header["parameters"].items()})
        model._restore(header, arrays, runs)
        return model

    def _restore(self, header: Facts, arrays: Mapping[str, Array], runs: list[Run]) -> None:
        """Set what a file holds."""
        self._posterior = self._posterior_type(self._problem_from_archive(header, arrays), runs)
        self._settings = header["settings"]
        self._set_fitted(self._posterior)
