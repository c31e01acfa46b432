//! Tests of the engine with simulated hosts, whose TCP is that of the simulator.

mod cases;
mod drain;
mod frames;
mod hand_over;
mod host;
mod joining;
mod limits;
mod lost_resets;
mod old_syn;
mod random_faults;
mod restart;
mod schedules;
mod world;
