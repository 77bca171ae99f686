"""Is a fault noticed? Small faults, one at a time, each of which the quick tests must find.

    python tests/mutants.py                     # those in Python, two at a time: about ten minutes
    python tests/mutants.py --rust              # those of the core: one development build of its tests for all
    python tests/mutants.py --only spare        # those whose file or text holds a word

A fault is one replacement in one file of a copy of the package; the tests named beside it run against the copy and must
fail. The copies lie in a temporary folder: nothing here touches the working tree. A replacement whose text is no longer
in its file is an error, so that the list follows the code. Status 1 if a fault survives.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """A fault: where, what it replaces, what it puts there, and the tests (or the Rust room) that must find it."""

    file: str
    right: str
    wrong: str
    tests: str


PYTHON = [
    # What was once damaged on purpose and not seen.
    Mutant("privacy/_formats.py", "allow_pickle=False", "allow_pickle=True", "privacy/test_releases_and_files.py"),
    Mutant("_inference/_archive.py", "allow_pickle=False", "allow_pickle=True", "test_archives.py"),
    Mutant("_npz.py", "os.replace(partial, path)", "__import__('shutil').copy(partial, path)", "test_archives.py"),
    Mutant("privacy/_ledger.py", '"BEGIN IMMEDIATE"', '"BEGIN DEFERRED"', "privacy/test_ledger.py"),
    Mutant("privacy/_ledger.py", "0o600", "0o644", "privacy/test_ledger.py"),
    Mutant(
        "privacy/_ledger.py",
        "        with self._lock:\n            account = decide",
        "        if True:\n            account = decide",
        "privacy/test_budget.py",
    ),
    # Counting.
    Mutant("counting/_residues.py", "needed = len(pairs) - 1", "needed = len(pairs)", "counting/test_residues.py"),
    Mutant("counting/_frontier.py", "if taken and not state & mask", "if taken", "counting/test_random_objects.py"),
    Mutant("counting/_frontier.py", "ticket -= weight", "ticket -= 1", "counting/test_random_objects.py"),
    Mutant("counting/_exact.py", "found[start] = part", "pass", "counting/test_long_jobs.py"),
    # Graphs and lattices.
    Mutant("graphs/_derived.py", "np.triu_indices(degree, 1)", "np.triu_indices(degree, 0)", "graphs/test_derived.py"),
    Mutant("graphs/_families.py", "min(shape) < 3", "min(shape) < 2", "graphs/test_families.py"),
    Mutant(
        "lattices/_lattice.py",
        "self._cell, self._extent, self._pbc",
        "self._cell, self._extent",
        "lattices/test_lattice.py",
    ),
    # Spectra.
    Mutant(
        "spectra/_bloch.py",
        "blocks[..., v, u] += phase.conj()",
        "blocks[..., v, u] += phase",
        "spectra/test_spectra.py",
    ),
    Mutant(
        "spectra/_connectivity.py",
        "np.partition(values, 1)[1]",
        "np.partition(values, 1)[0]",
        "spectra/test_spectra.py",
    ),
    Mutant("counting/_activities.py", "any(value < 0 for", "any(value < -1 for", "counting/test_random_objects.py"),
    Mutant("spectra/_resistance.py", "if parts > 1:", "if parts > 2:", "spectra/test_spectra.py"),
    # Entropy.
    Mutant("entropy/_triangulated.py", "a, b - a, b)", "a, a, b)", "entropy/test_triangulated.py"),
    Mutant(
        "entropy/_triangulated.py",
        "[first] * m, [second] * m",
        "[first] * m, [first] * m",
        "entropy/test_triangulated.py",
    ),
    Mutant("entropy/_triangulated.py", "low * (1 - slack)", "low * (1 + 1e-9)", "entropy/test_triangulated.py"),
    Mutant(
        "entropy/_jensen.py", "near = 1 / (1 + np.exp(2", "near = 1 / (1 + np.exp(1", "entropy/test_trees_and_dimers.py"
    ),
    # Distributions.
    Mutant(
        "distributions/_base.py", "tail >= sought if lower", "tail > sought if lower", "distributions/test_tails.py"
    ),
    Mutant(
        "_rng.py", "random_raw(2).tolist()", "random_raw(1).tolist() * 2", "distributions/test_draws.py test_rng.py"
    ),
    # Privacy.
    Mutant("privacy/_records.py", "if total <= bound:", "if total <= 2 * bound:", "privacy/test_records.py"),
    Mutant("privacy/_records.py", "bound if numbers == 1 else 2 * bound", "bound", "privacy/test_records.py"),
    Mutant("privacy/_filters.py", "total.epsilon > most", "total.epsilon > 2 * most", "privacy/test_budget.py"),
    Mutant("privacy/_filters.py", "total.delta > most", "total.delta > 2 * most", "privacy/test_budget.py"),
    Mutant("privacy/_filters.py", 'if charge.numerics == "insecure"', "if False", "privacy/test_budget.py"),
    Mutant("privacy/_filters.py", "before - (-part.numerator", "before + (part.numerator", "privacy/test_budget.py"),
    Mutant(
        "privacy/_filters.py",
        "math.tanh(level / 2)) * (1 + F",
        "math.tanh(level / 3)) * (1 + F",
        "privacy/test_rule_book.py privacy/test_budget.py",
    ),
    Mutant("privacy/_noise.py", "n=record_distance(numbers, bound)", "n=bound", "privacy/test_records.py"),
    Mutant(
        "privacy/_gaussian.py",
        "np.clip(numbers, -self.radius, self.radius)",
        "numbers",
        "privacy/test_noise_mechanisms.py privacy/test_gaussian_calibration.py",
    ),
    # Leakage.
    Mutant(
        "leakage/_bounds.py",
        "distance >= 0, np.exp(-level",
        "distance >= 0, np.exp(level",
        "leakage/test_mechanisms.py",
    ),
    Mutant("leakage/_bounds.py", "1 + smallest * (", "1 + 2 * smallest * (", "leakage/test_mechanisms.py"),
    Mutant(
        "leakage/_measures.py", "_log2(_prior_vulnerability(self, prior)), 0.0)", "0.0, 0.0)", "leakage/test_channel.py"
    ),
    Mutant("leakage/_measures.py", "max(column) for column", "min(column) for column", "leakage/test_channel.py"),
    # Factorization.
    Mutant(
        "factorization/_data.py",
        "(whole < 0) & (alpha == 0)",
        "(whole < -1) & (alpha == 0)",
        "factorization/test_estimator_arguments.py",
    ),
    Mutant(
        "factorization/_data.py",
        "whole = np.maximum(whole, 0)",
        "whole = abs(whole)",
        "factorization/test_estimator_arguments.py factorization/test_estimator_results.py",
    ),
    Mutant(
        "factorization/_data.py",
        "np.where(held_out, np.zeros",
        "np.where(~held_out, np.zeros",
        "factorization/test_estimator_runs.py factorization/test_estimator_results.py",
    ),
    Mutant(
        "factorization/_data.py",
        "<= low and high <=",
        "<= low or high <=",
        "factorization/test_estimator_arguments.py factorization/test_estimator_results.py",
    ),
    # Local privacy.
    Mutant("ldp/_shuffle.py", "clone = 2 / (math", "clone = 1 / (math", "ldp/test_ldp_known_answers.py"),
    Mutant(
        "ldp/_shuffle.py",
        "np.floor(ratio * (clones + 1) / (1 + ratio)) + 1",
        "np.floor(ratio * (clones + 1) / (1 + ratio)) + 9",
        "ldp/test_ldp_known_answers.py",
    ),
    Mutant("ldp/_sgd.py", "(scores - y)[:, None]", "(scores + y)[:, None]", "ldp/test_models.py"),
    # Posterior sampling.
    Mutant(
        "posterior/_account.py",
        "np.where(np.isnan(values), lower, values), lower, upper",
        "values, lower, upper",
        "posterior/test_posterior_bad_input.py",
    ),
    Mutant(
        "posterior/_account.py",
        "math.exp(min(share / 2, 700.0))",
        "math.exp(min(share, 700.0))",
        "posterior/test_posterior_known_answers.py posterior/test_posterior_laws.py",
    ),
    Mutant(
        "posterior/_one_parameter.py",
        "(2 if isinstance(relation, ReplaceOne) else 1) * self.temper",
        "self.temper",
        "posterior/test_posterior_known_answers.py",
    ),
    Mutant(
        "posterior/_mechanisms.py",
        "rows - 2 * value",
        "rows - value",
        "posterior/test_posterior_laws.py posterior/test_posterior_known_answers.py",
    ),
    Mutant(
        "posterior/_mechanisms.py",
        "Fraction(1, len(wider))",
        "Fraction(1, len(wider) + 1)",
        "posterior/test_posterior_laws.py posterior/test_posterior_known_answers.py",
    ),
    # What all share.
    Mutant(
        "_check.py",
        "if not math.isfinite(number):",
        "if math.isinf(number):",
        "test_check.py distributions/test_arguments.py",
    ),
    Mutant(
        "_check.py",
        'isinstance(value, (bool, np.bool_)):\n        raise TypeError(f"`{name}` must be a whole',
        'False:\n        raise TypeError(f"`{name}` must be a whole',
        "test_check.py graphs/test_families.py",
    ),
    Mutant("cli.py", "return 3", "return 2", "test_cli.py privacy/test_ledger.py"),
]

# Here the text is a condition ("if ... {"), a statement (";" at its end) or an expression: all are compiled at once.
RUST = [
    Mutant("counting/exact.rs", "if found != expected {", "false", "counting::exact"),
    Mutant("counting/exact.rs", "if &value << 1u32 > product {", "false", "counting::"),
    Mutant("counting/checkpoint.rs", "residue < modulus.value()", "true", "counting::checkpoint"),
    Mutant("counting/lock.rs", "if holder.is_gone() {", "true", "counting::lock"),
    Mutant("counting/evaluation.rs", "bytes(engine, lanes) <= options.memory_limit", "true", "counting::"),
    Mutant(
        "memory.rs",
        'left.chain([level(&mounts, &V2), level(&mounts.join("memory"), &V1)]).fold(system, u64::min)',
        "system",
        "memory::",
    ),
    Mutant("memory.rs", "usage.saturating_sub(reclaimable)", "usage", "memory::"),
    Mutant(
        "parallel.rs",
        "if entry.users.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {",
        "true",
        "parallel::",
    ),
    Mutant("error.rs", "own.min(allowed.into())", "own", "error::"),
    Mutant("graphs/distances.rs", "row[w as usize] = sizes.len() as i32;", "row[w as usize] = 1;", "graphs::distances"),
    Mutant("lattices/clique.rs", "sum(times.saturating_add(1)) / 2", "sum(times)", "lattices::"),
    Mutant("privacy/noise.rs", "    k % 2 == 1", "k % 2 == 0", "privacy::noise"),
    Mutant(
        "privacy/noise.rs",
        "source.below(denominator) < numerator",
        "source.below(denominator) <= numerator",
        "privacy::",
    ),
    Mutant("privacy/noise.rs", "(0..units)", "(1..units)", "privacy::noise"),
    Mutant("privacy/zcdp.rs", "if rho == 0.0 {", "rho < 1.0", "privacy::zcdp"),
    Mutant("leakage/sums.rs", "self.low += error;", "", "leakage::sums"),
    Mutant("leakage/sums.rs", "self.low += other.low;", "", "leakage::sums"),
    Mutant("leakage/divergence.rs", "(a.ln() - b.ln()).abs()", "a.ln() - b.ln()", "leakage::divergence"),
    Mutant("posterior/ball.rs", "norm <= self.square && norm >= least", "norm <= self.square", "posterior::ball"),
    Mutant("posterior/ball.rs", "mean + deviation * normal", "mean + normal", "posterior::ball"),
]

# Which fault a test of the core runs with: the number comes from the environment.
PLANTED = """
/// Whether the fault of this number is planted.
pub fn planted(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("PLANTED").ok()?.parse().ok()) == Some(number)
}
"""


def damaged(mutant: Mutant, source: Path, folder: Path) -> None:
    """Put the fault into a copy."""
    text = (source / mutant.file).read_text()
    if text.count(mutant.right) < 1:
        raise SystemExit(f"{mutant.file} no longer holds {mutant.right!r}")
    (folder / mutant.file).write_text(text.replace(mutant.right, mutant.wrong, 1))


def undamaged(mutants: list[Mutant]) -> bool:
    """Say whether the tests pass where nothing is damaged: else no fault could be seen."""
    files = sorted({f"tests/{test}" for mutant in mutants for test in mutant.tests.split()})
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *files]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def python_mutant(mutant: Mutant) -> tuple[str, float]:
    """Return "killed" or "SURVIVED" or what else happened, and the seconds it took."""
    start = time.monotonic()
    package = ROOT / "python" / "quincunx"
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        copy = Path(place) / "quincunx"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        damaged(mutant, package, copy)
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
    """Put a fault beside what is right; the number chosen at run time says which of them counts."""
    right, wrong = mutant.right.strip(), mutant.wrong
    if right not in text:
        raise SystemExit(f"{mutant.file} no longer holds {mutant.right!r}")
    if right.startswith("if "):
        condition = right.removeprefix("if ").removesuffix(" {")
        both = f"if (if crate::planted({number}) {{ {wrong} }} else {{ {condition} }}) {{"
    else:
        both = f"if crate::planted({number}) {{ {wrong} }} else {{ {right} }}"
        both = both if right.endswith(";") else f"({both})"
    return text.replace(right, both, 1)


def rust_mutants(mutants: list[Mutant]) -> list[tuple[str, float]]:
    """Do the same with the core: one copy with all faults, built once, in which one counts at a time."""
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        for name in ("Cargo.toml", "Cargo.lock", "README.md"):
            shutil.copy(ROOT / name, place)
        for name in ("rust", "tests", "benches"):
            shutil.copytree(ROOT / name, Path(place) / name, ignore=shutil.ignore_patterns("__pycache__"))
        core = Path(place) / "rust" / "core"
        for number, mutant in enumerate(mutants):
            file = core / mutant.file
            file.write_text(planted(number, mutant, file.read_text()))
        crate = core / "lib.rs"
        crate.write_text(f"#![allow(unused_parens)]\n{crate.read_text()}{PLANTED}")
        # The dependencies are those that are built already; the crate itself is another one by its place.
        environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
        build = ["cargo", "test", "--lib", "--locked", "--quiet", "--no-run", "--message-format=json"]
        built = subprocess.run(build, cwd=place, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        made = (json.loads(line).get("executable") for line in built.splitlines())
        command = [next(program for program in made if program)]
        rooms = sorted({mutant.tests for mutant in mutants})
        for room in rooms:
            subprocess.run([*command, room], cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        for number, mutant in enumerate(mutants):
            start = time.monotonic()
            chosen = environment | {"PLANTED": str(number)}
            try:
                done = subprocess.run([*command, mutant.tests], cwd=place, env=chosen, capture_output=True, timeout=600)
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
    chosen = [mutant for mutant in (RUST if options.rust else PYTHON) if options.only in "\n".join(mutant)]
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
