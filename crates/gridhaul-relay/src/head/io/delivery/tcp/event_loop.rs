//! Event loop of the delivery thread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use gridhaul_linux::Clock;
use gridhaul_scenario::relay::{ServerIdentity, TcpDelivery};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;

use super::Command;
use super::connection::{ServerConnection, proxy_header};
use super::records::Records;
use crate::head::io::delivery::ServerEvent;
use crate::head::io::delivery::delivery_log::DeliveryLog;
use crate::head::io::delivery::position_file::PositionFile;
use crate::head::io::delivery::status::DeliveryStatus;
use crate::head::{ServerStreams, StreamId, StreamIdentity};
use crate::runtime::connector::resolver::Resolution;
use crate::runtime::connector::unreachable::{explain, explain_name};
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::report::LimitedReports;
use crate::runtime::socket;
use crate::runtime::{Level, RunError, report};

/// Bytes of records that are kept in memory. One stalled connection stalls the others when they are
/// used up.
const MEMORY: u64 = 16 << 20;

/// Key of the address of the server.
const SERVER: &str = "head.deliver.tcp.server";

/// State of the thread.
pub(crate) struct Worker {
    pub(crate) server: String,
    identity: ServerIdentity,
    address: Option<SocketAddr>,
    resolution: Option<Resolution>,
    pub(crate) records: Records,
    /// Bytes of the log that open connections may keep.
    pub(crate) kept: u64,
    position_file: PositionFile,
    pub(crate) progress: DeliveryStatus,
    pub(crate) streams: ServerStreams,
    pub(crate) connections: BTreeMap<StreamId, ServerConnection>,
    /// Streams with data that the server may not have acknowledged.
    pub(crate) unacknowledged: BTreeSet<StreamId>,
    clock: Clock,
    poll: Poll<StreamId>,
    /// Wakes this thread.
    waker: Arc<Waker>,
    /// Wakes the thread of the connections of collectors.
    head_waker: Arc<Waker>,
    commands: Receiver<Command>,
    events: Sender<ServerEvent>,
    pub(crate) next_check: Instant,
    pub(crate) next_report: Instant,
    /// Message of the last failure, so that each is reported once.
    last_error: String,
    /// Whether connections that the server does not close, or that fail, are reported.
    pub(crate) is_close_reported: bool,
    reports: LimitedReports,
    buffer: Vec<u8>,
}

/// Start of the thread.
pub(crate) struct Start {
    pub config: TcpDelivery,
    /// Bytes of the log that open connections may keep.
    pub kept: u64,
    pub log: DeliveryLog,
    pub position_file: PositionFile,
    pub channels: Channels,
}

/// Exchange with the thread of the connections of collectors.
pub(crate) struct Channels {
    /// Wakes the delivery thread.
    pub waker: Arc<Waker>,
    /// Wakes the thread of the connections of collectors.
    pub head_waker: Arc<Waker>,
    pub commands: Receiver<Command>,
    pub events: Sender<ServerEvent>,
}

impl Worker {
    pub(crate) fn new(start: Start) -> Result<Self, RunError> {
        let Start { config, kept, log, position_file, channels } = start;
        let Channels { waker, head_waker, commands, events } = channels;
        let poll = Poll::new(&waker)?;
        let records = Records::new(&log, position_file.position())?;
        let position = records.deliveries().position();
        let mut streams = ServerStreams::new(config.confirmation, position, MEMORY);
        for meter in records.deliveries().open_meters() {
            streams.restore(Instant::ZERO, &meter);
        }
        Ok(Self {
            server: config.server,
            identity: config.identity,
            address: None,
            resolution: None,
            records,
            kept,
            progress: position_file.progress(),
            position_file,
            streams,
            connections: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            head_waker,
            commands,
            events,
            next_check: Instant::ZERO,
            next_report: Instant::ZERO,
            last_error: String::new(),
            is_close_reported: false,
            reports: LimitedReports::default(),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Delivers until the head has ended.
    pub(crate) fn run(&mut self) -> Result<(), RunError> {
        loop {
            let mut events = Vec::new();
            self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
            let now = self.clock.now();
            for (source, flags) in events {
                match source {
                    Source::Socket(id) => self.handle_event(now, id, flags),
                    Source::Waker => self.waker.clear(),
                }
            }
            if !self.take_commands(now) {
                self.position_file.save(self.streams.position());
                return Ok(());
            }
            self.streams.handle_timeout(now);
            self.records.read(now, &mut self.streams)?;
            self.connect(now);
            while let Some(id) = self.streams.poll_ready() {
                self.transmit(now, id);
            }
            self.check_acknowledgements(now);
            self.report_unconfirmed(now);
            self.reset_incomplete(now);
            self.close_ended();
            self.progress.set_unconfirmed(self.streams.unconfirmed());
            self.position_file.note(now, self.streams.position());
        }
    }

    fn deadline(&self) -> Instant {
        let check = if self.unacknowledged.is_empty() { Instant::NEVER } else { self.next_check };
        let connect = match self.resolution {
            Some(_) => Instant::NEVER,
            None => self.streams.next_connect(),
        };
        // The log is read in parts, between which events are handled.
        if self.records.is_busy(&self.streams) {
            return Instant::ZERO;
        }
        let is_reported = self.keeps_too_much()
            || self.streams.awaiting_close().is_some()
            || self.streams.failing() > 0
            || self.is_close_reported;
        let report = if is_reported { self.next_report } else { Instant::NEVER };
        let position = self.streams.position();
        let timeout = self.streams.next_timeout().min(self.position_file.deadline(position));
        check.min(connect).min(timeout).min(report)
    }

    /// False if the head has ended.
    fn take_commands(&mut self, now: Instant) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::DurableEnd(end)) => self.records.durable_end = end,
                Ok(Command::Confirmed(meter, position)) => {
                    if let Some(id) = self.streams.handle_down_confirmed(meter, position) {
                        self.receive(now, id);
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Makes the connections that are due.
    fn connect(&mut self, now: Instant) {
        if self.streams.next_connect() > now {
            return;
        }
        let Some(address) = self.resolve() else { return };
        while let Some((id, identity)) = self.streams.poll_connect(now) {
            if let Err(error) = self.begin(address, id, &identity) {
                self.fail_to_connect(now, id, &error.to_string());
            }
        }
    }

    /// Whether the last attempt to connect has failed.
    pub(crate) const fn is_unreachable(&self) -> bool {
        !self.last_error.is_empty()
    }

    /// The address of the server, once its name is resolved.
    fn resolve(&mut self) -> Option<SocketAddr> {
        if self.address.is_some() {
            return self.address;
        }
        let resolution = self
            .resolution
            .get_or_insert_with(|| Resolution::start(&self.server, Arc::clone(&self.waker)));
        match resolution.poll()? {
            Ok(address) => self.address = Some(address),
            Err(error) => {
                let now = self.clock.now();
                self.resolution = None;
                if let Some((id, _)) = self.streams.poll_connect(now) {
                    self.fail_to_connect(now, id, &explain_name(&error, SERVER));
                }
                return None;
            }
        }
        self.resolution = None;
        self.address
    }

    fn begin(
        &mut self,
        address: SocketAddr,
        id: StreamId,
        identity: &StreamIdentity,
    ) -> Result<(), gridhaul_linux::Error> {
        let connection = ServerConnection::begin(address, self.identity, identity)?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.poll
            .add(&connection.socket, id, flags)
            .map_err(gridhaul_linux::Error::call("watching a connection to the server"))?;
        self.connections.insert(id, connection);
        Ok(())
    }

    fn fail_to_connect(&mut self, now: Instant, id: StreamId, message: &str) {
        self.drop_connection(id);
        let _ = self.streams.handle_unreachable(now, id);
        // The name may have another address meanwhile.
        self.address = None;
        if self.last_error != message {
            self.last_error = message.to_owned();
            self.progress.set_delivery_error(Some(message));
            let text = format!("server {}: records stay in the log: {message}", self.server);
            report(Level::Warning, &text);
        }
    }

    fn handle_event(&mut self, now: Instant, id: StreamId, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.is_connected {
            match connection.poll_connected() {
                Ok(false) => return,
                Err(error) => return self.fail_to_connect(now, id, &explain(&error, SERVER)),
                Ok(true) => self.establish(id),
            }
        } else if flags.contains(EventFlags::ERR) {
            return self.fail(now, id);
        }
        // FIN of the server confirms data, which then is not sent again after a failed write.
        self.receive(now, id);
        self.transmit(now, id);
    }

    fn establish(&mut self, id: StreamId) {
        let position = self.streams.handle_connected(id);
        let identity = self.streams.identity(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_connected = true;
            if let Some((key, identity)) = identity
                && self.identity == ServerIdentity::ProxyV2
            {
                connection.header = proxy_header(key, identity, position);
            }
        }
        if !self.last_error.is_empty() {
            self.last_error.clear();
            // Connections that the server ends again and again are reported anew.
            self.is_close_reported = false;
            self.progress.set_delivery_error(None);
            report(Level::Notice, &format!("server {}: connected again", self.server));
        }
    }

    /// Reads data of the server for a meter, as far as its window permits.
    fn receive(&mut self, now: Instant, id: StreamId) {
        loop {
            let Some(connection) = self.connections.get(&id) else { return };
            let Some((meter, shard)) = self.streams.meter(id) else { return };
            let window = self.streams.down_window(id).min(self.buffer.len());
            if window == 0 || !connection.is_connected {
                return;
            }
            match socket::read(&connection.socket, &mut self.buffer[..window]) {
                Ok(None) => return,
                Ok(Some(0)) => {
                    // FIN confirms what TCP has acknowledged by now, so this is read before.
                    self.send(ServerEvent::Fin { meter, shard });
                    self.check_acknowledgement(now, id);
                    self.streams.handle_server_fin(now, id);
                    return;
                }
                Ok(Some(length)) => {
                    self.check_acknowledgement(now, id);
                    if self.streams.handle_down_read(id, length as u64) {
                        let bytes = self.buffer[..length].to_vec();
                        self.send(ServerEvent::Data { meter, shard, bytes });
                    }
                }
                Err(_) => return self.fail(now, id),
            }
        }
    }

    fn send(&self, event: ServerEvent) {
        // If the head has ended, this thread ends as well.
        let _ = self.events.send(event);
        self.head_waker.wake();
    }

    /// Sends as much as the socket accepts.
    fn transmit(&mut self, now: Instant, id: StreamId) {
        if self.try_transmit(id).is_err() {
            self.fail(now, id);
        }
    }

    fn try_transmit(&mut self, id: StreamId) -> std::io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if !connection.is_connected || !connection.send_header()? {
            return Ok(());
        }
        loop {
            let unsent = self.streams.unsent(id);
            let length = unsent.len();
            if length == 0 {
                break;
            }
            self.unacknowledged.insert(id);
            let sent = socket::write(&connection.socket, unsent)?;
            self.streams.handle_sent(id, sent as u64);
            if sent < length {
                return Ok(());
            }
        }
        if self.streams.poll_fin(id) {
            connection.socket.shutdown(std::net::Shutdown::Write)?;
        }
        if self.streams.is_unacknowledged(id) {
            self.unacknowledged.insert(id);
        }
        Ok(())
    }

    /// A connection has failed after it was established.
    fn fail(&mut self, now: Instant, id: StreamId) {
        if let Some((meter, shard)) = self.streams.meter(id) {
            self.send(ServerEvent::Reset { meter, shard });
        }
        self.drop_connection(id);
        self.streams.handle_failed(now, id);
    }

    fn drop_connection(&mut self, id: StreamId) {
        self.unacknowledged.remove(&id);
        self.connections.remove(&id);
    }

    /// Reports streams that cannot be continued, so that their meters are reset.
    fn reset_incomplete(&mut self, now: Instant) {
        while let Some((meter, shard)) = self.streams.poll_incomplete() {
            let text = format!(
                "data of meter {} is missing: its connections are reset, and its later data is \
                 not delivered",
                meter.1,
            );
            self.reports.report(now, "damage of the log", Level::Warning, &text);
            self.send(ServerEvent::Incomplete { meter, shard });
        }
    }

    /// Closes the connections of streams that have ended.
    fn close_ended(&mut self) {
        while let Some((id, meter)) = self.streams.poll_closed() {
            self.drop_connection(id);
            self.send(ServerEvent::End { meter });
        }
    }
}
