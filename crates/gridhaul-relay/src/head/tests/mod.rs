//! A collector and a head on models of disks and networks: random schedules with kills and power
//! failures of either.

mod batches;
mod credit;
mod gaps;
mod limits;
mod schedules;
#[cfg(feature = "daemon")]
mod servers;
mod streams;
mod versions;
mod world;
