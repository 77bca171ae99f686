//! The compiled module `quincunx._core`: one line per exported name.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
