//! What a cut between two rows of the square lattice looks like: a path or a ring of vertices, and the operator along it.
//!
//! States of a ring of w >= 3 vertices: X0, the f(w-1) words 0s, then X1, the f(w-3) words 10t0. Its operator is
//! R = (T_{w-1} on X0, T_{w-3} on X1) after the first of
//!
//!   join:    X0[0t0] += X1[t],                    X1[t] <- sum of the old X0[atb] over the symbols a, b that t allows,
//!   part:    X0[atb] += X1[t] for all such a, b,  X1[t] <- the old X0[0t0], its transpose:
//!
//! a new first symbol 0 sees both halves, a new 1 needs an old 0 and leaves the old neighbors of it free. R is symmetric, so
//! two rows are join, T, T, part, and the two T are done at once (`path`).
//!
//! Source: derived here; T is that of [`super`].

use super::path::{Passage, Path, additions};
use super::words::{list, words};
use crate::numeric::dispatch::{Arithmetic, Kernel};
use crate::numeric::ring::Ring;
use crate::{Result, parallel};

/// What the vertices along a cut form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShape {
    /// A path of so many vertices.
    Path(usize),
    /// A ring of so many vertices, three or more.
    Ring(usize),
}

impl CutShape {
    /// A ring of so many vertices; two vertices, joined twice, are as good as a path.
    pub fn ring(length: usize) -> Self {
        if length > 2 { Self::Ring(length) } else { Self::Path(length) }
    }

    /// Vertices along the cut.
    pub fn width(self) -> usize {
        match self {
            Self::Path(width) | Self::Ring(width) => width,
        }
    }

    /// Independent sets of the cut.
    pub fn states(self) -> usize {
        match self {
            Self::Path(width) => words(width),
            Self::Ring(width) => words(width - 1) + words(width - 3),
        }
    }

    /// Additions of one application of the operator.
    pub fn additions(self) -> u64 {
        match self {
            Self::Path(width) => additions(width),
            Self::Ring(width) => additions(width - 1) + additions(width - 3) + 2 * words(width - 1) as u64,
        }
    }

    /// Symmetries of the cut: reflections, and the turns of a ring.
    pub fn symmetries(self) -> usize {
        match self {
            Self::Path(_) => 2,
            Self::Ring(width) => 2 * width,
        }
    }
}

/// A cut and what is needed to move it.
#[derive(Clone, Debug)]
pub struct RowCut {
    shape: CutShape,
    /// All words of a path, or those of a ring that begin with 0.
    open: Path,
    /// The words of a ring that begin with 1, without the three symbols known.
    closed: Option<Closed>,
}

/// The second half of a ring.
#[derive(Clone, Debug)]
struct Closed {
    path: Path,
    /// Whether a short word ends in 0: may be continued by both symbols.
    even: Vec<bool>,
    parts: Vec<WordRange>,
}

/// Words t with the same beginning, and where the words t0, t1 start that they make.
#[derive(Clone, Copy, Debug)]
struct WordRange {
    at: usize,
    continued: usize,
    length: usize,
}

/// The words of a part, at most.
const PART: usize = 16;

impl RowCut {
    /// A cut of this shape.
    pub fn new(shape: CutShape) -> Self {
        match shape {
            CutShape::Path(width) => Self { shape, open: Path::new(width), closed: None },
            CutShape::Ring(width) => Self { shape, open: Path::new(width - 1), closed: Some(Closed::new(width - 3)) },
        }
    }

    /// Its shape.
    pub fn shape(&self) -> CutShape {
        self.shape
    }

    /// Independent sets of the cut.
    pub fn states(&self) -> usize {
        self.shape.states()
    }

    /// Additions of one application of the operator.
    pub fn additions(&self) -> u64 {
        self.shape.additions()
    }

    /// The path, if it is one.
    pub fn as_path(&self) -> Option<&Path> {
        if self.closed.is_none() { Some(&self.open) } else { None }
    }

    /// Both halves of a ring as paths.
    pub fn halves(&self) -> (&Path, Option<&Path>) {
        (&self.open, self.closed.as_ref().map(|closed| &closed.path))
    }

    /// The states in their order, the first vertex in the highest bit.
    pub fn list(&self) -> Vec<u64> {
        let mut states = list(self.open.length());
        if let Some(closed) = &self.closed {
            let first = 1 << self.open.length();
            states.extend(list(closed.path.length()).into_iter().map(|t| first | t << 1));
        }
        states
    }

    /// Moves the cut over one row, or over two with the weights between them.
    pub fn advance<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>, twice: bool) -> Result<()> {
        let Some(closed) = &self.closed else { return self.open.advance(state, passage, twice) };
        let (zero, one) = state.split_at_mut(self.open.states());
        closed.link(zero, one, passage, false)?;
        self.open.advance(zero, passage, twice)?;
        closed.path.advance(one, passage.occupied(), twice)?;
        if twice { closed.link(zero, one, passage, true) } else { Ok(()) }
    }

    /// Multiplies each element by the weight of its state.
    pub fn weigh<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>) {
        let (zero, one) = state.split_at_mut(self.open.states());
        self.open.weigh(zero, passage);
        if let Some(closed) = &self.closed {
            closed.path.weigh(one, passage.occupied());
        }
    }

    /// The sum of products, each times the weight of its state.
    pub fn dot<R: Ring>(&self, left: &[R::Element], right: &[R::Element], passage: Passage<R>) -> R::Element {
        let ((left, left_one), (right, right_one)) =
            (left.split_at(self.open.states()), right.split_at(self.open.states()));
        let sum = self.open.dot(left, right, passage);
        let rest = self.closed.as_ref().map(|closed| closed.path.dot(left_one, right_one, passage.occupied()));
        rest.map_or(sum, |rest| passage.ring.fold(passage.ring.add(sum, rest)))
    }

    /// Most roundings in the sum of products.
    pub fn dot_roundings(&self) -> u64 {
        self.open.dot_roundings() + 1
    }
}

fn collect_parts(part: WordRange, list: &mut Vec<WordRange>) {
    let WordRange { at, continued, length } = part;
    if length <= PART {
        return list.push(part);
    }
    collect_parts(WordRange { at, continued, length: length - 1 }, list);
    collect_parts(
        WordRange { at: at + words(length - 1), continued: continued + words(length), length: length - 2 },
        list,
    );
}

impl Closed {
    fn new(length: usize) -> Self {
        let mut parts = Vec::new();
        collect_parts(WordRange { at: 0, continued: 0, length }, &mut parts);
        let even = list(length.min(PART)).into_iter().map(|t| t & 1 == 0).collect();
        Self { path: Path::new(length), even, parts }
    }

    /// The first half of a row, or the second half of the next.
    fn link<R: Ring>(
        &self,
        zero: &mut [R::Element],
        one: &mut [R::Element],
        passage: Passage<R>,
        part: bool,
    ) -> Result<()> {
        assert!(one.len() >= self.path.states(), "a vector shorter than its words");
        let (inner, outer) = zero.split_at_mut(words(self.path.length() + 1));
        let halves = RingHalves { inner: inner.as_mut_ptr(), outer: outer.as_mut_ptr(), one: one.as_mut_ptr() };
        parallel::tiles(
            self.parts.len(),
            1,
            || Ok(()),
            |(), i| {
                let WordRange { at, continued, length } = self.parts[i];
                let even = &self.even[..words(length)];
                // SAFETY: parts are disjoint, and so are the words they are continued to; those with an occupied first vertex
                // are as many as begin with 0.
                let link = unsafe { halves.link(at, continued, outer_len(self.path.length()), even, part) };
                passage.ring.dispatch(passage.level, link);
                passage.progress.advance(2 * words(length + 2) as u64)
            },
        )
    }
}

/// Words atb with a = 1: as many as there are words t'b with t = 0t'.
fn outer_len(inner: usize) -> usize {
    words(inner)
}

/// Pointers to the halves of a ring's vector.
#[derive(Clone, Copy)]
struct RingHalves<E> {
    inner: *mut E,
    outer: *mut E,
    one: *mut E,
}

// SAFETY: `link` is called for disjoint parts only.
unsafe impl<E: Send> Send for RingHalves<E> {}
// SAFETY: as above.
unsafe impl<E: Send> Sync for RingHalves<E> {}

impl<E> RingHalves<E> {
    /// # Safety
    /// Nobody else uses this part.
    unsafe fn link<'a>(
        &self,
        at: usize,
        continued: usize,
        outer_len: usize,
        even: &'a [bool],
        part: bool,
    ) -> RingLink<'a, E> {
        RingLink {
            inner: self.inner.wrapping_add(continued),
            outer: self.outer.wrapping_add(continued),
            outer_len: outer_len.saturating_sub(continued),
            one: self.one.wrapping_add(at),
            even,
            part,
        }
    }
}

/// `join` or `part` on the words t of one part.
struct RingLink<'a, E> {
    inner: *mut E,
    outer: *mut E,
    outer_len: usize,
    one: *mut E,
    even: &'a [bool],
    part: bool,
}

impl<E> Kernel<E> for RingLink<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        let mut next = 0;
        for (t, &even) in self.even.iter().enumerate() {
            // SAFETY: whoever made the link vouched for it: t0 is at `next`, t1 behind it, and the same for an occupied first
            // vertex while there are such words.
            unsafe {
                let one = self.one.add(t);
                let x = a.load(one);
                let both = 1 + usize::from(even);
                let first = a.load(self.inner.add(next));
                let mut sum = a.zero();
                for (words, len) in [(self.inner, both), (self.outer, both.min(self.outer_len.saturating_sub(next)))] {
                    for word in (0..len).map(|b| words.add(next + b)) {
                        let y = a.load(word);
                        if self.part {
                            a.store(word, a.fold(a.add(y, x)));
                        } else {
                            sum = a.add(sum, y);
                        }
                    }
                }
                if self.part {
                    a.store(one, first);
                } else {
                    a.store(self.inner.add(next), a.fold(a.add(first, x)));
                    a.store(one, a.fold(sum));
                }
                next += both;
            }
        }
    }
}
