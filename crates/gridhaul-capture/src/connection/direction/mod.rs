//! One direction of a connection: the data of an end, and the acknowledgements of the other.

mod acknowledgements;
mod data;
mod traffic;

use gridhaul_scenario::units::{Duration, Instant};

use super::echo::EchoRoundTrip;
use super::full_size::FollowedSizes;
use super::history::History;
use super::messages::{Message, Messages};
use super::outstanding::Outstanding;
use super::sender_view::SenderView;
use super::window_edges::WindowEdges;
use crate::CapturedSegment;
use crate::estimate::{
    HandshakeRoundTrip, LinkSamples, LossSamples, RoundTrips, Smallest, is_at_end,
};
use crate::limit::Account;

pub(crate) use traffic::Traffic;

/// The data of an end, and the acknowledgements of the other.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    /// Whether sequence numbers are known.
    started: bool,
    finished: bool,
    /// The maximum segment size options of the receiver and of the sender. The latter is the MTU of
    /// the sender's own network.
    mss_options: [Option<u16>; 2],
    has_timestamps: bool,
    /// Largest payload of a segment that is not several of segmentation offload.
    payload_max: u64,
    /// The same of segments which another one followed at once: the sender had more data.
    followed_max: u64,
    followed: FollowedSizes,
    outstanding: Outstanding,
    sender: SenderView,
    edges: WindowEdges,
    echo: EchoRoundTrip,
    round_trips: RoundTrips,
    link: LinkSamples,
    account: Account,
    traffic: Traffic,
    messages: Messages,
    /// Time and payload of the last segment with data.
    last_data: Option<(Instant, u64)>,
    previous: Option<Previous>,
    /// The last pause of the application after a full segment.
    pause: Option<Pause>,
    previous_excess: Duration,
    /// End of the data that was outstanding when the last loss was noticed.
    recovery_end: Option<u64>,
    duplicate_acks: u32,
    /// Acknowledgements of one segment that was sent once, and of several.
    single_acks: u64,
    multiple_acks: u64,
    /// Whether the last receive window was zero.
    is_zero_window: bool,
    /// End of a window of zero, in a connection whose window scale is unknown.
    reopened_at: Option<Instant>,
    /// The progress over time, if it is recorded.
    history: Option<Box<History>>,
}

/// The transmission before a wait.
#[derive(Debug, Clone, Copy)]
struct Previous {
    at: Instant,
    is_short: bool,
}

/// A pause of the application.
#[derive(Debug, Clone, Copy)]
struct Pause {
    end: Instant,
    length: Duration,
}

/// First offset of a stream, so that an earlier byte, such as that of a keep-alive, has one too.
const ORIGIN: u64 = 1 << 32;

/// Segments that are further away belong to another connection or are damaged.
const DISTANCE_MAX: u64 = 1 << 30;

impl Direction {
    pub(in crate::connection) fn set_handshake(
        &mut self,
        to_sender: Duration,
        to_receiver: Duration,
        bytes: u32,
    ) {
        // At the sender, acknowledgements count when they are captured. Elsewhere the sender has
        // them this round trip later.
        if !is_at_end(to_sender, to_receiver) {
            self.sender.delay = to_sender;
        }
        self.round_trips.handshake = Some(HandshakeRoundTrip { time: to_receiver, bytes });
    }

    /// A segment of the sender that only acknowledges.
    pub(in crate::connection) fn handle_own_acknowledgement(&mut self, segment: &CapturedSegment) {
        self.round_trips.first.add_acknowledgement(segment.at, segment.packet);
    }

    pub(in crate::connection) fn record_history(&mut self) {
        self.history = Some(Box::default());
    }

    pub(in crate::connection) fn handle_syn(&mut self, segment: &CapturedSegment) {
        self.mss_options[1] = segment.mss;
        if !self.started {
            self.start(segment.seq.wrapping_add(1));
        }
    }

    /// Options of the receiver's SYN.
    pub(in crate::connection) const fn set_receiver_options(&mut self, syn: &CapturedSegment) {
        self.mss_options[0] = syn.mss;
    }

    fn start(&mut self, seq: u32) {
        self.started = true;
        let offset = ORIGIN + u64::from(seq);
        self.sender.next = offset;
        self.sender.unacknowledged = offset;
    }

    pub(in crate::connection) const fn handle_fin(&mut self) {
        self.finished = true;
    }
    pub(in crate::connection) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Payload of a full-sized segment.
    fn mss(&self) -> u64 {
        // Timestamps take 12 bytes of each segment (RFC 7323, appendix A).
        let options = if self.has_timestamps { 12 } else { 0 };
        let largest = self.payload_max;
        // RFC 9293, section 3.7.1: 536 bytes without the option. Without the handshake, and in that
        // of the simulator, which has no option, segments are full that are followed at once, or
        // that have the size of a packet of Ethernet, also in a tunnel.
        let full = self.followed.full(largest);
        let without_option =
            if largest >= 1_200 { full.unwrap_or(largest) } else { self.followed_max.max(536) };
        self.mss_options.into_iter().flatten().min().map_or(without_option, |mss| {
            let negotiated = u64::from(mss).saturating_sub(options).max(1);
            // A path with a smaller MTU, whose segments are all smaller than negotiated.
            match full {
                Some(full) => full.min(negotiated),
                None if self.traffic.packets > 64 && largest >= 512 => largest.min(negotiated),
                None => negotiated,
            }
        })
    }

    /// Offset of a sequence number.
    fn offset(&self, seq: u32) -> Option<u64> {
        let distance = i64::from(seq.wrapping_sub(self.sender.next as u32) as i32);
        let offset = self.sender.next.checked_add_signed(distance)?;
        (distance.unsigned_abs() < DISTANCE_MAX).then_some(offset)
    }

    /// The smallest round trip between both ends.
    fn round_trip(&self) -> Duration {
        self.round_trips.base().unwrap_or_default() + self.sender.delay
    }

    pub(crate) const fn traffic(&self) -> &Traffic {
        &self.traffic
    }
    pub(crate) fn messages(&self) -> &[Message] {
        self.messages.rows()
    }
    pub(crate) fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }
    /// Number of retransmitted packets.
    pub(crate) const fn retransmitted(&self) -> u64 {
        self.outstanding.retransmitted()
    }
    pub(crate) const fn losses(&self) -> &LossSamples {
        self.outstanding.samples()
    }
    pub(crate) const fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }
    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }
    pub(crate) const fn link(&self) -> &LinkSamples {
        &self.link
    }
    pub(crate) fn segment_size(&self) -> u64 {
        self.mss()
    }
    /// From the point of the capture to the sender and back, from echoed timestamps.
    pub(crate) const fn echo_round_trip(&self) -> &Smallest {
        self.echo.smallest()
    }
    /// From the point of the capture to the sender and back.
    pub(crate) const fn sender_delay(&self) -> Duration {
        self.sender.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;

    #[test]
    fn acknowledgements_are_delayed_only_where_the_position_is_not_the_sender() {
        for (to_sender_us, to_receiver_us, delay_us) in
            [(40, 40, 0), (300, 300, 300), (10_000, 80_000, 10_000), (10_000, 90_000, 0)]
        {
            let mut direction = Direction::default();
            let [to_sender, to_receiver] =
                [to_sender_us, to_receiver_us].map(Duration::from_micros);
            direction.set_handshake(to_sender, to_receiver, 60);
            assert_eq!(direction.sender_delay(), Duration::from_micros(delay_us));
            let is_sender = Position::new(Some([to_sender, to_receiver])) == Position::Sender;
            assert_eq!(is_sender, delay_us == 0, "{to_sender_us} and {to_receiver_us} µs");
        }
    }
}
