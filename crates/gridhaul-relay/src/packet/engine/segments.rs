//! TCP segments that arrive at the bridge.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::TcpSegmenter;
use gridhaul_scenario::units::Instant;

use super::super::connection::{Arrival, Connection};
use super::super::content::TcpFrame;
use super::super::counters::{DropCause, EndCause};
use super::super::frame::{ChecksumState, Frame};
use super::super::key::{BridgePort, ConnectionKey};
use super::super::output::Output;
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
        if found.is_none() && !opens && !is_observed {
            return Handling::Forward;
        }
        // A corrupt segment must neither be acknowledged nor begin a connection.
        if frame.checksum == ChecksumState::Unverified && segment.ip.verify().is_err() {
            self.counters.add_dropped(DropCause::Checksum, 1);
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
                    self.counters.add_untouched(cause);
                    return Handling::Forward;
                }
            },
        };
        let is_large = frame.segment_size.is_some() || frame.checksum == ChecksumState::Pending;
        if is_large {
            return self.handle_segments(now, number, from, frame, segment);
        }
        self.handle_segment(now, number, from, segment)
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
            self.counters.add_dropped(DropCause::Malformed, 1);
            return Handling::Handled;
        };
        let mut buffer = std::mem::take(&mut self.segments);
        for index in 0..segmenter.count() {
            buffer.clear();
            segmenter.write(index, &mut buffer);
            let Some(segment) = TcpFrame::with_packet(large.ethernet, &buffer) else {
                self.counters.add_dropped(DropCause::Malformed, 1);
                continue;
            };
            if self.handle_segment(now, number, from, &segment) != Handling::Handled {
                // The connection has just been given up; its segments are passed one by one.
                let over = from.other();
                self.output().forward(over, &segment);
            }
        }
        self.segments = buffer;
        Handling::Handled
    }

    fn handle_segment(
        &mut self,
        now: Instant,
        number: u32,
        from: BridgePort,
        segment: &TcpFrame<'_>,
    ) -> Handling {
        // A host that accepts malformed options must get the segment in spite of them: the sender
        // may retransmit it with the same ones.
        let header = segment.tcp.well_formed_header();
        let has_space = (self.table.memory() as u64) < self.settings.memory.get();
        let Some(connection) = self.table.get_mut(number) else { return Handling::Forward };
        let arrival = Arrival { from: connection.side_of(from), frame: *segment, header };
        if let Some(cause) = connection.objection(&arrival) {
            self.counters.add_untouched(cause);
            self.end(now, number, EndCause::Option);
            return Handling::Forward;
        }
        // The sender retransmits; acknowledgements, which release memory, still pass.
        if !has_space && !segment.tcp.payload().is_empty() {
            self.counters.add_dropped(DropCause::Memory, 1);
            return Handling::Handled;
        }
        let mut output = Output {
            frames: &mut self.outgoing,
            counters: &mut self.counters,
            mtus: self.settings.mtus,
        };
        connection.handle(now, &arrival, &mut output);
        self.finish_event(now, number);
        Handling::Handled
    }
}
