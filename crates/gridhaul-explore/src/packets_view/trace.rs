//! The segments and acknowledgements of a connection, with positions in its stream.

use gridhaul_core::tcp::expand;

use super::arrays::NamedArray;
use super::capture::CapturedSegment;

/// Ranges of the stream over time: each has a time, a first position and an end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ranges {
    pub(super) time_s: Vec<f64>,
    pub(super) start: Vec<f64>,
    pub(super) end: Vec<f64>,
}

/// Packets that the sender sends and receives. Positions are relative: SYN is 0, data begins at 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Trace {
    pub(super) first_transmissions: Ranges,
    pub(super) retransmissions: Ranges,
    /// From the acknowledged position to the end of the offered window.
    pub(super) acknowledgements: Ranges,
    pub(super) sack: Ranges,
}

impl Ranges {
    fn push(&mut self, time_s: f64, start: f64, end: f64) {
        self.time_s.push(time_s);
        self.start.push(start);
        self.end.push(end);
    }
}

/// Positions of sequence numbers in the stream, near the largest one so far.
#[derive(Clone, Copy)]
struct Positions {
    initial: u32,
    largest: u64,
}

impl Positions {
    /// The position of a number; none before the first one.
    fn at(&mut self, number: u32) -> Option<f64> {
        let position = expand(number, self.initial, self.largest)?;
        self.largest = self.largest.max(position);
        Some(position as f64)
    }
}

impl Trace {
    /// Of the segments in both directions of a link.
    pub(super) fn of(forward: &[CapturedSegment], reverse: &[CapturedSegment]) -> Self {
        let mut trace = Self::default();
        let Some(first) = forward.first() else { return trace };
        // Without a handshake, the first segment has the first byte of the data.
        let initial = if first.is_syn { first.seq } else { first.seq.wrapping_sub(1) };
        let mut positions = Positions { initial, largest: 0 };
        let mut sent = 0.0;
        for segment in forward.iter().filter(|segment| segment.length > 0) {
            let Some(start) = positions.at(segment.seq) else { continue };
            let end = start + f64::from(segment.length);
            let is_first = end > sent;
            let ranges =
                if is_first { &mut trace.first_transmissions } else { &mut trace.retransmissions };
            ranges.push(segment.time_s, start, end);
            sent = end.max(sent);
        }
        let mut positions = Positions { initial, largest: 0 };
        let syn = reverse.iter().find(|segment| segment.is_syn);
        // Both ends must offer a scale (RFC 7323, section 2.2).
        let scale = syn.and(first.window_scale).and(syn.and_then(|syn| syn.window_scale));
        for segment in reverse.iter().filter(|segment| segment.has_ack) {
            let shift = if segment.is_syn { 0 } else { scale.unwrap_or(0) };
            let Some(ack) = positions.at(segment.ack) else { continue };
            let window = f64::from(u32::from(segment.window) << shift.min(14));
            trace.acknowledgements.push(segment.time_s, ack, ack + window);
            for (start, end) in segment.sack.as_slice() {
                // Blocks are above the acknowledged position, which remains the reference.
                let mut of_block = positions;
                if let Some((start, end)) = of_block.at(*start).zip(of_block.at(*end)) {
                    trace.sack.push(segment.time_s, start, end);
                }
            }
        }
        trace
    }

    /// The columns by name.
    pub(super) fn arrays(&self) -> Vec<NamedArray<'_>> {
        let all = [
            ("first_transmissions", &self.first_transmissions),
            ("retransmissions", &self.retransmissions),
            ("acknowledgements", &self.acknowledgements),
            ("sack", &self.sack),
        ];
        let columns = all.into_iter().flat_map(|(name, ranges)| {
            let Ranges { time_s, start, end } = ranges;
            [("time_s", time_s), ("start", start), ("end", end)]
                .map(|(column, values)| NamedArray { name: format!("{name}.{column}"), values })
        });
        columns.collect()
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::tcp::SackBlocks;

    use super::*;

    fn segment(time_s: f64, seq: u32, length: u32) -> CapturedSegment {
        CapturedSegment {
            time_s,
            seq,
            ack: 0,
            length,
            is_syn: false,
            has_ack: true,
            window: 100,
            window_scale: None,
            sack: SackBlocks::default(),
        }
    }

    #[test]
    fn a_segment_that_was_sent_before_is_a_retransmission() {
        let syn = CapturedSegment { is_syn: true, ..segment(0.0, 999, 0) };
        let sent = [1000, 1100, 1200, 1100, 1300].map(|seq| segment(1.0, seq, 100));
        let trace = Trace::of(&[&[syn][..], &sent].concat(), &[]);
        assert_eq!(trace.first_transmissions.start, [1.0, 101.0, 201.0, 301.0]);
        assert_eq!(trace.retransmissions.start, [101.0]);
        assert_eq!(trace.retransmissions.end, [201.0]);
    }

    #[test]
    fn positions_continue_when_sequence_numbers_wrap() {
        let before = u32::MAX - 99;
        let sent = [before, 0, 100].map(|seq| segment(1.0, seq, 100));
        let ack = CapturedSegment { ack: 100, ..segment(2.0, 0, 0) };
        let trace = Trace::of(&sent, &[ack]);
        assert_eq!(trace.first_transmissions.start, [1.0, 101.0, 201.0]);
        assert_eq!(trace.acknowledgements.start, [201.0]);
    }

    #[test]
    fn an_acknowledgement_has_window_and_selective_acknowledgements() {
        let syn = CapturedSegment { is_syn: true, window_scale: Some(2), ..segment(0.0, 0, 0) };
        let answer = CapturedSegment { ack: 1, ..syn };
        let mut sack = SackBlocks::default();
        sack.push(201, 301);
        sack.push(401, 501);
        let ack = CapturedSegment { ack: 101, sack, ..segment(1.0, 1, 0) };
        let trace = Trace::of(&[syn, segment(0.5, 1, 600)], &[answer, ack]);
        let Ranges { start, end, .. } = &trace.acknowledgements;
        assert_eq!((start.as_slice(), end.as_slice()), (&[1.0, 101.0][..], &[101.0, 501.0][..]));
        assert_eq!((trace.sack.start, trace.sack.end), (vec![201.0, 401.0], vec![301.0, 501.0]));
    }
}
