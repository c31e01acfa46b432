//! One body of TCP cases, run on several arms.

pub mod ns2_grid;
