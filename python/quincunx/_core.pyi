"""Types of the compiled module. The documentation is in the Python functions that call it."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

_Cell: TypeAlias = tuple[
    tuple[tuple[float, float], tuple[float, float]],
    tuple[tuple[float, float], ...],
    tuple[tuple[int, int, tuple[int, int]], ...],
]
_CellOut: TypeAlias = tuple[list[list[float]], list[list[float]], list[tuple[int, int, tuple[int, int]]]]
_Section: TypeAlias = tuple[
    npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]
]
_Graph: TypeAlias = tuple[int, npt.NDArray[np.int64]]

__version__: Final[str]
__build_profile__: Final[str]

def available_threads() -> int: ...
def forget_pools() -> None: ...
def to_decimal(value: int) -> str: ...
def grid(shape: list[int]) -> _Graph: ...
def torus(shape: list[int]) -> _Graph: ...
def complete(n: int) -> _Graph: ...
def hamming(length: int, alphabet_size: int) -> _Graph: ...
def clique_insert(n: int, edges: npt.NDArray[np.int64], k: int) -> _Graph: ...
def clique_insertion_size(degrees: npt.NDArray[np.int64], k: int) -> tuple[int, int]: ...
def named_cell(name: str) -> _CellOut: ...
def check_cell(cell: _Cell) -> None: ...
def clique_insert_cell(cell: _Cell, k: int) -> _CellOut: ...
def check_simple(cell: _Cell, extent: tuple[int, int], pbc: tuple[bool, bool]) -> None: ...
def lattice_section(cell: _Cell, extent: tuple[int, int], pbc: tuple[bool, bool]) -> _Section: ...
def four_eight_eight(m: int, n: int, boundary: str) -> _Section: ...
def aztec_diamond(n: int) -> _Section: ...
def generalized_aztec(a: int, b: int) -> _Section: ...
def triangulated_grid(m: int, n: int, diagonals: npt.NDArray[np.bool_]) -> _Section: ...

_Problem: TypeAlias = tuple[str, int, int, str] | tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64] | None]
_Report: TypeAlias = Callable[[int, int], object] | None

def count_independent_sets(
    problem: _Problem,
    *,
    threads: int,
    memory_limit: int,
    progress: _Report = None,
    checkpoint: str | None = None,
    checkpoint_interval: float | None = None,
) -> int: ...
def independence_polynomial(
    problem: _Problem,
    *,
    threads: int,
    memory_limit: int,
    progress: _Report = None,
    checkpoint: str | None = None,
    checkpoint_interval: float | None = None,
) -> list[int]: ...
def hard_core_rational(
    problem: _Problem,
    numerator: int,
    denominator: int,
    *,
    threads: int,
    memory_limit: int,
    progress: _Report = None,
    checkpoint: str | None = None,
    checkpoint_interval: float | None = None,
) -> tuple[int, int]: ...
def hard_core_float(
    problem: _Problem, activity: float, *, threads: int, memory_limit: int, progress: _Report = None
) -> tuple[float, int, float]: ...
def residues(
    problem: _Problem, points: list[tuple[int, int]], *, threads: int, memory_limit: int, progress: _Report = None
) -> list[int]: ...
def combine_residues(residues: list[tuple[int, int]]) -> int: ...
def primes(count: int) -> list[int]: ...
def estimate_cost(problem: _Problem, *, threads: int, memory_limit: int) -> dict[str, Any]: ...
def distribution_answers(
    name: str,
    columns: list[npt.NDArray[np.float64]],
    question: str,
    points: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
    threads: int,
) -> None: ...
def distribution_quantiles(
    name: str,
    columns: list[npt.NDArray[np.float64]],
    lower: bool,
    probabilities: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
    threads: int,
) -> None: ...
def distribution_summaries(
    name: str, columns: list[npt.NDArray[np.float64]], summary: str, out: npt.NDArray[np.float64], threads: int
) -> None: ...
def distribution_draws(
    name: str,
    columns: list[npt.NDArray[np.float64]],
    key: tuple[int, int],
    out: npt.NDArray[np.int64],
    threads: int,
) -> None: ...
def two_piece_poisson_log_marginals(
    columns: list[npt.NDArray[np.float64]], out: npt.NDArray[np.float64], threads: int
) -> None: ...
