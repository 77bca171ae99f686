"""What all rooms that infer a posterior share: runs of samplers, draws by name, diagnostics, files, the estimator base.

A room says what it works on (a `Problem`), and how one run of it is sampled (a `Sampler`). This package runs them here
or on an executor, and makes of their draws what users see. It lies below all rooms and knows none.
"""

from quincunx._inference._archive import decode, encode
from quincunx._inference._datatree import datatree
from quincunx._inference._diagnostics import complaint_of, complaints, diagnose
from quincunx._inference._drive import Callback
from quincunx._inference._estimator import PosteriorEstimator
from quincunx._inference._parameters import Parametrized, parameters
from quincunx._inference._posterior import Posterior
from quincunx._inference._runs import Arrays, Problem, Report, Run, Sampler, Schedule, Single, Variable
from quincunx._inference._shards import Backend, ShardLost
from quincunx._types import Array, Facts, Floats

__all__ = [
    "Array",
    "Arrays",
    "Backend",
    "Callback",
    "Facts",
    "Floats",
    "Parametrized",
    "Posterior",
    "PosteriorEstimator",
    "Problem",
    "Report",
    "Run",
    "Sampler",
    "Schedule",
    "ShardLost",
    "Single",
    "Variable",
    "complaint_of",
    "complaints",
    "datatree",
    "decode",
    "diagnose",
    "encode",
    "parameters",
]
