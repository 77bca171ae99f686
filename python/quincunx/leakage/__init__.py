"""Channels and what leaks through them: min-entropy leakage, averaging over symmetries, best private mechanisms."""

from quincunx.leakage._blocks import ChannelColumns
from quincunx.leakage._bounds import leakage_bound, utility_bound
from quincunx.leakage._channel import Channel
from quincunx.leakage._counterexamples import counterexamples
from quincunx.leakage._entropy import renyi_entropy
from quincunx.leakage._files import read_channel
from quincunx.leakage._measures import CapacityResult
from quincunx.leakage._mechanisms import (
    OptimalMechanism,
    distance_channel,
    geometric_channel,
    optimal_mechanism,
    randomized_response,
)
from quincunx.leakage._plot import plot_symmetrization, plot_utility
from quincunx.leakage._symmetrization import Symmetrization

__all__ = [
    "CapacityResult",
    "Channel",
    "ChannelColumns",
    "OptimalMechanism",
    "Symmetrization",
    "counterexamples",
    "distance_channel",
    "geometric_channel",
    "leakage_bound",
    "optimal_mechanism",
    "plot_symmetrization",
    "plot_utility",
    "randomized_response",
    "read_channel",
    "renyi_entropy",
    "utility_bound",
]
