//! Tests of the record log: random operations on a model of a disk, and single cases.

mod cases;
pub(crate) mod disk;
mod gaps;
mod power;
