//! Flows: two ends, the application that uses them, and what is measured of them.

use gridhaul_core::load::{Greedy, Source};
use gridhaul_core::tcp::{Connection, Flags, Segment, Sender};
use gridhaul_scenario::units::Instant;

use crate::audit::Violation;
use crate::dialogue::Dialogue;
use crate::measure::Ledger;
use crate::outbox::Outbox;

/// A flow in a run.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Row of the answer to which it belongs.
    pub row: u32,
    pub ends: Ends,
    pub app: App,
    /// Where the routes from the `from` and from the `to` end begin in the network's list.
    pub routes: [u32; 2],
    /// Payload delivered at the `to` end at which the application wants to know. For the `from`
    /// end, a dialogue keeps the like itself.
    pub watch: u64,
    /// Congestion window as the ledger knows it.
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

/// The application of a flow.
#[derive(Debug)]
pub(crate) enum App {
    /// Sends for ever.
    Bulk,
    /// Sends an amount, then closes.
    Transfer(Box<Transfer>),
    /// Sends messages when they are ready.
    Messages { source: Source, outbox: Outbox },
    /// Sends messages as fast as the connection takes them, in bursts.
    Greedy { load: Box<Greedy>, outbox: Outbox },
    /// Sends messages when a recording has them.
    Recorded { outbox: Outbox },
    /// Asks, waits for the answer, pauses.
    Dialogue(Box<Dialogue>),
    /// None: a collector writes what it has taken in.
    Upstream,
}

impl App {
    /// Whether messages of this application have delays.
    pub(crate) const fn sends_messages(&self) -> bool {
        !matches!(self, Self::Bulk | Self::Transfer(_) | Self::Upstream)
    }
}

/// An amount to be sent.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Amount in bytes.
    pub bytes: u64,
    pub start: Instant,
    /// When it was complete; [`Instant::NEVER`] before.
    pub completed: Instant,
}

impl Flow {
    /// A segment reaches an end. Returns whether what the application waits for has arrived there.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        bytes: u32,
        ledger: &mut Ledger,
    ) -> bool {
        let Ends::Tcp(ends) = &mut self.ends else { return false };
        let side = (to % 2) as usize;
        let end = &mut ends[side];
        end.handle_segment(now, segment);
        let account = &mut ledger.accounts[self.row as usize];
        let bytes = u64::from(bytes);
        if side == 0 {
            account.returned_bytes += bytes;
            account.returned += 1;
            account.note_cwnd(now, &mut self.cwnd, end.sender().map_or(0, Sender::cwnd));
            if segment.flags.has(Flags::SYN) {
                ledger.handshakes.on_answered(now, to / 2, self.row, end);
            }
            return match &self.app {
                App::Dialogue(dialogue) => end.receiver().delivered() >= dialogue.answered(),
                _ => false,
            };
        }
        account.arrived_bytes += bytes;
        end.receiver().delivered() >= self.watch
    }

    /// The connection that leads on from a collector.
    pub(crate) fn upstream(row: u32, ends: [Connection; 2], routes: [u32; 2]) -> Self {
        let (ends, app) = (Ends::Tcp(ends), App::Upstream);
        Self { row, ends, app, routes, watch: u64::MAX, cwnd: 0 }
    }

    /// Whether the application writes as soon as the connection could send.
    #[inline]
    pub(crate) fn is_hungry(&self) -> bool {
        matches!(&self.app, App::Greedy { load, .. } if load.bursts.active())
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
    pub(crate) fn books(&self) -> Option<(Books, Books)> {
        let Ends::Tcp([left, right]) = &self.ends else { return None };
        Some((Books::of(left), Books::of(right)))
    }
}

/// Payload of one end, in bytes. `sent` is all that may have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Books {
    pub sent: u64,
    pub acknowledged: u64,
    /// What the other end has sent and this one has.
    pub delivered: u64,
}

impl Books {
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
