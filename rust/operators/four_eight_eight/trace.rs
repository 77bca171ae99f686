//! Sections closed in the direction of the columns: a trace over seams.
//!
//! Summed over the vertical links of one column, the operator of a column is R = sum over U of m(U) e_U e_U^T: the links block
//! the diamonds of U, and e_U allows every word on the others. With J the links between columns, columns around the section are
//!
//!   trace((R J)^N) = sum over U of m(U) e_U^T J (R J)^(N-1) e_U = sum over U of m(U) w^T X w,
//!
//! and since the word on the right reads the same backwards, half of the columns do: X = J, w = (R J)^((N-1)/2) e_U for odd N,
//! X = R, w = J (R J)^((N-2)/2) e_U for even N. One U of each orbit under the symmetries of a column serves for all.
//!
//! Source: derived here from the operator of a column in [`super`].

use super::cut::{ColumnCut, Half};
use super::seed;
use super::tile::Turn;
use crate::Result;
use crate::numeric::ring::Ring;
use crate::strip::Context;

/// Products in a row; the rows are added separately, which keeps the error of real numbers small.
const ROW: usize = 1 << 10;

/// Elements that a seam needs: the vectors, and a copy of one.
pub fn len(cut: &ColumnCut) -> usize {
    cut.len() + (1 << cut.diamonds())
}

/// Additions of one seam.
pub fn cost(cut: &ColumnCut, columns: u64) -> u64 {
    parts(columns).into_iter().flat_map(|(count, cross)| turns(count, cross)).map(|(h, turn)| cut.work(h, turn)).sum()
}

/// Roundings on the way to a term.
pub fn bound(cut: &ColumnCut, columns: u64) -> u64 {
    let words = 1u64 << cut.diamonds();
    let dots = 2 * ROW as u64 + words / ROW as u64;
    let seams = 64 + 4 * u64::from(cut.diamonds());
    (columns / 2 + 1).saturating_mul(6 * u64::from(cut.diamonds()) + 8).saturating_add(dots + seams)
}

/// Whole columns with all their links, and then without those behind the last one.
fn parts(columns: u64) -> [(u64, bool); 2] {
    match columns % 2 {
        1 => [(0, true), ((columns - 1) / 2, false)],
        _ => [((columns - 2) / 2, true), (1, false)],
    }
}

/// The term of the seams that block these diamonds.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn term<R: Ring>(
    cut: &ColumnCut,
    context: Context<R>,
    columns: u64,
    blocked: usize,
    space: &mut [R::Element],
) -> Result<R::Element> {
    let (weight, ring) = (context.weight, &context.weight.ring);
    let all = 1usize << cut.diamonds();
    let (vector, kept) = space.split_at_mut(cut.len());
    let [(before, _), (after, _)] = parts(columns);
    let odd = columns % 2 == 1;

    seed::seam(cut, weight, vector, blocked, !odd || after > 0);
    pass(cut, context, vector, before, true)?;
    if cut.is_ring() && before > 0 {
        cross(context, &mut vector[..all], cut.sites());
    }
    kept.copy_from_slice(&vector[..all]);
    pass(cut, context, vector, after, false)?;
    if odd {
        kept.copy_from_slice(&vector[..all]);
        (0..cut.diamonds()).for_each(|bit| cross(context, kept, bit));
    }
    let powers = weight.powers(if weight.unit { 0 } else { cut.diamonds() as usize });
    let rows = (0..all).step_by(ROW).map(|first| {
        let words = first..(first + ROW).min(all);
        if weight.unit {
            return ring.dot(words.map(|word| (vector[word], kept[word])));
        }
        ring.dot(words.map(|word| (ring.mul(vector[word], powers[word.count_ones() as usize]), kept[word])))
    });
    let sum = rows.fold(ring.zero(), |sum, row| ring.fold(ring.add(sum, row)));
    context.progress.check()?;
    Ok(ring.mul(sum, seed::links(cut, weight, blocked)))
}

/// One column and all the links behind it: J R on the words of the W corners.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn apply<R: Ring>(cut: &ColumnCut, context: Context<R>, vector: &mut [R::Element]) -> Result<()> {
    pass(cut, context, vector, 1, true)?;
    if cut.is_ring() {
        cross(context, &mut vector[..1 << cut.diamonds()], cut.sites());
    }
    Ok(())
}

fn pass<R: Ring>(
    cut: &ColumnCut,
    context: Context<R>,
    vector: &mut [R::Element],
    columns: u64,
    cross: bool,
) -> Result<()> {
    turns(columns, cross).try_for_each(|(half, turn)| cut.turn(context, vector, half, turn))
}

/// Crosses the link behind the diamond of one bit.
fn cross<R: Ring>(context: Context<R>, words: &mut [R::Element], bit: u32) {
    let (weight, ring) = (context.weight, &context.weight.ring);
    for block in words.chunks_exact_mut(2 << bit) {
        let (zero, one) = block.split_at_mut(1 << bit);
        for (x, y) in zero.iter_mut().zip(one) {
            let occupied = if weight.unit { *y } else { ring.mul(*y, weight.activity) };
            (*x, *y) = (ring.fold(ring.add(*x, occupied)), *x);
        }
    }
}

/// The turns of whole columns; `cross` says whether the last one crosses its links.
fn turns(columns: u64, cross: bool) -> impl Iterator<Item = (Half, Turn)> {
    let count = if columns == 0 { 0 } else { columns + 1 };
    (0..count).map(move |k| {
        let half = if k % 2 == 0 { Half::Low } else { Half::High };
        (half, Turn { down: k > 0, up: k < columns, cross: cross || k + 1 < columns })
    })
}
