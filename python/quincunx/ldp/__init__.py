"""Noise-aware Bayesian inference under local differential privacy.

Each user releases a noisy value; the analyst, who knows the mechanism, infers the posterior of the parameters with the
true values integrated out. Computing on what was released costs no privacy. The two regressions are scikit-learn
estimators and need that: ``pip install 'quincunx[sklearn]'``.
"""

import typing

from quincunx import _sklearn
from quincunx._summary import Summary
from quincunx.ldp import priors, statistics
from quincunx.ldp._calibration import Calibration, calibration
from quincunx.ldp._frequencies import estimate_frequencies
from quincunx.ldp._histogram import HistogramModel
from quincunx.ldp._scalar import (
    BernoulliModel,
    ExponentialModel,
    GaussianModel,
    GeometricModel,
    PoissonModel,
    TractableModel,
    tractable_log_density,
)
from quincunx.ldp._sgd import LDPSGD
from quincunx.ldp._shuffle import shuffled_epsilon
from quincunx.ldp._vector import MultivariateNormalModel

if typing.TYPE_CHECKING:
    from quincunx.ldp._regression import LinearRegression, LogisticRegression

__all__ = [
    "LDPSGD",
    "BernoulliModel",
    "Calibration",
    "ExponentialModel",
    "GaussianModel",
    "GeometricModel",
    "HistogramModel",
    "LinearRegression",
    "LogisticRegression",
    "MultivariateNormalModel",
    "PoissonModel",
    "Summary",
    "TractableModel",
    "calibration",
    "estimate_frequencies",
    "priors",
    "shuffled_epsilon",
    "statistics",
    "tractable_log_density",
]


def __getattr__(name: str) -> object:
    if name in ("LinearRegression", "LogisticRegression"):
        return _sklearn.admit("quincunx.ldp._regression", name)
    raise AttributeError(f"module 'quincunx.ldp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
