"""Files of graphs in the formats of others: DIMACS, and graph6 or sparse6 by networkx."""

import os
from collections.abc import Iterable

import numpy as np

from quincunx import _check
from quincunx._optional import require
from quincunx.graphs._edges import MOST_VERTICES
from quincunx.graphs._graph import Graph
from quincunx.graphs._read import lines_of


def read_dimacs(file: str | os.PathLike[str] | Iterable[str]) -> Graph:
    """Read a graph from a text file in the edge format of DIMACS.

    A line ``p edge n m`` (or ``p col``) comes first and says the numbers of vertices and edges, then a line ``e u v``
    for each edge with its ends in ``1..n``. Lines that begin with ``c`` are comments; other lines of the format
    (``n``, ``d``, ``v``, ``x``), which are about vertices and drawings, are passed over.

    Parameters
    ----------
    file : str, path or iterable of str
        The name of a file in UTF-8, or an open text file or any other iterable of lines.

    Returns
    -------
    Graph
        Vertex ``v`` of the file is the vertex of number ``v - 1``, with the label ``v``. An edge listed twice, which
        some files list in both directions, is a double edge.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError
        If `file` is neither a path nor an iterable of str.
    ValueError
        If a line is not of this form, an end is no vertex, or there are not the `m` edges that the first line says,
        once or twice. The message has the file, the number of the line and its content.

    References
    ----------
    .. [1] D. S. Johnson and M. A. Trick, eds. (1996), Cliques, Coloring, and Satisfiability: Second DIMACS
       Implementation Challenge.

    Examples
    --------
    >>> from quincunx.graphs import read_dimacs
    >>> read_dimacs(["c a path", "p edge 3 2", "e 1 2", "e 2 3"])
    <Graph: 3 vertices, 2 edges>
    """
    n = said = -1
    ends: list[int] = []
    with lines_of(file) as (name, lines):
        for number, line in enumerate(lines, 1):
            place, words = f"{name}, line {number}", line.split()
            if not words or words[0] in ("c", "n", "d", "v", "x") or (line[0] == "c" and n < 0):
                continue
            if words[0] == "p" and n < 0 and len(words) == 4 and words[1] in ("edge", "edges", "col"):
                n, said = _whole(words[2:], place, line)
                if n > MOST_VERTICES:
                    raise ValueError(f"{place}: expected at most {MOST_VERTICES} vertices, got {line.strip()!r}")
            elif words[0] == "e" and n >= 0 and len(words) == 3:
                pair = _whole(words[1:], place, line)
                if not all(1 <= end <= n for end in pair):
                    raise ValueError(f"{place}: expected two vertices in 1..{n}, got {line.strip()!r}")
                ends += pair
            else:
                wanted = "'p edge n m'" if n < 0 else "'e u v'"
                raise ValueError(f"{place}: expected a line {wanted}, got {line.strip()!r}")
    if n < 0:
        raise ValueError(f"{name}: expected a line 'p edge n m', got none")
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2) - 1
    if len(edges) not in (said, 2 * said):
        raise ValueError(f"{name}: expected {said} edges as the line 'p' says, got {len(edges)}")
    return Graph._trusted(n, edges, range(1, n + 1))


def _whole(words: list[str], place: str, line: str) -> tuple[int, int]:
    if not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words):
        raise ValueError(f"{place}: expected whole numbers, got {line.strip()!r:.80}")
    return int(words[0]), int(words[1])


def read_graph6(file: str | os.PathLike[str] | Iterable[str]) -> list[Graph]:
    """Read graphs from a file in the formats graph6 or sparse6, one on each line, as nauty's ``geng`` writes them.

    Parameters
    ----------
    file : str, path or iterable of str
        The name of a file, or an open text file or any other iterable of lines.

    Returns
    -------
    list of Graph
        In the order of the lines; empty lines and headers (``>>graph6<<``) are no graphs.

    Raises
    ------
    ImportError
        If networkx, which reads each line, is not installed.
    OSError
        If the file cannot be read.
    TypeError
        If `file` is neither a path nor an iterable of str.
    ValueError
        If a line is not of this form. The message has the file and the number of the line.
    TooLargeError
        If a graph has more vertices than there is memory for.

    References
    ----------
    .. [1] B. D. McKay and A. Piperno (2014), Practical graph isomorphism, II.

    Examples
    --------
    >>> from quincunx.graphs import read_graph6
    >>> read_graph6([">>graph6<<Bw", "Dhc"])
    [<Graph: 3 vertices, 3 edges>, <Graph: 5 vertices, 5 edges>]
    """
    networkx = require("networkx", "graph")
    found = []
    with lines_of(file) as (name, lines):
        for number, line in enumerate(lines, 1):
            text = line.strip().removeprefix(">>graph6<<").removeprefix(">>sparse6<<")
            if not text:
                continue
            read = networkx.from_sparse6_bytes if text[0] == ":" else networkx.from_graph6_bytes
            codes = [ord(letter) - 63 for letter in text.removeprefix(":")]
            try:
                # networkx takes '&' of directed graphs and ';' of differences for the size of an empty graph.
                if not all(0 <= code < 64 for code in codes):
                    raise ValueError("each letter must be one of '?' to '~'")
                n = networkx.readwrite.graph6.data_to_n(codes)[0]
                _check.room(500 * n, f"{name}, line {number}: a graph of {n} vertices")
                if text[0] == ":" and n == 1:  # each 0 is a loop: the one vertex takes no bits, for networkx one
                    loops = "".join(f"{code:06b}" for code in codes[1:]).partition("1")[0]
                    found.append(Graph(1, [(0, 0)] * len(loops)))
                    continue
                graph = read(text.encode("ascii"))
            except (ValueError, IndexError, networkx.NetworkXException) as error:
                raise ValueError(f"{name}, line {number}: not in graph6 or sparse6 ({error})") from None
            found.append(Graph.from_networkx(graph))
    return found
