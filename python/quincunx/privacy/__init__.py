"""Release of data with a guarantee: mechanisms, their exact noise, and what they guarantee.

All noise comes from integer-only exact samplers on a generator that the operating system keys anew for each release.
"""

from quincunx.privacy import _sensitivity as sensitivity
from quincunx.privacy import noise
from quincunx.privacy._audit import AuditResult, audit
from quincunx.privacy._budget import Budget, Plan
from quincunx.privacy._calibration import gaussian_delta, gaussian_epsilon, gaussian_sigma
from quincunx.privacy._discrete_gaussian import DiscreteGaussianMechanism
from quincunx.privacy._exponential import ExponentialMechanism
from quincunx.privacy._filters import BudgetExceeded, Share
from quincunx.privacy._gaussian import GaussianMechanism
from quincunx.privacy._geometric import GeometricMechanism
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._hadamard_response import HadamardResponse
from quincunx.privacy._laplace import LaplaceMechanism
from quincunx.privacy._local_hashing import LocalHashing
from quincunx.privacy._losses import LossDistribution
from quincunx.privacy._memoized import MemoizedUnaryEncoding
from quincunx.privacy._partition import Partition
from quincunx.privacy._privatize import privatize
from quincunx.privacy._quantile import quantile
from quincunx.privacy._relations import AddRemove, DataMetric, NoGuarantee, Relation, ReplaceOne
from quincunx.privacy._release import Release
from quincunx.privacy._response import GeneralizedRandomizedResponse, RandomizedResponse
from quincunx.privacy._subset_selection import SubsetSelection
from quincunx.privacy._together import parallel, subsampled
from quincunx.privacy._unary_encoding import UnaryEncoding

__all__ = [
    "AddRemove",
    "AuditResult",
    "Budget",
    "BudgetExceeded",
    "DataMetric",
    "DiscreteGaussianMechanism",
    "ExponentialMechanism",
    "GaussianMechanism",
    "GeneralizedRandomizedResponse",
    "GeometricMechanism",
    "HadamardResponse",
    "LaplaceMechanism",
    "LocalHashing",
    "LossDistribution",
    "MemoizedUnaryEncoding",
    "NoGuarantee",
    "Partition",
    "Plan",
    "PrivacyGuarantee",
    "RandomizedResponse",
    "Relation",
    "Release",
    "ReplaceOne",
    "Share",
    "SubsetSelection",
    "UnaryEncoding",
    "audit",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "noise",
    "parallel",
    "privatize",
    "quantile",
    "sensitivity",
    "subsampled",
]
