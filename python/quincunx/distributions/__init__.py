"""Distributions of counts and of the noise on them: masses, tails, moments and draws.

Each is an immutable value whose parameters broadcast like NumPy arrays, with the method names of SciPy's own
distribution classes (``scipy.stats.Binomial`` and kin). Masses keep full relative accuracy far into the tails.
"""

from quincunx.distributions._bessel import Bessel
from quincunx.distributions._skellam import Skellam
from quincunx.distributions._two_piece_poisson import TwoPiecePoisson
from quincunx.distributions._two_sided_geometric import TwoSidedGeometric

__all__ = ["Bessel", "Skellam", "TwoPiecePoisson", "TwoSidedGeometric"]
