//! Flows: two ends, the application that uses them, and what is measured of them.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use gridhaul_core::load::{Greedy, Message, Source};
use gridhaul_core::tcp::{Connection, Sender};
use gridhaul_scenario::units::Instant;

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
    /// Congestion window as the ledger knows it.
    pub cwnd: u32,
    /// Whether the connection ends at a collector, which takes on what it delivers.
    pub collected: bool,
    /// Payload that has arrived without this flow's connection: datagrams, and what collectors
    /// have taken on.
    pub delivered_apart: u64,
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
        /// When it was complete; [`Instant::NEVER`] before.
        completed: Instant,
    },
    /// Sends messages when they are ready.
    Messages {
        source: Source,
        /// The next one, which is not ready yet; at [`Instant::NEVER`] if there is none.
        coming: Message,
        outbox: Outbox,
    },
    /// Sends messages as fast as the connection takes them, in bursts.
    Greedy { load: Box<Greedy>, outbox: Outbox },
    /// Sends messages when a recording has them.
    Recorded { outbox: Outbox },
    /// Asks, waits for the answer, pauses.
    Dialogue(Box<Dialogue>),
    /// None: a collector writes what it has taken in.
    Upstream,
}

/// Messages that were handed to a connection. The first one on its way has its place here: most
/// of many meters never have another.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Bytes handed over.
    written: u64,
    first: Option<UnderWay>,
    /// Those behind the first.
    #[expect(clippy::box_collection, reason = "mostly nothing: 8 bytes of a row instead of 32")]
    others: Option<Box<VecDeque<UnderWay>>>,
}

/// A message on its way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    /// The stream position after its last byte, counted from 1.
    end: NonZeroU64,
    ready: Instant,
}

impl Outbox {
    /// A message is handed over.
    pub(crate) fn push(&mut self, message: Message) {
        self.written += message.bytes;
        let end = NonZeroU64::MIN.saturating_add(self.written);
        let under_way = UnderWay { end, ready: message.at };
        if self.first.is_none() {
            self.first = Some(under_way);
        } else {
            let others = || Box::new(VecDeque::with_capacity(2));
            self.others.get_or_insert_with(others).push_back(under_way);
        }
    }

    /// When the first message on its way was ready, if it is whole with so many bytes delivered.
    pub(crate) fn pop(&mut self, delivered: u64) -> Option<Instant> {
        let ready = self.first.filter(|first| first.end.get() - 1 <= delivered)?.ready;
        self.first = self.others.as_mut().and_then(|others| others.pop_front());
        if self.others.as_ref().is_some_and(|others| others.is_empty()) {
            self.others = None;
        }
        Some(ready)
    }

    /// The stream positions after the last bytes of the messages on their way.
    pub(crate) fn ends(&self) -> impl Iterator<Item = u64> {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.first.iter().chain(others).map(|message| message.end.get() - 1)
    }

    /// Bytes delivered at which the first message on its way is whole.
    pub(crate) fn watch(&self) -> u64 {
        self.first.map_or(u64::MAX, |first| first.end.get() - 1)
    }
}

impl Flow {
    /// The connection that leads on from a collector.
    pub(crate) fn upstream(
        row: u32,
        ends: [Connection; 2],
        routes: [u32; 2],
        collected: bool,
    ) -> Self {
        Self {
            row,
            ends: Ends::Tcp(ends),
            app: App::Upstream,
            routes,
            start: Instant::ZERO,
            watch: [u64::MAX; 2],
            hungry: false,
            cwnd: 0,
            collected,
            delivered_apart: 0,
        }
    }

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

    /// Payload that went out, was acknowledged and was delivered at the `from` and the `to` end.
    pub(crate) fn books(&self) -> Option<(Books, Books)> {
        let Ends::Tcp([left, right]) = &self.ends else { return None };
        Some((Books::of(left), Books::of(right)))
    }

    /// Payload that has reached the application at the end of the way.
    pub(crate) fn delivered(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(ends) if !self.collected || matches!(self.app, App::Upstream) => {
                ends[1].receiver().delivered()
            }
            _ => self.delivered_apart,
        }
    }
}

/// Payload of one end, in bytes.
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
        assert!(size_of::<Flow>() <= 344, "{}", size_of::<Flow>());
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let mut outbox = Outbox::default();
        let at = |secs| Instant::from_secs_f64(secs);
        for (secs, bytes) in [(1.0, 10), (2.0, 5), (3.0, 1)] {
            outbox.push(Message { at: at(secs), bytes });
        }
        assert_eq!((outbox.watch(), outbox.pop(9)), (10, None));
        assert_eq!(
            [outbox.pop(15), outbox.pop(15), outbox.pop(15)],
            [Some(at(1.0)), Some(at(2.0)), None]
        );
        outbox.push(Message { at: at(4.0), bytes: 4 });
        assert_eq!((outbox.watch(), outbox.pop(16)), (16, Some(at(3.0))));
        assert_eq!((outbox.watch(), outbox.pop(20), outbox.watch()), (20, Some(at(4.0)), u64::MAX));
    }
}
