//! Flows: two ends, the application that uses them, and what is measured of them.

use gridhaul_core::load::Application;
use gridhaul_core::tcp::{Connection, Flags, Segment, Sender, State};
use gridhaul_scenario::units::Instant;

use crate::audit::Violation;
use crate::row_counters::RowCounters;

/// A flow in a run.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Row of the answer to which it belongs.
    pub row: u32,
    pub ends: Ends,
    /// The application; none of an upstream connection, to which an aggregator writes.
    pub app: Option<Application>,
    /// Where the routes from the `from` and from the `to` end begin in the network's list.
    pub routes: [u32; 2],
    /// Payload delivered at the `to` end with which the application or the aggregator there has work to do. For
    /// the `from` end, the application keeps the same itself.
    pub notify_at: u64,
    /// Congestion window as it was counted last.
    pub cwnd: u32,
}

/// What is at the two ends.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are TCP, and a box of each costs memory")]
pub(crate) enum Ends {
    /// A TCP connection: the `from` end and the `to` end.
    Tcp([Connection; 2]),
    /// Nothing that remembers.
    Datagram {
        /// Whether the `to` end sends every packet back.
        echo: bool,
        /// IP and UDP headers in bytes.
        header: u8,
    },
}

/// What the arrival of a segment at an end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// What the application, or the aggregator there, waits for has arrived.
    PayloadReady,
    /// SYN was answered at the end that opens the connection.
    SynAckReceived,
    Other,
}

impl Flow {
    /// A segment of so many bytes reaches an end, and is counted in the account of the flow's row.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        to: u32,
        (segment, bytes): (&Segment, u32),
        account: &mut RowCounters,
    ) -> Received {
        let Ends::Tcp(ends) = &mut self.ends else { return Received::Other };
        let side = (to % 2) as usize;
        let end = &mut ends[side];
        end.handle_segment(now, segment);
        let bytes = u64::from(bytes);
        if side == 0 {
            account.returned_bytes += bytes;
            account.returned += 1;
            account.note_cwnd(now, &mut self.cwnd, end.sender().map_or(0, Sender::cwnd));
            if segment.flags.has(Flags::SYN) {
                return Received::SynAckReceived;
            }
            return match self.app.as_ref().and_then(Application::watch_response) {
                Some(whole) if end.receiver().delivered() >= whole => Received::PayloadReady,
                _ => Received::Other,
            };
        }
        account.arrived_bytes += bytes;
        if end.receiver().delivered() >= self.notify_at {
            Received::PayloadReady
        } else {
            Received::Other
        }
    }

    /// An upstream connection of an aggregator.
    pub(crate) fn upstream(row: u32, ends: [Connection; 2], routes: [u32; 2]) -> Self {
        Self { row, ends: Ends::Tcp(ends), app: None, routes, notify_at: u64::MAX, cwnd: 0 }
    }

    /// Whether the application writes as soon as the connection could send.
    #[inline]
    pub(crate) fn is_in_burst(&self) -> bool {
        self.app.as_ref().is_some_and(Application::is_in_burst)
    }

    /// Whether the application sends messages, which have delays.
    pub(crate) fn has_messages(&self) -> bool {
        self.app.as_ref().is_some_and(Application::has_messages)
    }

    /// Whether the connection was refused, or its SYN retransmitted without an answer. A first SYN
    /// that is still under way is no failure.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        let Ends::Tcp([near, _]) = &self.ends else { return false };
        match near.state() {
            State::Closed => near.receiver().next() == 0,
            State::SynSent => near.sender().map(Sender::stats).is_some_and(|it| it.timeouts > 0),
            _ => false,
        }
    }

    /// Payload that has arrived in order at the end of the flow's own connection.
    pub(crate) fn received(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(ends) => ends[1].receiver().delivered(),
            Ends::Datagram { .. } => 0,
        }
    }

    /// The ends of the chunks into which an aggregator cuts a byte stream, from `first` on: one for
    /// each full segment, as no message is known in it.
    pub(crate) fn chunks(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let mss = match &self.ends {
            Ends::Tcp(ends) => u64::from(ends[0].params().mss),
            Ends::Datagram { .. } => 1,
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

    /// What the far end has, the near end has sent; what is acknowledged has arrived.
    pub(crate) fn audit(&self) -> Result<(), Violation> {
        let Ends::Tcp(ends) = &self.ends else { return Ok(()) };
        for (near, far) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            let (next, una) = near.sent_and_acknowledged();
            let next = near.sender().map_or(next, Sender::reach);
            let received = far.receiver().next();
            // Positions count SYN: nothing is received that was not sent, nothing acknowledged
            // that was not received.
            if received > next || una > received.max(1) {
                let (sent, acknowledged) = (next, una);
                return Err(Violation::Connection { sent, received, acknowledged });
            }
        }
        Ok(())
    }

    /// Payload that went out, was acknowledged and was delivered at the `from` and the `to` end.
    pub(crate) fn payload_counters(&self) -> Option<(PayloadCounters, PayloadCounters)> {
        let Ends::Tcp([left, right]) = &self.ends else { return None };
        Some((PayloadCounters::of(left), PayloadCounters::of(right)))
    }
}

/// Payload of one end, in bytes. `sent` is all that may have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadCounters {
    pub sent: u64,
    pub acknowledged: u64,
    /// What the other end has sent and this one has.
    pub delivered: u64,
}

impl PayloadCounters {
    fn of(end: &Connection) -> Self {
        let (next, una) = end.sent_and_acknowledged();
        let next = end.sender().map_or(next, Sender::reach);
        // Position 0 is SYN, and FIN has the one behind the last byte.
        let fin = end.sender().and_then(Sender::fin_position).unwrap_or(u64::MAX);
        let payload = |position: u64| position.min(fin).saturating_sub(1);
        let delivered = end.receiver().delivered();
        Self { sent: payload(next), acknowledged: payload(una), delivered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million meters are a million of these, each with a sender of its own.
    #[test]
    fn a_row_stays_small() {
        assert!(size_of::<Flow>() <= 272, "{}", size_of::<Flow>());
    }
}
