//! `ack`: filters the acknowledgements sent over a low-rate uplink (RFC 3449, sections 5.2.1 and
//! 5.2.2), by the rules of the Linux queueing discipline CAKE (`ack-filter`): an acknowledgement is
//! replaced only by a newer one of the same connection with all of its information.
//! docs/limitations/ack.md lists the trade-offs.

use gridhaul_scenario::units::{Duration, Instant};

use super::outgoing_queue::OutgoingQueue;
use super::{Origin, Outgoing, Proxy, Side};
use crate::tcp::{Flags, Segment};

/// Forwards at most one pure acknowledgement per `max_ack_delay`, the newest.
#[derive(Debug, Clone)]
pub struct AckFilter {
    /// The side to which the filtered acknowledgements are sent.
    toward: Side,
    max_ack_delay: Duration,
    /// The acknowledgement that is delayed, until `due` or until a newer one replaces it.
    delayed: Option<Segment>,
    /// Time at which the delayed acknowledgement is sent.
    due: Instant,
    /// The highest acknowledgement that was sent or is delayed.
    latest: Option<Latest>,
    /// End of the data that the sender has sent, and the part of it that it must see acknowledged
    /// before its acknowledgements are filtered again.
    sent_to: Option<u32>,
    recovery_point: Option<u32>,
    queue: OutgoingQueue,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    seq: u32,
    ack: u32,
    edge: u32,
    window: u32,
    /// Time at which the last acknowledgement was sent.
    sent_at: Instant,
}

/// The largest window (RFC 7323, section 2.3). Within one connection, sequence numbers do not
/// advance by more than this.
const WINDOW_MAX: u32 = 1 << 30;

impl AckFilter {
    /// Filters acknowledgements to the side `toward`. With a `max_ack_delay` of zero, all segments
    /// are forwarded at once.
    #[must_use]
    pub const fn new(toward: Side, max_ack_delay: Duration) -> Self {
        Self {
            toward,
            max_ack_delay,
            delayed: None,
            due: Instant::NEVER,
            latest: None,
            sent_to: None,
            recovery_point: None,
            queue: OutgoingQueue::new(),
        }
    }

    /// Changes the delay. Without one, the delayed acknowledgement is sent.
    pub(super) fn set_max_ack_delay(&mut self, now: Instant, max_ack_delay: Duration) {
        self.max_ack_delay = max_ack_delay;
        if max_ack_delay.is_zero() {
            self.send_delayed(now);
        }
    }

    /// Handles a segment of the sender. After a retransmission, each acknowledgement matters until
    /// all data that was outstanding is acknowledged: a partial one triggers the next
    /// retransmission (RFC 6582, section 3.2), the number and the timestamp of the first ones show
    /// whether the retransmission was spurious (RFC 5682; RFC 3522).
    fn on_data(&mut self, now: Instant, segment: &Segment) {
        if segment.sequence_len() == 0 {
            return;
        }
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let newest = self.sent_to.filter(|&sent_to| !is_after(end, sent_to)).unwrap_or(end);
        if self.sent_to.is_some_and(|sent_to| is_after(sent_to, segment.seq)) {
            self.send_delayed(now);
            self.recovery_point = Some(newest);
        }
        self.sent_to = Some(newest);
    }

    /// Whether this acknowledgement belongs to a loss recovery of the sender, which it may end.
    fn is_in_recovery(&mut self, segment: &Segment) -> bool {
        let Some(point) = self.recovery_point else { return false };
        if segment.flags.has(Flags::ACK) && !is_after(point, segment.ack) {
            self.recovery_point = None;
        }
        true
    }

    /// Handles a segment that may carry an acknowledgement.
    fn on_acknowledgement(&mut self, now: Instant, segment: &Segment) {
        let may_filter = !self.is_in_recovery(segment);
        let pure = self.latest.filter(|latest| may_filter && is_pure(segment, latest));
        if let Some(delayed) = &self.delayed
            && (pure.is_some() || may_filter && replaces(segment, delayed))
        {
            self.delayed = None;
        }
        match pure {
            Some(latest) if now < latest.sent_at + self.max_ack_delay => {
                self.delayed = Some(*segment);
                self.due = latest.sent_at + self.max_ack_delay;
                self.update_latest(segment, latest.sent_at);
            }
            _ => {
                // A segment that is forwarded at once must not overtake the delayed
                // acknowledgement.
                self.send_delayed(now);
                let (to, origin) = (self.toward, Origin::Forwarded);
                self.queue.push_back(Outgoing { to, segment: *segment, origin });
                self.update_latest(segment, now);
            }
        }
    }

    fn update_latest(&mut self, segment: &Segment, sent_at: Instant) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let edge = segment.ack.wrapping_add(segment.window);
        let Segment { seq, ack, window, .. } = *segment;
        let latest = Latest { seq, ack, edge, window, sent_at };
        let newer = self.latest.filter(|old| {
            let distance = old.ack.wrapping_sub(segment.ack);
            distance > 0 && distance <= WINDOW_MAX
        });
        self.latest = Some(Latest { sent_at, ..newer.unwrap_or(latest) });
    }

    /// Sends the delayed acknowledgement.
    fn send_delayed(&mut self, now: Instant) {
        self.due = Instant::NEVER;
        if let Some(segment) = self.delayed.take() {
            let (to, origin) = (self.toward, Origin::Proxy);
            self.queue.push_back(Outgoing { to, segment, origin });
            if let Some(latest) = &mut self.latest {
                latest.sent_at = now;
            }
        }
    }
}

/// Whether the segment only acknowledges more data and does not shrink the window: it may be
/// delayed, and replaces a delayed acknowledgement. All others are forwarded at once: data, SYN,
/// FIN, RST, segments that acknowledge nothing new (duplicates, which the sender counts, and window
/// updates), selective acknowledgements (which report missing segments), windows that are closed,
/// shrink or reopen, and segments with an earlier sequence number than that of the latest
/// acknowledgement (whose windows a sender ignores: SND.WL1 of RFC 9293, section 3.10.7.4).
fn is_pure(segment: &Segment, latest: &Latest) -> bool {
    let ahead = segment.ack.wrapping_sub(latest.ack);
    let further = segment.ack.wrapping_add(segment.window).wrapping_sub(latest.edge);
    segment.flags == Flags::ACK
        && segment.len == 0
        && segment.sack.is_empty()
        && !is_after(latest.seq, segment.seq)
        && (1..=WINDOW_MAX).contains(&ahead)
        && further <= WINDOW_MAX
        && segment.window > 0
        && latest.window > 0
}

/// Whether a segment that is forwarded at once has all information of the delayed one, and data or
/// a higher acknowledgement number as well. (Otherwise it is a duplicate of the delayed one.)
///
/// Data with SACK blocks and the same acknowledgement number is a duplicate for a sender that has
/// received the delayed one (RFC 6675, section 2), and the first acknowledgement of that number
/// for one that has not. A segment with an earlier sequence number may be a retransmission, which
/// a host that has received the data drops without regard to its acknowledgement (RFC 9293,
/// section 3.10.7.4, first check).
fn replaces(segment: &Segment, delayed: &Segment) -> bool {
    let ahead = segment.ack.wrapping_sub(delayed.ack);
    let edge = |segment: &Segment| segment.ack.wrapping_add(segment.window);
    let further = edge(segment).wrapping_sub(edge(delayed));
    let carries = ahead > 0 || segment.len > 0 && segment.sack.is_empty();
    segment.flags == Flags::ACK
        && carries
        && !is_after(delayed.seq, segment.seq)
        && ahead <= WINDOW_MAX
        && further <= WINDOW_MAX
}

/// Whether a sequence number follows another one.
const fn is_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() > 0
}

impl Proxy for AckFilter {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        if from == self.toward {
            if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
                self.send_delayed(now);
                (self.latest, self.sent_to, self.recovery_point) = (None, None, None);
            }
            self.on_data(now, segment);
            let (to, origin) = (from.other(), Origin::Forwarded);
            self.queue.push_back(Outgoing { to, segment: *segment, origin });
        } else {
            self.on_acknowledgement(now, segment);
            if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
                (self.latest, self.recovery_point) = (None, None);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.queue.pop_front(|| self.delayed.is_none())
    }

    fn next_deadline(&self) -> Instant {
        self.due
    }

    /// The state of earlier acknowledgements is not needed: the next one restores it.
    fn is_finished(&self) -> bool {
        self.delayed.is_none() && self.queue.is_empty()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.due <= now {
            self.send_delayed(now);
        }
    }

    fn drain(&mut self, now: Instant) {
        self.send_delayed(now);
    }
}
