//! A TCP connection of a capture, as a state machine without I/O.

mod acknowledgement;
mod copies;
mod direction;
mod echo;
mod full_size;
mod handshake;
mod history;
mod messages;
mod outstanding;
mod sender_view;
mod window_edges;

use std::net::SocketAddr;

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};
use serde::Serialize;

use crate::CapturedSegment;

use copies::Copies;
use handshake::Handshake;

pub use messages::Message;

pub(crate) use direction::Direction;
pub(crate) use handshake::HandshakeGap;
pub(crate) use history::{Checkpoint, History};

/// The ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Ends {
    /// The end that opened the connection, or sent the first captured segment.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
}

/// A TCP connection. Its memory is bounded: at most 65,536 outstanding segments are followed.
#[derive(Debug)]
pub struct Connection {
    ends: Ends,
    point: u32,
    first: Instant,
    last: Instant,
    handshake: Handshake,
    /// The data of the client, and that of the server.
    directions: [Direction; 2],
    /// By sender.
    copies: [Copies; 2],
    /// Time by which the clock of the capture was set back.
    set_back: Duration,
    segments: [u64; 2],
    closed: bool,
}

/// Records of several receive queues are out of order by less: a longer step back is one of the
/// clock. NTP steps a clock that is wrong by more than 128 ms, and virtual machines have longer
/// steps.
const CLOCK_STEP: Duration = Duration::from_millis(100);

impl Connection {
    /// A connection whose first captured segment is this one, which is not handled yet.
    #[must_use]
    pub fn new(segment: &CapturedSegment) -> Self {
        let is_answer = segment.flags.has(Flags::SYN.with(Flags::ACK));
        let (client, server) = if is_answer {
            (segment.destination, segment.source)
        } else {
            (segment.source, segment.destination)
        };
        Self {
            ends: Ends { client, server },
            point: segment.point,
            first: segment.at,
            last: segment.at,
            handshake: Handshake::default(),
            directions: [Direction::default(), Direction::default()],
            copies: [Copies::default(), Copies::default()],
            set_back: Duration::ZERO,
            segments: [0; 2],
            closed: false,
        }
    }

    /// Records the progress of both directions over time, for a comparison.
    pub(crate) fn record_history(&mut self) {
        self.directions.iter_mut().for_each(Direction::record_history);
    }

    /// Handles the next segment of the connection.
    pub fn handle_segment(&mut self, segment: &CapturedSegment) {
        let from = usize::from(segment.source != self.ends.client);
        let [sender, other] = [from, 1 - from];
        if self.copies[sender].is_copy(segment) {
            return;
        }
        // The order of the file is kept, and the time between two segments if the clock is set
        // back: the time since the last segment is unknown then.
        let behind = self.last.since(segment.at + self.set_back);
        if behind > CLOCK_STEP {
            self.set_back += behind;
        }
        let at = (segment.at + self.set_back).max(self.last);
        let segment = CapturedSegment { at, ..*segment };
        self.last = segment.at;
        self.segments[sender] += 1;
        self.handshake.handle_segment(sender, &segment);
        if let Some([client_side, server_side]) = self.handshake.new_round_trips() {
            let bytes = self.handshake.packet();
            self.directions[0].set_handshake(client_side, server_side, bytes);
            self.directions[1].set_handshake(server_side, client_side, bytes);
        }
        if segment.flags.has(Flags::SYN) {
            self.directions[sender].handle_syn(&segment);
            self.directions[other].set_receiver_options(&segment);
        }
        if segment.flags.has(Flags::RST) {
            self.closed = true;
            return;
        }
        if segment.flags.has(Flags::ACK) {
            let scale = self.handshake.window_scale(sender);
            self.directions[other].handle_acknowledgement(&segment, scale);
        }
        if segment.is_pure_ack() {
            self.directions[sender].handle_own_acknowledgement(&segment);
        }
        if segment.has_data() {
            self.directions[sender].handle_data(&segment);
        }
        if segment.flags.has(Flags::FIN) {
            self.directions[sender].handle_fin();
            self.closed = self.directions.iter().all(Direction::is_finished);
        }
    }

    /// Whether this SYN opens a new connection with the addresses and ports of this one.
    #[must_use]
    pub fn is_replaced_by(&self, segment: &CapturedSegment) -> bool {
        let is_open = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        is_open && self.handshake.has_other_number(segment.seq)
    }

    /// Both ends.
    #[must_use]
    pub const fn ends(&self) -> Ends {
        self.ends
    }

    /// The progress of the data of the client and of the server, if it was recorded.
    pub(crate) fn histories(&self) -> [Option<History>; 2] {
        self.directions.each_ref().map(|direction| direction.history().cloned())
    }

    pub(crate) const fn point(&self) -> u32 {
        self.point
    }
    pub(crate) const fn handshake(&self) -> &Handshake {
        &self.handshake
    }
    pub(crate) const fn times(&self) -> [Instant; 2] {
        [self.first, self.last]
    }
    pub(crate) const fn set_back(&self) -> Duration {
        self.set_back
    }
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
    pub(crate) const fn segments(&self) -> [u64; 2] {
        self.segments
    }
    pub(crate) const fn directions(&self) -> &[Direction; 2] {
        &self.directions
    }

    /// Number of the end that sent more data: 0 for the client.
    pub(crate) fn main_sender(&self) -> usize {
        let bytes = self.directions.each_ref().map(|direction| direction.traffic().payload);
        usize::from(bytes[1] > bytes[0])
    }
}
