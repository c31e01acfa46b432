//! The wire: one thread that carries packets from device to device through the links of the
//! scenario, on the monotonic clock.

mod emulator;
mod frames;
mod lateness;
mod packet;
mod recorder;
mod tally;
mod tap;

pub(crate) use emulator::{Emulator, LostData, WireOutcome};
pub(crate) use lateness::Lateness;
pub(crate) use tally::Tally;
