"""One object tells the noise to mechanism, release, file and model; no fact of it is lost or passed over."""

import contextlib
import dataclasses
import io
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.saved import reread

from quincunx import factorization, ldp, privacy
from quincunx.leakage import Channel
from quincunx.privacy import Release, _law, noise

X = np.array([0, 1, 1, 0])
# Each mechanism, what it releases, and what earlier versions told of it in a release's file.
MECHANISMS = {
    "geometric": (
        privacy.GeometricMechanism(1.0, lower=0, upper=5),
        X,
        {"alpha": math.exp(-0.2), "n": None, "lower": 0, "upper": 5, "exponent": "1/5"},
    ),
    "geometric of a ratio": (
        privacy.GeometricMechanism(alpha=0.3),
        X,
        {"alpha": 0.3, "n": None, "lower": None, "upper": None, "exponent": None},
    ),
    "discrete-gaussian": (
        privacy.DiscreteGaussianMechanism(variance=4.5, lower=-3, upper=7),
        X,
        {"variance": 4.5, "lower": -3, "upper": 7},
    ),
    "laplace": (
        privacy.LaplaceMechanism(1.0, -5, 5),
        X,
        {"scale": 10.0, "lower": -5.0, "upper": 5.0, "step": 2.0**-17},
    ),
    "laplace of an array": (
        privacy.LaplaceMechanism(0.5, sensitivity=2),
        X,
        {"scale": privacy.LaplaceMechanism(0.5, sensitivity=2).scale, "lower": None, "upper": None, "step": 2.0**-18},
    ),
    "gaussian": (
        privacy.GaussianMechanism(sigma=0.75, radius=2.0, dimension=4, scales=[1, 2, 3, 4]),
        X,
        {
            "sigma": 0.75,
            "sensitivity": 4.0,
            "radius": 2.0,
            "dimension": 4,
            "step": 2.0**-21,
            "scales": [1.0, 2.0, 3.0, 4.0],
        },
    ),
    "gaussian of an array": (
        privacy.GaussianMechanism(sigma=3.0, sensitivity=1.0, dimension=7),
        X,
        {"sigma": 3.0, "sensitivity": 1.0, "radius": None, "dimension": 7, "step": 2.0**-19},
    ),
    "randomized-response": (privacy.RandomizedResponse(math.log(3)), X, None),
    "generalized-randomized-response": (privacy.GeneralizedRandomizedResponse(1.0, 4), X, None),
    "unary-encoding": (privacy.UnaryEncoding(1.0, 3, "symmetric"), X, None),
    "memoized-unary-encoding": (privacy.MemoizedUnaryEncoding(1.0, 2.0, 3), X, None),
    "subset-selection": (privacy.SubsetSelection(1.0, 4, size=2), X, None),
    "local-hashing": (privacy.LocalHashing(1.0, 4), X, None),
    "hadamard-response": (privacy.HadamardResponse(1.0, 4, blocks=1), X, None),
    "exponential": (
        privacy.ExponentialMechanism(1.0, sensitivity=2.0, monotonic=True),
        [[0.0, 3.0, 1.0]] * 2,
        None,
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_carries_the_law_of_its_mechanism_to_disk_and_back(name):
    mechanism, x, _ = MECHANISMS[name]
    release = mechanism.release(x, insecure_seed=3)
    assert release.noise == mechanism.noise == pickle.loads(pickle.dumps(mechanism)).noise
    assert release.mechanism == mechanism.noise.kind == name.split(" ")[0]
    for form in ("npz", "json", "csv"):
        back = reread(release, format=form)
        assert back == release
        assert back.noise == mechanism.noise
        assert hash(back.noise) == hash(mechanism.noise)
    again = _law.from_json(**{"kind": mechanism.noise.kind, "facts": json.loads(json.dumps(mechanism.noise.facts()))})
    assert again == mechanism.noise
    stated = mechanism.log_likelihood(release, x)
    assert np.array_equal(again.log_likelihood(release.values, x), stated)
    for other in MECHANISMS.values():
        assert (other[0].noise == mechanism.noise) == (other[0] is mechanism)


@pytest.mark.parametrize("name", [name for name, (_, _, facts) in MECHANISMS.items() if facts])
def test_files_of_earlier_versions_are_read(name):
    mechanism, _, facts = MECHANISMS[name]
    assert _law.from_json(mechanism.noise.kind, facts, ("n", "sensitivity")) == mechanism.noise


def test_files_of_earlier_versions_have_probabilities_as_floats():
    facts = {"keep_probability": 0.75}
    assert _law.from_json("randomized-response", facts) == noise.RandomizedResponseNoise(Fraction(1, 4))
    facts = {"categories": 4, "keep_probability": 0.25}
    assert _law.from_json("generalized-randomized-response", facts).other == Fraction(1, 4)
    facts = {"categories": 3, "variant": "optimal", "one_probability": 0.5, "zero_probability": 0.25}
    assert _law.from_json("unary-encoding", facts) == noise.UnaryEncodingNoise(3, 0.5, 0.25)
    mechanism = privacy.ExponentialMechanism(1.0, sensitivity=2.0)
    facts = {"sensitivity": 2.0, "monotonic": False, "exponent": str(mechanism.noise.exponent)}
    assert _law.from_json("exponential", facts, ("sensitivity", "monotonic")) == mechanism.noise


def test_a_file_whose_noise_is_not_known_is_refused_by_name():
    release = privacy.privatize([1, 2], epsilon=1.0)
    file = io.BytesIO()
    release.save(file, format="json")
    header = json.loads(file.getvalue())
    header = {key: fact for key, fact in header.items() if key != "checksum"} | {"format": 1}  # which had none
    for change, says in [
        ({"parameters": header["parameters"] | {"skew": 2}}, "skew"),
        ({"mechanism": "snapping"}, "snapping"),
        ({"parameters": header["parameters"] | {"alpha": 0.5}}, "`alpha` must be exp"),
        ({"parameters": header["parameters"] | {"exponent": "-1/2"}}, "`exponent` must be between"),
        ({"parameters": {"alpha": 1.5}}, "`alpha` must be in"),
        ({"mechanism": "laplace", "parameters": {"scale": -1.0}}, "`scale`"),
        ({"mechanism": "gaussian", "parameters": {"sigma": 1.0, "scales": [1.0, 0.0]}}, "`scales`"),
        ({"mechanism": "randomized-response", "parameters": {"flip": "3/2"}}, "`flip`"),
        ({"mechanism": "randomized-response", "parameters": {"flip": "1e999999999"}}, "`flip`"),
        ({"mechanism": "randomized-response", "parameters": {"flip": "1/" + "9" * 20_000}}, "`flip`"),
        ({"parameters": {"exponent": "1/" + "9" * 40}}, "`exponent` must be between"),
        ({"mechanism": "discrete-gaussian", "parameters": {"variance": 1e200}}, "`variance` must be at most"),
    ]:
        with pytest.raises(ValueError, match=says):
            Release.load(io.BytesIO(json.dumps(header | change).encode()))


def test_a_release_without_its_noise_is_an_array_that_no_model_takes():
    release = Release([1.0, 2.0], privacy.PrivacyGuarantee(1.0))
    assert reread(release, format="npz") == release
    assert repr(release).startswith("Release(unknown")
    for fit in (ldp.GaussianModel().fit, factorization.PoissonFactorization(1).fit):
        with pytest.raises(ValueError, match="`released` must"):
            fit(release)
    with pytest.raises(TypeError, match="`noise` must be a law"):
        Release([1.0], privacy.PrivacyGuarantee(1.0), noise="geometric")
    with pytest.raises(ValueError, match="`about` must"):
        Release([1.0], privacy.PrivacyGuarantee(1.0), about={"sigma": 3})


THETA, MOMENTS, RECORDS = np.array([0.5, 0.3, 0.2]), np.arange(1.0, 7.0), np.array([[0.5, -1.0], [1.0, 0.25]])
LINEAR = {"coefficients": [1.0, 0.5], "residual_sd": 0.5, "covariance": np.eye(2)}
LOGISTIC = {"coefficients": [1.0, 0.5], "covariance": np.eye(2)}
ANSWERS = noise.GaussianNoise(0.5)
GAUSSIAN, BLOCKS = noise.GaussianNoise(0.5, [1.0, 2.0]), noise.GaussianNoise(0.5, [1.0, 1.0, 1.0, 3.0, 3.0, 2.0])
CLIPPED = noise.GaussianNoise(0.5, lower=0.0, upper=4.0)
REALS, WHOLES = noise.LaplaceNoise(2.0, 0.0, 4.0), noise.GeometricNoise(0.5, 0, 4)
BITS, UNARY = noise.RandomizedResponseNoise(0.25), noise.UnaryEncodingNoise(3, 0.5, 0.25)
GRR = noise.GeneralizedRandomizedResponseNoise(3, 0.125)


def of_records(model, y, point):
    def made(law):
        return model((law, None if model is ldp.LogisticRegression else ANSWERS)).log_likelihood(RECORDS, y, **point)

    return made


# The likelihood of each model as a function of the law of its noise, and such a law.
MODELS = {
    "GaussianModel": (lambda law: ldp.GaussianModel(law).log_likelihood([0.5, 7.0], mu=1.0, sigma=1.0), REALS),
    "ExponentialModel": (lambda law: ldp.ExponentialModel(law).log_likelihood([0.5, 7.0], rate=1.0), REALS),
    "PoissonModel": (lambda law: ldp.PoissonModel(law).log_likelihood([0, 7], rate=1.0), WHOLES),
    "PoissonModel, Laplace": (lambda law: ldp.PoissonModel(law).log_likelihood([0.5, 7.0], rate=1.0), REALS),
    "GaussianModel, Gaussian": (
        lambda law: ldp.GaussianModel(law).log_likelihood([0.5, 7.0], mu=1.0, sigma=1.0),
        CLIPPED,
    ),
    "ExponentialModel, Gaussian": (
        lambda law: ldp.ExponentialModel(law).log_likelihood([0.5, 7.0], rate=1.0),
        noise.GaussianNoise(0.5, radius=3.0),
    ),
    "PoissonModel, Gaussian": (lambda law: ldp.PoissonModel(law).log_likelihood([0.3, 7.0], rate=1.0), CLIPPED),
    "GeometricModel": (lambda law: ldp.GeometricModel(law).log_likelihood([0, 7], probability=0.3), WHOLES),
    "BernoulliModel": (lambda law: ldp.BernoulliModel(law).log_likelihood([0, 1], probability=0.3), BITS),
    "TractableModel": (
        lambda law: ldp.TractableModel(law, interval=(-2.0, 2.0)).log_likelihood([0.5, 2.0], t1=0.5, t2=-0.5),
        noise.GaussianNoise(0.5, radius=1.0),
    ),
    "HistogramModel": (lambda law: ldp.HistogramModel(law).log_likelihood([[1, 0, 1]], theta=THETA), UNARY),
    "HistogramModel, responses": (lambda law: ldp.HistogramModel(law).log_likelihood([0, 2], theta=THETA), GRR),
    "LinearRegression": (of_records(ldp.LinearRegression, [1.0, 2.0], LINEAR), GAUSSIAN),
    "LogisticRegression": (of_records(ldp.LogisticRegression, [0, 1], LOGISTIC), GAUSSIAN),
    "LinearRegression, moments": (
        lambda law: ldp.LinearRegression(law, kind="statistics").log_likelihood(MOMENTS, n=9, **LINEAR),
        BLOCKS,
    ),
    "LogisticRegression, moments": (
        lambda law: ldp.LogisticRegression(law, kind="statistics").log_likelihood(MOMENTS[:5], n=9, **LOGISTIC),
        noise.GaussianNoise(0.5, [1.0, 1.0, 3.0, 3.0, 3.0]),
    ),
}
OTHERS = {
    "scale": 3.0,
    "alpha": 0.25,
    "lower": 1,
    "upper": 2,
    "exponent": Fraction(1, 3),
    "sigma": 0.75,
    "scales": None,
    "flip": 0.125,
    "one": 0.75,
    "zero": 0.125,
    "other": 0.25,
    "radius": 1.5,
    "dimension": 2,
    "categories": 4,
}
#: Clipping is to a ball or between bounds.
CLIPS = {
    "lower": {"upper": 4.0, "radius": None},
    "upper": {"lower": 0.0, "radius": None},
    "radius": {"lower": None, "upper": None},
    "dimension": {"lower": None, "upper": None, "radius": 1.0},
}
#: A grid of 2^-20 deviations changes no density by more than 1e-12; clipped records are left to a warning.
LEFT = {"step": "", "radius": "Regression", "dimension": "Regression"}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_to_every_field_of_its_noise(name):
    """A field that was dropped on the way would leave the likelihood as it is: as `scales` did."""
    likelihood, law = MODELS[name]
    usual, answered = likelihood(law), 0
    for field in dataclasses.fields(law):
        change = {field.name: OTHERS.get(field.name, 0.5)}
        if field.name == "scales" and law.scales is None:
            change["scales"] = [1.0, 7.0]
        if field.name == "exponent":
            change["alpha"] = None
        if isinstance(law, noise.GaussianNoise):
            change = CLIPS.get(field.name, {}) | change
        other = None
        with contextlib.suppress(ValueError):  # another number of categories, bounds that are not the model's
            other = likelihood(dataclasses.replace(law, **change))
        if other is None:
            answered += 1
            continue
        if field.name in LEFT and LEFT[field.name] in name:
            assert other == pytest.approx(usual, rel=1e-9)
            continue
        assert abs(other - usual) > 1e-3, field.name
        answered += 1
    assert answered >= 1


@pytest.mark.parametrize("name", MODELS)
def test_a_model_refuses_what_it_does_not_know_of_a_law_by_name(name):
    likelihood, law = MODELS[name]

    @dataclasses.dataclass(frozen=True, eq=False)
    class Skewed(type(law)):
        skew: float = 0.0

    facts = {field.name: getattr(law, field.name) for field in dataclasses.fields(law)}
    if isinstance(law, noise.GeometricNoise):
        facts |= {"exponent": None}
    assert likelihood(Skewed(**facts)) == pytest.approx(likelihood(law), rel=1e-13)
    with pytest.raises(ValueError, match=r"no `skew`, which .*\w+ does not know, got 0.5"):
        likelihood(Skewed(**facts, skew=0.5))


#: The laws that a model knows, where it knows more than one.
KNOWN = {
    "GaussianModel": ("laplace", "gaussian"),
    "ExponentialModel": ("laplace", "gaussian"),
    "PoissonModel": ("geometric", "laplace", "gaussian"),
    "GeometricModel": ("geometric", "laplace", "gaussian"),
    "BernoulliModel": ("randomized-response", "geometric", "laplace", "gaussian"),
    "HistogramModel": (UNARY.kind, GRR.kind),
    "LinearRegression, moments": ("gaussian", "laplace"),
    "LogisticRegression, moments": ("gaussian", "laplace"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_refuses_other_laws_by_name(name):
    likelihood, law = MODELS[name]
    refused = 0
    for other in (REALS, WHOLES, BITS, UNARY, GRR, noise.GaussianNoise(1.0), noise.DiscreteGaussianNoise(2.0)):
        if other.kind not in KNOWN.get(name, KNOWN.get(name.split(",")[0], (law.kind,))):
            with pytest.raises(ValueError, match=f"must be one of .*, got {other.kind}"):
                likelihood(other)
            refused += 1
    assert refused >= 3


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_factorizations_know_the_ratio_and_refuse_clipped_counts():
    counts = np.random.default_rng(0).poisson(3.0, (6, 4))
    how = {"n_warmup": 5, "n_draws": 3, "n_chains": 1, "random_state": 0}

    def made(law):
        return factorization.PoissonFactorization(1, **how).fit(
            Release(counts, privacy.PrivacyGuarantee(1.0), noise=law)
        )

    assert made(noise.GeometricNoise(0.5, lower=0))._posterior.problem.data.alpha == 0.5
    assert made(noise.GeometricNoise(exponent=Fraction(1)))._posterior.problem.data.alpha == math.exp(-1)
    for law, field in [(noise.GeometricNoise(0.5, upper=9), "upper"), (noise.GeometricNoise(0.5, lower=2), "lower")]:
        with pytest.raises(ValueError, match=f"no `{field}`"):
            made(law)
    with pytest.raises(ValueError, match="discrete-gaussian"):
        made(noise.DiscreteGaussianNoise(2.0))


def test_channels_are_made_of_laws():
    for mechanism in (privacy.RandomizedResponse(1.0), privacy.GeometricMechanism(1.0, lower=0, upper=3)):
        assert Channel.from_mechanism(mechanism.noise) == Channel.from_mechanism(mechanism)
    with pytest.raises(ValueError, match="one ratio"):
        Channel.from_mechanism(noise.GeometricNoise([0.5, 0.25], 0, 3))


@pytest.mark.parametrize("law", [noise.GeometricNoise(0.5), noise.DiscreteGaussianNoise(4.0)])
def test_likelihoods_of_counts_beyond_2_to_the_53_are_of_their_difference(law):
    near = law.log_likelihood([3, -2], [0, 0])
    for far in (2**53, 2**60, 2**62 - 3, -(2**62) + 3):
        np.testing.assert_array_equal(law.log_likelihood([far + 3, far - 2], [far, far]), near)
    ends = law.log_likelihood([2**63 - 1, -(2**63)], [-(2**62), 2**62])
    assert (ends < -3e18).all()
