"""The command line: one verb per main function, nothing that Python cannot do.

Results go to standard output; progress goes to standard error, and only to a terminal. Exit status 0: done; 1: a fault
of the machine; 2: bad arguments or a job larger than its limits, with the error's sentence; 3: refused by a budget;
130: interrupted.
"""

import argparse
import io
import json
import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

import quincunx
from quincunx import _check, _core, _units

# Ways to write sizes: bytes, or a number with one of these behind it.
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


# What `quincunx count` counts, and the functions that do: all together, and by size where there is one.
_COUNTS: dict[str, tuple[str, str | None]] = {
    "independent-sets": ("count_independent_sets", "independence_polynomial"),
    "spanning-trees": ("count_spanning_trees", None),
    "perfect-matchings": ("count_perfect_matchings", None),
    "matchings": ("count_matchings", "matching_polynomial"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with the exit status of a bad argument."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("quincunx: interrupted", file=sys.stderr)
        return 130
    except _budget_exceeded() as error:
        print(f"quincunx: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OverflowError, MemoryError, ImportError, OSError) as error:
        print(f"quincunx: {_in_options(parser, options, str(error))}", file=sys.stderr)
        return 2
    return int(status or 0)


def _verb_of(parser: argparse.ArgumentParser, run: object) -> argparse.ArgumentParser | None:
    """Return the parser of the verb that a function runs."""
    if parser.get_default("run") is run:
        return parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                if (found := _verb_of(verb, run)) is not None:
                    return found
    return None


def _in_options(parser: argparse.ArgumentParser, options: argparse.Namespace, message: str) -> str:
    """Return the message of an error about arguments of a function, as one about the options they came from."""
    verb = _verb_of(parser, options.run)
    names = {
        action.dest: action.option_strings[0]
        for action in (verb._actions if verb is not None else [])
        if action.option_strings
    }
    return re.sub(r"`(\w+)`", lambda found: f"`{names.get(found[1], found[1])}`", message)


def _budget_exceeded() -> type[Exception]:
    """Return what a budget raises; evaluated only where something was raised."""
    from quincunx.privacy import BudgetExceeded

    return BudgetExceeded


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="quincunx", description="Exact counts on lattices and Bayesian inference on private counts.")
    parser.add_argument("--version", action="version", version=f"quincunx {quincunx.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_count(verbs)
    _add_hard_core(verbs)
    _add_table(verbs)
    _add_spectrum(verbs)
    _add_privatize(verbs)
    _add_ldp(verbs)
    _add_budget(verbs)
    _add_factorize(verbs)
    _add_bayesnet(verbs)
    _add_leakage(verbs)
    _add_entropy(verbs)
    _add_info(verbs)
    _add_completion(verbs)
    _add_selftest(verbs)
    return parser


def _add_count(verbs: Any) -> None:
    verb = verbs.add_parser(
        "count",
        help="count on a lattice or a graph, exactly",
        description="Count on a lattice or a graph, exactly. Prints the integer and nothing else.",
    )
    verb.add_argument("what", choices=list(_COUNTS), metavar="WHAT", help=", ".join(_COUNTS))
    _add_graph(verb)
    verb.add_argument("--polynomial", action="store_true", help="count by size: one number a line, sizes 0, 1, 2, ...")
    verb.add_argument("--checkpoint", metavar="FILE", help="keep the state of a long job here, and go on from it")
    verb.add_argument("--estimate", action="store_true", help="say what the job would take, and do nothing")
    _add_limits(verb)
    verb.set_defaults(run=_count)


def _add_hard_core(verbs: Any) -> None:
    verb = verbs.add_parser(
        "hard-core",
        help="the hard-core partition function of a lattice or a graph",
        description="Sum z**size over all independent sets. Prints one line for each activity: an exact number, or "
        "with --mode float or log a value and the bound of its error.",
    )
    _add_graph(verb)
    verb.add_argument("--activity", nargs="+", default=["1"], metavar="Z", help="numbers such as 2, 1/2 or 0.5")
    verb.add_argument("--mode", choices=["exact", "float", "log"], default="exact", help="exact (default), or doubles")
    _add_limits(verb)
    verb.set_defaults(run=_hard_core)


def _add_completion(verbs: Any) -> None:
    from quincunx._completion import SHELLS

    verb = verbs.add_parser(
        "completion",
        help="print a script that completes this command in a shell",
        description='Print a script that completes this command: eval "$(quincunx completion bash)" in ~/.bashrc, '
        "the same with zsh in ~/.zshrc, or quincunx completion fish > ~/.config/fish/completions/quincunx.fish.",
    )
    verb.add_argument("shell", choices=SHELLS)
    verb.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> None:
    from quincunx import _completion
    from quincunx.lattices._named import NAMES

    verbs = list(_completion.verbs_of(_parser(), extra={"lattice": list(NAMES)}))
    print(_completion.script(options.shell, verbs), end="")


def _add_table(verbs: Any) -> None:
    verb = verbs.add_parser("table", help="counts for all extents up to a largest")
    verb.add_argument("lattice")
    verb.add_argument("--max", type=int, default=10, metavar="N", dest="size", help="the largest extent (default 10)")
    verb.add_argument("--boundary", choices=["free", "cylinder", "torus"], default="free")
    verb.add_argument("--compare", choices=["thesis"], help="mark what is wrong in a published table")
    verb.add_argument("--grid", action="store_true", help="print a line for each m and a column for each n")
    _add_limits(verb)
    verb.set_defaults(run=_table)


def _add_spectrum(verbs: Any) -> None:
    verb = verbs.add_parser(
        "spectrum",
        help="eigenvalues of a lattice or a graph",
        description="Eigenvalues of the adjacency matrix, one a line and rising; or a number made of them.",
    )
    _add_graph(verb)
    verb.add_argument("--laplacian", action="store_true", help="eigenvalues of the Laplacian")
    what = verb.add_mutually_exclusive_group()
    what.add_argument("--energy", action="store_true", help="the energy: the sum of their absolute values")
    what.add_argument("--kirchhoff", action="store_true", help="the Kirchhoff index, exactly")
    what.add_argument("--connectivity", action="store_true", help="the algebraic connectivity")
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_spectrum)


def _add_privatize(verbs: Any) -> None:
    verb = verbs.add_parser(
        "privatize",
        help="release counts under local privacy",
        description="Release counts with two-sided geometric noise; writes a file with the guarantee inside. Numbers "
        "that may be labels as well as counts are refused until it is said which they are.",
    )
    verb.add_argument(
        "source",
        nargs="?",
        default="-",
        help="a table of counts: CSV (also .gz), JSON, npy, npz of a sparse array, parquet, Excel; - or nothing is "
        "standard input",
    )
    verb.add_argument(
        "--out", default="-", metavar="FILE", help=".npz, .csv, .csv.gz or .json; - is standard output (default)"
    )
    verb.add_argument(
        "--format",
        choices=["npz", "csv", "json"],
        help="of the output (default: by its name, else npz; csv on standard output)",
    )
    verb.add_argument("--epsilon", type=float, required=True, help="the privacy loss for a change of at most N units")
    verb.add_argument(
        "--n",
        type=int,
        default=1,
        metavar="N",
        help="protect changes of at most N in the sum of all counts (default 1)",
    )
    verb.add_argument(
        "--record-bound", type=int, metavar="A", help="protect whole lines, each clipped to a sum of at most A, instead"
    )
    verb.add_argument("--delimiter", metavar="C", help="between counts (default: a comma, tab or semicolon)")
    either = argparse.BooleanOptionalAction
    verb.add_argument("--header", action=either, help="the first line holds labels, or counts (default: found out)")
    verb.add_argument("--index", action=either, help="the first column holds labels, or counts (default: found out)")
    verb.add_argument("--long", action=either, help="a line is a cell: label of row, of column, count")
    verb.add_argument("--square", action="store_true", help="rows and columns of a long table have the same labels")
    verb.add_argument(
        "--labels",
        nargs="+",
        metavar="FILE",
        help="the labels that may occur, one on each line of a file for each axis with labels (one file with "
        "--square): without it, which labels occur is published and not protected",
    )
    verb.set_defaults(run=_privatize)


def _add_ldp(verbs: Any) -> None:
    verb = verbs.add_parser(
        "ldp",
        help="infer a posterior from locally private releases",
        description="Infer shares, a mean, or a regression from a file of released values.",
    )
    verb.add_argument("what", choices=["histogram", "mean", "regression"])
    verb.add_argument("source", help="a release, or a CSV file with a line for each user; - is standard input")
    verb.add_argument("--epsilon", type=float, help="of the mechanism that made a CSV file")
    verb.add_argument("--delta", type=float, default=1e-5, help="of the Gaussian mechanism (default 1e-5)")
    verb.add_argument("--bounds", type=float, nargs=2, metavar=("A", "B"), help="lower and upper, or those of x and y")
    verb.add_argument("--task", choices=["linear", "logistic"], default="linear", help="which regression")
    verb.add_argument("--categories", metavar="WORDS", help="of a histogram: a number, 'tea|coffee', or a file of them")
    verb.add_argument(
        "--draws", type=int, default=1000, metavar="N", dest="n_draws", help="draws of each chain (default 1000)"
    )
    verb.add_argument("--seed", type=int, dest="random_state", help="makes the draws repeatable")
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_ldp)


def _ldp(options: argparse.Namespace) -> None:
    from quincunx.ldp._command import ldp_command

    text = ldp_command(
        options.what,
        _source(options.source),
        epsilon=options.epsilon,
        delta=options.delta,
        bounds=None if options.bounds is None else tuple(options.bounds),
        task=options.task,
        categories=options.categories,
        json=options.json,
        n_draws=options.n_draws,
        random_state=options.random_state,
        progress=_progress(),
    )
    print(text)


def _add_budget(verbs: Any) -> None:
    verb = verbs.add_parser(
        "budget",
        help="what may be spent on releases, and what has been",
        description="Accounts of privacy in a file that outlives its processes. Exit status 3: refused.",
    )
    what = verb.add_subparsers(title="what to do", metavar="WHAT", required=True)
    verb = what.add_parser("open", help="make a ledger, or check that one has these limits")
    _add_ledger(verb)
    verb.add_argument("--epsilon", type=float, required=True, help="the limit of epsilon")
    verb.add_argument("--delta", type=float, default=0.0, help="the limit of delta (default 0)")
    verb.add_argument("--filter", choices=["sum", "zcdp", "gaussian"], default="sum", help="the rule (default sum)")
    verb.add_argument("--failure", type=float, default=0.0, help="the part of delta for releases that have one")
    verb.set_defaults(run=_budget_open)
    verb = what.add_parser("spend", help="count a release before it is made, or refuse it")
    _add_ledger(verb)
    verb.add_argument("--epsilon", type=float, required=True, help="the epsilon of the release")
    verb.add_argument("--delta", type=float, default=0.0, help="its delta (default 0)")
    verb.add_argument("--user", help="whose budget it is (default: the one account)")
    verb.set_defaults(run=_budget_spend)
    verb = what.add_parser("show", help="the limits and all accounts, or one")
    _add_ledger(verb)
    verb.add_argument("--user", help="this account only")
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_budget_show)


def _add_ledger(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("ledger", help="the file")
    verb.add_argument("--allow-network", action="store_true", help="on a network share, where only one host uses it")


def _add_factorize(verbs: Any) -> None:
    verb = verbs.add_parser(
        "factorize",
        help="fit a Poisson factorization to released counts",
        description="Fit a Poisson factorization to a release that `quincunx privatize` wrote, and say how it went.",
    )
    verb.add_argument("released", help="a release (npz, csv or json); - is standard input")
    verb.add_argument(
        "--out",
        metavar="FILE",
        help="keep the fitted model here (an interrupted one, too); .csv, .csv.gz "
        "or .json: its components, for other programs",
    )
    verb.add_argument("--top", type=int, default=5, metavar="N", help="print what weighs most in each component")
    verb.add_argument("--resume", metavar="FILE", help="go on with a model that was kept, with as many sweeps again")
    verb.add_argument(
        "--model",
        choices=["matrix", "directed", "undirected", "tensor"],
        default="matrix",
        help="what the counts are: a matrix (default), a network, a tensor",
    )
    verb.add_argument("--components", type=int, metavar="K", dest="n_components", help="components (default 10)")
    verb.add_argument("--inference", choices=["mcmc", "vi"], help="sampling (default) or variational inference")
    verb.add_argument("--method", help="auto (default), collapsed, event, split, bessel; bessel-mean, ...")
    verb.add_argument("--noise", choices=["geometric", "none", "naive"], help="how the noise is treated")
    verb.add_argument("--iterations", type=int, metavar="N", dest="n_iter", help="sweeps in all (default 3000)")
    verb.add_argument("--burn-in", type=int, metavar="N", help="sweeps before the first that is kept (default 1000)")
    verb.add_argument("--thin", type=int, metavar="N", help="keep every N-th sweep (default 4)")
    verb.add_argument("--chains", type=int, metavar="N", dest="n_chains", help="independent chains (default 1)")
    verb.add_argument("--seed", type=int, metavar="N", dest="random_state", help="where randomness comes from")
    verb.add_argument("--threads", type=int, metavar="N", help="threads to use (default: all this process may use)")
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_factorize)


def _add_bayesnet(verbs: Any) -> None:
    verb = verbs.add_parser("bayesnet", help="Bayesian networks of private records")
    what = verb.add_subparsers(title="what to do", metavar="WHAT", required=True)
    verb = what.add_parser("fit", help="fit a network with a guarantee", description="Prints the network as JSON.")
    verb.add_argument(
        "source",
        metavar="data.csv",
        help="a line of names, then a line of categories per record; - is standard input",
    )
    verb.add_argument("--edges", required=True, help="A:B,A:C (parents first), or a CSV file of pairs")
    verb.add_argument(
        "--categories",
        nargs="+",
        default=["2"],
        metavar="WORD",
        help="what columns may hold: a number k for 0..k-1 (default 2), A=3, 'A=yes|no', or a CSV file of such lines",
    )
    verb.add_argument("--epsilon", type=float, required=True, help="the privacy level of the whole fit")
    verb.add_argument("--mechanism", default="auto", help="auto (default), laplace, fourier_l1, fourier_linf, ...")
    verb.add_argument("--relation", choices=["replace-one", "add-remove"], default="replace-one", help="the neighbors")
    verb.add_argument("--nonneg", choices=["clip", "min_shift", "project"], help="what is done to negative cells")
    verb.add_argument("--smooth", type=float, default=1.0, help="smoothing in deviations of the noise (default 1)")
    verb.add_argument("--sample", type=int, default=0, metavar="N", help="add N synthetic records to the answer")
    verb.add_argument("--out", metavar="FILE", help="where the JSON goes (default: standard output)")
    verb.set_defaults(run=_bayesnet_fit)


def _add_leakage(verbs: Any) -> None:
    verb = verbs.add_parser("leakage", help="what a channel leaks, and its average over symmetries")
    verb.add_argument("channel", help="a CSV file: a row per input, chances of the outputs; - is standard input")
    verb.add_argument(
        "--graph", metavar="WORD", help="which inputs are adjacent: hamming:3,2, path:5, cycle:5, edges:FILE, ..."
    )
    verb.add_argument(
        "--symmetrize", action="store_true", help="average over the automorphisms of the graph and report"
    )
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_leakage)


def _add_entropy(verbs: Any) -> None:
    verb = verbs.add_parser(
        "entropy",
        help="a growth constant, bounded with proof",
        description="Bound the growth constant of independent sets per vertex. Prints the lower and the upper end.",
    )
    verb.add_argument("lattice", help="square, king, 4-8-8, honeycomb, kagome, triangular, 3-12-12, ...")
    verb.add_argument("--digits", type=int, metavar="N", help="decimals to prove (default 14)")
    verb.add_argument(
        "--activity", type=Fraction, default=Fraction(1), metavar="Z", help="weight of a vertex (default 1)"
    )
    verb.add_argument("--width", type=int, metavar="W", help="by strips and rings of so many lines instead")
    verb.add_argument("--bond-dimension", type=int, metavar="N", help="of the trial vector (default: grown)")
    verb.add_argument("--estimate", action="store_true", help="estimate, without the proof")
    verb.add_argument("--json", action="store_true", help="print a JSON object with the evidence")
    verb.set_defaults(run=_entropy)


def _add_info(verbs: Any) -> None:
    verb = verbs.add_parser("info", help="the version, and what it runs on")
    verb.add_argument("--json", action="store_true", help="print a JSON object")
    verb.set_defaults(run=_info)


def _add_selftest(verbs: Any) -> None:
    verb = verbs.add_parser(
        "selftest",
        help="whether this machine computes right, in about a minute",
        description="Known answers, a spare prime that refuses, samplers, exact noise, vectors. Status 1: a fault.",
    )
    verb.add_argument("--json", action="store_true", help="print a JSON object for each check")
    verb.set_defaults(run=_selftest)


def _add_graph(verb: Any) -> None:
    """Add what says a lattice or a graph: what `_graph` reads."""
    verb.add_argument("lattice", nargs="?", help="square, king, triangular, honeycomb, kagome, 4-8-8, 3-12-12, ...")
    size = "the two extents, as 20x20; octagons for 4-8-8, one order for aztec-diamond"
    verb.add_argument("size", nargs="?", metavar="MxN", help=size)
    verb.add_argument("--edges", metavar="FILE", help="the graph with this list of edges instead; - is standard input")
    verb.add_argument("--delimiter", metavar="C", help="between labels (default: a comma, semicolon, tab or blanks)")
    either = argparse.BooleanOptionalAction
    verb.add_argument("--header", action=either, help="the first line of FILE names columns, or is an edge")
    verb.add_argument("--boundary", choices=["free", "cylinder", "torus"], default="free")
    verb.add_argument("--twist", type=int, default=0, metavar="T", help="of a torus: steps aside once round it")
    verb.add_argument(
        "--multigraph", action="store_true", help="allow periodic extents that make loops or parallel edges"
    )


def _add_limits(verb: Any) -> None:
    verb.add_argument("--threads", type=int, metavar="N", help="threads to use (default: all this process may use)")
    verb.add_argument(
        "--memory",
        type=_bytes,
        metavar="SIZE",
        dest="memory_limit",
        help="memory to use, as 6G (default: what is available)",
    )
    verb.add_argument("--json", action="store_true", help="print a JSON object, numbers as strings of digits")


def _bytes(text: str) -> int:
    """Read a size: `6G`, `512M` or a number of bytes."""
    shift = _UNITS.get(text[-1:].upper())
    digits = text if shift is None else text[:-1]
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"must be a size such as 6G or 512M, got {text!r}")
    return int(digits) << (shift or 0)


class _Input(io.BytesIO):
    """What came from standard input."""

    name = "standard input"


def _source(path: str) -> Any:
    """Return a path, or for `-` a file with all of standard input, which may be read again."""
    return _Input(sys.stdin.buffer.read()) if path == "-" else path


def _lines(path: str) -> Any:
    """Return a path, or the lines of what has to be unpacked or, for `-`, of standard input."""
    if path.endswith(".gz"):
        from quincunx._npz import unpacked

        with open(path, "rb") as packed:
            file = _Input(unpacked(packed.read(), path))
        file.name = path
        return io.TextIOWrapper(file, encoding="utf-8-sig")
    return io.TextIOWrapper(_source(path), encoding="utf-8-sig") if path == "-" else path


def _output(path: str | None) -> Any:
    """Return a path, or for `-` standard output as a binary file, unless it is a terminal."""
    if path != "-":
        return path
    if sys.stdout.isatty():
        raise ValueError("`--out` must name a file or a pipe: a release is not for a terminal")
    return sys.stdout.buffer


def _extents(text: str | None) -> tuple[int, int]:
    """Read two extents: `20x20`."""
    parts = (text or "").lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"`MxN` must be two extents such as 20x20, got {text!r}")
    return int(parts[0]), int(parts[1])


def _graph(options: argparse.Namespace) -> Any:
    """Return what to count on."""
    if options.edges is not None:
        if options.lattice is not None:
            raise ValueError(f"`--edges` must be given alone, got also the lattice {options.lattice!r}")
        from quincunx import graphs

        return graphs.read_edges(_lines(options.edges), delimiter=options.delimiter, header=options.header)
    for name in ("delimiter", "header"):
        if getattr(options, name) is not None:
            raise ValueError(f"`{name}` must be left out without `--edges`")
    if options.lattice is None:
        raise ValueError("`LATTICE` must be given, or a graph with `--edges`")
    from quincunx import lattices

    rows: int
    cols: int | None
    has_order = options.lattice.lower().replace("_", "-").replace(" ", "-") == "aztec-diamond"
    if has_order and options.size is not None and options.size.isascii() and options.size.isdigit():
        rows, cols = int(options.size), None
    else:
        rows, cols = _extents(options.size)
    return lattices.named(
        options.lattice, rows, cols, options.boundary, twist=options.twist, multigraph=options.multigraph
    )


def _count(options: argparse.Namespace) -> None:
    from quincunx import counting

    graph = _graph(options)
    limits = {"threads": options.threads, "memory_limit": options.memory_limit}
    if options.estimate:
        cost = counting.estimate_cost(graph, options.what, **limits)
        people = {"memory": _units.in_bytes(cost.bytes), "time": f"about {_units.in_time(cost.seconds)}"}
        _say(options, vars(cost) | ({} if options.json else people))
        return
    whole, by_size = _COUNTS[options.what]
    start = time.perf_counter()
    how = limits | {"progress": _progress(), "checkpoint": options.checkpoint}
    if options.polynomial:
        if by_size is None:
            raise ValueError(f"`--polynomial` must be left out for {options.what}")
        coefficients = getattr(counting, by_size)(graph, **how)
        digits = [_core.to_decimal(coefficient) for coefficient in coefficients]
        answer: Any = {"coefficients": digits}
    else:
        digits = [_core.to_decimal(getattr(counting, whole)(graph, **how))]
        answer = {"count": digits[0], "digits": len(digits[0])}
    if options.json:
        about = {
            "what": options.what,
            "lattice": options.lattice,
            "size": options.size,
            "boundary": options.boundary,
        }
        if options.edges is not None:
            about = {"what": options.what, "edges": options.edges}
        print(json.dumps(about | answer | {"seconds": round(time.perf_counter() - start, 6)}))
    else:
        print("\n".join(digits))


def _hard_core(options: argparse.Namespace) -> None:
    from quincunx import counting

    graph = _graph(options)
    how = {"threads": options.threads, "memory_limit": options.memory_limit, "progress": _progress()}
    answers = []
    for activity in options.activity:
        found = counting.hard_core(graph, Fraction(_activity(activity)), mode=options.mode, **how)
        if options.mode == "exact":
            over, under = Fraction(found).as_integer_ratio()
            shown = ("-" if over < 0 else "") + _core.to_decimal(abs(over))
            shown += f"/{_core.to_decimal(under)}" if under > 1 else ""
            answers.append({"activity": activity, "value": shown})
        else:
            answers.append({"activity": activity, "value": found.value, "error": found.error})
    if options.json:
        print(json.dumps({"mode": options.mode, "partition_function": answers}))
    else:
        for answer in answers:
            print(*(part for name, part in answer.items() if name != "activity"))


def _activity(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"`activity` must be a number such as 2, 1/2 or 0.5, got {text!r}") from None


def _spectrum(options: argparse.Namespace) -> None:
    from quincunx import spectra

    graph = _graph(options)
    if options.energy:
        name = "energy"
        answer: Any = spectra.energy(graph)
    elif options.kirchhoff:
        name, answer = "kirchhoff", str(spectra.kirchhoff_index(graph, exact=True))
    elif options.connectivity:
        name, answer = "connectivity", spectra.algebraic_connectivity(graph)
    else:
        name, answer = "eigenvalues", spectra.spectrum(graph, laplacian=options.laplacian).tolist()
    if options.json:
        print(json.dumps({name: answer}))
    else:
        print("\n".join(map(str, answer)) if isinstance(answer, list) else answer)


def _table(options: argparse.Namespace) -> None:
    if options.lattice == "triangulated":
        from quincunx.entropy import _tables

        if options.json:
            marked = {"8.1": _tables.wrong_entries(_tables.LIMITS, limit=True)}
            marked["8.2"] = _tables.wrong_entries(_tables.HUNDREDS, limit=False)
            rows = [
                {"table": table, "m": m, "p": p, "right": f"{value:.14f}"}
                for table, wrong in marked.items()
                for (m, p), value in wrong.items()
            ]
            print(json.dumps({"wrong": rows}))
        else:
            print(_tables.tables())
        return
    from quincunx import counting

    table = counting.independent_set_table(
        options.lattice,
        options.size,
        boundary=options.boundary,
        compare=options.compare,
        threads=options.threads,
        memory_limit=options.memory_limit,
        progress=_progress(),
    )
    if options.grid and options.json:
        raise ValueError("`grid` must be left out with `json`")
    print(json.dumps(table.to_dict()) if options.json else table.grid() if options.grid else table)


def _privatize(options: argparse.Namespace) -> None:
    from quincunx.privacy._files import privatize_file, read_table

    target = _output(options.out)
    reading = {name: getattr(options, name) for name in ("delimiter", "header", "index", "long", "square", "labels")}
    table = read_table(_source(options.source), **reading)
    how = {name: getattr(options, name) for name in ("epsilon", "n", "record_bound", "format")}
    if options.out == "-" and options.format is None:
        how["format"] = "csv"
    release = privatize_file(table, target, **how)
    print(table.describe(), file=sys.stderr)
    print(release.guarantee, file=sys.stderr)
    print(f"protects {release.protects}", file=sys.stderr)


def _budget_open(options: argparse.Namespace) -> None:
    from quincunx.privacy import Budget

    limits = {"filter": options.filter, "failure": options.failure, "allow_network": options.allow_network}
    print(Budget.open(options.ledger, options.epsilon, options.delta, **limits))


def _budget_spend(options: argparse.Namespace) -> None:
    from quincunx.privacy import Budget, PrivacyGuarantee

    budget = Budget.open(options.ledger, allow_network=options.allow_network)
    budget.spend(PrivacyGuarantee(options.epsilon, options.delta, relation=budget.relation), user=options.user)
    print(f"remaining  {budget.remaining(options.user):.12g}")


def _budget_show(options: argparse.Namespace) -> None:
    from quincunx.privacy import Budget

    budget = Budget.open(options.ledger, allow_network=options.allow_network)
    accounts = budget.accounts()
    if options.user is not None:
        accounts = [row for row in accounts if row["user"] == options.user]
        if not accounts:
            raise ValueError(f"`--user` must have an account, got {options.user!r}")
    if options.json:
        limits = {name: getattr(budget, name) for name in ("epsilon", "delta", "filter", "failure")}
        print(json.dumps(limits | {"relation": str(budget.relation), "accounts": accounts}))
        return
    print(budget)
    for row in accounts:
        name = row["user"] or "(all)"
        spent = f"epsilon {row['epsilon']:.12g}, delta {row['delta']:.12g}"
        print(f"{name}: {row['spends']} spends, {spent}, remaining {row['remaining']:.12g}")


def _factorize(options: argparse.Namespace) -> None:
    import warnings

    from quincunx.errors import ConvergenceWarning
    from quincunx.factorization._command import factorize_command

    how = {name: value for name, value in vars(options).items() if name not in ("run", "released")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        how["out"] = _output(options.out)
        said = factorize_command(_source(options.released), **how, progress=_progress())
    for warning in caught:
        print(f"quincunx: {_in_options(_parser(), options, str(warning.message))}", file=sys.stderr)
    print(said, file=sys.stderr if options.out == "-" else sys.stdout)


def _bayesnet_fit(options: argparse.Namespace) -> None:
    from quincunx.posterior._command import bayesnet_fit

    how = {name: value for name, value in vars(options).items() if name not in ("run", "source")}
    how["out"] = None if options.out == "-" else options.out
    print(bayesnet_fit(_lines(options.source), **how))


def _leakage(options: argparse.Namespace) -> None:
    from quincunx.leakage._files import leakage_command

    print(leakage_command(_lines(options.channel), options.graph, options.symmetrize, options.json))


def _entropy(options: argparse.Namespace) -> None:
    from quincunx import entropy

    about = {"lattice": options.lattice, "activity": str(options.activity)}
    if options.estimate:
        estimate = entropy.entropy_estimate(options.lattice, digits=options.digits, activity=options.activity)
        facts = {
            "estimate": f"{estimate.value:f}",
            "digits": estimate.digits,
            "correlation_length": estimate.correlation_length,
        }
        print(json.dumps(about | facts) if options.json else facts["estimate"])
        return
    bounds = entropy.entropy_bounds(
        options.lattice,
        digits=options.digits,
        activity=options.activity,
        width=options.width,
        bond_dimension=options.bond_dimension,
        progress=_progress(),
    )
    ends = {"lower": f"{bounds.lower:f}", "upper": f"{bounds.upper:f}"}
    proof = {
        "certified": bounds.certified,
        "digits": bounds.digits,
        "theorem": bounds.theorem,
        "evidence": bounds.evidence,
    }
    print(json.dumps(about | ends | proof) if options.json else "\n".join(ends.values()))


def _info(options: argparse.Namespace) -> None:
    import numpy
    import scipy

    _say(
        options,
        {
            "quincunx": quincunx.__version__,
            "build": _core.__build_profile__,
            "vector unit": _core.simd_level(),
            "threads": _core.available_threads(),
            "memory available": _check.available_memory(),
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "platform": platform.platform(),
        },
    )


def _selftest(options: argparse.Namespace) -> int:
    from quincunx import selftest

    passed = []
    for found in selftest.run():
        passed.append(found.passed)
        word = "ok" if found.passed else "WRONG"
        line = f"{word:<6}{found.seconds:7.2f} s  {found.group}: {found.name}  {found.detail}".rstrip()
        print(json.dumps(found._asdict()) if options.json else line, flush=True)
    if not options.json:
        print(f"{len(passed)} checks, {passed.count(False)} wrong")
    return 0 if all(passed) else 1


def _say(options: argparse.Namespace, facts: dict[str, Any]) -> None:
    if options.json:
        print(json.dumps(facts))
    else:
        width = max(map(len, facts))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()))


def _progress() -> bool:
    """Say whether to show a bar: on a terminal, and where tqdm is there to draw it."""
    if not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("tqdm") is not None
