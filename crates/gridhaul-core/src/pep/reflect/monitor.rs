//! A unit that lets everything pass and watches for the moment to step in.

use super::super::Side;
use crate::tcp::{Flags, Segment};

/// What is known of a connection whose segments pass.
#[derive(Debug, Clone, Default)]
pub(super) struct HandshakeMonitor {
    /// SYN of the left host and the right one's answer.
    opening: [Option<Opening>; 2],
    /// Segments without SYN have passed since.
    begun: bool,
    /// By the side they come from.
    ways: [Way; 2],
    /// The connection cannot be joined: it uses timestamps, or is being closed.
    closed_to_us: bool,
}

/// What a host has said in its SYN.
#[derive(Debug, Clone, Copy)]
struct Opening {
    isn: u32,
    window: u32,
    sack: bool,
}

/// What has passed of one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// Number behind the last byte that has passed.
    top: Option<u32>,
    /// Highest acknowledgement of it that has passed.
    acknowledged: Option<u32>,
    window: u32,
    sack: bool,
}

/// How the unit enters the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryState {
    /// The number before the first byte that will be taken in, of each side.
    pub isns: [u32; 2],
    /// The windows that both sides offer.
    pub windows: [u32; 2],
    /// Whether both use selective acknowledgements.
    pub sack: bool,
}

impl HandshakeMonitor {
    /// Looks at a segment that is about to pass. `buffer` is the largest window that it may offer.
    pub(super) fn pass(&mut self, from: Side, segment: &mut Segment, header: u8, buffer: u32) {
        if segment.flags.has(Flags::RST) {
            *self = Self::default();
        } else if segment.flags.has(Flags::SYN) {
            self.open(from, segment);
            prepare(segment, header, buffer);
        } else {
            self.note(from, segment);
        }
    }

    /// Whether this segment of the left host is the first behind the handshake: then the unit
    /// enters before it.
    pub(super) fn opened_by(
        &self,
        from: Side,
        segment: &Segment,
        buffer: u32,
    ) -> Option<EntryState> {
        let [Some(left), Some(right)] = self.opening else { return None };
        let flags = segment.flags;
        let plain = flags.has(Flags::ACK)
            && !flags.has(Flags::SYN)
            && !flags.has(Flags::RST)
            && segment.timestamps.is_none();
        let at = segment.seq.wrapping_sub(left.isn.wrapping_add(1));
        let answers = segment.ack == right.isn.wrapping_add(1) && at <= buffer;
        (from == Side::Client && plain && answers && !self.begun).then_some(EntryState {
            isns: [left.isn, right.isn],
            windows: [segment.window, right.window],
            sack: left.sack && right.sack,
        })
    }

    /// Whether all that has passed is acknowledged in both directions: then the unit enters here.
    pub(super) fn settled(&self) -> Option<EntryState> {
        let settled = self.ways.iter().all(|way| way.top.is_some() && way.top == way.acknowledged);
        let [left, right] = self.ways;
        (settled && !self.closed_to_us).then(|| EntryState {
            isns: [left, right].map(|way| way.top.unwrap_or_default().wrapping_sub(1)),
            windows: [left.window, right.window],
            sack: left.sack || right.sack,
        })
    }

    /// Whether nothing of a connection is known.
    pub(super) fn is_idle(&self) -> bool {
        let known = |way: &Way| way.top.is_some() || way.acknowledged.is_some();
        self.opening.iter().all(Option::is_none) && !self.ways.iter().any(known)
    }

    /// The number that the next hop of a side's data waits for, as far as is known.
    pub(super) const fn expected_from(&self, from: Side) -> Option<u32> {
        self.ways[from.index()].acknowledged
    }

    fn open(&mut self, from: Side, segment: &Segment) {
        let (isn, window, sack) = (segment.seq, segment.window, segment.sack_permitted);
        let opening = Some(Opening { isn, window, sack });
        let answer = segment.flags.has(Flags::ACK);
        match (from, answer, self.opening[0]) {
            // A repeated one changes nothing: what has passed since has passed.
            (Side::Client, false, Some(left)) if left.isn == isn => {}
            // An old copy of the SYN of this connection, whose data has begun to pass: a new one begins
            // behind the numbers of the old one (RFC 9293, section 3.4.1).
            (Side::Client, false, _) if self.has_passed(isn) => {}
            (Side::Client, false, _) => {
                *self = Self { opening: [opening, None], ..Self::default() }
            }
            (Side::Server, true, Some(left)) if segment.ack == left.isn.wrapping_add(1) => {
                self.opening[1] = opening;
            }
            // Opened by both at once, or out of nowhere: it passes.
            _ => {}
        }
    }

    /// Whether data behind this number of the left host has passed.
    fn has_passed(&self, isn: u32) -> bool {
        let [left, _] = self.ways;
        left.top.is_some_and(|top| top.wrapping_sub(isn).cast_signed() > 0)
    }

    fn note(&mut self, from: Side, segment: &Segment) {
        self.begun = true;
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let way = &mut self.ways[from.index()];
        way.top = Some(later(way.top, end));
        way.window = segment.window;
        way.sack |= !segment.sack.is_empty();
        if segment.flags.has(Flags::ACK) {
            let other = &mut self.ways[from.other().index()];
            other.acknowledged = Some(later(other.acknowledged, segment.ack));
        }
        self.closed_to_us |= segment.timestamps.is_some() || segment.flags.has(Flags::FIN);
    }
}

/// What passes of SYN: no timestamps, because a unit that answers for both hosts has not their
/// clocks (RFC 7323, section 3.2: without the option in both SYN, none is sent), and no more window
/// than the unit has. `header` is the size of a header without options.
fn prepare(segment: &mut Segment, header: u8, buffer: u32) {
    if segment.timestamps.take().is_some() {
        // RFC 7323, appendix A: 10 bytes and 2 of padding.
        segment.header = segment.header.saturating_sub(12).max(header.min(segment.header));
    }
    segment.window = segment.window.min(buffer);
}

fn later(known: Option<u32>, number: u32) -> u32 {
    known.filter(|&known| number.wrapping_sub(known).cast_signed() <= 0).unwrap_or(number)
}
