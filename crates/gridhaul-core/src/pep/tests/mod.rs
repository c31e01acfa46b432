//! What every proxy is tried on: two hosts, a chain of proxies between them, and hops that lose,
//! repeat, delay and cut segments, with every byte of payload carried along.
//!
//! A machine sees lengths only. Here its carrier keeps the bytes ([`proxy::CarriedProxy`]), so that a
//! segment which is sent from a unit must find its bytes there. [`chain::Chain`] checks after every
//! event that
//!
//! - what a receiver has is a prefix of what was sent, also where FIN says that it is all;
//! - what is acknowledged to a sender and has not arrived is kept somewhere, unless a unit that was
//!   made to crash had the only copy;
//! - no unit keeps more than it may.

mod ack_filter;
mod chain;
mod coupled;
mod coupled_edge_cases;
mod hop;
mod host;
mod last_hop;
mod malformed_segments;
mod pass_through;
mod proxy;
mod random_schedules;
mod snoop;
mod two_hops;

use std::sync::Arc;

use bytes::Bytes;
use gridhaul_scenario::scenario::Stack;
use gridhaul_scenario::units::{self, Duration};

use super::Side;
use crate::tcp::{Segment, StackParams};

/// A segment with its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packet {
    segment: Segment,
    bytes: Bytes,
}

/// The byte that `from` sends at `offset` of its stream. No short period, so that a byte from a
/// wrong place shows.
fn payload(from: Side, offset: u64) -> u8 {
    let mixed = (offset + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ (mixed >> 13) as u8 ^ (from.index() as u8 * 0x5a)
}

/// A stack with segments of `mss` bytes, a receive buffer of `window` bytes and short timers.
fn stack(mss: u32, window: u32) -> Arc<StackParams> {
    let stack = Stack { mss: Some(units::Bytes::new(u64::from(mss))), ..Stack::default() };
    Arc::new(StackParams {
        receive_window: window,
        delayed_ack: Duration::from_millis(40),
        delayed_ack_max: Duration::from_millis(40),
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(5),
        ..StackParams::resolve(&stack)
    })
}
