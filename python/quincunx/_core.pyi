"""Types of the compiled module. The documentation is in the Python functions that call it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypedDict, final

import numpy as np
import numpy.typing as npt

from quincunx._job import Job
from quincunx._types import Array, Facts

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
_GroupState: TypeAlias = tuple[
    int,
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    bool,
    int | None,
]

__all__ = [
    "CheckpointLock",
    "CoordinateAscent",
    "CubeNoise",
    "ExactPlan",
    "GibbsChain",
    "LdpChains",
    "LdpComputed",
    "LdpLikelihood",
    "LdpPosterior",
    "NamedLattice",
    "PackedBits",
    "PairOrbits",
    "ParameterGrid",
    "PeriodicOperator",
    "PermutationGroup",
    "PrivacyLosses",
    "ReleasedCounts",
    "RoundedSampler",
    "Trace",
    "WholeSampler",
    "__build_profile__",
    "__version__",
    "available_memory",
    "available_threads",
    "average_channel",
    "average_hamming",
    "aztec_diamond",
    "ball_normal",
    "channel_delta",
    "channel_epsilon",
    "channel_renyi",
    "check_cell",
    "check_channel",
    "check_simple",
    "choose",
    "clip_records",
    "clique_insert",
    "clique_insert_cell",
    "clique_insertion_size",
    "column_maxima",
    "combine_residues",
    "complete",
    "corner_bounds",
    "count_families",
    "couple_perfect_matchings",
    "discrete_gaussian_delta",
    "distances",
    "distances_from",
    "distribution_draws",
    "distribution_quantiles",
    "distribution_statistics",
    "distribution_values",
    "encode_unary",
    "estimate_cost",
    "exact_sums",
    "expected_counts",
    "factor_rates",
    "flip_bits",
    "flip_chance",
    "forget_pools",
    "four_eight_eight",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "gaussian_sigma_alongside",
    "generalized_aztec",
    "grid",
    "hadamard_responses",
    "hamming",
    "hard_core_float",
    "hash_categories",
    "is_distance_degree_regular",
    "lattice_section",
    "ldp_cells",
    "ldp_exact_sums",
    "ldp_logistic_normal",
    "ldp_tractable",
    "linear_regression_sensitivity",
    "log_likelihoods",
    "log_spanning_trees",
    "logistic_regression_sensitivity",
    "make_globals",
    "maximum_matching",
    "metric_epsilon",
    "miss_chance",
    "mutual_information",
    "named_lattices",
    "parity_sensitivity",
    "plan_clusters",
    "plan_even_subgraphs",
    "plan_independent_sets",
    "plan_matchings",
    "plan_perfect_matchings",
    "plan_spanning_trees",
    "posterior_epsilon",
    "primes",
    "redraw_categories",
    "redraw_chance",
    "renyi_divergence",
    "renyi_entropy",
    "residues",
    "select_subsets",
    "shannon_capacity",
    "simd_level",
    "sphere_sizes",
    "to_decimal",
    "torus",
    "trees_times_index",
    "triangulated_grid",
    "trimmed_dirichlet",
    "trimmed_dirichlet_error",
    "two_piece_poisson_log_marginals",
    "walsh_transform",
    "window_bounds",
    "zcdp_delta",
    "zcdp_epsilon",
]

__version__: Final[str]
__build_profile__: Final[str]

def available_memory() -> int: ...
def available_threads() -> int: ...
def forget_pools() -> None: ...
def make_globals() -> None: ...
def simd_level() -> str: ...
def to_decimal(value: int) -> str: ...
def grid(shape: list[int]) -> _Graph: ...
def torus(shape: list[int]) -> _Graph: ...
def complete(n: int) -> _Graph: ...
def hamming(length: int, alphabet_size: int) -> _Graph: ...
def clique_insert(n: int, edges: npt.NDArray[np.int64], k: int) -> _Graph: ...
def clique_insertion_size(degrees: npt.NDArray[np.int64], k: int) -> tuple[int, int]: ...
def named_lattices() -> list[NamedLattice]: ...
def check_cell(cell: _Cell) -> None: ...
def clique_insert_cell(cell: _Cell, k: int) -> _CellOut: ...
def check_simple(cell: _Cell, extent: tuple[int, int], pbc: tuple[bool, bool], twist: int = 0) -> None: ...
def lattice_section(cell: _Cell, extent: tuple[int, int], pbc: tuple[bool, bool], twist: int = 0) -> _Section: ...
def four_eight_eight(m: int, n: int, boundary: str) -> _Section: ...
def aztec_diamond(n: int) -> _Section: ...
def generalized_aztec(a: int, b: int) -> _Section: ...
def triangulated_grid(m: int, n: int, diagonals: npt.NDArray[np.bool_]) -> _Section: ...

_Problem: TypeAlias = tuple[str, int, int, str] | tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64] | None]
_Report: TypeAlias = Callable[[int, int], object] | None

@final
class NamedLattice:
    name: str
    aliases: list[str]
    cell: _CellOut
    cut: bool
    kernel: bool
    inserted_into: str | None
    line_graph_of: str | None
    columns: list[list[tuple[int, int]]]
    mirrors: tuple[tuple[float, float], list[tuple[float, float]], list[float], int, bool] | None
    row_tensors: list[tuple[int, str | None]]
    matching_tensors: list[tuple[int, str | None]]
    tree_entropy: tuple[int, int, int] | None
    dimer_entropy: tuple[int, int, int] | None

@final
class CheckpointLock:
    def __new__(cls, checkpoint: str) -> CheckpointLock: ...
    def release(self) -> None: ...

@final
class ExactPlan:
    primes: int
    parts: int
    values: int
    side_by_side: int
    method: tuple[str, int, float]
    def moduli(self) -> list[int]: ...
    def solve(self, job: Job) -> list[int]: ...
    def residues(self, start: int, stop: int, part: int, job: Job) -> list[int]: ...
    def wrong_prime(self, residues: list[int], job: Job) -> int | None: ...
    def combine(self, residues: list[int], job: Job) -> list[int]: ...
    def lowest_terms(self, integer: int) -> tuple[int, int]: ...
    def load(self, checkpoint: str, parts: bool) -> list[int | None]: ...
    def save(self, checkpoint: str, parts: bool, residues: list[int | None]) -> None: ...

def plan_spanning_trees(problem: object) -> ExactPlan: ...
def log_spanning_trees(problem: object) -> tuple[float, float]: ...
def plan_perfect_matchings(problem: object, memory_limit: int) -> ExactPlan: ...
def plan_matchings(problem: object, which: str, memory_limit: int) -> ExactPlan: ...
def plan_clusters(
    problem: object,
    what: str,
    q: tuple[int, int] | None,
    weights: list[tuple[int, int]] | None,
    memory_limit: int,
) -> ExactPlan: ...
def plan_even_subgraphs(problem: object, memory_limit: int) -> ExactPlan: ...
def couple_perfect_matchings(problem: object, keys: list[tuple[int, int]]) -> npt.NDArray[np.uint32] | None: ...
def trees_times_index(n: int, edges: npt.NDArray[np.int64], trees: int, job: Job) -> int: ...
def maximum_matching(n: int, edges: npt.NDArray[np.int64]) -> list[int]: ...
def plan_independent_sets(
    problem: _Problem,
    quantity: str | tuple[int, int] | list[list[int]],
    job: Job | None,
    bits: float | None = None,
) -> ExactPlan: ...
def hard_core_float(
    problem: _Problem, activity: tuple[float, float, int, bool], job: Job
) -> tuple[float, float, int, float]: ...
def residues(problem: _Problem, points: list[tuple[int, int]], job: Job) -> list[int]: ...
def combine_residues(residues: list[tuple[int, int]]) -> int: ...

class _CornerRound(TypedDict):
    lower: int
    upper: int
    precision: int
    sites: int
    bond_dimension: int
    steps: int
    ring: int
    rows: int
    second: float
    gap: float
    cut: float
    spectrum: list[float]
    density: float
    occupied: float
    decay: float
    tensors: list[tuple[int, int, list[int]]]
    bits: int
    letters: list[list[int]]

class _WindowBounds(TypedDict):
    lower: float
    upper: float
    window: int
    frontier: int
    states: int

_Rational: TypeAlias = tuple[int, int, float]
_Faces: TypeAlias = tuple[int, list[_Rational], list[_Rational]]

def corner_bounds(
    lattice: str,
    form: int,
    activity: _Rational,
    *,
    model: str | _Faces,
    pair: _Rational,
    gap: float,
    bond_dimension: int | None,
    max_bond_dimension: int,
    estimate: bool,
    digits: int | None = None,
    factor: _Rational | None = None,
    checkpoint: str | None = None,
    checkpoint_interval: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[_CornerRound]: ...
def window_bounds(
    cell: _Cell,
    order: tuple[tuple[int, int], tuple[int, int]],
    activity: float,
    *,
    width: int,
    states: int,
    progress: Callable[[int, int], object] | None = None,
) -> _WindowBounds: ...

@final
class PeriodicOperator:
    sites: int
    frontier: int
    states: int
    def __new__(
        cls,
        sites: int,
        bonds: list[tuple[int, int, int]],
        memory: int,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> PeriodicOperator: ...
    def root(
        self,
        weights: list[tuple[int, int]],
        precision: str,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> tuple[int, int, int]: ...
    def count(self, periods: int, *, progress: Callable[[int, int], object] | None = None) -> int: ...

def primes(count: int) -> list[int]: ...
def estimate_cost(problem: _Problem, quantity: str | tuple[int, int] | list[list[int]], job: Job) -> Facts: ...

@final
class PermutationGroup:
    points: int
    generator_count: int
    is_order_known: bool
    @staticmethod
    def of_graph(
        n: int, edges: npt.NDArray[np.int64], colors: npt.NDArray[np.int64] | None, time_limit: float | None
    ) -> PermutationGroup: ...
    @staticmethod
    def of_images(n: int, images: npt.NDArray[np.int64], edges: npt.NDArray[np.int64] | None) -> PermutationGroup: ...
    @staticmethod
    def of_hamming(length: int, alphabet_size: int) -> PermutationGroup: ...
    def state(self) -> _GroupState: ...
    @staticmethod
    def from_state(
        n: int,
        moves: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        base: npt.NDArray[np.int64],
        fixes: npt.NDArray[np.int64],
        complete: bool,
        order: int | None,
    ) -> PermutationGroup: ...
    def generators(self) -> npt.NDArray[np.int64]: ...
    def orbits(self) -> npt.NDArray[np.int64]: ...
    def is_transitive(self) -> bool: ...
    def order(self) -> int: ...
    def base(self) -> npt.NDArray[np.int64]: ...
    def contains(self, images: npt.NDArray[np.int64]) -> bool: ...
    def stabilizer(self, v: int) -> PermutationGroup: ...
    def transversal(self, v: int, memory_limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def rank(self, memory_limit: int) -> int: ...
    def orbitals(self, memory_limit: int) -> PairOrbits: ...

@final
class PairOrbits:
    points: int
    rank: int
    def sizes(self) -> npt.NDArray[np.int64]: ...
    def representatives(self) -> npt.NDArray[np.int64]: ...
    def label_row(self, v: int) -> npt.NDArray[np.int64]: ...
    def labels(self, threads: int) -> npt.NDArray[np.int32]: ...

def distances(n: int, edges: npt.NDArray[np.int64], threads: int, memory_limit: int) -> npt.NDArray[np.int32]: ...
def distances_from(n: int, edges: npt.NDArray[np.int64], v: int) -> npt.NDArray[np.int32]: ...
def sphere_sizes(n: int, edges: npt.NDArray[np.int64], threads: int, memory_limit: int) -> npt.NDArray[np.int64]: ...
def is_distance_degree_regular(n: int, edges: npt.NDArray[np.int64], threads: int) -> bool: ...

@final
class WholeSampler:
    @staticmethod
    def geometric(numerator: int, denominator: int, exponential: bool) -> WholeSampler: ...
    @staticmethod
    def discrete_gaussian(numerator: int, denominator: int) -> WholeSampler: ...
    def add(
        self, values: npt.NDArray[np.int64], lower: int, upper: int, insecure_seed: list[int] | None = None
    ) -> npt.NDArray[np.int64]: ...
    def add_on_grid(
        self,
        values: npt.NDArray[np.float64],
        bounds: tuple[float, float],
        step: float,
        insecure_seed: list[int] | None = None,
    ) -> npt.NDArray[np.float64]: ...

@final
class RoundedSampler:
    @staticmethod
    def normal(deviation: float) -> RoundedSampler: ...
    @staticmethod
    def laplace(numerator: int, denominator: int) -> RoundedSampler: ...
    def add_on_grid(
        self, values: npt.NDArray[np.float64], step: float, insecure_seed: list[int] | None = None
    ) -> npt.NDArray[np.float64]: ...

@final
class PrivacyLosses:
    def __new__(cls, parts: list[tuple[str, list[float], int]], ratio: float) -> PrivacyLosses: ...
    def delta(self, epsilon: float) -> float: ...
    def epsilon(self, delta: float) -> float: ...

def flip_chance(epsilon: float) -> int: ...
def redraw_chance(epsilon: float, categories: int) -> int: ...
def miss_chance(epsilon: float, inside: int, outside: int) -> int: ...
def flip_bits(
    bits: npt.NDArray[np.uint8], flip: int, insecure_seed: list[int] | None = None
) -> npt.NDArray[np.uint8]: ...
def redraw_categories(
    values: npt.NDArray[np.int64], categories: int, redraw: int, insecure_seed: list[int] | None = None
) -> npt.NDArray[np.int64]: ...
def encode_unary(
    values: npt.NDArray[np.int64],
    categories: int,
    flip: int,
    one: int,
    insecure_seed: list[int] | None = None,
) -> npt.NDArray[np.uint8]: ...
def hash_categories(
    values: npt.NDArray[np.int64], buckets: int, miss: int, insecure_seed: list[int] | None = None
) -> npt.NDArray[np.int64]: ...
def select_subsets(
    values: npt.NDArray[np.int64], categories: int, size: int, miss: int, insecure_seed: list[int] | None = None
) -> npt.NDArray[np.uint8]: ...
def hadamard_responses(
    values: npt.NDArray[np.int64], blocks: int, columns: int, miss: int, insecure_seed: list[int] | None = None
) -> npt.NDArray[np.int64]: ...
def clip_records(counts: _Ints, width: int, bound: int) -> _Ints: ...
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float: ...
def gaussian_sigma_alongside(epsilon: float, delta: float, sensitivity: float, alongside: float) -> float: ...
def gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float: ...
def gaussian_epsilon(delta: float, sigma: float, sensitivity: float) -> float: ...
def renyi_divergence(kind: str, values: list[float], order: float) -> float: ...
def zcdp_delta(rho: float, epsilon: float) -> float: ...
def zcdp_epsilon(rho: float, delta: float) -> float: ...
def discrete_gaussian_delta(epsilon: float, variance: float, sensitivity: int) -> float: ...
def linear_regression_sensitivity(radius: float, response: float, cross: float, square: float, line: bool) -> float: ...
def logistic_regression_sensitivity(radius: float, ratio: float, line: bool) -> float: ...
def distribution_values(
    name: str,
    columns: list[npt.NDArray[np.float64]],
    function: str,
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
def distribution_statistics(
    name: str, columns: list[npt.NDArray[np.float64]], statistic: str, out: npt.NDArray[np.float64], threads: int
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

_Entries: TypeAlias = npt.NDArray[np.float64]

def check_channel(matrix: _Entries, atol: float) -> None: ...
def column_maxima(
    matrix: _Entries, weights: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]: ...
def mutual_information(matrix: _Entries, prior: npt.NDArray[np.float64]) -> float: ...
def shannon_capacity(
    matrix: _Entries, tolerance: float, most: int
) -> tuple[float, float, npt.NDArray[np.float64], int]: ...
def channel_epsilon(matrix: _Entries, edges: npt.NDArray[np.int64], threads: int) -> float: ...
def channel_delta(matrix: _Entries, edges: npt.NDArray[np.int64], epsilon: float, threads: int) -> float: ...
def channel_renyi(matrix: _Entries, edges: npt.NDArray[np.int64], alpha: float, threads: int) -> float: ...
def metric_epsilon(matrix: _Entries, distances: npt.NDArray[np.float64], threads: int) -> float: ...
def average_channel(matrix: _Entries, orbits: PairOrbits, output: npt.NDArray[np.float64], threads: int) -> None: ...
def average_hamming(
    matrix: _Entries, length: int, alphabet_size: int, output: npt.NDArray[np.float64], threads: int
) -> None: ...
def renyi_entropy(probabilities: npt.NDArray[np.float64], alpha: float) -> float: ...

_Factors: TypeAlias = list[npt.NDArray[np.float64]]
_Shapes: TypeAlias = tuple[str, npt.NDArray[np.float64]]
_Priors: TypeAlias = list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]
# Rows, total, positive cells, cells held out, the ratio of the noise if it is one, its least and greatest.
_TableFacts: TypeAlias = tuple[int, int, int, int, float | None, tuple[float, float]]

@final
class ReleasedCounts:
    def __new__(
        cls,
        values: npt.NDArray[np.int8 | np.int16 | np.int32 | np.int64],
        rows: int,
        cols: int,
        alpha: npt.NDArray[np.float64],
        held_out: npt.NDArray[np.uint8] | None = None,
    ) -> ReleasedCounts: ...
    @property
    def rows(self) -> int: ...
    @property
    def cols(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def facts(self) -> tuple[_TableFacts, npt.NDArray[np.uint64]]: ...

@final
class Trace:
    @property
    def filled(self) -> tuple[int, int]: ...
    def __new__(
        cls,
        draws: Sequence[npt.NDArray[np.float64]],
        kept: npt.NDArray[np.int64],
        of_draws: Sequence[npt.NDArray[np.float64]],
        of_steps: Sequence[npt.NDArray[np.float64]],
        filled: tuple[int, int],
    ) -> Trace: ...

@final
class GibbsChain:
    iteration: int
    def __new__(
        cls,
        counts: ReleasedCounts,
        model: str,
        extents: list[int],
        n_components: int,
        priors: _Priors,
        method: str,
        key: tuple[int, int],
        fixed: list[bool] | None = None,
    ) -> GibbsChain: ...
    def learn_priors(self, hyperpriors: str) -> None: ...
    def priors(self) -> _Priors: ...
    def set_dispersion(self, shapes: _Shapes, prior: tuple[float, float] | None = None) -> None: ...
    def dispersion(self) -> npt.NDArray[np.float64] | None: ...
    def run(
        self,
        sweeps: int,
        keep_every: int,
        threads: int,
        progress: Callable[[int, int], object] | None = None,
        trace: Trace | None = None,
    ) -> None: ...
    def take(self) -> Facts: ...
    def factors(self) -> _Factors: ...
    def set_factors(self, factors: _Factors) -> None: ...
    def set_counts(self, counts: ReleasedCounts) -> None: ...
    def noise(self) -> list[npt.NDArray[np.int64]]: ...
    def set_noise(self, noise: list[npt.NDArray[np.int64]]) -> None: ...
    def tally(self, first_row: int, last_row: int, threads: int) -> list[npt.NDArray[np.int64]]: ...
    def place(self, first_row: int, whole: _TableFacts) -> None: ...
    def shard_sweep(
        self, right: npt.NDArray[np.float64], threads: int
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]: ...
    def held_exposures(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def exact_likelihood(self, right: npt.NDArray[np.float64], threads: int) -> npt.NDArray[np.int64]: ...
    def redraw_columns(
        self,
        tally: npt.NDArray[np.uint64],
        sums: npt.NDArray[np.float64],
        held: npt.NDArray[np.float64],
        threads: int,
    ) -> float: ...
    def advance(self, tallies: list[npt.NDArray[np.int64]], threads: int) -> None: ...

@final
class CoordinateAscent:
    def __new__(
        cls,
        counts: ReleasedCounts,
        model: str,
        extents: list[int],
        n_components: int,
        priors: _Priors,
        method: str,
        key: tuple[int, int],
        fixed: list[bool] | None = None,
    ) -> CoordinateAscent: ...
    def learn_priors(self, hyperpriors: str) -> None: ...
    def priors(self) -> _Priors: ...
    def set_dispersion(self, shapes: _Shapes, prior: tuple[float, float] | None = None) -> None: ...
    def dispersion(self) -> npt.NDArray[np.float64] | None: ...
    def run(
        self,
        iterations: int,
        tolerance: float,
        threads: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> bool: ...
    def place(self, first_row: int, whole: _TableFacts, key: tuple[int, int]) -> None: ...
    def set_columns(self, shape: npt.NDArray[np.float64], rate: npt.NDArray[np.float64]) -> None: ...
    def shard_pass(self, step: bool, threads: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def row_sums(self) -> npt.NDArray[np.int64]: ...
    def held_exposures(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def settle(self, iterations: int, threads: int) -> None: ...
    def elbo(self) -> npt.NDArray[np.float64]: ...
    def statistics(
        self, factor: int, threads: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]: ...
    def divergence(self, factor: int) -> float: ...
    def factors(self) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]: ...
    def set_factors(self, factors: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]) -> None: ...
    def noise(self) -> list[npt.NDArray[np.float64]]: ...
    def set_noise(self, noise: list[npt.NDArray[np.float64]]) -> None: ...

def exact_sums(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]: ...
def factor_rates(
    model: str, extents: list[int], factors: _Factors, threads: int, rows: tuple[int, int] | None = None
) -> npt.NDArray[np.float64]: ...
def expected_counts(
    counts: ReleasedCounts, rates: npt.NDArray[np.float64], threads: int, shapes: _Shapes | None = None
) -> npt.NDArray[np.float64]: ...
def log_likelihoods(
    counts: ReleasedCounts, rates: npt.NDArray[np.float64], threads: int, shapes: _Shapes | None = None
) -> npt.NDArray[np.float64]: ...

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]

@final
class ParameterGrid:
    def __new__(cls, logit: bool, width: float, upper: float, points: int) -> ParameterGrid: ...
    def parameters(self) -> _Floats: ...
    def draw(self, x: float, y: float, size: int, insecure_seed: list[int] | None = None) -> _Floats: ...
    def replace_epsilon(self, x: float, y: float, dx: float, dy: float) -> float: ...

@final
class CubeNoise:
    def __new__(cls, numerator: int, denominator: int, dimension: int) -> CubeNoise: ...
    def add(self, rows: _Ints, insecure_seed: list[int] | None = None) -> _Ints: ...

@final
class PackedBits:
    def __new__(cls, data: Array, width: int) -> PackedBits: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(self, families: list[list[int]]) -> list[_Ints]: ...

def posterior_epsilon(logit: bool, width: float, upper: float, x: float, y: float, dx: float, dy: float) -> float: ...
def trimmed_dirichlet(
    alphas: _Floats, trim: float, resolution: int, size: int, insecure_seed: list[int] | None = None
) -> _Floats: ...
def trimmed_dirichlet_error(total: float, categories: int, trim: float, resolution: int) -> float: ...
def ball_normal(
    eigenvalues: _Floats, means: _Floats, radius: float, size: int, insecure_seed: list[int] | None = None
) -> tuple[_Floats, int]: ...
def count_families(data: Array, categories: list[int], families: list[list[int]]) -> list[_Ints]: ...
def walsh_transform(values: _Ints) -> _Ints: ...
def parity_sensitivity(masks: list[int], bits: int) -> int: ...
def choose(
    scores: _Ints, options: int, numerator: int, denominator: int, insecure_seed: list[int] | None = None
) -> _Ints: ...

@final
class LdpLikelihood:
    @staticmethod
    def rectified(
        model: str, released: npt.NDArray[np.float64], bounds: tuple[float, float], scale: float, exact: bool
    ) -> LdpLikelihood: ...
    @staticmethod
    def whole(
        model: str,
        noise: str,
        decay: float,
        bounds: tuple[int, int],
        released: npt.NDArray[np.float64],
        exact: bool,
    ) -> LdpLikelihood: ...
    @staticmethod
    def rectified_cells(
        model: str,
        bounds: tuple[float, float],
        scale: float,
        number: int,
        cells: tuple[list[float], float, npt.NDArray[np.int64], npt.NDArray[np.int64]],
    ) -> LdpLikelihood: ...
    @staticmethod
    def whole_cells(
        model: str,
        noise: str,
        decay: float,
        bounds: tuple[int, int],
        number: int,
        cells: tuple[list[float], float, npt.NDArray[np.int64], npt.NDArray[np.int64]],
    ) -> LdpLikelihood: ...
    @staticmethod
    def plain_sums(model: str, number: float, first: float, second: float) -> LdpLikelihood: ...
    @staticmethod
    def plain(model: str, values: npt.NDArray[np.float64]) -> LdpLikelihood: ...
    @staticmethod
    def bits(zeros: float, ones: float, keep: float) -> LdpLikelihood: ...
    @staticmethod
    def rows(
        rows: npt.NDArray[np.uint8], counts: npt.NDArray[np.float64] | None, p: float, q: float
    ) -> LdpLikelihood: ...
    @staticmethod
    def supports(
        rows: npt.NDArray[np.uint8], counts: npt.NDArray[np.float64] | None, ratio: float, log_outside: float
    ) -> LdpLikelihood: ...
    @staticmethod
    def column_sums(sums: list[float], users: float, p: float, q: float) -> LdpLikelihood: ...
    @staticmethod
    def categories(counts: list[float], keep: float, other: float) -> LdpLikelihood: ...
    @staticmethod
    def linear_inputs(scatter: npt.NDArray[np.float64], users: float, noise: list[float]) -> LdpLikelihood: ...
    @staticmethod
    def linear_statistics(
        total: npt.NDArray[np.float64], users: float, noise: float, ratios: tuple[float, float]
    ) -> LdpLikelihood: ...
    @staticmethod
    def logistic_inputs(
        x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], noise: list[float], keep: float
    ) -> LdpLikelihood: ...
    @staticmethod
    def logistic_statistics(
        first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], users: float, noise: list[float]
    ) -> LdpLikelihood: ...
    @staticmethod
    def tractable(
        released: npt.NDArray[np.float64],
        g: list[float],
        interval: tuple[float, float],
        clip: tuple[float, float],
        sd: float,
        exact: bool,
    ) -> LdpLikelihood: ...
    @staticmethod
    def clipped(
        model: str, released: npt.NDArray[np.float64], bounds: tuple[float, float], sd: float, exact: bool
    ) -> LdpLikelihood: ...
    def selected(self, which: list[int], parameters: int) -> LdpLikelihood: ...
    @staticmethod
    def sum(parts: list[LdpLikelihood], parameters: int) -> LdpLikelihood: ...
    def value(
        self, natural: npt.NDArray[np.float64], gradient: bool
    ) -> tuple[float, npt.NDArray[np.float64] | None]: ...

@final
class LdpPosterior:
    def __new__(cls, blocks: list[tuple[str, str, list[float]]], likelihood: LdpLikelihood) -> LdpPosterior: ...
    @property
    def dimension(self) -> int: ...
    def log_density(self, u: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]: ...
    def natural(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def coordinates(self, natural: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def compute(self, progress: Callable[[int, int], object] | None = None, tolerance: float = ...) -> LdpComputed: ...

@final
class LdpComputed:
    def summary(self) -> Facts: ...
    def draws(self, number: int, key: tuple[int, int]) -> npt.NDArray[np.float64]: ...
    def probabilities(self, parameter: int, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def quantiles(self, parameter: int, probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

@final
class LdpChains:
    def __new__(cls, keys: list[list[int]]) -> LdpChains: ...
    def run(
        self,
        posterior: LdpPosterior,
        settings: tuple[int, int, int, float],
        starts: list[list[float] | None],
        threads: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> None: ...
    def take(self) -> list[dict[str, Array]]: ...

def ldp_tractable(
    z: npt.NDArray[np.float64], g: list[float], h: list[float], interval: tuple[float, float], sd: float
) -> npt.NDArray[np.float64]: ...
def ldp_cells(
    released: npt.NDArray[np.float64], bounds: tuple[float, float], number: int
) -> tuple[int, int, int, npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def ldp_exact_sums(rows: npt.NDArray[np.float64], products: bool) -> list[int]: ...
def ldp_logistic_normal(mean: float, variance: float) -> list[float]: ...
