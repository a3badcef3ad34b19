//! A task conductor: requests open a [`context`], their tasks wait in lanes and are dispatched to named handlers by the
//! [`conductor`], and what arrives from outside is cut into frames by the [`codec`].
//!
//! It is a subject for measuring: three inefficiencies that real programs have are left in on purpose.

#![warn(missing_docs)]

pub mod checksum;
pub mod codec;
pub mod conductor;
pub mod context;
pub mod registry;
pub mod workload;
