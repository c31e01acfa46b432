//! `ack`: thins the acknowledgements that go over a narrow uplink (RFC 3449, sections 5.2.1 and
//! 5.2.2), by the rule set of the Linux queue CAKE (its `ack-filter`): an acknowledgement gives way
//! only to a newer one of the same connection that says all that it said.
//! docs/limitations/ack.md lists the trade-offs.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::{Origin, Outgoing, Proxy, Side};
use crate::tcp::{Flags, Segment};

/// Lets plain acknowledgements go at most once in `hold`, the newest of them.
#[derive(Debug, Clone)]
pub struct AckFilter {
    /// The end that the acknowledgements go to.
    toward: Side,
    hold: Duration,
    /// The acknowledgement that waits for its time, or for one that makes it needless.
    waiting: Option<Segment>,
    /// When it goes.
    due: Instant,
    /// The last one that went or waits: highest number, and what it allowed.
    latest: Option<Latest>,
    out: VecDeque<Outgoing>,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    ack: u32,
    edge: u32,
    window: u32,
    /// When an acknowledgement was let go last.
    went: Instant,
}

/// The largest window (RFC 7323, section 2.3). Numbers further apart than this are no news of one
/// connection.
const WINDOW_MAX: u32 = 1 << 30;

impl AckFilter {
    /// For acknowledgements to the end `toward`. With a `hold` of zero, everything goes at once.
    #[must_use]
    pub const fn new(toward: Side, hold: Duration) -> Self {
        let due = Instant::NEVER;
        Self { toward, hold, waiting: None, due, latest: None, out: VecDeque::new() }
    }

    /// A segment that may carry news for the sender.
    fn on_acknowledgement(&mut self, now: Instant, segment: &Segment) {
        let thin = self.latest.filter(|latest| is_plain(segment, latest));
        if let Some(waiting) = &self.waiting
            && (thin.is_some() || replaces(segment, waiting))
        {
            self.waiting = None;
        }
        match thin {
            Some(latest) if now < latest.went + self.hold => {
                self.waiting = Some(*segment);
                self.due = latest.went + self.hold;
                self.note(segment, latest.went);
            }
            _ => {
                // What must not be lost overtakes nothing either.
                self.let_go(now);
                let (to, origin) = (self.toward, Origin::Forwarded);
                self.out.push_back(Outgoing { to, segment: *segment, origin });
                self.note(segment, now);
            }
        }
    }

    fn note(&mut self, segment: &Segment, went: Instant) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let edge = segment.ack.wrapping_add(segment.window);
        let latest = Latest { ack: segment.ack, edge, window: segment.window, went };
        let stays = self.latest.filter(|old| {
            let back = old.ack.wrapping_sub(segment.ack);
            back > 0 && back <= WINDOW_MAX
        });
        self.latest = Some(Latest { went, ..stays.unwrap_or(latest) });
    }

    /// What waits goes.
    fn let_go(&mut self, now: Instant) {
        self.due = Instant::NEVER;
        if let Some(segment) = self.waiting.take() {
            let (to, origin) = (self.toward, Origin::Proxy);
            self.out.push_back(Outgoing { to, segment, origin });
            if let Some(latest) = &mut self.latest {
                latest.went = now;
            }
        }
    }
}

/// Whether it only acknowledges more and opens the window further: such a one may wait, and makes
/// needless what waits. Never: data, SYN, FIN, RST, what is not ahead (duplicates, which are counted,
/// and window updates), selective acknowledgements (which say that something is missing), and
/// windows that are closed, shrink or open again.
fn is_plain(segment: &Segment, latest: &Latest) -> bool {
    let ahead = segment.ack.wrapping_sub(latest.ack);
    let further = segment.ack.wrapping_add(segment.window).wrapping_sub(latest.edge);
    segment.flags == Flags::ACK
        && segment.len == 0
        && segment.sack.is_empty()
        && (1..=WINDOW_MAX).contains(&ahead)
        && further <= WINDOW_MAX
        && segment.window > 0
        && latest.window > 0
}

/// Whether a segment that goes at once says all that the waiting one does, and more: it carries data
/// or selective acknowledgements. (It is a duplicate of the waiting one if it has neither.)
fn replaces(segment: &Segment, waiting: &Segment) -> bool {
    let ahead = segment.ack.wrapping_sub(waiting.ack);
    let edge = |segment: &Segment| segment.ack.wrapping_add(segment.window);
    let further = edge(segment).wrapping_sub(edge(waiting));
    let carries = segment.len > 0 || ahead > 0;
    segment.flags == Flags::ACK && carries && ahead <= WINDOW_MAX && further <= WINDOW_MAX
}

impl Proxy for AckFilter {
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        if from == self.toward {
            if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
                self.let_go(now);
                self.latest = None;
            }
            let (to, origin) = (from.other(), Origin::Forwarded);
            self.out.push_back(Outgoing { to, segment: *segment, origin });
        } else {
            self.on_acknowledgement(now, segment);
            if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
                self.latest = None;
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn next_deadline(&self) -> Instant {
        self.due
    }

    /// What was acknowledged before is known from the next acknowledgement again.
    fn is_finished(&self) -> bool {
        self.waiting.is_none() && self.out.is_empty()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.due <= now {
            self.let_go(now);
        }
    }
}
