"""Bounds of entropies on the command line: what its `entropy` does."""

import os
from fractions import Fraction
from typing import Annotated

from quincunx._units import shown
from quincunx.entropy._bounds import entropy_bounds
from quincunx.entropy._estimate import entropy_estimate


def entropy_command(
    lattice: Annotated[str, "square, king, 4-8-8, honeycomb, kagome, triangular, 3-12-12, ..."],
    *,
    digits: Annotated[int | None, "decimals to prove (default 14)"] = None,
    activity: Fraction = Fraction(1),
    model: Annotated[str, "independent-sets, matchings, widom-rowlinson or ising"] = "independent-sets",
    width: Annotated[int | None, "by strips and rings of so many lines instead"] = None,
    bond_dimension: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float | None = None,
    estimate: Annotated[bool, "estimate, without the proof"] = False,
    json: Annotated[bool, "print a JSON object with the evidence"] = False,
    progress: bool = False,
) -> str:
    """Bound the entropy of independent sets, or another model, per vertex, in nats, and its exponential: both ends."""
    about: dict[str, object] = {"lattice": lattice, "model": model, "activity": str(activity)}
    if estimate:
        found = entropy_estimate(lattice, model=model, digits=digits, activity=activity)
        facts: dict[str, object] = {"estimate": f"{found.value:f}", "growth_constant": f"{found.growth_constant:f}"}
        about |= {"digits": found.digits, "correlation_length": found.correlation_length}
        return shown(facts | about if json else facts, json)
    bounds = entropy_bounds(
        lattice,
        model=model,
        digits=digits,
        activity=activity,
        width=width,
        bond_dimension=bond_dimension,
        checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval,
        progress=progress,
    )
    both = {"entropy": bounds, "growth_constant": bounds.growth_constant}
    if not json:
        return shown({name: f"{ends.lower:f}  {ends.upper:f}" for name, ends in both.items()}, json)
    for name, ends in both.items():
        numbers = {side: f"{getattr(ends, side):f}" for side in ("lower", "upper")}
        about[name] = numbers | {"certified": ends.certified, "digits": ends.digits}
    return shown(about | {"theorem": bounds.theorem, "evidence": bounds.evidence}, json)
