//! U frames: start of data transfer, test frames, and the timers t1 and t3.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Iec104, Iec104Frame};

/// U frames of one station.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestProcedure {
    pub last_received: Instant,
    /// When the station has written STARTDT act or a test frame that has no confirmation. It writes
    /// no other one until then.
    unconfirmed_since: Option<Instant>,
    /// Whether the station is to write STARTDT act.
    starts: bool,
    /// The confirmation that the peer awaits.
    owes: Option<Iec104Frame>,
}

impl TestProcedure {
    /// A station that counts timer t3 from a time on.
    pub(super) const fn new(since: Instant) -> Self {
        Self { last_received: since, unconfirmed_since: None, starts: false, owes: None }
    }

    /// A station that starts data transfer on a new connection.
    pub(super) const fn starting(now: Instant) -> Self {
        Self { starts: true, ..Self::new(now) }
    }

    /// When the station sends a test frame.
    fn due(&self, t3: Duration) -> Instant {
        if self.unconfirmed_since.is_some() { Instant::NEVER } else { self.last_received + t3 }
    }
}

impl Iec104 {
    /// When a station sends a test frame, or timer t1 ends.
    pub(super) fn next_timer(&self, end: FlowEnd) -> Instant {
        if !self.is_active(end) {
            return Instant::NEVER;
        }
        self.tests[end as usize].due(self.keys.t3).min(self.timeout(end))
    }

    /// When timer t1 of a station ends: that of its oldest frame without an acknowledgement or
    /// confirmation.
    pub(super) fn timeout(&self, end: FlowEnd) -> Instant {
        let Some(t1) = self.keys.t1.filter(|_| self.is_active(end)) else { return Instant::NEVER };
        let numbered = self.sent.front().filter(|_| end == self.keys.controlled);
        let numbered = numbered.map(|frame| frame.written);
        let since = numbered.into_iter().chain(self.tests[end as usize].unconfirmed_since).min();
        since.map_or(Instant::NEVER, |since| since + t1)
    }

    /// The next U frame to write by now.
    pub(super) fn poll_unnumbered(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        for end in [FlowEnd::From, FlowEnd::To] {
            if !self.is_active(end) {
                continue;
            }
            let test = &mut self.tests[end as usize];
            if let Some(confirmation) = test.owes.take() {
                return Some((end, confirmation));
            }
            let starts = std::mem::take(&mut test.starts);
            if starts || test.due(self.keys.t3) <= now {
                test.unconfirmed_since = Some(now);
                return Some((end, if starts { Iec104Frame::Start } else { Iec104Frame::Test }));
            }
        }
        None
    }

    pub(super) fn handle_unnumbered(&mut self, now: Instant, end: FlowEnd, frame: Iec104Frame) {
        let test = &mut self.tests[end as usize];
        match frame {
            Iec104Frame::Start => {
                self.session.is_started = true;
                test.owes = Some(Iec104Frame::StartConfirmation);
                self.write_at = now;
            }
            Iec104Frame::Test => {
                test.owes = Some(Iec104Frame::TestConfirmation);
                self.write_at = now;
            }
            _ => test.unconfirmed_since = None,
        }
    }
}
