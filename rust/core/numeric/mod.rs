//! Numbers the rooms share: residues and their recombination, the rings transfer kernels run over, aligned memory.

pub mod buffer;
pub mod residue;
pub mod ring;
pub mod simd;
pub mod special;
