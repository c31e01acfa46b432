//! The bytes of one direction of a TCP connection, in order.

use std::collections::BTreeMap;

use gridhaul_core::tcp::Flags;

/// Most bytes after a gap that are stored. Linux offers a window of 6 MB by default.
const STORED_MAX: usize = 8 << 20;

/// One direction of a TCP connection, reassembled from its segments (RFC 9293, section 3.4).
#[derive(Debug, Clone, Default)]
pub(super) struct StreamDirection {
    /// Position of the next byte; the low 32 bits are its sequence number. `None` before the first
    /// segment.
    next: Option<u64>,
    /// Segments after a gap, by their position.
    later: BTreeMap<u64, Vec<u8>>,
    stored: usize,
    retransmissions: u64,
    missed: u64,
}

/// A part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamPart<'a> {
    /// The next bytes.
    Bytes(&'a [u8]),
    /// Bytes that the capture has missed.
    Gap,
}

impl StreamDirection {
    /// A segment passes the capture. Calls `emit` for each part of the stream that is complete with
    /// it.
    pub(super) fn handle_segment(
        &mut self,
        seq: u32,
        flags: Flags,
        payload: &[u8],
        emit: &mut impl FnMut(StreamPart<'_>),
    ) {
        if flags.has(Flags::SYN) {
            // A SYN takes one sequence number.
            self.handle_beginning(seq.wrapping_add(1), emit);
            return;
        }
        if payload.is_empty() {
            return;
        }
        let next = *self.next.get_or_insert(u64::from(seq));
        let distance = i64::from(seq.wrapping_sub(next as u32).cast_signed());
        let position = next.saturating_add_signed(distance);
        if distance > 0 {
            self.store(position, payload, emit);
            return;
        }
        let known = distance.unsigned_abs() as usize;
        if known > 0 {
            self.retransmissions += 1;
        }
        if let Some(new @ [_, ..]) = payload.get(known..) {
            emit(StreamPart::Bytes(new));
            self.next = Some(next + new.len() as u64);
            self.emit_stored(emit);
        }
    }

    /// The receiver has acknowledged all bytes before `ack`: those that are missing have passed
    /// without being captured.
    pub(super) fn handle_acknowledgement(
        &mut self,
        ack: u32,
        emit: &mut impl FnMut(StreamPart<'_>),
    ) {
        while let Some(next) = self.next {
            let distance = ack.wrapping_sub(next as u32).cast_signed();
            // The acknowledgement of a FIN is one after the last byte.
            if distance <= 1 {
                return;
            }
            let end = next + u64::from(distance.unsigned_abs());
            let after_gap = self.later.first_key_value().map_or(end, |(&first, _)| first.min(end));
            self.missed += after_gap - next;
            self.next = Some(after_gap);
            emit(StreamPart::Gap);
            self.emit_stored(emit);
        }
    }

    /// Segments with bytes that had passed before.
    #[must_use]
    pub(super) const fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// Bytes that passed without being captured.
    #[must_use]
    pub(super) const fn missed(&self) -> u64 {
        self.missed
    }

    /// A connection begins, or its SYN is retransmitted. A new connection with the same ports
    /// replaces the old one.
    fn handle_beginning(&mut self, first: u32, emit: &mut impl FnMut(StreamPart<'_>)) {
        match self.next {
            Some(next) if next as u32 == first => return,
            Some(_) => emit(StreamPart::Gap),
            None => {}
        }
        let Self { retransmissions, missed, .. } = *self;
        *self = Self { next: Some(first.into()), retransmissions, missed, ..Self::default() };
    }

    /// Stores a segment after a gap. Too many bytes mean that the gap is not going to be filled.
    fn store(&mut self, position: u64, payload: &[u8], emit: &mut impl FnMut(StreamPart<'_>)) {
        let stored = self.later.entry(position).or_default();
        if stored.len() >= payload.len() {
            self.retransmissions += 1;
            return;
        }
        self.stored += payload.len() - stored.len();
        *stored = payload.to_vec();
        if self.stored > STORED_MAX {
            let first = self.later.first_key_value().map(|(&first, _)| first);
            if let (Some(next), Some(first)) = (self.next, first) {
                self.missed += first - next;
                self.next = Some(first);
                emit(StreamPart::Gap);
                self.emit_stored(emit);
            }
        }
    }

    fn emit_stored(&mut self, emit: &mut impl FnMut(StreamPart<'_>)) {
        while let Some(next) = self.next {
            let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() <= next) else {
                return;
            };
            let (position, bytes) = entry.remove_entry();
            self.stored -= bytes.len();
            if let Some(new @ [_, ..]) = bytes.get((next - position) as usize..) {
                emit(StreamPart::Bytes(new));
                self.next = Some(next + new.len() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output of a stream for segments with these distances from its first byte; `-` is a gap.
    fn text(initial: u32, events: &[Event]) -> (String, StreamDirection) {
        let mut stream = StreamDirection::default();
        let mut text = String::new();
        let mut emit = |part: StreamPart<'_>| match part {
            StreamPart::Bytes(bytes) => text.push_str(std::str::from_utf8(bytes).unwrap()),
            StreamPart::Gap => text.push('-'),
        };
        stream.handle_segment(initial, Flags::SYN, &[], &mut emit);
        let seq = |distance: u32| initial.wrapping_add(1).wrapping_add(distance);
        for event in events {
            match *event {
                Event::Segment(distance, payload) => {
                    stream.handle_segment(seq(distance), Flags::ACK, payload.as_bytes(), &mut emit);
                }
                Event::Ack(distance) => stream.handle_acknowledgement(seq(distance), &mut emit),
            }
        }
        (text, stream)
    }

    enum Event {
        Segment(u32, &'static str),
        Ack(u32),
    }
    use Event::{Ack, Segment};

    #[test]
    fn bytes_are_in_order_and_once_across_the_end_of_the_sequence_numbers() {
        for initial in [0, u32::MAX - 3] {
            let events = [
                Segment(0, "abc"),
                Segment(6, "gh"),
                Segment(3, "def"),
                Segment(2, "cd"),
                Segment(8, "i"),
            ];
            let (found, stream) = text(initial, &events);
            assert_eq!(found, "abcdefghi");
            assert_eq!((stream.retransmissions(), stream.missed()), (1, 0));
        }
    }

    #[test]
    fn an_acknowledged_gap_is_skipped() {
        let (found, stream) =
            text(100, &[Segment(0, "abc"), Segment(5, "fg"), Ack(3), Ack(7), Segment(7, "h")]);
        assert_eq!((found.as_str(), stream.missed()), ("abc-fgh", 2));
    }

    #[test]
    fn the_acknowledgement_of_the_end_is_no_gap() {
        assert_eq!(text(100, &[Segment(0, "abc"), Ack(4)]).0, "abc");
    }

    #[test]
    fn a_capture_that_begins_in_a_connection_begins_with_the_next_segment() {
        let mut stream = StreamDirection::default();
        let mut count = 0;
        let mut emit = |part: StreamPart<'_>| {
            assert_eq!(part, StreamPart::Bytes(b"abc"));
            count += 1;
        };
        stream.handle_acknowledgement(5_000, &mut emit);
        stream.handle_segment(9_000, Flags::ACK, b"abc", &mut emit);
        assert_eq!(count, 1);
    }

    proptest! {
        #[test]
        fn segments_in_any_order_make_the_stream(
            cuts in prop::collection::vec(0_usize..200, 0..10),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            initial: u32,
        ) {
            let bytes: Vec<u8> = (0..200).collect();
            let mut cuts = cuts;
            cuts.extend([0, 200]);
            cuts.sort_unstable();
            let segments: Vec<_> = cuts.windows(2).map(|cut| (cut[0], cut[1])).collect();
            let mut stream = StreamDirection::default();
            let mut found = Vec::new();
            let mut emit = |part: StreamPart<'_>| match part {
                StreamPart::Bytes(bytes) => found.extend_from_slice(bytes),
                StreamPart::Gap => panic!("nothing is acknowledged"),
            };
            stream.handle_segment(initial, Flags::SYN, &[], &mut emit);
            // Random segments, possibly several times, and then all of them.
            let random = order.iter().map(|index| segments[index.index(segments.len())]);
            for (start, end) in random.chain(segments.iter().copied()) {
                let seq = initial.wrapping_add(1 + start as u32);
                stream.handle_segment(seq, Flags::ACK, &bytes[start..end], &mut emit);
            }
            prop_assert_eq!(&found, &bytes);
            prop_assert_eq!(stream.stored, 0);
        }
    }
}
