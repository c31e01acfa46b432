//! A run: one thread sends on schedule, one receives, and the calling thread accounts for the
//! messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time;

use gridhaul_linux::{Clock, SleepBudget, pin_to_processor, request_realtime_priority};
use gridhaul_protocols::capture::{MessageScanner, Route, Sighting};
use gridhaul_protocols::message_header::{HEADER_BYTES, Header, HeaderError};
use gridhaul_scenario::units::{Duration, Instant};

use crate::capture::{CaptureReport, Recording};
use crate::log::LogError;
use crate::method::{
    Arrivals, Ledger, Message, REPORTED_WITHIN, ReceiveTimes, Schedule, Summary, sleep_until,
};
use crate::place::Sites;
use crate::protocol::{Protocol, ProtocolError, Publisher, Received, Subscriber};

/// Events between the threads of a run. A full queue delays the generator, whose lateness is in the
/// result.
pub(crate) const QUEUE: usize = 1 << 16;

/// Time between the connection and the first message, in which the threads of the run start.
pub(crate) const LEAD: Duration = Duration::from_millis(100);

/// Time after the last arrival in which duplicates are still expected.
const DUPLICATES_WITHIN: Duration = Duration::from_millis(200);

/// Longest time for which the end of a run waits for the thread that sends, after a fault.
const GENERATOR_END: Duration = Duration::from_millis(200);

/// Longest time for which the end of a run waits for the thread that reads captured packets.
const CAPTURE_END: Duration = Duration::from_secs(5);

/// Longest time between two checks of the accounting thread.
pub(crate) const CHECK: time::Duration = time::Duration::from_millis(20);

/// Settings of a run that do not depend on the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// When messages are sent.
    pub schedule: Schedule,
    /// Bytes of a message, at least [`HEADER_BYTES`].
    pub bytes: usize,
    /// Time after which a message is lost.
    pub horizon: Duration,
    /// Processor of the generator; `None` for any.
    pub processor: Option<usize>,
    /// Number of the run, by which its messages are recognised.
    pub run: u32,
    /// Route on which packets are captured; `None` without captures.
    pub capture: Option<Route>,
}

impl Plan {
    /// Opens the captures, if there are any.
    fn recording(&self, sites: &Sites<'_>) -> Result<Option<Recording>, ProtocolError> {
        let scanner = MessageScanner::new(self.run, self.schedule.total(), self.bytes);
        self.capture.map(|route| Recording::open(sites, route, &scanner)).transpose()
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Counts and distributions.
    pub summary: Summary,
    /// Start of the schedule on the clock of the network.
    pub start: Instant,
    /// Arrivals that belong to no message of the log.
    pub arrivals: Arrivals,
    /// Times at which a connection was back.
    pub reconnections: Vec<Instant>,
    /// Error that ended the run early, or an interruption; the messages whose horizon had passed
    /// then are counted.
    pub fault: Option<String>,
    /// Messages of the schedule that are not counted, because the fault occurred before their
    /// horizon: some of them may have arrived.
    pub messages_not_counted: u64,
    /// Last reason for which the protocol refused a message.
    pub refusal: Option<String>,
    /// How complete the captures are; `None` without captures.
    pub capture: Option<CaptureReport>,
}

/// Connects a protocol, sends the messages of a plan, and passes each message to `log` when it is
/// closed. `observe` is called with the number of messages that the schedule has reached. The run
/// ends early when `stop` becomes `true`.
///
/// # Errors
/// The protocol cannot connect, or packets cannot be captured. Later errors are in
/// [`Outcome::fault`].
pub fn measure(
    plan: &Plan,
    protocol: &dyn Protocol,
    sites: &Sites<'_>,
    log: &mut dyn FnMut(&Message) -> Result<(), LogError>,
    observe: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Outcome, ProtocolError> {
    let clock = sites.clock;
    // The captures must see the connections begin.
    let recording = plan.recording(sites)?;
    let connected = protocol.connect(sites)?;
    let start = clock.now() + LEAD;
    let (events, queue) = sync_channel(QUEUE);
    let scheduled = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let has_ended = AtomicBool::new(false);
    let stops = [stop, &has_ended];
    let generator = Generator { plan, clock, start, scheduled: &scheduled, stops };
    // Both ends live until the last message has arrived.
    let (mut publisher, mut subscriber) = (connected.publisher, connected.subscriber);
    let (publisher, subscriber) = (&mut *publisher, &mut *subscriber);
    let mut accounting = Accounting {
        clock,
        start,
        ledger: Ledger::new(plan.schedule, plan.horizon),
        summary: Summary::new(&plan.schedule),
        log,
        generated: false,
        captured: recording.is_none(),
        capture: None,
        last_arrival: Instant::ZERO,
        fault: None,
        refusal: None,
    };
    thread::scope(|scope| {
        let departures = events.clone();
        let (done, has_ended) = (&done, &has_ended);
        if let Some(recording) = recording {
            let sightings = events.clone();
            scope.spawn(move || capture(recording, &sightings, has_ended));
        }
        scope.spawn(move || generator.run(publisher, &departures));
        scope.spawn(move || receive(subscriber, plan.run, &events, done));
        accounting.run(plan, &queue, &scheduled, observe);
        has_ended.store(true, Ordering::Relaxed);
        accounting.finish(&queue, &scheduled);
        done.store(true, Ordering::Relaxed);
        // The threads do not block on a queue without a reader.
        drop(queue);
    });
    if accounting.fault.is_none() && stop.load(Ordering::Relaxed) {
        accounting.fault = Some("interrupted".into());
    }
    Ok(accounting.outcome())
}

/// Reports of the threads.
pub(crate) enum RunEvent {
    Sent(u64, Instant),
    Refused(String),
    Generated,
    Arrived(u64, ReceiveTimes),
    Seen(Sighting),
    Captured(CaptureReport),
    Corrupt(Option<u64>),
    Foreign,
    Reconnected(Instant),
    Failed(ProtocolError),
}

/// The thread that sends.
pub(crate) struct Generator<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) start: Instant,
    pub(crate) scheduled: &'a AtomicU64,
    /// The run was interrupted, or has ended with a fault.
    pub(crate) stops: [&'a AtomicBool; 2],
}

impl Generator<'_> {
    pub(crate) fn run(&self, publisher: &mut dyn Publisher, events: &SyncSender<RunEvent>) {
        request_realtime_priority();
        self.plan.processor.into_iter().for_each(pin_to_processor);
        let mut budget = SleepBudget::default();
        let mut message = payload(self.plan.bytes.max(HEADER_BYTES));
        let is_stopped = || self.stops.iter().any(|stop| stop.load(Ordering::Relaxed));
        for sequence in 0..self.plan.schedule.total() {
            Header { run: self.plan.run, sequence }.write(&mut message);
            let since_start = self.plan.schedule.intended(sequence).since(Instant::ZERO);
            sleep_until(self.start + since_start, self.clock, &mut budget, is_stopped);
            if is_stopped() {
                break;
            }
            let at = self.clock.now();
            let event = match publisher.publish(&message) {
                Ok(()) => RunEvent::Sent(sequence, at),
                Err(refused) => RunEvent::Refused(refused.to_string()),
            };
            self.scheduled.store(sequence + 1, Ordering::Relaxed);
            if events.send(event).is_err() {
                return;
            }
        }
        let _ = events.send(RunEvent::Generated);
    }
}

/// Bytes of a message. Their values do not matter to any protocol here; they are not constant, so
/// that no layer below can compress them.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The thread that receives.
pub(crate) fn receive(
    subscriber: &mut dyn Subscriber,
    run: u32,
    events: &SyncSender<RunEvent>,
    done: &AtomicBool,
) {
    if !subscriber.is_polling() {
        request_realtime_priority();
    }
    let mut message = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let event = match subscriber.receive(&mut message) {
            Ok(Received::Nothing) => continue,
            Ok(Received::Reconnected(at)) => RunEvent::Reconnected(at),
            Ok(Received::Message(at)) => match Header::read(&message, run) {
                Ok(header) => RunEvent::Arrived(header.sequence, at),
                Err(HeaderError::Corrupt { sequence }) => RunEvent::Corrupt(Some(sequence)),
                Err(HeaderError::Truncated(_)) => RunEvent::Corrupt(None),
                Err(HeaderError::Foreign) => RunEvent::Foreign,
            },
            Err(error) => {
                let _ = events.send(RunEvent::Failed(error));
                return;
            }
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

/// The thread that reads captured packets.
fn capture(recording: Recording, events: &SyncSender<RunEvent>, has_ended: &AtomicBool) {
    let report = recording.run(has_ended, |sighting| {
        // Sending fails only after the accounting thread has given up waiting for the report.
        let _ = events.send(RunEvent::Seen(sighting));
    });
    let _ = events.send(RunEvent::Captured(report));
}

/// The calling thread.
struct Accounting<'a> {
    clock: Clock,
    start: Instant,
    ledger: Ledger,
    summary: Summary,
    log: &'a mut dyn FnMut(&Message) -> Result<(), LogError>,
    generated: bool,
    /// All captured packets have been read.
    captured: bool,
    capture: Option<CaptureReport>,
    last_arrival: Instant,
    fault: Option<String>,
    refusal: Option<String>,
}

impl Accounting<'_> {
    fn run(
        &mut self,
        plan: &Plan,
        queue: &Receiver<RunEvent>,
        scheduled: &AtomicU64,
        observe: &dyn Fn(u64),
    ) {
        loop {
            match queue.recv_timeout(CHECK) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // What was reported before this time is handled before messages are closed.
            let now = self.since_start(self.clock.now());
            queue.try_iter().take(QUEUE).for_each(|event| self.handle(event));
            if self.fault.is_none() {
                while let Some(message) = self.ledger.poll_closed(now) {
                    self.close(&message);
                }
            }
            let sent = scheduled.load(Ordering::Relaxed);
            observe(sent);
            if self.fault.is_some() || self.generated && self.is_complete(plan, sent, now) {
                break;
            }
        }
    }

    /// Awaits the end of the generator after a fault, and the rest of the captures, and closes the
    /// remaining messages.
    fn finish(&mut self, queue: &Receiver<RunEvent>, scheduled: &AtomicU64) {
        let (begin, captured_until) = (self.clock.now(), self.clock.now() + CAPTURE_END);
        let awaits_generator = |accounting: &Self| {
            accounting.fault.is_some()
                && !accounting.generated
                && accounting.clock.now() < begin + GENERATOR_END
        };
        while awaits_generator(self) || !self.captured && self.clock.now() < captured_until {
            queue.recv_timeout(CHECK).into_iter().for_each(|event| self.handle(event));
        }
        queue.try_iter().take(QUEUE).for_each(|event| self.handle(event));
        let sent = scheduled.load(Ordering::Relaxed);
        if self.fault.is_some() {
            self.ledger.discard_open(sent);
        }
        while let Some(message) = self.ledger.poll_rest(sent) {
            self.close(&message);
        }
    }

    /// Whether no more arrivals are expected.
    fn is_complete(&self, plan: &Plan, sent: u64, now: Instant) -> bool {
        let Some(last) = sent.checked_sub(1) else { return true };
        let has_settled = now >= self.last_arrival + DUPLICATES_WITHIN;
        let is_over = now >= plan.schedule.intended(last) + plan.horizon + REPORTED_WITHIN;
        is_over || has_settled && !self.ledger.is_awaiting(sent)
    }

    fn handle(&mut self, event: RunEvent) {
        match event {
            RunEvent::Sent(sequence, at) => self.ledger.handle_sent(sequence, self.since_start(at)),
            RunEvent::Refused(reason) => self.refusal = Some(reason),
            RunEvent::Generated => self.generated = true,
            RunEvent::Arrived(sequence, at) => {
                self.last_arrival = self.since_start(at.read);
                let kernel = at.kernel.map(|at| self.since_start(at));
                let times = ReceiveTimes { read: self.last_arrival, kernel };
                self.ledger.handle_arrival(sequence, times);
            }
            RunEvent::Seen(Sighting { sequence, point, at }) => {
                self.ledger.handle_capture(sequence, point, self.since_start(at));
            }
            RunEvent::Captured(report) => {
                self.captured = true;
                self.capture = Some(report);
            }
            RunEvent::Corrupt(sequence) => self.ledger.handle_corrupt(sequence),
            RunEvent::Foreign => self.ledger.handle_foreign(),
            RunEvent::Reconnected(at) => self.ledger.handle_reconnection(self.since_start(at)),
            RunEvent::Failed(error) => self.fault = Some(error.to_string()),
        }
    }

    /// Adds a closed message to the summary and the log. When the log fails, the run ends; the
    /// summary stays complete.
    fn close(&mut self, message: &Message) {
        self.summary.add(message);
        if let Err(error) = (self.log)(message) {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }

    /// Time since the start of the schedule.
    fn since_start(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(self.start)
    }

    fn outcome(self) -> Outcome {
        Outcome {
            start: self.start,
            arrivals: self.ledger.arrivals(),
            reconnections: self.ledger.reconnections().to_vec(),
            summary: self.summary,
            fault: self.fault,
            messages_not_counted: self.ledger.not_counted(),
            refusal: self.refusal,
            capture: self.capture,
        }
    }
}
