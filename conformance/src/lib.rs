//! One body of TCP cases, run on several arms.
//!
//! A [`Case`](case::Case) is a file below `cases/`: what the RFC says, a path, two stacks, an
//! input, and what must be seen. An [`Arm`](arm::Arm) runs it and returns what was seen on the
//! wire. [`judge`](judge::judge) compares the two and says where they part.

#![forbid(unsafe_code)]

pub mod arm;
pub mod case;
pub mod judge;
pub mod ns2_drops;
pub mod ns2_grid;
pub mod ns2_meters;
pub mod observe;
