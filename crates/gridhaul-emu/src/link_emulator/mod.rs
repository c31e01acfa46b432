//! The link emulator: one thread that forwards packets between devices through the links of the
//! scenario, on the monotonic clock.

mod bridged_device;
mod capture;
mod emulator;
mod lateness;
mod packet_header;
mod packet_store;
mod recorder;
mod row_counters;

pub(crate) use bridged_device::BridgeStates;
pub(crate) use emulator::{Emulator, EmulatorOutcome, LostData};
pub use lateness::Forwarded;
pub(crate) use lateness::{ForwardedCounter, Lateness};
pub(crate) use row_counters::RowCounters;
