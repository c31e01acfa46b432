//! A link in the direction to the peer: its probes, the peer's reports, and its state.
//!
//! The peer notices silence (asynchronous mode of BFD, RFC 5880, section 3.2) and reports it over
//! all links. A long round-trip time by itself is no silence, so that only its variation must be
//! tolerated. Without any report, nothing is known about the link, and its state stays.
//!
//! As soon as a probe is missing, some more are sent at a short interval. If all of these are
//! missing as well, the link is suspected, long before the silence is a failure.

use gridhaul_scenario::units::{Duration, Instant};

use super::damping::Damping;
use super::link_state::{Failure, LinkState};
use super::probe::Report;
use super::round_trip::RoundTrips;
use super::sent_probes::SentProbes;

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
    sent: SentProbes,
    probe_at: Instant,
    reported: Reported,
    checks: Checks,
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

/// Probes at a short interval, which check a link on which a probe is missing.
#[derive(Debug, Clone, Copy, Default)]
struct Checks {
    /// The last probe that had arrived when the check began.
    after: u32,
    /// Probes that are left of this check.
    left: u8,
}

/// Probes of a check.
const CHECKS: u8 = 5;

/// Factor by which their interval is shorter.
const CHECKS_FACTOR: u64 = 8;

/// Probes in a row that are missing on a suspected link: the first one, and those of the check. At
/// a loss of 5 %, this happens once in 150 days at the usual interval if losses are independent.
const SUSPECTED_MIN: usize = 1 + CHECKS as usize;

/// Silence of a suspected link, in per cent of the detection time: two probes at the largest
/// interval that is permitted, and most of the time until the peer reports it.
const SUSPECTED_PERCENT: u64 = 44;

/// Probes that must be missing when silence is a failure: a router that was suspended and has sent
/// none cannot know.
const FAILED_MIN: usize = 3;

/// Time by which both routers may be late although the round-trip times do not vary.
const LATENESS: Duration = Duration::from_millis(20);

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
            sent: SentProbes::new(),
            probe_at: now,
            reported: none,
            checks: Checks { after: 0, left: 0 },
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
        self.probe_at = now + self.interval;
        if self.checks.left > 0 {
            self.checks.left -= 1;
            self.probe_at = now + (self.interval / CHECKS_FACTOR).max(INTERVAL_MIN);
        }
        self.sent.send(now)
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
        self.check(now);
        if !report.has_carrier {
            self.fail(now, Failure::PeerWithoutCarrier);
        } else if silence >= self.silence_limit() {
            if self.missing().is_none_or(|missing| missing >= FAILED_MIN) {
                self.fail(now, Failure::Silence);
            }
        } else if is_news && silence < self.silence_limit() / 2 {
            self.begin_hold(now);
        }
    }

    /// Whether the newest probes arrive, by the newest report.
    pub(super) fn answers(&self) -> bool {
        let is_up = matches!(self.state, LinkState::Usable | LinkState::Holding(_));
        let is_recent = self.reported.silence < self.suspicious_silence();
        is_up && is_recent && self.missing().is_some_and(|missing| missing <= 1)
    }

    /// Suspects the link if several probes in a row are missing. Returns whether this is new.
    pub(super) fn suspect(&mut self, now: Instant) -> bool {
        let is_silent = self.reported.silence >= self.suspicious_silence();
        let is_suspect =
            is_silent && self.missing().is_some_and(|missing| missing >= SUSPECTED_MIN);
        let is_up = matches!(self.state, LinkState::Usable | LinkState::Holding(_));
        if !is_up || !is_suspect || !self.round_trips.is_known() {
            return false;
        }
        if self.state == LinkState::Usable {
            self.damping.fail(now);
        }
        self.state = LinkState::Suspected;
        true
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

    fn suspicious_silence(&self) -> Duration {
        self.limits.detection_time * SUSPECTED_PERCENT / 100
    }

    /// Probes that have not arrived at the time of the newest report although the last one had, and
    /// although they were sent so soon after it that no variation of the delay explains that.
    /// `None` if the time of the last one is not known.
    fn missing(&self) -> Option<usize> {
        let last = self.reported.number;
        let allowance = self.round_trips.variation() + LATENESS;
        let until = self.sent.sent_at(last)? + self.reported.silence.saturating_sub(allowance);
        Some(self.sent.count_until(last, until))
    }

    /// Sends probes at a short interval if one is missing, once in a silence.
    fn check(&mut self, now: Instant) {
        let last = self.reported.number;
        if self.checks.after != last {
            self.checks = Checks { after: self.checks.after, left: 0 };
            if self.missing().is_some_and(|missing| missing > 0) {
                self.checks = Checks { after: last, left: CHECKS };
                self.hasten_probe(now);
            }
        }
    }

    fn begin_hold(&mut self, now: Instant) {
        if self.has_carrier && matches!(self.state, LinkState::Failed(_) | LinkState::Suspected) {
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
        if let Some(sent_at) = self.sent.sent_at(number) {
            self.round_trips.add(now, now.since(sent_at).saturating_sub(age));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::probe::LastProbe;

    #[test]
    fn a_router_that_was_suspended_and_has_sent_no_probes_suspects_no_link() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let limits =
            Limits { detection_time: Duration::from_secs(1), hold_time: Duration::from_secs(6) };
        let mut direction = Direction::new(at(0), limits, Duration::from_millis(200), true);
        let report = |number: u32, age| Report {
            link: 1,
            has_carrier: true,
            last: Some(LastProbe { number, age: Duration::from_millis(age) }),
            count: number,
        };
        let mut number = 0;
        for time in 0..50 {
            number = direction.send_probe(at(200 * time));
            let known = Duration::from_secs(60);
            direction.handle_report(at(200 * time + 10), &report(number, 5), known);
        }
        for age in [500, 1_500, 5_000] {
            let known = Duration::from_secs(60);
            direction.handle_report(at(9_810 + age), &report(number, age), known);
            assert!(!direction.suspect(at(9_810 + age)));
            assert_eq!(direction.state(), LinkState::Usable, "silence of {age} ms");
        }
    }
}
