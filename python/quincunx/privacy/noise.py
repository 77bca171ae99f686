"""Laws of noise: how what is released depends on what is private, as one object.

A mechanism has its law as `noise`, each of its releases carries it, to disk and back, and models take it by its type.
"""

from quincunx.privacy._discrete_gaussian import DiscreteGaussianNoise
from quincunx.privacy._exponential import ExponentialChoice
from quincunx.privacy._gaussian import GaussianNoise
from quincunx.privacy._geometric import GeometricNoise
from quincunx.privacy._hadamard_response import HadamardResponseNoise
from quincunx.privacy._laplace import LaplaceNoise
from quincunx.privacy._law import Noise
from quincunx.privacy._local_hashing import LocalHashingNoise
from quincunx.privacy._memoized import MemoizedUnaryEncodingNoise
from quincunx.privacy._quantile import QuantileChoice
from quincunx.privacy._response import GeneralizedRandomizedResponseNoise, RandomizedResponseNoise
from quincunx.privacy._subset_selection import SubsetSelectionNoise
from quincunx.privacy._unary_encoding import UnaryEncodingNoise

__all__ = [
    "DiscreteGaussianNoise",
    "ExponentialChoice",
    "GaussianNoise",
    "GeneralizedRandomizedResponseNoise",
    "GeometricNoise",
    "HadamardResponseNoise",
    "LaplaceNoise",
    "LocalHashingNoise",
    "MemoizedUnaryEncodingNoise",
    "Noise",
    "QuantileChoice",
    "RandomizedResponseNoise",
    "SubsetSelectionNoise",
    "UnaryEncodingNoise",
]
