//! Weights worked out before the states: sums and products of the activity, written down once, computed in any ring.
//!
//! Reducing a graph gives its vertices and edges weights such as `1 + z` or `(1 + z)^2 + z`. While a plan is made they are
//! nodes of a graph of sums and products; a plan keeps the finished [`Program`], whose registers are reused as soon as
//! their value is no longer needed, so that a path of a million vertices needs a handful of them.

use crate::counting::transfer::Weight;
use crate::numeric::ring::Ring;

/// A weight: zero and one are known while planning, all else is found in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Zero,
    /// The empty product.
    One,
    /// A node of [`Formulas`], then a register of a [`Program`].
    Register(u32),
}

/// How a node is found.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// The activity, or zero in the branches that occupy a vertex of this mask.
    Activity {
        unless: u32,
    },
    Add(Value, Value),
    Multiply(Value, Value),
}

/// Formulas under construction.
#[derive(Debug, Default)]
pub struct Formulas {
    nodes: Vec<Operation>,
    roundings: Vec<u64>,
}

impl Formulas {
    fn node(&mut self, operation: Operation, roundings: u64) -> Value {
        self.nodes.push(operation);
        self.roundings.push(roundings);
        Value::Register((self.nodes.len() - 1) as u32)
    }

    /// Most roundings on the way to a value.
    pub fn roundings(&self, value: Value) -> u64 {
        match value {
            Value::Register(node) => self.roundings[node as usize],
            _ => 0,
        }
    }

    /// The activity, or zero where the branch meets the mask.
    pub fn activity(&mut self, unless: u32) -> Value {
        self.node(Operation::Activity { unless }, 0)
    }

    /// The sum.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Zero, x) | (x, Value::Zero) => x,
            _ => self.node(Operation::Add(a, b), self.roundings(a).max(self.roundings(b)).saturating_add(1)),
        }
    }

    /// The product.
    pub fn multiply(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Zero, _) | (_, Value::Zero) => Value::Zero,
            (Value::One, x) | (x, Value::One) => x,
            _ => {
                let roundings = self.roundings(a).saturating_add(self.roundings(b)).saturating_add(1);
                self.node(Operation::Multiply(a, b), roundings)
            }
        }
    }

    /// The products of edge weights `m[here][there]`, by the states of the other ends and then of this one.
    pub fn table<'a>(&mut self, edges: impl Iterator<Item = &'a [[Value; 2]; 2]>) -> Vec<Value> {
        let mut halves = [vec![Value::One], vec![Value::One]];
        for m in edges {
            for (here, half) in halves.iter_mut().enumerate() {
                let others: [Vec<Value>; 2] =
                    [0, 1].map(|there| half.iter().map(|&x| self.multiply(x, m[here][there])).collect());
                *half = others.concat();
            }
        }
        halves.concat()
    }

    /// Turns the formulas for `wanted` into a program and the wanted nodes into its registers.
    pub fn compile<'a>(self, wanted: impl Iterator<Item = &'a mut Value>) -> Program {
        const NEVER: u32 = u32::MAX;
        const ALWAYS: u32 = u32::MAX - 1;
        let mut last_use = vec![NEVER; self.nodes.len()];
        let wanted: Vec<&mut Value> = wanted.collect();
        for value in &wanted {
            if let Value::Register(node) = **value {
                last_use[node as usize] = ALWAYS;
            }
        }
        for (i, operation) in self.nodes.iter().enumerate().rev() {
            if last_use[i] == NEVER {
                continue;
            }
            if let Operation::Add(a, b) | Operation::Multiply(a, b) = operation {
                for operand in [a, b] {
                    if let Value::Register(node) = operand
                        && last_use[*node as usize] == NEVER
                    {
                        last_use[*node as usize] = i as u32;
                    }
                }
            }
        }
        let mut program = Program::default();
        let mut slots = vec![0; self.nodes.len()];
        let mut vacant = Vec::new();
        for (i, operation) in self.nodes.iter().enumerate().filter(|&(i, _)| last_use[i] != NEVER) {
            let place = |value: &Value| match value {
                Value::Register(node) => Value::Register(slots[*node as usize]),
                constant => *constant,
            };
            let placed = match operation {
                Operation::Add(a, b) => Operation::Add(place(a), place(b)),
                Operation::Multiply(a, b) => Operation::Multiply(place(a), place(b)),
                activity => *activity,
            };
            if let Operation::Add(a, b) | Operation::Multiply(a, b) = operation {
                for (operand, other) in [(a, None), (b, Some(a))] {
                    if let Value::Register(node) = operand
                        && last_use[*node as usize] == i as u32
                        && other != Some(operand)
                    {
                        vacant.push(slots[*node as usize]);
                    }
                }
            }
            slots[i] = vacant.pop().unwrap_or_else(|| {
                program.registers += 1;
                program.registers - 1
            });
            program.instructions.push((slots[i], placed));
        }
        for value in wanted {
            if let Value::Register(node) = value {
                *node = slots[*node as usize];
            }
        }
        program
    }
}

/// Finished formulas over registers.
#[derive(Debug, Default)]
pub struct Program {
    instructions: Vec<(u32, Operation)>,
    registers: u32,
}

impl Program {
    /// Registers needed.
    pub fn registers(&self) -> usize {
        self.registers as usize
    }

    /// Instructions there are.
    pub fn length(&self) -> usize {
        self.instructions.len()
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
                Operation::Activity { unless } if branch & unless != 0 => ring.zero(),
                Operation::Activity { .. } => weight.activity,
                Operation::Add(a, b) => ring.fold(ring.add(read(ring, a, registers), read(ring, b, registers))),
                Operation::Multiply(a, b) => ring.mul(read(ring, a, registers), read(ring, b, registers)),
            };
        }
    }
}

/// The element a value stands for.
pub fn read<R: Ring>(ring: R, value: Value, registers: &[R::Element]) -> R::Element {
    match value {
        Value::Zero => ring.zero(),
        Value::One => ring.one(),
        Value::Register(register) => registers[register as usize],
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
    pub fn of<R: Ring<Element = E>>(ring: R, value: Value, registers: &[E]) -> Self {
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
    use crate::numeric::ring::Real;

    #[test]
    fn programs_compute_their_formulas_in_few_registers() {
        // x_0 = z, x_{n+1} = x_n (1 + z) + z, with the intermediate values thrown away.
        let mut formulas = Formulas::default();
        let z = formulas.activity(0);
        let mut x = z;
        for _ in 0..50 {
            let step = formulas.add(Value::One, z);
            let product = formulas.multiply(step, x);
            x = formulas.add(product, z);
        }
        let mut unchanged = formulas.multiply(Value::One, Value::Zero);
        let program = formulas.compile([&mut x, &mut unchanged].into_iter());
        assert!(program.registers() <= 4);
        assert_eq!(unchanged, Value::Zero);
        let weight = Weight::new(Real, 0.5);
        let mut registers = vec![0.0; program.registers()];
        program.run(0..program.length(), &weight, 0, &mut registers);
        let expected = (0..50).fold(0.5, |x, _| x * 1.5 + 0.5);
        assert_eq!(read(Real, x, &registers), expected);
    }

    #[test]
    fn squares_free_their_register_once() {
        let mut formulas = Formulas::default();
        let z = formulas.activity(0b10);
        let mut square = formulas.multiply(z, z);
        let other = formulas.activity(0);
        let mut sum = formulas.add(other, square);
        assert_eq!(formulas.roundings(sum), 2);
        let program = formulas.compile([&mut square, &mut sum].into_iter());
        for (branch, expected) in [(0b00, 9.0 + 3.0), (0b10, 3.0)] {
            let mut registers = vec![0.0; program.registers()];
            program.run(0..program.length(), &Weight::new(Real, 3.0), branch, &mut registers);
            assert_eq!(read(Real, sum, &registers), expected);
            assert_eq!(read(Real, square, &registers), expected - 3.0);
        }
    }
}
