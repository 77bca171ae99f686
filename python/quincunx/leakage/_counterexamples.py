"""Published statements about averaging and bounds that are false, each with a smallest graph on which it fails."""

from dataclasses import dataclass
from fractions import Fraction

from quincunx.graphs import Graph, complete, path
from quincunx.leakage._channel import Channel
from quincunx.leakage._symmetrization import Symmetrization


@dataclass(frozen=True)
class Counterexample:
    """A statement, and a channel on a graph for which it is false.

    Attributes
    ----------
    claim : str
        What was claimed.
    graph : Graph
        A smallest connected graph on which it fails.
    channel : Channel
        The channel, exact.
    finding : str
        What is found instead, with exact numbers.
    """

    claim: str
    graph: Graph
    channel: Channel
    finding: str

    def __str__(self) -> str:
        rows = ["(" + ", ".join(map(str, row)) + ")" for row in self.channel.fractions or ()]
        channel = f"{' '.join(rows)} on {self.graph.num_vertices} vertices"
        return f"claim:   {self.claim}\nchannel: {channel}\nfinding: {self.finding}"


def counterexamples() -> tuple[Counterexample, ...]:
    """Return counterexamples to statements in the literature, worked out in fractions as they are asked for.

    Lemma 5.3.2 says of every graph that averaging over its automorphisms makes the diagonal constant and equal to the
    maxima of the columns, and keeps the min-entropy leakage; theorem 5.3.3 bounds the utility of a private answer by
    ``1 / (1 + c sum_d q**d)`` for any vertex, where ``c`` is the size of the smallest sphere around it. They hold under
    hypotheses that are not stated there: `Channel.symmetrize` reports which of them a channel and a group fulfil, and
    `utility_bound` gives a bound for all graphs.

    Returns
    -------
    tuple of Counterexample
        With attributes `claim`, `graph`, `channel` and `finding`; prints as three lines.

    Raises
    ------
    quincunx.errors.InternalError
        If the compiled module contradicts itself, which is a bug.

    Examples
    --------
    >>> from quincunx.leakage import counterexamples
    >>> print(counterexamples()[0])  # doctest: +NORMALIZE_WHITESPACE
    claim:   averaging over the automorphisms makes the diagonal constant (lemma 5.3.2, claim 2)
    channel: (2/3, 1/6, 1/6) (1/3, 1/3, 1/3) (1/6, 1/6, 2/3) on 3 vertices
    finding: e^epsilon = 2; averaged, the diagonal is 2/3, 1/3, 2/3. No private channel of this leakage has a constant
    one: it would be 5/9, the middle allows 1/2
    """
    return (
        _constant_diagonal(),
        _column_maximum(),
        _other_priors(),
        _capacity(),
        _vertex_bound(),
        _uniform_prior(),
        _one_constant(),
    )


def _exact(*rows: str) -> Channel:
    return Channel([row.split() for row in rows], exact=True)


def _best_on_path() -> Channel:
    return _exact("2/3 1/6 1/6", "1/3 1/3 1/3", "1/6 1/6 2/3")


def _diagonal(channel: Channel) -> str:
    return ", ".join(str(row[x]) for x, row in enumerate(channel.fractions or ()))


def _distance_sums(graph: Graph, q: Fraction) -> list[Fraction]:
    """Return r_a = sum_k q^d(a, k) for each vertex: 1 + c sum_d q^d where the spheres around it have one size."""
    from quincunx.graphs import distances

    return [sum((q**d for d in row), Fraction(0)) for row in distances(graph).tolist()]


def _constant_diagonal() -> Counterexample:
    graph, channel = path(3), _best_on_path()
    averaged = channel.symmetrize(graph)
    assert averaged.trace is not None
    wanted, middle = Fraction(averaged.trace) / 3, _distance_sums(graph, Fraction(1, 2))[1]
    return Counterexample(
        "averaging over the automorphisms makes the diagonal constant (lemma 5.3.2, claim 2)",
        graph,
        channel,
        f"e^epsilon = {channel.likelihood_ratio(graph)}; averaged, the diagonal is {_diagonal(averaged.channel)}. No "
        f"private channel of this leakage has a constant one: it would be {wanted}, the middle allows {1 / middle}",
    )


def _column_maximum() -> Counterexample:
    graph, channel = complete(2), _exact("3/4 1/4", "1/2 1/2")
    averaged = channel.symmetrize(graph)
    maxima = ", ".join(str(max(column)) for column in zip(*(channel.fractions or ()), strict=True))
    return Counterexample(
        "averaged, a diagonal entry is the maximum of its column of the original (lemma 5.3.2, claim 3)",
        graph,
        channel,
        f"the diagonal becomes {_diagonal(averaged.channel)}, the maxima were {maxima}",
    )


def _moves(averaged: Symmetrization) -> str:
    return f"{averaged.vulnerability_before} to {averaged.vulnerability_after}"


def _other_priors() -> Counterexample:
    graph, channel = complete(2), _exact("3/4 1/4", "1/2 1/2")
    down = channel.symmetrize(graph, prior=["3/5", "2/5"])
    up = channel.symmetrize(graph, prior=["2/5", "3/5"])
    return Counterexample(
        "averaging keeps the min-entropy leakage (lemma 5.3.2, claim 4) for every prior",
        graph,
        channel,
        f"the vulnerability goes from {_moves(down)} for the prior (3/5, 2/5) and from {_moves(up)} for (2/5, 3/5)",
    )


def _capacity() -> Counterexample:
    graph, channel = complete(3), _exact("0 1 0", "0 1 0", "1 0 0")
    averaged = channel.symmetrize(graph)
    return Counterexample(
        "averaging keeps the min-capacity wherever the maxima of the columns are",
        graph,
        channel,
        f"for the uniform prior the vulnerability goes from {_moves(averaged)}",
    )


def _vertex_bound() -> Counterexample:
    graph, channel = path(3), _best_on_path()
    bound = 1 / _distance_sums(graph, Fraction(1, 2))[1]
    return Counterexample(
        "the utility is at most 1 / (1 + c sum_d q^d), c the smallest sphere around any vertex (theorem 5.3.3)",
        graph,
        channel,
        f"e^epsilon = {channel.likelihood_ratio(graph)}, the middle gives the bound {bound}, "
        f"and this channel has the utility {channel.bayes_vulnerability()}",
    )


def _uniform_prior() -> Counterexample:
    graph, channel = complete(2), _exact("1 0", "1 0")
    bound = 1 / _distance_sums(graph, Fraction(1, 2))[0]
    utility = channel.bayes_vulnerability(["9/10", "1/10"])
    return Counterexample(
        "that bound holds whatever the prior (theorem 5.3.3)",
        graph,
        channel,
        f"with the prior (9/10, 1/10) this constant answer has the utility {utility}, and "
        f"e^epsilon = 2 gives the bound {bound}",
    )


def _one_constant() -> Counterexample:
    graph = path(3)
    sums = ", ".join(map(str, _distance_sums(graph, Fraction(1, 2))))
    return Counterexample(
        "the best mechanism is b exp(-epsilon d(h, k)) with one constant b",
        graph,
        _best_on_path(),
        f"at e^epsilon = 2 the rows of exp(-epsilon d) sum to {sums}, so no constant makes it a channel; "
        "the best one, this, has a weight of its own for each column",
    )
