"""Poisson factorization of counts that were released with noise: matrices, networks, tensors.

The classes are scikit-learn's estimators; scikit-learn is loaded when one of them is first asked for, and has to be
installed: ``pip install 'quincunx[sklearn]'``.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from quincunx.factorization._blockmodel import PoissonBlockmodel
    from quincunx.factorization._matrix import PoissonFactorization
    from quincunx.factorization._tensor import PoissonTensorFactorization

__all__ = ["PoissonBlockmodel", "PoissonFactorization", "PoissonTensorFactorization"]

_HOMES = {
    "PoissonBlockmodel": "_blockmodel",
    "PoissonFactorization": "_matrix",
    "PoissonTensorFactorization": "_tensor",
}


def __getattr__(name: str) -> typing.Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"quincunx.factorization.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'quincunx.factorization' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
