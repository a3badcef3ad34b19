//! Has a bench target of the same name.
