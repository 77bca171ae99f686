//! The compiled module `quincunx._core`: one line per exported name.

use pyo3::prelude::*;

mod arrays;
mod automorphisms;
mod boundary;
mod counting;
mod distributions;
mod entropy;
mod factorization;
mod graphs;
mod inference;
mod job;
mod lattices;
mod ldp;
mod leakage;
mod posterior;
mod privacy;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::automorphisms::{
        PairOrbits, PermutationGroup, distances, distances_from, is_distance_degree_regular, sphere_sizes,
    };
    #[pymodule_export]
    use crate::boundary::{available_memory, available_threads, forget_pools, make_globals, simd_level, to_decimal};
    #[pymodule_export]
    use crate::counting::{
        CheckpointLock, ExactPlan, combine_residues, couple_perfect_matchings, estimate_cost, hard_core_float,
        log_spanning_trees, maximum_matching, plan_clusters, plan_even_subgraphs, plan_independent_sets,
        plan_matchings, plan_perfect_matchings, plan_spanning_trees, primes, residues, trees_times_index,
    };
    #[pymodule_export]
    use crate::distributions::{
        distribution_draws, distribution_quantiles, distribution_statistics, distribution_values,
        two_piece_poisson_log_marginals,
    };
    #[pymodule_export]
    use crate::entropy::{PeriodicOperator, corner_bounds, window_bounds};
    #[pymodule_export]
    use crate::factorization::{
        CoordinateAscent, GibbsChain, ReleasedCounts, exact_sums, expected_counts, factor_rates, log_likelihoods,
    };
    #[pymodule_export]
    use crate::graphs::{clique_insert, complete, grid, hamming, torus};
    #[pymodule_export]
    use crate::inference::Trace;
    #[pymodule_export]
    use crate::lattices::{
        NamedLattice, aztec_diamond, check_cell, check_simple, clique_insert_cell, clique_insertion_size,
        four_eight_eight, generalized_aztec, lattice_section, named_lattices, triangulated_grid,
    };
    #[pymodule_export]
    use crate::ldp::{
        LdpChains, LdpComputed, LdpLikelihood, LdpPosterior, ldp_cells, ldp_exact_sums, ldp_logistic_normal,
        ldp_tractable,
    };
    #[pymodule_export]
    use crate::leakage::{
        average_channel, average_hamming, channel_delta, channel_epsilon, channel_renyi, check_channel, column_maxima,
        metric_epsilon, mutual_information, renyi_entropy, shannon_capacity,
    };
    #[pymodule_export]
    use crate::posterior::{
        CubeNoise, PackedBits, ParameterGrid, TableCovariance, ball_normal, choose, count_families, parity_sensitivity,
        posterior_epsilon, sample_records, trimmed_dirichlet, trimmed_dirichlet_error, walsh_transform,
    };
    #[pymodule_export]
    use crate::privacy::{
        PrivacyLosses, RoundedSampler, WholeSampler, clip_records, discrete_gaussian_delta, encode_unary, flip_bits,
        flip_chance, gaussian_delta, gaussian_epsilon, gaussian_sigma, gaussian_sigma_alongside, hadamard_responses,
        hash_categories, linear_regression_sensitivity, logistic_regression_sensitivity, miss_chance,
        redraw_categories, redraw_chance, renyi_divergence, select_subsets, zcdp_delta, zcdp_epsilon,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__build_profile__", env!("QUINCUNX_PROFILE"))
    }
}
