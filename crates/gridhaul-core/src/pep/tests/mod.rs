//! Test harness of all proxies: two hosts, a chain of proxies between them, and hops that drop,
//! duplicate, delay and truncate segments, with every byte of payload.
//!
//! A [`Proxy`](super::Proxy) sees lengths only. [`proxy::ProxyWithPayload`] stores the payload for
//! it, so that the bytes of each segment that a proxy sends must be in its store. [`chain::Chain`]
//! checks after every event that
//!
//! - the data of a receiver is a prefix of the sent stream, and all of it if FIN has arrived;
//! - data that is acknowledged to its sender and has not arrived is stored in a proxy, unless it
//!   was at risk in a proxy that has crashed;
//! - no proxy stores more than its limit.

mod ack_filter;
mod ack_filter_traces;
mod chain;
mod coupled;
mod coupled_edge_cases;
mod drain;
mod hop;
mod host;
mod last_hop;
mod lost_resets;
mod malformed_segments;
mod pass_through;
mod proxy;
mod random_schedules;
mod snoop;
mod spoof;
mod transparent;
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

/// The byte that `from` sends at `offset` of its stream. The sequence has no short period, so that
/// a byte from a wrong position is detected.
fn payload(from: Side, offset: u64) -> u8 {
    let mixed = (offset + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ (mixed >> 13) as u8 ^ (from.index() as u8 * 0x5a)
}

/// A stack with segments of `mss` bytes, a receive buffer of `window` bytes and short timers.
fn stack(mss: u32, window: u32) -> Arc<StackParams> {
    let stack = Stack { mss: Some(units::Bytes::new(u64::from(mss))), ..Stack::default() };
    let mut params = StackParams {
        receive_window: window,
        delayed_ack: Duration::from_millis(40),
        delayed_ack_max: Duration::from_millis(40),
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(5),
        ..StackParams::resolve(&stack)
    };
    // Over many hops with losses, SYN may be lost more often than a host sends it.
    params.policy.syn_retransmissions_max = None;
    Arc::new(params)
}
