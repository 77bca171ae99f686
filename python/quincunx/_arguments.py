"""What command lines say otherwise than functions take it: sizes, files and standard input, what is counted on."""

import argparse
import io
import os
import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NamedTuple, TextIO, TypeAlias

if TYPE_CHECKING:
    from quincunx.graphs._graph import GraphLike

Boundary: TypeAlias = Literal["free", "cylinder", "torus"]
File: TypeAlias = str | os.PathLike[str]

Dask: TypeAlias = Annotated[str | None, "run on the workers of this Dask scheduler: its address, or its file"]

# Ways to write sizes: bytes, or a number with one of these behind it.
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


def _bytes(text: str) -> int:
    """Read a size: `6G`, `512M` or a number of bytes."""
    shift = _UNITS.get(text[-1:].upper())
    digits = text if shift is None else text[:-1]
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"must be a size such as 6G or 512M, got {text!r}")
    return int(digits) << (shift or 0)


Size: TypeAlias = Annotated[int, _bytes]


class _Input(io.BytesIO):
    """What came from standard input."""

    name = "standard input"


def source_of(path: str) -> str | BinaryIO:
    """Return a path, or a file with all of standard input, for `-`, or of a pipe, which may be read again."""
    if path == "-":
        return _Input(sys.stdin.buffer.read())
    if not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path):
        return path
    with open(path, "rb") as pipe:
        file = _Input(pipe.read())
    file.name = path
    return file


def lines_of(path: str) -> str | TextIO:
    """Return a path, or the lines of what has to be unpacked or, for `-`, of standard input."""
    if path.lower().endswith(".gz"):
        from quincunx._npz import unpacked

        with open(path, "rb") as packed:
            file = _Input(unpacked(packed.read(), path))
        file.name = path
        return io.TextIOWrapper(file, encoding="utf-8-sig")
    return io.TextIOWrapper(_Input(sys.stdin.buffer.read()), encoding="utf-8-sig") if path == "-" else path


def output_of(path: str | None) -> str | BinaryIO | None:
    """Return a path, or for `-` standard output as a binary file, unless it is a terminal."""
    if path != "-":
        return path
    if sys.stdout.isatty():
        raise ValueError("`--out` must name a file or a pipe: a release is not for a terminal")
    return sys.stdout.buffer


def _extents(text: str | None) -> tuple[int, int]:
    """Read two extents: `20x20`."""
    parts = (text or "").lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"`MxN` must be two extents such as 20x20, got {text!r}")
    return int(parts[0]), int(parts[1])


class On(NamedTuple):
    """What is counted on, and the words that said so."""

    graph: "GraphLike"
    said: dict[str, str | None]


def graph_of(
    lattice: Annotated[str | None, "square, king, triangular, honeycomb, kagome, 4-8-8, 3-12-12, ..."] = None,
    MxN: Annotated[str | None, "the two extents, as 20x20; octagons for 4-8-8, one order for aztec-diamond"] = None,
    *,
    edges: Annotated[File | None, "the graph with this list of edges instead; - is standard input"] = None,
    delimiter: str | None = None,
    header: bool | None = None,
    boundary: Boundary = "free",
    twist: int = 0,
    multigraph: bool = False,
) -> On:
    """Return what to count on."""
    if edges is not None:
        if lattice is not None:
            raise ValueError(f"`--edges` must be given alone, got also the lattice {lattice!r}")
        from quincunx import graphs

        path = os.fspath(edges)
        return On(graphs.read_edges(lines_of(path), delimiter=delimiter, header=header), {"edges": path})
    if lattice is None:
        raise ValueError("`LATTICE` must be given, or a graph with `--edges`")
    from quincunx import lattices

    rows: int
    cols: int | None
    has_order = lattice.lower().replace("_", "-").replace(" ", "-") == "aztec-diamond"
    if has_order and MxN is not None and MxN.isascii() and MxN.isdigit():
        rows, cols = int(MxN), None
    else:
        rows, cols = _extents(MxN)
    found = lattices.named(lattice, rows, cols, boundary, twist=twist, multigraph=multigraph)
    return On(found, {"lattice": lattice, "size": MxN, "boundary": boundary})
