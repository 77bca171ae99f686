"""Exact counts on lattices and Bayesian inference on private counts.

The package is divided into rooms, each a module that is loaded on first use:

============================  ==========================================================
``quincunx.graphs``           graphs and their standard families
``quincunx.lattices``         unit cells, finite lattices with a boundary
``quincunx.counting``         exact numbers of independent sets, spanning trees, matchings
``quincunx.entropy``          growth constants: certified bounds, estimates, random triangulations
``quincunx.spectra``          eigenvalues, energies, resistances, connectivity
``quincunx.distributions``    Bessel, Skellam, two-sided geometric, two-piece Poisson
``quincunx.privacy``          release of data with a guarantee, by exact noise
``quincunx.factorization``    private Poisson factorization of matrices, networks, tensors
``quincunx.ldp``              Bayesian inference on locally private releases
``quincunx.leakage``          channels, leakage, symmetries and best private mechanisms
``quincunx.posterior``        privacy by posterior sampling, private Bayesian networks
``quincunx.datasets``         public data sets by checksum, small samples from documented laws
============================  ==========================================================
"""

import importlib
import os
from types import ModuleType

from quincunx import _core

__version__: str = _core.__version__

_ROOMS = (
    "counting",
    "datasets",
    "distributions",
    "entropy",
    "factorization",
    "graphs",
    "lattices",
    "ldp",
    "leakage",
    "posterior",
    "privacy",
    "spectra",
)
__all__ = ["__version__", *_ROOMS, "errors"]

# What is made once is made before a fork: the child would wait for ever for a thread that was at it. A thread pool does
# not survive one; the child builds its own when it first needs one.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_core.make_globals, after_in_child=_core.forget_pools)


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"quincunx.{name}")
    raise AttributeError(f"module 'quincunx' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
