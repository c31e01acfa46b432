//! Positions of segments and acknowledgements in the stream of a direction.

use gridhaul_core::tcp::{Flags, expand};
use gridhaul_scenario::units::Instant;

use super::{MarkedEvent, Sequence, SequenceMark};
use crate::CapturedSegment;

/// Collects the packets of one direction in the order of time.
#[derive(Debug)]
pub struct SequenceBuilder {
    sequence: Sequence,
    /// The time from which times are counted.
    origin: Instant,
    /// Sequence number of position 0.
    initial: Option<u32>,
    /// Largest position of a segment and of an acknowledgement, near which the next one is.
    largest_sent: u64,
    largest_acknowledged: u64,
    /// End of the data that was sent.
    sent: f64,
    /// The window scale options of sender and receiver, once their SYN has been captured.
    scales: [Option<Option<u8>>; 2],
}

/// A range of the stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRange {
    /// First position.
    pub start: f64,
    /// Position after the last byte.
    pub end: f64,
}

impl SequenceBuilder {
    /// Without packets; times are those since `origin`.
    #[must_use]
    pub fn new(origin: Instant) -> Self {
        Self {
            sequence: Sequence::default(),
            origin,
            initial: None,
            largest_sent: 0,
            largest_acknowledged: 0,
            sent: 0.0,
            scales: [None; 2],
        }
    }

    /// Adds a segment of the sender of the data, or of its receiver. Returns the range of its data.
    pub fn handle_segment(
        &mut self,
        segment: &CapturedSegment,
        is_of_sender: bool,
    ) -> Option<StreamRange> {
        if segment.flags.has(Flags::SYN) {
            self.scales[usize::from(!is_of_sender)] = Some(segment.window_scale);
            self.sequence.has_window_scale = self.scales.iter().all(Option::is_some);
        }
        if is_of_sender {
            self.handle_sent(segment)
        } else {
            self.handle_acknowledgement(segment);
            None
        }
    }

    /// Marks an event.
    pub(super) fn mark(&mut self, at: Instant, event: MarkedEvent, range: Option<StreamRange>) {
        let mark = SequenceMark {
            time_s: self.seconds(at),
            event,
            start: range.map(|range| range.start),
            end: range.map(|range| range.end),
        };
        self.sequence.marks.push(mark);
    }

    /// The packets.
    #[must_use]
    pub fn finish(self) -> Sequence {
        self.sequence
    }

    fn seconds(&self, at: Instant) -> f64 {
        at.since(self.origin).as_secs_f64()
    }

    fn handle_sent(&mut self, segment: &CapturedSegment) -> Option<StreamRange> {
        let is_syn = segment.flags.has(Flags::SYN);
        // Without a handshake, the first segment has the first byte of the data.
        let first = if is_syn { segment.seq } else { segment.seq.wrapping_sub(1) };
        let initial = *self.initial.get_or_insert(first);
        if segment.payload == 0 {
            return None;
        }
        let position = expand(segment.seq, initial, self.largest_sent)?;
        self.largest_sent = self.largest_sent.max(position);
        let start = position as f64;
        let end = start + f64::from(segment.payload);
        let time_s = self.seconds(segment.at);
        let ranges = if end > self.sent {
            &mut self.sequence.first_transmissions
        } else {
            &mut self.sequence.retransmissions
        };
        ranges.push(time_s, start, end);
        self.sent = end.max(self.sent);
        Some(StreamRange { start, end })
    }

    fn handle_acknowledgement(&mut self, segment: &CapturedSegment) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let initial = *self.initial.get_or_insert(segment.ack.wrapping_sub(1));
        let Some(ack) = expand(segment.ack, initial, self.largest_acknowledged) else { return };
        self.largest_acknowledged = self.largest_acknowledged.max(ack);
        let time_s = self.seconds(segment.at);
        // Both ends must offer a scale, and a SYN is not scaled (RFC 7323, section 2.2).
        let [sender, receiver] = self.scales.map(Option::flatten);
        let is_syn = segment.flags.has(Flags::SYN);
        let shift = if is_syn { 0 } else { sender.and(receiver).unwrap_or(0).min(14) };
        let window = f64::from(u32::from(segment.window) << shift);
        self.sequence.acknowledgements.push(time_s, ack as f64, ack as f64 + window);
        for (start, end) in segment.sack.as_slice() {
            // Blocks are above the acknowledged position, which remains the reference.
            let position = |number| expand(number, initial, self.largest_acknowledged);
            if let Some((start, end)) = position(*start).zip(position(*end)) {
                self.sequence.sack.push(time_s, start as f64, end as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::tcp::SackBlocks;

    use super::*;
    use crate::sequence::Ranges;

    fn segment(seconds: f64, seq: u32, payload: u32) -> CapturedSegment {
        CapturedSegment {
            at: Instant::from_secs_f64(seconds),
            point: 0,
            device: 0,
            source: "10.0.0.1:1024".parse().unwrap(),
            destination: "10.0.0.2:7".parse().unwrap(),
            seq,
            ack: 0,
            flags: Flags::ACK,
            window: 100,
            payload,
            packet: payload + 40,
            hop_limit: 64,
            mss: None,
            window_scale: None,
            timestamps: None,
            sack: SackBlocks::default(),
        }
    }

    fn syn(seq: u32) -> CapturedSegment {
        CapturedSegment { flags: Flags::SYN, ..segment(0.0, seq, 0) }
    }

    /// The sequence of the segments of a sender and of its receiver.
    fn sequence(sent: &[CapturedSegment], received: &[CapturedSegment]) -> Sequence {
        let mut builder = SequenceBuilder::new(Instant::ZERO);
        for segment in sent {
            builder.handle_segment(segment, true);
        }
        for segment in received {
            builder.handle_segment(segment, false);
        }
        builder.finish()
    }

    #[test]
    fn a_segment_that_was_sent_before_is_a_retransmission() {
        let sent = [1000, 1100, 1200, 1100, 1300].map(|seq| segment(1.0, seq, 100));
        let found = sequence(&[&[syn(999)][..], &sent].concat(), &[]);
        assert_eq!(found.first_transmissions.start, [1.0, 101.0, 201.0, 301.0]);
        assert_eq!(found.retransmissions.start, [101.0]);
        assert_eq!(found.retransmissions.end, [201.0]);
    }

    #[test]
    fn positions_continue_when_sequence_numbers_wrap() {
        let before = u32::MAX - 99;
        let sent = [before, 0, 100].map(|seq| segment(1.0, seq, 100));
        let ack = CapturedSegment { ack: 100, ..segment(2.0, 0, 0) };
        let found = sequence(&sent, &[ack]);
        assert_eq!(found.first_transmissions.start, [1.0, 101.0, 201.0]);
        assert_eq!(found.acknowledgements.start, [201.0]);
        assert!(!found.has_window_scale, "there is no handshake");
    }

    #[test]
    fn an_acknowledgement_has_window_and_selective_acknowledgements() {
        let syn = CapturedSegment { window_scale: Some(2), ..syn(0) };
        let flags = Flags::SYN.with(Flags::ACK);
        let answer = CapturedSegment { ack: 1, flags, ..syn };
        let mut sack = SackBlocks::default();
        sack.push(201, 301);
        sack.push(401, 501);
        let ack = CapturedSegment { ack: 101, sack, ..segment(1.0, 1, 0) };
        let found = sequence(&[syn, segment(0.5, 1, 600)], &[answer, ack]);
        let Ranges { start, end, .. } = &found.acknowledgements;
        assert_eq!((start.as_slice(), end.as_slice()), (&[1.0, 101.0][..], &[101.0, 501.0][..]));
        assert_eq!((found.sack.start, found.sack.end), (vec![201.0, 401.0], vec![301.0, 501.0]));
        assert!(found.has_window_scale);
    }

    /// A capture that begins with an acknowledgement of a download.
    #[test]
    fn without_a_handshake_positions_begin_at_the_first_number() {
        let ack = CapturedSegment { ack: 5_000, ..segment(0.1, 1, 0) };
        let mut builder = SequenceBuilder::new(Instant::ZERO);
        builder.handle_segment(&ack, false);
        let range = builder.handle_segment(&segment(0.2, 5_000, 100), true);
        assert_eq!(range, Some(StreamRange { start: 1.0, end: 101.0 }));
    }
}
