//! Large probes of a link, which show that it carries large packets as well as small ones.
//!
//! A link that loses large packets only, for example one with a smaller MTU behind a firewall that
//! drops ICMP (a black hole, RFC 2923, section 2.1), would stall each connection with much data,
//! while small probes arrive.

use gridhaul_scenario::units::{Duration, Instant};

use super::probe::Report;
use super::probe_stream::ProbeStream;

/// Large probes of a link.
#[derive(Debug, Clone)]
pub(super) struct LargeProbes {
    stream: ProbeStream,
    /// Length of the datagram in bytes.
    length: usize,
    /// Interval of small probes.
    interval: Duration,
    probe_at: Instant,
    /// Silence is judged from this time on: no packet could arrive before.
    judged_since: Instant,
}

/// Large probes that must be missing. At a loss of 5 %, this happens once in centuries.
const FAILED_MIN: usize = 8;

/// Factor by which the interval and the detection time are longer than those of small probes: large
/// ones would use most of a narrow link.
const FACTOR: u64 = 2;

impl LargeProbes {
    pub(super) const fn new(now: Instant, length: usize, interval: Duration) -> Self {
        let stream = ProbeStream::new(now);
        Self { stream, length, interval, probe_at: now, judged_since: now }
    }

    pub(super) const fn length(&self) -> usize {
        self.length
    }

    pub(super) const fn probe_at(&self) -> Instant {
        self.probe_at
    }

    /// The number of a probe that is sent now. The interval is shorter while one is missing.
    pub(super) fn send(&mut self, now: Instant) -> u32 {
        let missing = self.stream.missing().unwrap_or(0);
        let is_checked = (1..=FAILED_MIN).contains(&missing);
        self.probe_at = now + self.interval * if is_checked { 1 } else { FACTOR };
        self.stream.send(now)
    }

    pub(super) fn reset_reports(&mut self, now: Instant) {
        self.stream.reset_reports();
        self.judged_since = now;
    }

    /// A report of the peer; `None` if no large probe has arrived. `measures`: its round-trip time
    /// is that of a link that works.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        report: Option<&Report>,
        known: Duration,
        measures: bool,
    ) {
        let is_news = self.stream.handle_report(report, known);
        if is_news == Some(true) && measures {
            self.stream.measure(now);
        }
        if self.stream.missing() == Some(1) {
            self.probe_at = self.probe_at.min(now + self.interval);
        }
    }

    /// Whether large packets do not arrive.
    pub(super) fn have_failed(&self, now: Instant, detection_time: Duration) -> bool {
        let limit = self.silence_limit(detection_time);
        self.stream.silence().min(now.since(self.judged_since)) >= limit
            && self.stream.missing().is_none_or(|missing| missing >= FAILED_MIN)
    }

    pub(super) const fn begin_hold(&mut self, now: Instant) {
        self.stream.begin_hold();
        self.judged_since = now;
    }

    /// Whether a link that was held back can be used again.
    pub(super) fn arrive(&self, detection_time: Duration) -> bool {
        self.stream.arrives_often()
            && self.stream.silence() < self.silence_limit(detection_time) / 2
    }

    fn silence_limit(&self, detection_time: Duration) -> Duration {
        detection_time * FACTOR + self.stream.round_trips().margin()
    }
}
