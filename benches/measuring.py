"""What benches measure and say alike: peaks of memory, tasks in processes of their own, times in units, targets."""

import argparse
import json
import os
import subprocess
import sys
from typing import Any

import quincunx
from quincunx import _core


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


def print_build() -> None:
    """Say what is measured, and end where its times would mean nothing."""
    if _core.__build_profile__ == "debug":
        sys.exit("this is a debug build, whose times mean nothing: maturin develop --release")
    about = f"quincunx {quincunx.__version__} ({_core.__build_profile__} build), {_core.available_threads()} threads"
    print(f"{about}, load {os.getloadavg()[0]:.1f} before the start\n")
