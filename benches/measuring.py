"""What benches measure and say alike: peaks of memory, tasks in processes of their own, times in units, targets.

    python benches/measuring.py BENCH [ARGUMENT ...]        as python benches/bench_BENCH.py ARGUMENT ...

runs a bench and puts what it keeps, with the day, the commit and the speed of this machine, into `measured.jsonl`, a
line of JSON in place of the bench's last. The page `docs/how-fast.md` is made from that file.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import quincunx
from quincunx import _core

KEPT = "QUINCUNX_MEASURED"  # names the file that `keep` adds to


def status(word: str) -> int:
    """Return a figure of this process in bytes, as Linux tells it."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(word))


def forget_peak() -> int:
    """Let the peak of the resident memory start from here; return what is resident."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS")


def in_a_fresh_process(script: str, task: Any) -> dict[str, Any]:
    """Run a script with ``--child`` and a task in a process of its own; return what it answers, or how it failed."""
    command = [sys.executable, os.path.abspath(script), "--child", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def seconds(value: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1 or unit == "us":
            return f"{value * factor:.3g} {unit}"
    return ""


def verdict(value: float, target: float, at_most: bool = True) -> str:
    """Return whether a target holds."""
    holds = value <= target if at_most else value >= target
    return f"target {'<=' if at_most else '>='} {target:g}: {'holds' if holds else 'MISSED'}"


def arguments(doc: str, *, quick: str | None, full: str, only: str) -> argparse.ArgumentParser:
    """Return the arguments all benches have, with what they mean here."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    if quick is not None:
        which.add_argument("--quick", action="store_true", help=f"{quick} (the default)")
    which.add_argument("--full", action="store_true", help=full)
    parser.add_argument("--only", default="", metavar="TEXT", help=f"{only} whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser


def additions_per_second(words: int = 1 << 15) -> float:
    """Measure how many 64-bit words a thread adds a second out of its nearest caches."""
    total, term = np.zeros(words, np.uint64), np.ones(words, np.uint64)
    best = float("inf")
    for _ in range(2000):
        start = time.perf_counter()
        np.add(total, term, out=total)
        best = min(best, time.perf_counter() - start)
    return words / best


def keep(what: str, ours: float, peers: Mapping[str, float] | None = None) -> None:
    """Keep the seconds of our side and of each peer that did the same, if this file runs the bench."""
    if KEPT in os.environ:
        with open(os.environ[KEPT], "a") as file:
            file.write(json.dumps({"what": what, "ours": ours, "peers": dict(peers or {})}) + "\n")


def kept(bench: str, given: list[str]) -> dict[str, Any]:
    """Run a bench and return what it kept, and of what and where."""
    root = Path(__file__).resolve().parent
    load = os.getloadavg()[0]
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, str(root / f"bench_{bench}.py"), *given]
        subprocess.run(command, check=True, env=os.environ | {KEPT: file.name})
        figures = [json.loads(line) for line in Path(file.name).read_text().splitlines()]
    described = ["git", "-C", str(root), "describe", "--always", "--dirty=+"]
    return {
        "bench": bench,
        "arguments": given,
        "version": quincunx.__version__,
        "build": _core.__build_profile__,
        "commit": subprocess.run(described, capture_output=True, text=True, check=False).stdout.strip(),
        "day": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "additions": float(f"{additions_per_second():.3g}"),
        "peers": versions({peer for figure in figures for peer in figure["peers"]}),
        "figures": figures,
    }


def versions(peers: set[str]) -> dict[str, str]:
    """Return the versions of the packages that peers are called after: of numpy for "NumPy" and "numpy poisson"."""
    found = {}
    for peer in sorted(peers):
        package = re.split(r"[ .]", peer)[0].lower().replace("_", "-")
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def print_build() -> None:
    """Say what is measured, and end where its times would mean nothing."""
    if (built := _core.__build_profile__) != "release":
        sys.exit(f"this is a {built} build, whose times mean nothing: maturin develop --release")
    about = f"quincunx {quincunx.__version__}, {_core.available_threads()} threads"
    print(f"{about}, load {os.getloadavg()[0]:.1f} before the start\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a bench and keep its figures in measured.jsonl.")
    parser.add_argument("bench", help="its name without bench_ and .py")
    parser.add_argument("--into", type=Path, default=Path(__file__).with_name("measured.jsonl"), metavar="FILE")
    options, given = parser.parse_known_args()
    run = kept(options.bench, given)
    lines = options.into.read_text().splitlines() if options.into.exists() else []
    runs = {entry["bench"]: entry for entry in map(json.loads, lines)} | {options.bench: run}
    options.into.write_text("".join(json.dumps(runs[bench]) + "\n" for bench in sorted(runs)))


if __name__ == "__main__":
    main()
