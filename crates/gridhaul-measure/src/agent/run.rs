//! A run on two machines: one thread sends on schedule, one receives what comes back, one exchanges
//! times with the agent, and the calling thread accounts for the messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time;

use gridhaul_linux::Clock;
use gridhaul_scenario::units::{Duration, Instant};

use super::accounting::{Accounting, Converted, Quality};
use super::controller::{ControlEvent, Controller, ExchangeSchedule};
use super::ends::Ends;
use crate::clock::{ClockQuality, RemoteClock};
use crate::log::LogError;
use crate::method::{Message, Summary};
use crate::protocol::SendingEnd;
use crate::transfer::{CHECK, Generator, LEAD, Outcome, Plan, QUEUE, RunEvent, receive};

/// Time between two exchanges.
const INTERVAL: Duration = Duration::from_millis(50);

/// Exchanges before the first message.
const FIRST_EXCHANGES: usize = 20;

/// Time between two of them: the first message waits for all.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);

/// Longest time for them.
const FIRST_EXCHANGES_WITHIN: time::Duration = time::Duration::from_secs(20);

/// Events of the control channel that wait for the calling thread.
const CONTROL_QUEUE: usize = 1 << 12;

/// Where the rows of a run are written when they are known.
pub struct RemoteLogs<'a> {
    /// Messages to the agent, with the estimated times of arrival.
    pub one_way: &'a mut dyn FnMut(&Message) -> Result<(), LogError>,
    /// Messages that came back.
    pub round_trip: &'a mut dyn FnMut(&Message) -> Result<(), LogError>,
}

/// Result of a run on two machines.
#[derive(Debug)]
pub struct RemoteOutcome {
    /// Counts of the messages to the agent, and latencies from the estimated times of arrival.
    pub outcome: Outcome,
    /// The same messages: latencies from the schedule to the latest and from the send time to the
    /// earliest times of arrival that the exchanges permit.
    pub bounds: Summary,
    /// Messages that came back; `None` if the other end does not send them back.
    pub round_trip: Option<Summary>,
    /// Clock estimate from the exchanges; `None` before the first.
    pub clock: Option<ClockQuality>,
}

/// Sends the messages of a plan to a receiver at an agent. `observe` is called with the number of
/// messages that the schedule has reached. The run ends early when `stop` becomes `true`, or when
/// the agent is gone: rows until then are written, and the outcome has a fault.
pub fn measure_with_agent(
    plan: &Plan,
    controller: &mut Controller,
    ends: Ends,
    clock: Clock,
    logs: RemoteLogs<'_>,
    observe: &dyn Fn(u64),
    stop: &AtomicBool,
) -> RemoteOutcome {
    let (control, replies) = sync_channel(CONTROL_QUEUE);
    let (events, queue) = sync_channel(QUEUE);
    let (done, scheduled) = (AtomicBool::new(false), AtomicU64::new(0));
    // Both ends live until the last message has arrived.
    let SendingEnd { mut publisher, mut returns } = ends.sending;
    let (publisher, returns) = (&mut *publisher, returns.as_deref_mut());
    let is_returned = returns.is_some();
    thread::scope(|scope| {
        let (done, scheduled) = (&done, &scheduled);
        let schedule = ExchangeSchedule {
            first: FIRST_EXCHANGES as u64,
            first_interval: FIRST_INTERVAL,
            interval: INTERVAL,
        };
        scope.spawn(move || controller.run(clock, schedule, &control, done));
        let (remote, fault) = first_exchanges(&replies);
        let start = clock.now() + LEAD;
        let accounting = Accounting::new(plan.schedule, plan.horizon, start, remote, is_returned);
        let empty = || Summary::new(&plan.schedule);
        let mut run = Run {
            clock,
            start,
            accounting,
            logs,
            estimate: empty(),
            earliest: empty(),
            latest: empty(),
            round_trip: is_returned.then(empty),
            generated: false,
            fault,
            refusal: None,
        };
        if run.fault.is_none() {
            let departures = events.clone();
            let stops = [stop, done];
            scope.spawn(move || {
                let generator = Generator { plan, clock, start, scheduled, stops };
                generator.run(publisher, &departures);
            });
            if let Some(returns) = returns {
                scope.spawn(move || receive(returns, plan.run, &events, done));
            }
            run.account(&queue, &replies, scheduled, observe);
        }
        done.store(true, Ordering::Relaxed);
        // The threads do not block on queues without a reader.
        drop((queue, replies));
        run.finish(scheduled.load(Ordering::Relaxed), stop)
    })
}

/// The exchanges before the first message, or why there are none.
fn first_exchanges(replies: &Receiver<ControlEvent>) -> (RemoteClock, Option<String>) {
    let mut clock = RemoteClock::default();
    while clock.exchanges().len() < FIRST_EXCHANGES {
        match replies.recv_timeout(FIRST_EXCHANGES_WITHIN) {
            Ok(ControlEvent::Exchange(exchange)) => clock.push(exchange),
            Ok(ControlEvent::Report(_)) => {}
            Ok(ControlEvent::Lost(reason)) => return (clock, Some(reason)),
            Err(_) => return (clock, Some("the agent does not answer".into())),
        }
    }
    (clock, None)
}

/// The calling thread.
struct Run<'a> {
    clock: Clock,
    start: Instant,
    accounting: Accounting,
    logs: RemoteLogs<'a>,
    estimate: Summary,
    earliest: Summary,
    latest: Summary,
    round_trip: Option<Summary>,
    generated: bool,
    fault: Option<String>,
    refusal: Option<String>,
}

impl Run<'_> {
    fn account(
        &mut self,
        queue: &Receiver<RunEvent>,
        replies: &Receiver<ControlEvent>,
        scheduled: &AtomicU64,
        observe: &dyn Fn(u64),
    ) {
        loop {
            match queue.recv_timeout(CHECK) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The generator is over and nothing comes back: reports are still awaited.
                Err(RecvTimeoutError::Disconnected) => self.await_reply(replies),
            }
            queue.try_iter().take(QUEUE).for_each(|event| self.handle(event));
            replies.try_iter().take(CONTROL_QUEUE).for_each(|event| self.handle_control(event));
            while let Some(message) = self.accounting.poll_one_way() {
                self.add(&message);
            }
            while let Some(message) = self.accounting.poll_round_trip() {
                self.add_round_trip(&message);
            }
            let sent = scheduled.load(Ordering::Relaxed);
            observe(sent);
            if self.fault.is_some() || self.generated && self.accounting.is_complete(sent) {
                break;
            }
        }
    }

    fn await_reply(&mut self, replies: &Receiver<ControlEvent>) {
        if let Ok(event) = replies.recv_timeout(CHECK) {
            self.handle_control(event);
        }
    }

    fn handle(&mut self, event: RunEvent) {
        match event {
            RunEvent::Sent(sequence, at) => self.accounting.handle_sent(sequence, at),
            RunEvent::Refused(reason) => self.refusal = Some(reason),
            RunEvent::Generated => self.generated = true,
            RunEvent::Arrived(sequence, at) => self.accounting.handle_returned(sequence, at.read),
            RunEvent::Corrupt(sequence) => {
                self.accounting
                    .returns()
                    .into_iter()
                    .for_each(|ledger| ledger.handle_corrupt(sequence));
            }
            RunEvent::Foreign => {
                self.accounting.returns().into_iter().for_each(|ledger| ledger.handle_foreign());
            }
            RunEvent::Reconnected(at) => self.accounting.handle_reconnection(at),
            RunEvent::Failed(error) => {
                self.fault.get_or_insert_with(|| error.to_string());
            }
            // A run on two machines opens no captures.
            RunEvent::Seen(_) | RunEvent::Captured(_) => {}
        }
    }

    fn handle_control(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Exchange(exchange) => self.accounting.handle_exchange(exchange),
            ControlEvent::Report(report) => {
                self.accounting.handle_report(&report, self.clock.now());
            }
            ControlEvent::Lost(reason) => {
                self.fault.get_or_insert(reason);
            }
        }
    }

    /// Adds a message to the summaries and the log. When the log fails, the run ends; the summaries
    /// stay complete.
    fn add(&mut self, message: &Converted) {
        self.estimate.add(&message.estimate);
        self.earliest.add(&message.earliest);
        self.latest.add(&message.latest);
        if let Err(error) = (self.logs.one_way)(&message.estimate) {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }

    fn add_round_trip(&mut self, message: &Message) {
        self.round_trip.iter_mut().for_each(|summary| summary.add(message));
        if let Err(error) = (self.logs.round_trip)(message) {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }

    fn finish(mut self, sent: u64, stop: &AtomicBool) -> RemoteOutcome {
        let is_complete = self.fault.is_none();
        self.accounting.finish(sent, is_complete);
        while let Some(message) = self.accounting.poll_round_trip_rest(sent) {
            self.add_round_trip(&message);
        }
        while let Some(message) = self.accounting.poll_rest() {
            self.add(&message);
        }
        if self.fault.is_none() && stop.load(Ordering::Relaxed) {
            self.fault = Some("interrupted".into());
        }
        let Quality { error, unknown, impossible } = self.accounting.quality();
        let clock = ClockQuality::new(self.accounting.exchanges(), error, [unknown, impossible]);
        let mut bounds = self.latest;
        bounds.from_send = self.earliest.from_send;
        RemoteOutcome {
            outcome: Outcome {
                summary: self.estimate,
                start: self.start,
                arrivals: self.accounting.arrivals(),
                reconnections: self.accounting.reconnections().to_vec(),
                fault: self.fault,
                messages_not_counted: self.accounting.not_counted(),
                refusal: self.refusal,
                capture: None,
            },
            bounds,
            round_trip: self.round_trip,
            clock,
        }
    }
}
