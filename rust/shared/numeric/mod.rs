//! Numbers the rooms share: residues and their recombination, elimination of sparse matrices, the rings transfer kernels run
//! over, certified intervals, aligned memory, kernels for wide vectors.

pub mod big;
pub mod buffer;
pub mod bundle;
pub mod dispatch;
pub mod double_double;
pub mod double_ring;
pub mod elementary;
pub mod elimination;
pub mod exact_sum;
pub mod floats;
pub mod interval;
pub mod neighbors;
pub mod places;
pub mod residue;
pub mod ring;
pub mod special;
