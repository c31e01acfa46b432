//! Applications: what a flow does when one is due, or when what it waits for has arrived.

use gridhaul_scenario::units::Instant;

use crate::flow::{App, Ends, Flow};
use crate::measure::Ledger;
use crate::outbox::UnderWay;

impl Flow {
    /// The application of a TCP flow starts, or has a message ready. Returns when it is due again.
    pub(crate) fn on_due(
        &mut self,
        now: Instant,
        ledger: &mut Ledger,
        under_way: &mut UnderWay,
    ) -> Option<Instant> {
        let Ends::Tcp(ends) = &mut self.ends else { return None };
        match &mut self.app {
            App::Recorded { .. } => None,
            App::Bulk => {
                ends[0].write(u64::MAX);
                None
            }
            App::Upstream => None,
            App::Transfer(transfer) => {
                ends[0].write(transfer.bytes);
                ends[0].close();
                self.watch = transfer.bytes;
                None
            }
            App::Messages { source, outbox } => {
                while let Some(message) = source.next_message_by(now) {
                    let end = ends[0].write(message.bytes);
                    outbox.push(message.at, end, under_way);
                    ledger.on_ready(self.row, message.at);
                }
                self.watch = outbox.watch(under_way);
                Some(source.coming())
            }
            App::Greedy { load, outbox } => {
                load.bursts.advance(now);
                // A burst that finds the connection closed has a message ready all the same. It waits
                // in the send buffer; the others come when the connection takes them.
                if load.bursts.active() && !ends[0].is_open() {
                    let end = ends[0].write(load.bytes);
                    outbox.push(now, end, under_way);
                    self.watch = outbox.watch(under_way);
                    ledger.on_ready(self.row, now);
                }
                Some(load.bursts.until())
            }
            App::Dialogue(dialogue) => {
                let (asked, again) = dialogue.on_due(now, ends, &mut self.watch);
                if let Some(asked) = asked {
                    ledger.on_ready(self.row, asked);
                }
                again
            }
        }
    }

    /// A burst is under way: a message is written if the connection takes it. Says whether it was.
    #[inline(never)]
    pub(crate) fn feed(
        &mut self,
        now: Instant,
        ledger: &mut Ledger,
        under_way: &mut UnderWay,
    ) -> bool {
        let (Ends::Tcp(ends), App::Greedy { load, outbox }) = (&mut self.ends, &mut self.app)
        else {
            return false;
        };
        load.refused = !ends[0].takes(load.bytes, load.refused);
        if load.refused {
            return false;
        }
        let end = ends[0].write(load.bytes);
        outbox.push(now, end, under_way);
        self.watch = outbox.watch(under_way);
        ledger.on_ready(self.row, now);
        true
    }

    /// A recording has a message for this TCP flow.
    pub(crate) fn on_recorded(
        &mut self,
        now: Instant,
        bytes: u64,
        ledger: &mut Ledger,
        under_way: &mut UnderWay,
    ) {
        let (Ends::Tcp(ends), App::Recorded { outbox }) = (&mut self.ends, &mut self.app) else {
            return;
        };
        let end = ends[0].write(bytes);
        outbox.push(now, end, under_way);
        self.watch = outbox.watch(under_way);
        ledger.on_ready(self.row, now);
    }

    /// Size in bytes of a datagram that is ready now, if one is, and since when; and when the next one will be.
    pub(crate) fn next_datagram(
        &mut self,
        now: Instant,
    ) -> Option<(Option<(u64, Instant)>, Instant)> {
        let App::Messages { source, .. } = &mut self.app else { return None };
        let message = source.next_message_by(now).map(|message| (message.bytes, message.at));
        Some((message, source.coming()))
    }

    /// An end has received what the application waited for there.
    pub(crate) fn on_arrived(
        &mut self,
        now: Instant,
        side: usize,
        under_way: &mut UnderWay,
    ) -> Progress {
        let mut progress = Progress::default();
        let Ends::Tcp(ends) = &mut self.ends else { return progress };
        match &mut self.app {
            App::Bulk | App::Upstream => {}
            App::Transfer(transfer) => {
                self.watch = u64::MAX;
                transfer.completed = now;
                ends[1].close();
            }
            App::Messages { outbox, .. }
            | App::Greedy { outbox, .. }
            | App::Recorded { outbox } => {
                let delivered = ends[1].receiver().delivered();
                let whole = std::iter::from_fn(|| outbox.pop(delivered, under_way));
                progress.messages.extend(whole);
                self.watch = outbox.watch(under_way);
            }
            App::Dialogue(dialogue) => {
                progress = dialogue.on_arrived(now, side, &mut self.watch);
            }
        }
        progress
    }
}

/// What follows from an arrival.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// When the messages that are whole now were ready.
    pub messages: Vec<Instant>,
    /// When the application is due again.
    pub wake: Option<Instant>,
}
