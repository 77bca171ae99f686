//! The butterfly as a list of passes over a block that fits the cache, worked out once.
//!
//! A pass takes several levels of the recursion at once, in registers, so that an element is loaded and stored once for all of
//! them: over the words p of n symbols, the runs of words p... are streams, and the network of n symbols acts across them
//! (`network`). Passes follow the recursion depth first, so small runs stay in the nearest cache. The last symbols are
//! consumed by networks over neighboring elements.
//!
//! After j symbols of a row an element is a sum of at most f(j) old ones, after i symbols of one row and j of the next of at
//! most f(i) f(j); with i + j <= 12 both are below the headroom of 511, and with i + j <= 16 below that of 4095 of the shorter
//! primes of `reflection`. The list says where to fold accordingly.
//!
//! Source: derived here; f(k) is the number of words of k symbols, a Fibonacci number.

use super::network;
use super::words::words;

/// Symbols that may be consumed before the next fold: then at most f(i) f(12 - i) < 511 elements are summed.
pub const STRIDE: usize = 12;

/// Folds elements as they are loaded.
pub const FOLD_IN: u8 = 1;
/// Folds elements between two rows.
pub const FOLD_MIDDLE: u8 = 2;
/// Folds elements as they are stored.
pub const FOLD_OUT: u8 = 4;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Splits across streams.
    Down,
    /// Merges across streams.
    Up,
    /// Ends one row and begins the next: merges, then splits.
    Turn,
    /// The last symbols of a row.
    Row,
    /// The last symbols of a row and, in reverse, of the next.
    Rows,
    /// The first merges, from strided memory to the block; open.
    Gather,
    /// As before; closed.
    GatherClosed,
    /// The last splits, from the block to strided memory; open.
    Scatter,
    /// As before; closed.
    ScatterClosed,
}

/// One pass or one network.
#[derive(Clone, Copy, Debug)]
pub struct BlockPass {
    /// What to do.
    pub action: Action,
    /// Symbols of the network.
    pub order: u8,
    /// Symbols of the words of the run.
    pub length: u8,
    /// When to fold.
    pub folds: u8,
    /// Where the run starts.
    pub at: u32,
}

/// What ends the recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All symbols of the words are here.
    Whole,
    /// The words go on elsewhere with a 0; strided memory holds them.
    Open,
    /// The words end here, or go on with a 1 after a 0; strided memory holds them.
    Closed,
}

/// What a program does to its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Splits: the first or the last symbols of a row, or all.
    Down,
    /// Merges: the same, transposed.
    Up,
    /// One row to its end and the next from there: splits and merges over the last symbols, merges and splits over the first.
    Both,
}

/// The passes over the words of length `length` with networks of at most `order` symbols; elements are folded before and after.
///
/// At most `stride` symbols are consumed between two folds.
pub fn program(length: usize, order: usize, stride: usize, ending: Ending, course: Course) -> Vec<BlockPass> {
    let mut builder = Builder { list: Vec::new(), order, stride, ending };
    let folded = 0;
    match (ending, course) {
        (_, Course::Down) => {
            builder.down(length, 0, folded);
        }
        (_, Course::Up) => {
            let consumed = builder.up(length, 0);
            builder.fold_last(consumed);
        }
        (Ending::Whole, Course::Both) => {
            let consumed = builder.around(length, 0, folded);
            builder.fold_last(consumed);
        }
        (_, Course::Both) if length <= order => {
            let consumed = builder.leaf_up(length, 0);
            builder.leaf_down(length, 0, consumed);
        }
        (_, Course::Both) => builder.turn(length),
    }
    builder.list
}

/// The programs of one kind of block.
#[derive(Clone, Debug)]
pub struct Courses([Vec<BlockPass>; 3]);

impl Courses {
    /// The three courses over the words of `length` symbols; see [`program`].
    pub fn new(length: usize, order: usize, stride: usize, ending: Ending) -> Self {
        Self([Course::Down, Course::Up, Course::Both].map(|course| program(length, order, stride, ending, course)))
    }

    /// The program of a course.
    #[inline(always)]
    pub fn course(&self, course: Course) -> &[BlockPass] {
        &self.0[course as usize]
    }
}

struct Builder {
    list: Vec<BlockPass>,
    order: usize,
    stride: usize,
    ending: Ending,
}

impl Builder {
    /// A fold if the next symbols would exceed the stride, and the symbols consumed before them.
    fn fold_before(&self, consumed: usize, next: usize) -> (u8, usize) {
        if consumed + next > self.stride { (FOLD_IN, 0) } else { (0, consumed) }
    }

    fn push(&mut self, action: Action, order: usize, length: usize, folds: u8, at: usize) {
        let (order, length) = (order as u8, length as u8);
        let at = u32::try_from(at).expect("a block is far smaller than 2^32");
        self.list.push(BlockPass { action, order, length, folds, at });
    }

    fn fold_last(&mut self, consumed: usize) {
        if let Some(last) = self.list.last_mut().filter(|_| consumed > 0) {
            last.folds |= FOLD_OUT;
        }
    }

    /// The levels of the next pass: as few passes as possible, of about the same size.
    fn levels(&self, length: usize) -> usize {
        let rest = length - self.order;
        rest.div_ceil(rest.div_ceil(self.order - 1))
    }

    /// The two smaller runs that a pass of `levels` leaves, each time it leaves one.
    fn parts(length: usize, levels: usize, at: usize) -> Vec<(usize, usize, usize)> {
        fn walk(length: usize, levels: usize, symbols: usize, at: usize, list: &mut Vec<(usize, usize, usize)>) {
            if symbols >= levels {
                list.push((length, at, symbols));
            } else {
                walk(length - 1, levels, symbols + 1, at, list);
                walk(length - 2, levels, symbols + 2, at + words(length - 1), list);
            }
        }
        let mut list = Vec::new();
        walk(length, levels, 0, at, &mut list);
        list
    }

    fn leaf_down(&mut self, length: usize, at: usize, consumed: usize) {
        let (fold, _) = self.fold_before(consumed, length);
        let action = match self.ending {
            Ending::Whole => Action::Row,
            Ending::Open => Action::Scatter,
            Ending::Closed => Action::ScatterClosed,
        };
        self.push(action, length, length, fold | FOLD_OUT, at);
    }

    fn leaf_up(&mut self, length: usize, at: usize) -> usize {
        let action = match self.ending {
            Ending::Whole => Action::Row,
            Ending::Open => Action::Gather,
            Ending::Closed => Action::GatherClosed,
        };
        self.push(action, length, length, 0, at);
        length
    }

    fn down(&mut self, length: usize, at: usize, consumed: usize) {
        if length <= self.order {
            return self.leaf_down(length, at, consumed);
        }
        let levels = self.levels(length);
        let (fold, consumed) = self.fold_before(consumed, levels + 1);
        self.push(Action::Down, levels + 1, length, fold, at);
        for (length, at, symbols) in Self::parts(length, levels, at) {
            self.down(length, at, consumed + symbols);
        }
    }

    /// Returns the symbols consumed since the last fold.
    fn up(&mut self, length: usize, at: usize) -> usize {
        if length <= self.order {
            return self.leaf_up(length, at);
        }
        let levels = self.levels(length);
        let parts = Self::parts(length, levels, at);
        let most = parts.into_iter().map(|(length, at, symbols)| self.up(length, at) + symbols).max();
        let (fold, consumed) = self.fold_before(most.unwrap_or(0), 0);
        self.push(Action::Up, levels + 1, length, fold, at);
        if fold > 0 { levels + 1 } else { consumed }
    }

    /// A whole row downwards and the next upwards.
    fn around(&mut self, length: usize, at: usize, consumed: usize) -> usize {
        if length <= self.order {
            let (fold, consumed) = self.fold_before(consumed, length);
            let (middle, before) =
                if consumed + 2 * length > self.stride { (FOLD_MIDDLE, 0) } else { (0, consumed + length) };
            self.push(Action::Rows, length, length, fold | middle, at);
            return before + length;
        }
        let levels = self.levels(length);
        let (fold, consumed) = self.fold_before(consumed, levels + 1);
        self.push(Action::Down, levels + 1, length, fold, at);
        let parts = Self::parts(length, levels, at);
        let most =
            parts.into_iter().map(|(length, at, symbols)| self.around(length, at, consumed + symbols) + symbols).max();
        let (fold, consumed) = self.fold_before(most.unwrap_or(0), 0);
        self.push(Action::Up, levels + 1, length, fold, at);
        if fold > 0 { levels + 1 } else { consumed }
    }

    /// The first symbols of a row upwards and of the next downwards, the pass at the top once for both.
    fn turn(&mut self, length: usize) {
        let levels = self.levels(length);
        let parts = Self::parts(length, levels, 0);
        let most = parts.iter().map(|&(length, at, symbols)| self.up(length, at) + symbols).max();
        let (fold, consumed) = self.fold_before(most.unwrap_or(0), levels + 1);
        self.push(Action::Turn, levels + 1, length, fold, 0);
        let consumed = if fold > 0 { levels + 1 } else { consumed };
        for (length, at, symbols) in parts {
            self.down(length, at, consumed + symbols);
        }
    }
}

/// The largest order whose network fits in registers that hold so many elements.
pub const fn order(held: usize) -> usize {
    let mut order = 2;
    while order < network::LONGEST && words(order + 1) <= held {
        order += 1;
    }
    order
}
