"""Channels in blocks of rows have the figures of the whole channel, whose kernels look at every pair of rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quincunx.graphs import complete
from quincunx.leakage import Channel, ChannelColumns


@st.composite
def weights(draw):
    """Rows of whole weights, none of them zero, and places where they are cut."""
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    one = st.lists(st.integers(0, 5), min_size=m, max_size=m).filter(any)
    rows = draw(st.lists(one, min_size=n, max_size=n))
    return rows, sorted(draw(st.sets(st.integers(1, max(n - 1, 1)), max_size=3)) & set(range(1, n)))


def blocks_of(rows, cuts):
    return [rows[i:j] for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@given(weights())
def test_figures_of_blocks_are_those_of_the_whole_channel(found):
    rows, cuts = found
    exact = [[Fraction(entry, sum(row)) for entry in row] for row in rows]
    floats = [[float(entry) for entry in row] for row in exact]
    for matrix, kept in ((exact, True), (floats, False)):
        whole = Channel(matrix, exact=kept)
        columns = Channel.from_blocks(blocks_of(matrix, cuts), exact=kept)
        assert columns == ChannelColumns._of(whole._entries)
        assert columns.is_exact is kept
        assert columns.min_capacity() == whole.min_capacity()
        assert columns.bayes_vulnerability() == whole.bayes_vulnerability()
        assert columns.guesses.tolist() == [list(column).index(max(column)) for column in zip(*matrix, strict=True)]
        graph = complete(len(rows))
        if len(rows) > 1:
            assert columns.likelihood_ratio() == whole.likelihood_ratio(graph)
            assert columns.dp_epsilon() == whole.dp_epsilon(graph)


@given(weights(), weights(), weights())
def test_blocks_are_added_in_any_association(first, second, third):
    width = min(len(rows[0]) for rows, _ in (first, second, third))

    def columns(rows):
        total = [width + sum(row[:width]) for row in rows]
        matrix = [[Fraction(1 + entry, all_) for entry in row[:width]] for row, all_ in zip(rows, total, strict=True)]
        return ChannelColumns._of(Channel(matrix, exact=True)._entries)

    a, b, c = (columns(rows) for rows, _ in (first, second, third))
    assert (a + b) + c == a + (b + c)
    assert (a + b).min_capacity() == (b + a).min_capacity()


def test_blocks_that_are_no_channel_are_refused():
    with pytest.raises(ValueError, match="at least one block"):
        Channel.from_blocks([])
    with pytest.raises(ValueError, match="2 columns of floats, got 3 of floats"):
        Channel.from_blocks([[[0.5, 0.5]], [[0.5, 0.25, 0.25]]])
    with pytest.raises(ValueError, match="2 columns of fractions, got 2 of floats"):
        ChannelColumns._of(Channel([[1, 0]], exact=True)._entries) + ChannelColumns._of(Channel([[0.5, 0.5]])._entries)
    with pytest.raises(ValueError, match="row"):
        Channel.from_blocks([[[0.5, 0.25]]])
    with pytest.raises(TypeError, match="`blocks` must be an iterable"):
        Channel.from_blocks(3)
    with pytest.raises(TypeError):
        Channel.from_blocks([[[1, 0]], [[1, 0]]]) + 1


def test_blocks_whose_columns_have_other_names_are_refused():
    pandas = pytest.importorskip("pandas")
    first = pandas.DataFrame([[0.9, 0.1]], columns=["x", "y"])
    for later in (pandas.DataFrame([[0.1, 0.9]], columns=["y", "x"]), Channel([[0.1, 0.9]], outputs="yx")):
        with pytest.raises(ValueError, match="`blocks` must have the same outputs, got 'y' for 'x' at index 0"):
            Channel.from_blocks([first, [[0.5, 0.5]], later])
    assert Channel.from_blocks([first, first[["x", "y"]], [[0.5, 0.5]]]).dp_epsilon() == np.log(5)


def test_a_hundred_thousand_rows_pass_in_blocks():
    """The sums of column maxima are known: rows are the shifts of one row."""
    row = np.array([4.0, 2.0, 1.0, 1.0]) / 8
    block = np.stack([np.roll(row, k % 4) for k in range(1000)])
    columns = Channel.from_blocks(block for _ in range(100))
    assert columns.n_inputs == 100_000
    assert columns.min_capacity() == 1.0  # log2(4 * 1/2)
    assert columns.likelihood_ratio() == pytest.approx(4, rel=1e-14)
