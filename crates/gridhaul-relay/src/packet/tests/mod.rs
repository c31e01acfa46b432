//! Tests of the engine with simulated hosts, whose TCP is that of the simulator.

mod cases;
mod frames;
mod host;
mod limits;
mod random_faults;
mod restart;
mod schedules;
mod world;
