//! Accounting of the messages of a run on two machines, without input or output.
//!
//! A message is closed when the agent has reported everything that arrived within its horizon; its
//! time of arrival is converted when enough later exchanges are known. Therefore the memory is
//! bounded by the rate times the horizon and some seconds.

use std::collections::{BTreeMap, VecDeque};

use gridhaul_protocols::control_channel::Report;
use gridhaul_scenario::units::{Duration, Instant};

use crate::clock::{Exchange, LocalTime, RemoteClock};
use crate::method::{Arrivals, Ledger, Message, REPORTED_WITHIN, Schedule};

/// Time after the last arrival in which duplicates are still expected.
const DUPLICATES_WITHIN: Duration = Duration::from_millis(200);

/// Messages in both directions, and the exchanges with the clock of the agent.
#[derive(Debug)]
pub struct Accounting {
    schedule: Schedule,
    horizon: Duration,
    /// Start of the schedule on the local clock.
    start: Instant,
    one_way: Ledger,
    /// Messages that the other end sends back; `None` if it does not.
    round_trip: Option<Ledger>,
    clock: RemoteClock,
    /// Times of arrival of open messages.
    arrivals: BTreeMap<u64, Arrival>,
    /// Closed messages whose time of arrival is not converted yet.
    waiting: VecDeque<(Message, Option<Arrival>)>,
    /// Number of closed messages.
    closed: u64,
    /// Since the start of the schedule: everything that arrived before is reported.
    covered: Instant,
    last_arrival: Instant,
    after_horizon: u64,
    foreign: u64,
    quality: Quality,
}

/// Results from the times of arrival of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quality {
    /// Largest error of a time.
    pub error: Option<Duration>,
    /// Messages next to a step of the clock.
    pub unknown: u64,
    /// Messages that arrived before they were sent.
    pub impossible: u64,
}

/// A time of arrival on the clock of the agent, before an exchange.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    exchange: usize,
    remote: i64,
}

/// A closed message with its time of arrival on the local clock. If the time is unknown, the
/// message has copies and no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converted {
    /// Arrival not earlier than this.
    pub earliest: Message,
    /// Estimate.
    pub estimate: Message,
    /// Arrival not later than this.
    pub latest: Message,
}

impl Accounting {
    /// A run whose schedule starts at `start` on the local clock, after these exchanges.
    /// `is_returned` if the other end sends messages back.
    #[must_use]
    pub fn new(
        schedule: Schedule,
        horizon: Duration,
        start: Instant,
        clock: RemoteClock,
        is_returned: bool,
    ) -> Self {
        Self {
            schedule,
            horizon,
            start,
            one_way: Ledger::new(schedule, horizon),
            round_trip: is_returned.then(|| Ledger::new(schedule, horizon)),
            clock,
            arrivals: BTreeMap::new(),
            waiting: VecDeque::new(),
            closed: 0,
            covered: Instant::ZERO,
            last_arrival: Instant::ZERO,
            after_horizon: 0,
            foreign: 0,
            quality: Quality::default(),
        }
    }

    /// A message was handed to the protocol.
    pub fn handle_sent(&mut self, sequence: u64, at: Instant) {
        let at = self.since_start(at);
        self.one_way.handle_sent(sequence, at);
        self.round_trip.iter_mut().for_each(|ledger| ledger.handle_sent(sequence, at));
    }

    /// The messages that come back, if they do.
    pub const fn returns(&mut self) -> Option<&mut Ledger> {
        self.round_trip.as_mut()
    }

    /// An intact message came back.
    pub fn handle_returned(&mut self, sequence: u64, at: Instant) {
        let at = self.since_start(at);
        self.last_arrival = self.last_arrival.max(at);
        self.round_trip.iter_mut().for_each(|ledger| ledger.handle_arrival(sequence, at));
    }

    /// The connection of the end that receives returned messages was lost, and is back.
    pub fn handle_reconnection(&mut self, at: Instant) {
        let at = self.since_start(at);
        self.round_trip.iter_mut().for_each(|ledger| ledger.handle_reconnection(at));
    }

    /// The next exchange is complete.
    pub fn handle_exchange(&mut self, exchange: Exchange) {
        self.clock.push(exchange);
    }

    /// A report of the agent arrived, for an exchange that is complete.
    pub fn handle_report(&mut self, report: &Report, now: Instant) {
        let now = self.since_start(now);
        let exchange = report.number as usize;
        for &(sequence, remote) in &report.arrivals {
            if (self.closed..self.schedule.total()).contains(&sequence) {
                self.arrivals.entry(sequence).or_insert(Arrival { exchange, remote });
            }
            // Whether the message arrived within its horizon is decided when its time of arrival
            // has been converted: the report is later than the arrival by up to the interval of the
            // exchanges and half a round trip.
            let in_time = self.schedule.intended(sequence.min(self.schedule.total()));
            self.one_way.handle_arrival(sequence, in_time);
            self.last_arrival = now;
        }
        report.corrupt.iter().for_each(|&sequence| self.one_way.handle_corrupt(sequence));
        self.foreign = self.foreign.saturating_add(report.foreign);
        if report.reconnections > 0 {
            self.one_way.handle_reconnection(now);
        }
        let sent = self.clock.exchanges().get(exchange).map(|exchange| exchange.sent);
        if let (Some(sent), false) = (sent, report.is_continued) {
            let sent = self.since_start(Instant::from_nanos(sent.max(0) as u64));
            self.covered = self.covered.max(sent);
        }
        while let Some(message) = self.one_way.poll_closed(self.covered) {
            self.close(message);
        }
    }

    /// The next message whose time of arrival is known as well as it will be.
    pub fn poll_one_way(&mut self) -> Option<Converted> {
        let (_, arrival) = self.waiting.front()?;
        let is_settled = arrival.is_none_or(|arrival| self.clock.is_settled(arrival.exchange));
        if is_settled { self.convert() } else { None }
    }

    /// The next closed message that was to be sent back.
    pub fn poll_round_trip(&mut self) -> Option<Message> {
        // Without reports the agent may be gone: its silence is no loss of messages.
        self.round_trip.as_mut()?.poll_closed(self.covered)
    }

    /// Whether no more arrivals of the first `sent` messages are expected.
    #[must_use]
    pub fn is_complete(&self, sent: u64) -> bool {
        let Some(last) = sent.checked_sub(1) else { return true };
        let end = self.schedule.intended(last) + self.horizon + REPORTED_WITHIN;
        let is_over = self.covered >= end;
        let has_settled = self.covered >= self.last_arrival + DUPLICATES_WITHIN;
        let ledgers = || std::iter::once(&self.one_way).chain(&self.round_trip);
        is_over || has_settled && !ledgers().any(|ledger| ledger.is_awaiting(sent))
    }

    /// Closes the first `sent` messages regardless of their horizon, at the end of a run. If the
    /// run is not complete, those whose horizon had not passed by the last report are discarded.
    pub fn finish(&mut self, sent: u64, is_complete: bool) {
        if !is_complete {
            self.one_way.discard_open(sent);
            self.round_trip.iter_mut().for_each(|ledger| ledger.discard_open(sent));
        }
        while let Some(message) = self.one_way.poll_rest(sent) {
            self.close(message);
        }
    }

    /// The next of the messages that are closed, at the end of a run.
    pub fn poll_rest(&mut self) -> Option<Converted> {
        self.convert()
    }

    /// The next of the first `sent` messages that were to be sent back, at the end of a run.
    pub fn poll_round_trip_rest(&mut self, sent: u64) -> Option<Message> {
        self.round_trip.as_mut()?.poll_rest(sent)
    }

    /// Messages to the agent that are not counted: at the last report, their horizon had not
    /// passed.
    #[must_use]
    pub const fn not_counted(&self) -> u64 {
        self.one_way.not_counted()
    }

    /// Arrivals at the agent that belong to no message of the log.
    #[must_use]
    pub const fn arrivals(&self) -> Arrivals {
        let Arrivals { after_horizon, unidentified, .. } = self.one_way.arrivals();
        Arrivals {
            after_horizon: after_horizon + self.after_horizon,
            unidentified,
            foreign: self.foreign,
        }
    }

    /// Times at which a connection of the agent was back, since the start of the schedule.
    #[must_use]
    pub fn reconnections(&self) -> &[Instant] {
        self.one_way.reconnections()
    }

    /// All exchanges.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        self.clock.exchanges()
    }

    /// Quality of the times of arrival so far.
    #[must_use]
    pub const fn quality(&self) -> Quality {
        self.quality
    }

    fn close(&mut self, message: Message) {
        self.closed = message.sequence + 1;
        let later = self.arrivals.split_off(&self.closed);
        let arrival = self.arrivals.remove(&message.sequence);
        self.arrivals = later;
        self.waiting.push_back((message, arrival));
    }

    fn convert(&mut self) -> Option<Converted> {
        let (message, arrival) = self.waiting.pop_front()?;
        let Some(arrival) = arrival else {
            return Some(Converted { earliest: message, estimate: message, latest: message });
        };
        let Some(time) = self.clock.convert(arrival.exchange, arrival.remote) else {
            self.quality.unknown += 1;
            let message = Message { received: None, ..message };
            return Some(Converted { earliest: message, estimate: message, latest: message });
        };
        Some(self.converted(message, time))
    }

    fn converted(&mut self, message: Message, time: LocalTime) -> Converted {
        let since_start = |nanos: i64| {
            let since = nanos.saturating_sub(self.start.as_nanos() as i64);
            Instant::from_nanos(since.max(0) as u64)
        };
        let [earliest, estimate, latest] =
            [time.earliest, time.estimate, time.latest].map(since_start);
        if earliest > message.intended + self.horizon {
            self.after_horizon += 1;
            let lost = Message { received: None, copies: 0, reordered: false, ..message };
            return Converted { earliest: lost, estimate: lost, latest: lost };
        }
        let error = Duration::from_nanos((time.latest - time.earliest).max(0) as u64 / 2);
        self.quality.error = self.quality.error.max(Some(error));
        self.quality.impossible += u64::from(message.sent.is_some_and(|sent| latest < sent));
        let at = |received| Message { received: Some(received), ..message };
        Converted { earliest: at(earliest), estimate: at(estimate), latest: at(latest) }
    }

    /// Time since the start of the schedule.
    fn since_start(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(self.start)
    }
}

#[cfg(test)]
#[path = "accounting_tests.rs"]
mod tests;
