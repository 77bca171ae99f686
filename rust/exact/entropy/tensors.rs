//! Trial vectors by power steps: apply the row operator, then cut the virtual space back to its bond dimension.
//!
//! One step multiplies the trial tensor by that of the operator, `G(s) = z^|s| sum over t of O(s, t) F(t)`, and looks at the half
//! infinite rows on both sides of a bond: `R = sum over s of z^-|s| G(s) R G(s)^T`, `L` alike. With `R = r r^T`, `L = l l^T`
//! and `l^T r = U S V^T`, the numbers `S` are the Schmidt values of the row, and the new tensors `F'(s) = S^-1/2 U^T l^T G(s)
//! r V S^-1/2`, the largest values kept. Only square roots `r` and `l` are ever formed, so values are resolved down to the
//! precision of the arithmetic, not to its square root. Nothing here needs rigour: what is proved is proved about the tensors
//! that come out.
//!
//! Source: R. Orus, G. Vidal (2008), The infinite time-evolving block decimation algorithm beyond unitary evolution.

use super::dense::{DenseMatrix, Real};
use super::model::RowModel;
use crate::Result;
use crate::monitor::Progress;

/// The trial vector of a row, a matrix for each step of the model.
#[derive(Clone, Debug)]
pub struct Tensors<T> {
    /// The matrices, in the order of the model's steps.
    pub steps: Vec<DenseMatrix<T>>,
    /// The dimension of each sector.
    pub dimensions: Vec<usize>,
    /// Schmidt values of all sectors, falling, before the cut; the first is 1.
    pub spectrum: Vec<f64>,
    /// How far the kept values moved in the last step.
    pub moved: f64,
    /// Square roots of the last step's environments, as start of the next step's.
    pub(super) environment: Option<Environment<T>>,
}

/// Square roots of the environments on the right and on the left, a matrix for each sector.
#[derive(Clone, Debug)]
pub(super) struct Environment<T> {
    /// The dimensions of the sectors that a row was added to.
    pub former: Vec<usize>,
    /// The matrices.
    pub roots: [Vec<DenseMatrix<T>>; 2],
}

/// The virtual space after a row: for each sector the pairs of a bond and a former sector, with where they start.
struct Enlarged {
    places: Vec<Vec<(usize, usize, usize)>>,
    dimensions: Vec<usize>,
}

impl Enlarged {
    fn new(model: &RowModel, dimensions: &[usize]) -> Self {
        let mut places = vec![Vec::new(); model.sectors];
        let mut sizes = vec![0; model.sectors];
        for (bond, &sector) in model.bond_sector.iter().enumerate() {
            for (former, &size) in dimensions.iter().enumerate() {
                let leaves = model.entries.iter().any(|entry| {
                    entry.from == bond
                        && model.steps.iter().any(|step| step.from == former && step.letter == entry.below)
                });
                if leaves {
                    places[sector].push((bond, former, sizes[sector]));
                    sizes[sector] += size;
                }
            }
        }
        Self { places, dimensions: sizes }
    }

    fn start(&self, sector: usize, bond: usize, former: usize) -> Option<usize> {
        self.places[sector].iter().find(|place| (place.0, place.1) == (bond, former)).map(|place| place.2)
    }

    /// The rows of an environment that stand for the same vectors in this space; those of new vectors are zero.
    fn adopt<T: Real>(&self, model: &RowModel, dimensions: &[usize], old: &Environment<T>) -> [Vec<DenseMatrix<T>>; 2] {
        if dimensions == old.former {
            return old.roots.clone();
        }
        let space = Self::new(model, &old.former);
        let moved = |sector: usize, root: &DenseMatrix<T>| {
            let mut rows = DenseMatrix::zeros(self.dimensions[sector], root.cols);
            for &(bond, former, to) in &self.places[sector] {
                let Some(from) = space.start(sector, bond, former) else { continue };
                let len = root.cols * dimensions[former].min(old.former[former]);
                let (to, from) = (to * root.cols, from * root.cols);
                rows.data[to..to + len].copy_from_slice(&root.data[from..from + len]);
            }
            rows
        };
        old.roots.each_ref().map(|roots| roots.iter().enumerate().map(|(i, root)| moved(i, root)).collect())
    }
}

impl<T: Real> Tensors<T> {
    /// The vector of ones.
    pub fn new(model: &RowModel) -> Self {
        let one = DenseMatrix::identity(1, 1);
        Self {
            steps: vec![one; model.steps.len()],
            dimensions: vec![1; model.sectors],
            spectrum: vec![1.0],
            moved: f64::INFINITY,
            environment: None,
        }
    }

    /// The same vector at another precision.
    pub fn converted<S: Real>(&self, convert: impl Fn(T) -> S + Copy) -> Tensors<S> {
        let matrix = |m: &DenseMatrix<T>| DenseMatrix {
            rows: m.rows,
            cols: m.cols,
            data: m.data.iter().map(|&x| convert(x)).collect(),
        };
        let environment = self.environment.as_ref().map(|old| Environment {
            former: old.former.clone(),
            roots: old.roots.each_ref().map(|roots| roots.iter().map(matrix).collect()),
        });
        Tensors {
            steps: self.steps.iter().map(matrix).collect(),
            dimensions: self.dimensions.clone(),
            spectrum: self.spectrum.clone(),
            moved: f64::INFINITY,
            environment,
        }
    }

    /// Whether all matrices are those of a vector of this model.
    pub fn fits(&self, model: &RowModel) -> bool {
        let is = |m: &DenseMatrix<T>, rows, cols| m.rows == rows && m.cols == cols && m.data.len() == rows * cols;
        let whole = |dimensions: &[usize]| {
            dimensions.len() == model.sectors && dimensions.iter().all(|&size| (1..1 << 16).contains(&size))
        };
        let stands = |old: &Environment<T>| {
            whole(&old.former) && {
                let space = Enlarged::new(model, &old.former);
                let right = |m: &DenseMatrix<T>, &size: &usize| is(m, size, m.cols) && (1..=size).contains(&m.cols);
                old.roots.iter().all(|roots| {
                    roots.len() == model.sectors && roots.iter().zip(&space.dimensions).all(|(m, size)| right(m, size))
                })
            }
        };
        self.steps.len() == model.steps.len()
            && whole(&self.dimensions)
            && self
                .steps
                .iter()
                .zip(&model.steps)
                .all(|(matrix, step)| is(matrix, self.dimensions[step.from], self.dimensions[step.to]))
            && self.environment.as_ref().is_none_or(stands)
    }

    /// The largest bond dimension, all sectors together.
    pub fn bond_dimension(&self) -> usize {
        self.dimensions.iter().sum()
    }

    /// One row more at activity `z`, cut back to `bond_dimension`.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn advance(&mut self, model: &RowModel, z: f64, bond_dimension: usize, progress: &Progress) -> Result<()> {
        let space = Enlarged::new(model, &self.dimensions);
        let grown = self.grown(model, z, &space);
        let [right, left] = self.environments(model, z, &space, &grown, progress)?;
        let mut all = Vec::new();
        let mut factors = Vec::new();
        for sector in 0..model.sectors {
            let (r, l) = (right[sector].transposed(), &left[sector]);
            let (values, turned, rotated) = r.times(l).rotated(r, progress)?;
            all.extend(values.iter().map(|&value| (value, sector)));
            factors.push((values, turned.times(&l.transposed()), rotated));
        }
        progress.check()?;
        all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal));
        let floor = all[0].0 * T::from(T::EPSILON * 16.0);
        let mut kept: Vec<usize> = (0..model.sectors)
            .map(|sector| all.iter().take(bond_dimension).filter(|x| x.1 == sector && x.0 > floor).count().max(1))
            .collect();
        // Sectors with almost the same last values would take turns, and nothing would settle: they stay as they are.
        let last = |kept: &[usize]| -> f64 {
            let values = factors.iter().zip(kept).map(|(f, &k)| f.0.get(k - 1).map_or(0.0, |x| x.double()));
            values.fold(f64::INFINITY, f64::min)
        };
        if self.dimensions.iter().sum::<usize>() == kept.iter().sum::<usize>()
            && last(&self.dimensions) > 0.7 * last(&kept)
        {
            kept.clone_from(&self.dimensions);
        }
        let size = |x: T| if x < T::default() { -x } else { x };
        let halves: Vec<_> = factors
            .into_iter()
            .zip(&kept)
            .map(|((values, mut inverse, mut direct), &kept)| {
                for (i, &value) in values.iter().enumerate().take(kept) {
                    let root = value.root();
                    let (a, b) = (T::from(1.0) / (value * root), T::from(1.0) / root);
                    // One sign for each vector, so that the environments of this row are a start for the next.
                    let line = &direct.data[i * direct.cols..(i + 1) * direct.cols];
                    let largest =
                        line.iter().fold(T::default(), |most, &x| if size(x) > size(most) { x } else { most });
                    let (a, b) = if largest < T::default() { (-a, -b) } else { (a, b) };
                    inverse.data[i * inverse.cols..(i + 1) * inverse.cols].iter_mut().for_each(|x| *x = *x * a);
                    direct.data[i * direct.cols..(i + 1) * direct.cols].iter_mut().for_each(|x| *x = *x * b);
                }
                inverse.data.truncate(kept * inverse.cols);
                direct.data.truncate(kept * direct.cols);
                let inverse = DenseMatrix { rows: kept, ..inverse };
                (inverse, DenseMatrix { rows: kept, ..direct }.transposed())
            })
            .collect();
        let mut steps: Vec<DenseMatrix<T>> = model
            .steps
            .iter()
            .zip(&grown)
            .map(|(step, grown)| halves[step.from].0.times(grown).times(&halves[step.to].1))
            .collect();
        let most = steps
            .iter()
            .flat_map(|m| &m.data)
            .fold(T::default(), |most, &x| if size(x) > most { size(x) } else { most });
        steps.iter_mut().for_each(|matrix| matrix.scale(T::from(1.0) / most));
        let spectrum: Vec<f64> = all.iter().map(|x| (x.0 / all[0].0).double()).collect();
        let pairs = spectrum.iter().zip(self.spectrum.iter().chain(std::iter::repeat(&0.0))).take(bond_dimension);
        self.moved = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let former = std::mem::replace(&mut self.dimensions, kept);
        (self.steps, self.spectrum) = (steps, spectrum);
        self.environment = Some(Environment { former, roots: [right, left] });
        Ok(())
    }

    /// The tensors after a row, not cut.
    fn grown(&self, model: &RowModel, z: f64, space: &Enlarged) -> Vec<DenseMatrix<T>> {
        let mut grown: Vec<DenseMatrix<T>> = model
            .steps
            .iter()
            .map(|step| DenseMatrix::zeros(space.dimensions[step.from], space.dimensions[step.to]))
            .collect();
        for entry in &model.entries {
            let (left, right) = (model.bond_sector[entry.from], model.bond_sector[entry.to]);
            let target = model.step_above(entry);
            let weight = T::from(model.row_weight(target, z) * model.weight(entry, z));
            for (step, matrix) in model.steps.iter().zip(&self.steps).filter(|(step, _)| step.letter == entry.below) {
                let corners = (space.start(left, entry.from, step.from), space.start(right, entry.to, step.to));
                let (Some(row), Some(col)) = corners else { continue };
                let out = &mut grown[target];
                for (i, line) in matrix.data.chunks_exact(matrix.cols).enumerate() {
                    let start = (row + i) * out.cols + col;
                    out.data[start..start + line.len()].iter_mut().zip(line).for_each(|(x, &y)| *x += weight * y);
                }
            }
        }
        grown
    }

    /// Square roots of the environments on the right and on the left.
    fn environments(
        &self,
        model: &RowModel,
        z: f64,
        space: &Enlarged,
        grown: &[DenseMatrix<T>],
        progress: &Progress,
    ) -> Result<[Vec<DenseMatrix<T>>; 2]> {
        let rounds = if self.environment.is_some() { 4 } else { 16 };
        let fresh = || space.dimensions.iter().map(|&size| DenseMatrix::identity(size, size)).collect::<Vec<_>>();
        let warm = self.environment.as_ref().map(|old| space.adopt(model, &self.dimensions, old));
        let [mut right, mut left] = warm.unwrap_or_else(|| [fresh(), fresh()]);
        let turned: Vec<DenseMatrix<T>> = grown.iter().map(DenseMatrix::transposed).collect();
        let weights: Vec<T> =
            (0..model.steps.len()).map(|step| T::from(1.0 / model.row_weight(step, z)).root()).collect();
        for _ in 0..rounds {
            progress.check()?;
            let ends: Vec<(usize, usize)> = model.steps.iter().map(|step| (step.from, step.to)).collect();
            right = next(&ends, &weights, grown, &right, &space.dimensions, progress)?;
            let ends: Vec<(usize, usize)> = model.steps.iter().map(|step| (step.to, step.from)).collect();
            left = next(&ends, &weights, &turned, &left, &space.dimensions, progress)?;
        }
        Ok([right, left])
    }
}

/// The square root of `sum of w^2 G r r^T G^T` at the end of each step, of norm one over all sectors.
fn next<T: Real>(
    ends: &[(usize, usize)],
    weights: &[T],
    grown: &[DenseMatrix<T>],
    old: &[DenseMatrix<T>],
    dimensions: &[usize],
    progress: &Progress,
) -> Result<Vec<DenseMatrix<T>>> {
    let mut fresh: Vec<DenseMatrix<T>> = (0..old.len())
        .map(|sector| {
            let parts: Vec<DenseMatrix<T>> = ends
                .iter()
                .enumerate()
                .filter(|(_, end)| end.0 == sector)
                .map(|(i, end)| {
                    let mut part = grown[i].times(&old[end.1]);
                    part.scale(weights[i]);
                    part
                })
                .collect();
            let cols = parts.iter().map(|part| part.cols).sum();
            let rows = dimensions[sector];
            let data = (0..rows)
                .flat_map(|i| parts.iter().flat_map(move |part| &part.data[i * part.cols..(i + 1) * part.cols]))
                .copied()
                .collect();
            DenseMatrix { rows, cols, data }.triangle(progress)
        })
        .collect::<Result<_>>()?;
    let size = fresh.iter().fold(T::default(), |sum, m| sum + m.squares()).root();
    fresh.iter_mut().for_each(|matrix| matrix.scale(T::from(1.0) / size));
    Ok(fresh)
}
