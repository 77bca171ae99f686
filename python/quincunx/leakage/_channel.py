"""Channels: what an observer of the output learns about the input."""

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx.errors import ConvergenceWarning
from quincunx.graphs import AutomorphismGroup
from quincunx.graphs._graph import GraphLike
from quincunx.leakage import _checks
from quincunx.leakage._checks import Exact, FloatArray

if TYPE_CHECKING:
    from quincunx.leakage._symmetrization import Symmetrization
    from quincunx.privacy import PrivacyGuarantee, Relation

#: Steps after which the capacity is given as far as it is known.
_MOST_STEPS = 20_000


class CapacityResult(NamedTuple):
    """An interval that holds a Shannon capacity, in bits, with the input distribution that reaches its lower end."""

    lower: float
    upper: float
    prior: FloatArray
    iterations: int


class Channel:
    """A channel: the probability ``C[x, y] = P(y | x)`` of each output for each input.

    The rows are the inputs (the secrets), the columns the outputs (what is seen). A channel cannot be changed. With
    ``exact=True`` its entries are fractions, and every result that is a rational number is a `Fraction`.

    Parameters
    ----------
    matrix : array_like, shape (n_inputs, n_outputs)
        Entries of at least 0; each row sums to 1. Copied. Ints, Fractions or strings such as ``"1/3"`` if `exact`.
    inputs, outputs : sequence of hashable, optional
        Names of the rows and columns; ``0, 1, ...`` if left out.
    atol : float
        How far a row may be from summing to 1. Entries are used as they are given.
    normalize : bool
        Divide each row by its sum, and take entries between ``-atol`` and 0 for 0.
    exact : bool
        Keep fractions; rows have to sum to 1 exactly.

    Attributes
    ----------
    matrix : ndarray of float64, shape (n_inputs, n_outputs)
        The entries, read-only.
    fractions : tuple of tuples of Fraction, or None
        The exact entries of an exact channel.

    Raises
    ------
    TypeError
        If `matrix` does not hold numbers of the right kind.
    ValueError
        If an entry is negative, infinite or NaN, or a row does not sum to 1; the message names the first.

    Notes
    -----
    Entropies and leakages are in bits, privacy levels in nats. A `prior` of None is uniform. `graph` is anything that
    functions of `quincunx.graphs` take, with one vertex for each input.

    References
    ----------
    .. [1] G. Smith (2009), On the foundations of quantitative information flow, FOSSACS.
    .. [2] M. Alvim, K. Chatzikokolakis, A. McIver, C. Morgan, C. Palamidessi and G. Smith (2020), The Science of
       Quantitative Information Flow, Springer.

    Examples
    --------
    >>> from quincunx.leakage import Channel
    >>> channel = Channel([[0.75, 0.25], [0.5, 0.5]])
    >>> channel.bayes_vulnerability()
    0.625
    >>> channel.bayes_vulnerability([0.25, 0.75])
    0.75
    >>> Channel([["3/4", "1/4"], ["1/2", "1/2"]], exact=True).bayes_vulnerability()
    Fraction(5, 8)
    """

    __slots__ = ("_fractions", "_inputs", "_matrix", "_outputs")

    _matrix: FloatArray
    _fractions: Exact | None
    _inputs: tuple[Hashable, ...] | None
    _outputs: tuple[Hashable, ...] | None

    def __init__(
        self,
        matrix: Any,
        *,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        atol: float = 1e-9,
        normalize: bool = False,
        exact: bool = False,
    ) -> None:
        atol = _check.real(atol, "atol")
        if not atol >= 0:
            raise ValueError(f"`atol` must be at least 0, got {atol}")
        if exact:
            self._fill_exact(_checks.stochastic_exact(matrix))
        else:
            self._matrix, self._fractions = _checks.stochastic(matrix, atol, normalize), None
        self._inputs = _names(inputs, self.n_inputs, "inputs")
        self._outputs = _names(outputs, self.n_outputs, "outputs")

    def _fill_exact(self, fractions: Exact) -> None:
        self._fractions = fractions
        self._matrix = np.array([[float(entry) for entry in row] for row in fractions])
        self._matrix.setflags(write=False)

    @classmethod
    def _trusted(
        cls,
        matrix: FloatArray | None,
        fractions: Exact | None = None,
        inputs: tuple[Hashable, ...] | None = None,
        outputs: tuple[Hashable, ...] | None = None,
    ) -> "Channel":
        """Take over entries that are known to be right."""
        channel = cls.__new__(cls)
        if fractions is not None:
            channel._fill_exact(fractions)
        else:
            assert matrix is not None
            channel._matrix, channel._fractions = matrix.view(), None
            channel._matrix.setflags(write=False)
        channel._inputs, channel._outputs = inputs, outputs
        return channel

    @property
    def matrix(self) -> FloatArray:
        """The entries as floats, read-only."""
        return self._matrix

    @property
    def fractions(self) -> Exact | None:
        """The exact entries; None unless the channel is exact."""
        return self._fractions

    @property
    def is_exact(self) -> bool:
        """Whether the entries are fractions."""
        return self._fractions is not None

    @property
    def n_inputs(self) -> int:
        """Number of rows."""
        return int(self._matrix.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return int(self._matrix.shape[1])

    @property
    def inputs(self) -> Sequence[Hashable]:
        """Names of the rows."""
        return range(self.n_inputs) if self._inputs is None else self._inputs

    @property
    def outputs(self) -> Sequence[Hashable]:
        """Names of the columns."""
        return range(self.n_outputs) if self._outputs is None else self._outputs

    # ---- combination

    def compose(self, other: "Channel") -> "Channel":
        """Return the channel that puts each output into another channel.

        Parameters
        ----------
        other : Channel
            With as many inputs as this one has outputs.

        Returns
        -------
        Channel
            Exact if both are.

        Raises
        ------
        ValueError
            If the sizes do not fit.

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> twice = randomized_response(2, 1.0).compose(randomized_response(2, 1.0))
        >>> round(twice.dp_epsilon((2, [(0, 1)])), 6)
        0.433781
        """
        _channel(other, "other")
        if other.n_inputs != self.n_outputs:
            raise ValueError(f"`other` must have {self.n_outputs} inputs, got {other.n_inputs}")
        if self._fractions is not None and other._fractions is not None:
            columns = list(zip(*other._fractions, strict=True))
            product = tuple(tuple(_dot(row, column) for column in columns) for row in self._fractions)
            return Channel._trusted(None, product, self._inputs, other._outputs)
        return Channel._trusted(self._matrix @ other._matrix, None, self._inputs, other._outputs)

    def kron(self, other: "Channel") -> "Channel":
        """Return the channel that runs two channels side by side, independently.

        Input ``(x, x')`` is row ``x * other.n_inputs + x'``; outputs likewise.

        Parameters
        ----------
        other : Channel

        Returns
        -------
        Channel
            Exact if both are.

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> pair = randomized_response(2, 1.0).kron(randomized_response(3, 1.0))
        >>> pair.n_inputs, pair.n_outputs
        (6, 6)
        """
        _channel(other, "other")
        if self._fractions is not None and other._fractions is not None:
            rows = tuple(
                tuple(a * b for a in left for b in right) for left in self._fractions for right in other._fractions
            )
            return Channel._trusted(None, rows)
        return Channel._trusted(np.kron(self._matrix, other._matrix).astype(np.float64, copy=False))

    def posterior(self, prior: npt.ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the distribution of the outputs, and of the input given each output.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        outer : ndarray of float64, shape (n_outputs,)
        inners : ndarray of float64, shape (n_outputs, n_inputs)
            Row ``y`` is the distribution of the input given ``y``; zeros if ``y`` never occurs.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> outer, inners = Channel([[1.0, 0.0], [0.5, 0.5]]).posterior()
        >>> outer.tolist(), inners[1].tolist()
        ([0.75, 0.25], [0.0, 1.0])
        """
        joint = (_checks.prior(prior, self.n_inputs)[:, None] * self._matrix).T
        outer = joint.sum(axis=1)
        inners = np.zeros_like(joint)
        np.divide(joint, outer[:, None], out=inners, where=outer[:, None] > 0)
        return outer, inners

    def map_remap(self, prior: npt.ArrayLike | None = None) -> "Channel":
        """Return the channel whose output is the best guess of the input.

        Each output is replaced by the input that is most probable given it (the first of several): then the largest
        ``prior[x] C[x, k]`` of each column ``k`` is on the diagonal, the Bayes vulnerability is the same and no privacy
        level is worse.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        Channel
            With ``n_inputs`` outputs.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> Channel([[0.1, 0.9], [0.7, 0.3]]).map_remap().matrix.tolist()
        [[0.9, 0.1], [0.3, 0.7]]
        """
        if self._fractions is not None and (exact := _checks.prior_exact(prior, self.n_inputs)) is not None:
            guesses = [
                _best([p * row[y] for p, row in zip(exact, self._fractions, strict=True)])
                for y in range(self.n_outputs)
            ]
            merged = tuple(
                tuple(
                    sum((row[y] for y, guess in enumerate(guesses) if guess == x), Fraction(0))
                    for x in range(self.n_inputs)
                )
                for row in self._fractions
            )
            return Channel._trusted(None, merged, self._inputs, self._inputs)
        guesses = _core.column_maxima(self._matrix, _checks.prior(prior, self.n_inputs))[1].tolist()
        remapped = np.zeros((self.n_inputs, self.n_inputs))
        for y, guess in enumerate(guesses):
            remapped[:, guess] += self._matrix[:, y]
        return Channel._trusted(remapped, None, self._inputs, self._inputs)

    # ---- vulnerability and leakage

    def bayes_vulnerability(self, prior: npt.ArrayLike | None = None) -> float | Fraction:
        """Return the chance that the best guess of the input is right once the output is seen.

        ``sum_y max_x prior[x] C[x, y]``.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float, or Fraction for an exact channel and prior

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> round(randomized_response(3, 0.0).bayes_vulnerability([0.5, 0.25, 0.25]), 12)
        0.5
        """
        if self._fractions is not None and (exact := _checks.prior_exact(prior, self.n_inputs)) is not None:
            columns = zip(*self._fractions, strict=True)
            return sum((max(p * c for p, c in zip(exact, column, strict=True)) for column in columns), Fraction(0))
        weights = _checks.prior(prior, self.n_inputs)
        return math.fsum(_core.column_maxima(self._matrix, weights)[0])

    def conditional_min_entropy(self, prior: npt.ArrayLike | None = None) -> float:
        """Return the min-entropy of the input given the output, ``-log2(bayes_vulnerability(prior))``.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float
            In bits.
        """
        return -_log2(self.bayes_vulnerability(prior)) + 0.0

    def min_entropy_leakage(self, prior: npt.ArrayLike | None = None) -> float:
        """Return by how much the output lowers the min-entropy of the input.

        ``log2(bayes_vulnerability(prior) / max(prior))``.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float
            In bits, between 0 and `min_capacity`.
        """
        return max(_log2(self.bayes_vulnerability(prior)) - _log2(self._prior_vulnerability(prior)), 0.0)

    def additive_leakage(self, prior: npt.ArrayLike | None = None) -> float | Fraction:
        """Return by how much the output raises the chance of a right guess.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float, or Fraction for an exact channel and prior
        """
        return max(
            self.bayes_vulnerability(prior) - self._prior_vulnerability(prior), 0 * self.bayes_vulnerability(prior)
        )

    def _prior_vulnerability(self, prior: npt.ArrayLike | None) -> float | Fraction:
        exact = _checks.prior_exact(prior, self.n_inputs) if self.is_exact else None
        return max(exact) if exact is not None else float(max(_checks.prior(prior, self.n_inputs)))

    def min_capacity(self) -> float:
        """Return the largest min-entropy leakage over all priors; the uniform one reaches it.

        ``log2(sum_y max_x C[x, y])``.

        Returns
        -------
        float
            In bits, between 0 and ``log2(min(n_inputs, n_outputs))``.

        Examples
        --------
        >>> import math
        >>> from quincunx.leakage import randomized_response
        >>> round(randomized_response(4, math.log(2)).min_capacity(), 12)
        0.678071905113
        """
        return max(_log2(self._column_maxima_sum()), 0.0)

    def _column_maxima_sum(self) -> float | Fraction:
        if self._fractions is not None:
            return sum((max(column) for column in zip(*self._fractions, strict=True)), Fraction(0))
        return math.fsum(_core.column_maxima(self._matrix, None)[0])

    def g_vulnerability(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> float:
        """Return the expected gain of the best guess once the output is seen.

        ``sum_y max_w sum_x prior[x] C[x, y] gain[w, x]``.

        Parameters
        ----------
        gain : array_like of float, shape (guesses, n_inputs)
            What guess ``w`` is worth if the input is ``x``, >= 0.
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.leakage import Channel
        >>> Channel([[0.75, 0.25], [0.5, 0.5]]).g_vulnerability(np.eye(2))
        0.625
        """
        values = _checks.gain(gain, self.n_inputs)
        weighted = values * _checks.prior(prior, self.n_inputs)
        return math.fsum((weighted @ self._matrix).max(axis=0))

    def g_leakage(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> float:
        """Return the logarithm of the factor by which the output raises the expected gain.

        Parameters
        ----------
        gain : array_like of float, shape (guesses, n_inputs)
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float
            In bits, between 0 and `min_capacity` whatever the gain; 0 if nothing can be gained at all.
        """
        values = _checks.gain(gain, self.n_inputs)
        before = float((values @ _checks.prior(prior, self.n_inputs)).max())
        return max(math.log2(self.g_vulnerability(values, prior) / before), 0.0) if before > 0 else 0.0

    def mutual_information(self, prior: npt.ArrayLike | None = None) -> float:
        """Return the mutual information of input and output, in bits.

        Parameters
        ----------
        prior : array_like of float, shape (n_inputs,), optional

        Returns
        -------
        float

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> round(Channel([[0.89, 0.11], [0.11, 0.89]]).mutual_information(), 12)
        0.500084041835
        """
        return _core.mutual_information(self._matrix, _checks.prior(prior, self.n_inputs))

    def shannon_capacity(self, tol: float = 1e-9) -> CapacityResult:
        """Return an interval that holds the largest mutual information over all priors.

        Parameters
        ----------
        tol : float
            Width of the interval in bits, > 0.

        Returns
        -------
        CapacityResult
            ``(lower, upper, prior, iterations)``; `prior` reaches the lower end.

        Raises
        ------
        ValueError
            If `tol` is not positive.

        Warns
        -----
        ConvergenceWarning
            If the interval is still wider than `tol` after 20,000 steps. It holds the capacity all the same.

        Notes
        -----
        Blahut-Arimoto with growing steps [1]_. Every input distribution gives a lower and an upper bound; the best of
        each are kept and widened by a bound for their rounding errors, so the interval is proved.

        References
        ----------
        .. [1] R. E. Blahut (1972), Computation of channel capacity and rate-distortion functions, IEEE Trans.
           Inf. Theory.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> found = Channel([[1.0, 0.0], [0.5, 0.5]]).shannon_capacity()
        >>> found.lower <= 0.321928094887362 <= found.upper
        True
        """
        tol = _check.real(tol, "tol", positive=True)
        found = CapacityResult(*_core.shannon_capacity(self._matrix, tol, _MOST_STEPS))
        if not found.upper - found.lower <= tol:
            warnings.warn(
                f"the capacity lies in an interval of width {found.upper - found.lower:.2g}, wider than {tol:.2g}, "
                f"after {found.iterations} steps",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found

    def capacity(self, kind: str = "min", tol: float = 1e-9) -> float | CapacityResult:
        """Return the capacity: `min_capacity` or `shannon_capacity`.

        Parameters
        ----------
        kind : {"min", "shannon"}
        tol : float
            Width of the interval for the Shannon capacity.

        Returns
        -------
        float or CapacityResult
        """
        if _check.one_of(kind, "kind", ["min", "shannon"]) == "min":
            return self.min_capacity()
        return self.shannon_capacity(tol)

    # ---- privacy

    def likelihood_ratio(self, graph: GraphLike) -> float | Fraction:
        """Return the largest ratio of the probabilities of an output for two neighbors: e to the power `dp_epsilon`.

        Parameters
        ----------
        graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)

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
        if self._fractions is None:
            epsilon = self.dp_epsilon(graph)
            return math.exp(epsilon) if epsilon < 709 else math.inf
        largest = Fraction(1)
        for u, v in _checks.graph_on(graph, self.n_inputs).edges.tolist():
            for a, b in zip(self._fractions[u], self._fractions[v], strict=True):
                if a == b:
                    continue
                if a == 0 or b == 0:
                    return math.inf
                largest = max(largest, a / b, b / a)
        return largest

    def dp_epsilon(self, graph: GraphLike, *, threads: int | None = None) -> float:
        """Return the least epsilon for which the channel is differentially private on a graph.

        The largest ``|ln C[h, k] - ln C[l, k]|`` over the edges ``{h, l}`` and outputs ``k``, in nats. Where both are 0
        nothing is counted, where one is 0 the level is infinite; 0 without edges.

        Parameters
        ----------
        graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        threads : int, optional

        Returns
        -------
        float

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
        if self._fractions is not None:
            ratio = self.likelihood_ratio(graph)
            return (
                math.log(ratio) if isinstance(ratio, float) else math.log(ratio.numerator) - math.log(ratio.denominator)
            )
        edges = _checks.graph_on(graph, self.n_inputs).edges
        return _core.channel_epsilon(self._matrix, edges, _check.threads(threads))

    def dp_delta(self, graph: GraphLike, epsilon: float, *, threads: int | None = None) -> float:
        """Return the least delta for which the channel is (epsilon, delta)-private on a graph.

        Parameters
        ----------
        graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        epsilon : float
            In nats, >= 0.
        threads : int, optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If `epsilon` is negative, or `graph` does not have one vertex for each input.
        """
        edges = _checks.graph_on(graph, self.n_inputs).edges
        return _core.channel_delta(self._matrix, edges, _checks.level(epsilon), _check.threads(threads))

    def renyi_dp(self, graph: GraphLike, alpha: float, *, threads: int | None = None) -> float:
        """Return the least level of Renyi differential privacy of an order on a graph.

        The largest Renyi divergence of order `alpha` between the rows of neighbors, in nats; Kullback-Leibler at
        ``alpha = 1``, `dp_epsilon` at infinity.

        Parameters
        ----------
        graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        alpha : float
            The order, >= 0; may be infinite.
        threads : int, optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If `alpha` is negative, or `graph` does not have one vertex for each input.
        """
        edges = _checks.graph_on(graph, self.n_inputs).edges
        return _core.channel_renyi(self._matrix, edges, _checks.level(alpha, "alpha"), _check.threads(threads))

    def metric_epsilon(self, metric: Any, *, threads: int | None = None) -> float:
        """Return the least epsilon with ``|ln C[h, k] - ln C[l, k]| <= epsilon d(h, l)`` for all pairs of inputs.

        Parameters
        ----------
        metric : array_like of float, shape (n_inputs, n_inputs), or a graph
            The distances: symmetric, >= 0, infinite where a pair does not count. For a graph its own distances, for
            which the level is `dp_epsilon`.
        threads : int, optional

        Returns
        -------
        float

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
        try:
            distances = np.asarray(metric, dtype=np.float64)
            is_table = distances.ndim == 2 and not isinstance(metric, (tuple,))
        except (TypeError, ValueError):
            is_table = False
        if not is_table:
            return self.dp_epsilon(metric, threads=threads)
        n = self.n_inputs
        if distances.shape != (n, n):
            raise ValueError(f"`metric` must have shape ({n}, {n}), got {distances.shape}")
        wrong = ~(distances >= 0) | (distances != distances.T)
        if wrong.any():
            u, v = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            found = f"{distances[u, v]} and {distances[v, u]} for the pair ({u}, {v})"
            raise ValueError(f"`metric` must be symmetric and at least 0, got {found}")
        return _core.metric_epsilon(self._matrix, np.ascontiguousarray(distances), _check.threads(threads))

    def guarantee(self, graph: GraphLike, relation: "Relation | None" = None) -> "PrivacyGuarantee":
        """Return what the channel promises, in the form in which releases are composed.

        Parameters
        ----------
        graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
            Joins inputs that are neighbors.
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

        epsilon = self.dp_epsilon(graph)
        if epsilon == math.inf:
            raise ValueError("`graph` must join no input to one with other possible outputs, got an infinite level")
        # The level is right to a few units in the last place of the largest ratio.
        upwards = epsilon * (1 + 2.0**-50) + (2.0**-50 if epsilon > 0 else 0.0)
        return PrivacyGuarantee(upwards, relation=ReplaceOne() if relation is None else relation, numerics="float64")

    # ---- symmetry

    def symmetrize(
        self,
        group_or_graph: "AutomorphismGroup | GraphLike",
        *,
        graph: "GraphLike | None" = None,
        prior: npt.ArrayLike | None = None,
        output_action: npt.ArrayLike | None = None,
        out: FloatArray | None = None,
        time_limit: float | None = None,
        threads: int | None = None,
    ) -> "Symmetrization":
        """Average the channel over a group of symmetries.

        ``M'[h, k]`` is the mean of ``M[g(h), g(k)]`` over the group, that is the mean of ``M`` over the orbit of the
        pair. What this does to privacy and leakage, and what it does not, is in the report that comes with it.

        Parameters
        ----------
        group_or_graph : AutomorphismGroup, Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
            The group; for a graph, all its automorphisms.
        graph : optional
            With a group: the graph whose privacy levels are reported. The generators have to be automorphisms of it.
        prior : array_like of float, shape (n_inputs,), optional
            The prior for which leakage is compared; uniform if left out.
        output_action : array_like of int, shape (k, n_outputs), optional
            With a group: how its generators, in their order, permute the outputs. If left out, as they do the inputs.
        out : ndarray of float64, shape (n_inputs, n_outputs), optional
            Where to write the average, C-contiguous; the new channel then keeps a view of it.
        time_limit : float, optional
            Seconds for the search of automorphisms.
        threads : int, optional

        Returns
        -------
        Symmetrization

        Raises
        ------
        TypeError, ValueError
            If sizes do not fit, or a generator is not an automorphism of `graph`.
        TimeoutError
            If the automorphisms are not found in time.

        Notes
        -----
        The group is never listed. Time and memory are ``O(n**2)``, without any table for the Hamming graphs and their
        full groups. Averaging twice changes no bit, and the result does not depend on the number of threads.

        Examples
        --------
        >>> from quincunx.graphs import cycle
        >>> from quincunx.leakage import Channel
        >>> rows = [[4, 2, 2, 2], [3, 3, 2, 2], [3, 2, 3, 2], [3, 2, 2, 3]]
        >>> channel = Channel([[Fraction(entry, 10) for entry in row] for row in rows], exact=True)
        >>> symmetrized = channel.symmetrize(cycle(4))
        >>> symmetrized.channel.fractions[0]
        (Fraction(13, 40), Fraction(9, 40), Fraction(9, 40), Fraction(9, 40))
        >>> symmetrized.guarantees["constant_diagonal"]
        'proved'
        """
        from quincunx.leakage._symmetrization import symmetrize

        return symmetrize(self, group_or_graph, graph, prior, output_action, out, time_limit, threads)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        names = self._inputs == other._inputs and self._outputs == other._outputs
        if self.is_exact and other.is_exact:
            return names and self._fractions == other._fractions
        return names and self.is_exact == other.is_exact and np.array_equal(self._matrix, other._matrix)

    def __hash__(self) -> int:
        return hash((self._matrix.shape, self._fractions or self._matrix.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Channel._trusted, (self._matrix, self._fractions, self._inputs, self._outputs)

    def __repr__(self) -> str:
        return f"<Channel: {self.n_inputs} inputs, {self.n_outputs} outputs{', exact' if self.is_exact else ''}>"


def _channel(value: object, name: str) -> None:
    if not isinstance(value, Channel):
        raise TypeError(f"`{name}` must be a Channel, got {type(value).__name__}")


def _names(names: Iterable[Hashable] | None, n: int, argument: str) -> tuple[Hashable, ...] | None:
    if names is None:
        return None
    found = tuple(names)
    if len(found) != n:
        raise ValueError(f"`{argument}` must hold {n} names, got {len(found)}")
    return found


def _log2(value: float | Fraction) -> float:
    if isinstance(value, Fraction):
        return math.log2(value.numerator) - math.log2(value.denominator)
    return math.log2(value)


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def _best(values: Sequence[Fraction]) -> int:
    return max(range(len(values)), key=values.__getitem__)
