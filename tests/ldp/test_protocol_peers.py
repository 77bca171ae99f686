"""Local protocols beside pure-ldp and multi-freq-ldpy, where these are installed: chances, variances, estimates."""

import math

import numpy as np
import pytest

from quincunx.ldp import estimate_frequencies
from quincunx.privacy import HadamardResponse, LocalHashing, SubsetSelection, UnaryEncoding

X = np.repeat(np.arange(6), [900, 500, 300, 200, 100, 0])
EPSILONS = [0.5, 1.0, 2.0, 3.5]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_unary_encodings_and_thresholds_have_the_probabilities_of_pure_ldp(epsilon):
    unary = pytest.importorskip("pure_ldp.frequency_oracles.unary_encoding")
    for variant, optimal in (("optimal", True), ("symmetric", False)):
        server, mechanism = unary.UEServer(epsilon, 6, use_oue=optimal), UnaryEncoding(epsilon, 6, variant)
        assert (server.p, server.q) == pytest.approx((mechanism.one_probability, mechanism.zero_probability), rel=1e-12)
    histogram = pytest.importorskip("pure_ldp.frequency_oracles.histogram_encoding")
    server = histogram.HEServer(epsilon, 6, use_the=True)
    assert UnaryEncoding(epsilon, 6, "threshold").threshold == pytest.approx(server.theta, abs=2e-4)  # four digits
    mechanism = UnaryEncoding(epsilon, 6, "threshold", threshold=server.theta)
    assert (server.p, server.q) == pytest.approx((mechanism.one_probability, mechanism.zero_probability), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_local_hashing_estimates_as_pure_ldp_does(epsilon):
    hashing = pytest.importorskip("pure_ldp.frequency_oracles.local_hashing")
    server, mechanism = hashing.LHServer(epsilon, 6, use_olh=True), LocalHashing(epsilon, 6)
    assert (server.g, server.p) == (mechanism.buckets, pytest.approx(mechanism.one_probability, rel=1e-12))
    release = mechanism.release(X, insecure_seed=1)
    server.aggregated_data, server.n = mechanism.noise.supports(release).sum(axis=0), len(X)
    # Their q is 1 / g, ours that of the hash functions: 1 / g but for 2^-31.
    assert server._update_estimates() / len(X) == pytest.approx(mechanism.estimate(release), abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_hadamard_responses_are_decoded_as_by_pure_ldp(epsilon):
    module = pytest.importorskip("pure_ldp.frequency_oracles.hadamard_response.internal.k2k_hadamard")
    mechanism = HadamardResponse(epsilon, 6, blocks=1)
    release = mechanism.release(X, insecure_seed=1)
    theirs = module.Hadamard_Rand_high_priv(6, epsilon, encode_acc=0)
    found = theirs.decode_string(release.values.tolist(), normalization=-1, iffast=0)
    assert mechanism.estimate(release) == pytest.approx(np.asarray(found), abs=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_subsets_are_estimated_as_by_multi_freq_ldpy(epsilon):
    module = pytest.importorskip("multi_freq_ldpy.pure_frequency_oracles.SS")
    from multi_freq_ldpy.pure_frequency_oracles.Variance_PURE import VAR_Pure

    size = int(max(1, np.rint(6 / (math.exp(epsilon) + 1))))
    mechanism = SubsetSelection(epsilon, 6, size)
    release = mechanism.release(X, insecure_seed=1)
    reports = [np.flatnonzero(row) for row in release.values]
    theirs = module.SS_Aggregator_MI(reports, 6, epsilon)  # which sets what is negative to 0 and multiplies
    assert estimate_frequencies(release, "norm-mul") == pytest.approx(theirs, abs=1e-12)
    shares = np.bincount(X, minlength=6) / len(X)
    for other in (mechanism, LocalHashing(epsilon, 6), HadamardResponse(epsilon, 6, blocks=1)):
        p, q = other.one_probability, other.zero_probability
        # Theirs is of the noise alone, ours with the draw of the users too.
        found = [VAR_Pure(p, q, len(X), share) + share * (1 - share) / len(X) for share in shares]
        assert other.noise.variances(shares, len(X)) == pytest.approx(found, rel=1e-9)
