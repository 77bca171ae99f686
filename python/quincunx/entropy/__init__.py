"""Growth constants of lattices: certified bounds, estimates by corner tensors, randomly triangulated grids."""

from quincunx.entropy._bounds import EntropyBounds, entropy_bounds
from quincunx.entropy._estimate import EntropyEstimate, entropy_estimate
from quincunx.entropy._triangulated import (
    Interval,
    QuenchedEntropy,
    annealed_entropy,
    annealed_entropy_limit,
    expected_count,
    expected_count_polynomial,
    quenched_entropy,
)

__all__ = [
    "EntropyBounds",
    "EntropyEstimate",
    "Interval",
    "QuenchedEntropy",
    "annealed_entropy",
    "annealed_entropy_limit",
    "entropy_bounds",
    "entropy_estimate",
    "expected_count",
    "expected_count_polynomial",
    "quenched_entropy",
]
