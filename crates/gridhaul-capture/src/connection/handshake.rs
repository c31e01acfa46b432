//! The handshake of a connection: the round trips between the point of the capture and both ends,
//! and the window scales.

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};

use crate::CapturedSegment;

/// Facts that the handshake shows.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    syn: Option<Instant>,
    answer: Option<Instant>,
    /// Bytes of the SYN-ACK. The other packets of the handshake may have data.
    packet: u32,
    /// Initial sequence numbers of both ends.
    numbers: [Option<u32>; 2],
    /// The window scale options of both ends, once their SYN has been captured.
    scales: [Option<Option<u8>>; 2],
    /// From the point of the capture to the client and back, and to the server and back.
    round_trips: Option<[Duration; 2]>,
    is_new: bool,
    /// Whether a SYN was captured more than once.
    retransmitted: bool,
}

/// Why the handshake of a capture shows no round trips: the part that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakeGap {
    /// Both SYN, so that the scales of the windows are unknown as well.
    BothSyn,
    /// The SYN of one end: the capture has one direction, or began between them.
    OneSyn,
    /// Both SYN were captured, but not the times of one exchange: a SYN was retransmitted, or its
    /// acknowledgement is missing.
    AmbiguousTimes,
}

impl HandshakeGap {
    /// The reason why the handshake shows no round trips.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::BothSyn => "the handshake was not captured",
            Self::OneSyn => "the SYN of only one end was captured",
            Self::AmbiguousTimes => {
                "the handshake shows no round trips, since a SYN was retransmitted or its \
                 acknowledgement was not captured"
            }
        }
    }

    /// Whether the scale of the windows is unknown.
    pub(crate) const fn hides_window_scale(self) -> bool {
        matches!(self, Self::BothSyn | Self::OneSyn)
    }
}

impl Handshake {
    pub(super) fn handle_segment(&mut self, sender: usize, segment: &CapturedSegment) {
        let has = |flags| segment.flags.has(flags);
        if has(Flags::SYN) {
            if self.numbers[sender] == Some(segment.seq) {
                self.retransmitted = true;
            }
            self.numbers[sender] = Some(segment.seq);
            self.scales[sender] = Some(segment.window_scale);
            if has(Flags::ACK) {
                self.answer = Some(segment.at);
                self.packet = segment.packet;
                // The SYN may have been sent before the capture began.
                self.numbers[1 - sender].get_or_insert(segment.ack.wrapping_sub(1));
            } else {
                self.syn = Some(segment.at);
            }
            return;
        }
        let (Some(syn), Some(answer)) = (self.syn, self.answer) else { return };
        // The first acknowledgement of the SYN-ACK. After a retransmission it is unknown which SYN
        // is acknowledged (Karn and Partridge 1987).
        let confirms = sender == 0
            && has(Flags::ACK)
            && self.numbers[1].is_some_and(|number| segment.ack == number.wrapping_add(1));
        if confirms && self.round_trips.is_none() && !self.retransmitted {
            self.round_trips = Some([segment.at.since(answer), answer.since(syn)]);
            self.is_new = true;
        }
    }

    /// The round trips, when they have just become known.
    pub(super) fn new_round_trips(&mut self) -> Option<[Duration; 2]> {
        if std::mem::take(&mut self.is_new) { self.round_trips } else { None }
    }

    /// The round trips between the point of the capture and the client, and the server.
    pub(crate) const fn round_trips(&self) -> Option<[Duration; 2]> {
        self.round_trips
    }

    /// The part that the capture lacks, if there are no round trips.
    pub(crate) const fn gap(&self) -> HandshakeGap {
        match self.scales {
            [None, None] => HandshakeGap::BothSyn,
            [Some(_), Some(_)] => HandshakeGap::AmbiguousTimes,
            _ => HandshakeGap::OneSyn,
        }
    }

    /// The shift count of the windows of an end; `None` without the SYN of both ends. Windows are
    /// scaled if both ends sent the option (RFC 7323, section 2.2).
    pub(super) fn window_scale(&self, end: usize) -> Option<u8> {
        let [client, server] = self.scales;
        let both = client?.is_some() && server?.is_some();
        // RFC 7323, section 2.3: at most 14.
        if both { self.scales[end]?.map(|shift| shift.min(14)) } else { Some(0) }
    }

    /// Whether the client has not opened the connection with this number, also if the capture began
    /// in the middle of the connection.
    pub(super) fn has_other_number(&self, seq: u32) -> bool {
        self.numbers[0] != Some(seq)
    }

    /// Bytes of a packet of the handshake.
    pub(super) const fn packet(&self) -> u32 {
        self.packet
    }

    /// Initial sequence numbers.
    pub(crate) const fn numbers(&self) -> [Option<u32>; 2] {
        self.numbers
    }
}
