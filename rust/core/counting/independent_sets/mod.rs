//! Independent sets: exact numbers, the independence polynomial, the hard-core partition function.

pub mod brute;
pub mod frontier;
