//! Data that a host holds beyond a gap.

use crate::pep::Side;
use crate::tcp::Segment;

/// End of the data that each host has reported beyond a gap (RFC 2018), if any.
///
/// A proxy that has engaged after a crash of another one does not know what that one had sent. Once
/// the new proxy has filled the gap, the host acknowledges data that this proxy has never sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeldData {
    ends: [Option<u32>; 2],
}

impl HeldData {
    /// Notes the blocks of a segment.
    #[inline]
    pub(super) fn note(&mut self, from: Side, segment: &Segment) {
        for &(_, end) in segment.sack.as_slice() {
            let known = &mut self.ends[from.index()];
            if known.is_none_or(|known| known.wrapping_sub(end) >= WINDOW_MAX) {
                *known = Some(end);
            }
        }
    }

    /// Whether a host has reported all data up to the number that it acknowledges now.
    pub(super) fn contains(&self, from: Side, ack: u32) -> bool {
        self.ends[from.index()].is_some_and(|end| end.wrapping_sub(ack) < WINDOW_MAX)
    }
}

/// Numbers that are further apart are not of the same window (RFC 7323, section 2.3).
const WINDOW_MAX: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::SackBlocks;

    #[test]
    fn the_highest_reported_end_counts_also_where_sequence_numbers_wrap() {
        let mut held = HeldData::default();
        assert!(!held.contains(Side::Client, 0));
        for blocks in [&[(u32::MAX - 9, 20)][..], &[(u32::MAX - 99, u32::MAX - 49)]] {
            let mut sack = SackBlocks::default();
            for &(start, end) in blocks {
                sack.push(start, end);
            }
            held.note(Side::Client, &Segment { sack, ..Segment::default() });
        }
        let contained = [u32::MAX - 9, 20, 21].map(|ack| held.contains(Side::Client, ack));
        assert_eq!(contained, [true, true, false]);
        assert!(!held.contains(Side::Server, 20));
    }
}
