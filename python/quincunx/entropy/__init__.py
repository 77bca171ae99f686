"""Entropies and growth constants: certified bounds, corner tensors, random triangulations, solved models."""

from quincunx.entropy._bounds import entropy_bounds
from quincunx.entropy._dimers import dimer_entropy
from quincunx.entropy._estimate import EntropyEstimate, entropy_estimate
from quincunx.entropy._gas import EntropyBounds
from quincunx.entropy._jensen import Constant
from quincunx.entropy._models import FaceModel
from quincunx.entropy._numbers import Enclosure
from quincunx.entropy._phases import PhaseDiagram, phase_diagram
from quincunx.entropy._solved import SolvedEntropy, solved_entropy
from quincunx.entropy._trees import spanning_tree_entropy
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
    "Constant",
    "Enclosure",
    "EntropyBounds",
    "EntropyEstimate",
    "FaceModel",
    "Interval",
    "PhaseDiagram",
    "QuenchedEntropy",
    "SolvedEntropy",
    "annealed_entropy",
    "annealed_entropy_limit",
    "dimer_entropy",
    "entropy_bounds",
    "entropy_estimate",
    "expected_count",
    "expected_count_polynomial",
    "phase_diagram",
    "quenched_entropy",
    "solved_entropy",
    "spanning_tree_entropy",
]
