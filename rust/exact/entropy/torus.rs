//! Traces of row operators: `tr T_n^l` on a ring of n letters, for a few rows l and many n, from above.
//!
//! The torus of n letters and l rows is the trace of `S^n`, where `S` acts along the rows: for a face model on words of l
//! letters, for a vertex model on words of l bonds. Entries are not negative, so that a computed power is right to a relative
//! error that is proved. Half steps alternate with their transposes: `tr (A A^T)^k`, `l = 2k`.
//!
//! Source: tr T^l as beta^l in theorem D of `docs/mathematics/entropy.md`.

use super::model::RowModel;
use crate::Result;
use crate::monitor::Progress;

/// Most words that `S` is formed for at once; and where that proves no gap, or hardly one.
pub const MAX_WORDS: [usize; 2] = [400, 1100];

/// `(n, ln tr S^n + error)` for n = 1, 2, 4, ...
pub type LogTraces = Vec<(u64, f64)>;

/// `(n, ln tr S^n + error)` for n = 1, 2, 4, ..., up to `longest`; `None` where `S` would have more than so many words.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn log_traces(
    model: &RowModel,
    rows: usize,
    z: f64,
    longest: u64,
    most_words: usize,
    progress: &Progress,
) -> Result<Option<LogTraces>> {
    let Some(words) = words(model, rows, most_words) else { return Ok(None) };
    let size = words.len();
    let mut matrix = vec![0.0; size * size];
    for (i, from) in words.iter().enumerate() {
        progress.check()?;
        for (j, to) in words.iter().enumerate() {
            matrix[i * size + j] = entry(model, from, to, z);
        }
    }
    // An entry is a sum of products of at most 4 l numbers that are right to a few units each.
    let unit = f64::EPSILON;
    let (mut log, mut error) = (0.0f64, 24.0 * rows as f64 * unit);
    let mut traces = Vec::new();
    let mut n = 1;
    loop {
        let trace: f64 = (0..size).map(|i| matrix[i * size + i]).sum();
        let rounding = 4.0 * unit * (trace.ln().abs() + log.abs());
        traces.push((n, trace.ln() + log + rounding + error + size as f64 * unit));
        if n >= longest {
            return Ok(Some(traces));
        }
        let most = matrix.iter().copied().fold(0.0, f64::max);
        matrix.iter_mut().for_each(|x| *x /= most);
        let mut square = vec![0.0; size * size];
        for (i, (row, out)) in matrix.chunks_exact(size).zip(square.chunks_exact_mut(size)).enumerate() {
            if i % 64 == 0 {
                progress.check()?;
            }
            for (&x, line) in row.iter().zip(matrix.chunks_exact(size)).filter(|(x, _)| **x != 0.0) {
                out.iter_mut().zip(line).for_each(|(sum, &y)| *sum += x * y);
            }
        }
        // Underflow loses at most what the smallest number times `size` adds to a trace of at least one. Logarithms may be
        // negative, and cancel, where weights are below one.
        let grown = log + most.ln();
        error = 2.0 * (error + 4.0 * unit * (grown.abs() + most.ln().abs())) + (size as f64 + 8.0) * unit;
        (matrix, log, n) = (square, 2.0 * grown, 2 * n);
    }
}

/// Words of bonds, or `None` if there are too many.
fn words(model: &RowModel, rows: usize, most_words: usize) -> Option<Vec<Vec<usize>>> {
    let follows = |p: usize, q: usize| match &model.bond_letters {
        // The letter below one bond is the one above the next.
        Some(letters) => letters[p].1 == letters[q].0,
        None => true,
    };
    let bonds = model.bond_sector.len();
    let mut words: Vec<Vec<usize>> = (0..bonds).map(|p| vec![p]).collect();
    for _ in 1..rows {
        let longer = words.iter().flat_map(|word| {
            let last = word[word.len() - 1];
            (0..bonds).filter(move |&q| follows(last, q)).map(move |q| [&word[..], &[q]].concat())
        });
        words = longer.take(64 * most_words).collect();
        if words.len() == 64 * most_words {
            return None;
        }
    }
    words.retain(|word| follows(word[rows - 1], word[0]));
    (words.len() <= most_words).then_some(words)
}

/// The sum over letters round the ring of rows of the products of weights.
fn entry(model: &RowModel, from: &[usize], to: &[usize], z: f64) -> f64 {
    let letters = model.occupied.len();
    let mut product: Vec<f64> =
        (0..letters * letters).map(|k| f64::from(u8::from(k / letters == k % letters))).collect();
    for (row, (&p, &q)) in from.iter().zip(to).enumerate() {
        let mut next = vec![0.0; letters * letters];
        for entry in model.entries.iter().filter(|entry| (entry.from, entry.to) == (p, q)) {
            let (above, below) =
                if model.half && row % 2 == 1 { (entry.below, entry.above) } else { (entry.above, entry.below) };
            let row = z.powi(model.occupied[above] as i32) * model.row[model.step_above(entry)].value;
            let weight = model.weight(entry, z) * row;
            for first in 0..letters {
                next[first * letters + below] += product[first * letters + above] * weight;
            }
        }
        product = next;
        if product.iter().all(|&x| x == 0.0) {
            return 0.0;
        }
    }
    (0..letters).map(|a| product[a * letters + a]).sum()
}
