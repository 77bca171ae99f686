//! Counting: from Python to the core and back.

use crate::arrays::{self, LentRow, LentTable, Row};
use crate::boundary::{compute, dictionary, raise, word};
use crate::job::Job;
use num_bigint::{BigInt, BigUint};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use quincunx::counting::clusters::{ClusterQuantity, ClusterSums};
use quincunx::counting::evaluation::Options;
use quincunx::counting::exact::{self, Modular, Plan};
use quincunx::counting::independent_sets::{
    self as counting, Boundary, FloatActivity, IndependentSets, Problem, Quantity, StripKind,
};
use quincunx::counting::lock::Lock;
use quincunx::counting::matchings::{Matchings, Which};
use quincunx::counting::perfect_matchings::even_subgraphs::EvenSubgraphs;
use quincunx::counting::spanning_trees::kirchhoff;
use quincunx::counting::transfer::Point;
use quincunx::counting::{perfect_matchings, spanning_trees};
use quincunx::graphs::Graph;
use quincunx::lattices::Bond;
use quincunx::monitor::Monitor;
use quincunx::numeric::residue::Modulus;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What is counted on, as Python says it: a lattice by its name, or a graph by its edges and perhaps an order.
#[derive(FromPyObject)]
pub enum ProblemArgument<'py> {
    /// `(kind, rows, cols, boundary)`.
    #[pyo3(transparent)]
    Lattice((String, usize, usize, String)),
    /// `(n, edges, order or None)`.
    #[pyo3(transparent)]
    Graph(OrderedEdges<'py>),
}

/// A graph as Python says it, with an order of its vertices or none.
type OrderedEdges<'py> = (usize, LentTable<'py, i64>, Option<LentRow<'py, i64>>);

/// The graph and the order.
fn ordered(py: Python<'_>, (n, edges, order): OrderedEdges<'_>) -> PyResult<(Graph, Option<Vec<u32>>)> {
    let graph = arrays::graph(py, n, &edges)?;
    Ok((graph, order.map(|order| arrays::vertices(&order, "order")).transpose()?))
}

impl ProblemArgument<'_> {
    fn problem(self, py: Python<'_>) -> PyResult<Problem> {
        match self {
            Self::Lattice((kind, rows, cols, boundary)) => Ok(Problem::Lattice {
                kind: named(StripKind::ALL, StripKind::name, &kind, "kind")?,
                rows,
                cols,
                boundary: named(Boundary::ALL, Boundary::name, &boundary, "boundary")?,
            }),
            Self::Graph(problem) => ordered(py, problem).map(|(graph, order)| Problem::Graph { graph, order }),
        }
    }
}

/// The one of some values that has this name.
fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, wanted: &str, argument: &str) -> PyResult<T> {
    word(argument, wanted, &all.iter().map(|&value| (name(value), value)).collect::<Vec<_>>())
}

/// What Python would say for a problem.
fn problem_argument(py: Python<'_>, problem: &Problem) -> PyResult<Py<PyTuple>> {
    let arguments = match problem {
        &Problem::Lattice { kind, rows, cols, boundary } => {
            (kind.name(), rows, cols, boundary.name()).into_pyobject(py)?
        }
        Problem::Graph { graph, order } => {
            let order = order.as_ref().map(|order| PyArray1::from_iter(py, order.iter().map(|&v| i64::from(v))));
            (graph.vertices(), arrays::edges(py, graph.edges())?, order).into_pyobject(py)?
        }
    };
    Ok(arguments.unbind())
}

/// An exact job: its primes and bound are known, its residues can be computed anywhere. Pickled, it takes what rebuilds it
/// without a search for a good order and without proving the bound again.
#[pyclass(frozen, module = "quincunx._core")]
pub struct ExactPlan {
    plan: Arc<Plan<dyn Modular>>,
    /// The function of this module that builds the plan again.
    builder: &'static str,
    /// Its arguments, made when a plan is pickled.
    arguments: Arguments,
}

type Arguments = Box<dyn Fn(Python<'_>) -> PyResult<Py<PyTuple>> + Send + Sync>;

#[pymethods]
impl ExactPlan {
    /// The number of primes, the spare one included.
    #[getter]
    fn primes(&self) -> usize {
        self.plan.primes().len()
    }

    /// Parts of the values modulo a prime that add up, each a task of its own.
    #[getter]
    fn parts(&self) -> usize {
        self.plan.quantity().parts()
    }

    /// Values modulo each prime.
    #[getter]
    fn values(&self) -> usize {
        self.plan.quantity().values()
    }

    /// The primes and another, a second to spare.
    fn moduli(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let primes = compute(py, None, |monitor| self.plan.primes_and_another(monitor))?;
        Ok(primes.into_iter().map(Modulus::value).collect())
    }

    /// Primes that cost little more together than one alone.
    #[getter]
    fn side_by_side(&self) -> usize {
        self.plan.quantity().side_by_side()
    }

    /// One of the integers divided by the denominator, in lowest terms.
    fn lowest_terms(&self, py: Python<'_>, integer: BigInt) -> PyResult<(BigInt, BigUint)> {
        compute(py, None, |monitor| self.plan.lowest_terms(integer, monitor))
    }

    /// How the values are computed: a name, bytes for one prime, operations for one prime.
    #[getter]
    fn method(&self) -> (&'static str, u128, f64) {
        self.plan.quantity().method()
    }

    /// The integers sought, computed here.
    fn solve(&self, py: Python<'_>, job: Job) -> PyResult<Vec<BigInt>> {
        let (options, report) = job.split();
        compute(py, report, |monitor| self.plan.solve(&options, monitor))
    }

    /// One part of the residues of the moduli `start .. stop`: one task of an executor.
    fn residues(&self, py: Python<'_>, start: usize, stop: usize, part: usize, job: Job) -> PyResult<Vec<u64>> {
        let (options, report) = job.split();
        compute(py, report, |monitor| self.plan.residues(start..stop, part, &options, monitor))
    }

    /// The place of the one of all moduli whose residues are wrong, if there is just one.
    fn wrong_prime(&self, py: Python<'_>, residues: Vec<u64>, job: Job) -> PyResult<Option<usize>> {
        let (options, _) = job.split();
        compute(py, None, |monitor| self.plan.wrong_prime(&residues, &options, monitor))
    }

    /// The integers with these residues, verified.
    fn combine(&self, py: Python<'_>, residues: Vec<u64>, job: Job) -> PyResult<Vec<BigInt>> {
        let (options, _) = job.split();
        compute(py, None, |monitor| self.plan.combine(&residues, &options, monitor))
    }

    /// The residues a checkpoint holds, by parts if it is kept so, None where one is missing.
    fn load(&self, py: Python<'_>, checkpoint: PathBuf, parts: bool) -> PyResult<Vec<Option<u64>>> {
        let options = Options { checkpoint: Some(checkpoint), ..Options::default() };
        compute(py, None, |monitor| self.plan.load(parts, &options, monitor))
    }

    /// Writes the residues that are known to a checkpoint.
    fn save(&self, py: Python<'_>, checkpoint: PathBuf, parts: bool, residues: Vec<Option<u64>>) -> PyResult<()> {
        let options = Options { checkpoint: Some(checkpoint), ..Options::default() };
        compute(py, None, |_| self.plan.save(parts, &options, residues))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyTuple>)> {
        let builder = py.import("quincunx._core")?.getattr(self.builder)?.unbind();
        Ok((builder, (self.arguments)(py)?))
    }
}

/// The right to a checkpoint, from when it is made until it is let go.
#[pyclass(frozen, module = "quincunx._core")]
pub struct CheckpointLock(Mutex<Option<Lock>>);

#[pymethods]
impl CheckpointLock {
    #[new]
    fn new(py: Python<'_>, checkpoint: PathBuf) -> PyResult<Self> {
        compute(py, None, |_| Lock::hold(&checkpoint)).map(|lock| Self(Mutex::new(Some(lock))))
    }

    /// Lets it go.
    fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What is asked exactly: "count", "polynomial", an activity as numerator and denominator, or two weights of each vertex, out and in.
#[derive(FromPyObject, IntoPyObject)]
pub enum QuantityArgument {
    /// `"count"` or `"polynomial"`.
    #[pyo3(transparent)]
    Named(String),
    /// `(numerator, denominator)`.
    #[pyo3(transparent)]
    Activity((BigInt, BigUint)),
    /// `[[out, in], ...]`.
    #[pyo3(transparent)]
    Weights(Vec<[BigInt; 2]>),
}

/// A plan for the independent sets of a problem; `bits` is the bound on the integers, where it is known.
#[pyfunction]
#[pyo3(signature = (problem, quantity, job, bits=None))]
pub fn plan_independent_sets(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    quantity: QuantityArgument,
    job: Option<Job>,
    bits: Option<f64>,
) -> PyResult<ExactPlan> {
    let problem = problem.problem(py)?;
    let quantity = quantity.quantity()?;
    let (options, report) = job.map_or_else(Default::default, Job::split);
    let plan = compute(py, report, |monitor| {
        Plan::new(IndependentSets::new(problem, quantity, bits, &options, monitor)?, monitor)
    })?;
    let plan = Arc::new(plan);
    let planned = Arc::clone(&plan);
    let arguments: Arguments = Box::new(move |py| {
        let planned = planned.quantity();
        let problem = problem_argument(py, planned.problem())?;
        let quantity = QuantityArgument::of(planned.quantity());
        let arguments = (problem, quantity, None::<bool>, planned.bits()); // a bound that is known needs no job
        Ok(arguments.into_pyobject(py)?.unbind())
    });
    Ok(ExactPlan { plan, builder: "plan_independent_sets", arguments })
}

impl QuantityArgument {
    fn quantity(self) -> PyResult<Quantity> {
        match self {
            Self::Activity((numerator, denominator)) => Ok(Quantity::Activity { numerator, denominator }),
            Self::Weights(weights) => Ok(Quantity::Weights(weights)),
            Self::Named(name) if name == "count" => Ok(Quantity::Count),
            Self::Named(name) if name == "polynomial" => Ok(Quantity::Polynomial),
            Self::Named(name) => Err(PyValueError::new_err(format!("`quantity` must be known, got {name:?}"))),
        }
    }

    fn of(quantity: &Quantity) -> Self {
        match quantity {
            Quantity::Count => Self::Named("count".into()),
            Quantity::Polynomial => Self::Named("polynomial".into()),
            Quantity::Activity { numerator, denominator } => Self::Activity((numerator.clone(), denominator.clone())),
            Quantity::Weights(weights) => Self::Weights(weights.clone()),
        }
    }
}

/// `Z` as two doubles, their power of two, and the relative error of their sum; see `quincunx.counting.hard_core`.
///
/// The activity is two doubles, their power of two, and whether they are it.
#[pyfunction]
pub fn hard_core_float(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    activity: (f64, f64, i64, bool),
    job: Job,
) -> PyResult<(f64, f64, i64, f64)> {
    let problem = problem.problem(py)?;
    let (high, low, exponent, is_exact) = activity;
    let (options, report) = job.split();
    let found = compute(py, report, |monitor| {
        let activity = FloatActivity::new(high, low, exponent, is_exact)?;
        counting::hard_core_float(&problem, activity, &options, monitor)
    })?;
    Ok((found.value.hi, found.value.lo, found.exponent, found.relative_error))
}

/// Residues of `Z` at pairs of a modulus and an activity; see `quincunx.counting.residue`.
#[pyfunction]
pub fn residues(py: Python<'_>, problem: ProblemArgument<'_>, points: Vec<(u64, u64)>, job: Job) -> PyResult<Vec<u64>> {
    let problem = problem.problem(py)?;
    let (options, report) = job.split();
    let point = |(modulus, activity)| Ok(Point::new(Modulus::new(modulus)?, activity));
    compute(py, report, |monitor| {
        let points = points.into_iter().map(point).collect::<quincunx::Result<Vec<_>>>()?;
        counting::residues(&problem, &points, &options, monitor)
    })
}

/// The number with the given residues; see `quincunx.counting.combine_residues`.
#[pyfunction]
pub fn combine_residues(py: Python<'_>, residues: Vec<(u64, u64)>) -> PyResult<BigUint> {
    compute(py, None, |monitor| exact::combine_residues(&residues, monitor))
}

/// The primes counts are taken modulo; see `quincunx.counting.primes`.
#[pyfunction]
pub fn primes(py: Python<'_>, count: usize) -> PyResult<Vec<u64>> {
    compute(py, None, |monitor| exact::primes(count, monitor))
}

/// A forecast as a dictionary; see `quincunx.counting.estimate_cost`.
#[pyfunction]
pub fn estimate_cost<'py>(
    py: Python<'py>,
    problem: ProblemArgument<'_>,
    quantity: QuantityArgument,
    job: Job,
) -> PyResult<Bound<'py, PyDict>> {
    let (problem, quantity, (options, _)) = (problem.problem(py)?, quantity.quantity()?, job.split());
    let cost = compute(py, None, |monitor| counting::estimate_cost(&problem, quantity, &options, monitor))?;
    Ok(dictionary!(py, cost; engine, states, lanes, bytes, primes, additions, seconds, planning, trial))
}

/// A bond of a unit cell: two sites and the cell of the second.
type PeriodicBond = (usize, usize, (i32, i32));

fn periodic(bonds: Vec<PeriodicBond>) -> Vec<Bond> {
    bonds.into_iter().map(|(from, to, (dx, dy))| Bond::new(from, to, [dx, dy])).collect()
}

/// What trees or perfect matchings are counted on, as Python says it.
#[derive(FromPyObject)]
pub enum DrawnArgument<'py> {
    /// `(rows, cols, (closed, closed))`: a square lattice.
    #[pyo3(transparent)]
    Square((usize, usize, [bool; 2])),
    /// `(sites, bonds, extent, twist)`: a periodic lattice on a torus.
    #[pyo3(transparent)]
    Torus((usize, Vec<PeriodicBond>, [usize; 2], usize)),
    /// `(sites, bonds, extent)`: a periodic lattice on a cylinder, open axis first.
    #[pyo3(transparent)]
    Cylinder((usize, Vec<PeriodicBond>, [usize; 2])),
    /// `(n, edges, vectors along the edges, windings)`: a drawn graph.
    #[pyo3(transparent)]
    Drawn((usize, LentTable<'py, i64>, LentTable<'py, f64>, LentTable<'py, i64>)),
    /// `(n, edges, darts counterclockwise at each vertex)`: an embedded graph.
    #[pyo3(transparent)]
    Embedded((usize, LentTable<'py, i64>, Vec<Vec<u32>>)),
    /// `(n, edges)`: a graph.
    #[pyo3(transparent)]
    Graph((usize, LentTable<'py, i64>)),
}

impl DrawnArgument<'_> {
    fn trees(self, py: Python<'_>) -> PyResult<spanning_trees::TreeProblem> {
        use spanning_trees::{TreeProblem, cylinder::Cylinder, product::SquareGrid, product::Torus};
        match self {
            Self::Square((rows, cols, closed)) => Ok(TreeProblem::Square(SquareGrid { rows, cols, closed })),
            Self::Torus((sites, bonds, extent, twist)) => {
                Ok(TreeProblem::Torus(Torus { sites, bonds: periodic(bonds), extent, twist }))
            }
            Self::Cylinder((sites, bonds, extent)) => {
                Ok(TreeProblem::Cylinder(Cylinder { sites, bonds: periodic(bonds), extent }))
            }
            Self::Drawn((n, edges, ..)) | Self::Embedded((n, edges, _)) | Self::Graph((n, edges)) => {
                Ok(TreeProblem::Graph(arrays::graph(py, n, &edges)?))
            }
        }
    }

    fn dimers(self, py: Python<'_>) -> PyResult<perfect_matchings::MatchingProblem> {
        use perfect_matchings::MatchingProblem;
        match self {
            Self::Square((rows, cols, _)) => {
                Ok(MatchingProblem::Grid(perfect_matchings::product::ProductGrid { rows, cols }))
            }
            Self::Drawn((n, edges, along, windings)) => {
                let graph = arrays::graph(py, n, &edges)?;
                let windings = arrays::rows(&windings, "windings")?.into_iter().map(|w| w.map(|x| x as i32)).collect();
                MatchingProblem::drawn(graph, &arrays::rows(&along, "displacements")?, windings)
                    .map_err(|e| raise(py, e))
            }
            Self::Embedded((n, edges, rotation)) => {
                let graph = arrays::graph(py, n, &edges)?;
                MatchingProblem::embedded(graph, rotation).map_err(|e| raise(py, e))
            }
            Self::Torus(_) | Self::Cylinder(_) | Self::Graph(_) => {
                Err(PyValueError::new_err("`graph` must be drawn on a plane, cylinder or torus"))
            }
        }
    }
}

/// Plans a quantity; a pickled plan is built again by a function of this module from the arguments it was built from.
fn planned<M: Modular + 'static>(
    py: Python<'_>,
    builder: &'static str,
    arguments: Bound<'_, PyTuple>,
    quantity: impl FnOnce(&mut dyn Monitor) -> quincunx::Result<M> + Send,
) -> PyResult<ExactPlan> {
    let plan = compute(py, None, |monitor| Plan::new(quantity(monitor)?, monitor))?;
    let said = arguments.unbind();
    Ok(ExactPlan { plan: Arc::new(plan), builder, arguments: Box::new(move |py| Ok(said.clone_ref(py))) })
}

/// A plan for the spanning trees of a graph.
#[pyfunction]
pub fn plan_spanning_trees(py: Python<'_>, problem: Bound<'_, PyAny>) -> PyResult<ExactPlan> {
    let arguments = (&problem,).into_pyobject(py)?;
    let problem = problem.extract::<DrawnArgument<'_>>()?.trees(py)?;
    planned(py, "plan_spanning_trees", arguments, |monitor| spanning_trees::plan(problem, monitor))
}

/// The natural logarithm of the number of spanning trees and a bound on its error.
#[pyfunction]
pub fn log_spanning_trees(py: Python<'_>, problem: DrawnArgument<'_>) -> PyResult<(f64, f64)> {
    let problem = problem.trees(py)?;
    compute(py, None, |monitor| spanning_trees::log_spanning_trees(&problem, monitor))
}

/// A plan for the perfect matchings of a drawn graph.
#[pyfunction]
pub fn plan_perfect_matchings(py: Python<'_>, problem: Bound<'_, PyAny>, memory_limit: u64) -> PyResult<ExactPlan> {
    let arguments = (&problem, memory_limit).into_pyobject(py)?;
    let problem = problem.extract::<DrawnArgument<'_>>()?.dimers(py)?;
    planned(py, "plan_perfect_matchings", arguments, |monitor| perfect_matchings::Dimers::plan(problem, monitor))
}

/// A plan for the matchings of a graph by its frontier: "perfect", "all" or "by size".
#[pyfunction]
pub fn plan_matchings(
    py: Python<'_>,
    problem: Bound<'_, PyAny>,
    which: String,
    memory_limit: u64,
) -> PyResult<ExactPlan> {
    let arguments = (&problem, &which, memory_limit).into_pyobject(py)?;
    let (graph, order) = ordered(py, problem.extract()?)?;
    let kind = named(&[Which::Perfect, Which::All, Which::BySize], Which::name, &which, "which")?;
    planned(py, "plan_matchings", arguments, |monitor| {
        Matchings::plan(&graph, kind, order.as_deref(), memory_limit, monitor)
    })
}

/// A fraction as Python says it.
type Fraction = (BigInt, BigUint);

/// A plan for a sum over all subsets of the edges: the "chromatic" polynomial without its signs, the "tutte" polynomial, or with q states
/// the "potts" model's polynomial in the weight of an edge, its value where each edge has a weight.
#[pyfunction]
pub fn plan_clusters(
    py: Python<'_>,
    problem: Bound<'_, PyAny>,
    what: String,
    q: Option<Fraction>,
    weights: Option<Vec<Fraction>>,
    memory_limit: u64,
) -> PyResult<ExactPlan> {
    let arguments = (&problem, &what, q.clone(), weights.clone(), memory_limit).into_pyobject(py)?;
    let (graph, order) = ordered(py, problem.extract()?)?;
    let quantity = match (&*what, q, weights) {
        ("chromatic", None, None) => ClusterQuantity::Chromatic,
        ("tutte", None, None) => ClusterQuantity::Tutte,
        ("potts", Some(q), None) => ClusterQuantity::Potts(q),
        ("potts", Some(q), Some(weights)) => ClusterQuantity::Weighted(q, weights),
        _ => return Err(PyValueError::new_err(format!("`what` must be a sum over subsets of edges, got {what:?}"))),
    };
    planned(py, "plan_clusters", arguments, |monitor| {
        ClusterSums::plan(&graph, quantity, order.as_deref(), memory_limit, monitor)
    })
}

/// A plan for the perfect matchings of a clique insertion, from the graph that is inserted into and the ends of cut links.
#[pyfunction]
pub fn plan_even_subgraphs(py: Python<'_>, problem: Bound<'_, PyAny>, memory_limit: u64) -> PyResult<ExactPlan> {
    let arguments = (&problem, memory_limit).into_pyobject(py)?;
    let (n, edges, dangling) = problem.extract::<(usize, LentTable<'_, i64>, Vec<u32>)>()?;
    let graph = arrays::graph(py, n, &edges)?;
    planned(py, "plan_even_subgraphs", arguments, |monitor| {
        EvenSubgraphs::new(&graph, &dangling, memory_limit, monitor)
    })
}

/// The edges of a uniform perfect matching by coupling from the past for each key, one after the other, None for a drawing
/// without heights.
#[pyfunction]
pub fn couple_perfect_matchings<'py>(
    py: Python<'py>,
    problem: DrawnArgument<'py>,
    keys: Vec<[u64; 2]>,
) -> PyResult<Option<Row<'py, u32>>> {
    let problem = problem.dimers(py)?;
    let drawn =
        compute(py, None, |monitor| perfect_matchings::coupling::random_perfect_matchings(&problem, &keys, monitor))?;
    Ok(drawn.map(|edges| PyArray1::from_vec(py, edges)))
}

/// The number of spanning trees times the Kirchhoff index of a connected graph.
#[pyfunction]
pub fn trees_times_index(
    py: Python<'_>,
    n: usize,
    edges: LentTable<'_, i64>,
    trees: BigUint,
    job: Job,
) -> PyResult<BigUint> {
    let graph = arrays::graph(py, n, &edges)?;
    let (options, report) = job.split();
    compute(py, report, |monitor| {
        kirchhoff::trees_times_index(&graph, &trees, options.threads, options.memory_limit, monitor)
    })
}

/// The partner of each vertex in a largest matching, -1 for those left out.
#[pyfunction]
pub fn maximum_matching(py: Python<'_>, n: usize, edges: LentTable<'_, i64>) -> PyResult<Vec<i64>> {
    let graph = arrays::graph(py, n, &edges)?;
    let mates = compute(py, None, |monitor| quincunx::graphs::largest_matching(&graph, monitor))?;
    Ok(mates.into_iter().map(|mate| mate.map_or(-1, i64::from)).collect())
}
