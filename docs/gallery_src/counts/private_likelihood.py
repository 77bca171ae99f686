"""
The private likelihood in other people's samplers
=================================================

A release ``count + noise`` of a Poisson count has a closed-form likelihood given the rate: the count and the noise are
summed out. ``TwoPiecePoisson(released, rate, alpha).log_marginal(gradient=True)`` gives it with its derivative by the
rate, for all cells at once. That is all a gradient-based sampler asks for. Here is one model, a Poisson regression on a
release, three times: by SciPy's optimizer, in NumPyro and in PyMC. The last two are skipped where they are missing.
"""

from importlib.util import find_spec

import numpy as np
from scipy.optimize import minimize

from quincunx.distributions import TwoPiecePoisson
from quincunx.privacy import privatize

# sphinx_gallery_thumbnail_path = '_static/posterior.svg'
rng = np.random.default_rng(1)
TRUTH = np.array([0.5, 0.8])
design = np.column_stack([np.ones(2000), rng.normal(size=2000)])
release = privatize(rng.poisson(np.exp(design @ TRUTH)), epsilon=0.5)


def likelihood(rate):
    """Return the log-likelihood of each released value and its derivative by the rate."""
    rate = np.minimum(rate, 2.0**53)  # the largest there is; samplers try wilder ones before they settle
    return TwoPiecePoisson(release.values, rate, release.alpha).log_marginal(gradient=True)


# %%
# SciPy: the maximum of likelihood and prior.


def loss(beta):
    rate = np.exp(design @ beta)
    value, slope = likelihood(rate)
    return 0.5 * beta @ beta - value.sum(), beta - (slope * rate) @ design


found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B")
print("SciPy  ", found.x.round(2), "truth", TRUTH)

# %%
# NumPyro: a function of JAX with a derivative of its own, computed on the host.


def in_numpyro():
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)

    def on_the_host(rate):
        shapes = (jax.ShapeDtypeStruct(rate.shape, rate.dtype),) * 2
        return jax.pure_callback(lambda r: likelihood(np.asarray(r)), shapes, rate)

    @jax.custom_vjp
    def log_marginal(rate):
        return on_the_host(rate)[0]

    log_marginal.defvjp(on_the_host, lambda slope, cotangent: (cotangent * slope,))

    def model():
        beta = numpyro.sample("beta", numpyro.distributions.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("released", log_marginal(jax.numpy.exp(design @ beta)).sum())

    chain = MCMC(NUTS(model), num_warmup=300, num_samples=500, progress_bar=False)
    chain.run(jax.random.key(1))
    draws = np.asarray(chain.get_samples()["beta"])
    print("NumPyro", draws.mean(axis=0).round(2), "+-", draws.std(axis=0).round(2))


# %%
# PyMC: an operation of PyTensor with its gradient.


def in_pymc():
    import pymc
    import pytensor.tensor as pt
    from pytensor.graph.op import Apply, Op

    class LogMarginal(Op):
        """The log-likelihoods and, as a second output, their derivatives."""

        def make_node(self, rate):
            rate = pt.as_tensor_variable(rate)
            return Apply(self, [rate], [pt.dvector(), pt.dvector()])

        def perform(self, node, inputs, outputs):
            outputs[0][0], outputs[1][0] = likelihood(inputs[0])

        def grad(self, inputs, cotangents):
            return [cotangents[0] * self(*inputs)[1]]

    with pymc.Model():
        beta = pymc.Normal("beta", 0.0, 1.0, shape=2)
        pymc.Potential("released", LogMarginal()(pt.exp(design @ beta))[0].sum())
        tree = pymc.sample(500, tune=300, chains=2, cores=1, random_seed=1, progressbar=False)
    draws = tree.posterior["beta"]
    print("PyMC   ", draws.mean(("chain", "draw")).values.round(2), "+-", draws.std(("chain", "draw")).values.round(2))


for package, run in {"numpyro": in_numpyro, "pymc": in_pymc}.items():
    if find_spec(package) is None:
        print(f"{package} is not installed")
    else:
        run()
