"""Sizes, times, large numbers and facts as people read them."""

import json as json_module
from collections.abc import Mapping


def in_bytes(number: float) -> str:
    """Return a number of bytes with a unit of 1024 steps."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1024 or unit == "PiB":
            break
        number /= 1024
    if number >= 1e6:
        return f"{number:.2g} {unit}"
    return f"{number:.0f} {unit}" if unit == "bytes" or number >= 100 else f"{number:.3g} {unit}"


def in_time(seconds: float) -> str:
    """Return a time in the largest unit of which there is at least one."""
    for unit, size in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.2g} {unit}" if number < 10 or number >= 1e6 else f"{number:.0f} {unit}"
    if seconds >= 1:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{_two(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{_two(seconds * 1e6)} \u00b5s"


def _two(number: float) -> str:
    """Return a number with two digits, or those before the point."""
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"


def shown(facts: Mapping[str, object], json: bool) -> str:
    """Return facts as a JSON object or in lines."""
    width = max(map(len, facts))
    return (
        json_module.dumps(dict(facts))
        if json
        else "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    )
