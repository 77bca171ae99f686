"""What a fit publishes is listed, and of what is no noise nothing changes when one record does.

Every estimator is refitted, with the same randomness, on neighbors of its data whose one record is the worst that we
can think of: the largest and smallest numbers, a category that nobody else has, no number at all where one may stand.
"""

import fractions
import warnings

import numpy as np
import pytest
from tests.posterior.test_posterior_estimators import BernoulliOfChecks

from quincunx import factorization, ldp, posterior, privacy
from quincunx.privacy import AddRemove, ReplaceOne

ORIGINS = {"declared", "shape", "noise", "released"}
ROOMS = (factorization, ldp, posterior)
FEW = {"n_chains": 1, "n_warmup": 20, "n_draws": 20, "max_depth": 4, "random_state": 0}
SHORT = {"n_warmup": 2, "n_draws": 1, "n_chains": 1, "random_state": 0}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, -1.0]
BITS = (Y > 0).astype(np.int64)
THREE = np.repeat([0, 1], 20)  # of three classes, the last of which only a neighbor has
FAR = [(1e300, -1e300), (-np.finfo(float).max, np.finfo(float).max), (5e-324, 0.0)]
COUNTS = RNG.poisson(3.0, (5, 5))


def replaced(data, *records):
    """Return data and its neighbors, whose first record is another."""
    found = [tuple(np.array(part, copy=True) for part in data)]
    for record in records:
        neighbor = tuple(np.array(part, copy=True) for part in data)
        for part, value in zip(neighbor, record, strict=True):
            part[0] = value
        found.append(neighbor)
    return found


def numbers(*values):
    return replaced((X[:, 0],), *((value,) for value in values))


def told(model, mechanism, data):
    """Return fits to what users told of data and of its neighbors, with the same noise."""
    return [model().fit(mechanism.release(*part, insecure_seed=3)) for part in data]


def pairs(model, for_y, data):
    """Return fits to what users told of x and y."""
    for_x = privacy.GaussianMechanism(1.0, 1e-5, radius=3.0, dimension=2)
    return [
        model().fit(for_x.release(x, insecure_seed=3), for_y.release(y, insecure_seed=4), mechanism=None)
        for x, y in data
    ]


def tables(model, shape):
    """Return fits to released counts, of which one is another by one."""
    table = RNG.poisson(3.0, shape)
    more, none = table.copy(), table.copy()
    more.flat[0] += 1
    none.flat[int(np.argmax(table))] -= 1
    return [
        model(2, **SHORT).fit(privacy.privatize(part, epsilon=1.0, insecure_seed=3)) for part in (table, more, none)
    ]


CASES = {
    **{
        f"PrivateBernoulliNB by {mechanism}": lambda mechanism=mechanism: [
            posterior.PrivateBernoulliNB(mechanism=mechanism, classes=3, insecure_seed=1).fit(x, y)
            for x, y in replaced((X, THREE), *((far, 2) for far in [*FAR, (np.nan, np.inf)]))
        ]
        for mechanism in ("fourier_linf", "laplace", "posterior_sample", "map")
    },
    "PrivateCategoricalNB": lambda: [
        posterior.PrivateCategoricalNB(categories=4, classes=["a", "b", "c"], insecure_seed=1).fit(x, y)
        for x, y in replaced((BITS[:, None], np.array(["a", "b"])[THREE]), (3, "c"), (2, "b"))
    ],
    "PosteriorSampleRegressor": lambda: [
        posterior.PosteriorSampleRegressor(insecure_seed=1).fit(x, y)
        for x, y in replaced((X, Y), *zip(FAR, (1e300, -1e300, 0.0), strict=True), ((np.nan, 0.0), 1.0))
    ],
    **{
        f"LDPSGD for {task}": lambda task=task, answers=answers, last=last: [
            ldp.LDPSGD(task, insecure_seed=1, random_state=0).fit(x, y)
            for x, y in replaced((X, answers), *((far, last) for far in FAR))
        ]
        for task, answers, last in (("linear", Y, 1e300), ("logistic", BITS, 1))
    },
    "GaussianModel": lambda: told(
        lambda: ldp.GaussianModel(**FEW), privacy.LaplaceMechanism(1.0, -3, 3), numbers(1e300, -1e300)
    ),
    "GaussianModel by gaussian": lambda: told(
        lambda: ldp.GaussianModel(**FEW),
        privacy.GaussianMechanism(1.0, 1e-5, lower=-3, upper=3),
        numbers(1e300, -1e300),
    ),
    "ExponentialModel": lambda: told(
        lambda: ldp.ExponentialModel(**FEW), privacy.LaplaceMechanism(1.0, 0, 3), numbers(1e300, -1e300)
    ),
    "TractableModel": lambda: told(
        lambda: ldp.TractableModel(**FEW),
        privacy.GaussianMechanism(1.0, 1e-5, radius=2.0),
        [(values[:4],) for (values,) in numbers(1e300, -1e300)],  # each user costs an integral at each step
    ),
    "MultivariateNormalModel": lambda: told(
        lambda: ldp.MultivariateNormalModel(**FEW),
        privacy.GaussianMechanism(1.0, 1e-5, radius=2.0, dimension=2),
        [(np.outer(values[0], [1.0, -0.5]),) for values in numbers(1e300, -1e300)],
    ),
    "BernoulliModel": lambda: told(
        lambda: ldp.BernoulliModel(**FEW), privacy.RandomizedResponse(1.0), replaced((BITS,), (1 - BITS[0],))
    ),
    "PoissonModel": lambda: told(
        lambda: ldp.PoissonModel(**FEW),
        privacy.GeometricMechanism(1.0, lower=0, upper=9),
        replaced((BITS,), (2**62,), (-(2**62),)),
    ),
    "GeometricModel": lambda: told(
        lambda: ldp.GeometricModel(**FEW),
        privacy.GeometricMechanism(1.0, lower=0, upper=9),
        replaced((BITS,), (2**62,), (-(2**62),)),
    ),
    "HistogramModel": lambda: told(
        lambda: ldp.HistogramModel(**FEW), privacy.UnaryEncoding(1.0, 4), replaced((BITS,), (3,), (2,))
    ),
    "LinearRegression": lambda: pairs(
        lambda: ldp.LinearRegression(**FEW),
        privacy.GaussianMechanism(1.0, 1e-5, radius=3.0),
        replaced((X, Y), *((far, 1e300) for far in FAR)),
    ),
    "LogisticRegression": lambda: pairs(
        lambda: ldp.LogisticRegression(**FEW),
        privacy.RandomizedResponse(2.0),
        replaced((X, BITS), *((far, 1 - BITS[0]) for far in FAR)),
    ),
    "CentralPoissonFactorization": lambda: [
        factorization.CentralPoissonFactorization(2, insecure_seed=3, random_state=0).fit(counts)
        for (counts,) in replaced((COUNTS,), (10**9,), (0,))
    ],
    "PoissonFactorization": lambda: tables(factorization.PoissonFactorization, (6, 5)),
    "PoissonBlockmodel": lambda: tables(factorization.PoissonBlockmodel, (5, 5)),
    "PoissonDynamics": lambda: tables(factorization.PoissonDynamics, (6, 4)),
    "PoissonTensorFactorization": lambda: tables(factorization.PoissonTensorFactorization, (3, 4, 5)),
}


def private_networks(relation, mechanism):
    """Return networks fitted to records and to neighbors: another record; with `AddRemove` one less, or one more."""
    binary = mechanism.startswith("fourier")
    net = posterior.DiscreteBayesNet([("a", "b"), ("b", "c")], {"a": 2, "b": 2 if binary else 3, "c": 2})
    data = np.zeros((30, 3), dtype=np.int64)
    other = data.copy()
    other[0] = [1, 1 if binary else 2, 1]
    neighbors = [data, other] if relation == ReplaceOne() else [data, data[1:], np.vstack((data, other[:1]))]
    return [net.fit_private(part, 1.0, mechanism, relation=relation, insecure_seed=1) for part in neighbors]


def estimators():
    return {name for room in ROOMS for name in room.__all__ if hasattr(getattr(room, name), "fit")}


def public(fitted):
    """Return what a fitted estimator, or network, has for everybody to see."""
    if isinstance(fitted, posterior.PrivateBayesNet):
        return {name: value for name, value in vars(fitted).items() if not name.startswith("_")}
    found = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")}
    return {name: getattr(fitted, name) for name in found if hasattr(fitted, name)}


def form(value):
    """Return all of a value but its numbers: they are the noise, and how many there are is none."""
    if isinstance(value, np.ndarray):
        return "array", value.shape, value.dtype
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [form(part) for part in value]
    if isinstance(value, posterior.PrivateBayesNet):
        return {
            name: form(part) if value.PUBLISHED[name] == "noise" else told_of(part)
            for name, part in public(value).items()
        }
    return "number" if isinstance(value, (int, float, fractions.Fraction, np.number)) else type(value)


def told_of(value):
    """Return a value so that it can be compared."""
    if isinstance(value, posterior.DiscreteBayesNet):
        return {name: part for name, part in vars(value).items() if not name.startswith("_")}
    return ("array", value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value


def differences(fits):
    """Return what is published and not listed, and what differs between the fits though it is no noise."""
    origins = type(fits[0]).PUBLISHED
    assert set(origins.values()) <= ORIGINS
    found = [public(fit) for fit in fits]
    unlisted = {name for part in found for name in part} - set(origins)
    differing = {name for part in found for name in set(part) ^ set(found[0])}
    for name in set(found[0]) - unlisted - differing:
        compared = form if origins[name] in ("noise", "released") else told_of
        if any(compared(part[name]) != compared(found[0][name]) for part in found):
            differing.add(name)
    return unlisted, differing


def test_every_estimator_has_neighbors():
    assert estimators() == {name.partition(" ")[0] for name in CASES}


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.* lie beyond the clients' bound")  # which released values alone say
@pytest.mark.parametrize("name", CASES)
def test_neighbors_differ_in_noise_alone(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an overflow that only some records cause is published, too
        fits = CASES[name]()
    assert differences(fits) == (set(), set())


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "fourier_l1", "fourier_linf", "posterior_sample", "map"])
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_neighboring_networks_differ_in_noise_alone(relation, mechanism):
    fits = private_networks(relation, mechanism)
    assert differences(fits) == (set(), set())
    assert form(fits[0]) == form(fits[1])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()], ids=str)
def test_synthetic_laws_of_neighbors_differ_in_noise_alone(relation, delta):
    data = np.zeros((30, 3), dtype=np.int64)
    other = data.copy()
    other[0] = [1, 2, 1]
    neighbors = [data, other] if relation == ReplaceOne() else [data, data[1:], np.vstack((data, other[:1]))]
    domain = {"a": 2, "b": 3, "c": 2}
    for kind in [posterior.MarginalTree] + [posterior.AdaptiveMarginals] * (delta > 0):
        released_alike(kind(1.0, delta, domain=domain, relation=relation), neighbors)
    if delta:
        few = posterior.AdaptiveMarginals(1.0, delta, domain=domain, relation=relation, rare_threshold=1.0)
        released_alike(few, neighbors)


def released_alike(selection, neighbors):
    fits = [selection.release(part, insecure_seed=1) for part in neighbors]
    assert all(type(fit) is posterior.SyntheticBayesNet for fit in fits)
    assert differences(fits) == (set(), set())


def test_the_noise_itself_differs():
    for name in ("PrivateBernoulliNB by laplace", "LDPSGD for linear", "GaussianModel"):
        first, second = CASES[name]()[:2]
        noisy = [key for key, origin in type(first).PUBLISHED.items() if origin in ("noise", "released")]
        assert any(repr(getattr(first, key, 0)) != repr(getattr(second, key, 0)) for key in noisy)


def test_labels_that_are_read_from_the_data_would_be_noticed():
    fits = [BernoulliOfChecks(insecure_seed=1).fit(X, y) for y in (THREE, np.where(np.arange(40) == 0, 2, THREE))]
    unlisted, differing = differences(fits)
    assert not unlisted
    assert differing == {"classes_", "network_", "class_log_prior_", "feature_log_prob_"}


def test_an_attribute_that_is_not_listed_would_be_noticed():
    class Talkative(posterior.PosteriorSampleRegressor):
        def fit(self, X, y):
            super().fit(X, y)
            self.largest_ = float(np.max(np.abs(X)))
            return self

    fits = [Talkative(insecure_seed=1).fit(x, y) for x, y in replaced((X, Y), (FAR[0], 0.0))]
    assert differences(fits) == ({"largest_"}, set())
