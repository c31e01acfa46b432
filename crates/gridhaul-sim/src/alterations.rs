//! Altered data: segments on their way, and the parts of a stream that an end has received.
//!
//! Segments have no content. A link reports that it has altered a segment; the end that receives it
//! notes which new bytes of the stream are altered, and the message that contains one of them is
//! altered. Nothing is noted in runs without alterations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gridhaul_core::tcp::{Connection, Segment};
use gridhaul_scenario::units::Instant;

use crate::end_id::EndId;

/// The altered data of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alterations {
    /// Whether the run can alter data.
    is_active: bool,
    /// Segments that an attacker has altered and that have not arrived.
    segments: BTreeSet<SegmentId>,
    /// Altered payload that each end has received, apart from that of messages that it has
    /// delivered.
    received: BTreeMap<u32, Vec<Range<u64>>>,
}

/// A segment on its way: an end sends no two segments with the same sequence number at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SegmentId {
    /// Index of the end to which the segment is sent.
    to: u32,
    sent: Instant,
    seq: u32,
}

impl Alterations {
    pub(crate) fn new(is_active: bool) -> Self {
        Self { is_active, ..Self::default() }
    }

    /// Whether the run can alter data.
    pub(crate) const fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether altered segments are on their way.
    #[inline]
    pub(crate) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// A link has altered a segment.
    pub(crate) fn on_altered(&mut self, to: EndId, segment: &Segment, sent: Instant) {
        if self.is_active && segment.len > 0 {
            self.segments.insert(SegmentId { to: to.index(), sent, seq: segment.seq });
        }
    }

    /// A segment has arrived. Returns whether it is altered.
    pub(crate) fn on_arrived(&mut self, to: EndId, segment: &Segment, sent: Instant) -> bool {
        self.segments.remove(&SegmentId { to: to.index(), sent, seq: segment.seq })
    }

    /// An end accepts an altered segment; call this before the connection handles it.
    pub(crate) fn on_accepted(&mut self, to: EndId, segment: &Segment, connection: &Connection) {
        let ranges = connection.missing_within(segment);
        if !ranges.is_empty() {
            self.received.entry(to.index()).or_default().extend(ranges);
        }
    }

    /// An end delivers a message that ends at this position of the stream. Returns whether any byte
    /// of the message is altered.
    #[inline]
    pub(crate) fn take_delivered(&mut self, to: EndId, end: u64) -> bool {
        !self.received.is_empty() && self.take_altered(to, end)
    }

    #[cold]
    fn take_altered(&mut self, to: EndId, end: u64) -> bool {
        let Some(ranges) = self.received.get_mut(&to.index()) else { return false };
        // The ranges of earlier messages have been removed.
        let is_altered = ranges.iter().any(|range| range.start < end);
        for range in ranges.iter_mut() {
            range.start = range.start.max(end);
        }
        ranges.retain(|range| !range.is_empty());
        if ranges.is_empty() {
            self.received.remove(&to.index());
        }
        is_altered
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::tcp::StackParams;
    use gridhaul_scenario::scenario::{FlowEnd, Stack};
    use std::sync::Arc;

    use super::*;

    /// A receiver of a stream that begins at sequence number 1.
    fn receiver() -> Connection {
        let params = Arc::new(StackParams::resolve(&Stack::default()));
        Connection::established(Arc::clone(&params), 0, &params, 0)
    }

    fn segment(seq: u32, len: u32) -> Segment {
        Segment { seq, len, ..Segment::default() }
    }

    #[test]
    fn messages_with_an_altered_byte_are_altered() {
        let (mut alterations, to) = (Alterations::new(true), EndId::of(3, FlowEnd::To));
        // Bytes 100 to 199 of the stream; messages end at 50, 150, 180 and 250.
        let altered = segment(101, 100);
        let sent = Instant::from_nanos(7);
        alterations.on_altered(to, &altered, sent);
        assert!(!alterations.on_arrived(to, &segment(1, 100), sent));
        assert!(alterations.on_arrived(to, &altered, sent));
        assert!(!alterations.has_segments());
        alterations.on_accepted(to, &altered, &receiver());
        let delivered = [50, 150, 180, 250, 300].map(|end| alterations.take_delivered(to, end));
        assert_eq!(delivered, [false, true, true, true, false]);
        assert!(alterations.received.is_empty());
    }

    #[test]
    fn data_that_have_arrived_before_are_not_altered() {
        let (mut alterations, to) = (Alterations::new(true), EndId::of(0, FlowEnd::To));
        let mut connection = receiver();
        let now = Instant::from_nanos(1);
        connection.handle_segment(now, &segment(1, 100));
        connection.handle_segment(now, &segment(201, 100));
        // Bytes 50 to 249, of which 100 to 199 are new.
        alterations.on_accepted(to, &segment(51, 200), &connection);
        let ranges = &alterations.received[&to.index()];
        assert_eq!((ranges.first(), ranges.len()), (Some(&(100..200)), 1));
    }

    #[test]
    fn segments_without_payload_are_not_altered() {
        let (mut alterations, to) = (Alterations::new(true), EndId::of(0, FlowEnd::From));
        alterations.on_altered(to, &segment(1, 0), Instant::ZERO);
        assert!(!alterations.has_segments());
        let mut inactive = Alterations::default();
        inactive.on_altered(to, &segment(1, 100), Instant::ZERO);
        assert!(!inactive.has_segments());
    }
}
