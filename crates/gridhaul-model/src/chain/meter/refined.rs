//! The meter as a TCP behaves.

use super::{Conditions, Demand, MeterTcp};
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
        top,
        first: if tcp.window > 1 && several(demand) { FRESH_2 } else { FRESH_1 },
        begin: match *demand {
            Demand::Greedy { off, .. } => 1.0 / off,
            Demand::Messages { per_second, .. } => per_second,
        },
        demand: *demand,
        more,
        chain: Chain::with_capacity(KINDS * (top as usize + 1), 40 * (top as usize + 1)),
    };
    rules.states();
    for doublings in 0..=top {
        rules.fresh(doublings);
        rules.waits(doublings);
        rules.repeats(doublings);
    }
    rules.chain
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
const KINDS: usize = 11;

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
    /// Number of doublings beyond which the timeout grows no more.
    top: u32,
    /// State in which a burst begins.
    first: usize,
    /// Bursts per second of silence.
    begin: f64,
    more: f64,
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
        }
    }

    /// New segments are on their way.
    fn fresh(&mut self, d: u32) {
        let (p, q, pair) = (self.p, 1.0 - self.p, self.pair);
        self.chain.rule(at(IDLE, d), at(self.first, d), self.begin, "a burst begins");
        self.next(FRESH_1, d, q, 0, self.rtt);
        self.round(FRESH_1, d, p, at(WAIT_1, d), "lost: wait for the timer");
        for from in [FRESH_2, MIXED] {
            self.next(from, d, pair.none_lost, 0, self.rtt);
            self.round(from, d, pair.first_lost, at(WAIT_FIRST, d),
                "first lost: one duplicate acknowledgement, too young for Vegas and too few for Reno");
            self.round(from, d, pair.both_lost, at(WAIT_BOTH, d), "both lost: wait for the timer");
            let more = self.more_after(self.rtt);
            self.round(
                from,
                d,
                pair.second_lost * more,
                at(HOLE, 0),
                "second lost: the first's acknowledgement releases a new one",
            );
            self.round(
                from,
                d,
                pair.second_lost * (1.0 - more),
                at(WAIT_1, 0),
                "second lost and silence",
            );
        }
        self.round(HOLE, d, p, at(WAIT_BOTH, d), "both lost: wait for the timer");
        if self.tcp.vegas {
            self.round(
                HOLE,
                d,
                q,
                at(REPEAT_1, (d + 1).min(self.top)),
                "a duplicate for a segment of two round trips' age: Vegas repeats it at once",
            );
        } else {
            self.round(HOLE, d, q, at(WAIT_FIRST, d), "one duplicate is too few for Reno");
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
            self.chain.rule(at(wait, d), at(repeat, doubled), 1.0 / left, text);
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
            self.round(repeat, d, p, at(wait, d), "lost again: wait for the timer");
        }
        if self.tcp.vegas {
            self.next(REPEAT_BOTH, d, self.pair.none_lost, kept, waited);
            self.round(REPEAT_BOTH, d, self.pair.first_lost, at(WAIT_FIRST, d), "first lost again");
            self.round(
                REPEAT_BOTH,
                d,
                self.pair.second_lost,
                at(WAIT_1, kept),
                "second lost again",
            );
            self.round(REPEAT_BOTH, d, self.pair.both_lost, at(WAIT_BOTH, d), "both lost again");
            return;
        }
        let more = self.more_after(waited);
        self.round(REPEAT_BOTH, d, q * more, at(MIXED, kept), "the window opens to two again");
        self.round(REPEAT_BOTH, d, q * (1.0 - more), at(REPEAT_1, kept), "the second follows");
        self.round(REPEAT_BOTH, d, p, at(WAIT_BOTH, d), "lost again: wait for the timer");
    }

    /// All is delivered with this probability: more, or silence.
    fn next(&mut self, from: usize, d: u32, probability: f64, kept: u32, waited: f64) {
        let more = probability * self.more_after(waited);
        let text = "all acknowledged, and there is more";
        match self.demand {
            Demand::Greedy { .. } => {
                self.round(from, d, more, at(self.first, kept), text);
            }
            Demand::Messages { .. } => {
                let two = if self.tcp.window > 1 { self.more } else { 0.0 };
                self.round(from, d, more * two, at(FRESH_2, kept), text);
                self.round(from, d, more * (1.0 - two), at(FRESH_1, kept), text);
            }
        }
        self.round(from, d, probability - more, at(IDLE, kept), "all acknowledged, and silence");
    }

    /// Probability that the application has more to send, a time after it last had.
    fn more_after(&self, waited: f64) -> f64 {
        match self.demand {
            Demand::Greedy { on, off } => {
                // The two-state chain of the application, from on to on.
                let share = on / (on + off);
                share + (1.0 - share) * (-waited * (1.0 / on + 1.0 / off)).exp()
            }
            Demand::Messages { .. } => self.more,
        }
    }

    /// After a round trip, with this probability.
    fn round(&mut self, from: usize, d: u32, probability: f64, to: usize, text: &'static str) {
        self.chain.rule(at(from, d), to, probability.max(0.0) / self.rtt, text);
    }
}

/// Index of a state.
const fn at(kind: usize, doublings: u32) -> usize {
    doublings as usize * KINDS + kind
}

#[cfg(test)]
mod tests {
    use super::super::{Rules, Timer, sent};
    use super::*;

    const TIMER: Timer = Timer { min: 0.2, max: 60.0, floor_on_variance: false, timestamps: false };
    const BURSTS: Demand = Demand::Greedy { on: 0.1, off: 60.0 };

    fn rates(vegas: bool, demand: &Demand, loss: f64) -> crate::chain::Rates {
        let tcp = MeterTcp { vegas, window: 2, timer: TIMER };
        sent(&tcp, demand, &Conditions { loss, rtt: 0.1, pairing: 0.0 }, Rules::Refined).rates
    }

    #[test]
    fn without_loss_a_burst_is_counted_by_hand() {
        // Two segments, then two more after every round trip for which the burst still lasts:
        // rounds = 1/(1 − P(on after RTT)), cycle = 60 s + rounds × 0.1 s.
        let share = 0.1 / 60.1;
        let on = share + (1.0 - share) * (-0.1_f64 * (10.0 + 1.0 / 60.0)).exp();
        let rounds = 1.0 / (1.0 - on);
        let expected = 2.0 * rounds / (60.0 + 0.1 * rounds);
        let rates = rates(false, &BURSTS, 0.0);
        assert!((rates.offered / expected - 1.0).abs() < 1e-12, "{rates:?} {expected}");
        assert_eq!(rates.offered, rates.fresh);
    }

    #[test]
    fn a_message_of_one_segment_is_sent_until_it_arrives() {
        // A reading a minute: the mean number of passages is 1/(1 − p), whatever the timer does.
        let demand = Demand::Messages { per_second: 1.0 / 600.0, segments: 1 };
        for loss in [0.0, 0.1, 0.5] {
            let rates = rates(false, &demand, loss);
            assert!((rates.fresh * 600.0 - 1.0).abs() < 1e-9);
            assert!((rates.offered / rates.fresh * (1.0 - loss) - 1.0).abs() < 0.01, "{loss}");
        }
    }

    #[test]
    fn every_new_segment_arrives_in_the_end() {
        // Reno repeats nothing that has arrived: what is delivered is what is new.
        for loss in [0.05, 0.3, 0.7, 0.9] {
            let rates = rates(false, &BURSTS, loss);
            assert!((rates.offered * (1.0 - loss) / rates.fresh - 1.0).abs() < 1e-9, "{loss}");
        }
    }

    #[test]
    fn vegas_sends_more_than_reno_and_both_less_with_more_loss() {
        let mut last = [f64::INFINITY; 2];
        for loss in [0.3, 0.5, 0.7, 0.8, 0.9, 0.95] {
            let now = [false, true].map(|vegas| rates(vegas, &BURSTS, loss).fresh);
            assert!(now[0] < last[0] && now[1] < last[1]);
            last = now;
            assert!(rates(true, &BURSTS, loss).offered > rates(false, &BURSTS, loss).offered);
        }
    }
}
