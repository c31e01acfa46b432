//! Flows: the two ends of a connection, and the application that uses it.

use std::hint::black_box;

use gridhaul_core::load::{Application, CoapMember};
use gridhaul_core::tcp::{Connection, Flags, Segment, Sender, State};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use crate::audit::Violation;
use crate::end_id::EndId;
use crate::managed_flow::ManagedFlow;
use crate::row_counters::{RowCounters, SenderSums};

/// A flow in a run. It fills whole cache lines: those of most of a million flows have to be loaded
/// from memory at each event.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Flow {
    /// Row of the answer.
    pub row: u32,
    pub ends: Ends,
    /// The application. An upstream connection has none: its aggregator writes to it.
    pub app: Option<Application>,
    /// Indices in the network's list at which the routes from the `from` and from the `to` end
    /// begin.
    pub routes: [u32; 2],
    /// Payload delivered at the `to` end at which the application or the aggregator there is
    /// notified. The application keeps the corresponding position of the `from` end.
    pub notify_at: u64,
    /// Congestion window at the last update of the row's counters.
    pub cwnd: u32,
}

/// The two ends of a flow.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all are TCP, and a box of each costs memory")]
pub(crate) enum Ends {
    /// A TCP connection: the `from` end and the `to` end.
    Tcp([Connection; 2]),
    /// Connections that open and close during the run.
    Managed(Box<ManagedFlow>),
    /// Confirmable messages of CoAP.
    Coap(Box<CoapMember>),
    /// Datagrams: the ends have no state.
    Datagram {
        /// Whether the `to` end sends every packet back.
        echo: bool,
        /// IP and UDP headers in bytes.
        header: u8,
    },
}

/// The result of a segment's arrival at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// The payload for which the application or the aggregator waits has arrived.
    PayloadReady,
    /// A SYN-ACK has arrived at the end that opens the connection.
    SynAck,
    /// A segment of a flow whose connections open and close; it is not handled yet.
    Managed,
    Other,
}

impl Flow {
    /// A segment of this size reaches an end. `totals` are the counters of the flow's row.
    #[inline(always)]
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        to: EndId,
        (segment, bytes): (&Segment, u32),
        totals: &mut RowCounters,
    ) -> Received {
        let Ends::Tcp(ends) = &mut self.ends else {
            return self.on_managed_segment(to, (segment, bytes), totals);
        };
        let side = to.side();
        let end = &mut ends[side];
        end.handle_segment(now, segment);
        let bytes = u64::from(bytes);
        if side == 0 {
            totals.reverse_bytes += bytes;
            totals.reverse_segments += 1;
            totals.note_cwnd(now, &mut self.cwnd, end.sender().map_or(0, Sender::cwnd));
            if segment.flags.has(Flags::SYN) {
                return Received::SynAck;
            }
            if segment.len == 0 {
                // A pure acknowledgement delivers nothing.
                return Received::Other;
            }
            return match self.app.as_ref().and_then(Application::watch_response) {
                Some(notify_at) if end.receiver().delivered() >= notify_at => {
                    Received::PayloadReady
                }
                _ => Received::Other,
            };
        }
        totals.arrived_bytes += bytes;
        if end.receiver().delivered() >= self.notify_at {
            Received::PayloadReady
        } else {
            Received::Other
        }
    }

    /// A segment reaches an end of a flow whose connections open and close.
    #[cold]
    fn on_managed_segment(
        &mut self,
        to: EndId,
        (segment, bytes): (&Segment, u32),
        totals: &mut RowCounters,
    ) -> Received {
        let Ends::Managed(managed) = &mut self.ends else { return Received::Other };
        managed.on_arrived(to, segment);
        if to.is_from() {
            totals.reverse_bytes += u64::from(bytes);
            totals.reverse_segments += 1;
        } else {
            totals.arrived_bytes += u64::from(bytes);
        }
        Received::Managed
    }

    /// Reads a value from each part of the state that a message of the application needs, so that
    /// the processor loads these parts from memory.
    pub(crate) fn read_for_message(&self) {
        let (Ends::Tcp([from, to]), Some(app)) = (&self.ends, &self.app) else { return };
        black_box((self.cwnd, app.next_deadline(), from.state(), to.state()));
        black_box((from.receiver().next(), to.receiver().next()));
        if let Some(sender) = from.sender() {
            black_box((sender.una(), sender.written(), sender.in_flight()));
            black_box((sender.stats().segments, sender.rtt().srtt()));
            black_box((sender.cwnd(), sender.estimator_counters()));
        }
    }

    /// The same for the timer of an end.
    pub(crate) fn read_for_timer(&self, end: EndId) {
        if let Ends::Tcp(ends) = &self.ends {
            black_box(ends[end.side()].next_deadline());
        }
    }

    /// An upstream connection of an aggregator.
    pub(crate) fn upstream(row: u32, ends: [Connection; 2], routes: [u32; 2]) -> Self {
        Self { row, ends: Ends::Tcp(ends), app: None, routes, notify_at: u64::MAX, cwnd: 0 }
    }

    /// Whether the application writes whenever the connection can send.
    #[inline]
    pub(crate) fn is_in_burst(&self) -> bool {
        self.app.as_ref().is_some_and(Application::is_in_burst)
    }

    pub(crate) const fn is_tcp(&self) -> bool {
        matches!(self.ends, Ends::Tcp(_) | Ends::Managed(_))
    }

    /// Whether the application sends messages, which have delays.
    pub(crate) fn has_messages(&self) -> bool {
        self.app.as_ref().is_some_and(Application::has_messages)
    }

    /// Whether the connection was refused, or its SYN retransmitted without a response. A first SYN
    /// that is still in flight is no failure. Of successive connections, that of an attempt in
    /// progress counts.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        match &self.ends {
            Ends::Tcp([client, _]) => has_failed_to_open(client),
            Ends::Managed(managed) => managed.opening().is_some_and(has_failed_to_open),
            Ends::Coap(_) | Ends::Datagram { .. } => false,
        }
    }

    /// Payload that has arrived in order at the end of the flow's own connection.
    pub(crate) fn received(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(ends) => ends[1].receiver().delivered(),
            Ends::Managed(managed) => managed.manager.delivered(FlowEnd::To),
            Ends::Coap(_) | Ends::Datagram { .. } => 0,
        }
    }

    /// The ends of the chunks into which an aggregator divides a byte stream, from `first` on. A
    /// byte stream has no message boundaries, so each full segment is a chunk.
    pub(crate) fn chunks(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let mss = match &self.ends {
            Ends::Tcp(ends) => u64::from(ends[0].params().mss),
            Ends::Managed(_) | Ends::Coap(_) | Ends::Datagram { .. } => 1,
        };
        let transfer = self.app.as_ref().and_then(Application::transfer);
        let total = transfer.map_or(u64::MAX, |transfer| transfer.bytes);
        std::iter::successors(Some(first), move |&end| {
            (end < total).then(|| end.saturating_add(mss).min(total))
        })
    }

    /// A byte stream that an aggregator forwards has begun.
    pub(crate) fn begin_chunks(&mut self) {
        if self.app.as_ref().is_some_and(|app| !app.has_messages()) {
            self.notify_at = self.chunks(0).nth(1).unwrap_or(u64::MAX);
        }
    }

    /// Ready times of confirmable messages that have not arrived and are not given up.
    pub(crate) fn unconfirmed(&self) -> impl Iterator<Item = Instant> {
        let member = match &self.ends {
            Ends::Coap(member) => Some(member),
            _ => None,
        };
        member.into_iter().flat_map(|member| member.undelivered())
    }

    /// Checks that received data was sent and that acknowledged data was received.
    pub(crate) fn audit(&self) -> Result<(), Violation> {
        match &self.ends {
            Ends::Tcp(ends) => audit(ends),
            Ends::Managed(managed) => managed.connections().try_for_each(audit),
            Ends::Coap(_) | Ends::Datagram { .. } => Ok(()),
        }
    }

    /// Adds the counters of the senders at the `from` end.
    pub(crate) fn add_senders(&self, sums: &mut SenderSums) {
        match &self.ends {
            Ends::Tcp(ends) => sums.add(ends),
            Ends::Managed(managed) => managed.add_senders(sums),
            Ends::Coap(_) | Ends::Datagram { .. } => {}
        }
    }

    /// Payload sent, acknowledged and delivered at the `from` and the `to` end.
    pub(crate) fn payload_counters(&self) -> Option<(PayloadCounters, PayloadCounters)> {
        let Ends::Tcp([left, right]) = &self.ends else { return None };
        Some((PayloadCounters::of(left), PayloadCounters::of(right)))
    }
}

/// Payload of one end in bytes. `sent` includes everything that the other end may have received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadCounters {
    pub sent: u64,
    pub acknowledged: u64,
    /// Payload of the other end that this end has delivered.
    pub delivered: u64,
}

impl PayloadCounters {
    fn of(end: &Connection) -> Self {
        let (next, una) = end.sent_and_acknowledged();
        let next = end.sender().map_or(next, Sender::reach);
        // The SYN has position 0, and the FIN the position after the last byte.
        let fin = end.sender().and_then(Sender::fin_position).unwrap_or(u64::MAX);
        let payload = |position: u64| position.min(fin).saturating_sub(1);
        let delivered = end.receiver().delivered();
        Self { sent: payload(next), acknowledged: payload(una), delivered }
    }
}

/// Whether the end that opens a connection was refused, or has retransmitted its SYN without a
/// response.
fn has_failed_to_open(client: &Connection) -> bool {
    match client.state() {
        State::Closed => client.receiver().next() == 0,
        State::SynSent => {
            client.sender().map(Sender::stats).is_some_and(|stats| stats.timeouts > 0)
        }
        _ => false,
    }
}

/// Checks that received data was sent and that acknowledged data was received.
fn audit(ends: &[Connection; 2]) -> Result<(), Violation> {
    for (sender, receiver) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let (next, una) = sender.sent_and_acknowledged();
        let next = sender.sender().map_or(next, Sender::reach);
        let received = receiver.receiver().next();
        // Positions include the SYN.
        if received > next || una > received.max(1) {
            let (sent, acknowledged) = (next, una);
            return Err(Violation::Connection { sent, received, acknowledged });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million meters are a million flows, each with its own sender.
    #[test]
    fn a_flow_stays_small() {
        assert!(size_of::<Flow>() <= 320, "{}", size_of::<Flow>());
    }
}
