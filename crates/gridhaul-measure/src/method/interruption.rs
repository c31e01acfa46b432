//! The longest time without an arrival in a run, and the recovery from it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gridhaul_scenario::units::{Duration, Instant};

use super::distribution::Distribution;
use super::message::{Message, Phase};

/// Share of the earlier messages whose latency a message does not exceed after the backlog.
const USUAL: f64 = 0.98;

/// Factor and time by which a latency may exceed that of the earlier messages without being part of
/// a backlog: the growth that a trial of `rate` tolerates. Without it, scheduling of a few
/// microseconds would be a backlog of UDP, which has none.
const TOLERATED: (f64, Duration) = (1.1, Duration::from_millis(1));

/// A time without an arrival, and the messages around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// Last arrival before it, or the time from which one was due.
    pub start: Instant,
    /// First arrival after it, or the end of the schedule.
    pub end: Instant,
    /// Nothing arrived before it.
    pub is_from_start: bool,
    /// Nothing arrived after it.
    pub is_open: bool,
    /// Messages that were sent before its end and arrived after it, later than usual.
    pub backlog: u64,
    /// Messages of this time that were accepted and are lost.
    pub lost: u64,
    /// Latency that 98 % of the earlier messages did not exceed, and the tolerance; `None` without
    /// earlier messages.
    usual: Option<Duration>,
    /// Arrival of the first message after the backlog.
    recovered: Option<Instant>,
}

/// Finds the longest time without an arrival. The memory is bounded by the messages that have not
/// arrived when a later one is sent: at most the rate times the horizon.
#[derive(Debug, Clone, Default)]
pub(super) struct Interruptions {
    /// Intended time of the first message after the warm-up, and of the last message.
    begin: Option<Instant>,
    end: Instant,
    /// Arrivals, and losses at the time of sending, after the intended time of the last message:
    /// those of the next messages may be earlier.
    pending: BinaryHeap<Reverse<Event>>,
    last_arrival: Option<Instant>,
    /// Largest sequence numbers of all messages, and of those that have arrived.
    last: u64,
    newest: Option<u64>,
    /// Lost messages after the newest that has arrived, as ranges of sequence numbers.
    lost: VecDeque<[u64; 2]>,
    /// Latencies so far.
    earlier: Distribution,
    shortest_latency: Option<Duration>,
    /// The time before the first arrival.
    first: Option<Interruption>,
    longest: Option<Interruption>,
}

/// An arrival, or the loss of a message at the time at which it was sent. Ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Instant,
    sequence: u64,
    is_lost: bool,
    sent: Option<Instant>,
    phase: Phase,
}

impl Interruption {
    /// Its length.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }

    /// Whether it may be longer: nothing arrived before or after it.
    #[must_use]
    pub const fn is_lower_bound(&self) -> bool {
        self.is_from_start || self.is_open
    }

    /// The shortest survival time (3GPP TS 22.104, defined in TS 22.261, clause 3.1) of an
    /// application that expects a message in each `interval` and continues over this time: messages
    /// are missing from one interval after the last arrival on.
    #[must_use]
    pub fn survival_time(&self, interval: Duration) -> Duration {
        self.length().saturating_sub(interval)
    }

    /// Time from the first arrival until the backlog has drained, so that a message is as fast as
    /// 98 % of those before; `None` if none was.
    #[must_use]
    pub fn drain(&self) -> Option<Duration> {
        self.recovered.map(|at| at.since(self.end))
    }

    /// A further arrival.
    fn add(&mut self, event: &Event) {
        if event.at < self.end {
            return;
        }
        let is_earlier = event.sent.is_some_and(|sent| sent < self.end);
        let is_usual =
            self.usual.is_some_and(|usual| event.latency().is_some_and(|latency| latency <= usual));
        self.backlog += u64::from(is_earlier && !is_usual);
        if is_usual && self.recovered.is_none() {
            self.recovered = Some(event.at);
        }
    }
}

impl Event {
    fn latency(&self) -> Option<Duration> {
        Some(self.at.since(self.sent?))
    }
}

impl Interruptions {
    /// Adds a message, in the order of sequence numbers.
    pub(super) fn add(&mut self, message: &Message) {
        let Message { sequence, sent, phase, .. } = *message;
        let is_measured = phase != Phase::WarmUp;
        if is_measured {
            self.begin.get_or_insert(message.intended);
        }
        let is_lost = message.copies == 0 && message.corrupt_copies == 0 && is_measured;
        let time = message.received.or_else(|| sent.filter(|_| is_lost));
        let is_lost = message.received.is_none();
        let event = |at| Reverse(Event { at, sequence, is_lost, sent, phase });
        self.pending.extend(time.map(event));
        (self.end, self.last) = (message.intended, sequence);
        while self.pending.peek().is_some_and(|Reverse(next)| next.at <= self.end) {
            self.handle_next();
        }
    }

    /// Handles the earliest event. Later messages have none before it.
    fn handle_next(&mut self) {
        let Some(Reverse(event)) = self.pending.pop() else { return };
        if event.is_lost {
            match self.lost.back_mut() {
                Some([_, last]) if *last + 1 == event.sequence => *last = event.sequence,
                _ => self.lost.push_back([event.sequence; 2]),
            }
            return;
        }
        if let Some(begin) = self.begin.filter(|begin| *begin <= event.at) {
            self.handle_arrival(begin, &event);
        }
        self.last_arrival = self.last_arrival.max(Some(event.at));
        self.newest = self.newest.max(Some(event.sequence));
        // Earlier messages were lost before this one was sent.
        while self.lost.front().is_some_and(|[_, last]| *last < event.sequence) {
            self.lost.pop_front();
        }
    }

    /// An arrival after the warm-up.
    fn handle_arrival(&mut self, begin: Instant, event: &Event) {
        let gap = self.gap(begin, event.at);
        let longest = self.longest.map_or(Duration::ZERO, |longest| longest.length());
        if gap.is_from_start {
            self.first = Some(gap);
        // Messages that the last one has overtaken follow no schedule.
        } else if self.newest != Some(self.last) && gap.length() > longest {
            self.longest = Some(Interruption { usual: self.usual(), ..gap });
        }
        for interruption in self.first.iter_mut().chain(&mut self.longest) {
            interruption.add(event);
        }
        if let Some(latency) = event.latency().filter(|_| event.phase == Phase::Measured) {
            self.earlier.record(latency);
            let shortest = self.shortest_latency.map_or(latency, |shortest| shortest.min(latency));
            self.shortest_latency = Some(shortest);
        }
    }

    /// The time from the last arrival to `end`. Without an earlier arrival, or with one in the
    /// warm-up, it starts with the messages that count.
    fn gap(&self, begin: Instant, end: Instant) -> Interruption {
        let start = self.last_arrival.map_or(begin, |last| last.max(begin));
        Interruption {
            start,
            end: end.max(start),
            is_from_start: self.last_arrival.is_none(),
            is_open: false,
            backlog: 0,
            lost: self.lost(),
            usual: None,
            recovered: None,
        }
    }

    /// The latency up to which a message is not part of a backlog; `None` without earlier messages.
    fn usual(&self) -> Option<Duration> {
        let (factor, additional) = TOLERATED;
        let quantile = self.earlier.quantile(USUAL)?;
        Some(quantile.value.mul_f64(factor) + additional)
    }

    /// Lost messages after the newest that has arrived.
    fn lost(&self) -> u64 {
        self.lost.iter().map(|[first, last]| last - first + 1).sum()
    }

    /// The longest one; `None` without a message, or if arrivals follow each other at once.
    pub(super) fn longest(&self) -> Option<Interruption> {
        let mut all = self.clone();
        while !all.pending.is_empty() {
            all.handle_next();
        }
        let begin = all.begin?;
        // The first message was due after the shortest latency.
        let due = begin + all.shortest_latency.unwrap_or_default();
        let first = all.first.map(|first| Interruption { start: due.min(first.end), ..first });
        let open = Interruption { is_open: true, ..all.gap(begin, all.end) };
        // Of several that are equally long, the last is found by `max_by_key`.
        let found = [Some(open), first, all.longest].into_iter().flatten();
        found.filter(|one| one.length() > Duration::ZERO).max_by_key(Interruption::length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::method::{Schedule, Summary};

    const RATE: f64 = 100.0;

    fn millis(at: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(at)
    }

    /// Messages every 10 ms from zero, each with the time of its arrival in milliseconds.
    fn longest(arrivals: impl IntoIterator<Item = Option<u64>>) -> Interruption {
        let mut summary = Summary::new(&Schedule::new(RATE, 1));
        for (sequence, arrival) in (0..).zip(arrivals) {
            let intended = millis(sequence * 10);
            let received = arrival.map(millis);
            summary.add(&Message {
                sequence,
                intended,
                sent: Some(intended),
                received,
                copies: u32::from(received.is_some()),
                ..Message::default()
            });
        }
        summary.interruption().unwrap()
    }

    #[test]
    fn messages_of_an_outage_without_retransmissions_are_lost() {
        // Messages 100 to 149 are lost.
        let found = longest((0..300).map(|number| {
            let is_lost = (100..150).contains(&number);
            (!is_lost).then_some(number * 10 + 5)
        }));
        assert_eq!((found.start, found.end), (millis(995), millis(1_505)));
        assert_eq!((found.lost, found.backlog), (50, 0));
        assert_eq!(found.drain(), Some(Duration::ZERO));
        let interval = Schedule::new(RATE, 1).interval();
        assert_eq!(found.survival_time(interval), Duration::from_millis(500));
    }

    #[test]
    fn a_message_in_transit_that_is_a_little_slower_is_no_backlog() {
        // Messages take 50 ms, and 52 ms after the outage: five are in transit when the first of
        // them arrives.
        let found = longest((0..300).map(|number| {
            let latency = if number < 100 { 50 } else { 52 };
            (!(100..150).contains(&number)).then_some(number * 10 + latency)
        }));
        assert_eq!((found.lost, found.backlog), (50, 0));
        assert_eq!(found.drain(), Some(Duration::ZERO));
    }

    #[test]
    fn the_backlog_of_an_outage_drains_in_order() {
        // From 1 s on nothing arrives until 2 s, then two messages in 5 ms: 100 messages wait, and
        // 100 more are sent meanwhile.
        let found = longest((0..500_u64).map(|number| {
            let usual = number * 10 + 5;
            Some(if number < 100 { usual } else { usual.max(2_000 + (number - 100) * 5) })
        }));
        assert_eq!((found.start, found.end, found.lost), (millis(995), millis(2_000), 0));
        assert_eq!(found.backlog, 100);
        // Message 299 is sent at 2.99 s and arrives at 2.995 s, 5 ms later.
        assert_eq!(found.drain(), Some(Duration::from_millis(995)));
    }

    /// The schedule ends during the outage.
    #[test]
    fn an_outage_until_the_end_of_the_schedule_is_at_least_as_long() {
        let found = longest((0..300).map(|number| (number < 80).then_some(number * 10 + 5)));
        assert_eq!((found.start, found.end), (millis(795), millis(2_990)));
        assert!(found.is_open && found.is_lower_bound() && !found.is_from_start);
        assert_eq!((found.lost, found.drain()), (220, None));
    }

    #[test]
    fn an_outage_before_the_first_arrival_is_at_least_as_long() {
        let found = longest((0..300).map(|number| (number >= 120).then_some(number * 10 + 5)));
        // The first message was due after 5 ms.
        assert_eq!((found.start, found.end), (millis(5), millis(1_205)));
        assert!(found.is_from_start && found.is_lower_bound() && !found.is_open);
        assert_eq!(found.lost, 120);
        // Without any arrival, the time is that of the schedule.
        let silent = longest((0..300).map(|_| None));
        assert_eq!((silent.length(), silent.lost), (Duration::from_millis(2_990), 300));
        assert!(silent.is_from_start && silent.is_open);
    }

    /// Messages that arrive in another order leave no gap. In the order of sequence numbers, the
    /// gap after one that took 400 ms longer was one of 405 ms, longer than the outage.
    #[test]
    fn gaps_are_those_between_arrivals_in_the_order_of_time() {
        let reordered = |number: u64| number * 10 + if number % 50 == 7 { 405 } else { 5 };
        let found = longest((0..300).map(|number| Some(reordered(number))));
        assert_eq!(found.length(), Duration::from_millis(20), "one of 50 is missing in its place");
        let outage = |number: u64| (120..150).contains(&number);
        let found = longest((0..300).map(|number| (!outage(number)).then_some(reordered(number))));
        assert_eq!((found.start, found.end), (millis(1_195), millis(1_475)));
        assert_eq!(found.lost, 28, "and two were sent later");
    }

    /// After the last message, none is due that could end the time until a late one.
    #[test]
    fn a_message_that_the_last_one_has_overtaken_is_no_gap() {
        let found =
            longest((0..300).map(|number| Some(number * 10 + if number == 290 { 405 } else { 5 })));
        assert_eq!(found.length(), Duration::from_millis(20));
        // The backlog of an outage arrives after the schedule.
        let found = longest((0..300).map(|number| {
            Some((number * 10 + 5).max(if number < 200 { 0 } else { 4_000 + number }))
        }));
        assert_eq!((found.start, found.end), (millis(1_995), millis(4_200)));
        assert!(!found.is_lower_bound());
    }

    /// Arrivals in the warm-up end the time before the first message that counts.
    #[test]
    fn only_the_time_after_the_warm_up_counts() {
        let mut summary = Summary::new(&Schedule::new(RATE, 1));
        for number in 0..200 {
            let phase = if number < 100 { Phase::WarmUp } else { Phase::Measured };
            let is_lost = (20..130).contains(&number);
            summary.add(&Message {
                sequence: number,
                intended: millis(number * 10),
                sent: Some(millis(number * 10)),
                received: (!is_lost).then(|| millis(number * 10 + 5)),
                copies: u32::from(!is_lost),
                phase,
                ..Message::default()
            });
        }
        let found = summary.interruption().unwrap();
        assert_eq!((found.start, found.end), (millis(1_000), millis(1_305)));
        assert_eq!((found.lost, found.is_lower_bound()), (30, false));
    }

    proptest! {
        /// Whatever arrives, in any order: the longest gap between the times of all arrivals.
        #[test]
        fn the_gap_is_that_of_the_sorted_arrivals(
            delays in prop::collection::vec(prop::option::of(0_u64..300), 2..100),
        ) {
            let arrival =
                |(number, delay): (u64, &Option<u64>)| delay.map(|delay| number * 10 + delay);
            let arrivals: Vec<_> = (0..).zip(&delays).map(arrival).collect();
            let mut sorted: Vec<_> = arrivals.iter().flatten().copied().collect();
            prop_assume!(sorted.len() > 1);
            sorted.sort_unstable();
            let overtaken = |pair: &&[u64]| arrivals[arrivals.len() - 1] <= Some(pair[0]);
            let pairs = sorted.windows(2);
            let pairs = pairs.take_while(|pair| arrivals.ends_with(&[None]) || !overtaken(pair));
            let between = pairs.map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            let after = (delays.len() as u64 - 1) * 10;
            let open = after.saturating_sub(sorted[sorted.len() - 1]);
            let first = sorted[0] - delays.iter().flatten().min().unwrap();
            let expected = between.max(open).max(first);
            prop_assume!(expected > 0);
            prop_assert_eq!(longest(arrivals).length(), Duration::from_millis(expected));
        }
    }

    #[test]
    fn a_shorter_interruption_after_the_longest_one_changes_nothing() {
        let arrivals = |lost: fn(u64) -> bool| {
            longest((0..300).map(|number| (!lost(number)).then_some(number * 10 + 5)))
        };
        let one = arrivals(|number| (100..150).contains(&number));
        assert_eq!(
            one,
            arrivals(|number| (100..150).contains(&number) || (200..220).contains(&number))
        );
        // A longer one takes its place.
        let longer = arrivals(|number| (50..60).contains(&number) || (100..150).contains(&number));
        assert_eq!(longer.lost, 50);
        assert_eq!(longer.start, one.start);
    }
}
