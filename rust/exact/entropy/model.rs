//! Row operators of the lattices as products of small tensors round a ring.
//!
//! A row holds one letter a site. The operator is `T(s, t) = D(s)^1/2 H(s, t) D(t)^1/2`, `D(s) = z^|s|` the activity of the
//! letters, and `H` a trace of small matrices, `H(s, t) = tr O(s_1, t_1) O(s_2, t_2) ...`, whose entries are polynomials in z.
//! In a face model D may also weigh each pair of neighbors in a row. Trial vectors have the same form, `phi(s) = tr F(s_1) F(s_2) ...`. A row is either a face model, where the letter is also the
//! sector of the virtual space (F(a, b) for neighbours a, b; the bond of O is the pair of letters above and below), or a vertex
//! model with a single sector.
//!
//! | lattice | letters | one step |
//! |---|---|---|
//! | square, king | a vertex: empty, occupied | a row |
//! | 4-8-8 | a vertical link: empty, upper, lower end | a row of octagons, four sites |
//! | honeycomb | a vertical dimer: empty, lower, upper | half a rectangular cell, two sites |
//! | kagome | a vertex between two triangles | half a rectangular cell, three sites |
//! | triangular | a vertex | half a rectangular cell, one site |
//! | square, second form | a vertex of one sublattice | two diagonal rows, two sites |
//! | honeycomb, second form | a vertical dimer | a rectangular cell, four sites |
//! | matchings of the square lattice | a vertical dimer, bonds the horizontal ones | a row |
//! | matchings of 4-8-8 | a dimer on a vertical link, bonds those on horizontal links | a row of diamonds, four sites |
//! | face weights of a user's own | a vertex | a row |
//!
//! The weights are in the rows of [`crate::lattices::LATTICES`].
//!
//! The square lattice takes a weight for each pair of next neighbors that are both occupied: 1 is the square lattice itself, 0
//! that of the king. With 1/2 the constant is that of the expected count over random diagonals.
//!
//! Source: R. Baxter (1999), Planar lattice gases with nearest-neighbour exclusion, Annals of Combinatorics 3 (square and
//! honeycomb); the other lattices are derived here, see `docs/mathematics/entropy.md`.

use crate::lattices::RowTensor;
use num_bigint::BigUint;

/// An allowed step of a trial vector: a letter, and the sectors on its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterStep {
    /// The sector on the left.
    pub from: usize,
    /// The sector on the right.
    pub to: usize,
    /// The letter.
    pub letter: usize,
}

/// An entry of the operator's tensor: a weight from bond `from` to bond `to`, letters `above` and `below`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The bond on the left.
    pub from: usize,
    /// The bond on the right.
    pub to: usize,
    /// The letter above.
    pub above: usize,
    /// The letter below.
    pub below: usize,
    /// The weight: the coefficients of its powers of the activity, over the model's denominator.
    pub weight: Vec<Rational>,
    /// Occupied pairs of next neighbors in the face, each of which has the model's weight of a pair.
    pub pairs: u32,
}

/// A rational number that is not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Rational {
    /// Its numerator.
    pub numerator: BigUint,
    /// Its denominator.
    pub denominator: BigUint,
    /// The nearest double.
    pub value: f64,
}

impl Rational {
    fn whole(number: u64) -> Self {
        Self { numerator: number.into(), denominator: 1u32.into(), value: number as f64 }
    }

    fn is_zero(&self) -> bool {
        self.numerator == BigUint::ZERO
    }
}

/// The weights of a face model of a user's own, `letters` of them: rows after rows of D and of H.
#[derive(Clone, Debug)]
pub struct FaceWeights {
    /// The number of letters.
    pub letters: usize,
    /// `D(a, b)` of neighbors in a row.
    pub rows: Vec<Rational>,
    /// `H(a, b, c, d)` of a face, a and b above, c and d below, all over one denominator.
    pub faces: Vec<Rational>,
}

/// A row operator.
#[derive(Clone, Debug)]
pub struct RowModel {
    /// Occupied sites of each letter.
    pub occupied: Vec<u32>,
    /// The steps of a trial vector.
    pub steps: Vec<LetterStep>,
    /// What each step adds to D besides its letter's activity; 1 for the lattices of the registry.
    pub row: Vec<Rational>,
    /// The tensor of the operator.
    pub entries: Vec<Entry>,
    /// The sector of each bond.
    pub bond_sector: Vec<usize>,
    /// Letters above and below each bond of a face model.
    pub bond_letters: Option<Vec<(usize, usize)>>,
    /// Sectors.
    pub sectors: usize,
    /// Sites of the lattice a letter and step stand for.
    pub sites: u32,
    /// Whether the operator is half a cell, and so symmetric on vectors that do not change under a shift only.
    pub half: bool,
    /// The weight of a pair of next neighbors that are both occupied.
    pub pair: Rational,
    /// Whether rings of any even length bound the constant from above (theorems A' and E).
    pub rings_bound: bool,
}

impl RowModel {
    /// The operator of a lattice's row in the registry.
    pub fn new(tensor: &RowTensor) -> Self {
        let model = if tensor.face {
            let weight = |a, b, c, d| coefficients((tensor.weight)(a, b, c, d));
            let (steps, entries, bonds) = Self::face(tensor.occupied.len(), weight);
            let sectors = bonds.iter().map(|&(a, _)| a).collect();
            Self::of_parts(tensor, steps, entries, sectors, Some(bonds))
        } else {
            Self::vertex(tensor)
        };
        if tensor.pairs { model.with_pairs() } else { model }
    }

    /// The operator of weights of a user's own, for which [`Self::rings_bound`] is the user's word.
    pub fn of_faces(weights: &FaceWeights) -> Self {
        let FaceWeights { letters, rows, faces } = weights;
        let weight = |a: usize, b: usize, c: usize, d: usize| {
            let lines = [&rows[a * letters + b], &rows[c * letters + d]];
            let face = &faces[((a * letters + b) * letters + c) * letters + d];
            if face.is_zero() || lines.iter().any(|row| row.is_zero()) { Vec::new() } else { vec![face.clone()] }
        };
        let (steps, entries, bonds) = Self::face(*letters, weight);
        let row = steps.iter().map(|step| rows[step.from * letters + step.to].clone()).collect();
        let tensor = RowTensor {
            face: true,
            half: false,
            pairs: false,
            sites: 1,
            occupied: &[],
            theorem: Some("A'"),
            weight: |_, _, _, _| [0; 4],
        };
        let sectors = bonds.iter().map(|&(a, _)| a).collect();
        let model = Self::of_parts(&tensor, steps, entries, sectors, Some(bonds));
        Self { occupied: vec![0; *letters], sectors: *letters, row, ..model }
    }

    fn face(
        letters: usize,
        weight: impl Fn(usize, usize, usize, usize) -> Vec<Rational> + Copy,
    ) -> (Vec<LetterStep>, Vec<Entry>, Vec<(usize, usize)>) {
        let all = || (0..letters).flat_map(move |a| (0..letters).map(move |b| (a, b)));
        let allowed = |a, b| all().any(|(c, d)| !weight(a, b, c, d).is_empty());
        let bonds: Vec<(usize, usize)> =
            all().filter(|&(a, c)| all().any(|(b, d)| !weight(a, b, c, d).is_empty())).collect();
        let steps =
            all().filter(|&(a, b)| allowed(a, b)).map(|(from, to)| LetterStep { from, to, letter: from }).collect();
        let mut entries = Vec::new();
        for (from, &(a, c)) in bonds.iter().enumerate() {
            for (to, &(b, d)) in bonds.iter().enumerate() {
                let weight = weight(a, b, c, d);
                if !weight.is_empty() {
                    entries.push(Entry { from, to, above: a, below: c, weight, pairs: 0 });
                }
            }
        }
        (steps, entries, bonds)
    }

    fn vertex(tensor: &RowTensor) -> Self {
        let letters = tensor.occupied.len();
        let steps = (0..letters).map(|letter| LetterStep { from: 0, to: 0, letter }).collect();
        let mut entries = Vec::new();
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for (above, below) in (0..letters).flat_map(|s| (0..letters).map(move |t| (s, t))) {
                let weight = coefficients((tensor.weight)(from, to, above, below));
                if !weight.is_empty() {
                    entries.push(Entry { from, to, above, below, weight, pairs: 0 });
                }
            }
        }
        Self::of_parts(tensor, steps, entries, vec![0, 0], None)
    }

    fn of_parts(
        tensor: &RowTensor,
        steps: Vec<LetterStep>,
        entries: Vec<Entry>,
        bond_sector: Vec<usize>,
        bond_letters: Option<Vec<(usize, usize)>>,
    ) -> Self {
        Self {
            occupied: tensor.occupied.to_vec(),
            row: vec![Rational::whole(1); steps.len()],
            steps,
            entries,
            bond_sector,
            sectors: if bond_letters.is_some() { tensor.occupied.len() } else { 1 },
            bond_letters,
            sites: tensor.sites,
            half: tensor.half,
            pair: Rational::whole(1),
            rings_bound: tensor.theorem.is_some(),
        }
    }

    /// Counts the occupied pairs across each face.
    fn with_pairs(mut self) -> Self {
        if let Some(letters) = &self.bond_letters {
            for entry in &mut self.entries {
                let ((a, c), (b, d)) = (letters[entry.from], letters[entry.to]);
                entry.pairs = (a & d) as u32 + (b & c) as u32;
            }
        }
        self
    }

    /// The weight of an entry at an activity.
    pub fn weight(&self, entry: &Entry, z: f64) -> f64 {
        let value = entry.weight.iter().rev().fold(0.0, |sum, coefficient| sum * z + coefficient.value);
        value * self.pair.value.powi(entry.pairs as i32)
    }

    /// What a step weighs in D.
    pub fn row_weight(&self, step: usize, z: f64) -> f64 {
        z.powi(self.occupied[self.steps[step].letter] as i32) * self.row[step].value
    }

    /// The step that an entry makes in the row above.
    pub fn step_above(&self, entry: &Entry) -> usize {
        let ends = (self.bond_sector[entry.from], self.bond_sector[entry.to]);
        self.step(ends.0, ends.1, entry.above).unwrap_or_else(|| unreachable!("an entry leads along steps"))
    }

    /// Most pairs in a face.
    pub fn most_pairs(&self) -> u32 {
        self.entries.iter().map(|entry| entry.pairs).max().unwrap_or(0)
    }

    /// The largest power of the activity in an entry of the tensor.
    pub fn degree(&self) -> u32 {
        self.entries.iter().map(|entry| entry.weight.len() as u32 - 1).max().unwrap_or(0)
    }

    /// The denominator of the entries' weights.
    pub fn denominator(&self) -> BigUint {
        self.entries.first().map_or_else(|| 1u32.into(), |entry| entry.weight[0].denominator.clone())
    }

    /// Common multiples of the numerators and of the denominators of what steps add to D.
    pub fn row_multiples(&self) -> (BigUint, BigUint) {
        let fold = |pick: fn(&Rational) -> &BigUint| {
            self.row.iter().fold(BigUint::from(1u32), |multiple, weight| common_multiple(&multiple, pick(weight)))
        };
        (fold(|weight| &weight.numerator), fold(|weight| &weight.denominator))
    }

    /// The index of the step with these sectors and letter.
    pub fn step(&self, from: usize, to: usize, letter: usize) -> Option<usize> {
        self.steps.iter().position(|&step| step == LetterStep { from, to, letter })
    }
}

/// The coefficients of a polynomial up to the last that is not zero.
fn coefficients(weight: [u64; 4]) -> Vec<Rational> {
    let count = weight.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1);
    weight[..count].iter().map(|&c| Rational::whole(c)).collect()
}

/// The least common multiple of positive integers.
fn common_multiple(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut divisor, mut rest) = (a.clone(), b.clone());
    while rest != BigUint::ZERO {
        (divisor, rest) = (rest.clone(), divisor % rest);
    }
    a / divisor * b
}
