"""A posterior of this package in the samplers of other packages: NumPyro, BlackJAX, PyMC, and plain NumPy.

`log_density(u)` gives the log posterior and its gradient in unconstrained coordinates. JAX takes them as a pure
callback with a derivative of its own, PyTensor as an operation with one. Packages that are not installed are skipped.
Run: python benches/experiments/ldp_other_samplers.py [--draws 1000]
"""

import argparse
from importlib.util import find_spec

import numpy as np

from quincunx import ldp
from quincunx.privacy import LaplaceMechanism


def posterior(n=2000, seed=0):
    """A fitted model, whose computed moments are the answer."""
    x = np.random.default_rng(seed).normal(1.0, 1.5, n)
    release = LaplaceMechanism(1.0, -5, 5).release(x, insecure_seed=seed + 1)
    return ldp.GaussianModel(random_state=seed).fit(release)


def with_numpy(model, draws, seed=0):
    """Hamiltonian Monte Carlo with ten leapfrog steps, in unit scales about the mode's neighborhood."""
    rng, scale = np.random.default_rng(seed), np.array([0.3, 0.4])
    u = np.array([1.0, 0.4])
    value, gradient = model.log_density(u)
    kept = []
    for draw in range(2 * draws):
        at, momentum, slope = u, rng.normal(size=2), gradient * scale
        energy = value - momentum @ momentum / 2
        step = rng.uniform(0.15, 0.3)
        for _ in range(10):
            momentum = momentum + step / 2 * slope
            at = at + step * scale * momentum
            there, slope = model.log_density(at)
            slope = slope * scale
            momentum = momentum + step / 2 * slope
        if np.log(rng.random()) < there - momentum @ momentum / 2 - energy:
            u, value, gradient = at, there, slope / scale
        if draw >= draws:
            kept.append(u)
    return np.array(kept)


def in_jax(model):
    """The density as a function that JAX can trace and differentiate."""
    import jax

    jax.config.update("jax_enable_x64", True)
    shapes = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((2,), np.float64)

    def both(u):
        value, gradient = model.log_density(np.asarray(u))
        return np.float64(value), gradient

    @jax.custom_vjp
    def density(u):
        return jax.pure_callback(both, shapes, u, vmap_method="sequential")[0]

    def forward(u):
        return jax.pure_callback(both, shapes, u, vmap_method="sequential")

    density.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))
    return density


def with_numpyro(model, draws, seed=0):
    """NUTS of NumPyro on a potential."""
    import jax
    from numpyro.infer import MCMC, NUTS

    density = in_jax(model)
    chain = MCMC(NUTS(potential_fn=lambda u: -density(u)), num_warmup=draws, num_samples=draws, progress_bar=False)
    chain.run(jax.random.PRNGKey(seed), init_params=np.array([1.0, 0.4]))
    return np.asarray(chain.get_samples())


def with_blackjax(model, draws, seed=0):
    """NUTS of BlackJAX after its window adaptation."""
    import blackjax
    import jax

    density, key = in_jax(model), jax.random.PRNGKey(seed)
    adaptation = blackjax.window_adaptation(blackjax.nuts, density)
    (state, parameters), _ = adaptation.run(key, np.array([1.0, 0.4]), num_steps=draws)
    kernel, kept = jax.jit(blackjax.nuts(density, **parameters).step), []
    for one in jax.random.split(key, draws):
        state, _ = kernel(one, state)
        kept.append(np.asarray(state.position))
    return np.array(kept)


def with_pymc(model, draws, seed=0):
    """NUTS of PyMC on an operation of PyTensor."""
    import pymc
    import pytensor.tensor as pt
    from pytensor.graph.op import Op

    class Gradient(Op):
        itypes, otypes = [pt.dvector], [pt.dvector]

        def perform(self, node, inputs, outputs):
            outputs[0][0] = model.log_density(inputs[0])[1]

    class Density(Op):
        itypes, otypes = [pt.dvector], [pt.dscalar]

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.array(model.log_density(inputs[0])[0])

        def grad(self, inputs, cotangents):
            return [cotangents[0] * Gradient()(inputs[0])]

    with pymc.Model():
        u = pymc.Flat("u", shape=2)
        pymc.Potential("density", Density()(u))
        trace = pymc.sample(
            draws=draws,
            tune=draws,
            chains=1,
            cores=1,
            initvals={"u": np.array([1.0, 0.4])},
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return trace.posterior["u"].to_numpy()[0]


SAMPLERS = {"numpy": with_numpy, "numpyro": with_numpyro, "blackjax": with_blackjax, "pymc": with_pymc}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    model = posterior()
    print(f"{'':<10}{'mu':>10}{'sigma':>10}")
    print(f"{'computed':<10}{model.posterior_mean_['mu']:>10.3f}{model.posterior_mean_['sigma']:>10.3f}")
    for package, sample in SAMPLERS.items():
        if find_spec(package) is None:
            print(f"{package:<10} is not installed")
            continue
        u = sample(model, options.draws)
        print(f"{package:<10}{u[:, 0].mean():>10.3f}{np.exp(u[:, 1]).mean():>10.3f}")


if __name__ == "__main__":
    main()
