//! Permutations that list only the points they move.

use crate::{Error, Result};

/// A permutation of `0..n` for any `n` above its largest moved point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permutation {
    /// Moved points in rising order, each with its image.
    moved: Box<[(u32, u32)]>,
}

impl Permutation {
    /// The permutation with these moves; points that stay may be among them.
    ///
    /// The moves must map some set of distinct points onto itself.
    pub(super) fn from_moves(mut moves: Vec<(u32, u32)>) -> Self {
        moves.retain(|(from, to)| from != to);
        moves.sort_unstable();
        Self { moved: moves.into_boxed_slice() }
    }

    /// The permutation with these moves, or a refusal if they do not map a set of distinct points onto itself.
    pub(super) fn from_checked_moves(moves: Vec<(u32, u32)>) -> Result<Self> {
        let sorted = |side: fn(&(u32, u32)) -> u32| {
            let mut points: Vec<u32> = moves.iter().map(side).collect();
            points.sort_unstable();
            points
        };
        let (from, to) = (sorted(|pair| pair.0), sorted(|pair| pair.1));
        if from != to || from.windows(2).any(|pair| pair[0] == pair[1]) {
            let value = format!("{} moves", moves.len());
            return Err(Error::domain("moves", value, "a permutation of the points moved"));
        }
        Ok(Self::from_moves(moves))
    }

    /// The permutation that maps `v` to `images[v]`.
    ///
    /// # Errors
    /// The first index at which the image is out of range or not the first of its kind.
    pub fn from_images(images: &[u32]) -> Result<Self, usize> {
        let mut seen = vec![false; images.len()];
        for (point, &image) in images.iter().enumerate() {
            match seen.get_mut(image as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(point),
            }
        }
        Ok(Self::from_moves((0..).zip(images.iter().copied()).collect()))
    }

    /// The moved points in rising order, each with its image.
    pub fn moves(&self) -> &[(u32, u32)] {
        &self.moved
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        self.moved.is_empty()
    }

    /// The image of a point.
    pub fn image(&self, point: u32) -> u32 {
        self.moved.binary_search_by_key(&point, |&(from, _)| from).map_or(point, |index| self.moved[index].1)
    }

    /// The images of `0..n`; `n` must exceed every moved point.
    pub fn images(&self, n: usize) -> Vec<u32> {
        let mut images: Vec<u32> = (0..n as u32).collect();
        for &(from, to) in &*self.moved {
            images[from as usize] = to;
        }
        images
    }

    /// The inverse permutation.
    pub fn inverse(&self) -> Self {
        Self::from_moves(self.moved.iter().map(|&(from, to)| (to, from)).collect())
    }
}

/// Sets that are joined: points under permutations.
#[derive(Clone, Debug)]
pub struct Orbits {
    parent: Vec<u32>,
    size: Vec<u32>,
}

impl Orbits {
    /// Every point alone.
    pub fn new(points: usize) -> Self {
        Self { parent: (0..points as u32).collect(), size: vec![1; points] }
    }

    /// The orbits of the group that the permutations generate.
    pub fn of<'p>(points: usize, generators: impl IntoIterator<Item = &'p Permutation>) -> Self {
        let mut orbits = Self::new(points);
        for generator in generators {
            for &(from, to) in generator.moves() {
                orbits.join(from, to);
            }
        }
        orbits
    }

    /// The representative of a point's orbit.
    #[inline]
    pub fn find(&mut self, mut point: u32) -> u32 {
        while self.parent[point as usize] != point {
            let above = self.parent[self.parent[point as usize] as usize];
            self.parent[point as usize] = above;
            point = above;
        }
        point
    }

    /// Joins two orbits; the representatives before, first the one that stays.
    pub fn join(&mut self, a: u32, b: u32) -> (u32, u32) {
        let (mut a, mut b) = (self.find(a), self.find(b));
        if self.size[a as usize] < self.size[b as usize] {
            std::mem::swap(&mut a, &mut b);
        }
        if a != b {
            self.parent[b as usize] = a;
            self.size[a as usize] += self.size[b as usize];
        }
        (a, b)
    }

    /// Joins some points with their images.
    pub fn join_images(&mut self, points: &[u32], images: &[u32]) {
        for &point in points {
            self.join(point, images[point as usize]);
        }
    }

    /// Number of points in the orbit of a point.
    pub fn size(&mut self, point: u32) -> u32 {
        let root = self.find(point);
        self.size[root as usize]
    }

    /// For each point the number of its orbit, in the order of their first points.
    pub fn labels(&mut self) -> Vec<u32> {
        let n = self.parent.len();
        let mut label = vec![u32::MAX; n];
        let mut found = 0;
        (0..n as u32)
            .map(|point| {
                let root = self.find(point) as usize;
                if label[root] == u32::MAX {
                    label[root] = found;
                    found += 1;
                }
                label[root]
            })
            .collect()
    }
}
