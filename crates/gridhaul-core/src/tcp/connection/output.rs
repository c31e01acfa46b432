//! Construction of the segments of an open connection: header, options and payload range.

use gridhaul_scenario::units::Instant;

use super::Connection;
use super::features::Feature;
use crate::link::EcnCodePoint;
use crate::tcp::params::StackParams;
use crate::tcp::rules::OptionBytes;
use crate::tcp::segment::{ClockOption, Flags, OneWayDelay, SackBlocks, Segment};
use crate::tcp::sender::SendRange;

/// A segment to send ([`Connection::poll`]).
#[derive(Debug, Clone)]
pub enum PendingSegment {
    /// Range of the stream for a segment of an open connection.
    #[expect(private_interfaces, reason = "only handed back to the connection")]
    Range(SendRange),
    /// A complete segment in other states; in a box, so that the frequent ranges are moved without
    /// the space for it.
    Complete(Box<Segment>),
}

impl Connection {
    /// The result of [`Self::poll_transmit`] before the segment is constructed.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant) -> Option<PendingSegment> {
        if !self.may_send() {
            let segment = self.poll_in_other_states(now)?;
            return Some(PendingSegment::Complete(Box::new(segment)));
        }
        self.poll_range(now).map(PendingSegment::Range)
    }

    /// Constructs the result of [`Self::poll`] in `target`: moving a segment is slower than
    /// constructing it in its place.
    #[inline(always)]
    pub fn write_segment(&mut self, now: Instant, pending: &PendingSegment, target: &mut Segment) {
        match pending {
            PendingSegment::Range(range) => self.write_range(now, *range, target),
            PendingSegment::Complete(segment) => *target = **segment,
        }
    }

    /// The segment that carries a range of the stream.
    #[inline]
    pub(crate) fn segment(&mut self, now: Instant, range: SendRange) -> Segment {
        let mut segment = Segment::default();
        self.write_range(now, range, &mut segment);
        segment
    }

    /// Constructs the segment that carries a range of the stream in `target`.
    #[inline(always)]
    pub(crate) fn write_range(&mut self, now: Instant, range: SendRange, target: &mut Segment) {
        if range.start > 0 && self.sends_common_segment() {
            self.write_common(now, range, target);
        } else {
            self.write_uncommon(now, range, target);
        }
    }

    /// Whether the next segment, unless it is SYN, has no option but timestamps, no ECN field and
    /// is not FIN.
    #[inline]
    fn sends_common_segment(&self) -> bool {
        let (sack, ecn) = (Feature::Sack, Feature::Ecn);
        let uncommon = if self.receiver.has_sack_blocks() { [sack, ecn] } else { [ecn, ecn] };
        !self.features.has_any(uncommon) && self.sending.fin_position().is_none()
    }

    /// Flags of a segment behind SYN and before FIN. The last data written so far is pushed (RFC
    /// 9293, 3.9.1.2: "MUST set the PSH bit in the last buffered segment").
    #[inline(always)]
    fn note_data(&mut self, now: Instant, range: SendRange) -> Flags {
        if range.len == 0 {
            return Flags::ACK;
        }
        self.receiver.on_data_sent(now, &self.params);
        let is_last = range.start + u64::from(range.len) == self.sending.data_end();
        if is_last { Flags::ACK.with(Flags::PSH) } else { Flags::ACK }
    }

    #[inline(always)]
    fn write_common(&mut self, now: Instant, range: SendRange, target: &mut Segment) {
        let flags = self.note_data(now, range);
        let timestamps = self.clock_values(now);
        let params = &*self.params;
        let (acknowledged, window) = self.receiver.acknowledge(now, params);
        self.last_ack = acknowledged;
        let options = clock_len(timestamps.is_some(), params);
        target.seq = self.isn.wrapping_add(range.start as u32);
        target.ack = self.peer_isn.wrapping_add(acknowledged as u32);
        target.len = range.len;
        target.window = window;
        target.timestamps = timestamps;
        target.sack.clear();
        target.sack_permitted = false;
        target.clock = clock_option(params);
        target.ecn = EcnCodePoint::NotEct;
        target.flags = flags;
        target.header = (params.header as usize + options) as u8;
    }

    #[inline(never)]
    fn write_uncommon(&mut self, now: Instant, range: SendRange, target: &mut Segment) {
        let (len, flags, syn) = self.flags_of(now, range);
        let timestamps = self.clock_values(now);
        let params = &*self.params;
        target.sack.clear();
        if self.features.has(Feature::Sack) && !syn && self.receiver.has_sack_blocks() {
            let max_blocks = match params.option_bytes {
                // RFC 2018, section 3: four blocks fit, three with timestamps.
                OptionBytes::All => 4 - usize::from(timestamps.is_some()),
                // `max_sack_blocks_`.
                OptionBytes::SackBlocks => 3,
            };
            target.sack = self.receiver.take_sack_blocks(self.peer_isn, max_blocks);
        }
        let options = options_len(&target.sack, timestamps.is_some(), params);
        let fast_open = if syn { self.fast_open_option(len) } else { 0 };
        let header = params.header as usize + options + fast_open;
        let acknowledged = self.receiver.acknowledged();
        self.receiver.on_ack_sent(now, params);
        let window = if syn {
            self.receiver.offered_by_syn(params)
        } else {
            self.receiver.offer(acknowledged, params)
        };
        self.last_ack = acknowledged;
        target.seq = self.isn.wrapping_add(range.start as u32);
        target.ack = self.peer_isn.wrapping_add(acknowledged as u32);
        target.len = len;
        target.window = window;
        target.timestamps = timestamps;
        target.sack_permitted = syn && self.features.has(Feature::Sack);
        target.clock = clock_option(params);
        let notifies = self.features.has(Feature::Ecn) && !syn;
        let (ecn_flags, ecn) =
            if notifies { self.ecn_fields(range, len) } else { Default::default() };
        target.ecn = ecn;
        target.flags = flags.with(ecn_flags);
        target.header = header as u8;
    }

    /// The numbers of the timestamp option, if both ends use it.
    #[inline]
    fn clock_values(&self, now: Instant) -> Option<(u32, u32)> {
        self.features.has(Feature::Timestamps).then(|| match clock_option(&self.params) {
            ClockOption::Timestamps => ((now.as_nanos() / 1_000_000) as u32, self.echo),
            ClockOption::OneWayDelay => (OneWayDelay::stamp(now), self.echo),
        })
    }

    /// Payload and flags of the segment that carries a range, and whether it is SYN.
    fn flags_of(&mut self, now: Instant, range: SendRange) -> (u32, Flags, bool) {
        if range.start == 0 && range.len > 0 {
            return (range.len - 1, self.flags_of_syn(), true);
        }
        if let Some(fin) = self.sending.fin_position()
            && range.len > 0
            && range.start + u64::from(range.len) > fin
        {
            return (range.len - 1, Flags::ACK.with(Flags::FIN), false);
        }
        (range.len, self.note_data(now, range), false)
    }
}

/// The timestamp option that a stack offers, if any.
#[inline]
pub(super) const fn clock_option(params: &StackParams) -> ClockOption {
    if params.one_way_delay { ClockOption::OneWayDelay } else { ClockOption::Timestamps }
}

/// Bytes of options: those of the clock, and 4 + 8n for SACK blocks with their padding.
#[inline]
fn options_len(sack: &SackBlocks, timestamps: bool, params: &StackParams) -> usize {
    let blocks = sack.as_slice().len();
    let padding = if blocks > 0 && params.option_bytes == OptionBytes::All { 4 } else { 0 };
    clock_len(timestamps, params) + padding + 8 * blocks
}

/// Bytes of the timestamp option: 12 for timestamps with their padding (RFC 7323, appendix A) and
/// for the delays of MEDX.
#[inline]
fn clock_len(timestamps: bool, params: &StackParams) -> usize {
    let counts = match params.option_bytes {
        // ns-2 has no MEDX, so its real size applies.
        OptionBytes::SackBlocks => params.one_way_delay,
        OptionBytes::All => true,
    };
    if timestamps && counts { 12 } else { 0 }
}
