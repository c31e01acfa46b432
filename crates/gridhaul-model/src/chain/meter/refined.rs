//! The meter as a TCP behaves.

mod first_transmissions;

pub(super) use self::first_transmissions::{FirstTransmission, first_transmissions};

use super::{Conditions, Demand, MeterTcp, Restart};
use crate::chain::{Chain, State};

/// A round trip or a wait for the timer in each state; what is lost stays to be sent when the
/// application falls silent.
///
/// The chain is a semi-Markov process: a state lasts for its mean time however that is
/// distributed, and shares of time depend on nothing else, so that timers need not be exponential.
/// Each state exists once for every number of doublings of the timeout.
///
/// Assumed: rounds are lost independently of each other; a round trip lasts its mean; what the application
/// does during a wait depends only on the length of the wait.
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
        top,
        first: if tcp.window > 1 && several(demand) { FRESH_2 } else { FRESH_1 },
        begin: begin(demand),
        demand: *demand,
        more,
        kinds: kinds(tcp.restart),
        chain: Chain::with_capacity(KINDS * (top as usize + 1), 48 * (top as usize + 1)),
    };
    rules.states();
    for doublings in 0..=top {
        rules.begins(doublings);
        rules.fresh(doublings);
        rules.waits(doublings);
        rules.repeats(doublings);
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

/// Number of states for each number of doublings.
const fn kinds(restart: Restart) -> usize {
    match restart {
        Restart::Never => FIRST,
        Restart::OneSegment { .. } => FIRST + 1,
        Restart::TimerRunsOn => KINDS,
    }
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
/// The second is sent again together with a new one.
const MIXED: usize = 3;
/// The second was lost, and a new one was sent behind it.
const HOLE: usize = 4;
/// One outstanding, lost.
const WAIT_1: usize = 5;
/// Two outstanding, the first lost.
const WAIT_FIRST: usize = 6;
const WAIT_BOTH: usize = 7;
const REPEAT_1: usize = 8;
const REPEAT_FIRST: usize = 9;
const REPEAT_BOTH: usize = 10;
/// What follows a silence longer than the timeout; only where such a silence changes anything.
const FIRST: usize = 11;
/// As the waits above, for a timer that began to run in the silence.
const LATE_1: usize = 12;
const LATE_FIRST: usize = 13;
const LATE_BOTH: usize = 14;
const KINDS: usize = 15;

/// What becomes of two segments that are sent together.
///
/// Where the queue is full for the first, it is full for a second that follows at once; where the
/// first finds room, it takes it, and the second finds another with the probability of any
/// arrival: π_(B−1)/(1 − π_B) of the M/M/1/B queue, which is near the loss itself from ρ = 1 on.
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
    /// Number of doublings beyond which the timeout grows no more.
    top: u32,
    /// State in which a burst begins.
    first: usize,
    /// Bursts per second of silence.
    begin: f64,
    more: f64,
    /// Number of states for each number of doublings.
    kinds: usize,
    chain: Chain,
}

impl Builder {
    fn states(&mut self) {
        let round = 1.0 / self.rtt;
        // Vegas goes on with a window of two after a timeout and so repeats both, also where only
        // the first is missing (ns-2; Brakmo and Peterson begin slow start no lower either).
        let again = if self.tcp.vegas { 2 } else { 1 };
        for doublings in 0..=self.top {
            let mark = Some(("doublings", doublings));
            let mut add = |phase, segments, fresh| {
                let rounds = if segments > 0 { round } else { 0.0 };
                let arriving = match segments {
                    2 => self.pair.arriving(),
                    _ => f64::from(segments) * (1.0 - self.p),
                };
                self.chain.state(State { phase, segments, fresh, arriving, rounds, mark });
            };
            add("idle", 0, 0);
            add("new", 1, 1);
            add("new", 2, 2);
            add("repeat and new", 2, 1);
            add("new behind a hole", 1, 1);
            add("timer, one lost", 0, 0);
            add("timer, first of two lost", 0, 0);
            add("timer, both lost", 0, 0);
            add("repeat the only", 1, 0);
            add("repeat the first", again, 0);
            add("repeat both", again, 0);
            match self.tcp.restart {
                Restart::Never => {}
                Restart::OneSegment { .. } => add("new after a silence", 1, 1),
                Restart::TimerRunsOn => {
                    let segments = if self.first == FRESH_2 { 2 } else { 1 };
                    add("new after a silence", segments, segments);
                    add("late timer, one lost", 0, 0);
                    add("late timer, first of two lost", 0, 0);
                    add("late timer, both lost", 0, 0);
                }
            }
        }
    }

    /// Silence ends, or grows longer than the timeout.
    fn begins(&mut self, d: u32) {
        let timeout = self.tcp.timer.after(d, self.rtt);
        match self.tcp.restart {
            Restart::Never => {
                self.rule((IDLE, d), (self.first, d), self.begin, "a burst begins");
            }
            Restart::OneSegment { from_ack } => {
                let needed = if from_ack { timeout } else { timeout - self.rtt };
                let longer = (-self.begin * needed.max(0.0)).exp();
                self.rule(
                    (IDLE, d),
                    (self.first, d),
                    self.begin * (1.0 - longer),
                    "a burst begins",
                );
                let text = "a burst begins after more than a timeout (RFC 5681, 4.1)";
                self.rule((IDLE, d), (FIRST, d), self.begin * longer, text);
                self.restarted(d);
            }
            Restart::TimerRunsOn => {
                self.rule((IDLE, d), (FIRST, d), self.begin, "a burst begins");
                // The state lasts until the burst or the timer, whichever comes first: e^(−b RTO)
                // over its mean (1 − e^(−b RTO))/b.
                let y = self.begin * timeout;
                let rate = if y > 1e-12 { y / y.exp_m1() } else { 1.0 } / timeout;
                let text = "the timer fires in the silence and is doubled (ns-2's Vegas)";
                self.rule((IDLE, d), (IDLE, (d + 1).min(self.top)), rate, text);
                self.late(d, timeout);
            }
        }
    }

    /// One segment after a silence, where a burst without one begins with the whole window.
    fn restarted(&mut self, d: u32) {
        let (p, q) = (self.p, 1.0 - self.p);
        match self.demand {
            Demand::Messages { segments: 2.., .. } => {
                let rest = if matches!(self.demand, Demand::Messages { segments: 2, .. }) {
                    FRESH_1
                } else {
                    FRESH_2
                };
                self.round(FIRST, d, q, (rest, 0), "acknowledged, the rest of the message follows");
            }
            _ => self.next(FIRST, d, q, 0, self.rtt),
        }
        self.round(FIRST, d, p, (WAIT_1, d), "lost: wait for the timer");
    }

    /// What is sent after a silence, under a timer that runs for some time already.
    fn late(&mut self, d: u32, timeout: f64) {
        let (p, q, pair) = (self.p, 1.0 - self.p, self.pair);
        // How long the timer had run when the burst began: exponential, cut off at the timeout. If
        // more than all but a round trip, it fires first.
        let known = (timeout - self.rtt).max(0.0);
        let below = |limit: f64| -(-self.begin * limit).exp_m1();
        let early = if self.begin * timeout > 1e-12 {
            (1.0 - below(known)) * below(timeout - known) / below(timeout)
        } else {
            (timeout - known) / timeout
        };
        let doubled = (d + 1).min(self.top);
        let text = "the timer fires before an acknowledgement can come";
        let left = (known - cut_mean(self.begin, known)).max(self.rtt * 1e-3);
        let fires = "the timer fires and is doubled (RFC 6298, 5.4 to 5.6)";
        for (wait, repeat) in
            [(LATE_1, REPEAT_1), (LATE_FIRST, REPEAT_FIRST), (LATE_BOTH, REPEAT_BOTH)]
        {
            self.rule((wait, d), (repeat, doubled), 1.0 / left, fires);
        }
        let calm = 1.0 - early;
        if self.first == FRESH_1 {
            self.round(FIRST, d, early, (REPEAT_1, doubled), text);
            self.next(FIRST, d, calm * q, 0, self.rtt);
            self.round(FIRST, d, calm * p, (LATE_1, d), "lost: wait for the timer");
            return;
        }
        self.round(FIRST, d, early, (REPEAT_BOTH, doubled), text);
        self.next(FIRST, d, calm * pair.none_lost, 0, self.rtt);
        self.round(FIRST, d, calm * pair.first_lost, (LATE_FIRST, d), "first lost: too young");
        self.round(FIRST, d, calm * pair.both_lost, (LATE_BOTH, d), "both lost");
        self.second_lost(FIRST, d, calm * pair.second_lost);
    }

    /// The second of two was lost: the acknowledgement of the first starts the timer anew.
    fn second_lost(&mut self, from: usize, d: u32, probability: f64) {
        let more = self.more_after(self.rtt);
        let text = "second lost: the first's acknowledgement releases a new one";
        self.round(from, d, probability * more, (HOLE, 0), text);
        self.round(from, d, probability * (1.0 - more), (WAIT_1, 0), "second lost and silence");
    }

    /// New segments are on their way.
    fn fresh(&mut self, d: u32) {
        let (p, q, pair) = (self.p, 1.0 - self.p, self.pair);
        self.next(FRESH_1, d, q, 0, self.rtt);
        self.round(FRESH_1, d, p, (WAIT_1, d), "lost: wait for the timer");
        for from in [FRESH_2, MIXED] {
            self.next(from, d, pair.none_lost, 0, self.rtt);
            self.round(from, d, pair.first_lost, (WAIT_FIRST, d),
                "first lost: one duplicate acknowledgement, too young for Vegas and too few for Reno");
            self.round(from, d, pair.both_lost, (WAIT_BOTH, d), "both lost: wait for the timer");
            self.second_lost(from, d, pair.second_lost);
        }
        self.round(HOLE, d, p, (WAIT_BOTH, d), "both lost: wait for the timer");
        if self.tcp.vegas {
            self.round(
                HOLE,
                d,
                q,
                (REPEAT_1, (d + 1).min(self.top)),
                "a duplicate for a segment of two round trips' age: Vegas repeats it at once",
            );
        } else {
            self.round(HOLE, d, q, (WAIT_FIRST, d), "one duplicate is too few for Reno");
        }
    }

    /// The timer runs.
    fn waits(&mut self, d: u32) {
        // It was started when the segments were sent, a round trip ago.
        let left = (self.tcp.timer.after(d, self.rtt) - self.rtt).max(self.rtt * 1e-3);
        let doubled = (d + 1).min(self.top);
        for (wait, repeat) in
            [(WAIT_1, REPEAT_1), (WAIT_FIRST, REPEAT_FIRST), (WAIT_BOTH, REPEAT_BOTH)]
        {
            let text = "the timer fires and is doubled (RFC 6298, 5.4 to 5.6)";
            self.rule((wait, d), (repeat, doubled), 1.0 / left, text);
        }
    }

    /// Lost segments are on their way again.
    fn repeats(&mut self, d: u32) {
        let (p, q) = (self.p, 1.0 - self.p);
        // Karn: an acknowledgement of a repeat measures nothing, and the back-off stays.
        let kept = if self.tcp.timer.timestamps { 0 } else { d };
        let waited = self.tcp.timer.after(d.saturating_sub(1), self.rtt) + self.rtt;
        for (repeat, wait) in [(REPEAT_1, WAIT_1), (REPEAT_FIRST, WAIT_FIRST)] {
            self.next(repeat, d, q, kept, waited);
            self.round(repeat, d, p, (wait, d), "lost again: wait for the timer");
        }
        if self.tcp.vegas {
            self.next(REPEAT_BOTH, d, self.pair.none_lost, kept, waited);
            self.round(REPEAT_BOTH, d, self.pair.first_lost, (WAIT_FIRST, d), "first lost again");
            self.round(REPEAT_BOTH, d, self.pair.second_lost, (WAIT_1, kept), "second lost again");
            self.round(REPEAT_BOTH, d, self.pair.both_lost, (WAIT_BOTH, d), "both lost again");
            return;
        }
        let more = self.more_after(waited);
        self.round(REPEAT_BOTH, d, q * more, (MIXED, kept), "the window opens to two again");
        self.round(REPEAT_BOTH, d, q * (1.0 - more), (REPEAT_1, kept), "the second follows");
        self.round(REPEAT_BOTH, d, p, (WAIT_BOTH, d), "lost again: wait for the timer");
    }

    /// All is delivered with this probability: more, or silence.
    fn next(&mut self, from: usize, d: u32, probability: f64, kept: u32, waited: f64) {
        let more = probability * self.more_after(waited);
        let text = "all acknowledged, and there is more";
        match self.demand {
            Demand::Greedy { .. } => {
                self.round(from, d, more, (self.first, kept), text);
            }
            Demand::Messages { .. } => {
                let two = if self.tcp.window > 1 { self.more } else { 0.0 };
                self.round(from, d, more * two, (FRESH_2, kept), text);
                self.round(from, d, more * (1.0 - two), (FRESH_1, kept), text);
            }
        }
        self.round(from, d, probability - more, (IDLE, kept), "all acknowledged, and silence");
    }

    /// Probability that the application has more to send, a time after it last had.
    fn more_after(&self, waited: f64) -> f64 {
        match self.demand {
            Demand::Greedy { on, off } => {
                // The two-state chain of the application, from on to on.
                let share = on / (on + off);
                // Of a time that varies with the round trip, the mean of what the chain says.
                let waited = waited * self.demand.forgets() - self.variation;
                share + (1.0 - share) * (-waited).exp().min(1.0)
            }
            Demand::Messages { .. } => self.more,
        }
    }

    /// After a round trip, with this probability.
    fn round(&mut self, from: usize, d: u32, probability: f64, to: Place, text: &'static str) {
        self.rule((from, d), to, probability.max(0.0) / self.rtt, text);
    }

    fn rule(&mut self, from: Place, to: Place, rate: f64, text: &'static str) {
        let index = |(kind, doublings): Place| doublings as usize * self.kinds + kind;
        let (from, to) = (index(from), index(to));
        self.chain.transition(from, to, rate, text);
    }
}

/// Kind of a state, and number of doublings.
type Place = (usize, u32);

/// Mean of an exponential time with this rate that is known to be below a limit.
fn cut_mean(rate: f64, limit: f64) -> f64 {
    let y = rate * limit;
    // 1/y − 1/(e^y − 1), whose pole cancels.
    limit * if y < 1e-4 { 0.5 - y / 12.0 } else { 1.0 / y - 1.0 / y.exp_m1() }
}

#[cfg(test)]
mod tests;
