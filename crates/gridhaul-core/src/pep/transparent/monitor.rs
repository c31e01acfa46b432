//! State of a connection that a proxy only forwards, until the proxy can engage.

use super::held::HeldData;
use crate::pep::Side;
use crate::tcp::{Flags, Segment};

/// Observes the handshake and the sequence numbers of a connection whose segments are forwarded.
#[derive(Debug, Clone, Default)]
pub(super) struct HandshakeMonitor {
    /// SYN of the client and SYN-ACK of the server.
    syns: [Option<Syn>; 2],
    /// Segments without SYN were forwarded since.
    has_segments: bool,
    /// By the side that sends the data.
    directions: [Direction; 2],
    /// The proxy cannot engage: the connection uses timestamps, or is being closed.
    cannot_engage: bool,
    held: HeldData,
}

/// Fields of a SYN segment.
#[derive(Debug, Clone, Copy)]
struct Syn {
    isn: u32,
    window: u32,
    sack: bool,
}

/// Forwarded data of one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Direction {
    /// Sequence number after the last forwarded byte.
    end: Option<u32>,
    /// Highest acknowledgement number for this direction that was forwarded.
    acknowledged: Option<u32>,
    window: u32,
    sack: bool,
}

/// State with which the proxy engages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryState {
    /// Sequence number before the first byte that the proxy will accept, of each side.
    pub isns: [u32; 2],
    /// Receive windows that both sides offer.
    pub windows: [u32; 2],
    /// Whether selective acknowledgements are used.
    pub sack: bool,
}

impl HandshakeMonitor {
    /// Observes a connection that the proxy must not join.
    pub(super) fn of_open_connection() -> Self {
        Self { cannot_engage: true, ..Self::default() }
    }

    /// Observes a segment that is about to be forwarded, and limits its window to `buffer`.
    pub(super) fn on_forward(
        &mut self,
        from: Side,
        segment: &mut Segment,
        header: u8,
        buffer: u32,
    ) {
        if segment.flags.has(Flags::RST) {
            *self = Self::default();
        } else if segment.flags.has(Flags::SYN) {
            self.on_syn(from, segment);
            adjust_syn(segment, header, buffer);
        } else {
            self.on_segment(from, segment);
            self.held.note(from, segment);
        }
    }

    /// Data that the hosts have reported beyond gaps.
    pub(super) const fn held(&self) -> &HeldData {
        &self.held
    }

    /// Whether this is the first segment of the client after the handshake. The proxy then engages
    /// before handling it.
    pub(super) fn handshake_completed_by(
        &self,
        from: Side,
        segment: &Segment,
        buffer: u32,
    ) -> Option<EntryState> {
        let [Some(client), Some(server)] = self.syns else { return None };
        let flags = segment.flags;
        let is_plain = flags.has(Flags::ACK)
            && !flags.has(Flags::SYN)
            && !flags.has(Flags::RST)
            && segment.timestamps.is_none();
        let offset = segment.seq.wrapping_sub(client.isn.wrapping_add(1));
        let is_in_order = segment.ack == server.isn.wrapping_add(1) && offset <= buffer;
        (from == Side::Client && is_plain && is_in_order && !self.has_segments).then_some(
            EntryState {
                isns: [client.isn, server.isn],
                windows: [segment.window, server.window],
                sack: client.sack && server.sack,
            },
        )
    }

    /// Whether all forwarded data is acknowledged in both directions. The proxy then engages.
    pub(super) fn all_acknowledged(&self) -> Option<EntryState> {
        let is_settled = self
            .directions
            .iter()
            .all(|direction| direction.end.is_some() && direction.end == direction.acknowledged);
        let [client, server] = self.directions;
        (is_settled && !self.cannot_engage).then(|| EntryState {
            isns: [client, server]
                .map(|direction| direction.end.unwrap_or_default().wrapping_sub(1)),
            windows: [client.window, server.window],
            sack: client.sack || server.sack,
        })
    }

    /// Whether no connection was observed.
    pub(super) fn is_idle(&self) -> bool {
        let known =
            |direction: &Direction| direction.end.is_some() || direction.acknowledged.is_some();
        self.syns.iter().all(Option::is_none) && !self.directions.iter().any(known)
    }

    /// The sequence number that the receiver of a side's data expects, if known.
    pub(super) const fn expected_from(&self, from: Side) -> Option<u32> {
        self.directions[from.index()].acknowledged
    }

    fn on_syn(&mut self, from: Side, segment: &Segment) {
        let (isn, window, sack) = (segment.seq, segment.window, segment.sack_permitted);
        let syn = Some(Syn { isn, window, sack });
        let is_syn_ack = segment.flags.has(Flags::ACK);
        match (from, is_syn_ack, self.syns[0]) {
            // A retransmitted SYN changes nothing.
            (Side::Client, false, Some(client)) if client.isn == isn => {}
            // An old duplicate of the SYN of this connection. A new connection begins after the
            // sequence numbers of the old one (RFC 9293, section 3.4.1).
            (Side::Client, false, _) if self.has_forwarded_after(isn) => {}
            (Side::Client, false, _) => *self = Self { syns: [syn, None], ..Self::default() },
            (Side::Server, true, Some(client)) if segment.ack == client.isn.wrapping_add(1) => {
                self.syns[1] = syn;
            }
            // Simultaneous open, or a SYN-ACK without SYN: only forwarded.
            _ => {}
        }
    }

    /// Whether data of the client after this sequence number was forwarded, or acknowledged by the
    /// server.
    fn has_forwarded_after(&self, isn: u32) -> bool {
        let [client, _] = self.directions;
        let mut known = [client.end, client.acknowledged].into_iter().flatten();
        known.any(|end| end.wrapping_sub(isn).cast_signed() > 0)
    }

    fn on_segment(&mut self, from: Side, segment: &Segment) {
        self.has_segments = true;
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let direction = &mut self.directions[from.index()];
        direction.end = Some(latest(direction.end, end));
        direction.window = segment.window;
        direction.sack |= !segment.sack.is_empty();
        if segment.flags.has(Flags::ACK) {
            let other = &mut self.directions[from.other().index()];
            other.acknowledged = Some(latest(other.acknowledged, segment.ack));
        }
        self.cannot_engage |= segment.timestamps.is_some() || segment.flags.has(Flags::FIN);
    }
}

/// Removes the timestamps option from SYN, because the proxy cannot reproduce the clocks of the
/// hosts (RFC 7323, section 3.2: without the option in both SYN, none is sent), and limits the
/// window to the buffer of the proxy. `header` is the size of a header without options.
fn adjust_syn(segment: &mut Segment, header: u8, buffer: u32) {
    if segment.timestamps.take().is_some() {
        // RFC 7323, appendix A: 10 bytes and 2 bytes of padding.
        segment.header = segment.header.saturating_sub(12).max(header.min(segment.header));
    }
    segment.window = segment.window.min(buffer);
}

fn latest(known: Option<u32>, number: u32) -> u32 {
    known.filter(|&known| number.wrapping_sub(known).cast_signed() <= 0).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u32 = 1_000;

    fn segment(seq: u32, ack: u32, flags: Flags) -> Segment {
        Segment { seq, ack, window: 5_000, flags, header: 40, ..Segment::default() }
    }

    /// Forwards segments. Returns the last one as it is forwarded.
    fn forward(monitor: &mut HandshakeMonitor, from: Side, mut segment: Segment) -> Segment {
        monitor.on_forward(from, &mut segment, 40, BUFFER);
        segment
    }

    /// SYN with number 99, and SYN-ACK with 899 and a window of 700 bytes.
    fn after_handshake(sack_permitted: [bool; 2]) -> HandshakeMonitor {
        let mut monitor = HandshakeMonitor::default();
        let [client, server] = sack_permitted;
        let syn = Segment { sack_permitted: client, ..segment(99, 0, Flags::SYN) };
        forward(&mut monitor, Side::Client, syn);
        let flags = Flags::SYN.with(Flags::ACK);
        let syn_ack = Segment { sack_permitted: server, window: 700, ..segment(899, 100, flags) };
        forward(&mut monitor, Side::Server, syn_ack);
        monitor
    }

    fn completes(monitor: &HandshakeMonitor, from: Side, segment: &Segment) -> bool {
        monitor.handshake_completed_by(from, segment, BUFFER).is_some()
    }

    #[test]
    fn the_first_segment_of_the_client_completes_the_handshake() {
        let first = segment(100, 900, Flags::ACK);
        let entry =
            |sack| after_handshake(sack).handshake_completed_by(Side::Client, &first, BUFFER);
        let state = |sack| EntryState { isns: [99, 899], windows: [5_000, 700], sack };
        assert_eq!(entry([true, true]), Some(state(true)));
        // RFC 2018, section 2: both hosts have to permit it.
        assert_eq!(entry([true, false]), Some(state(false)));
        assert_eq!(entry([false, true]), Some(state(false)));
    }

    #[test]
    fn other_segments_do_not_complete_the_handshake() {
        let monitor = after_handshake([true; 2]);
        let first = segment(100, 900, Flags::ACK);
        assert!(!completes(&monitor, Side::Server, &first));
        for flags in [Flags::NONE, Flags::ACK.with(Flags::SYN), Flags::ACK.with(Flags::RST)] {
            assert!(!completes(&monitor, Side::Client, &Segment { flags, ..first }), "{flags:?}");
        }
        let stamped = Segment { timestamps: Some((1, 1)), ..first };
        assert!(!completes(&monitor, Side::Client, &stamped));
        assert!(!completes(&monitor, Side::Client, &Segment { ack: 901, ..first }));
        // A later segment has overtaken the first, within the buffer.
        assert!(completes(&monitor, Side::Client, &Segment { seq: 1_100, ..first }));
        assert!(!completes(&monitor, Side::Client, &Segment { seq: 1_101, ..first }));
        let mut later = monitor.clone();
        forward(&mut later, Side::Server, segment(900, 100, Flags::ACK));
        assert!(!completes(&later, Side::Client, &first), "a segment was forwarded before");
        assert!(!completes(&HandshakeMonitor::default(), Side::Client, &first));
    }

    /// Fifty bytes of the client, which the server acknowledges up to this number.
    fn after_data(mut monitor: HandshakeMonitor, data: Segment, ack: u32) -> HandshakeMonitor {
        forward(&mut monitor, Side::Client, data);
        forward(&mut monitor, Side::Server, segment(900, ack, Flags::ACK));
        monitor
    }

    #[test]
    fn a_proxy_may_join_once_nothing_is_outstanding() {
        let data = Segment { len: 50, ..segment(100, 900, Flags::ACK) };
        let entry =
            |data, ack| after_data(HandshakeMonitor::default(), data, ack).all_acknowledged();
        let settled = |sack| EntryState { isns: [149, 899], windows: [5_000; 2], sack };
        assert_eq!(entry(data, 150), Some(settled(false)));
        assert_eq!(entry(data, 149), None, "a byte is outstanding");
        let mut with_sack = data;
        with_sack.sack.push(950, 960);
        assert_eq!(entry(with_sack, 150), Some(settled(true)));
        assert_eq!(entry(Segment { timestamps: Some((1, 1)), ..data }, 150), None);
        let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..data };
        assert_eq!(entry(fin, 151), None, "the connection is being closed");
        let open = HandshakeMonitor::of_open_connection();
        assert_eq!(after_data(open, data, 150).all_acknowledged(), None);
        let mut one_direction = HandshakeMonitor::default();
        forward(&mut one_direction, Side::Client, data);
        assert_eq!(one_direction.all_acknowledged(), None);
    }

    #[test]
    fn a_monitor_is_idle_before_a_connection_and_after_its_reset() {
        let mut monitor = HandshakeMonitor::default();
        assert!(monitor.is_idle());
        forward(&mut monitor, Side::Client, segment(99, 0, Flags::SYN));
        assert!(!monitor.is_idle());
        forward(&mut monitor, Side::Server, segment(0, 100, Flags::RST.with(Flags::ACK)));
        assert!(monitor.is_idle());
        forward(&mut monitor, Side::Client, segment(100, 900, Flags::ACK));
        assert!(!monitor.is_idle());
    }

    /// RFC 9293, section 3.4.1: a new connection begins after the sequence numbers of the old one.
    #[test]
    fn an_old_duplicate_of_syn_does_not_begin_a_connection() {
        let data = Segment { len: 50, ..segment(100, 900, Flags::ACK) };
        let mut monitor = after_data(after_handshake([true; 2]), data, 150);
        assert_eq!(monitor.expected_from(Side::Client), Some(150));
        for old in [99, 50, 149] {
            forward(&mut monitor, Side::Client, segment(old, 0, Flags::SYN));
            assert_eq!(monitor.expected_from(Side::Client), Some(150), "{old}");
        }
        forward(&mut monitor, Side::Client, segment(150, 0, Flags::SYN));
        assert_eq!(monitor.expected_from(Side::Client), None);
    }

    #[test]
    fn an_old_duplicate_of_syn_is_known_by_acknowledgements_of_the_server_as_well() {
        let mut monitor = HandshakeMonitor::of_open_connection();
        forward(&mut monitor, Side::Server, segment(900, 150, Flags::ACK));
        forward(&mut monitor, Side::Client, segment(99, 0, Flags::SYN));
        let data = Segment { len: 50, ..segment(150, 900, Flags::ACK) };
        assert_eq!(after_data(monitor, data, 200).all_acknowledged(), None, "scales are unknown");
    }

    #[test]
    fn a_retransmitted_syn_changes_nothing_and_the_answer_to_another_one_counts_for_nothing() {
        let first = segment(100, 900, Flags::ACK);
        let mut monitor = after_handshake([true; 2]);
        forward(&mut monitor, Side::Client, segment(99, 0, Flags::SYN));
        assert!(completes(&monitor, Side::Client, &first));
        let mut monitor = HandshakeMonitor::default();
        forward(&mut monitor, Side::Client, segment(99, 0, Flags::SYN));
        forward(&mut monitor, Side::Server, segment(899, 77, Flags::SYN.with(Flags::ACK)));
        assert!(!completes(&monitor, Side::Client, &first));
    }

    /// RFC 7323, appendix A: 12 bytes with padding.
    #[test]
    fn syn_is_forwarded_without_timestamps_and_with_a_window_of_at_most_the_buffer() {
        let forwarded = |header, timestamps, window| {
            let syn = segment(99, 0, Flags::SYN);
            let syn = Segment { header, timestamps, window, ..syn };
            let syn = forward(&mut HandshakeMonitor::default(), Side::Client, syn);
            (syn.header, syn.timestamps, syn.window)
        };
        assert_eq!(forwarded(60, Some((1, 0)), 5_000), (48, None, BUFFER));
        assert_eq!(forwarded(44, Some((1, 0)), 999), (40, None, 999), "no less than a header");
        assert_eq!(forwarded(60, None, 999), (60, None, 999));
    }
}
