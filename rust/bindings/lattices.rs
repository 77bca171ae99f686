//! Lattices: from Python to the core and back.

use crate::arrays::{self, LentRow, Table};
use crate::boundary::{compute, compute_unheard, raise};

use pyo3::prelude::*;
use quincunx::counting::independent_sets::StripKind;
use quincunx::lattices::{self, Bond, Boundary, Lattice, Section, UnitCell};
use quincunx::memory;

/// A unit cell as Python holds it: basis vectors, site offsets, bonds.
type Cell = ([[f64; 2]; 2], Vec<[f64; 2]>, Vec<(usize, usize, (i32, i32))>);

/// Positions, edges, windings and displacements, each with two columns.
type Arrays<'py> = (Table<'py, f64>, Table<'py, i64>, Table<'py, i64>, Table<'py, f64>);

fn to_core((basis, sites, bonds): Cell) -> quincunx::Result<UnitCell> {
    let bonds = bonds.into_iter().map(|(from, to, (dx, dy))| Bond::new(from, to, [dx, dy])).collect();
    UnitCell::new(basis, sites, bonds)
}

fn to_python(cell: &UnitCell) -> Cell {
    let bonds = cell.bonds().iter().map(|bond| (bond.from, bond.to, bond.offset.into())).collect();
    (cell.basis(), cell.sites().to_vec(), bonds)
}

/// The arrays of a section of so many cells.
fn arrays(
    py: Python<'_>,
    extent: [usize; 2],
    make: impl FnOnce() -> quincunx::Result<Section> + Send + 'static,
) -> PyResult<Arrays<'_>> {
    let cells = extent[0].saturating_mul(extent[1]);
    let (positions, edges, windings, displacements) = compute_unheard(py, cells.saturating_mul(8), || {
        let Section { positions, edges, windings, displacements } = make()?;
        let len = windings.len();
        let windings = memory::gathered(windings.into_iter().map(|winding| winding.map(i64::from)), len, "an array")?;
        Ok((positions, arrays::edge_rows(&edges)?, windings, displacements))
    })?;
    Ok((
        arrays::pairs(py, positions)?,
        arrays::pairs(py, edges)?,
        arrays::pairs(py, windings)?,
        arrays::pairs(py, displacements)?,
    ))
}

/// A row of the registry; see `quincunx::lattices::NamedLattice`.
#[pyclass(frozen, get_all, module = "quincunx._core")]
pub struct NamedLattice {
    name: &'static str,
    aliases: Vec<&'static str>,
    cell: Cell,
    cut: bool,
    /// Whether counting has an operator between its rows.
    kernel: bool,
    inserted_into: Option<&'static str>,
    line_graph_of: Option<&'static str>,
    columns: Vec<Vec<(i32, i32)>>,
    mirrors: Option<Mirrors>,
    /// Sites and theorem of each row operator.
    row_tensors: Vec<(u32, Option<&'static str>)>,
    /// The same for matchings.
    matching_tensors: Vec<(u32, Option<&'static str>)>,
    tree_entropy: Option<(u32, u32, u32)>,
    dimer_entropy: Option<(u32, u32, u32)>,
}

/// Cell, sites, lengths of bonds, lines of a cell, whether sites come column by column.
type Mirrors = ((f64, f64), Vec<(f64, f64)>, Vec<f64>, u32, bool);

/// The registry; see `quincunx.lattices.named`.
#[pyfunction]
pub fn named_lattices(py: Python<'_>) -> PyResult<Vec<NamedLattice>> {
    let said = |tensors: &[lattices::RowTensor]| tensors.iter().map(|tensor| (tensor.sites, tensor.theorem)).collect();
    let row = |lattice: &'static lattices::NamedLattice| {
        let mirrors = lattice.mirrors.as_ref().map(|mirrors| {
            let sites = mirrors.sites.iter().map(|&site| site.into()).collect();
            (mirrors.cell.into(), sites, mirrors.lengths.to_vec(), mirrors.lines, mirrors.by_columns)
        });
        Ok(NamedLattice {
            name: lattice.name,
            aliases: lattice.aliases.to_vec(),
            cell: to_python(&lattice.unit_cell()?),
            cut: lattice.cut,
            kernel: StripKind::ALL.iter().any(|kind| kind.name() == lattice.name),
            inserted_into: lattice.inserted_into,
            line_graph_of: lattice.line_graph_of,
            columns: lattice.columns.iter().map(|steps| steps.to_vec()).collect(),
            mirrors,
            row_tensors: said(lattice.row_tensors),
            matching_tensors: said(lattice.matching_tensors),
            tree_entropy: lattice.tree_entropy,
            dimer_entropy: lattice.dimer_entropy,
        })
    };
    lattices::LATTICES.iter().map(row).collect::<quincunx::Result<_>>().map_err(|error| raise(py, error))
}

/// See `quincunx.lattices.UnitCell`.
#[pyfunction]
pub fn check_cell(py: Python<'_>, cell: Cell) -> PyResult<()> {
    to_core(cell).map(drop).map_err(|error| raise(py, error))
}

/// See `quincunx.lattices.UnitCell.clique_insert`.
#[pyfunction]
pub fn clique_insert_cell(py: Python<'_>, cell: Cell, k: u32) -> PyResult<Cell> {
    compute(py, None, |_| to_core(cell)?.clique_inserted(k)).map(|cell| to_python(&cell))
}

/// Vertices and edges after `k` clique insertions; see `quincunx.lattices.clique_insert`.
#[pyfunction]
pub fn clique_insertion_size(degrees: LentRow<'_, i64>, k: u32) -> (u128, u128) {
    let degrees: Vec<u64> = degrees.as_array().iter().map(|degree| degree.unsigned_abs()).collect();
    lattices::clique_insertion_size(&degrees, k)
}

/// See `quincunx.lattices.Lattice`.
#[pyfunction]
#[pyo3(signature = (cell, extent, pbc, twist=0))]
pub fn check_simple(py: Python<'_>, cell: Cell, extent: [usize; 2], pbc: [bool; 2], twist: usize) -> PyResult<()> {
    let checked = to_core(cell).and_then(|cell| Lattice::new(cell, extent, pbc)?.twisted(twist)?.check_simple());
    checked.map_err(|error| raise(py, error))
}

/// See `quincunx.lattices.Lattice`.
#[pyfunction]
#[pyo3(signature = (cell, extent, pbc, twist=0))]
pub fn lattice_section(
    py: Python<'_>,
    cell: Cell,
    extent: [usize; 2],
    pbc: [bool; 2],
    twist: usize,
) -> PyResult<Arrays<'_>> {
    arrays(py, extent, move || Lattice::new(to_core(cell)?, extent, pbc)?.twisted(twist)?.section())
}

/// See `quincunx.lattices.four_eight_eight`.
#[pyfunction]
pub fn four_eight_eight<'py>(py: Python<'py>, m: usize, n: usize, boundary: &str) -> PyResult<Arrays<'py>> {
    let boundary = boundary.to_owned();
    arrays(py, [m, n], move || lattices::four_eight_eight(m, n, Boundary::named(&boundary)?))
}

/// See `quincunx.lattices.aztec_diamond`.
#[pyfunction]
pub fn aztec_diamond(py: Python<'_>, n: usize) -> PyResult<Arrays<'_>> {
    arrays(py, [n, 2 * n.min(usize::MAX / 2)], move || lattices::aztec_diamond(n))
}

/// See `quincunx.lattices.generalized_aztec`.
#[pyfunction]
pub fn generalized_aztec(py: Python<'_>, a: usize, b: usize) -> PyResult<Arrays<'_>> {
    arrays(py, [a, b], move || lattices::generalized_aztec(a, b))
}

/// See `quincunx.lattices.triangulated_grid`.
#[pyfunction]
pub fn triangulated_grid<'py>(
    py: Python<'py>,
    m: usize,
    n: usize,
    diagonals: LentRow<'py, bool>,
) -> PyResult<Arrays<'py>> {
    let diagonals = diagonals.as_array().to_vec();
    arrays(py, [m, n], move || lattices::triangulated_grid(m, n, &diagonals))
}
