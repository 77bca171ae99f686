//! Spanning trees of periodic lattices on a cylinder: a strip for each wave vector round it, inside a prime field.
//!
//! With L cells around and w an L-th root of unity, the Laplacian falls into blocks of one strip along the open axis,
//!
//!   N = (N_0/L) prod over k = 1..L-1 of det L(w^k),   L(z)_{(i,u),(i+dx,v)} = d [same] - sum over bonds of z^dy - ...,
//!
//! with N_0 the trees of the strip at k = 0, where parallel edges are counted and loops are not. The blocks k and L - k are
//! transposes of each other. They are banded, and eliminated a few side by side so that one inversion does for all.
//!
//! Source: R. Shrock, F. Y. Wu (2000), Spanning trees on graphs and lattices in d dimensions, J. Phys. A 33.

use super::bits_by_means;
use super::product::{inverse, root_of_unity, subtract};
use crate::Result;
use crate::graphs::Graph;
use crate::lattices::Bond;
use crate::memory::reserved;
use crate::monitor::Progress;
use crate::numeric::residue::Montgomery;

/// A periodic lattice with its second axis closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cylinder {
    /// Sites of the cell.
    pub sites: usize,
    /// Bonds of the cell; second offsets go round.
    pub bonds: Vec<Bond>,
    /// Cells along the open axis, and around.
    pub extent: [usize; 2],
}

/// Wave vectors that are eliminated side by side: as many as the widest registers have words.
const TOGETHER: usize = 8;

impl Cylinder {
    /// The order of the root of unity: the primes are 1 modulo this.
    pub fn order(&self) -> u64 {
        self.extent[1] as u64
    }

    /// The farthest place of an entry from the diagonal.
    fn band(&self) -> usize {
        let reach = |bond: &Bond| {
            (i64::from(bond.offset[0]) * self.sites as i64 + bond.to as i64 - bond.from as i64).unsigned_abs() as usize
        };
        self.bonds.iter().map(reach).max().unwrap_or(0).min(self.rows().saturating_sub(1))
    }

    fn rows(&self) -> usize {
        self.extent[0] * self.sites
    }

    /// Multiplications for one prime, roughly.
    pub fn work(&self) -> f64 {
        let band = self.band() as f64;
        self.rows() as f64 * (self.extent[1] as f64 / 2.0 + 1.0) * (band * band + band + 16.0)
    }

    /// Bytes for one prime.
    pub fn bytes(&self) -> u128 {
        8 * (self.rows() as u128 * (2 * self.band() as u128 + 1) * TOGETHER as u128 + self.extent[1] as u128)
    }

    /// `log2` of a number that the count does not exceed.
    pub fn bits(&self) -> f64 {
        bits_by_means(&self.degrees(), self.extent[1] as f64)
    }

    /// The whole cylinder as a graph, its cells in C order.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] or [`crate::Error::TooLarge`] for more vertices than a graph has.
    pub fn graph(&self) -> Result<Graph> {
        let (s, around) = (self.sites, self.extent[1] as i64);
        let vertices = self.rows() as u128 * around as u128;
        let mut edges = reserved(self.bonds.len() as u128 * vertices / s.max(1) as u128, "the edges of a cylinder")?;
        let name =
            |row: usize, j: i64| ((row / s) as i64 * around + j.rem_euclid(around)) * s as i64 + (row % s) as i64;
        for (u, v, turns) in self.strip() {
            edges.extend((0..around).map(|j| (name(u, j) as u32, name(v, j + i64::from(turns)) as u32)));
        }
        Graph::new(usize::try_from(vertices).unwrap_or(usize::MAX), edges)
    }

    /// The bonds as they start in one cell of the strip: rows of both ends and the cells they go round.
    fn strip(&self) -> impl Iterator<Item = (usize, usize, i32)> + '_ {
        let (length, s) = (self.extent[0] as i64, self.sites);
        (0..length).flat_map(move |i| {
            self.bonds.iter().filter_map(move |bond| {
                let other = i + i64::from(bond.offset[0]);
                let inside = (0..length).contains(&other);
                inside.then(|| (i as usize * s + bond.from, other as usize * s + bond.to, bond.offset[1]))
            })
        })
    }

    /// Edge ends at each site of the strip.
    fn degrees(&self) -> Vec<u64> {
        let mut degrees = vec![0; self.rows()];
        for (u, v, _) in self.strip() {
            degrees[u] += 1;
            degrees[v] += 1;
        }
        degrees
    }

    /// The number modulo a prime that is 1 modulo [`Self::order`]; `None` if it divides a pivot, which says nothing.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when told to stop.
    pub fn residue(&self, prime: u64, progress: &Progress) -> Result<Option<u64>> {
        let field = Montgomery::new(prime);
        let around = self.extent[1];
        let root = root_of_unity(&field, around as u64);
        let mut powers = vec![field.enter(1); around];
        for i in 1..around {
            powers[i] = field.mul(powers[i - 1], root);
        }
        let mut value = field.enter(1);
        let last = (around - 1) / 2;
        let mut k = 1;
        while k <= last {
            progress.check()?;
            let waves: [usize; TOGETHER] = std::array::from_fn(|lane| (k + lane).min(last));
            let Some(found) = self.determinants(&field, &powers, waves, 0) else { return Ok(None) };
            for &determinant in &found[..TOGETHER.min(last + 1 - k)] {
                value = field.mul(value, field.mul(determinant, determinant));
            }
            k += TOGETHER;
        }
        if around.is_multiple_of(2) {
            let Some([half]) = self.determinants(&field, &powers, [around / 2], 0) else { return Ok(None) };
            value = field.mul(value, half);
        }
        let Some([strip]) = self.determinants(&field, &powers, [0], 1) else { return Ok(None) };
        value = field.mul(field.mul(value, strip), inverse(&field, field.enter(around as u64)));
        Ok(Some(field.leave(value)))
    }

    /// Determinants of the blocks of some wave vectors without their first `skipped` rows and columns.
    fn determinants<const N: usize>(
        &self,
        field: &Montgomery,
        powers: &[u64],
        waves: [usize; N],
        skipped: usize,
    ) -> Option<[u64; N]> {
        let (one, band, around) = (field.enter(1), self.band(), powers.len() as i64);
        let (rows, width) = (self.rows() - skipped, 2 * self.band() + 1);
        // Entry (i, j) at [i * width + j + band - i].
        let mut a = vec![[0u64; N]; rows * width];
        let place = |i: usize, j: usize| i * width + j + band - i;
        for (u, v, turns) in self.strip() {
            for end in [u, v].into_iter().filter(|&end| end >= skipped) {
                let entry = &mut a[place(end - skipped, end - skipped)];
                entry.iter_mut().for_each(|x| *x = field.sum(*x, one));
            }
            if u < skipped || v < skipped {
                continue;
            }
            for lane in 0..N {
                let angle = i64::from(turns).rem_euclid(around) * waves[lane] as i64 % around;
                let (there, back) = (powers[angle as usize], powers[((around - angle) % around) as usize]);
                let entry = &mut a[place(u - skipped, v - skipped)][lane];
                *entry = subtract(field, *entry, there);
                let entry = &mut a[place(v - skipped, u - skipped)][lane];
                *entry = subtract(field, *entry, back);
            }
        }
        let mut value = [one; N];
        for j in 0..rows {
            let pivots = a[place(j, j)];
            let inverses = inverses(field, pivots)?;
            (0..N).for_each(|lane| value[lane] = field.mul(value[lane], pivots[lane]));
            let end = (j + band + 1).min(rows);
            for i in j + 1..end {
                let below = a[place(i, j)];
                if below == [0; N] {
                    continue;
                }
                let factor: [u64; N] = std::array::from_fn(|lane| field.mul(below[lane], inverses[lane]));
                for t in j + 1..end {
                    let above = a[place(j, t)];
                    let entry = &mut a[place(i, t)];
                    for lane in 0..N {
                        entry[lane] = subtract(field, entry[lane], field.mul(factor[lane], above[lane]));
                    }
                }
            }
        }
        Some(value)
    }
}

/// The inverses of a few forms by one inversion; `None` if one is zero.
fn inverses<const N: usize>(field: &Montgomery, x: [u64; N]) -> Option<[u64; N]> {
    let mut before = [field.enter(1); N];
    for i in 1..N {
        before[i] = field.mul(before[i - 1], x[i - 1]);
    }
    let mut rest = inverse(field, field.mul(before[N - 1], x[N - 1]));
    if rest == 0 {
        return None;
    }
    let mut found = [0; N];
    for i in (0..N).rev() {
        found[i] = field.mul(rest, before[i]);
        rest = field.mul(rest, x[i]);
    }
    Some(found)
}
