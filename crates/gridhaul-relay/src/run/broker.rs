//! The thread that delivers the records of a head to an MQTT broker.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time;

use gridhaul_linux::Clock;
use gridhaul_scenario::relay::{MqttDelivery, MqttPayload};
use gridhaul_scenario::units::{Duration, Instant};
use rumqttc::{Client, Connection, Event, MqttOptions, NetworkOptions, Outgoing, Packet, QoS};

use super::backoff::Backoff;
use super::cursor::Cursor;
use super::log_folder::random;
use super::poll::Waker;
use super::sink::LogStart;
use super::{Level, RunError, report};
use crate::head::{Content, Deliveries, Publications};
use crate::log::Folder;

/// Interval in which the delivered position is saved.
const SAVE: Duration = Duration::from_secs(1);

/// Longest time for which the thread waits.
const IDLE: time::Duration = time::Duration::from_secs(3_600);

/// Largest packet: a record as hexadecimal digits, and its names.
const PACKET_MAX: usize = 1 << 20;

/// Interval of packets on an idle connection, after which a broker that is lost is detected.
const KEEP_ALIVE: time::Duration = time::Duration::from_secs(10);

/// Seconds within which the broker must accept a connection.
const CONNECT_LIMIT: u64 = 5;

/// The delivering thread.
#[derive(Debug)]
pub(super) struct BrokerSink {
    inputs: Sender<Input>,
    delivered: Arc<AtomicU64>,
    failure: Arc<Mutex<Option<RunError>>>,
}

/// What the thread waits for. Inputs of connections state their number: an earlier connection may still report.
#[derive(Debug)]
enum Input {
    /// Records up to this position of the log are durable.
    Limit(u64),
    Connected(u64),
    /// Messages were sent, and acknowledged, with these packet identifiers.
    Sent(u64, u16),
    Acknowledged(u64, u16),
    Failed(u64, String),
    /// The head has ended.
    End,
}

impl BrokerSink {
    /// Continues after the records that were delivered before.
    pub(super) fn start(
        name: &str,
        config: &MqttDelivery,
        (folder, log_folder): (&Path, &Path),
        log: LogStart,
        head: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let options = options(name, config, folder)?;
        let (inputs, received) = channel();
        let cursor = Cursor::open(log_folder, log.epoch, (log.start, log.end));
        let sink = Self {
            inputs: inputs.clone(),
            delivered: Arc::new(AtomicU64::new(cursor.position())),
            failure: Arc::new(Mutex::new(None)),
        };
        let (delivered, failure) = (Arc::clone(&sink.delivered), Arc::clone(&sink.failure));
        let config = config.clone();
        thread::spawn(move || {
            let channel = (inputs, received);
            let waker = Arc::clone(&head);
            let worker = Worker::new(&config, options, (log, cursor), channel, (delivered, waker));
            if let Err(error) = worker.and_then(|mut worker| worker.run()) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                head.wake();
            }
        });
        Ok(sink)
    }

    /// Records up to this position of the log are durable.
    pub(super) fn deliver(&self, limit: u64) {
        // If the thread has ended, its failure is reported.
        let _ = self.inputs.send(Input::Limit(limit));
    }

    /// Position of the log before which the broker has acknowledged all records.
    pub(super) fn delivered(&self) -> Result<u64, RunError> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(self.delivered.load(Ordering::Acquire)),
        }
    }
}

impl Drop for BrokerSink {
    fn drop(&mut self) {
        let _ = self.inputs.send(Input::End);
    }
}

fn options(name: &str, config: &MqttDelivery, folder: &Path) -> Result<MqttOptions, RunError> {
    let (host, port) = config.broker.rsplit_once(':').unwrap_or((&config.broker, ""));
    // The client resolves a text with a colon as an IPv6 address in brackets.
    let mut options =
        MqttOptions::new(format!("gridhaul-{name}"), host, port.parse().unwrap_or(1_883));
    options.set_keep_alive(KEEP_ALIVE).set_inflight(config.in_flight);
    options.set_max_packet_size(PACKET_MAX, PACKET_MAX);
    if let Some(user) = &config.user_name {
        let password = match &config.password_file {
            None => String::new(),
            Some(file) => fs::read_to_string(folder.join(file)).map_err(|error| {
                RunError::Unsupported(format!(
                    "head.deliver.mqtt.password_file: {file}: {error}\n  \
                     help: the file must exist, and the user of the relay must be permitted to read it"
                ))
            })?,
        };
        options.set_credentials(user, password.trim_end_matches(['\r', '\n']));
    }
    Ok(options)
}

struct Worker {
    broker: String,
    options: MqttOptions,
    in_flight: usize,
    deliveries: Deliveries<Folder>,
    cursor: Cursor,
    /// End of the durable records.
    limit: u64,
    publications: Publications,
    state: State,
    /// Number of the connection.
    number: u64,
    backoff: Backoff,
    clock: Clock,
    inputs: Receiver<Input>,
    sender: Sender<Input>,
    delivered: Arc<AtomicU64>,
    head: Arc<Waker>,
    next_save: Instant,
    /// Message of the last failure, so that each is reported once.
    reported: String,
}

enum State {
    Waiting(Instant),
    Connecting(Client),
    Connected(Client),
}

impl Worker {
    fn new(
        config: &MqttDelivery,
        options: MqttOptions,
        (log, cursor): (LogStart, Cursor),
        (sender, inputs): (Sender<Input>, Receiver<Input>),
        (delivered, head): (Arc<AtomicU64>, Arc<Waker>),
    ) -> Result<Self, RunError> {
        let mut deliveries =
            Deliveries::new(log.storage.clone(), log.epoch, &log.snapshot, log.start);
        // Records that were delivered before restore the state of the meters.
        while deliveries.position() < cursor.position()
            && deliveries.next(cursor.position(), |_| {})?
        {}
        let content = match config.payload {
            MqttPayload::Json => Content::Json,
            MqttPayload::Data => Content::Data,
        };
        Ok(Self {
            broker: config.broker.clone(),
            options,
            in_flight: config.in_flight.into(),
            publications: Publications::new(&config.topic, content, deliveries.position()),
            deliveries,
            cursor,
            limit: log.end,
            state: State::Waiting(Instant::ZERO),
            number: 0,
            backoff: Backoff::new(Instant::ZERO),
            clock: Clock::starts_in(Duration::ZERO),
            inputs,
            sender,
            delivered,
            head,
            next_save: Instant::ZERO,
            reported: String::new(),
        })
    }

    /// Delivers until the head has ended.
    fn run(&mut self) -> Result<(), RunError> {
        loop {
            let now = self.clock.now();
            if matches!(self.state, State::Waiting(at) if at <= now) {
                self.connect();
            }
            self.read()?;
            self.publish();
            self.note_position(now);
            let timeout = self.clock.until(self.deadline()).min(IDLE);
            let first = match self.inputs.recv_timeout(timeout) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let rest: Vec<Input> = self.inputs.try_iter().collect();
            for input in first.into_iter().chain(rest) {
                if matches!(input, Input::End) {
                    self.save();
                    return Ok(());
                }
                self.handle(input);
            }
        }
    }

    fn deadline(&self) -> Instant {
        let is_saved = self.cursor.position() == self.publications.position();
        let save = if is_saved { Instant::NEVER } else { self.next_save };
        match self.state {
            State::Waiting(at) => save.min(at),
            _ => save,
        }
    }

    /// Begins a connection, whose events a thread forwards.
    fn connect(&mut self) {
        self.number += 1;
        let (client, mut connection) = Client::new(self.options.clone(), self.in_flight);
        let mut network = NetworkOptions::new();
        network.set_tcp_nodelay(true);
        network.set_connection_timeout(CONNECT_LIMIT);
        connection.eventloop.set_network_options(network);
        let (number, sender) = (self.number, self.sender.clone());
        thread::spawn(move || forward(number, &mut connection, &sender));
        self.state = State::Connecting(client);
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Limit(limit) => self.limit = limit,
            Input::Connected(number) if number == self.number => {
                let waiting = State::Waiting(Instant::NEVER);
                self.state = match std::mem::replace(&mut self.state, waiting) {
                    State::Connecting(client) => State::Connected(client),
                    other => other,
                };
                self.backoff.handle_established(self.clock.now());
                if !self.reported.is_empty() {
                    self.reported.clear();
                    report(Level::Notice, &format!("broker {}: connected again", self.broker));
                }
            }
            Input::Sent(number, packet) if number == self.number => {
                self.publications.handle_sent(packet);
            }
            Input::Acknowledged(number, packet) if number == self.number => {
                self.publications.handle_acknowledged(packet);
            }
            Input::Failed(number, error) if number == self.number => self.fail(&error),
            _ => {}
        }
    }

    fn fail(&mut self, error: &str) {
        self.number += 1;
        self.publications.handle_disconnected();
        self.state = State::Waiting(self.backoff.handle_failure(self.clock.now(), random()));
        if self.reported != error {
            self.reported = error.to_owned();
            let text = format!("broker {}: {error}; records stay in the log", self.broker);
            report(Level::Warning, &text);
        }
    }

    /// Reads records from the log, as long as more messages may be in flight.
    fn read(&mut self) -> Result<(), RunError> {
        while self.publications.len() < self.in_flight {
            let Self { deliveries, publications, limit, .. } = self;
            if !deliveries.next(*limit, |delivery| publications.push(&delivery))? {
                return Ok(());
            }
            publications.end_entry(deliveries.position());
        }
        Ok(())
    }

    fn publish(&mut self) {
        let State::Connected(client) = &self.state else { return };
        while self.publications.can_publish(self.in_flight)
            && let Some((topic, payload)) = self.publications.poll_publish()
        {
            if let Err(error) = client.try_publish(topic, QoS::AtLeastOnce, false, payload) {
                return self.fail(&error.to_string());
            }
        }
    }

    fn note_position(&mut self, now: Instant) {
        let position = self.publications.position();
        if self.delivered.swap(position, Ordering::AcqRel) != position {
            self.head.wake();
        }
        if now >= self.next_save {
            self.next_save = now + SAVE;
            self.save();
        }
    }

    fn save(&mut self) {
        if let Err(error) = self.cursor.save(self.publications.position()) {
            report(Level::Error, &format!("saving the delivered position: {error}"));
        }
    }
}

/// Forwards the events of a connection until it fails, or the delivering thread has ended.
fn forward(number: u64, connection: &mut Connection, sender: &Sender<Input>) {
    for event in connection.iter() {
        let input = match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => Input::Connected(number),
            Ok(Event::Incoming(Packet::PubAck(ack))) => Input::Acknowledged(number, ack.pkid),
            Ok(Event::Outgoing(Outgoing::Publish(packet))) => Input::Sent(number, packet),
            Ok(_) => continue,
            Err(error) => Input::Failed(number, error.to_string()),
        };
        let is_last = matches!(input, Input::Failed(..));
        if sender.send(input).is_err() || is_last {
            return;
        }
    }
}
