"""Channels: what an observer of the output learns about the input."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _optional, _tables
from quincunx._html import table_html
from quincunx._tables import Axis
from quincunx._types import Array, Axes, DataFrame, Floats
from quincunx.graphs import AutomorphismGroup
from quincunx.graphs._edges import refuse_unordered
from quincunx.graphs._graph import GraphLike
from quincunx.leakage import _checks
from quincunx.leakage._blocks import ChannelColumns, of_blocks
from quincunx.leakage._checks import Exact
from quincunx.leakage._exact import ExactMatrix
from quincunx.leakage._floats import FloatMatrix
from quincunx.leakage._levels import Levels
from quincunx.leakage._measures import Measures
from quincunx.leakage._parts import leakage_doc

if TYPE_CHECKING:
    from quincunx.leakage._symmetrization import Symmetrization

#: Names of more inputs or outputs than this are not written beside a picture.
MOST_NAMES = 32


@leakage_doc
class Channel(Measures, Levels):
    """A channel: the probability ``C[x, y] = P(y | x)`` of each output for each input.

    The rows are the inputs (the secrets), the columns the outputs (what is seen). A channel cannot be changed. With
    ``exact=True`` its entries are fractions, and so is every rational answer to a question without floats. Every other
    figure of an exact channel comes from the fractions too and is rounded to the weaker promise: a level, a leakage or
    a capacity is never below the true one and above it by less than 1e-15 of it. Figures of other channels are
    float64, off by some 1e-15, of what they are where above 1: those of rows that hardly differ can lie far below.

    Parameters
    ----------
    matrix : array_like, shape (n_inputs, n_outputs)
        Entries of at least 0; each row sums to 1. Copied. Ints, Fractions or strings such as ``"1/3"`` if `exact`. A
        DataFrame of pandas gives its index and columns to `inputs` and `outputs`; a sparse array of SciPy is made
        dense.
    inputs, outputs : sequence of hashable, optional
        Names of the rows and columns; those of a DataFrame, else ``0, 1, ...``, if left out.
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
    functions of `quincunx.graphs` take, with one vertex for each input in their order; where its vertices have the
    names of the inputs in another order it is refused, and so are priors, gains and metrics with such labels.

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

    __slots__ = ("_entries", "_inputs", "_outputs")

    _inputs: tuple[Hashable, ...] | None
    _outputs: tuple[Hashable, ...] | None

    def __init__(
        self,
        matrix: npt.ArrayLike | DataFrame,
        *,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        atol: float = 1e-9,
        normalize: bool = False,
        exact: bool = False,
    ) -> None:
        atol = _check.nonnegative(atol, "atol")
        axes, matrix = _tables.axes(matrix), _tables.array(matrix, "matrix")
        if len(axes) == 2:
            inputs = axes[0].labels if inputs is None else inputs
            outputs = axes[1].labels if outputs is None else outputs
            matrix = np.asarray(matrix)
        if _check.flag(exact, "exact"):
            self._entries = ExactMatrix(_checks.stochastic_exact(matrix))
        else:
            self._entries = FloatMatrix(_checks.stochastic(matrix, atol, _check.flag(normalize, "normalize")))
        self._inputs = _names(inputs, self.n_inputs, "inputs")
        self._outputs = _names(outputs, self.n_outputs, "outputs")

    @classmethod
    def _trusted(
        cls,
        entries: ExactMatrix | FloatMatrix,
        inputs: tuple[Hashable, ...] | None = None,
        outputs: tuple[Hashable, ...] | None = None,
    ) -> Channel:
        """Take over entries that are known to be right."""
        channel = cls.__new__(cls)
        channel._entries, channel._inputs, channel._outputs = entries, inputs, outputs
        return channel

    @classmethod
    def from_mechanism(
        cls,
        mechanism: object,
        *,
        scores: npt.ArrayLike | None = None,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        exact: bool = False,
    ) -> Channel:
        """Return the channel of a mechanism of `quincunx.privacy`.

        Parameters
        ----------
        mechanism : RandomizedResponse or another with finitely many outputs
            Also `GeneralizedRandomizedResponse`, `UnaryEncoding`, `SubsetSelection`, `LocalHashing`,
            `HadamardResponse`, `ExponentialMechanism`, and `GeometricMechanism` with bounds. The outputs of unary
            encoding and subset selection are tuples of bits, for at most 16 categories; so are those of local hashing,
            where all functions and values that support the same categories are one output. The inputs of a
            `GeometricMechanism` are the numbers between its bounds; an output beyond a bound tells what the bound
            tells, and is counted there.
        scores : array_like of float, shape (n_inputs, n_outputs), optional
            For an `ExponentialMechanism`: the scores of all outputs for each input.
        inputs, outputs : sequence of hashable, optional
            Other names for the rows and columns.
        exact : bool
            For the two randomized responses and local hashing: keep the fractions that the mechanism draws by.

        Returns
        -------
        Channel
            Rows are the inputs of the mechanism, columns its outputs.

        Raises
        ------
        TypeError
            If the mechanism has outputs without end or `scores` are missing.
        ValueError
            If a `GeometricMechanism` has no bounds, or another argument lies outside its domain.
        TooLargeError
            If the matrix does not fit the memory.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> from quincunx.privacy import RandomizedResponse
        >>> channel = Channel.from_mechanism(RandomizedResponse(1.0))
        >>> channel.matrix.round(6).tolist()
        [[0.731059, 0.268941], [0.268941, 0.731059]]
        >>> round(channel.dp_epsilon((2, [(0, 1)])), 12)
        1.0
        """
        from quincunx.leakage import _of_mechanism

        matrix, rows, columns = _of_mechanism.rows_of(mechanism, scores, exact)
        return cls(
            matrix if exact else _of_mechanism.as_floats(matrix),
            inputs=_of_mechanism.labels(inputs, rows),
            outputs=_of_mechanism.labels(outputs, columns),
            exact=exact,
        )

    @classmethod
    def from_blocks(
        cls, blocks: Iterable[ChannelColumns | npt.ArrayLike], *, atol: float = 1e-9, exact: bool = False
    ) -> ChannelColumns:
        """Return what min-capacity, posterior vulnerability and privacy level need of a channel too large for memory.

        Parameters
        ----------
        blocks : iterable of array_like, Channel or ChannelColumns
            Blocks of rows in their order, each as `matrix`, with the same names of columns where they have any; one at
            a time is in memory.
        atol, exact
            As for a channel.

        Returns
        -------
        ChannelColumns
            Three numbers for each column.

        Raises
        ------
        TypeError, ValueError
            If a block is no part of a channel, blocks have different columns, or there is none.

        Examples
        --------
        >>> from quincunx.leakage import Channel, randomized_response
        >>> channel = randomized_response(6, 1.0)
        >>> blocks = (channel.matrix[i : i + 2] for i in range(0, 6, 2))
        >>> Channel.from_blocks(blocks).min_capacity() == channel.min_capacity()
        True
        """
        if not isinstance(blocks, Iterable):
            raise TypeError(f"`blocks` must be an iterable of blocks of rows, got {type(blocks).__name__}")
        outputs: tuple[Hashable, ...] | None = None

        def entries(block: Any) -> ExactMatrix | FloatMatrix:
            nonlocal outputs
            channel = block if isinstance(block, Channel) else cls(block, atol=atol, exact=exact)
            outputs = outputs or channel._outputs
            for y, (name, own) in enumerate(zip(outputs or (), channel._outputs or (), strict=False)):
                if name != own:
                    raise ValueError(f"`blocks` must have the same outputs, got {own!r} for {name!r} at index {y}")
            return channel._entries

        return of_blocks(blocks, entries)

    @property
    def matrix(self) -> Floats:
        """The entries in float64, read-only; those of an exact channel rounded to nearest."""
        return self._entries.floats

    @property
    def fractions(self) -> Exact | None:
        """The exact entries; None unless the channel is exact."""
        return self._entries.fractions

    @property
    def is_exact(self) -> bool:
        """Whether the entries are fractions."""
        return isinstance(self._entries, ExactMatrix)

    @property
    def n_inputs(self) -> int:
        """Number of rows."""
        return int(self._entries.floats.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return int(self._entries.floats.shape[1])

    @property
    def inputs(self) -> Sequence[Hashable]:
        """Names of the rows."""
        return range(self.n_inputs) if self._inputs is None else self._inputs

    @property
    def outputs(self) -> Sequence[Hashable]:
        """Names of the columns."""
        return range(self.n_outputs) if self._outputs is None else self._outputs

    # ---- combination

    def compose(self, other: Channel) -> Channel:
        """Return the channel that puts each output into another channel.

        Parameters
        ----------
        other : Channel
            With as many inputs as this one has outputs, of the same names in the same order if both have names.

        Returns
        -------
        Channel
            Exact if both are.

        Raises
        ------
        ValueError
            If sizes or names do not fit, or floats do not hold a product of chances.

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> twice = randomized_response(2, 1.0).compose(randomized_response(2, 1.0))
        >>> round(twice.dp_epsilon((2, [(0, 1)])), 6)
        0.433781
        >>> twice == randomized_response(2, 1.0) @ randomized_response(2, 1.0)
        True
        """
        _channel(other, "other")
        if other.n_inputs != self.n_outputs:
            raise ValueError(f"`other` must have {self.n_outputs} inputs, got {other.n_inputs}")
        for y, (mine, its) in enumerate(zip(self._outputs or (), other._inputs or (), strict=False)):
            if mine != its:
                raise ValueError(f"`other` must have the outputs as inputs, got {its!r} for {mine!r} at index {y}")
        return Channel._trusted(self._entries.compose(other._entries), self._inputs, other._outputs)

    def __matmul__(self, other: Channel) -> Channel:
        return self.compose(other) if isinstance(other, Channel) else NotImplemented

    def to_pandas(self) -> DataFrame:
        """Return the channel as a DataFrame, inputs in rows and outputs in columns; fractions if it is exact.

        Returns
        -------
        pandas.DataFrame
            With the names of inputs and outputs.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        exact = self.fractions
        values: Array = (
            self.matrix.copy() if exact is None else np.array(exact, dtype=object).reshape(self.matrix.shape)
        )
        return _tables.to_pandas(values, (Axis("input", tuple(self.inputs)), Axis("output", tuple(self.outputs))))

    def plot(self, ax: Axes | None = None, *, cmap: str = "viridis") -> Axes:
        """Draw the probabilities as a picture, inputs downwards and outputs to the right.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if left out.
        cmap : str
            Name of the color map.

        {axes}

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from quincunx.leakage import geometric_channel
        >>> ax = geometric_channel(5, 0.5).plot()
        """
        ax = _optional.axes(ax)
        image = ax.imshow(self.matrix, vmin=0, cmap=cmap, aspect="auto")
        if self.n_inputs <= MOST_NAMES:
            ax.set_yticks(range(self.n_inputs), [str(name) for name in self.inputs], parse_math=False)
        if self.n_outputs <= MOST_NAMES:
            names = [str(name) for name in self.outputs]
            turned = 90 if max(len(name) for name in names) > 3 else 0
            ax.set_xticks(range(self.n_outputs), names, rotation=turned, parse_math=False)
        ax.set_xlabel("output")
        ax.set_ylabel("input")
        ax.figure.colorbar(image, ax=ax, label="probability")
        return ax

    def kron(self, other: Channel) -> Channel:
        """Return the channel that runs two channels side by side, independently.

        Input ``(x, x')`` is row ``x * other.n_inputs + x'``; outputs likewise.

        Parameters
        ----------
        other : Channel

        Returns
        -------
        Channel
            Exact if both are.

        Raises
        ------
        ValueError
            If floats do not hold a product of chances.

        Examples
        --------
        >>> from quincunx.leakage import randomized_response
        >>> pair = randomized_response(2, 1.0).kron(randomized_response(3, 1.0))
        >>> pair.n_inputs, pair.n_outputs
        (6, 6)
        """
        _channel(other, "other")
        return Channel._trusted(self._entries.kron(other._entries))

    def posterior(self, prior: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the distribution of the outputs, and of the input given each output.

        {prior}

        Returns
        -------
        outer : ndarray of float64, shape (n_outputs,)
            In float64 for every channel; of an exact one, what is nearest to the exact chances.
        inners : ndarray of float64, shape (n_outputs, n_inputs)
            Row ``y`` is the distribution of the input given ``y``; zeros if ``y`` never occurs.

        Examples
        --------
        >>> from quincunx.leakage import Channel
        >>> outer, inners = Channel([[1.0, 0.0], [0.5, 0.5]]).posterior()
        >>> outer.tolist(), inners[1].tolist()
        ([0.75, 0.25], [0.0, 1.0])
        """
        return self._entries.posterior(self._ordered(prior))

    def map_remap(self, prior: npt.ArrayLike | None = None) -> Channel:
        """Return the channel whose output is the best guess of the input.

        Each output is replaced by the input that is most probable given it (the first of several): then the largest
        ``prior[x] C[x, k]`` of each column ``k`` is on the diagonal, the Bayes vulnerability is the same and no privacy
        level is worse.

        {prior}

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
        return Channel._trusted(self._entries.remapped(self._ordered(prior)), self._inputs, self._inputs)

    # ---- symmetry

    def symmetrize(
        self,
        group_or_graph: AutomorphismGroup | GraphLike,
        *,
        graph: GraphLike | None = None,
        prior: npt.ArrayLike | None = None,
        output_action: npt.ArrayLike | None = None,
        out: Floats | None = None,
        time_limit: float | None = None,
        threads: int | None = None,
    ) -> Symmetrization:
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
        >>> from fractions import Fraction
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

        return symmetrize(self, group_or_graph, graph, self._ordered(prior), output_action, out, time_limit, threads)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        names = [*self.inputs] == [*other.inputs] and [*self.outputs] == [*other.outputs]
        return names and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return Channel._trusted, (self._entries, self._inputs, self._outputs)

    def _repr_html_(self) -> str:
        kind = "fractions" if self.is_exact else "floats"
        rows = {"inputs": _few(self.inputs), "outputs": _few(self.outputs), "entries": kind}
        return table_html("Channel", rows | {"min-capacity": f"{self.min_capacity():.6g} bits"})

    def __repr__(self) -> str:
        return f"<Channel: {self.n_inputs} inputs, {self.n_outputs} outputs{', exact' if self.is_exact else ''}>"


def _channel(value: object, name: str) -> None:
    if not isinstance(value, Channel):
        raise TypeError(f"`{name}` must be a Channel, got {type(value).__name__}")


def _few(names: Sequence[Hashable]) -> str:
    first = ", ".join(map(str, names[:6]))
    return f"{len(names)}: {first}{', ...' if len(names) > 6 else ''}"


def _names(names: Iterable[Hashable] | None, n: int, argument: str) -> tuple[Hashable, ...] | None:
    if names is None:
        return None
    refuse_unordered(names, argument)
    _check.fits(names, argument)
    try:
        found = tuple(names)
        hash(found)
    except TypeError:
        raise TypeError(f"`{argument}` must be a sequence of hashable names, got {names!r:.60}") from None
    if len(found) != n:
        raise ValueError(f"`{argument}` must hold {n} names, got {len(found)}")
    return found
