//! The thread that delivers the records of a head to an MQTT broker.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;

use gridhaul_linux::{Clock, Error, EventFlags, begin_connect};
use gridhaul_scenario::relay::{MqttDelivery, MqttPayload};
use gridhaul_scenario::units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use super::commands::OrderSender;
use super::delivered_position::Cursor;
use super::log_start::LogStart;
use super::status::Progress;
use crate::head::mqtt::{
    Answer, AnswerReader, Connect, write_disconnect, write_ping, write_publish,
};
use crate::head::{Content, Deliveries, Delivery, PartialMessages, Publications};
use crate::log::Folder;
use crate::runtime::connector::Connector;
use crate::runtime::poll::{Key, Poll, Source, Token, Waker};
use crate::runtime::stream::Stream;
use crate::runtime::tls::TlsClient;
use crate::runtime::{Level, RunError, credentials, report};

/// Bytes of output above which no further message is added.
const OUTPUT: usize = 256 * 1024;

/// Time without any byte from the broker after which it is asked for an answer, and after which the connection has failed.
const PROBE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));

/// Seconds without any byte from this relay after which the broker may close the connection: probes are more frequent.
const KEEP_ALIVE: u16 = 60;

/// Time within which the broker must accept a connection, after that of TCP.
const ACCEPT: Duration = Duration::from_secs(5);

/// The delivering thread.
#[derive(Debug)]
pub(crate) struct BrokerSink {
    orders: OrderSender<Order>,
    progress: Progress,
}

#[derive(Debug)]
enum Order {
    /// Records up to this position of the log are durable.
    Limit(u64),
    /// Certificates for later connections.
    Certificates(TlsClient),
}

impl BrokerSink {
    /// Continues after the records that were delivered before.
    pub(crate) fn start(
        name: &str,
        config: &MqttDelivery,
        (folder, log_folder): (&Path, &Path),
        tls: Option<TlsClient>,
        log: LogStart,
        head: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let login = Login::read(name, config, folder)?;
        let worker = Arc::new(Waker::new()?);
        let (orders, received) = OrderSender::to(&worker);
        let cursor = Cursor::open(log_folder, &log, head);
        let progress = cursor.progress();
        let sink = Self { orders, progress: progress.clone() };
        let config = config.clone();
        thread::spawn(move || {
            let worker = Worker::new(&config, (login, tls), (log, cursor), (worker, received));
            progress.end(worker.and_then(|mut worker| worker.run()));
        });
        Ok(sink)
    }

    /// Records up to this position of the log are durable.
    pub(crate) fn deliver(&self, limit: u64) {
        self.orders.send(Order::Limit(limit));
    }

    /// Later connections use these certificates.
    pub(crate) fn replace_certificates(&self, tls: TlsClient) {
        self.orders.send(Order::Certificates(tls));
    }

    pub(crate) const fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// Checks the file with the password.
pub(crate) fn check_login(
    name: &str,
    config: &MqttDelivery,
    folder: &Path,
) -> Result<(), RunError> {
    Login::read(name, config, folder).map(|_| ())
}

/// How the relay introduces itself.
struct Login {
    client: String,
    user: Option<(String, Vec<u8>)>,
}

impl Login {
    fn read(name: &str, config: &MqttDelivery, folder: &Path) -> Result<Self, RunError> {
        let password = match &config.password_file {
            None => String::new(),
            Some(file) => credentials::path_of(folder, file).and_then(fs::read_to_string).map_err(|error| {
                RunError::Unsupported(format!(
                    "head.deliver.mqtt.password_file: {file}: {error}\n  \
                     help: the file must exist, and the user of the relay must be permitted to read it"
                ))
            })?,
        };
        let password = password.trim_end_matches(['\r', '\n']).as_bytes().to_vec();
        // Fields of MQTT state their length in 16 bits (MQTT 3.1.1, section 1.5.3).
        if password.len() > usize::from(u16::MAX) {
            return Err(RunError::Invalid(
                "head.deliver.mqtt.password_file: the password is longer than 65,535 bytes\n  \
                 help: write the password alone into the file"
                    .to_owned(),
            ));
        }
        let user = config.user_name.clone().map(|user| (user, password));
        Ok(Self { client: format!("gridhaul-{name}"), user })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let user = self.user.as_ref().map(|(name, password)| (&**name, &**password));
        Connect { client: &self.client, keep_alive: KEEP_ALIVE, user }.write(out);
    }
}

struct Worker {
    login: Login,
    tls: Option<TlsClient>,
    in_flight: usize,
    deliveries: Deliveries<Folder>,
    cursor: Cursor,
    progress: Progress,
    /// End of the durable records.
    limit: u64,
    publications: Publications,
    connector: Connector,
    link: Option<Link>,
    clock: Clock,
    poll: Poll<Broker>,
    waker: Arc<Waker>,
    orders: Receiver<Order>,
    buffer: Vec<u8>,
}

/// A connection to the broker.
struct Link {
    stream: Stream,
    answers: AnswerReader,
    out: Vec<u8>,
    begun: Instant,
    heard: Instant,
    is_accepted: bool,
    is_probed: bool,
}

impl Link {
    /// When the broker is asked for an answer, or the connection has failed.
    fn deadline(&self) -> Instant {
        match (self.is_accepted, self.is_probed) {
            (false, _) => self.begun + ACCEPT,
            (true, false) => self.heard + PROBE.0,
            (true, true) => self.heard + PROBE.1,
        }
    }
}

impl Worker {
    fn new(
        config: &MqttDelivery,
        (login, tls): (Login, Option<TlsClient>),
        (log, cursor): (LogStart, Cursor),
        (waker, orders): (Arc<Waker>, Receiver<Order>),
    ) -> Result<Self, RunError> {
        let poll = Poll::new(&waker)?;
        let mut parts = PartialMessages::default();
        let before = |delivery: &Delivery<'_>| {
            parts.observe(delivery);
        };
        let deliveries = log.deliveries_after(cursor.position(), before)?;
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
            progress: cursor.progress(),
            cursor,
            limit: log.end,
            connector: Connector::new(&config.broker, "head.deliver.mqtt.broker"),
            link: None,
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            orders,
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
            if !self.take_orders() {
                self.end();
                return Ok(());
            }
            let received = self.advance(now).and_then(|()| self.receive(now));
            // Acknowledgements make space for messages.
            self.read()?;
            if let Err(error) = received.and_then(|()| self.transmit()) {
                self.fail(now, &error);
            }
            self.cursor.note(now, self.publications.position());
        }
    }

    fn deadline(&self) -> Instant {
        let connection = self.link.as_ref().map_or(self.connector.deadline(), Link::deadline);
        connection.min(self.cursor.deadline(self.publications.position()))
    }

    /// False if the head has ended.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(Order::Limit(limit)) => self.limit = limit,
                Ok(Order::Certificates(tls)) => self.tls = Some(tls),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
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
        write_ping(&mut link.out);
        Ok(())
    }

    fn establish(&mut self, now: Instant, socket: Socket) -> std::io::Result<()> {
        let stream = match &self.tls {
            None => Stream::plain(socket),
            Some(tls) => Stream::client(socket, tls)?,
        };
        let mut out = Vec::new();
        self.login.write(&mut out);
        let (begun, heard) = (now, now);
        let (answers, is_accepted, is_probed) = (AnswerReader::default(), false, false);
        self.link = Some(Link { stream, answers, out, begun, heard, is_accepted, is_probed });
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
                write_publish(&mut link.out, topic, packet, payload);
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
            (link.heard, link.is_probed) = (now, false);
            link.answers.push(&self.buffer[..length]);
            while let Some(answer) =
                link.answers.next_answer().map_err(|error| error.to_string())?
            {
                match answer {
                    Answer::Connected => {
                        link.is_accepted = true;
                        self.progress.set_delivery_error(None);
                        if self.connector.handle_established(now) {
                            let target = self.connector.target();
                            report(Level::Notice, &format!("broker {target}: connected again"));
                        }
                    }
                    Answer::Acknowledged(packet) => self.publications.handle_acknowledged(packet),
                    Answer::Pong => {}
                }
            }
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

    /// Saves the position, and tells the broker that the connection ends.
    fn end(&mut self) {
        self.cursor.save(self.publications.position());
        if let Some(link) = &mut self.link {
            let mut bytes = Vec::new();
            write_disconnect(&mut bytes);
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
