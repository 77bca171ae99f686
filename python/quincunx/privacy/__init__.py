"""Release of data with a guarantee: mechanisms, their exact noise, and what they promise.

All noise comes from integer-only exact samplers on a generator that the operating system keys anew for each release.
"""

from quincunx.privacy import _sensitivity as sensitivity
from quincunx.privacy._audit import AuditResult, audit
from quincunx.privacy._budget import Budget, Plan
from quincunx.privacy._calibration import gaussian_delta, gaussian_epsilon, gaussian_sigma
from quincunx.privacy._filters import BudgetExceeded
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._noise import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    privatize,
)
from quincunx.privacy._relations import AddRemove, DataMetric, NoGuarantee, Relation, ReplaceOne
from quincunx.privacy._release import Release
from quincunx.privacy._response import GeneralizedRandomizedResponse, RandomizedResponse, UnaryEncoding

__all__ = [
    "AddRemove",
    "AuditResult",
    "Budget",
    "BudgetExceeded",
    "DataMetric",
    "DiscreteGaussianMechanism",
    "GaussianMechanism",
    "GeneralizedRandomizedResponse",
    "GeometricMechanism",
    "LaplaceMechanism",
    "NoGuarantee",
    "Plan",
    "PrivacyGuarantee",
    "RandomizedResponse",
    "Relation",
    "Release",
    "ReplaceOne",
    "UnaryEncoding",
    "audit",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "privatize",
    "sensitivity",
]
