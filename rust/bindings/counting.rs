//! Counting: from Python to the core and back.
