//! Probes of an idle connection by the applications of its ends.

use gridhaul_scenario::units::{Duration, Instant};

/// The timer of the end that probes the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeTimer {
    /// Time without a packet, and for a response; 0 without probes.
    interval: Duration,
    last_output: Instant,
    last_input: Instant,
    /// When the probe, or the request to open, was sent that has no response.
    unanswered: Option<Instant>,
}

/// Action of an end whose timer has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAction {
    Probe,
    /// The other end has not responded.
    Abort,
}

impl ProbeTimer {
    pub(super) const fn new(interval: Duration) -> Self {
        let (last_output, last_input) = (Instant::ZERO, Instant::ZERO);
        Self { interval, last_output, last_input, unanswered: None }
    }

    /// A connection begins, which may await the response to a request to open it.
    pub(super) fn begin(&mut self, now: Instant, awaits_response: bool) {
        (self.last_output, self.last_input) = (now, now);
        self.unanswered = awaits_response.then_some(now);
    }

    pub(super) fn on_output(&mut self, now: Instant) {
        self.last_output = now;
    }

    pub(super) fn on_input(&mut self, now: Instant) {
        self.last_input = now;
    }

    pub(super) fn on_response(&mut self) {
        self.unanswered = None;
    }

    /// When the timer expires. An end that receives nothing probes as well, because it would not
    /// notice otherwise that the other one is gone.
    pub(super) fn next_deadline(&self) -> Instant {
        if self.interval.is_zero() {
            return Instant::NEVER;
        }
        let idle_since = self.last_output.min(self.last_input);
        self.unanswered.unwrap_or(idle_since) + self.interval
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<ProbeAction> {
        if self.next_deadline() > now {
            return None;
        }
        if self.unanswered.is_some() {
            return Some(ProbeAction::Abort);
        }
        (self.last_output, self.unanswered) = (now, Some(now));
        Some(ProbeAction::Probe)
    }
}
