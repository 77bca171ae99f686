"""Poisson factorization of counts that were released with noise: matrices, networks, tensors, series.

The classes are scikit-learn's estimators; scikit-learn has to be installed and is loaded when the first instance is
made: ``pip install 'quincunx[sklearn]'``.
"""

import typing

from quincunx import _sklearn

if typing.TYPE_CHECKING:
    from quincunx.factorization._blockmodel import PoissonBlockmodel
    from quincunx.factorization._central import CentralPoissonFactorization
    from quincunx.factorization._cross_validation import CrossValidation, cross_validate
    from quincunx.factorization._dynamics import Forecast, PoissonDynamics
    from quincunx.factorization._matrix import PoissonFactorization
    from quincunx.factorization._misfit import Misfit, PredictiveCheck
    from quincunx.factorization._mpi import MPIShards
    from quincunx.factorization._tensor import PoissonTensorFactorization

__all__ = [
    "CentralPoissonFactorization",
    "CrossValidation",
    "Forecast",
    "MPIShards",
    "Misfit",
    "PoissonBlockmodel",
    "PoissonDynamics",
    "PoissonFactorization",
    "PoissonTensorFactorization",
    "PredictiveCheck",
    "cross_validate",
]

_HOMES = {
    "CentralPoissonFactorization": "_central",
    "CrossValidation": "_cross_validation",
    "Forecast": "_dynamics",
    "MPIShards": "_mpi",
    "Misfit": "_misfit",
    "PoissonBlockmodel": "_blockmodel",
    "PoissonDynamics": "_dynamics",
    "PoissonFactorization": "_matrix",
    "PoissonTensorFactorization": "_tensor",
    "PredictiveCheck": "_misfit",
    "cross_validate": "_cross_validation",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return _sklearn.admit(f"quincunx.factorization.{_HOMES[name]}", name)
    raise AttributeError(f"module 'quincunx.factorization' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
