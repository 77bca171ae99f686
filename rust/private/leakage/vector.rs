//! Copies that pass the cache by.

/// Copies without reading the target into the cache: for results much larger than it. Half the traffic of a plain copy
/// where the target is cold. End a run of such copies with [`finish`].
#[inline]
pub fn stream(target: &mut [f64], source: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_pd, _mm_stream_pd};
        let len = target.len().min(source.len());
        let skip = target.as_ptr().align_offset(16).min(len);
        target[..skip].copy_from_slice(&source[..skip]);
        let pairs = (len - skip) / 2;
        for pair in 0..pairs {
            let at = skip + 2 * pair;
            // SAFETY: `at + 2 <= len`, and the target is aligned to 16 bytes from `skip` on, in steps of two. Whoever calls comes to
            // `finish` on this thread before anybody looks at the target.
            unsafe { _mm_stream_pd(target.as_mut_ptr().add(at), _mm_loadu_pd(source.as_ptr().add(at))) };
        }
        let rest = skip + 2 * pairs;
        target[rest..len].copy_from_slice(&source[rest..len]);
    }
    #[cfg(not(target_arch = "x86_64"))]
    target.copy_from_slice(source);
}

/// Makes streamed values visible to other threads.
#[inline]
pub fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has this instruction; it orders stores and does nothing else.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_copy_is_a_copy_at_any_alignment() {
        let source: Vec<f64> = (0..40).map(f64::from).collect();
        for from in 0..5 {
            for len in 0..20 {
                let mut target = vec![-1.0; 40];
                stream(&mut target[from..from + len], &source[1..1 + len]);
                finish();
                assert_eq!(target[from..from + len], source[1..1 + len]);
                assert!(target[..from].iter().chain(&target[from + len..]).all(|&x| x == -1.0));
            }
        }
    }
}
