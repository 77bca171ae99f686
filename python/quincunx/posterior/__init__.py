"""Privacy by sampling a posterior: conjugate models, discrete Bayesian networks, private estimators.

`BetaBernoulli` and its kin release draws of a posterior with the exact epsilon of a finite data set; `DiscreteBayesNet`
fits networks by six mechanisms. The estimators need scikit-learn: ``pip install 'quincunx[sklearn]'``.
"""

from quincunx.posterior._dirichlet import DirichletCategorical, DirichletPosterior
from quincunx.posterior._fitted import PrivateBayesNet
from quincunx.posterior._network import DiscreteBayesNet, PackedRecords
from quincunx.posterior._one_parameter import (
    BetaBernoulli,
    ConjugatePosterior,
    ExponentialGamma,
    LaplaceGamma,
    NormalPrecisionGamma,
)
from quincunx.posterior._sample import PrivateSample, QueryAnswerer
from quincunx.posterior._vectors import (
    BallPosterior,
    BallRegression,
    MultivariateNormalMean,
    MultivariateNormalPrecision,
    WishartPosterior,
)

__all__ = [
    "BallPosterior",
    "BallRegression",
    "BetaBernoulli",
    "ConjugatePosterior",
    "DirichletCategorical",
    "DirichletPosterior",
    "DiscreteBayesNet",
    "ExponentialGamma",
    "LaplaceGamma",
    "MultivariateNormalMean",
    "MultivariateNormalPrecision",
    "NormalPrecisionGamma",
    "PackedRecords",
    "PrivateBayesNet",
    "PrivateSample",
    "QueryAnswerer",
    "WishartPosterior",
]
