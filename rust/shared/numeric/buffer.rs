//! Large zeroed arrays, aligned for vector registers, backed by large pages where the system offers them.

use crate::{Error, Result, memory};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Cache-line alignment: a vector register of any width never straddles two lines.
const ALIGNMENT: usize = 64;
/// From this size on memory is asked for in large pages.
const LARGE_PAGE: usize = 2 << 20;

/// An owned array of plain values, all bytes zero at first.
#[derive(Debug)]
pub struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    block: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a buffer owns its memory alone, as `Vec` does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: shared access hands out `&[T]` only.
unsafe impl<T: Sync> Sync for Buffer<T> {}

/// Types whose all-zero bytes are a value.
///
/// # Safety
/// Only for types without invalid bit patterns.
pub unsafe trait Zero: Copy {}
// SAFETY: every pattern of its bits is an integer.
unsafe impl Zero for u64 {}
// SAFETY: every pattern of its bits is an integer.
unsafe impl Zero for u16 {}
// SAFETY: every pattern of its bits is a number or NaN; zero bytes are 0.0.
unsafe impl Zero for f64 {}
// SAFETY: its zero bytes are the number zero.
unsafe impl Zero for super::double_double::DoubleDouble {}
// SAFETY: arrays of such.
unsafe impl<T: Zero, const L: usize> Zero for [T; L] {}

impl<T: Zero> Buffer<T> {
    /// An array of `len` zeros.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the system does not give the memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|&b| b <= isize::MAX as usize - LARGE_PAGE);
        let refused = || Error::TooLarge {
            what: "a working vector",
            needed: len as u128 * size_of::<T>() as u128,
            limit: u128::from(memory::available_now()),
        };
        let bytes = bytes.ok_or_else(refused)?;
        let alignment = if bytes >= LARGE_PAGE { LARGE_PAGE } else { ALIGNMENT };
        // Asked for with slack and aligned here: the system's zeroed pages then stay untouched until they are used.
        let layout = Layout::from_size_align(bytes + alignment, 16).map_err(|_| refused())?;
        // SAFETY: the layout has a non-zero size.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        // SAFETY: the offset is below `alignment`, and the block is `alignment` bytes longer than the array.
        let start = unsafe { block.add(block.align_offset(alignment)) }.cast::<T>();
        #[cfg(target_os = "linux")]
        if bytes >= LARGE_PAGE {
            // SAFETY: the range is our own fresh allocation, aligned to pages; the call is advice and changes no content.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Self { start, len, block, layout })
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: `block` was allocated with exactly this layout.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised values start there, and we own them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for len in [0, 1, 1000, 300_000] {
            let buffer = Buffer::<[u64; 8]>::zeroed(len).unwrap();
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % 64), (len, 0));
            assert!(buffer.iter().all(|x| *x == [0; 8]));
        }
        assert!(matches!(Buffer::<u64>::zeroed(usize::MAX / 4), Err(Error::TooLarge { .. })));
    }
}
