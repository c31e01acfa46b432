//! TCP segments that arrive at the bridge.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{TcpHeader, TcpSegmenter};
use gridhaul_scenario::units::Instant;

use super::super::connection::{Arrival, Connection, OldSyn};
use super::super::content::TcpFrame;
use super::super::counters::{EndCause, FrameDropCause, UntouchedCause};
use super::super::frame::{ChecksumState, Frame};
use super::super::key::{BridgePort, ConnectionKey};
use super::super::output::{Output, Part};
use super::{Engine, Handling};

impl Engine {
    pub(super) fn handle_tcp(
        &mut self,
        now: Instant,
        from: BridgePort,
        frame: &Frame<'_>,
        segment: &TcpFrame<'_>,
    ) -> Handling {
        let ends = segment.ends();
        let key = ConnectionKey::new(from, segment.ethernet.tags, &ends);
        let flags = segment.tcp.flags();
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        let mut found = self.table.find(&key);
        if let Some(number) = found
            && opens
            && self.table.get(number).is_some_and(Connection::may_be_replaced)
        {
            self.end(now, number, EndCause::Closed);
            found = None;
        }
        let is_observed = found.is_none() && !opens && self.observes(now);
        if found.is_none() && !opens {
            if self.untouched.note(&key) {
                self.counters.add_untouched(UntouchedCause::SynNotSeen);
            }
            if !is_observed {
                return Handling::Forward;
            }
        }
        // A corrupt segment must neither be acknowledged nor begin a connection.
        if frame.checksum == ChecksumState::Unverified && segment.ip.verify().is_err() {
            self.counters.add_dropped(FrameDropCause::Checksum, 1);
            return Handling::Handled;
        }
        let number = match found {
            Some(number) => number,
            None if is_observed => match self.observe(now, from, key, segment) {
                Some(number) => number,
                None => return Handling::Forward,
            },
            None => match self.open(now, from, key, segment) {
                Ok(number) => number,
                Err(cause) => {
                    if self.untouched.note_syn(&key, segment.tcp.seq()) {
                        self.counters.add_untouched(cause);
                    }
                    return Handling::Forward;
                }
            },
        };
        let is_large = frame.segment_size.is_some() || frame.checksum == ChecksumState::Pending;
        if is_large {
            return self.handle_segments(now, number, from, frame, segment);
        }
        // A host that accepts malformed options must get the segment in spite of them: the sender
        // may retransmit it with the same ones.
        let header = segment.tcp.well_formed_header();
        let handling = self.handle_segment(now, number, from, segment, (header, None));
        self.finish_event(now, number);
        handling
    }

    /// Handles a packet with several segments, or without a checksum, as its sender's interface
    /// would send it.
    fn handle_segments(
        &mut self,
        now: Instant,
        number: u32,
        from: BridgePort,
        frame: &Frame<'_>,
        large: &TcpFrame<'_>,
    ) -> Handling {
        let size = frame.segment_size.unwrap_or(u16::MAX);
        let Ok(segmenter) = TcpSegmenter::new(large.packet, size) else {
            self.counters.add_dropped(FrameDropCause::Malformed, 1);
            return Handling::Handled;
        };
        let header = large.tcp.well_formed_header();
        for index in 0..segmenter.count() {
            let part = Part { segmenter: &segmenter, index };
            let header = segmenter.header(index, &header);
            if self.handle_segment(now, number, from, large, (header, Some(part)))
                != Handling::Handled
            {
                // The connection has just been given up; its segments are passed one by one.
                let over = from.other();
                self.output().forward_part(over, large, &part);
            }
        }
        self.finish_event(now, number);
        Handling::Handled
    }

    fn handle_segment<'f>(
        &mut self,
        now: Instant,
        number: u32,
        from: BridgePort,
        frame: &TcpFrame<'f>,
        (header, part): (TcpHeader<'f>, Option<Part<'f>>),
    ) -> Handling {
        let has_space = (self.table.memory() as u64) < self.settings.memory.get();
        let Some(connection) = self.table.get_mut(number) else { return Handling::Forward };
        let from = connection.side_of(from);
        let arrival = Arrival { from, frame: *frame, header, part };
        if let Some(cause) = connection.objection(&arrival) {
            self.counters.add_untouched(cause);
            self.end(now, number, EndCause::Option);
            return Handling::Forward;
        }
        match connection.old_syn(&arrival) {
            None => {}
            // The server sends the segment again for the next SYN of the proxy.
            Some(OldSyn::Possible) => return Handling::Handled,
            Some(OldSyn::Proven) => {
                self.discard(number);
                return Handling::Forward;
            }
        }
        // The sender retransmits; acknowledgements, which release memory, still pass.
        if !has_space && !arrival.payload().is_empty() {
            self.counters.add_dropped(FrameDropCause::Memory, 1);
            return Handling::Handled;
        }
        let mut output = Output {
            frames: &mut self.outgoing,
            counters: &mut self.counters,
            mtus: self.settings.mtus,
        };
        connection.handle(now, &arrival, &mut output);
        Handling::Handled
    }
}
