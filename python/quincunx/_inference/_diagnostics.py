"""Diagnostics of chains by ArviZ: R-hat, effective sample sizes, divergences, and what is wrong with them."""

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from quincunx._optional import require
from quincunx._types import Floats

#: Above this R-hat, or below this number of effective draws, a warning is given (Vehtari et al. 2021, section 4).
MAX_RHAT, MIN_ESS = 1.01, 400


def diagnose(scalars: Mapping[str, Floats]) -> dict[str, tuple[float, float]]:
    """Return R-hat and the bulk effective sample size of scalars, each of shape (n_chains, n_draws).

    A single chain is judged by its halves. R-hat is NaN where there are fewer than eight draws.
    """
    stats = require("arviz_stats.base", "arviz").array_stats
    found = {}
    for name, chains in scalars.items():
        half = chains.shape[1] // 2
        several = chains if len(chains) > 1 else chains[:, : 2 * half].reshape(2, half)
        if half < 4:  # ArviZ asks for four draws of each half
            found[name] = np.nan, float(chains.size)
            continue
        with np.errstate(all="ignore"):
            found[name] = float(stats.rhat(several)), float(stats.ess(chains))
    return found


def complaints(diagnostics: Mapping[str, tuple[float, float]], divergences: int = 0) -> list[str]:
    """Return what is wrong with chains; nothing where a scalar does not move at all, as with data of zeros."""
    found = []
    for name, (rhat, ess) in diagnostics.items():
        if rhat > MAX_RHAT:
            found.append(f"R-hat of the {name} is {rhat:.3f} (more than {MAX_RHAT})")
        if ess < MIN_ESS:
            found.append(f"the {name} has {ess:.0f} effective draws (fewer than {MIN_ESS})")
    if divergences:
        found.append(f"{divergences} transitions after the warm-up diverged")
    return found


def complaint_of(scalars: Mapping[str, Floats], advice: str, *, divergences: int = 0) -> str | None:
    """Return the words for chains that disagree, are short or diverged; without ``arviz-stats`` only for the last."""
    diagnostics = diagnose(scalars) if find_spec("arviz_stats") is not None else {}
    found = complaints(diagnostics, divergences)
    return "; ".join(found) + f": {advice}" if found else None
