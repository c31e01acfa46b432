//! The meter's chain with the behaviour of TCP implementations.

mod first_transmissions;
mod silence;

pub(super) use self::first_transmissions::{FirstTransmission, first_transmissions};

use super::{Conditions, Demand, MeterTcp, Restart};
use crate::chain::{Chain, State};

/// The chain of a meter in which each state is a round trip or a wait for the timer. Lost data are
/// retransmitted even after the application has fallen silent.
///
/// The chain is a semi-Markov process: stationary probabilities depend only on the mean duration of
/// each state, so that timers need not be exponential. Each state exists once for every number of
/// doublings of the timeout.
///
/// Assumed: losses in different rounds are independent; a round trip lasts its mean time; the
/// application's state after a wait depends only on the length of the wait.
///
/// For messages, `more` is the share of rounds after which another segment waits.
#[must_use]
pub fn refined(tcp: &MeterTcp, demand: &Demand, conditions: &Conditions, more: f64) -> Chain {
    let top = tcp.timer.doublings(conditions.rtt);
    let mut rules = Builder {
        tcp: *tcp,
        p: conditions.loss,
        pair: Pair::new(conditions),
        rtt: conditions.rtt,
        variation: conditions.variation,
        window_closed: conditions.window_closed,
        top,
        first: if tcp.window > 1 && several(demand) { FRESH_2 } else { FRESH_1 },
        begin: begin(demand),
        demand: *demand,
        more,
        more_after_round: 0.0,
        kinds: kinds(tcp.restart, conditions),
        chain: Chain::with_capacity(KINDS * (top as usize + 1), 48 * (top as usize + 1)),
    };
    rules.more_after_round = rules.more_after(rules.rtt);
    rules.states();
    for doublings in 0..=top {
        rules.idle(doublings);
        rules.new_segments(doublings);
        rules.waits(doublings);
        rules.retransmissions(doublings);
        rules.closed_window(doublings);
    }
    rules.chain
}

/// Bursts per second of silence.
const fn begin(demand: &Demand) -> f64 {
    match *demand {
        Demand::Greedy { off, .. } => 1.0 / off,
        Demand::Messages { per_second, .. } => per_second,
    }
}

/// Number of states for each number of doublings. The last is the closed window, if there is one.
fn kinds(restart: Restart, conditions: &Conditions) -> usize {
    let of_restart = match restart {
        Restart::Never => FIRST,
        Restart::OneSegment { .. } => FIRST + 1,
        Restart::TimerRunsOn => RUNNING_BOTH + 1,
    };
    of_restart + usize::from(conditions.window_closed > 0.0)
}

/// Whether a burst begins with more than one segment.
const fn several(demand: &Demand) -> bool {
    match *demand {
        Demand::Greedy { .. } => true,
        Demand::Messages { segments, .. } => segments > 1,
    }
}

// States of one number of doublings. "First" and "second" are the outstanding segments in order.
const IDLE: usize = 0;
const FRESH_1: usize = 1;
const FRESH_2: usize = 2;
/// The second is retransmitted together with a new one.
const MIXED: usize = 3;
/// The second was lost, and a new one was sent after it.
const GAP: usize = 4;
/// One outstanding, lost.
const WAIT_1: usize = 5;
/// Two outstanding, the first lost.
const WAIT_FIRST: usize = 6;
const WAIT_BOTH: usize = 7;
const RETRANSMIT_1: usize = 8;
const RETRANSMIT_FIRST: usize = 9;
const RETRANSMIT_BOTH: usize = 10;
/// The first round after a silence longer than the timeout; only if `Restart` is not `Never`.
const FIRST: usize = 11;
/// As the waits above, for a timer that was started before the burst.
const RUNNING_1: usize = 12;
const RUNNING_FIRST: usize = 13;
const RUNNING_BOTH: usize = 14;
/// Largest number of states for one number of doublings, with the closed window.
const KINDS: usize = 16;

/// Loss probabilities of two segments that are sent together.
///
/// If the queue is full for the first segment, it is full for a second one that follows at once. If
/// the first is accepted, the second is lost with the probability of any arrival: π_(B−1)/(1 − π_B)
/// of the M/M/1/B queue, which is close to the loss probability itself for ρ ≥ 1.
#[derive(Debug, Clone, Copy)]
struct Pair {
    none_lost: f64,
    first_lost: f64,
    second_lost: f64,
    both_lost: f64,
}

impl Pair {
    fn new(conditions: &Conditions) -> Self {
        let (p, q) = (conditions.loss, 1.0 - conditions.loss);
        let first_lost = p * q * (1.0 - conditions.pairing);
        Self { none_lost: q * q, first_lost, second_lost: q * p, both_lost: p - first_lost }
    }

    fn arriving(&self) -> f64 {
        2.0 * self.none_lost + self.first_lost + self.second_lost
    }
}

struct Builder {
    tcp: MeterTcp,
    pair: Pair,
    demand: Demand,
    p: f64,
    rtt: f64,
    variation: f64,
    window_closed: f64,
    /// Number of doublings at which the timeout reaches its maximum.
    top: u32,
    /// State in which a burst begins.
    first: usize,
    /// Bursts per second of silence.
    begin: f64,
    more: f64,
    /// Probability that the application has data to send a round trip after it last had data.
    more_after_round: f64,
    /// Number of states for each number of doublings.
    kinds: usize,
    chain: Chain,
}

impl Builder {
    fn states(&mut self) {
        let round = 1.0 / self.rtt;
        // Vegas continues with a window of two after a timeout and therefore retransmits both
        // segments, even if only the first is missing (ns-2; slow start of Brakmo and Peterson also
        // begins with two segments).
        let retransmitted = if self.tcp.vegas { 2 } else { 1 };
        for doublings in 0..=self.top {
            let mark = Some(("doublings", doublings));
            let mut add = |phase, segments, new_segments| {
                let rounds = if segments > 0 { round } else { 0.0 };
                let arriving = match segments {
                    2 => self.pair.arriving(),
                    _ => f64::from(segments) * (1.0 - self.p),
                };
                self.chain.state(State {
                    phase,
                    segments,
                    fresh: new_segments,
                    arriving,
                    rounds,
                    mark,
                });
            };
            add("idle", 0, 0);
            add("new", 1, 1);
            add("new", 2, 2);
            add("retransmit and new", 2, 1);
            add("new after a gap", 1, 1);
            add("timeout wait, one lost", 0, 0);
            add("timeout wait, first of two lost", 0, 0);
            add("timeout wait, both lost", 0, 0);
            add("retransmit one", 1, 0);
            add("retransmit first", retransmitted, 0);
            add("retransmit both", retransmitted, 0);
            match self.tcp.restart {
                Restart::Never => {}
                Restart::OneSegment { .. } => add("new after a silence", 1, 1),
                Restart::TimerRunsOn => {
                    let segments = if self.first == FRESH_2 { 2 } else { 1 };
                    add("new after a silence", segments, segments);
                    add("running timer, one lost", 0, 0);
                    add("running timer, first of two lost", 0, 0);
                    add("running timer, both lost", 0, 0);
                }
            }
            if self.window_closed > 0.0 {
                add("closed window", 0, 0);
            }
        }
    }

    /// The second of two segments was lost: the acknowledgement of the first restarts the timer.
    fn second_lost(&mut self, from: usize, d: u32, probability: f64) {
        let more = self.more_after_round;
        let text = "second lost; the acknowledgement of the first allows a new segment";
        self.round(from, d, probability * more, (GAP, 0), text);
        self.round(
            from,
            d,
            probability * (1.0 - more),
            (WAIT_1, 0),
            "second lost; the \
            application is silent",
        );
    }

    /// Transitions from states with new segments in flight.
    fn new_segments(&mut self, d: u32) {
        let (p, q, pair) = (self.p, 1.0 - self.p, self.pair);
        self.next(FRESH_1, d, q, 0, self.more_after_round);
        self.round(FRESH_1, d, p, (WAIT_1, d), "lost: wait for the timeout");
        for from in [FRESH_2, MIXED] {
            self.next(from, d, pair.none_lost, 0, self.more_after_round);
            self.round(
                from,
                d,
                pair.first_lost,
                (WAIT_FIRST, d),
                "first lost: one duplicate acknowledgement is too few for Reno and too early for \
                 Vegas",
            );
            self.round(from, d, pair.both_lost, (WAIT_BOTH, d), "both lost: wait for the timeout");
            self.second_lost(from, d, pair.second_lost);
        }
        self.round(GAP, d, p, (WAIT_BOTH, d), "both lost: wait for the timeout");
        if self.tcp.vegas {
            self.round(
                GAP,
                d,
                q,
                (RETRANSMIT_1, (d + 1).min(self.top)),
                "duplicate acknowledgement for a segment sent two round trips ago: Vegas \
                    retransmits it",
            );
        } else {
            self.round(
                GAP,
                d,
                q,
                (WAIT_FIRST, d),
                "one duplicate acknowledgement is too few for Reno",
            );
        }
    }

    /// Transitions from states that wait for the timeout.
    fn waits(&mut self, d: u32) {
        // The timer was started when the segments were sent, a round trip ago.
        let left = (self.tcp.timer.after(d, self.rtt) - self.rtt).max(self.rtt * 1e-3);
        let doubled = (d + 1).min(self.top);
        for (wait, retransmission) in
            [(WAIT_1, RETRANSMIT_1), (WAIT_FIRST, RETRANSMIT_FIRST), (WAIT_BOTH, RETRANSMIT_BOTH)]
        {
            let text = "timeout, doubled (RFC 6298, 5.4 to 5.6)";
            self.add((wait, d), (retransmission, doubled), 1.0 / left, text);
        }
    }

    /// Transitions from states with retransmissions in flight.
    fn retransmissions(&mut self, d: u32) {
        let (p, q) = (self.p, 1.0 - self.p);
        // Karn's algorithm: the acknowledgement of a retransmission gives no sample, and the
        // back-off persists.
        let kept = if self.tcp.timer.timestamps { 0 } else { d };
        let more = self.more_after(self.tcp.timer.after(d.saturating_sub(1), self.rtt) + self.rtt);
        for (retransmission, wait) in [(RETRANSMIT_1, WAIT_1), (RETRANSMIT_FIRST, WAIT_FIRST)] {
            self.next(retransmission, d, q, kept, more);
            self.round(retransmission, d, p, (wait, d), "lost again: wait for the timeout");
        }
        if self.tcp.vegas {
            self.next(RETRANSMIT_BOTH, d, self.pair.none_lost, kept, more);
            self.round(
                RETRANSMIT_BOTH,
                d,
                self.pair.first_lost,
                (WAIT_FIRST, d),
                "first lost again",
            );
            self.round(
                RETRANSMIT_BOTH,
                d,
                self.pair.second_lost,
                (WAIT_1, kept),
                "second lost again",
            );
            self.round(RETRANSMIT_BOTH, d, self.pair.both_lost, (WAIT_BOTH, d), "both lost again");
            return;
        }
        self.round(
            RETRANSMIT_BOTH,
            d,
            q * more,
            (MIXED, kept),
            "acknowledged; the window grows to two segments",
        );
        self.round(
            RETRANSMIT_BOTH,
            d,
            q * (1.0 - more),
            (RETRANSMIT_1, kept),
            "acknowledged; \
            the second is retransmitted",
        );
        self.round(RETRANSMIT_BOTH, d, p, (WAIT_BOTH, d), "lost again: wait for the timeout");
    }

    /// Transitions when all segments are acknowledged, with this probability: more data with
    /// probability `more`, or silence.
    fn next(&mut self, from: usize, d: u32, probability: f64, kept: u32, more: f64) {
        if self.window_closed > 0.0 {
            let text = "all acknowledged; the window is closed until they have left the aggregator";
            self.round(from, d, probability, (self.kinds - 1, kept), text);
            return;
        }
        self.decide((from, d), probability / self.rtt, more, kept);
    }

    /// Transitions when the window opens again. The application's state depends on the time since
    /// the first transmission; a preceding timeout is neglected.
    fn closed_window(&mut self, d: u32) {
        if self.window_closed > 0.0 {
            let more = self.more_after(self.rtt + self.window_closed);
            self.decide((self.kinds - 1, d), 1.0 / self.window_closed, more, d);
        }
    }

    /// Transitions at this rate to more data, with this probability, or to silence.
    fn decide(&mut self, from: StateIndex, rate: f64, more: f64, kept: u32) {
        let text = "all acknowledged; more data";
        match self.demand {
            Demand::Greedy { .. } => {
                self.add(from, (self.first, kept), rate * more, text);
            }
            Demand::Messages { .. } => {
                let two = if self.tcp.window > 1 { self.more } else { 0.0 };
                self.add(from, (FRESH_2, kept), rate * more * two, text);
                self.add(from, (FRESH_1, kept), rate * more * (1.0 - two), text);
            }
        }
        let silence = (rate * (1.0 - more)).max(0.0);
        self.add(from, (IDLE, kept), silence, "all acknowledged; silence");
    }

    /// Probability that the application has data to send, `waited` seconds after it last had data.
    fn more_after(&self, waited: f64) -> f64 {
        match self.demand {
            Demand::Greedy { on, off } => {
                // The two-state chain of the application, from on to on.
                let share = on / (on + off);
                // The mean over the random round-trip time.
                let waited = waited * self.demand.relaxation_rate() - self.variation;
                share + (1.0 - share) * (-waited).exp().min(1.0)
            }
            Demand::Messages { .. } => self.more,
        }
    }

    /// Adds a transition after a round trip, with this probability.
    fn round(&mut self, from: usize, d: u32, probability: f64, to: StateIndex, text: &'static str) {
        self.add((from, d), to, probability.max(0.0) / self.rtt, text);
    }

    fn add(&mut self, from: StateIndex, to: StateIndex, rate: f64, text: &'static str) {
        let index = |(kind, doublings): StateIndex| doublings as usize * self.kinds + kind;
        let (from, to) = (index(from), index(to));
        self.chain.transition(from, to, rate, text);
    }
}

/// Kind of a state and number of doublings.
type StateIndex = (usize, u32);

#[cfg(test)]
mod tests;
