"""Privacy by sampling a posterior: conjugate models, discrete Bayesian networks, private estimators.

`BetaBernoulli` and its kin release draws of a posterior with the exact epsilon of a finite data set; `DiscreteBayesNet`
fits networks by six mechanisms. The estimators need scikit-learn: ``pip install 'quincunx[sklearn]'``.
"""

import typing

from quincunx import _sklearn
from quincunx._summary import Summary
from quincunx.posterior._adaptive import AdaptiveMarginals
from quincunx.posterior._beta import BetaBernoulli
from quincunx.posterior._bounds import (
    LipschitzConstants,
    beta_hockey_stick,
    gamma_hockey_stick,
    kl_bound,
    le_cam_lower_bound,
    min_samples_to_distinguish,
    prior_change_bounds,
    query_error_bound,
    regret_bound,
    tv_bound,
)
from quincunx.posterior._counterexamples import counterexamples, naive_bayes_loss
from quincunx.posterior._dirichlet import DirichletCategorical, DirichletPosterior
from quincunx.posterior._gamma import ExponentialGamma, LaplaceGamma, NormalPrecisionGamma
from quincunx.posterior._grid import GridModel, GridPosterior
from quincunx.posterior._marginal_tree import MarginalTree
from quincunx.posterior._marginals import fit_marginals
from quincunx.posterior._network import DiscreteBayesNet, PrivateBayesNet
from quincunx.posterior._network_posterior import NetworkPosterior
from quincunx.posterior._one_parameter import ConjugatePosterior
from quincunx.posterior._records import PackedRecords
from quincunx.posterior._sample import PrivateSample, QueryAnswerer
from quincunx.posterior._synthesize import synthesize
from quincunx.posterior._synthetic import SyntheticBayesNet
from quincunx.posterior._vectors import (
    BallPosterior,
    BallRegression,
    MultivariateNormalMean,
    MultivariateNormalPrecision,
    WishartPosterior,
)

if typing.TYPE_CHECKING:
    from quincunx.posterior._estimators import PosteriorSampleRegressor, PrivateBernoulliNB, PrivateCategoricalNB

__all__ = [
    "AdaptiveMarginals",
    "BallPosterior",
    "BallRegression",
    "BetaBernoulli",
    "ConjugatePosterior",
    "DirichletCategorical",
    "DirichletPosterior",
    "DiscreteBayesNet",
    "ExponentialGamma",
    "GridModel",
    "GridPosterior",
    "LaplaceGamma",
    "LipschitzConstants",
    "MarginalTree",
    "MultivariateNormalMean",
    "MultivariateNormalPrecision",
    "NetworkPosterior",
    "NormalPrecisionGamma",
    "PackedRecords",
    "PosteriorSampleRegressor",
    "PrivateBayesNet",
    "PrivateBernoulliNB",
    "PrivateCategoricalNB",
    "PrivateSample",
    "QueryAnswerer",
    "Summary",
    "SyntheticBayesNet",
    "WishartPosterior",
    "beta_hockey_stick",
    "counterexamples",
    "fit_marginals",
    "gamma_hockey_stick",
    "kl_bound",
    "le_cam_lower_bound",
    "min_samples_to_distinguish",
    "naive_bayes_loss",
    "prior_change_bounds",
    "query_error_bound",
    "regret_bound",
    "synthesize",
    "tv_bound",
]

_ESTIMATORS = ("PosteriorSampleRegressor", "PrivateBernoulliNB", "PrivateCategoricalNB")


def __getattr__(name: str) -> object:
    if name in _ESTIMATORS:
        return _sklearn.admit("quincunx.posterior._estimators", name)
    raise AttributeError(f"module 'quincunx.posterior' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
