//! Probes of one size in the direction to the peer, and what the peer reports about them.

use gridhaul_scenario::units::{Duration, Instant};

use super::probe::Report;
use super::round_trip::RoundTrips;
use super::sent_probes::SentProbes;

/// Probes of one size in the direction to the peer.
#[derive(Debug, Clone)]
pub(super) struct ProbeStream {
    sent: SentProbes,
    reported: Reported,
    round_trips: RoundTrips,
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

/// Time by which both routers may be late although the round-trip times do not vary.
const LATENESS: Duration = Duration::from_millis(20);

/// Smallest share of probes, in per cent, that must arrive before a link is used again.
const ARRIVED_MIN: u64 = 80;

impl ProbeStream {
    pub(super) const fn new(now: Instant) -> Self {
        let none = Reported { count: 0, number: 0, silence: Duration::ZERO };
        Self {
            sent: SentProbes::new(),
            reported: none,
            round_trips: RoundTrips::new(now),
            at_hold_start: none,
        }
    }

    /// The number of a probe that is sent now.
    pub(super) fn send(&mut self, now: Instant) -> u32 {
        self.sent.send(now)
    }

    /// The peer has started again: its counts begin at zero.
    pub(super) fn reset_reports(&mut self) {
        self.reported = Reported::default();
        self.at_hold_start = Reported::default();
    }

    /// A report of the peer; `None` if none of these probes has arrived in the time `known`, in
    /// which the peer could have received them. Returns whether another one has arrived since the
    /// last report, or `None` if a newer report has overtaken this one on another link.
    pub(super) fn handle_report(
        &mut self,
        report: Option<&Report>,
        known: Duration,
    ) -> Option<bool> {
        let count = report.map_or(0, |report| report.count);
        if count < self.reported.count {
            return None;
        }
        let last = report.and_then(|report| report.last);
        let silence = last.map_or(known, |last| last.age);
        let number = last.map_or(0, |last| last.number);
        let is_news = count > self.reported.count;
        self.reported = Reported { count, number, silence };
        Some(is_news)
    }

    /// Measures the round-trip time by the last probe, whose first report has arrived now.
    pub(super) fn measure(&mut self, now: Instant) {
        if let Some(sent_at) = self.sent.sent_at(self.reported.number) {
            self.round_trips.add(now, now.since(sent_at).saturating_sub(self.reported.silence));
        }
    }

    pub(super) const fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// Time without a probe that has arrived, by the newest report.
    pub(super) const fn silence(&self) -> Duration {
        self.reported.silence
    }

    /// Number of the last probe that has arrived.
    pub(super) const fn last_number(&self) -> u32 {
        self.reported.number
    }

    /// Probes that have not arrived at the time of the newest report although the last one had, and
    /// although they were sent so soon after it that no variation of the delay explains that.
    /// `None` if the time of the last one is not known.
    pub(super) fn missing(&self) -> Option<usize> {
        let last = self.reported.number;
        let allowance = self.round_trips.variation() + LATENESS;
        let until = self.sent.sent_at(last)? + self.reported.silence.saturating_sub(allowance);
        Some(self.sent.count_until(last, until))
    }

    pub(super) const fn begin_hold(&mut self) {
        self.at_hold_start = self.reported;
    }

    /// Whether enough probes have arrived since the present hold has begun.
    pub(super) fn arrives_often(&self) -> bool {
        let sent = u64::from(self.reported.number.wrapping_sub(self.at_hold_start.number));
        let arrived = u64::from(self.reported.count.wrapping_sub(self.at_hold_start.count));
        arrived * 100 >= sent * ARRIVED_MIN
    }
}
