//! The independent sets of a frontier, as masks in rising order, without a list of them.
//!
//! A set is a mask over the frontier's vertices. In rising order the sets whose highest members are given form a run, and
//! so on down: a walk keeps, for each member chosen, which lower vertices are still allowed.
//!
//! Source: derived here; the sets are the states of [`super::set_table`].

/// A set of vertices `0..64 W`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask<const W: usize>(pub [u64; W]);

impl<const W: usize> Mask<W> {
    /// No vertex.
    pub const EMPTY: Self = Self([0; W]);

    /// The vertices `0..n`.
    #[inline(always)]
    pub fn below(n: usize) -> Self {
        Self(std::array::from_fn(|i| match n.saturating_sub(64 * i) {
            0 => 0,
            bits if bits < 64 => (1 << bits) - 1,
            _ => u64::MAX,
        }))
    }

    /// From words, missing ones zero.
    pub fn from_words(words: &[u64]) -> Self {
        Self(std::array::from_fn(|i| words.get(i).copied().unwrap_or(0)))
    }

    /// Whether there is no vertex.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether the sets share a vertex.
    #[inline(always)]
    pub fn meets(self, other: Self) -> bool {
        !self.and(other).is_empty()
    }

    /// The vertices in both.
    #[inline(always)]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The vertices not in the other.
    #[inline(always)]
    pub fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// With one vertex more.
    #[inline(always)]
    pub fn with(mut self, vertex: usize) -> Self {
        self.0[vertex / 64] |= 1 << (vertex % 64);
        self
    }

    /// Whether a vertex is in.
    #[inline(always)]
    pub fn has(self, vertex: usize) -> bool {
        self.0[vertex / 64] >> (vertex % 64) & 1 == 1
    }

    /// The number of vertices.
    #[inline(always)]
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The vertices from `n` on, counted from there.
    #[inline(always)]
    pub fn shifted(self, n: usize) -> Self {
        let (words, bits) = (n / 64, n % 64);
        let word = |i: usize| self.0.get(i).copied().unwrap_or(0);
        let high = |i: usize| if bits == 0 { 0 } else { word(i + words + 1) << (64 - bits) };
        Self(std::array::from_fn(|i| word(i + words) >> bits | high(i)))
    }

    /// The vertices in rising order.
    #[inline(always)]
    pub fn members(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let i = self.0.iter().position(|&word| word != 0)?;
            let vertex = 64 * i + self.0[i].trailing_zeros() as usize;
            self.0[i] &= self.0[i] - 1;
            Some(vertex)
        })
    }
}

/// In rising order of the numbers the masks are.
impl<const W: usize> Ord for Mask<W> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl<const W: usize> PartialOrd for Mask<W> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Visits the independent sets `set + s`, with `s` within `allowed` and not below `stop`, in rising order; `allowed` lies
/// below `set`. Each comes with the vertices below `stop` that it allows.
pub fn walk<const W: usize>(
    rows: &[Mask<W>],
    stop: usize,
    set: Mask<W>,
    allowed: Mask<W>,
    visit: &mut impl FnMut(Mask<W>, Mask<W>),
) {
    let below = Mask::below(stop);
    visit(set, allowed.and(below));
    for vertex in allowed.without(below).members() {
        let fewer = allowed.and(Mask::below(vertex)).without(rows[vertex]);
        walk(rows, stop, set.with(vertex), fewer, visit);
    }
}

/// The number of independent sets within `allowed`, unless that takes more than `effort` branchings or 64 bits.
pub fn count<const W: usize>(rows: &[Mask<W>], allowed: Mask<W>, effort: &mut u64) -> Option<u64> {
    *effort = effort.checked_sub(1)?;
    let degree = |v: usize| rows[v].and(allowed).len();
    let (mut crowded, mut most, mut ends) = (0, 0, 0);
    for vertex in allowed.members() {
        let degree = degree(vertex);
        ends += u32::from(degree == 1);
        if degree > most {
            (crowded, most) = (vertex, degree);
        }
    }
    if most <= 1 {
        return 3u64.checked_pow(ends / 2)?.checked_mul(1u64.checked_shl(allowed.len() - ends)?);
    }
    let without = allowed.without(Mask::EMPTY.with(crowded));
    count(rows, without, effort)?.checked_add(count(rows, without.without(rows[crowded]), effort)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows<const W: usize>(n: usize, edges: &[(usize, usize)]) -> Vec<Mask<W>> {
        let mut rows = vec![Mask::EMPTY; n];
        for &(u, v) in edges.iter().filter(|(u, v)| u != v) {
            rows[u % n] = rows[u % n].with(v % n);
            rows[v % n] = rows[v % n].with(u % n);
        }
        (0..n).for_each(|v| rows[v] = rows[v].without(Mask::EMPTY.with(v)));
        rows
    }

    #[test]
    fn masks_reach_over_words() {
        let mask = Mask::<3>::below(130);
        assert_eq!((mask.len(), mask.has(129), mask.has(130)), (130, true, false));
        assert_eq!(mask.without(Mask::below(128)).members().collect::<Vec<_>>(), [128, 129]);
        assert_eq!(Mask::<2>::below(64).0, [u64::MAX, 0]);
    }

    #[test]
    fn a_complete_graph_of_a_hundred_vertices_has_101_sets() {
        let edges: Vec<_> = (0..100).flat_map(|u| (0..u).map(move |v| (u, v))).collect();
        let rows = rows::<2>(100, &edges);
        let mut visited = 0;
        walk(&rows, 0, Mask::EMPTY, Mask::below(100), &mut |_, _| visited += 1);
        assert_eq!((visited, count(&rows, Mask::below(100), &mut 1000)), (101, Some(101)));
        assert_eq!(count(&rows, Mask::below(100), &mut 10), None);
        assert_eq!(count::<2>(&self::rows(100, &[]), Mask::below(100), &mut 1000), None);
    }

    proptest! {
        #[test]
        fn walks_visit_every_independent_set_in_rising_order(edges in prop::collection::vec((0usize..11, 0usize..11), 0..30)) {
            let rows = rows::<1>(11, &edges);
            let expected: Vec<u64> =
                (0..1u64 << 11).filter(|&s| (0..11).all(|v| s >> v & 1 == 0 || rows[v].0[0] & s == 0)).collect();
            let mut visited = Vec::new();
            walk(&rows, 0, Mask::EMPTY, Mask::below(11), &mut |set, _| visited.push(set.0[0]));
            let mut by_parts = Vec::new();
            walk(&rows, 4, Mask::EMPTY, Mask::below(11), &mut |head, allowed| {
                walk(&rows, 0, head, allowed, &mut |set, _| by_parts.push(set.0[0]));
            });
            prop_assert_eq!(&by_parts, &visited);
            prop_assert_eq!(count(&rows, Mask::below(11), &mut 5000), Some(expected.len() as u64));
            prop_assert_eq!(visited, expected);
        }
    }
}
