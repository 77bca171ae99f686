"""What a channel protects: its privacy levels on a graph of neighboring inputs.

Source: K. Chatzikokolakis, M. Andres, N. Bordenabe and C. Palamidessi (2013), Broadening the scope of differential
privacy using metrics, PETS.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.graphs._graph import GraphLike, IntArray
from quincunx.leakage import _checks
from quincunx.leakage._measures import Rows
from quincunx.leakage._parts import leakage_doc

if TYPE_CHECKING:
    from quincunx.privacy import PrivacyGuarantee, Relation


@leakage_doc
class Levels(Rows):
    """The methods of a `Channel` that tell what it protects."""

    __slots__ = ()

    def _edges(self, graph: GraphLike) -> IntArray:
        """Return the pairs of inputs that are neighbors on a graph."""
        return _checks.graph_on(graph, self.inputs).edges

    def likelihood_ratio(self, graph: GraphLike) -> float | Fraction:
        """Return the largest ratio of the probabilities of an output for two neighbors: e to the power `dp_epsilon`.

        {neighbors}

        Returns
        -------
        float, or Fraction for an exact channel
            At least 1; infinite where 0 faces more than 0.

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> from quincunx.leakage import Channel
        >>> Channel([["2/3", "1/3"], ["1/2", "1/2"]], exact=True).likelihood_ratio(path(2))
        Fraction(3, 2)
        """
        return self._entries.ratio(self._edges(graph))

    def dp_epsilon(self, graph: GraphLike, *, threads: int | None = None) -> float:
        """Return the least epsilon for which the channel is differentially private on a graph.

        The largest ``|ln C[h, k] - ln C[l, k]|`` over the edges ``{h, l}`` and outputs ``k``, in nats. Where both are 0
        nothing is counted, where one is 0 the level is infinite; 0 without edges.

        {neighbors}
        {level}

        Raises
        ------
        TypeError, ValueError
            If `graph` is no graph, or does not have one vertex for each input.

        Examples
        --------
        >>> from quincunx.graphs import complete
        >>> from quincunx.leakage import randomized_response
        >>> round(randomized_response(5, 0.5).dp_epsilon(complete(5)), 12)
        0.5
        """
        return self._entries.epsilon(self._edges(graph), threads)

    def dp_delta(self, graph: GraphLike, epsilon: float, *, threads: int | None = None) -> float:
        """Return the least delta for which the channel is (epsilon, delta)-private on a graph.

        {neighbors}
        epsilon : float
            In nats, >= 0.
        threads : int, optional
            By default all this process may use.

        Returns
        -------
        float
            Between 0 and 1.

        Raises
        ------
        ValueError
            If `epsilon` is negative, or `graph` does not have one vertex for each input.
        """
        return self._entries.delta(self._edges(graph), _checks.level(epsilon), threads)

    def renyi_dp(self, graph: GraphLike, alpha: float, *, threads: int | None = None) -> float:
        """Return the least level of Renyi differential privacy of an order on a graph.

        The largest Renyi divergence of order `alpha` between the rows of neighbors, in nats; Kullback-Leibler at
        ``alpha = 1``, `dp_epsilon` at infinity.

        {neighbors}
        alpha : float
            The order, >= 0; may be infinite.
        {level}

        Raises
        ------
        ValueError
            If `alpha` is negative, or `graph` does not have one vertex for each input.
        """
        return self._entries.renyi(self._edges(graph), _checks.level(alpha, "alpha"), threads)

    def metric_epsilon(self, metric: "npt.ArrayLike | GraphLike", *, threads: int | None = None) -> float:
        """Return the least epsilon with ``|ln C[h, k] - ln C[l, k]| <= epsilon d(h, l)`` for all pairs of inputs.

        Parameters
        ----------
        metric : array_like of float, shape (n_inputs, n_inputs), or a graph
            The distances: symmetric, >= 0, infinite where a pair does not count. For a graph its own distances, for
            which the level is `dp_epsilon`.
        {level}

        Raises
        ------
        ValueError
            If `metric` is not symmetric or has a negative entry; the message names the pair.

        Examples
        --------
        >>> from quincunx.leakage import geometric_channel
        >>> round(geometric_channel(3, 0.5).metric_epsilon([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), 12)
        0.5
        """
        _check.refuse_masked(metric, "metric")
        try:
            _check.fits(metric, "metric")
            distances = np.asarray(metric, dtype=np.float64)
            is_table = distances.ndim == 2 and not isinstance(metric, (tuple,))
        except OverflowError:
            raise ValueError("`metric` must hold numbers within the range of a double, got an int beyond it") from None
        except (TypeError, ValueError):
            is_table = False
        if not is_table:
            return self.dp_epsilon(metric, threads=threads)
        _checks.labels_in_order(metric, self.inputs, "metric", rows=True)
        n = len(self._entries.floats)
        if distances.shape != (n, n):
            raise ValueError(f"`metric` must have shape ({n}, {n}), got {distances.shape}")
        wrong = ~(distances >= 0) | (distances != distances.T)
        if wrong.any():
            u, v = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            found = f"{distances[u, v]} and {distances[v, u]} for the pair ({u}, {v})"
            raise ValueError(f"`metric` must be symmetric and at least 0, got {found}")
        return self._entries.metric_epsilon(metric, threads)  # type: ignore[arg-type]

    def guarantee(self, graph: GraphLike, relation: "Relation | None" = None) -> "PrivacyGuarantee":
        """Return the guarantee of the channel, in the form in which releases are composed.

        {neighbors}
        relation : ReplaceOne, AddRemove or DataMetric, optional
            What the edges stand for; `ReplaceOne` if left out, as on ``hamming(people, values)``.

        Returns
        -------
        PrivacyGuarantee
            With the level of the channel, rounded up.

        Raises
        ------
        ValueError
            If the level is infinite, or `graph` does not have one vertex for each input.

        Examples
        --------
        >>> from quincunx.graphs import complete
        >>> from quincunx.leakage import randomized_response
        >>> promise = randomized_response(3, 0.5).guarantee(complete(3))
        >>> 0.5 <= (2 * promise).epsilon / 2 < 0.5 + 1e-14
        True
        """
        from quincunx.privacy import PrivacyGuarantee, ReplaceOne

        epsilon = self._entries.promise(self._edges(graph))
        if epsilon == math.inf:
            raise ValueError("`graph` must join no input to one with other possible outputs, got an infinite level")
        return PrivacyGuarantee(epsilon, relation=ReplaceOne() if relation is None else relation, numerics="float64")
