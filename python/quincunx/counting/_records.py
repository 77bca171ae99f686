"""Counts of independent sets beyond the lists that are known, as a table: digits, cost, and what verified each."""

import json
from functools import cache
from importlib.resources import files

from quincunx import _units
from quincunx._types import Facts


@cache
def records() -> Facts:
    """Return what ``records.json`` says: where each lattice's list ended, and its counts by size."""
    found: Facts = json.loads((files(__package__) / "records.json").read_text(encoding="utf-8"))
    return found


def table() -> str:
    """Return the records as people read them, in lines."""
    lines = []
    for lattice, ended in records()["lists"].items():
        lines.append(f"{lattice}: {ended}")
        for row in records()[lattice]:
            count, size = row["count"], f"{row['size']} x {row['size']}"
            cost = f"{_units.in_time(row['user_seconds'])} of processors, {_units.in_bytes(row['bytes'])}"
            ways = f"verified in {len(row['verified'])} ways"
            lines.append(f"  {size}  {count[0]}.{count[1:5]}...e{len(count) - 1}  {cost}, {ways}")
        lines.append("")
    return "\n".join([*lines, "--json: all digits, the command of each, and how it was verified"])
