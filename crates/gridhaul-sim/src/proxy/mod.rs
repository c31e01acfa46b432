//! Proxies in a run: nodes on the path of a connection that do more than forward packets.
//!
//! `wiring.rs` places one proxy instance for each connection and proxy node, `builder.rs` builds
//! its state machine, `events.rs` handles packets and timers, `results.rs` computes metrics and
//! audits, and `unsupported.rs` lists what this backend cannot simulate. The state machines are
//! those of [`gridhaul_core::pep`].

mod builder;
mod events;
mod results;
mod unsupported;
mod wiring;

use gridhaul_core::pep::{BufferStatus, Proxy, Side, TimeAverage};
use gridhaul_scenario::scenario::PacketsWhileDown;
use gridhaul_scenario::units::Instant;

use builder::ProxyBuilder;
pub(crate) use events::{AcceptedSegment, Context, PacketOutcome};
pub(crate) use results::ProxySums;
pub(crate) use unsupported::unsupported;
pub(crate) use wiring::ProxyWiring;

/// The proxies of a run. Both lists are empty in a run without proxies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proxies {
    /// Index of the first instance of each flow.
    pub first: Vec<u32>,
    pub instances: Vec<ProxyInstance>,
}

/// The state of a proxy for one connection.
#[derive(Debug, Clone)]
pub(crate) struct ProxyInstance {
    pub flow: u32,
    /// The row of the flow.
    row: u32,
    proxy: Box<dyn Proxy>,
    builder: ProxyBuilder,
    /// Indices in the list of routes of the next links to the left and to the right.
    next: [u32; 2],
    /// Future crashes, the next one last: start, end, and whether packets are forwarded or dropped
    /// meanwhile.
    crashes: Vec<(Instant, Instant, PacketsWhileDown)>,
    /// During a crash: its end, and whether packets are forwarded or dropped.
    down: Option<(Instant, PacketsWhileDown)>,
    /// Payload of both directions that is acknowledged but not yet delivered downstream.
    bytes_at_risk: TimeAverage,
    /// Number of crashes so far.
    crashes_so_far: u32,
    sent_data: SentData,
}

/// The data segments that a proxy has sent.
#[derive(Debug, Clone, Default)]
struct SentData {
    retransmissions: u64,
    /// Highest sequence number sent plus one, toward the left and the right.
    highest: [Option<u32>; 2],
    /// Whether the proxy acknowledges data in place of the receiver.
    acknowledges_data: bool,
}

/// State of a proxy that its events show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProxySnapshot {
    pub is_down: bool,
    /// Payload of both directions that is acknowledged and not yet delivered downstream.
    pub at_risk: u64,
    /// Retransmitted data segments, and retransmission timeouts of the proxy's own connections.
    pub retransmissions: u64,
    pub timeouts: u64,
}

impl ProxyInstance {
    pub(crate) fn snapshot(&self) -> ProxySnapshot {
        ProxySnapshot {
            is_down: self.down.is_some(),
            at_risk: self.bytes_at_risk.value(),
            retransmissions: self.sent_data.retransmissions,
            timeouts: self.proxy.statistics().timeouts.iter().sum(),
        }
    }

    /// Whether a timer of the state machine is due.
    pub(crate) fn is_timer_due(&self, now: Instant) -> bool {
        self.down.is_none() && self.proxy.next_deadline() <= now
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        let own = match self.down {
            Some((until, _)) => until,
            None => self.proxy.next_deadline(),
        };
        own.min(self.next_crash())
    }

    #[inline]
    fn next_crash(&self) -> Instant {
        self.crashes.last().map_or(Instant::NEVER, |crash| crash.0)
    }

    /// Payload received, acknowledged and released for one direction, if the proxy acknowledges
    /// data. `sent` is the payload sent to the proxy. The proxy counts from the position at which
    /// it entered the connection; the result counts from the beginning of the stream.
    pub(crate) fn progress(&self, from: Side, sent: u64) -> Option<BufferStatus> {
        let held = self.proxy.buffer_status(from);
        // A proxy that only forwards has received nothing.
        if !self.sent_data.acknowledges_data || held.received == 0 {
            return None;
        }
        let Some(first) = self.proxy.first_sequence_number(from) else { return Some(held) };
        let after_syn = self.builder.isns[from.index()].wrapping_add(1);
        // Sequence numbers wrap, so of all positions with this number the one closest to `sent` is
        // meant.
        let received = first.wrapping_add(held.received as u32).wrapping_sub(after_syn);
        let lag = (sent as u32).wrapping_sub(received).cast_signed();
        let entered = sent.saturating_add_signed(-i64::from(lag)).saturating_sub(held.received);
        let received = held.received + entered;
        let (taken, released) = (held.acknowledged + entered, held.released + entered);
        Some(BufferStatus { received, acknowledged: taken, released, ..held })
    }
}
