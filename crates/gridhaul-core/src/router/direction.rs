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
use super::large_probes::LargeProbes;
use super::link_state::{Failure, LinkState};
use super::probe::Report;
use super::probe_stream::ProbeStream;
use super::settings::{Limits, LinkSettings};

/// A link in the direction to the peer.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    limits: Limits,
    interval: Duration,
    has_carrier: bool,
    peer_has_carrier: bool,
    state: LinkState,
    small: ProbeStream,
    probe_at: Instant,
    checks: Checks,
    /// `None` if only small probes are sent.
    large: Option<LargeProbes>,
    damping: Damping,
}

/// A probe that is sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewProbe {
    pub number: u32,
    /// Length of the datagram, if it is a large one.
    pub padded_to: Option<usize>,
}

/// The reports of the peer about a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reports<'r> {
    pub small: &'r Report,
    /// `None` if no large probe has arrived.
    pub large: Option<&'r Report>,
    /// Time since the peer knows this router, in which it could have received probes.
    pub known: Duration,
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

/// Shortest interval of probes.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

impl Direction {
    pub(super) fn new(now: Instant, limits: Limits, link: &LinkSettings) -> Self {
        let (interval, has_carrier) = (link.probe_interval, link.has_carrier);
        let large = |length| LargeProbes::new(now, length, interval);
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
            small: ProbeStream::new(now),
            probe_at: now,
            checks: Checks::default(),
            large: link.large_probe.map(large),
            damping: Damping::new(),
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
        self.small.round_trips().latest()
    }

    /// Silence at the peer after which the link has failed.
    pub(super) fn silence_limit(&self) -> Duration {
        self.limits.detection_time + self.small.round_trips().margin()
    }

    /// When the next probe is sent.
    pub(super) fn probe_at(&self) -> Instant {
        if !self.has_carrier {
            return Instant::NEVER;
        }
        let large = self.large.as_ref().map_or(Instant::NEVER, LargeProbes::probe_at);
        self.probe_at.min(large)
    }

    /// Lets the next probe be sent at once.
    pub(super) const fn hasten_probe(&mut self, now: Instant) {
        self.probe_at = now;
    }

    /// A probe that is sent now: a small one first, if both are due.
    pub(super) fn send_probe(&mut self, now: Instant) -> NewProbe {
        if let Some(large) = self.large.as_mut().filter(|_| now < self.probe_at) {
            return NewProbe { number: large.send(now), padded_to: Some(large.length()) };
        }
        self.probe_at = now + self.interval;
        if self.checks.left > 0 {
            self.checks.left -= 1;
            self.probe_at = now + (self.interval / CHECKS_FACTOR).max(INTERVAL_MIN);
        }
        NewProbe { number: self.small.send(now), padded_to: None }
    }

    pub(super) fn set_carrier(&mut self, now: Instant, has_carrier: bool) {
        self.has_carrier = has_carrier;
        self.hasten_probe(now);
        if !has_carrier {
            self.fail(now, Failure::NoCarrier);
        }
    }

    /// The peer has started again: its counts begin at zero.
    pub(super) fn reset_reports(&mut self, now: Instant) {
        self.small.reset_reports();
        if let Some(large) = &mut self.large {
            large.reset_reports(now);
        }
        self.peer_has_carrier = true;
    }

    /// The peer's reports about this link.
    pub(super) fn handle_reports(&mut self, now: Instant, reports: Reports<'_>) {
        let measures = !matches!(self.state, LinkState::Failed(_));
        if let Some(large) = &mut self.large {
            large.handle_report(now, reports.large, reports.known, measures);
        }
        let small = reports.small;
        // A report that was overtaken by a newer one over another link says nothing new.
        let Some(is_news) = self.small.handle_report(Some(small), reports.known) else {
            return;
        };
        if is_news && measures {
            self.small.measure(now);
        }
        self.peer_has_carrier = small.has_carrier;
        self.check(now);
        let (silence, limit) = (self.small.silence(), self.silence_limit());
        let large_have_failed =
            |large: &LargeProbes| large.have_failed(now, self.limits.detection_time);
        if !small.has_carrier {
            self.fail(now, Failure::PeerWithoutCarrier);
        } else if silence >= limit {
            if self.small.missing().is_none_or(|missing| missing >= FAILED_MIN) {
                self.fail(now, Failure::Silence);
            }
        } else if self.large.as_ref().is_some_and(large_have_failed) {
            self.fail(now, Failure::LargePackets);
        } else if is_news && silence < limit / 2 {
            self.begin_hold(now);
        }
    }

    /// The peer reports its links, and this one is none of them.
    pub(super) fn note_unknown_to_peer(&mut self, now: Instant) {
        self.fail(now, Failure::UnknownToPeer);
    }

    /// Whether the newest probes arrive, by the newest report.
    pub(super) fn answers(&self) -> bool {
        let is_up = matches!(self.state, LinkState::Usable | LinkState::Holding(_));
        let is_recent = self.small.silence() < self.suspicious_silence();
        is_up && is_recent && self.small.missing().is_some_and(|missing| missing <= 1)
    }

    /// Suspects the link if several probes in a row are missing. Returns whether this is new.
    pub(super) fn suspect(&mut self, now: Instant) -> bool {
        let is_silent = self.small.silence() >= self.suspicious_silence();
        let is_suspect =
            is_silent && self.small.missing().is_some_and(|missing| missing >= SUSPECTED_MIN);
        let is_up = matches!(self.state, LinkState::Usable | LinkState::Holding(_));
        if !is_up || !is_suspect || !self.small.round_trips().is_known() {
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
        let detection_time = self.limits.detection_time;
        let is_good = self.small.arrives_often()
            && self.small.silence() < self.silence_limit() / 2
            && self.large.as_ref().is_none_or(|large| large.arrive(detection_time));
        if is_good || !peer_is_known {
            self.state = LinkState::Usable;
            self.damping.note_return(now);
        } else {
            self.hold(now);
        }
    }

    fn suspicious_silence(&self) -> Duration {
        self.limits.detection_time * SUSPECTED_PERCENT / 100
    }

    /// Sends probes at a short interval if one is missing, once in a silence.
    fn check(&mut self, now: Instant) {
        let last = self.small.last_number();
        if self.checks.after != last {
            self.checks = Checks { after: self.checks.after, left: 0 };
            if self.small.missing().is_some_and(|missing| missing > 0) {
                self.checks = Checks { after: last, left: CHECKS };
                self.hasten_probe(now);
            }
        }
    }

    fn begin_hold(&mut self, now: Instant) {
        if self.has_carrier && matches!(self.state, LinkState::Failed(_) | LinkState::Suspected) {
            self.hold(now);
        }
    }

    fn hold(&mut self, now: Instant) {
        self.state = LinkState::Holding(now);
        self.small.begin_hold();
        if let Some(large) = &mut self.large {
            large.begin_hold(now);
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
        let link = LinkSettings {
            name: "gprs".to_owned(),
            probe_interval: Duration::from_millis(200),
            large_probe: None,
            has_carrier: true,
        };
        let mut direction = Direction::new(at(0), limits, &link);
        let report = |number: u32, age| Report {
            link: 1,
            is_about_large: false,
            has_carrier: true,
            last: Some(LastProbe { number, age: Duration::from_millis(age) }),
            count: number,
        };
        let handle = |direction: &mut Direction, now, small: &Report| {
            let known = Duration::from_secs(60);
            direction.handle_reports(now, Reports { small, large: None, known });
        };
        let mut number = 0;
        for time in 0..50 {
            number = direction.send_probe(at(200 * time)).number;
            handle(&mut direction, at(200 * time + 10), &report(number, 5));
        }
        for age in [500, 1_500, 5_000] {
            handle(&mut direction, at(9_810 + age), &report(number, age));
            assert!(!direction.suspect(at(9_810 + age)));
            assert_eq!(direction.state(), LinkState::Usable, "silence of {age} ms");
        }
    }
}
