//! Cargo wants a target that is no benchmark.
