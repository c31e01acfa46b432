//! TCP conformance tests that run on several backends.
//!
//! A [`Case`](case::Case) is a file below `cases/`: the requirement of an RFC, a path, two stacks,
//! an input, and the expected observation. A [`CaseBackend`](backend::CaseBackend) runs the case
//! and returns the packets that it captured. [`compare`](compare::compare) reports the differences.

#![forbid(unsafe_code)]

pub mod backend;
pub mod case;
pub mod compare;
pub mod ns2_drops;
pub mod ns2_grid;
pub mod ns2_meters;
pub mod observation;
