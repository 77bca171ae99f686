"""Arguments of a wrong kind: an error that names the argument, and not one of a library below."""

import pickle

import numpy as np
import pytest

from quincunx import counting, graphs, lattices, leakage

HUGE = 10**5000
REFUSED = {
    "no path": (lambda: leakage.read_channel(None), TypeError, "`path` must be a file or lines"),
    "a number as a path": (lambda: leakage.read_channel(5), TypeError, "`path` must be a file or lines"),
    "lines of bytes": (lambda: leakage.read_channel([b"1, 0"]), TypeError, "line 1: must be text, got bytes"),
    "lines that are numbers": (lambda: leakage.read_channel([1.0]), TypeError, "line 1: must be text, got float"),
    "axes of a plot": (
        lambda: leakage.plot_utility(graphs.cycle(5), [1.0], ax=5),
        TypeError,
        "`ax` must be",
    ),
    "axes of a drawing": (lambda: lattices.draw(lattices.square(3, 3), ax="x"), TypeError, "`ax` must be"),
    "two axes": (
        lambda: leakage.plot_symmetrization(leakage.geometric_channel(5, 0.5).symmetrize(graphs.path(5)), ax=[1, 2]),
        TypeError,
        "`ax` must be",
    ),
    "a level beyond doubles": (lambda: leakage.randomized_response(5, HUGE), ValueError, "`epsilon` must be within"),
    "levels beyond doubles": (lambda: leakage.plot_utility(graphs.cycle(5), HUGE), ValueError, "`epsilons` must be"),
    "a list with such": (lambda: leakage.plot_utility(graphs.cycle(5), [1.0, HUGE]), ValueError, "`epsilons` must be"),
    "distances beyond doubles": (
        lambda: leakage.randomized_response(2, 1.0).metric_epsilon([[0, HUGE], [HUGE, 0]]),
        ValueError,
        "`metric` must hold numbers within the range of a double",
    ),
    "a list as a flag": (
        lambda: lattices.square(3, 3, "torus", multigraph=[1, 2]),
        TypeError,
        "`multigraph` must be True or False, got list",
    ),
    "an array as a flag": (
        lambda: lattices.square(3, 3, "torus", multigraph=np.array([1, 2])),
        TypeError,
        "`multigraph` must be True or False, got ndarray",
    ),
    "a word as a flag of a drawing": (
        lambda: lattices.draw(lattices.square(2, 2), labels="no"),
        TypeError,
        "`labels` must be True or False, got 'no'",
    ),
    "a table without end": (lambda: counting.independent_set_table(size=2**70), ValueError, "`size` must be between"),
    "primes without end": (lambda: counting.primes(2**63), ValueError, "`count` must be a number of primes that exist"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_kind_is_named(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "best",
    [
        leakage.optimal_mechanism(graphs.cycle(5), 1.0),
        leakage.optimal_mechanism(graphs.hamming(2, 3), 1.0),
        leakage.optimal_mechanism(graphs.path(5), 1.0),
        leakage.optimal_mechanism((6, [(0, 1), (1, 2), (1, 4), (1, 5), (2, 3)]), 0.7),
        leakage.optimal_mechanism(graphs.hamming(2, 3), 1.0, method="linear program"),
        leakage.optimal_mechanism(graphs.path(3), 0.0),
    ],
    ids=lambda best: best.method,
)
def test_optimal_mechanisms_survive_pickling(best):
    found = pickle.loads(pickle.dumps(best))
    assert (found.utility, found.dual_bound, found.method) == (best.utility, best.dual_bound, best.method)
    assert np.array_equal(found.channel.matrix, best.channel.matrix)
    again = pickle.loads(pickle.dumps(best))  # with the channel made
    assert np.array_equal(again.channel.matrix, best.channel.matrix)
