"""Nothing takes the interpreter down: calls of everything public with arguments that nobody should give."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 2


class Shard:
    """Every PROCESSES-th call, by one process after the other: a death costs the call that killed it."""

    def __init__(self, number: int, calls: int, seconds: float, folder: Path) -> None:
        self.number, self.calls, self.seconds = number, calls, seconds
        self.journal = folder / f"journal-{number}"
        self.made = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        """Make all calls."""
        first = self.number
        while first is not None and first < self.calls:
            self.journal.unlink(missing_ok=True)
            first = self.go(first)

    def go(self, first: int) -> int | None:
        """Make calls until the last, or until the process dies; return the number of the next."""
        command = [sys.executable, str(ROOT / "tests" / "hostile.py"), "--first", str(first)]
        command += ["--calls", str(self.calls - first), "--step", str(PROCESSES)]
        command += ["--seconds", str(self.seconds), "--journal", str(self.journal)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "QUINCUNX_NUM_THREADS": "2", "RUST_BACKTRACE": "0"}
        errors = self.journal.with_suffix(".errors")
        with (
            open(errors, "wb") as ears,
            subprocess.Popen(command, cwd=ROOT, env=environment, stderr=ears, stdout=subprocess.DEVNULL) as process,
        ):
            size = -1
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                    break
                grown = self.journal.stat().st_size if self.journal.exists() else 0
                if grown == size:  # one call has taken more than half a minute and hears no signal
                    process.kill()
                size = grown
        heard = errors.read_text(errors="replace")
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []
        self.made += sum("call" in line for line in lines)
        self.wrong += [f"{line['is']}: {line['wrong']}" for line in lines if "finding" in line]
        if process.returncode == 0 and lines and "done" in lines[-1]:
            return None
        last = next((line for line in reversed(lines) if "call" in line), None)
        if last is None:
            self.wrong.append(f"no call was made: {heard[-2000:]}")
            return None
        self.wrong.append(f"{last['is']}: died with {process.returncode}: {heard[-300:]}")
        return last["call"] + PROCESSES


def hostile_calls(calls: int, seconds: float, folder: Path) -> tuple[int, list[str]]:
    """Make that many calls; return how many were made and what went wrong."""
    shards = [Shard(number, calls, seconds, folder) for number in range(PROCESSES)]
    runners = [threading.Thread(target=shard.run) for shard in shards]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    wrong = [line for shard in shards for line in shard.wrong]
    return sum(shard.made for shard in shards), wrong


def test_ten_thousand_hostile_calls_end_as_documented(tmp_path):
    made, wrong = hostile_calls(10_000, 0.02, tmp_path)
    assert not wrong, f"{len(wrong)} of {made} calls:\n" + "\n".join(wrong[:40])
    assert made == 10_000


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_million_hostile_calls_end_as_documented(tmp_path):
    made, wrong = hostile_calls(1_000_000, 0.1, tmp_path)
    assert not wrong, f"{len(wrong)} of {made} calls:\n" + "\n".join(sorted(wrong)[:200])
    assert made == 1_000_000


if __name__ == "__main__":
    import tempfile

    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as here:
        found = hostile_calls(many, 0.02, Path(here))
    print(f"{found[0]} calls, {len(found[1])} findings", *found[1], sep="\n")
