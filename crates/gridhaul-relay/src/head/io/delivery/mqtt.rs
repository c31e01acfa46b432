//! The thread that delivers the records of a head to an MQTT broker.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;

use gridhaul_linux::{Clock, Error, EventFlags, begin_connect};
use gridhaul_protocols::mqtt::{BrokerPacket, ClientPacket, PacketReader};
use gridhaul_scenario::relay::{MqttDelivery, MqttPayload};
use gridhaul_scenario::units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use super::commands::CommandSender;
use super::delivery_log::DeliveryLog;
use super::login::{Login, VERSION};
use super::position_file::PositionFile;
use super::status::DeliveryStatus;
use crate::head::{Content, Deliveries, Delivery, PartialMessages, Publications};
use crate::log::{Durable, Folder};
use crate::runtime::connector::Connector;
use crate::runtime::poll::{Key, Poll, Source, Token, Waker};
use crate::runtime::stream::Stream;
use crate::runtime::tls::TlsClient;
use crate::runtime::{Level, RunError, report};

/// Bytes of output above which no further message is added.
const OUTPUT: usize = 256 * 1024;

/// Time without any byte from the broker after which it is asked for an answer, and after which the
/// connection has failed.
const PROBE_AFTER: Duration = Duration::from_secs(10);
const FAILED_AFTER: Duration = Duration::from_secs(30);

/// Time within which the broker must accept a connection, after that of TCP.
const ACCEPT: Duration = Duration::from_secs(5);

/// Time without an acknowledgement after which unacknowledged messages are reported.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);

/// The delivering thread.
#[derive(Debug)]
pub(crate) struct BrokerDelivery {
    commands: CommandSender<Command>,
    progress: DeliveryStatus,
}

#[derive(Debug)]
enum Command {
    /// Records up to this position of the log are durable.
    DurableEnd(Durable<u64>),
    /// Certificates for later connections.
    Certificates(TlsClient),
}

impl BrokerDelivery {
    /// Continues after the records that were delivered before.
    pub(crate) fn start(
        start: BrokerStart,
        log_folder: &Path,
        head_waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let waker = Arc::new(Waker::new()?);
        let (commands, received) = CommandSender::to(&waker);
        let position_file = PositionFile::open(log_folder, &start.log, head_waker);
        let progress = position_file.progress();
        let delivery = Self { commands, progress: progress.clone() };
        thread::spawn(move || {
            let worker = Worker::new(start, position_file, waker, received);
            progress.end(worker.and_then(|mut worker| worker.run()));
        });
        Ok(delivery)
    }

    /// Records up to this position of the log are durable.
    pub(crate) fn deliver(&self, durable_end: Durable<u64>) {
        self.commands.send(Command::DurableEnd(durable_end));
    }

    /// Later connections use these certificates.
    pub(crate) fn replace_certificates(&self, tls: TlsClient) {
        self.commands.send(Command::Certificates(tls));
    }

    pub(crate) const fn progress(&self) -> &DeliveryStatus {
        &self.progress
    }
}

/// Start of the thread.
pub(crate) struct BrokerStart {
    pub config: MqttDelivery,
    pub login: Login,
    pub tls: Option<TlsClient>,
    pub log: DeliveryLog,
}

struct Worker {
    login: Login,
    tls: Option<TlsClient>,
    in_flight: usize,
    deliveries: Deliveries<Folder>,
    position_file: PositionFile,
    progress: DeliveryStatus,
    /// End of the durable records.
    durable_end: Durable<u64>,
    publications: Publications,
    connector: Connector,
    link: Option<Link>,
    clock: Clock,
    poll: Poll<Broker>,
    waker: Arc<Waker>,
    commands: Receiver<Command>,
    buffer: Vec<u8>,
}

/// A connection to the broker.
struct Link {
    stream: Stream,
    packets: PacketReader,
    out: Vec<u8>,
    begun: Instant,
    last_received: Instant,
    is_accepted: bool,
    is_probed: bool,
    /// When the last message was acknowledged, if others are not.
    waiting_since: Option<Instant>,
    is_waiting_reported: bool,
}

impl Link {
    /// When the broker is asked for an answer, or the connection has failed.
    fn deadline(&self) -> Instant {
        match (self.is_accepted, self.is_probed) {
            (false, _) => self.begun + ACCEPT,
            (true, false) => self.last_received + PROBE_AFTER,
            (true, true) => self.last_received + FAILED_AFTER,
        }
    }
}

impl Worker {
    fn new(
        start: BrokerStart,
        position_file: PositionFile,
        waker: Arc<Waker>,
        commands: Receiver<Command>,
    ) -> Result<Self, RunError> {
        let BrokerStart { config, login, tls, log } = start;
        let poll = Poll::new(&waker)?;
        let mut parts = PartialMessages::default();
        let before = |delivery: &Delivery<'_>| {
            parts.observe(delivery);
        };
        let deliveries = log.deliveries_after(position_file.position(), before)?;
        let content = match config.payload {
            MqttPayload::Json => Content::Json,
            MqttPayload::Data => Content::Data,
        };
        Ok(Self {
            login,
            tls,
            in_flight: config.in_flight.into(),
            publications: Publications::new(&config.topic, content, deliveries.position(), parts),
            deliveries,
            progress: position_file.progress(),
            position_file,
            durable_end: log.range.end,
            connector: Connector::new(&config.broker, "head.deliver.mqtt.broker"),
            link: None,
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            commands,
            buffer: vec![0; 16 * 1024],
        })
    }

    /// Delivers until the head has ended.
    fn run(&mut self) -> Result<(), RunError> {
        loop {
            let mut events = Vec::new();
            self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
            let now = self.clock.now();
            if events.iter().any(|(source, _)| *source == Source::Waker) {
                self.waker.clear();
            }
            if !self.take_commands() {
                self.end();
                return Ok(());
            }
            let received = self.advance(now).and_then(|()| self.receive(now));
            // Acknowledgements make space for messages.
            self.read()?;
            if let Err(error) = received.and_then(|()| self.transmit()) {
                self.fail(now, &error);
            }
            self.report_unacknowledged(now);
            self.position_file.note(now, self.publications.position());
        }
    }

    fn deadline(&self) -> Instant {
        let connection = self.link.as_ref().map_or(self.connector.deadline(), Link::deadline);
        let waiting = self.link.as_ref().filter(|link| !link.is_waiting_reported);
        let waiting = waiting.and_then(|link| link.waiting_since);
        let report = waiting.map_or(Instant::NEVER, |since| since + ACKNOWLEDGE);
        connection.min(report).min(self.position_file.deadline(self.publications.position()))
    }

    /// False if the head has ended.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::DurableEnd(durable_end)) => self.durable_end = durable_end,
                Ok(Command::Certificates(tls)) => self.tls = Some(tls),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Reads records from the log, as long as more messages may be in flight.
    fn read(&mut self) -> Result<(), RunError> {
        while self.publications.len() < self.in_flight {
            let Self { deliveries, publications, durable_end, .. } = self;
            if !deliveries.next(durable_end.position(), |delivery| publications.push(&delivery))? {
                return Ok(());
            }
            publications.end_entry(deliveries.position());
        }
        Ok(())
    }

    /// Connects if it is time, and checks whether the broker answers.
    fn advance(&mut self, now: Instant) -> Result<(), String> {
        let Some(link) = &mut self.link else {
            let poll = &self.poll;
            self.connector.advance(now, &self.waker, |address| begin(address, poll))?;
            let Some(socket) = self.connector.poll_connected()? else { return Ok(()) };
            return self.establish(now, socket).map_err(|error| error.to_string());
        };
        if now < link.deadline() {
            return Ok(());
        }
        if link.is_probed || !link.is_accepted {
            return Err("the broker does not answer".to_owned());
        }
        link.is_probed = true;
        ClientPacket::Ping.encode(VERSION, &mut link.out);
        Ok(())
    }

    fn establish(&mut self, now: Instant, socket: Socket) -> std::io::Result<()> {
        let stream = match &self.tls {
            None => Stream::plain(socket),
            Some(tls) => Stream::client(socket, tls)?,
        };
        let mut out = Vec::new();
        self.login.write(&mut out);
        let (begun, last_received) = (now, now);
        let packets = PacketReader::new(VERSION, PacketReader::PUBLISHER_MAX);
        let (is_accepted, is_probed) = (false, false);
        let (waiting_since, is_waiting_reported) = (None, false);
        self.link = Some(Link {
            stream,
            packets,
            out,
            begun,
            last_received,
            is_accepted,
            is_probed,
            waiting_since,
            is_waiting_reported,
        });
        Ok(())
    }

    /// Sends messages as long as the socket accepts them.
    fn transmit(&mut self) -> Result<(), String> {
        let Self { link: Some(link), publications, in_flight, .. } = self else { return Ok(()) };
        loop {
            while link.is_accepted
                && link.out.len() < OUTPUT
                && publications.can_publish(*in_flight)
                && let Some((packet, topic, payload)) = publications.poll_publish()
            {
                let publish = ClientPacket::Publish { topic, identifier: Some(packet), payload };
                publish.encode(VERSION, &mut link.out);
            }
            let length = link.out.len();
            let sent = link.stream.write(&link.out).map_err(|error| error.to_string())?;
            link.out.drain(..sent);
            if sent < length || length == 0 {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, now: Instant) -> Result<(), String> {
        let Some(link) = &mut self.link else { return Ok(()) };
        loop {
            let length = match link.stream.read(&mut self.buffer) {
                Ok(Some(0)) => return Err("the broker has closed the connection".to_owned()),
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            (link.last_received, link.is_probed) = (now, false);
            link.packets.handle_input(&self.buffer[..length]);
            while let Some(packet) =
                link.packets.poll_packet().map_err(|error| error.to_string())?
            {
                match packet {
                    BrokerPacket::Accepted { .. } => {
                        link.is_accepted = true;
                        self.progress.set_delivery_error(None);
                        if self.connector.handle_established(now) {
                            let target = self.connector.target();
                            report(Level::Notice, &format!("broker {target}: connected again"));
                        }
                    }
                    BrokerPacket::Refused(reason) => {
                        return Err(format!("the broker refuses the connection: {reason}"));
                    }
                    BrokerPacket::Acknowledged(packet) => {
                        self.publications.handle_acknowledged(packet);
                        link.waiting_since = None;
                        if std::mem::take(&mut link.is_waiting_reported) {
                            self.progress.set_delivery_error(None);
                        }
                    }
                    BrokerPacket::Pong => {}
                    // The other packets are longer than the reader permits, or of MQTT 5.0.
                    packet => return Err(format!("an unexpected packet: {packet:?}")),
                }
            }
        }
    }

    /// Reports a broker that answers, and does not acknowledge messages.
    fn report_unacknowledged(&mut self, now: Instant) {
        let Some(link) = self.link.as_mut().filter(|link| link.is_accepted) else { return };
        if self.publications.is_empty() {
            link.waiting_since = None;
            return;
        }
        let since = *link.waiting_since.get_or_insert(now);
        if !link.is_waiting_reported && now >= since + ACKNOWLEDGE {
            link.is_waiting_reported = true;
            let text = "the broker is connected, and has acknowledged no message for 10 s: records \
                        stay in the log";
            report(Level::Warning, &format!("broker {}: {text}", self.connector.target()));
            self.progress.set_delivery_error(Some(text));
        }
    }

    fn fail(&mut self, now: Instant, error: &str) {
        self.link = None;
        self.publications.handle_disconnected();
        if self.connector.handle_failure(now, error) {
            let target = self.connector.target();
            let text = format!("broker {target}: records stay in the log: {error}");
            report(Level::Warning, &text);
            self.progress.set_delivery_error(Some(error));
        }
    }

    /// Saves the position, and notifies the broker that the connection ends.
    fn end(&mut self) {
        self.position_file.save(self.publications.position());
        if let Some(link) = &mut self.link {
            let mut bytes = Vec::new();
            ClientPacket::Disconnect.encode(VERSION, &mut bytes);
            // Without this packet, the broker waits until the kernel closes the connection.
            let _ = link.stream.write(&bytes);
        }
    }
}

/// Begins to connect.
fn begin(address: SocketAddr, poll: &Poll<Broker>) -> Result<Socket, Error> {
    let failed = || Error::call("connecting to the broker");
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(failed())?;
    socket.set_nonblocking(true).map_err(failed())?;
    socket.set_tcp_nodelay(true).map_err(failed())?;
    begin_connect(&socket, address).map_err(failed())?;
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
    poll.add(&socket, Broker, flags).map_err(failed())?;
    Ok(socket)
}

/// The connection to the broker, the only socket of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Broker;

impl Token for Broker {
    fn to_key(self) -> Key {
        Key { kind: 0, row: 0, number: 0 }
    }

    fn from_key(_: Key) -> Option<Self> {
        Some(Self)
    }
}
