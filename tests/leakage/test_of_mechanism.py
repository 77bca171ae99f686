"""Channels of mechanisms, of data frames and sparse arrays; their product as an operator, their picture and table."""

import itertools
from collections import Counter
from fractions import Fraction

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from quincunx import privacy
from quincunx.errors import TooLargeError
from quincunx.graphs import complete, path
from quincunx.leakage import Channel, geometric_channel, randomized_response
from quincunx.privacy._affine_hashes import support_counts

matplotlib.use("agg")


# Of mechanisms.


def test_randomized_responses_are_the_channels_of_their_names():
    for epsilon in (0.1, 1.0, 3.0):
        channel = Channel.from_mechanism(privacy.RandomizedResponse(epsilon))
        np.testing.assert_allclose(channel.matrix, randomized_response(2, epsilon).matrix, rtol=1e-12)
        channel = Channel.from_mechanism(privacy.GeneralizedRandomizedResponse(epsilon, 5))
        np.testing.assert_allclose(channel.matrix, randomized_response(5, epsilon).matrix, rtol=1e-12)


@pytest.mark.parametrize("mechanism", [privacy.RandomizedResponse(1.0), privacy.GeneralizedRandomizedResponse(0.3, 7)])
def test_the_exact_channel_is_that_of_the_draws_and_no_less_private(mechanism):
    channel = Channel.from_mechanism(mechanism, exact=True)
    assert all(sum(row) == 1 for row in channel.fractions)
    assert float(channel.fractions[0][0]) == pytest.approx(mechanism.keep_probability, rel=1e-15)
    assert channel.fractions[0][1].denominator <= 2**64 * channel.n_inputs
    assert channel.dp_epsilon(complete(channel.n_inputs)) <= mechanism.epsilon * (1 + 1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [
        privacy.RandomizedResponse(0.7),
        privacy.GeneralizedRandomizedResponse(0.7, 4),
        privacy.UnaryEncoding(0.7, 3),
        privacy.UnaryEncoding(0.7, 4, variant="symmetric"),
        privacy.MemoizedUnaryEncoding(0.7, 2.0, 3),
        privacy.SubsetSelection(0.7, 5, size=2),
        privacy.HadamardResponse(0.7, 3),
        privacy.GeometricMechanism(0.7, lower=-2, upper=4),
    ],
    ids=repr,
)
def test_rows_are_the_frequencies_of_releases_and_the_level_is_the_guarantees(mechanism):
    """20,000 releases of each input; a share is off by 5.5 deviations less than once in 10^7."""
    channel = Channel.from_mechanism(mechanism)
    assert channel.dp_epsilon(complete(channel.n_inputs)) == pytest.approx(mechanism.epsilon, rel=1e-9)
    n, place = 20_000, {output: y for y, output in enumerate(channel.outputs)}
    for row, x in zip(channel.matrix, channel.inputs, strict=True):
        drawn = mechanism.release(np.full(n, x), insecure_seed=5).values
        if isinstance(mechanism, privacy.GeometricMechanism):
            drawn = np.clip(drawn, mechanism.lower, mechanism.upper)
        keys = map(tuple, drawn.tolist()) if drawn.ndim > 1 else drawn.tolist()
        shares = np.bincount([place[key] for key in keys], minlength=len(row)) / n
        assert (np.abs(shares - row) <= 5.5 * np.sqrt(row * (1 - row) / n) + 5 / n).all()


@pytest.mark.parametrize("epsilon", [4.1, 8.0, 400.0, 800.0])
def test_levels_are_kept_where_chances_underflow(epsilon):
    noise = privacy.GeometricMechanism(epsilon, lower=0, upper=200, sensitivity=1)
    choice, scores = privacy.ExponentialMechanism(epsilon, 1.0), np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    # The level is that of the logarithms, or the channel is refused: a chance that is raised or lost changes it.
    inputs = np.arange(201)
    laws = [
        (lambda: Channel.from_mechanism(noise), noise.log_likelihood(inputs, inputs[:, None]), path(201)),
        (
            lambda: Channel.from_mechanism(choice, scores=30.0 * scores),
            choice.log_likelihood(np.arange(9)[None, :], 30.0 * scores[:, None, :]),
            path(9),
        ),
    ]
    for channel, logs, graph in laws:
        if logs.min() < -690:
            with pytest.raises(ValueError, match="`mechanism` must have chances of at least 1e-300"):
                channel()
        else:
            assert channel().dp_epsilon(graph) == pytest.approx(np.abs(np.diff(logs, axis=0)).max(), rel=1e-9)


def test_the_level_of_a_choice_among_large_scores_is_that_of_the_mechanism():
    for epsilon, size in ((1.0, 1000), (10.0, 100), (1.0, 1300)):
        channel = Channel.from_mechanism(privacy.ExponentialMechanism(epsilon, 1.0), scores=[[0, size], [1, size]])
        assert channel.dp_epsilon(path(2)) == pytest.approx(epsilon / 2, rel=1e-8)


@pytest.mark.parametrize("k", range(2, 7))
@pytest.mark.parametrize("prime", [7, 13, 31])
def test_supports_of_hash_functions_are_counted_as_by_listing_the_family(prime, k):
    for buckets in (2, 3, 4, 6, 9):
        found = Counter()
        for a, b in itertools.product(range(prime), repeat=2):
            hashes = [(a * i + b) % prime % buckets for i in range(k)]
            found.update(sum(1 << i for i in range(k) if hashes[i] == value) for value in range(buckets))
        assert support_counts(k, buckets, prime) == dict(sorted(found.items()))


@pytest.mark.parametrize("mechanism", [privacy.LocalHashing(0.7, 3), privacy.LocalHashing(2.0, 8)], ids=repr)
def test_local_hashing_is_the_exact_channel_of_what_its_reports_support(mechanism):
    k, law = mechanism.categories, mechanism.noise
    channel = Channel.from_mechanism(mechanism, exact=True)
    assert all(sum(row) == 1 for row in channel.fractions)
    assert channel.dp_epsilon(complete(k)) == pytest.approx(mechanism.epsilon, rel=1e-9)
    np.testing.assert_allclose(Channel.from_mechanism(mechanism).matrix, channel.matrix, rtol=1e-12)
    # That a report supports the truth, and another category, has the probabilities that estimates go by.
    sets = np.array(channel.outputs)
    for x in range(k):
        supported = [sum(p for p, bit in zip(channel.fractions[x], sets[:, y], strict=True) if bit) for y in range(k)]
        others = (1 - law.miss) * (1 - law.apart) + law.miss * law.apart / (law.buckets - 1)
        assert supported == [1 - law.miss if y == x else others for y in range(k)]
    # 20,000 releases of each input, as above.
    n, place = 20_000, {output: y for y, output in enumerate(channel.outputs)}
    for x, row in enumerate(channel.matrix):
        drawn = law.supports(mechanism.release(np.full(n, x), insecure_seed=5))
        shares = np.bincount([place[tuple(bits)] for bits in drawn.tolist()], minlength=len(row)) / n
        assert (np.abs(shares - row) <= 5.5 * np.sqrt(row * (1 - row) / n) + 5 / n).all()


def test_hashes_of_three_categories_meet_more_often_than_independent_ones():
    # 2 h(1) = h(0) + h(2) but for what passes the prime: pairs are uniform, triples are not.
    meet = support_counts(3, 4, 2**31 - 1)[0b111] / (2**31 - 1) ** 2
    assert meet == pytest.approx(1 / 8, abs=1e-6)


def test_geometric_noise_is_the_geometric_channel_of_its_range():
    channel = Channel.from_mechanism(privacy.GeometricMechanism(3.0, lower=10, upper=13))
    np.testing.assert_allclose(channel.matrix, geometric_channel(4, 1.0).matrix, rtol=1e-12)
    assert list(channel.inputs) == list(channel.outputs) == [10, 11, 12, 13]
    assert channel.dp_epsilon(path(4)) == pytest.approx(1.0)


def test_an_exponential_mechanism_has_the_scores_of_its_inputs():
    mechanism = privacy.ExponentialMechanism(1.0, sensitivity=1.0)
    scores = [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]
    channel = Channel.from_mechanism(mechanism, scores=scores, inputs=["a", "b"], outputs="xyz")
    weights = np.exp(np.asarray(scores) * 0.5)
    np.testing.assert_allclose(
        channel.matrix, weights / weights.sum(axis=1, keepdims=True), rtol=1e-6
    )  # scores are rounded
    assert channel.outputs == ("x", "y", "z")


@pytest.mark.parametrize(
    ("mechanism", "how", "error", "message"),
    [
        (
            privacy.LaplaceMechanism(1.0, lower=0.0, upper=1.0),
            {},
            TypeError,
            "`mechanism` must be a RandomizedResponse",
        ),
        (privacy.GaussianMechanism(1.0, 1e-6, sensitivity=1.0), {}, TypeError, "`mechanism` must be"),
        (1.0, {}, TypeError, "`mechanism` must be"),
        (privacy.GeometricMechanism(1.0, n=2), {}, ValueError, "`mechanism` must have bounds"),
        (privacy.UnaryEncoding(1.0, 17), {}, ValueError, "at most 16 categories"),
        (privacy.LocalHashing(1.0, 17), {}, ValueError, "at most 16 categories"),
        (privacy.LocalHashing(7.0, 16), {}, ValueError, "few values for so many categories, got 16 and 1098"),
        (privacy.UnaryEncoding(1.0, 3), {"exact": True}, ValueError, "`exact` must be False"),
        (privacy.RandomizedResponse(1.0), {"scores": [[1.0]]}, TypeError, "`scores` must be given for"),
        (privacy.ExponentialMechanism(1.0, sensitivity=1.0), {}, TypeError, "`scores` must be given for"),
        (privacy.ExponentialMechanism(1.0, sensitivity=1.0), {"scores": [1.0]}, ValueError, "`scores` must have shape"),
        (privacy.RandomizedResponse(1.0), {"inputs": [1]}, ValueError, "`inputs` must hold 2 names"),
        (privacy.GeometricMechanism(alpha=0.5, lower=0, upper=2**40), {}, TooLargeError, "the channel needs"),
        (privacy.GeneralizedRandomizedResponse(1.0, 2**24), {"exact": True}, TooLargeError, "the channel needs"),
        (privacy.HadamardResponse(1.0, 2**22), {}, TooLargeError, "the channel needs"),
    ],
)
def test_what_is_no_channel_is_refused(mechanism, how, error, message):
    with pytest.raises(error, match=message):
        Channel.from_mechanism(mechanism, **how)


# Of tables.


def test_a_data_frame_gives_its_names_and_gets_them_back():
    frame = pd.DataFrame([[0.75, 0.25], [0.5, 0.5]], index=["Ann", "Bob"], columns=["tea", "milk"])
    channel = Channel(frame)
    assert (channel.inputs, channel.outputs) == (("Ann", "Bob"), ("tea", "milk"))
    assert (channel.to_pandas().to_numpy() == frame.to_numpy()).all()
    assert channel.to_pandas().columns.tolist() == ["tea", "milk"]
    assert Channel(channel.to_pandas()) == channel
    assert Channel(Channel(np.eye(2)).to_pandas()) == Channel(np.eye(2)) == Channel(np.eye(2), inputs=range(2))
    assert Channel(frame, outputs=[1, 2]).outputs == (1, 2)
    text = frame.astype(str)
    exact = Channel(text, exact=True)
    assert exact.fractions[0] == (Fraction(3, 4), Fraction(1, 4))
    assert exact.to_pandas().loc["Ann", "tea"] == Fraction(3, 4)
    assert list(Channel(pd.DataFrame([[1.0]])).inputs) == [0]
    for half in ("1/2", Fraction(1, 2)):
        frame = pd.DataFrame([[half, half], [half, half]])
        assert Channel(frame, exact=True).fractions == ((Fraction(1, 2),) * 2,) * 2
        assert Channel.from_blocks([frame], exact=True).bayes_vulnerability() == Fraction(1, 2)


def test_a_sparse_array_is_a_channel():
    matrix = scipy.sparse.csr_array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    assert Channel(matrix) == Channel(matrix.toarray())


def test_channels_are_multiplied_and_nothing_else_is():
    first, second = randomized_response(3, 1.0), Channel([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], outputs="ab")
    assert first @ second == first.compose(second)
    assert (first @ second).outputs == ("a", "b")
    with pytest.raises(TypeError, match="unsupported operand"):
        first @ 3
    with pytest.raises(ValueError, match="`other` must have 2 inputs"):
        second @ first


def test_a_channel_shows_itself():
    channel = Channel([[0.75, 0.25], [0.5, 0.5]], inputs=[r"$\Ann$", "<Bob>"], outputs=["a", r"$\b$"])
    html = channel._repr_html_()
    assert r"2: $\Ann$, &lt;Bob&gt;" in html
    assert "min-capacity" in html
    ax = channel.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [r"$\Ann$", "<Bob>"]
    ax.figure.canvas.draw()
    assert np.asarray(ax.images[0].get_array()).tolist() == channel.matrix.tolist()
    assert geometric_channel(40, 0.5).plot(ax) is ax
    with pytest.raises(TypeError, match="`ax` must be a matplotlib axes, got ndarray"):
        channel.plot(np.ones(3))
