"""Hours of mixed jobs in several processes that are killed at random moments: nothing may be wrong, lost or left open.

    python benches/soak.py --minutes 60 --processes 4 --kill-every 10

Each process does in turn: a long count with a checkpoint that outlives its kills, counts of small lattices against
their mirror images, a fit that is saved and read back, a release from a budget in a file that all processes share, an
average over symmetries, an automorphism group. After each job it writes down its memory and its open descriptors. At
the end: the jobs done, the kills survived, answers that were wrong, and by how much memory and descriptors grew in any
one life after its first two rounds. Status 1 if anything was wrong or grew by more than is allowed. On Linux.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

GROWTH = 64 << 20  # bytes that a process may grow after its first two rounds
DESCRIPTORS = 4  # and descriptors


# One process.


def jobs(folder: Path, number: int, dice: random.Random) -> dict[str, Callable[[], bool]]:
    """Return the jobs of one process by name; each says whether its answer was right."""
    import numpy as np

    from quincunx import counting, graphs, lattices, leakage, privacy
    from quincunx.factorization import PoissonFactorization

    known = json.loads((folder / "known.json").read_text())

    def long_count() -> bool:
        path = folder / f"count-{number}.ckpt"
        found = counting.count_independent_sets(
            lattices.square(*known["long"]), threads=1, checkpoint=path, checkpoint_interval=0.05
        )
        path.unlink(missing_ok=True)
        return str(found) == known["long_count"]

    def mirrors() -> bool:
        m, n = dice.randint(2, 12), dice.randint(2, 12)
        make = dice.choice([lattices.square, lattices.king, lattices.triangular, lattices.four_eight_eight])
        return counting.count_independent_sets(make(m, n)) == counting.count_independent_sets(make(n, m))

    def fit() -> bool:
        counts = np.random.default_rng(1).poisson(2.0, (30, 20))
        model = PoissonFactorization(3, n_warmup=20, n_draws=5, n_chains=1, random_state=5).fit(counts)
        path = folder / f"model-{number}.npz"
        model.save(path)
        again = PoissonFactorization.load(path)
        word = hashlib.sha256(model.rates_.tobytes()).hexdigest()
        return word == known["fit"] and bool((again.rates_ == model.rates_).all())

    def release() -> bool:
        budget = privacy.Budget.open(folder / "study.budget")
        mechanism = privacy.RandomizedResponse(2.0**-20)
        budget.spend(mechanism)
        return set(np.unique(mechanism.release(np.zeros(1000, dtype=int)).values)) <= {0, 1}

    def average() -> bool:
        channel = leakage.Channel(np.random.default_rng(2).random((64, 64)), normalize=True)
        found = channel.symmetrize(graphs.hamming(6, 2)).channel.matrix
        return hashlib.sha256(found.tobytes()).hexdigest() == known["average"]

    def group() -> bool:
        n = dice.randint(3, 40)
        return graphs.automorphism_group(graphs.cycle(n)).order == 2 * n

    return {
        "long count": long_count,
        "mirrored counts": mirrors,
        "fit": fit,
        "release": release,
        "average": average,
        "group": group,
    }


def footprint(process: int | str = "self") -> tuple[int, int]:
    """Return resident bytes and open descriptors of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{process}/fd"))


def work(folder: Path, number: int) -> None:
    """Do jobs until killed."""
    warnings.simplefilter("ignore")
    dice = random.Random(f"{number} {time.time_ns()}")
    todo = jobs(folder, number, dice)
    diary = os.open(folder / f"diary-{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    rounds = 0
    while True:
        for name, job in todo.items():
            try:
                right, why = job(), ""
            except Exception as error:
                right, why = False, f"{type(error).__name__}: {error}"
            memory, descriptors = footprint()
            line = {"pid": os.getpid(), "round": rounds, "job": name, "right": right, "why": why}
            line |= {"memory": memory, "descriptors": descriptors}
            os.write(diary, (json.dumps(line) + "\n").encode())
        rounds += 1


# The one that kills.


def prepare(folder: Path, size: int) -> None:
    """Write down the right answers, and open the ledger."""
    import numpy as np

    from quincunx import counting, graphs, lattices, leakage, privacy
    from quincunx.factorization import PoissonFactorization

    counts = np.random.default_rng(1).poisson(2.0, (30, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rates = PoissonFactorization(3, n_warmup=20, n_draws=5, n_chains=1, random_state=5).fit(counts).rates_
    channel = leakage.Channel(np.random.default_rng(2).random((64, 64)), normalize=True)
    average = channel.symmetrize(graphs.hamming(6, 2)).channel.matrix
    known = {
        "long": [size, size],
        "long_count": str(counting.count_independent_sets(lattices.square(size, size))),
        "fit": hashlib.sha256(rates.tobytes()).hexdigest(),
        "average": hashlib.sha256(average.tobytes()).hexdigest(),
    }
    (folder / "known.json").write_text(json.dumps(known))
    privacy.Budget.open(folder / "study.budget", 1000.0)


def soak(
    seconds: float, processes: int, kill_every: float, size: int, folder: Path, enough: float = float("inf")
) -> dict[str, Any]:
    """Let processes work and kill them, at the most until there are `enough` jobs and a kill; return the figures."""
    prepare(folder, size)
    dice = random.Random(1)
    command = [sys.executable, __file__, "--worker", str(folder)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}

    def start(number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, str(number)], env=environment)

    workers = [start(number) for number in range(processes)]
    end, kills, died = time.monotonic() + seconds, 0, 0
    following = time.monotonic() + dice.expovariate(1 / kill_every)
    try:
        while time.monotonic() < end:
            time.sleep(0.05)
            if kills and sum(diary.read_bytes().count(b"\n") for diary in folder.glob("diary-*")) >= enough:
                break
            for number, worker in enumerate(workers):
                if worker.poll() is not None:
                    died += 1  # by itself: nobody killed it
                    workers[number] = start(number)
            if time.monotonic() >= following:
                number = dice.randrange(processes)
                workers[number].send_signal(dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                workers[number].wait()
                kills += 1
                workers[number] = start(number)
                following = time.monotonic() + dice.expovariate(1 / kill_every)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return figures(folder, kills, died)


def figures(folder: Path, kills: int, died: int) -> dict[str, Any]:
    """Read the diaries and the ledger."""
    from quincunx.privacy import Budget

    lines = []
    for diary in sorted(folder.glob("diary-*")):
        # The last line of a killed process may be half there, and what follows stands behind it.
        for line in diary.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
    lives: dict[int, list[dict[str, Any]]] = {}
    for line in lines:
        lives.setdefault(line["pid"], []).append(line)
    memory = descriptors = 0
    for life in lives.values():
        settled = [line for line in life if line["round"] >= 2]
        if settled:
            memory = max(memory, settled[-1]["memory"] - settled[0]["memory"])
            descriptors = max(descriptors, settled[-1]["descriptors"] - settled[0]["descriptors"])
    account = Budget.open(folder / "study.budget").accounts()
    spends = int(account[0]["spends"]) if account else 0
    released = sum(line["job"] == "release" for line in lines)
    wrong = [f"{line['job']}: {line['why'] or 'another answer'}" for line in lines if not line["right"]]
    if not released <= spends <= released + kills + len(lives):
        wrong.append(f"{spends} spends for {released} releases and {kills} kills")
    return {
        "jobs": len(lines),
        "by job": {name: sum(line["job"] == name for line in lines) for name in sorted({x["job"] for x in lines})},
        "lives": len(lives),
        "kills": kills,
        "died by themselves": died,
        "wrong": wrong,
        "largest memory": max((line["memory"] for line in lines), default=0),
        "growth of memory": memory,
        "growth of descriptors": descriptors,
        "files left by kills": sum(path.name.startswith(".") or ".part" in path.name for path in folder.iterdir()),
    }


def main() -> int:
    """Run, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=10.0, help="mean seconds between two kills")
    parser.add_argument("--size", type=int, default=26, help="extent of the square lattice of the long count")
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(Path(options.worker[0]), int(options.worker[1]))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        found = soak(60 * options.minutes, options.processes, options.kill_every, options.size, Path(folder))
    print(json.dumps(found, indent=2))
    grown = found["growth of memory"] > GROWTH or found["growth of descriptors"] > DESCRIPTORS
    return 1 if found["wrong"] or found["died by themselves"] or grown or not found["jobs"] else 0


if __name__ == "__main__":
    sys.exit(main())
