"""The file of proved intervals, made anew: python -m quincunx.entropy._intervals tests/known/intervals.json.

Each entry says what was asked for, what was proved and by what, both ends as decimals. One whose bond dimension was
asked for holds the trial vector, its matrices times 2^bits as integers: `tests/check_intervals.py` proves it again.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path

from quincunx._types import Facts
from quincunx.entropy._bounds import entropy_bounds
from quincunx.entropy._corner import corner_rounds

#: What an entry says of the evidence, by its names there.
FACTS = {"bond_dimension": "bond_dimension", "ring": "ring", "rows": "torus_rows", "width": "width"}


def proved(lattice: str, model: str, activity: Fraction, asked: Facts) -> Facts:
    """Return the entry of an interval."""
    bounds = entropy_bounds(lattice, model=model, activity=activity, **asked)
    kappa, evidence = bounds.growth_constant, bounds.evidence
    entry = {"lattice": lattice, "model": model, "activity": str(activity), "asked": asked}
    entry |= {"lower": f"{kappa.lower:f}", "upper": f"{kappa.upper:f}"}
    entry |= {"method": bounds.method, "theorem": bounds.theorem}
    entry |= {name: evidence[key] for name, key in FACTS.items() if isinstance(evidence.get(key), int)}
    if (size := asked.get("bond_dimension")) is not None:
        entry["trial"] = trial(lattice, model, activity, size)
    return entry


def trial(lattice: str, model: str, activity: Fraction, size: int) -> Facts:
    """Return a trial vector: for each letter (of a face model, for both upper corners) a matrix of integers."""
    last = corner_rounds(lattice, activity, 14, size, size, estimate=False, progress=None, model=model)[-1]
    matrices = [[data[i * cols : (i + 1) * cols] for i in range(rows)] for rows, cols, data in last["tensors"]]
    return {"bits": last["bits"], "steps": [[*of, m] for of, m in zip(last["letters"], matrices, strict=True)]}


def text_of(entries: list[Facts]) -> str:
    """Return the text of the file."""
    origin = "python -m quincunx.entropy._intervals tests/known/intervals.json; tests/check_intervals.py checks it"
    return f'{{"origin": "{origin}",\n"intervals": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]}\n"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    stored = json.loads(file.read_text(encoding="utf-8"))["intervals"]
    fresh = [proved(of["lattice"], of["model"], Fraction(of["activity"]), of["asked"]) for of in stored]
    file.write_text(text_of(fresh), encoding="utf-8")
