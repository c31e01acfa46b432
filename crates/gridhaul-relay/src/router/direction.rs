//! A link in the direction to the peer: its probes, the peer's reports, and its state.
//!
//! The peer notices silence (asynchronous mode of BFD, RFC 5880, section 3.2) and reports it over
//! all links. A long round-trip time by itself is no silence, so that only its variation must be
//! tolerated. Without any report, nothing is known about the link, and its state stays.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::damping::Damping;
use super::probe::Report;
use super::round_trip::RoundTrips;

/// State of a link in the direction to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Packets arrive at the peer.
    Usable,
    /// Packets do not arrive.
    Failed(Failure),
    /// Probes arrive again since this time; until they have done so for long enough, the link is
    /// used only if no other link is usable.
    Holding(Instant),
}

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The device has no carrier, or does not exist.
    NoCarrier,
    /// The device of the peer has no carrier.
    PeerWithoutCarrier,
    /// Probes do not arrive.
    Silence,
}

impl LinkState {
    /// Order of preference: a link of a lower rank is used before the others.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Usable => 0,
            Self::Holding(_) => 1,
            Self::Failed(Failure::Silence | Failure::PeerWithoutCarrier) => 2,
            Self::Failed(Failure::NoCarrier) => 3,
        }
    }
}

/// Time limits of all links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub detection_time: Duration,
    pub hold_time: Duration,
}

/// A link in the direction to the peer.
#[derive(Debug)]
pub(super) struct Direction {
    limits: Limits,
    interval: Duration,
    has_carrier: bool,
    peer_has_carrier: bool,
    state: LinkState,
    next_number: u32,
    /// Probes with the times at which they were sent.
    sent: VecDeque<(u32, Instant)>,
    probe_at: Instant,
    reported: Reported,
    round_trips: RoundTrips,
    damping: Damping,
    /// The report with which the present hold has begun: probes are counted from it.
    at_hold_start: Reported,
}

/// The peer's newest report.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    /// Probes that have arrived.
    count: u32,
    /// Number of the last one.
    number: u32,
    /// Time since the last one.
    silence: Duration,
}

/// Probes whose times are kept: those of half a minute at the shortest interval.
const SENT_MAX: usize = 1_500;

/// Silence after which probes are sent more often, in tenths of the interval: one probe is missing.
const SUSPICION_TENTHS: u64 = 22;

/// Factor by which the interval is shorter then.
const SUSPECTED: u64 = 5;

/// Shortest interval of probes.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// Smallest share of probes, in per cent, that must arrive before a link is used again.
const ARRIVED_MIN: u64 = 80;

impl Direction {
    pub(super) const fn new(
        now: Instant,
        limits: Limits,
        interval: Duration,
        has_carrier: bool,
    ) -> Self {
        let none = Reported { count: 0, number: 0, silence: Duration::ZERO };
        Self {
            limits,
            interval,
            has_carrier,
            peer_has_carrier: true,
            state: if has_carrier {
                LinkState::Usable
            } else {
                LinkState::Failed(Failure::NoCarrier)
            },
            next_number: 1,
            sent: VecDeque::new(),
            probe_at: now,
            reported: none,
            round_trips: RoundTrips::new(now),
            damping: Damping::new(),
            at_hold_start: none,
        }
    }

    pub(super) const fn state(&self) -> LinkState {
        self.state
    }

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) const fn has_carrier(&self) -> bool {
        self.has_carrier
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trips.latest()
    }

    /// Silence at the peer after which the link has failed.
    pub(super) fn silence_limit(&self) -> Duration {
        self.limits.detection_time + self.round_trips.margin()
    }

    /// When the next probe is sent.
    pub(super) const fn probe_at(&self) -> Instant {
        if self.has_carrier { self.probe_at } else { Instant::NEVER }
    }

    /// Lets the next probe be sent at once.
    pub(super) const fn hasten_probe(&mut self, now: Instant) {
        self.probe_at = now;
    }

    /// The number of a probe that is sent now.
    pub(super) fn send_probe(&mut self, now: Instant) -> u32 {
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        self.sent.push_back((number, now));
        if self.sent.len() > SENT_MAX {
            self.sent.pop_front();
        }
        let is_suspected = self.state == LinkState::Usable
            && self.reported.silence > self.interval * SUSPICION_TENTHS / 10;
        let interval = if is_suspected {
            (self.interval / SUSPECTED).max(INTERVAL_MIN)
        } else {
            self.interval
        };
        self.probe_at = now + interval;
        number
    }

    pub(super) fn set_carrier(&mut self, now: Instant, has_carrier: bool) {
        self.has_carrier = has_carrier;
        self.hasten_probe(now);
        if !has_carrier {
            self.fail(now, Failure::NoCarrier);
        }
    }

    /// The peer has started again: its counts begin at zero.
    pub(super) fn reset_reports(&mut self) {
        self.reported = Reported::default();
        self.at_hold_start = Reported::default();
        self.peer_has_carrier = true;
    }

    /// A report of the peer about this link. `known` is the time since the peer knows this router,
    /// in which it could have received probes.
    pub(super) fn handle_report(&mut self, now: Instant, report: &Report, known: Duration) {
        // A report that was overtaken by a newer one over another link says nothing new.
        if report.count < self.reported.count {
            return;
        }
        let is_news = report.count > self.reported.count;
        let silence = report.last.map_or(known, |last| last.age);
        let number = report.last.map_or(0, |last| last.number);
        if is_news && !matches!(self.state, LinkState::Failed(_)) {
            self.measure(now, number, silence);
        }
        self.reported = Reported { count: report.count, number, silence };
        self.peer_has_carrier = report.has_carrier;
        if !report.has_carrier {
            self.fail(now, Failure::PeerWithoutCarrier);
        } else if silence >= self.silence_limit() {
            self.fail(now, Failure::Silence);
        } else if is_news && silence < self.silence_limit() / 2 {
            self.begin_hold(now);
        }
    }

    /// Ends a hold whose time has passed. `peer_is_known`: there are reports of the peer; otherwise
    /// carrier alone decides.
    pub(super) fn advance(&mut self, now: Instant, peer_is_known: bool) {
        if !peer_is_known && self.state == LinkState::Failed(Failure::NoCarrier) {
            self.begin_hold(now);
        }
        let LinkState::Holding(since) = self.state else { return };
        let end = since + self.limits.hold_time;
        if now < end.max(self.damping.earliest_return()) {
            return;
        }
        let sent = u64::from(self.reported.number.wrapping_sub(self.at_hold_start.number));
        let arrived = u64::from(self.reported.count.wrapping_sub(self.at_hold_start.count));
        let is_good =
            arrived * 100 >= sent * ARRIVED_MIN && self.reported.silence < self.silence_limit() / 2;
        if is_good || !peer_is_known {
            self.state = LinkState::Usable;
            self.damping.note_return(now);
        } else {
            self.state = LinkState::Holding(now);
            self.at_hold_start = self.reported;
        }
    }

    fn begin_hold(&mut self, now: Instant) {
        if self.has_carrier && matches!(self.state, LinkState::Failed(_)) {
            self.state = LinkState::Holding(now);
            self.at_hold_start = self.reported;
        }
    }

    fn fail(&mut self, now: Instant, cause: Failure) {
        if self.state == LinkState::Usable {
            self.damping.fail(now);
        }
        // A link without carrier is silent as well.
        if self.has_carrier || cause == Failure::NoCarrier {
            self.state = LinkState::Failed(cause);
        }
    }

    /// Measures the round-trip time by a probe and its first report.
    fn measure(&mut self, now: Instant, number: u32, age: Duration) {
        let Some((first, _)) = self.sent.front() else { return };
        let index = number.wrapping_sub(*first) as usize;
        if let Some((_, sent_at)) = self.sent.get(index) {
            self.round_trips.add(now, now.since(*sent_at).saturating_sub(age));
        }
    }
}
