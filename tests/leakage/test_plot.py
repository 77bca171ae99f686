"""Pictures hold what they should show."""

import numpy as np
import pytest

from quincunx.graphs import AutomorphismGroup, path
from quincunx.leakage import Channel, geometric_channel, plot_symmetrization, plot_utility, utility_bound

pytest.importorskip("matplotlib").use("agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


def test_orbits_are_marked_and_inputs_sorted_by_them():
    result = geometric_channel(5, 0.4).symmetrize(path(5))
    axes = plot_symmetrization(result)
    order = [0, 4, 1, 3, 2]
    np.testing.assert_array_equal(axes[1].images[0].get_array(), result.channel.matrix[np.ix_(order, order)])
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [str(x) for x in order]
    assert sorted({line.get_ydata()[0] for line in axes[0].lines} - {0, 1}) == [1.5, 3.5]


def test_axes_may_be_given_and_must_be_two():
    _, axes = pyplot.subplots(2, 1)
    swap = AutomorphismGroup.from_generators(2, [[1, 0]])
    wide = Channel([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]).symmetrize(swap, output_action=[[2, 1, 0]])
    assert plot_symmetrization(wide, axes)[0] is axes[0]
    with pytest.raises(ValueError, match="`ax` must be two axes, got 1"):
        plot_symmetrization(wide, axes[:1])


def test_utility_lies_below_its_bound():
    levels = [0.2, 1.0, 3.0]
    ax = plot_utility(path(5), levels)
    best, bound = (line.get_ydata() for line in ax.lines)
    assert (np.asarray(best) <= np.asarray(bound) + 1e-12).all()
    np.testing.assert_allclose(bound, [utility_bound(path(5), level) for level in levels])
    assert [line.get_label() for line in plot_utility(path(3), [1.0], [0.2, 0.3, 0.5]).lines] == [
        "best utility for the prior"
    ]
