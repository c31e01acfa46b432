//! Transitions from the idle state, and of the first round after a silence.

use super::super::{Demand, Restart};
use super::{
    Builder, FIRST, FRESH_1, FRESH_2, IDLE, RETRANSMIT_1, RETRANSMIT_BOTH, RETRANSMIT_FIRST,
    RUNNING_1, RUNNING_BOTH, RUNNING_FIRST, WAIT_1,
};

impl Builder {
    /// Transitions from idle: a burst begins, or the silence exceeds the timeout.
    pub(super) fn idle(&mut self, d: u32) {
        let timeout = self.tcp.timer.after(d, self.rtt);
        match self.tcp.restart {
            Restart::Never => {
                self.add((IDLE, d), (self.first, d), self.begin, "a burst begins");
            }
            Restart::OneSegment { from_ack } => {
                let needed = if from_ack { timeout } else { timeout - self.rtt };
                let longer = (-self.begin * needed.max(0.0)).exp();
                self.add((IDLE, d), (self.first, d), self.begin * (1.0 - longer), "a burst begins");
                let text = "a burst begins after a silence longer than the timeout (RFC 5681, 4.1)";
                self.add((IDLE, d), (FIRST, d), self.begin * longer, text);
                self.restarted(d);
            }
            Restart::TimerRunsOn => {
                self.add((IDLE, d), (FIRST, d), self.begin, "a burst begins");
                // The state lasts until the burst or the timeout, whichever comes first: e^(−b RTO)
                // over its mean (1 − e^(−b RTO))/b.
                let y = self.begin * timeout;
                let rate = if y > 1e-12 { y / y.exp_m1() } else { 1.0 } / timeout;
                let text = "timeout during the silence, doubled (ns-2's Vegas)";
                self.add((IDLE, d), (IDLE, (d + 1).min(self.top)), rate, text);
                self.running_timer(d, timeout);
            }
        }
    }

    /// Transitions after a silence: the burst begins with one segment instead of the whole window.
    fn restarted(&mut self, d: u32) {
        let (p, q) = (self.p, 1.0 - self.p);
        match self.demand {
            Demand::Messages { segments: 2.., .. } => {
                let rest = if matches!(self.demand, Demand::Messages { segments: 2, .. }) {
                    FRESH_1
                } else {
                    FRESH_2
                };
                self.round(FIRST, d, q, (rest, 0), "acknowledged; the rest of the message follows");
            }
            _ => self.next(FIRST, d, q, 0, self.more_after_round),
        }
        self.round(FIRST, d, p, (WAIT_1, d), "lost: wait for the timeout");
    }

    /// Transitions of a burst that begins while the timer is already running.
    fn running_timer(&mut self, d: u32, timeout: f64) {
        let (p, q, pair) = (self.p, 1.0 - self.p, self.pair);
        // The time that the timer had run when the burst began is exponential, truncated at the
        // timeout. If less than a round trip is left, the timer fires before the acknowledgement.
        let known = (timeout - self.rtt).max(0.0);
        let below = |limit: f64| -(-self.begin * limit).exp_m1();
        let early = if self.begin * timeout > 1e-12 {
            (1.0 - below(known)) * below(timeout - known) / below(timeout)
        } else {
            (timeout - known) / timeout
        };
        let doubled = (d + 1).min(self.top);
        let text = "timeout before the acknowledgement arrives";
        let left = (known - truncated_mean(self.begin, known)).max(self.rtt * 1e-3);
        let fires = "timeout, doubled (RFC 6298, 5.4 to 5.6)";
        for (wait, retransmission) in [
            (RUNNING_1, RETRANSMIT_1),
            (RUNNING_FIRST, RETRANSMIT_FIRST),
            (RUNNING_BOTH, RETRANSMIT_BOTH),
        ] {
            self.add((wait, d), (retransmission, doubled), 1.0 / left, fires);
        }
        let in_time = 1.0 - early;
        if self.first == FRESH_1 {
            self.round(FIRST, d, early, (RETRANSMIT_1, doubled), text);
            self.next(FIRST, d, in_time * q, 0, self.more_after_round);
            self.round(FIRST, d, in_time * p, (RUNNING_1, d), "lost: wait for the timeout");
            return;
        }
        self.round(FIRST, d, early, (RETRANSMIT_BOTH, doubled), text);
        self.next(FIRST, d, in_time * pair.none_lost, 0, self.more_after_round);
        self.round(
            FIRST,
            d,
            in_time * pair.first_lost,
            (RUNNING_FIRST, d),
            "first lost: wait \
            for the timeout",
        );
        self.round(FIRST, d, in_time * pair.both_lost, (RUNNING_BOTH, d), "both lost");
        self.second_lost(FIRST, d, in_time * pair.second_lost);
    }
}

/// Mean of an exponential time with this rate, truncated at a limit.
fn truncated_mean(rate: f64, limit: f64) -> f64 {
    let y = rate * limit;
    // 1/y − 1/(e^y − 1), whose pole cancels.
    limit * if y < 1e-4 { 0.5 - y / 12.0 } else { 1.0 / y - 1.0 / y.exp_m1() }
}
