"""The command line: one verb per main function, nothing that Python cannot do.

A verb is a row of `VERBS`: a function whose signature gives the arguments (`_verbs`). What it returns is printed.

Results go to standard output; progress goes to standard error, and only to a terminal. Exit status 0: done; 1: a fault
of the machine; 2: bad arguments or a job larger than its limits, with the error's sentence; 3: refused by a budget;
75: a job was told to stop, and saved; 130: interrupted.
"""

import argparse
import json as json_module
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

import quincunx
from quincunx import _check, _core, _executors, _job_folder, _units
from quincunx._arguments import Boundary, Dask, File, On, Size, graph_of, lines_of, output_of, source_of
from quincunx._jobs import Started
from quincunx._types import Facts
from quincunx._verbs import Function, Idle, Parser, Verb, filled
from quincunx.errors import ConvergenceError, ConvergenceWarning, InternalError, MisfitWarning, WorkerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit status."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started this process, as daemons do
            setattr(sys, name, open(os.devnull, mode))
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # also while the room of a verb is imported
        print("quincunx: interrupted", file=sys.stderr)
        return 130


def _run(words: list[str]) -> int:
    options = vars(_parser(words).parse_args(words))
    verb: Verb = options.pop("verb")
    verb.words, verb.about = words, None
    try:
        with warnings.catch_warnings(record=True) as caught:
            for kind in (ConvergenceWarning, MisfitWarning):
                warnings.simplefilter("always", kind)
            values = verb.values(options)
            answer = verb.call(values, progress=_progress())
        for warning in caught:
            print(f"quincunx: {verb.in_options(str(warning.message))}", file=sys.stderr)
        if isinstance(answer, int):
            return answer
        if answer is not None:
            released = values.get("out") is not None and values["out"] is getattr(sys.stdout, "buffer", None)
            print(answer, file=sys.stderr if released else sys.stdout)
        sys.stdout.flush()
    except KeyboardInterrupt:  # before anything is imported to ask what else it is
        raise
    except _budget_exceeded() as error:
        print(f"quincunx: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OverflowError, ConvergenceError, MemoryError, ImportError, OSError) as error:
        print(f"quincunx: {verb.in_options(str(error))}", file=sys.stderr)
        return 2
    except (InternalError, WorkerError) as error:
        print(f"quincunx: {error}", file=sys.stderr)
        return 1
    return 0


def _budget_exceeded() -> type[Exception]:
    """Return what a budget raises; evaluated only where something was raised."""
    from quincunx.privacy import BudgetExceeded

    return BudgetExceeded


def _parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the verb of a command line, if one is given, gets its arguments and imports its room."""
    parser = Parser(prog="quincunx", description="Exact counts on lattices and Bayesian inference on private counts.")
    parser.add_argument("--version", action="version", version=f"quincunx {quincunx.__version__}")
    verbs = {"": parser.add_subparsers(title="verbs", metavar="VERB", required=True)}
    for name, verb in VERBS.items():
        *groups, last = parts = name.split()
        group = ""
        for word in groups:
            above, group = group, f"{group} {word}".strip()
            if group not in verbs:
                grouped = verbs[above].add_parser(word, help=GROUPS[group], description=GROUPS[group])
                verbs[group] = grouped.add_subparsers(title="what to do", metavar="WHAT", required=True)
        wanted = words is None or list(words[: len(parts)]) == parts
        made = verbs[group].add_parser(last, help=verb.help)
        if wanted:
            filled(made, verb)
    return parser


# The verbs.


def _count(
    what: Literal["independent-sets", "spanning-trees", "perfect-matchings", "matchings"],
    on: On,
    *,
    polynomial: Annotated[bool, "count by size: one number a line, sizes 0, 1, 2, ..."] = False,
    checkpoint: File | None = None,
    checkpoint_interval: float | None = None,
    estimate: Annotated[bool, "say what the job would take, and do nothing"] = False,
    threads: int | None = None,
    memory_limit: Size | None = None,
    dask: Dask = None,
    json: Annotated[bool, "print a JSON object, numbers as strings of digits"] = False,
    progress: bool = False,
) -> str:
    """Count on a lattice or a graph, exactly. Prints the integer and nothing else."""
    from quincunx import counting

    if estimate:
        cost = counting.estimate_cost(on.graph, what, threads=threads, memory_limit=memory_limit)
        people = {"memory": _units.in_bytes(cost.bytes), "time": f"about {_units.in_time(cost.seconds)}"}
        return _units.shown(vars(cost) | ({} if json else people), json)
    start = time.perf_counter()
    by_size = {"independent-sets": "independence_polynomial", "matchings": "matching_polynomial"}
    function = getattr(counting, by_size[what] if polynomial else f"count_{what.replace('-', '_')}")
    how: Facts = {"checkpoint": checkpoint, "checkpoint_interval": checkpoint_interval}
    with _executors.dask_client(dask) as client:
        how["executor"] = None if client is None else client.get_executor(pure=False)
        found = function(on.graph, threads=threads, memory_limit=memory_limit, progress=progress, **how)
    digits = [_core.to_decimal(number) for number in (found if polynomial else [found])]
    if not json:
        return "\n".join(digits)
    answer: dict[str, object] = (
        {"coefficients": digits} if polynomial else {"count": digits[0], "digits": len(digits[0])}
    )
    return json_module.dumps({"what": what} | on.said | answer | {"seconds": round(time.perf_counter() - start, 6)})


def _hard_core(
    on: On,
    *,
    activity: Annotated[Sequence[str], "numbers such as 2, 1/2 or 0.5"] = ("1",),
    mode: Annotated[Literal["exact", "float", "log"], "exact numbers, or doubles"] = "exact",
    threads: int | None = None,
    memory_limit: Size | None = None,
    json: bool = False,
    progress: bool = False,
) -> str:
    """Evaluate the hard-core partition function of a lattice or a graph, the sum of z**size over all independent sets.

    Prints a line for each activity: an exact number, or with --mode float or log a value and the bound of its error.
    """
    from quincunx import counting

    answers = []
    for number in activity:
        found = counting.hard_core(
            on.graph,
            _check.rational(number, "activity"),
            mode=mode,
            threads=threads,
            memory_limit=memory_limit,
            progress=progress,
        )
        if isinstance(found, tuple):
            answers.append({"activity": number} | found._asdict())
        else:
            answers.append({"activity": number, "value": _digits(found)})
    if json:
        return json_module.dumps({"mode": mode, "partition_function": answers})
    return "\n".join(" ".join(str(part) for part in [*answer.values()][1:]) for answer in answers)


def _digits(number: int | Fraction) -> str:
    """Return all digits of a number: Python prints no more than 4300."""
    over, under = number.as_integer_ratio()
    shown = ("-" if over < 0 else "") + _core.to_decimal(abs(over))
    return shown + (f"/{_core.to_decimal(under)}" if under > 1 else "")


def _random(
    what: Literal["independent-set", "spanning-tree", "perfect-matching"],
    on: On,
    *,
    activity: Annotated[str | None, "of an independent set: a probability proportional to this to its size"] = None,
    n_draws: Annotated[int, "how many, independent of each other; an empty line is between two"] = 1,
    random_state: int | None = None,
    json: Annotated[bool, "print a JSON list of objects"] = False,
) -> str:
    """Draw a uniform independent set, spanning tree or perfect matching, exactly. Prints a vertex or an edge a line.

    Lattices have their vertices by number; what is printed for trees and matchings is read by --edges.
    """
    import numpy

    from quincunx import counting
    from quincunx._rng import generator

    chance, draw = generator(random_state, "random_state"), getattr(counting, f"random_{what.replace('-', '_')}")
    how = {} if activity is None else {"activity": _check.rational(activity, "activity")}
    found: list[list[object]] = []
    for drawn in draw(on.graph, **how, size=_check.whole(n_draws, "n_draws", minimum=1), rng=chance):
        if isinstance(drawn, numpy.ndarray):  # of numbers: vertices, or edges of a lattice
            drawn = (drawn if what == "independent-set" else on.graph.edges[drawn]).tolist()  # type: ignore[union-attr]
        found.append([list(part) if isinstance(part, tuple) else part for part in drawn])
    if json:
        return json_module.dumps(found)
    # Parallel edges have a number behind their ends, which no list of edges has.
    lines = (
        [" ".join(map(_quoted, part[:2])) if isinstance(part, list) else str(part) for part in one] for one in found
    )
    return "\n\n".join("\n".join(one) for one in lines)


def _quoted(label: object) -> str:
    """Return a label so that it is read as one where labels are separated by blanks."""
    text = str(label)
    return text if re.fullmatch(r"[^\s,;\"{}]+", text) else '"{}"'.format(text.replace('"', '""'))


def _table(
    lattice: Annotated[
        str | None,
        "a lattice's name; `triangulated`: annealed entropies of randomly triangulated grids beside the thesis's; "
        "`records`: counts beyond the known lists; extents of 4-8-8 count octagons (default: the list of names)",
    ] = None,
    *,
    size: int = 10,
    boundary: Boundary = "free",
    compare: Literal["thesis"] | None = None,
    grid: Annotated[bool, "print a line for each m and a column for each n"] = False,
    threads: int | None = None,
    memory_limit: Size | None = None,
    json: bool = False,
    progress: bool = False,
) -> object:
    """Count independent sets for all extents up to a largest. Without a name, prints the names that there are."""
    from quincunx.lattices import _named

    if lattice is None:
        names = [*_named.NAMES, "triangulated", "records"]
        return json_module.dumps(names) if json else "\n".join(names)
    if lattice == "records":
        from quincunx.counting import _records

        return json_module.dumps(_records.records()) if json else _records.table()
    if lattice == "triangulated":
        from quincunx.entropy import _tables

        wrong = {"8.1": _tables.wrong_entries(_tables.LIMITS, limit=True)}
        wrong["8.2"] = _tables.wrong_entries(_tables.HUNDREDS, limit=False)
        rows = [
            {"table": name, "m": m, "p": p, "right": f"{value:.14f}"}
            for name, entries in wrong.items()
            for (m, p), value in entries.items()
        ]
        return json_module.dumps({"wrong": rows}) if json else _tables.tables()
    from quincunx import counting

    limits = {"threads": threads, "memory_limit": memory_limit}
    table = counting.independent_set_table(
        lattice, size, boundary=boundary, compare=compare, progress=progress, **limits
    )
    return json_module.dumps(table.to_dict()) if json else table.grid() if grid else table


def _spectrum(
    on: On,
    *,
    laplacian: Annotated[bool, "eigenvalues of the Laplacian"] = False,
    energy: Annotated[bool, "the energy: the sum of their absolute values"] = False,
    kirchhoff: Annotated[bool, "the Kirchhoff index, exactly"] = False,
    connectivity: Annotated[bool, "the algebraic connectivity"] = False,
    json: bool = False,
) -> str:
    """List the eigenvalues of a lattice or a graph. Prints those of the adjacency matrix, rising, or a number."""
    from quincunx import spectra

    if energy:
        name = "energy"
        answer: object = spectra.energy(on.graph)
    elif kirchhoff:
        name, answer = "kirchhoff", _digits(spectra.kirchhoff_index(on.graph, exact=True))
    elif connectivity:
        name, answer = "connectivity", spectra.algebraic_connectivity(on.graph)
    else:
        name, answer = "eigenvalues", spectra.spectrum(on.graph, laplacian=laplacian).tolist()
    if json:
        return json_module.dumps({name: answer})
    return "\n".join(map(str, answer if isinstance(answer, list) else [answer]))


def _info(*, json: bool = False) -> str:
    """Say the version, and what it runs on."""
    import numpy
    import scipy

    facts = {
        "quincunx": quincunx.__version__,
        "build": _core.__build_profile__,
        "vector unit": _core.simd_level(),
        "threads": _core.available_threads(),
        "memory available": _check.available_memory(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "platform": platform.platform(),
    }
    return _units.shown(facts, json)


def _completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script that completes this command in a shell.

    Write it to a file that ~/.bashrc or ~/.zshrc reads with source, or to ~/.config/fish/completions/quincunx.fish.
    """
    from quincunx import _completion
    from quincunx.lattices._named import NAMES

    verbs = list(_completion.verbs_of(_parser(), extra={"lattice": list(NAMES)}))
    print(_completion.script(shell, verbs), end="")


def _selftest(*, json: Annotated[bool, "print a JSON object for each check"] = False) -> int:
    """Say whether this machine computes right, within a minute. Exit status 1: a fault.

    Checked are known answers, a spare prime that refuses, samplers, exact noise, vectors.
    """
    from quincunx import selftest

    passed = []
    for found in selftest.run():
        passed.append(found.passed)
        word = {True: "ok", False: "WRONG", None: "-"}[found.passed]
        line = f"{word:<6}{found.seconds:7.2f} s  {found.group}: {found.name}  {found.detail}".rstrip()
        print(json_module.dumps(found._asdict()) if json else line, flush=True)
    if not json:
        left = f", {passed.count(None)} not made" if None in passed else ""
        print(f"{len(passed)} checks, {passed.count(False)} wrong{left}")
    return 1 if False in passed else 0


def _progress() -> bool:
    """Say whether to show a bar: on a terminal, and where tqdm is there to draw it."""
    if not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("tqdm") is not None


def _job_in(dir: str, asked: str) -> tuple[_job_folder.Folder, Started, Facts]:
    """Return the job in a folder, its verb and what that was told; `asked` by the verb that hears its errors."""
    job = _job_folder.Folder(dir)
    words = job.facts["command"]
    options = vars(_parser(words).parse_args(words))
    verb = options.pop("verb")
    if not isinstance(verb, Started):
        raise ValueError(f"`dir` must hold a job, got one of the command {' '.join(words)}")
    verb.words, VERBS[asked].about = words, verb
    return job, verb, options | {"dir": job.folder}


def _read_again(job: _job_folder.Folder, verb: Started, options: Facts) -> Facts:
    """Return the values of a job, read where it was begun."""
    if job.facts["inputs"]:
        os.chdir(job.facts["folder"])
    return verb.values(options)


def _job_resume(dir: str, *, dask: Dask = None, notify: str | None = None, progress: bool = False) -> str | int:
    """Go on with a job, from its last checkpoint; print the result of one that is done. Exit status 75: stopped.

    Without --dask it goes on in this process, wherever it was begun.
    """
    from quincunx import _jobs

    job, verb, options = _job_in(dir, "job resume")
    if "dask" in verb.parameters:  # its file is named from here, and not from where the job was begun
        options["dask"] = os.path.abspath(dask) if dask is not None and os.path.exists(dask) else dask
    elif dask is not None:
        raise ValueError(f"`dask` must be left out: {verb.words[2]} runs in one process")
    if (result := job.result) is not None:  # for which nothing is read again
        return _job_folder.spoken(result["value"])
    values = _read_again(job, verb, options)
    return _jobs.run(verb, **values | ({} if notify is None else {"notify": notify}), progress=progress, resume=True)


def _job_status(dir: str, *, json: bool = False) -> str:
    """Say how far a job is, what it has taken, and whether its process lives."""
    status = _job_folder.Folder(dir).status()
    return json_module.dumps(status.facts) if json else _units.shown(_job_folder.in_words(status), json)


def _job_list(folder: Annotated[str, "where to look"] = ".", *, json: bool = False) -> str | None:
    """List the jobs whose folders lie in one, with a line for each."""
    found = list(_job_folder.listed(folder))
    if json:
        return json_module.dumps(
            {
                name: {"state": "damaged", "reason": status} if isinstance(status, str) else status.facts
                for name, status in found
            }
        )
    width = max((len(name) for name, _ in found), default=0)
    lines = []
    for name, status in found:
        if isinstance(status, str):
            lines.append(f"{name:<{width}}  damaged  {status}")
            continue
        share = "" if status.share is None else f"{100 * status.share:5.1f} %"
        left = "" if status.left_seconds is None else f"about {_units.in_time(status.left_seconds)} left"
        lines.append(f"{name:<{width}}  {status.state:<8} {share:>8}  {left}".rstrip())
    return "\n".join(lines) or None


def _job_stop(dir: str) -> str:
    """Have a job of this machine save and end, and wait for that."""
    from quincunx import _jobs

    return _jobs.stop(dir)


def _job_result(
    dir: str,
    *,
    json: Annotated[bool, "print all that is known of it"] = False,
    record: Annotated[bool, "print a count as the table of records has it"] = False,
) -> str:
    """Print the result of a job that is done."""
    job = _job_folder.Folder(dir)
    result = job.result
    if result is None:
        status = job.status()
        raise ValueError(f"`dir` must hold a job that is done, got one that is {status.state}")
    if record:
        return json_module.dumps(_job_folder.record(job), indent=1)
    return json_module.dumps(result) if json else _job_folder.spoken(result["value"])


def _job_verify(dir: str, *, progress: bool = False) -> str:
    """Compute the result of a job by other ways, and say by which it was confirmed. Exit status 1: contradicted."""
    from quincunx import _job_checks

    job, verb, options = _job_in(dir, "job verify")
    values = _read_again(job, verb, options)
    if job.facts["inputs"] != values["inputs"]:
        raise ValueError("`dir` must hold a job whose input is as it was")
    return "\n".join(_job_checks.verify(verb.words[2], job, values["given"], progress))


GROUPS = {
    "job": "long jobs in folders: start, stop, go on, see how far they are",
    "job start": "run a command of this terminal as a job in a folder",
    "budget": "what may be spent on releases, and what has been",
    "bayesnet": "Bayesian networks of private records",
}
_LIKE = ("lattices:named", "graphs:read_edges", "counting:count_independent_sets")
_TABLES = ("size", "boundary", "compare", "grid", "threads", "memory_limit")
_PAUSE: Idle = ("checkpoint", False, ("checkpoint_interval",))
_FILES: Facts = {"takes": {"source": source_of, "out": output_of}}


def _on(function: Function, *idle: Idle, exclusive: Sequence[str] = ()) -> Verb:
    """Return a verb on a lattice or a graph."""
    lattices, files = ("boundary", "twist", "multigraph"), ("delimiter", "header")
    idle = ("edges", True, lattices), ("edges", False, files), _PAUSE, *idle
    return Verb(function, takes={"on": graph_of}, like=_LIKE, exclusive=exclusive, idle=idle)


VERBS: dict[str, Verb] = {
    "count": _on(
        _count,
        ("what", ("spanning-trees", "perfect-matchings"), ("polynomial",)),
        ("estimate", True, ("polynomial", "checkpoint", "checkpoint_interval", "dask")),
    ),
    "hard-core": _on(_hard_core),
    "table": Verb(
        _table,
        like=("counting:independent_set_table", *_LIKE),
        idle=(
            ("json", True, ("grid",)),
            ("lattice", False, _TABLES),
            ("lattice", ("records", "triangulated"), _TABLES),
        ),
    ),
    "spectrum": _on(_spectrum, exclusive=("laplacian", "energy", "kirchhoff", "connectivity")),
    "random": _on(_random, ("what", ("spanning-tree", "perfect-matching"), ("activity",))),
    "privatize": Verb(
        "privacy._command:privatize_command",
        "release counts under local privacy",
        like=("privacy._files:read_table",),
        **_FILES,
    ),
    "release": Verb(
        "privacy._command:release_command",
        "release numbers or categories by any mechanism",
        like=("privacy._command:mechanism_of",),
        **_FILES,
    ),
    "accuracy": Verb(
        "privacy._command:accuracy_command",
        "say how far noise keeps a number from the true one",
        like=("privacy._command:mechanism_of",),
        takes={"what": source_of},
    ),
    "audit": Verb(
        "privacy._command:audit_command", "put a claim of privacy to the test", takes={"x": source_of, "y": source_of}
    ),
    "convert": Verb("privacy._command:convert_command", "write a release in another format", **_FILES),
    "ldp": Verb(
        "ldp._command:ldp_command",
        "infer a posterior from locally private releases",
        takes={"source": source_of},
        idle=(
            ("what", ("histogram",), ("bounds", "delta", "task")),
            ("what", ("mean",), ("categories", "delta", "task")),
            ("what", ("regression",), ("categories",)),
            ("epsilon", False, ("delta",)),
        ),
    ),
    "budget open": Verb("privacy._command:budget_open", "make a ledger, or check that one has these limits"),
    "budget spend": Verb("privacy._command:budget_spend", "count a release before it is made, or refuse it"),
    "budget show": Verb("privacy._command:budget_show", "show the limits and all accounts, or one"),
    "factorize": Verb(
        "factorization._command:factorize_command",
        "fit a Poisson factorization to released counts",
        like=("factorization:PoissonFactorization",),
        idle=(_PAUSE, ("resume", True, ("random_state",))),
        **_FILES,
    ),
    "bayesnet fit": Verb(
        "posterior._command:bayesnet_fit",
        "fit a network with a guarantee",
        takes={"source": lines_of, "out": lambda path: None if path == "-" else path},
    ),
    "leakage": Verb(
        "leakage._files:leakage_command",
        "say what a channel leaks, and its average over symmetries",
        takes={"path": lines_of},
    ),
    "entropy": Verb(
        "entropy._command:entropy_command",
        "bound the entropy of independent sets, or another model, per vertex, in nats, and its exponential: both ends",
        like=("entropy:entropy_bounds",),
        idle=(("estimate", True, ("width", "bond_dimension", "checkpoint", "checkpoint_interval")), _PAUSE),
    ),
    "info": Verb(_info),
    "completion": Verb(_completion),
    "selftest": Verb(_selftest),
}

#: Verbs that keep a checkpoint, and so can be jobs.
JOBS = ("count", "entropy", "factorize")
VERBS |= {f"job start {name}": Started(VERBS[name]) for name in JOBS}
VERBS |= {
    "job status": Verb(_job_status),
    "job list": Verb(_job_list),
    "job stop": Verb(_job_stop),
    "job resume": Verb(_job_resume),
    "job result": Verb(_job_result, exclusive=("json", "record")),
    "job verify": Verb(_job_verify),
}
