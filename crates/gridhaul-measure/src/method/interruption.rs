//! The longest time without an arrival in a run, and the recovery from it.

use gridhaul_scenario::units::{Duration, Instant};

use super::distribution::Distribution;
use super::message::Message;

/// Share of the earlier messages whose latency a message does not exceed after the backlog.
const USUAL: f64 = 0.98;

/// Factor and time by which a latency may exceed that of the earlier messages without being part of
/// a backlog: the growth that a trial of `rate` tolerates. Without it, scheduling of a few
/// microseconds would be a backlog of UDP, which has none.
const TOLERATED: (f64, Duration) = (1.1, Duration::from_millis(1));

/// A time without an arrival, and the messages around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// Last arrival before it.
    pub start: Instant,
    /// First arrival after it.
    pub end: Instant,
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

/// Finds the longest time without an arrival, in memory that does not depend on its length.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interruptions {
    last_arrival: Option<Instant>,
    /// Lost messages since the last arrival.
    lost: u64,
    longest: Option<Interruption>,
}

impl Interruption {
    /// Its length.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
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

    /// A further message.
    fn add(&mut self, message: &Message) {
        let is_earlier = message.sent.is_some_and(|sent| sent < self.end);
        match message.received {
            Some(at) if at >= self.end => {
                let is_usual = self.usual.is_some_and(|usual| {
                    message.latency_from_send().is_some_and(|latency| latency <= usual)
                });
                self.backlog += u64::from(is_earlier && !is_usual);
                if is_usual && self.recovered.is_none() {
                    self.recovered = Some(at);
                }
            }
            None if message.copies == 0 => self.lost += u64::from(is_earlier),
            _ => {}
        }
    }
}

impl Interruptions {
    /// Adds a message, in the order of sequence numbers; `earlier` are the latencies of those
    /// before.
    pub(super) fn add(&mut self, message: &Message, earlier: &Distribution) {
        let is_lost = message.sent.is_some() && message.copies == 0;
        let Some(at) = message.received else {
            self.lost += u64::from(is_lost);
            self.longest.iter_mut().for_each(|interruption| interruption.add(message));
            return;
        };
        let start = self.last_arrival.unwrap_or(at);
        let longest = self.longest.map_or(Duration::ZERO, |interruption| interruption.length());
        if at.since(start) > longest {
            let (factor, additional) = TOLERATED;
            let usual =
                earlier.quantile(USUAL).map(|quantile| quantile.value.mul_f64(factor) + additional);
            let lost = self.lost;
            let found = Interruption { start, end: at, backlog: 0, lost, usual, recovered: None };
            self.longest = Some(found);
        }
        self.longest.iter_mut().for_each(|interruption| interruption.add(message));
        self.last_arrival = self.last_arrival.max(Some(at));
        self.lost = 0;
    }

    /// The longest one; `None` with fewer than two arrivals.
    pub(super) const fn longest(&self) -> Option<Interruption> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
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
