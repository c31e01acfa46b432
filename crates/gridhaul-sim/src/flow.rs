//! Flows: two ends, the application that uses them, and what is measured of them.

use std::collections::VecDeque;

use gridhaul_core::load::{Greedy, Message, Source};
use gridhaul_core::tcp::Connection;
use gridhaul_scenario::units::{Duration, Instant};

use crate::dialogue::Dialogue;

/// A flow in a run.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Row of the answer to which it belongs.
    pub row: u32,
    pub ends: Ends,
    pub app: App,
    /// Where the routes from the `from` and from the `to` end begin in the network's list.
    pub routes: [u32; 2],
    pub start: Instant,
    /// Payload delivered at the `from` and the `to` end at which the application wants to know.
    pub watch: [u64; 2],
    /// Whether the application writes as soon as the connection could send.
    pub hungry: bool,
    pub counters: FlowCounters,
}

/// What is at the two ends.
#[derive(Debug)]
pub(crate) enum Ends {
    /// A TCP connection: the `from` end and the `to` end.
    Tcp(Box<[Connection; 2]>),
    /// Nothing that remembers.
    Datagram {
        /// Whether the `to` end sends every packet back.
        echo: bool,
    },
}

/// The application of a flow.
#[derive(Debug)]
pub(crate) enum App {
    /// Sends for ever.
    Bulk,
    /// Sends an amount, then closes.
    Transfer {
        /// Amount in bytes.
        bytes: u64,
    },
    /// Sends messages when they are ready.
    Messages {
        source: Source,
        /// The next one, which is not ready yet.
        coming: Option<Message>,
        outbox: Outbox,
    },
    /// Sends messages as fast as the connection takes them, in bursts.
    Greedy { load: Greedy, outbox: Outbox },
    /// Asks, waits for the answer, pauses.
    Dialogue(Dialogue),
}

/// Messages that were handed to a connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Those on their way: the stream position after the last byte, and when they were ready.
    under_way: VecDeque<(u64, Instant)>,
    /// Bytes handed over.
    written: u64,
}

impl Outbox {
    /// A message is handed over.
    pub(crate) fn push(&mut self, message: Message) {
        self.written += message.bytes;
        self.under_way.push_back((self.written, message.at));
    }

    /// When the first message on its way was ready, if it is whole with so many bytes delivered.
    pub(crate) fn pop(&mut self, delivered: u64) -> Option<Instant> {
        let ready = self.under_way.front().filter(|&&(end, _)| end <= delivered)?.1;
        self.under_way.pop_front();
        Some(ready)
    }

    /// Bytes delivered at which the first message on its way is whole.
    pub(crate) fn watch(&self) -> u64 {
        self.under_way.front().map_or(u64::MAX, |&(end, _)| end)
    }
}

/// What is counted of a flow, from the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowCounters {
    /// Wire bytes of packets that reached the `to` end.
    pub arrived_bytes: u64,
    /// Wire bytes of packets that came back to the `from` end.
    pub returned_bytes: u64,
    /// Datagrams sent and lost, and payload bytes of those that arrived.
    pub datagrams: u64,
    pub datagrams_lost: u64,
    pub datagram_bytes: u64,
    /// Congestion window integrated over time, in byte nanoseconds, up to `cwnd_since`.
    pub cwnd_integral: u128,
    pub cwnd_since: Instant,
    pub cwnd: u32,
    /// When a transfer was complete.
    pub completed: Option<Instant>,
}

impl FlowCounters {
    /// The congestion window may have changed.
    #[inline]
    pub(crate) fn note_cwnd(&mut self, now: Instant, cwnd: u32) {
        if cwnd != self.cwnd {
            let held: Duration = now.since(self.cwnd_since);
            self.cwnd_integral += u128::from(self.cwnd) * u128::from(held.as_nanos());
            self.cwnd_since = now;
            self.cwnd = cwnd;
        }
    }

    /// Congestion window integrated up to `now`.
    pub(crate) fn cwnd_integral_at(&self, now: Instant) -> u128 {
        let held = now.since(self.cwnd_since).as_nanos();
        self.cwnd_integral + u128::from(self.cwnd) * u128::from(held)
    }
}

impl Flow {
    /// The ends as connections, if they are.
    #[inline]
    pub(crate) fn tcp(&mut self) -> Option<&mut [Connection; 2]> {
        match &mut self.ends {
            Ends::Tcp(ends) => Some(ends),
            Ends::Datagram { .. } => None,
        }
    }

    /// What the far end has, the near end has sent; what is acknowledged has arrived.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let Ends::Tcp(ends) = &self.ends else { return Ok(()) };
        for (near, far) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            let (next, una) = near.sent_and_acknowledged();
            let expected = far.receiver().next();
            // Positions count SYN: nothing is received that was not sent, nothing acknowledged
            // that was not received.
            if expected > next || una > expected.max(1) {
                return Err(format!(
                    "sent up to {next}, received up to {expected}, acknowledged up to {una}"
                ));
            }
        }
        Ok(())
    }

    /// Payload handed in order to the application of the `to` end.
    pub(crate) fn delivered(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(ends) => ends[1].receiver().delivered(),
            Ends::Datagram { .. } => self.counters.datagram_bytes,
        }
    }
}
