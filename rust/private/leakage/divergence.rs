//! Privacy levels of a channel on a graph: how far apart the rows of neighbors are. In nats.
//!
//! epsilon = max over edges {h, l} and outputs k of |ln C_hk - ln C_lk|: 0 against 0 does not count, 0 against more is infinite;
//! delta(epsilon) = max over ordered edges of sum_k max(0, C_hk - e^epsilon C_lk);
//! Renyi of order a = max over ordered edges of ln(sum_k C_hk^a C_lk^(1-a)) / (a - 1), with its limits at a = 1 and infinity;
//! the level of a metric d is the least epsilon with |ln C_hk - ln C_lk| <= epsilon d(h, l) for all pairs.
//!
//! For the level on edges the matrix is cut into strips of columns that fit the cache; within a strip every edge takes
//! one pass, and there is one logarithm at the end.
//!
//! Source: M. Alvim, M. Andres, K. Chatzikokolakis, C. Palamidessi (2011), On the relation between differential privacy and
//! quantitative information flow; of other orders: I. Mironov (2017), Renyi differential privacy, definition 4.

use super::ChannelMatrix;
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result, parallel};

/// Bytes of a strip: it has to stay in the second-level cache while all edges go over it.
const STRIP: usize = 1 << 19;

/// The edges of a graph between different rows of a channel.
fn edges_of(matrix: ChannelMatrix<'_>, graph: &Graph) -> Result<Vec<(u32, u32)>> {
    let vertices = graph.vertices();
    if matrix.rows() != vertices {
        let found = format_args!("({}, {})", matrix.rows(), matrix.cols());
        return Err(Error::shape("matrix", format_args!("({vertices}, ...)"), found));
    }
    Ok(graph.edges().iter().copied().filter(|(u, v)| u != v).collect())
}

/// The least epsilon for which the channel is private on the graph.
///
/// # Errors
/// [`Error::Shape`] unless there is a row for each vertex; the monitor's objection.
pub fn epsilon(matrix: ChannelMatrix<'_>, graph: &Graph, threads: usize, monitor: &mut dyn Monitor) -> Result<f64> {
    let edges = edges_of(matrix, graph)?;
    if edges.is_empty() {
        return Ok(0.0);
    }
    let width = (STRIP / 8 / matrix.rows()).clamp(8, 512).min(matrix.cols());
    let strips = matrix.cols().div_ceil(width);
    let ratio = parallel::run(threads, strips as u64, monitor, |progress| {
        let strip = |index: usize| strip_ratio(matrix, &edges, index * width, width, progress);
        // The largest is the same in whatever order it is found.
        Ok(parallel::try_map(strips, strip)?.into_iter().fold(1.0, f64::max))
    })?;
    if ratio < f64::INFINITY {
        return Ok(ratio.ln());
    }
    // Either a zero faces more than zero, or a ratio was too large for a float.
    let gap = |i: usize| log_gap(matrix.row(edges[i].0 as usize), matrix.row(edges[i].1 as usize));
    parallel::run(threads, 1, monitor, |_| Ok(parallel::map(edges.len(), gap).into_iter().fold(0.0, f64::max)))
}

/// The largest ratio between neighbors within the columns from `from` on.
fn strip_ratio(
    matrix: ChannelMatrix<'_>,
    edges: &[(u32, u32)],
    from: usize,
    width: usize,
    progress: &Progress,
) -> Result<f64> {
    let width = width.min(matrix.cols() - from);
    let mut strip = Vec::with_capacity(matrix.rows() * width);
    for row in matrix.iter() {
        strip.extend_from_slice(&row[from..from + width]);
    }
    let mut most = 1.0;
    for edges in edges.chunks(1 << 14) {
        most = edges_ratio(&strip, edges, width, most);
        progress.check()?;
    }
    progress.advance(1)?;
    Ok(most)
}

/// Columns looked at together.
const LANES: usize = 16;

/// The largest ratio over some edges, if it is above `most`. A division is made only where a product says that there is a
/// larger ratio, which costs at most the last place of the result.
fn edges_ratio(strip: &[f64], edges: &[(u32, u32)], width: usize, most: f64) -> f64 {
    at_level!(level(), {
        let mut most = most;
        for &(h, l) in edges {
            let (h, l) = (&strip[h as usize * width..][..width], &strip[l as usize * width..][..width]);
            let (h, l) = (h.chunks_exact(LANES), l.chunks_exact(LANES));
            for (&a, &b) in h.remainder().iter().zip(l.remainder()) {
                let (high, low) = if a > b { (a, b) } else { (b, a) };
                if high > most * low {
                    most = high / low;
                }
            }
            for (h, l) in h.zip(l) {
                let mut above = false;
                for lane in 0..LANES {
                    let (high, low) = if h[lane] > l[lane] { (h[lane], l[lane]) } else { (l[lane], h[lane]) };
                    // 0 against 0 is never above; once `most` is infinite, nothing is.
                    above |= high > most * low;
                }
                if above {
                    for (&a, &b) in h.iter().zip(l) {
                        let (high, low) = if a > b { (a, b) } else { (b, a) };
                        if high > most * low {
                            most = high / low;
                        }
                    }
                }
            }
        }
        most
    })
}

/// The largest difference of logarithms between two rows.
fn log_gap(h: &[f64], l: &[f64]) -> f64 {
    let gap = |(&a, &b): (&f64, &f64)| if a == b { 0.0 } else { (a.ln() - b.ln()).abs() };
    h.iter().zip(l).map(gap).fold(0.0, f64::max)
}

/// The least epsilon for which the channel is private for a metric: `distances` holds d(h, l) for all pairs, in row-major
/// order. Pairs at infinite distance do not count; at distance 0 the rows have to be equal.
///
/// # Errors
/// [`Error::Shape`] unless there is a distance for each pair; the monitor's objection.
pub fn metric_epsilon(
    matrix: ChannelMatrix<'_>,
    distances: &[f64],
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<f64> {
    let n = matrix.rows();
    if distances.len() != n * n {
        return Err(Error::shape("metric", format_args!("({n}, {n})"), format_args!("{} entries", distances.len())));
    }
    parallel::run(threads, n as u64, monitor, |progress| {
        let level = |h: usize| {
            let pair = |l: usize| match (distances[h * n + l], log_gap(matrix.row(h), matrix.row(l))) {
                (_, 0.0) => 0.0,
                (f64::INFINITY, _) => 0.0,
                (distance, gap) => gap / distance,
            };
            progress.advance(1)?;
            Ok((h + 1..n).map(pair).fold(0.0, f64::max))
        };
        Ok(parallel::try_map(n, level)?.into_iter().fold(0.0, f64::max))
    })
}

/// The largest of a divergence over ordered edges.
fn over_edges(
    matrix: ChannelMatrix<'_>,
    graph: &Graph,
    threads: usize,
    monitor: &mut dyn Monitor,
    divergence: impl Fn(&[f64], &[f64]) -> f64 + Sync,
) -> Result<f64> {
    let edges = edges_of(matrix, graph)?;
    if edges.is_empty() {
        return Ok(0.0);
    }
    parallel::run(threads, edges.len() as u64, monitor, |progress| {
        let both = |i: usize| {
            let (h, l) = (matrix.row(edges[i].0 as usize), matrix.row(edges[i].1 as usize));
            progress.advance(1)?;
            Ok(f64::max(divergence(h, l), divergence(l, h)))
        };
        Ok(parallel::try_map(edges.len(), both)?.into_iter().fold(0.0, f64::max))
    })
}

/// The least delta for which the channel is (epsilon, delta)-private on the graph.
///
/// # Errors
/// [`Error::Domain`] unless epsilon is at least 0, [`Error::Shape`] unless there is a row for each vertex; the monitor's
/// objection.
pub fn delta(
    matrix: ChannelMatrix<'_>,
    graph: &Graph,
    epsilon: f64,
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<f64> {
    Error::require((0.0..=f64::INFINITY).contains(&epsilon), "epsilon", epsilon, "at least 0")?;
    let factor = epsilon.exp();
    over_edges(matrix, graph, threads, monitor, |h, l| excess(h, l, factor).min(1.0))
}

/// sum_k max(0, h_k - factor l_k); a zero of l counts as zero whatever the factor.
fn excess(h: &[f64], l: &[f64], factor: f64) -> f64 {
    at_level!(level(), {
        let mut parts = [0.0; 8];
        let (h, l) = (h.chunks_exact(8), l.chunks_exact(8));
        let gap = |a: f64, b: f64| {
            let bound = if b > 0.0 { factor * b } else { 0.0 };
            if a > bound { a - bound } else { 0.0 }
        };
        let rest: f64 = h.remainder().iter().zip(l.remainder()).map(|(&a, &b)| gap(a, b)).sum();
        for (h, l) in h.zip(l) {
            for lane in 0..8 {
                parts[lane] += gap(h[lane], l[lane]);
            }
        }
        parts.iter().sum::<f64>() + rest
    })
}

/// The least level of Renyi privacy of order `alpha` on the graph.
///
/// # Errors
/// [`Error::Domain`] unless `alpha` is at least 0, [`Error::Shape`] unless there is a row for each vertex; the monitor's
/// objection.
pub fn renyi(
    matrix: ChannelMatrix<'_>,
    graph: &Graph,
    alpha: f64,
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<f64> {
    Error::require((0.0..=f64::INFINITY).contains(&alpha), "alpha", alpha, "at least 0")?;
    if alpha == f64::INFINITY {
        return epsilon(matrix, graph, threads, monitor);
    }
    over_edges(matrix, graph, threads, monitor, |p, q| renyi_divergence(p, q, alpha))
}

/// The Renyi divergence of order `alpha` of one row from another, in nats.
pub fn renyi_divergence(p: &[f64], q: &[f64], alpha: f64) -> f64 {
    let pairs = || p.iter().copied().zip(q.iter().copied()).filter(|&(p, _)| p > 0.0);
    let apart = pairs().any(|(_, q)| q == 0.0);
    if alpha >= 1.0 && apart {
        return f64::INFINITY;
    }
    if alpha == 0.0 {
        // The mass of q where p lives; p and q may both sum to a little more than 1.
        return (-pairs().map(|(_, q)| q).sum::<f64>().ln()).max(0.0);
    }
    if alpha == 1.0 {
        // Each term p ln(p/q) - p + q is at least 0, so nothing cancels; what q has where p is zero comes on top.
        let beyond: f64 = p.iter().zip(q).filter(|&(&p, _)| p == 0.0).map(|(_, &q)| q).sum();
        return (pairs().map(|(p, q)| p * (p.ln() - q.ln()) - p + q).sum::<f64>() + beyond).max(0.0);
    }
    let both = || pairs().filter(|&(_, q)| q > 0.0);
    let exponent = |p: f64, q: f64| (alpha - 1.0) * (p.ln() - q.ln());
    let value = if !apart && both().all(|(p, q)| exponent(p, q).abs() < 0.5) {
        // sum_k p_k (e^t_k - 1), whose logarithm loses nothing near order 1.
        both().map(|(p, q)| p * exponent(p, q).exp_m1()).sum::<f64>().ln_1p()
    } else {
        let terms = || both().map(|(p, q)| p.ln() + exponent(p, q));
        let most = terms().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return f64::INFINITY; // nothing in common, alpha < 1
        }
        most + terms().map(|term| (term - most).exp()).sum::<f64>().ln()
    };
    (value / (alpha - 1.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::channel::tests::view;
    use super::*;
    use crate::graphs::{complete, grid};
    use crate::monitor::Silent;
    use proptest::prelude::*;

    const CLOSE: f64 = 1e-14;

    #[test]
    fn randomized_response_has_its_level() {
        let entries = [0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.25, 0.5];
        let graph = complete(3).unwrap();
        let matrix = view(&entries, 3);
        assert!((epsilon(matrix, &graph, 1, &mut Silent).unwrap() - 2f64.ln()).abs() < CLOSE);
        assert!((delta(matrix, &graph, 0.0, 1, &mut Silent).unwrap() - 0.25).abs() < CLOSE);
        assert_eq!(delta(matrix, &graph, 0.7, 1, &mut Silent).unwrap(), 0.0);
        let collision = (0.25 / 0.5f64 * 0.25 + 0.25 / 0.25 * 0.5 * 2.0 + 0.25).ln();
        assert!((renyi(matrix, &graph, 2.0, 1, &mut Silent).unwrap() - collision).abs() < CLOSE);
        assert!((renyi(matrix, &graph, f64::INFINITY, 1, &mut Silent).unwrap() - 2f64.ln()).abs() < CLOSE);
        assert!((renyi(matrix, &graph, 1.0, 1, &mut Silent).unwrap() - 0.25 * 2f64.ln()).abs() < CLOSE);
    }

    #[test]
    fn zeros_facing_more_are_infinite_and_zeros_facing_zeros_are_nothing() {
        let graph = grid(&[2]).unwrap();
        let level = |entries: &[f64]| epsilon(view(entries, 2), &graph, 1, &mut Silent).unwrap();
        assert_eq!(level(&[1.0, 0.0, 0.5, 0.5]), f64::INFINITY);
        assert!((level(&[0.0, 0.5, 0.5, 0.0, 0.25, 0.75]) - 2f64.ln()).abs() < CLOSE);
        // A ratio beyond the largest float is still a finite level.
        assert!((level(&[1.0, 5e-324, 0.5, 0.5]) - (0.5f64.ln() - 5e-324f64.ln())).abs() < 1e-12);
        assert_eq!(renyi(view(&[1.0, 0.0, 0.5, 0.5], 2), &graph, 2.0, 1, &mut Silent).unwrap(), f64::INFINITY);
        assert_eq!(delta(view(&[1.0, 0.0, 0.0, 1.0], 2), &graph, f64::INFINITY, 1, &mut Silent).unwrap(), 1.0);
    }

    #[test]
    fn without_edges_nothing_is_asked() {
        let graph = Graph::new(2, vec![(1, 1)]).unwrap();
        let matrix = view(&[1.0, 0.0, 0.0, 1.0], 2);
        assert_eq!(epsilon(matrix, &graph, 1, &mut Silent), Ok(0.0));
        assert_eq!(renyi(matrix, &graph, 3.0, 1, &mut Silent), Ok(0.0));
        assert_eq!(delta(matrix, &graph, 0.1, 1, &mut Silent), Ok(0.0));
        assert!(epsilon(matrix, &grid(&[3]).unwrap(), 1, &mut Silent).is_err());
    }

    #[test]
    fn a_metric_that_takes_no_notice_of_a_pair_allows_anything_there() {
        let matrix = view(&[1.0, 0.0, 0.0, 1.0], 2);
        let level = |d: f64| metric_epsilon(matrix, &[0.0, d, d, 0.0], 1, &mut Silent).unwrap();
        assert_eq!((level(f64::INFINITY), level(1.0)), (0.0, f64::INFINITY));
        let matrix = view(&[0.5, 0.5, 0.25, 0.75], 2);
        let level = |d: f64| metric_epsilon(matrix, &[0.0, d, d, 0.0], 1, &mut Silent).unwrap();
        assert!((level(2.0) - 0.5 * 2f64.ln()).abs() < CLOSE);
        assert_eq!(level(0.0), f64::INFINITY);
    }

    fn channel(rows: usize, cols: usize) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.01..1.0f64, rows * cols).prop_map(move |mut entries| {
            for row in entries.chunks_exact_mut(cols) {
                let total: f64 = row.iter().sum();
                row.iter_mut().for_each(|entry| *entry /= total);
            }
            entries
        })
    }

    proptest! {
        #[test]
        fn the_level_is_the_same_entry_by_entry_and_for_any_number_of_threads(entries in channel(5, 37)) {
            let (matrix, graph) = (view(&entries, 5), grid(&[5]).unwrap());
            let plain = (0..4)
                .flat_map(|h| (0..37).map(move |k| (h, k)))
                .map(|(h, k)| (matrix.row(h)[k].ln() - matrix.row(h + 1)[k].ln()).abs())
                .fold(0.0, f64::max);
            let one = epsilon(matrix, &graph, 1, &mut Silent).unwrap();
            prop_assert!((one - plain).abs() < CLOSE);
            prop_assert_eq!(one, epsilon(matrix, &graph, 3, &mut Silent).unwrap());
        }

        #[test]
        fn renyi_levels_rise_with_the_order_and_are_continuous(entries in channel(2, 9)) {
            let matrix = view(&entries, 2);
            let level = |alpha| renyi_divergence(matrix.row(0), matrix.row(1), alpha);
            let orders = [0.0, 0.3, 0.999, 1.0, 1.001, 2.0, 17.0, 1e3, 1e6];
            for pair in orders.windows(2) {
                prop_assert!(level(pair[0]) <= level(pair[1]) + CLOSE);
            }
            prop_assert!((level(1.0) - level(1.0 + 1e-9)).abs() < 1e-6);
            prop_assert!((level(1e9) - level_infinite(matrix.row(0), matrix.row(1))).abs() < 1e-6);
        }
    }

    fn level_infinite(p: &[f64], q: &[f64]) -> f64 {
        p.iter().zip(q).map(|(p, q)| (p / q).ln()).fold(0.0, f64::max)
    }
}
