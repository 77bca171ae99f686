//! Numbers the rooms share: residues and their recombination, the rings transfer kernels run over, intervals, aligned memory.

pub mod buffer;
pub mod dispatch;
pub mod double_double;
pub mod interval;
pub mod residue;
pub mod ring;
pub mod special;
