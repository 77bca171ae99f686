//! Memory for kernels: a few cache lines of one's own, and a table shared by threads that keep apart.

/// Memory for some elements, aligned to cache lines.
pub struct Scratch<E> {
    lines: Vec<Line>,
    elements: usize,
    kind: std::marker::PhantomData<E>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u64; 8]);

impl<E: Copy> Scratch<E> {
    /// Memory for so many elements of a ring, zero.
    pub fn new(elements: usize) -> Self {
        let lines = vec![Line([0; 8]); (elements * size_of::<E>()).div_ceil(64)];
        Self { lines, elements, kind: std::marker::PhantomData }
    }

    /// The elements.
    pub fn elements(&mut self) -> &mut [E] {
        const { assert!(align_of::<E>() <= 64) };
        // SAFETY: the lines hold that many elements; zero bytes are the zero of every ring.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.elements) }
    }
}

/// A table that several threads work on, each at its own places.
pub struct Shared<E> {
    start: *mut E,
    len: usize,
}

// SAFETY: elements are only reached by `Shared::part`, whose callers keep apart.
unsafe impl<E: Send> Sync for Shared<E> {}

impl<E> Shared<E> {
    /// Shares a table.
    pub fn new(table: &mut [E]) -> Self {
        Self { start: table.as_mut_ptr(), len: table.len() }
    }

    /// A stretch of the table.
    ///
    /// # Safety
    /// Nobody else uses any of it at the same time.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, first: usize, len: usize) -> &mut [E] {
        assert!(first <= self.len && len <= self.len - first, "a place outside the table");
        // SAFETY: the stretch lies in the table, and is the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}
