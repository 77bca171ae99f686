//! Weights worked out before the states: sums and products of the activity, or of a weight of each vertex, written down once, computed in
//! any ring.
//!
//! Reducing a graph gives its vertices and edges weights such as `1 + z` or `(1 + z)^2 + z`. While a plan is made they are
//! nodes of a graph of sums and products; a plan keeps the finished [`Tape`], whose registers are reused as soon as
//! their value is no longer needed, so that a path of a million vertices needs a handful of them.
//!
//! Source: P. Buergisser, M. Clausen, M. Shokrollahi (1997), Algebraic Complexity Theory, section 4.1 (straight-line programs).

use crate::Result;
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
use crate::transfer::{StepContext, Weight};
use num_bigint::{BigInt, Sign};
use std::collections::HashMap;

/// Instructions done in one step; after each a stop is heard.
const INSTRUCTIONS: usize = 1 << 12;

/// A weight: zero and one are known while planning, all else is found in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Nothing.
    Zero,
    /// The empty product.
    One,
    /// A node of [`Circuit`], then a register of a [`Tape`].
    Register(u32),
}

/// How a node is found.
#[derive(Clone, Copy, Debug)]
enum Gate {
    /// The activity, or zero in the branches that occupy a vertex of this mask.
    Activity {
        unless: u32,
    },
    /// An integer of the tape, or zero in those branches.
    Integer {
        at: u32,
        unless: u32,
    },
    Add(Node, Node),
    Multiply(Node, Node),
}

/// Circuit under construction.
#[derive(Debug, Default)]
pub struct Circuit {
    nodes: Vec<Gate>,
    roundings: Vec<u64>,
    /// The activity for each mask.
    activities: HashMap<u32, Node>,
    /// The weights of each vertex, out and in, where they have weights of their own.
    integers: Vec<BigInt>,
}

impl Circuit {
    /// A circuit for a graph whose vertices have weights of their own, out and in, or the one activity.
    pub fn new(weights: Option<&[[BigInt; 2]]>) -> Self {
        Self { integers: weights.unwrap_or_default().concat(), ..Self::default() }
    }

    fn node(&mut self, operation: Gate, roundings: u64) -> Node {
        self.nodes.push(operation);
        self.roundings.push(roundings);
        Node::Register((self.nodes.len() - 1) as u32)
    }

    /// Most roundings on the way to a value.
    pub fn roundings(&self, value: Node) -> u64 {
        match value {
            Node::Register(node) => self.roundings[node as usize],
            _ => 0,
        }
    }

    /// The weights of a vertex, out and in; in is zero where the branch meets the mask.
    pub fn vertex(&mut self, v: u32, unless: u32) -> [Node; 2] {
        if self.integers.is_empty() {
            return [Node::One, self.activity(unless)];
        }
        [(2 * v, 0), (2 * v + 1, unless)].map(|(at, unless)| match (&self.integers[at as usize], unless) {
            (x, _) if *x == BigInt::ZERO => Node::Zero,
            (x, 0) if *x == BigInt::from(1) => Node::One,
            _ => self.node(Gate::Integer { at, unless }, 0),
        })
    }

    /// The activity, or zero where the branch meets the mask.
    fn activity(&mut self, unless: u32) -> Node {
        if let Some(&known) = self.activities.get(&unless) {
            return known;
        }
        let activity = self.node(Gate::Activity { unless }, 0);
        self.activities.insert(unless, activity);
        activity
    }

    /// The sum.
    pub fn add(&mut self, a: Node, b: Node) -> Node {
        match (a, b) {
            (Node::Zero, x) | (x, Node::Zero) => x,
            _ => self.node(Gate::Add(a, b), self.roundings(a).max(self.roundings(b)).saturating_add(1)),
        }
    }

    /// The product.
    pub fn multiply(&mut self, a: Node, b: Node) -> Node {
        match (a, b) {
            (Node::Zero, _) | (_, Node::Zero) => Node::Zero,
            (Node::One, x) | (x, Node::One) => x,
            _ => {
                let roundings = self.roundings(a).saturating_add(self.roundings(b)).saturating_add(1);
                self.node(Gate::Multiply(a, b), roundings)
            }
        }
    }

    /// The products of edge weights `m[here][there]`, by the states of the other ends and then of this one.
    pub fn table<'a>(&mut self, edges: impl Iterator<Item = &'a [[Node; 2]; 2]>) -> Vec<Node> {
        let mut halves = [vec![Node::One], vec![Node::One]];
        for m in edges {
            for (here, half) in halves.iter_mut().enumerate() {
                let others: [Vec<Node>; 2] =
                    [0, 1].map(|there| half.iter().map(|&x| self.multiply(x, m[here][there])).collect());
                *half = others.concat();
            }
        }
        halves.concat()
    }

    /// Turns the circuit for `wanted` into a program and the wanted nodes into its registers.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] once somebody asked to stop.
    pub fn compile<'a>(self, wanted: impl Iterator<Item = &'a mut Node>, progress: &Progress) -> Result<Tape> {
        /// Nobody reads the node.
        const NEVER: u32 = u32::MAX;
        /// Somebody outside reads it after the last step.
        const ALWAYS: u32 = u32::MAX - 1;
        let mut last_use = vec![NEVER; self.nodes.len()];
        let wanted: Vec<&mut Node> = wanted.collect();
        for value in &wanted {
            if let Node::Register(node) = **value {
                last_use[node as usize] = ALWAYS;
            }
        }
        for (i, operation) in self.nodes.iter().enumerate().rev() {
            progress.check_at(i)?;
            if last_use[i] == NEVER {
                continue;
            }
            if let Gate::Add(a, b) | Gate::Multiply(a, b) = operation {
                for operand in [a, b] {
                    if let Node::Register(node) = operand
                        && last_use[*node as usize] == NEVER
                    {
                        last_use[*node as usize] = i as u32;
                    }
                }
            }
        }
        let mut tape = Tape { integers: self.integers, ..Tape::default() };
        let mut slots = vec![0; self.nodes.len()];
        let mut vacant = Vec::new();
        for (i, operation) in self.nodes.iter().enumerate().filter(|&(i, _)| last_use[i] != NEVER) {
            progress.check_at(i)?;
            let place = |value: &Node| match value {
                Node::Register(node) => Node::Register(slots[*node as usize]),
                constant => *constant,
            };
            let placed = match operation {
                Gate::Add(a, b) => Gate::Add(place(a), place(b)),
                Gate::Multiply(a, b) => Gate::Multiply(place(a), place(b)),
                given => *given,
            };
            if let Gate::Add(a, b) | Gate::Multiply(a, b) = operation {
                for (operand, other) in [(a, None), (b, Some(a))] {
                    if let Node::Register(node) = operand
                        && last_use[*node as usize] == i as u32
                        && other != Some(operand)
                    {
                        vacant.push(slots[*node as usize]);
                    }
                }
            }
            slots[i] = vacant.pop().unwrap_or_else(|| {
                tape.registers += 1;
                tape.registers - 1
            });
            tape.instructions.push((slots[i], placed));
        }
        for value in wanted {
            if let Node::Register(node) = value {
                *node = slots[*node as usize];
            }
        }
        Ok(tape)
    }
}

/// Finished circuit over registers.
#[derive(Debug, Default)]
pub struct Tape {
    instructions: Vec<(u32, Gate)>,
    registers: u32,
    integers: Vec<BigInt>,
}

impl Tape {
    /// Registers needed.
    pub fn registers(&self) -> usize {
        self.registers as usize
    }

    /// Instructions there are.
    pub fn length(&self) -> usize {
        self.instructions.len()
    }

    /// Steps that it takes.
    pub fn steps(&self) -> u64 {
        self.length().div_ceil(INSTRUCTIONS) as u64
    }

    fn instructions(&self, step: u64) -> std::ops::Range<usize> {
        let start = step as usize * INSTRUCTIONS;
        start..self.length().min(start + INSTRUCTIONS)
    }

    /// Instructions of a step.
    pub fn work(&self, step: u64) -> u64 {
        self.instructions(step).len() as u64
    }

    /// Does a step, in a branch given by its occupied vertices.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] once somebody asked to stop.
    pub fn step<R: Ring>(&self, at: StepContext<'_, R>, branch: u32, registers: &mut [R::Element]) -> Result<()> {
        self.run(self.instructions(at.number), at.weight, branch, registers);
        at.progress.advance(self.work(at.number))
    }

    /// Runs some of the instructions, in a branch given by its occupied vertices.
    pub fn run<R: Ring>(
        &self,
        instructions: std::ops::Range<usize>,
        weight: &Weight<R>,
        branch: u32,
        registers: &mut [R::Element],
    ) {
        let ring = weight.ring;
        for &(into, operation) in &self.instructions[instructions] {
            registers[into as usize] = match operation {
                Gate::Activity { unless } | Gate::Integer { unless, .. } if branch & unless != 0 => ring.zero(),
                Gate::Activity { .. } => weight.activity,
                Gate::Integer { at, .. } => integer(ring, &self.integers[at as usize]),
                Gate::Add(a, b) => ring.fold(ring.add(read(ring, a, registers), read(ring, b, registers))),
                Gate::Multiply(a, b) => ring.mul(read(ring, a, registers), read(ring, b, registers)),
            };
        }
    }
}

/// The element a value stands for.
pub fn read<R: Ring>(ring: R, value: Node, registers: &[R::Element]) -> R::Element {
    match value {
        Node::Zero => ring.zero(),
        Node::One => ring.one(),
        Node::Register(register) => registers[register as usize],
    }
}

/// An integer in a ring, bit by bit from the highest.
pub fn integer<R: Ring>(ring: R, x: &BigInt) -> R::Element {
    let doubled = |sum: R::Element, bit: u64| {
        let twice = ring.fold(ring.add(sum, sum));
        if x.magnitude().bit(bit) { ring.fold(ring.add(twice, ring.one())) } else { twice }
    };
    let size = (0..x.bits()).rev().fold(ring.zero(), doubled);
    match x.sign() {
        Sign::Minus => ring.complement(ring.fold(ring.add(size, ring.one()))),
        _ => size,
    }
}

/// A weight as a kernel meets it: the frequent ones need no multiplication.
#[derive(Clone, Copy, Debug)]
pub enum Factor<E> {
    /// Clears.
    Zero,
    /// Leaves as it is.
    One,
    /// Adds to itself.
    Two,
    /// Multiplies.
    General(E),
}

impl<E: Copy + PartialEq> Factor<E> {
    /// The kind of an element.
    pub fn of<R: Ring<Element = E>>(ring: R, value: Node, registers: &[E]) -> Self {
        let element = read(ring, value, registers);
        if element == ring.zero() {
            Factor::Zero
        } else if element == ring.one() {
            Factor::One
        } else if element == ring.add(ring.one(), ring.one()) {
            Factor::Two
        } else {
            Factor::General(element)
        }
    }

    /// The product with a folded element; folded, or the double of a folded one.
    #[inline(always)]
    pub fn times<R: Ring<Element = E>>(&self, ring: R, x: E) -> E {
        match self {
            Factor::Zero => ring.zero(),
            Factor::One => x,
            Factor::Two => ring.add(x, x),
            Factor::General(factor) => ring.mul(*factor, x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::ring::F64;

    #[test]
    fn programs_compute_their_formulas_in_few_registers() {
        // x_0 = z, x_{n+1} = x_n (1 + z) + z, with the intermediate values thrown away.
        let mut circuit = Circuit::default();
        let z = circuit.activity(0);
        let mut x = z;
        for _ in 0..50 {
            let step = circuit.add(Node::One, z);
            let product = circuit.multiply(step, x);
            x = circuit.add(product, z);
        }
        let mut unchanged = circuit.multiply(Node::One, Node::Zero);
        let tape = circuit.compile([&mut x, &mut unchanged].into_iter(), &Progress::default()).unwrap();
        assert!(tape.registers() <= 4);
        assert_eq!(unchanged, Node::Zero);
        let weight = Weight::new(F64, 0.5);
        let mut registers = vec![0.0; tape.registers()];
        tape.run(0..tape.length(), &weight, 0, &mut registers);
        let expected = (0..50).fold(0.5, |x, _| x * 1.5 + 0.5);
        assert_eq!(read(F64, x, &registers), expected);
    }

    #[test]
    fn squares_free_their_register_once() {
        let mut circuit = Circuit::default();
        let z = circuit.activity(0b10);
        let mut square = circuit.multiply(z, z);
        let other = circuit.activity(0);
        let mut sum = circuit.add(other, square);
        assert_eq!(circuit.roundings(sum), 2);
        let tape = circuit.compile([&mut square, &mut sum].into_iter(), &Progress::default()).unwrap();
        for (branch, expected) in [(0b00, 9.0 + 3.0), (0b10, 3.0)] {
            let mut registers = vec![0.0; tape.registers()];
            tape.run(0..tape.length(), &Weight::new(F64, 3.0), branch, &mut registers);
            assert_eq!(read(F64, sum, &registers), expected);
            assert_eq!(read(F64, square, &registers), expected - 3.0);
        }
    }
}
