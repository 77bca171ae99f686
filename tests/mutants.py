"""Is a fault noticed? Small faults, one at a time, each of which the quick tests must find.

    python tests/mutants.py                     # those in Python, two at a time: about ten minutes
    python tests/mutants.py --rust              # those of the core: one development build of its tests for all
    python tests/mutants.py --only spare        # those whose file or text holds a word

A fault is one replacement in one file of a copy of the package; the tests named beside it in `mutants.toml` run against
the copy and must fail. The copies lie in a temporary folder: nothing here touches the working tree. `misplaced` names
the faults whose text is not at one place of its file; a quick test asks it, so that the list follows the code. Status 1
if a fault survives.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "quincunx"
CORE = ROOT / "rust"  # each crate has a folder


class Mutant(NamedTuple):
    """A fault: where, what it replaces, what it puts there, and the tests (or the Rust room) that must find it."""

    file: str
    right: str
    wrong: str
    tests: str


FAULTS = {
    room: [Mutant(**fault) for fault in faults]
    for room, faults in tomllib.loads((ROOT / "tests" / "mutants.toml").read_text()).items()
}

# Which fault a test of the core runs with: the number comes from the environment.
PLANTED = """
/// Whether the fault of this number is planted.
pub fn planted(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("PLANTED").ok()?.parse().ok()) == Some(number)
}
"""


def misplaced() -> list[str]:
    """Name the faults that cannot be planted: their text is not at one place of their file, or a test is not there."""
    found = []
    for room, package in (("python", PACKAGE), ("rust", CORE)):
        for mutant in FAULTS[room]:
            file = package / mutant.file
            times = file.read_text().count(mutant.right) if file.is_file() else 0
            if times != 1:
                found.append(f"{mutant.file} holds {mutant.right!r} {times} times")
            if room == "python":
                missing = (test for test in mutant.tests.split() if not (ROOT / "tests" / test).is_file())
                found += [f"{mutant.file}: there is no tests/{test}" for test in missing]
    return found


def damaged(mutant: Mutant, folder: Path) -> None:
    """Put the fault into a copy."""
    file = folder / mutant.file
    file.write_text(file.read_text().replace(mutant.right, mutant.wrong))


def undamaged(mutants: list[Mutant]) -> bool:
    """Say whether the tests pass where nothing is damaged: else no fault could be seen."""
    files = sorted({f"tests/{test}" for mutant in mutants for test in mutant.tests.split()})
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *files]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def python_mutant(mutant: Mutant) -> tuple[str, float]:
    """Return "killed" or "SURVIVED" or what else happened, and the seconds it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        copy = Path(place) / "quincunx"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        damaged(mutant, copy)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
        command += [f"tests/{test}" for test in mutant.tests.split()]
        environment = os.environ | {"PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
            verdict = {0: "SURVIVED", 1: "killed"}.get(
                done.returncode, f"ERROR {done.returncode}: {done.stdout[-500:]}"
            )
        except subprocess.TimeoutExpired:
            verdict = "killed by time"
    return verdict, time.monotonic() - start


def planted(number: int, mutant: Mutant, text: str) -> str:
    """Put a fault beside what is right, its last line; the number chosen at run time says which of them counts."""
    right, wrong = mutant.right.splitlines()[-1].strip(), mutant.wrong
    if right.startswith("if "):
        condition = right.removeprefix("if ").removesuffix(" {")
        both = f"if (if crate::planted({number}) {{ {wrong} }} else {{ {condition} }}) {{"
    else:
        both = f"if crate::planted({number}) {{ {wrong} }} else {{ {right} }}"
        both = both if right.endswith(";") else f"({both})"
    return text.replace(mutant.right, mutant.right.removesuffix(right) + both)


def rust_mutants(mutants: list[Mutant]) -> list[tuple[str, float]]:
    """Do the same with the core: one copy with all faults, built once, in which one counts at a time."""
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        for name in ("Cargo.toml", "Cargo.lock", "README.md"):
            shutil.copy(ROOT / name, place)
        for name in ("rust", "tests", "benches"):
            shutil.copytree(ROOT / name, Path(place) / name, ignore=shutil.ignore_patterns("__pycache__"))
        core = Path(place) / "rust"
        for number, mutant in enumerate(mutants):
            file = core / mutant.file
            file.write_text(planted(number, mutant, file.read_text()))
        for crate in {Path(mutant.file).parts[0] for mutant in mutants} | {"shared"}:
            root = core / crate / "lib.rs"
            asked = PLANTED if crate == "shared" else "\npub(crate) use quincunx_shared::planted;\n"
            root.write_text(f"#![allow(unused_parens)]\n{root.read_text()}{asked}")
        # The dependencies are those that are built already; the crates themselves are others by their place.
        environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
        build = ["cargo", "test", "--workspace", "--lib", "--locked", "--quiet", "--no-run", "--message-format=json"]
        built = subprocess.run(build, cwd=place, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        made = [json.loads(line) for line in built.splitlines()]
        programs = {line["target"]["name"]: line["executable"] for line in made if line.get("executable")}

        def command(mutant: Mutant) -> list[str]:
            return [programs[f"quincunx_{Path(mutant.file).parts[0]}"], mutant.tests]

        for right in sorted({tuple(command(mutant)) for mutant in mutants}):
            subprocess.run(right, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        for number, mutant in enumerate(mutants):
            start = time.monotonic()
            chosen = environment | {"PLANTED": str(number)}
            try:
                done = subprocess.run(command(mutant), cwd=place, env=chosen, capture_output=True, timeout=600)
                verdict = "killed" if done.returncode else "SURVIVED"
            except subprocess.TimeoutExpired:
                verdict = "killed by time"
            verdicts.append((verdict, time.monotonic() - start))
            report(mutant, *verdicts[-1])
    return verdicts


def report(mutant: Mutant, verdict: str, seconds: float) -> None:
    """Print a line."""
    right, wrong = (" ".join(text.split())[:45] for text in (mutant.right, mutant.wrong))
    print(f"{verdict:<10} {seconds:6.1f} s  {mutant.file}: {right} -> {wrong}", flush=True)


def main() -> int:
    """Run the faults that the command line asks for; return 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rust", action="store_true", help="the faults of the core")
    parser.add_argument("--only", default="", metavar="WORD", help="those whose file or text holds it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault first")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N")
    options = parser.parse_args()
    if lost := misplaced():
        print(*lost, sep="\n")
        return 1
    chosen = [mutant for mutant in FAULTS["rust" if options.rust else "python"] if options.only in "\n".join(mutant)]
    chosen = chosen[options.skip :]
    if not options.rust and not options.unchecked and not undamaged(chosen):
        print("the tests must pass before a fault can be planted")
        return 1
    if options.rust:
        verdicts = rust_mutants(chosen)
    else:
        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = []
            for mutant, verdict in zip(chosen, pool.map(python_mutant, chosen), strict=True):
                verdicts.append(verdict)
                report(mutant, *verdict)
    survivors = sum(not verdict.startswith("killed") for verdict, _ in verdicts)
    print(f"{len(verdicts)} faults, {len(verdicts) - survivors} found")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
