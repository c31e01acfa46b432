//! Upstream connections of a collector.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gridhaul_linux::{
    Error, SocketOption, TcpInfo, begin_connect, bind_free, set_congestion_control, set_option,
};
use gridhaul_scenario::relay::CollectorConfig;
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::token::CollectorToken;
use crate::collector::{Collector, SessionError};
use crate::log::Folder;
use crate::log::LogError;
use crate::protocol::FrameReader;
use crate::runtime::connector::Connector;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::stream::Stream;
use crate::runtime::tls::TlsClient;
use crate::runtime::{Level, report};

/// Bytes that the kernel accepts beyond those in transit (`TCP_NOTSENT_LOWAT`, tcp(7)): records
/// that wait longer share the header of a batch.
const NOT_SENT: u32 = 8 * 1024;

/// Bytes of output above which no further batch is added.
const OUTPUT: usize = 256 * 1024;

/// Bytes that are sent before the meters are served again.
const QUANTUM: usize = 1024 * 1024;

/// Time without any byte from the head after which a probe is sent, and after which the connection
/// is closed.
const PROBE_AFTER: Duration = Duration::from_secs(10);
const FAILED_AFTER: Duration = Duration::from_secs(30);

/// The head had confirmed records that it does not have any more.
const LOST: &str = "the head has lost records that it had confirmed: its log was removed or \
    replaced, or another collector \
                    has used this name; records that are still in the log of this collector are \
                    delivered again\n  \
                    help: restore the log of the head, and give each collector a name of its own";

/// The upstream connection of a shard.
#[derive(Debug)]
pub(super) struct Upstream {
    route: Route,
    tls: Option<TlsClient>,
    connector: Connector,
    link: Option<Link>,
    damage: Option<LogError>,
    pub reconnections: u64,
}

/// Options of the sockets.
#[derive(Debug)]
struct Route {
    shard: u16,
    source: Option<IpAddr>,
    congestion_control: Option<String>,
}

#[derive(Debug)]
struct Link {
    stream: Stream,
    frames: FrameReader,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    last_received: Instant,
    probed: bool,
    /// There is more to send, and the socket accepts it.
    has_more: bool,
}

impl Upstream {
    pub(super) fn new(shard: u16, keys: &CollectorConfig, tls: Option<TlsClient>) -> Self {
        let source = keys.source.as_ref().and_then(|source| source.parse().ok());
        let congestion_control = keys.congestion_control.clone();
        Self {
            route: Route { shard, source, congestion_control },
            tls,
            connector: Connector::new(&keys.upstream, "collector.upstream"),
            link: None,
            damage: None,
            reconnections: 0,
        }
    }

    /// Later connections use these certificates.
    pub(super) fn set_tls(&mut self, tls: Option<TlsClient>) {
        self.tls = tls;
    }

    /// The kernel's state of the connection.
    pub(super) fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(&self.link.as_ref()?.stream).ok()
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Why there is no connection, after a failure.
    pub(super) fn error(&self) -> Option<&str> {
        self.connector.error()
    }

    /// When the first attempt to connect has failed.
    pub(super) const fn failed_at(&self) -> Option<Instant> {
        self.connector.failed_at()
    }

    /// The shard whose records the connection carries.
    pub(super) const fn shard(&self) -> u16 {
        self.route.shard
    }

    /// Local address of the connection, or of the present attempt.
    pub(super) fn local_address(&self) -> Option<SocketAddr> {
        let link = self.link.as_ref().map(|link| link.stream.socket());
        let socket = link.or_else(|| self.connector.socket())?;
        socket.local_addr().ok()?.as_socket()
    }

    /// The damage of the log that was found. Another connection would not help: the relay must
    /// verify the log.
    pub(super) const fn take_damage(&mut self) -> Option<LogError> {
        self.damage.take()
    }

    /// Reports records that are missing in the log, and returns their number as far as it is known.
    pub(super) fn report_lost(&self, collector: &mut Collector<Folder>) -> u64 {
        let shard = self.route.shard;
        let mut sum = 0;
        while let Some(lost) = collector.poll_lost_records(shard) {
            let count =
                lost.count.map_or("an unknown number of".to_owned(), |count| count.to_string());
            let text = format!(
                "shard {shard}: {count} records that the head does not have are missing in the \
                 record log"
            );
            report(Level::Error, &text);
            sum += lost.count.unwrap_or(0);
        }
        sum
    }

    /// Whether the socket accepts no more bytes now.
    pub(super) fn is_blocked(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.written < link.out.len())
    }

    /// The output of the connection; `None` if there is no connection.
    pub(super) fn output(&mut self) -> Option<&mut Vec<u8>> {
        self.link.as_mut().map(|link| &mut link.out)
    }

    /// When [`Self::advance`] must be called again.
    pub(super) fn deadline(&self) -> Instant {
        match &self.link {
            None => self.connector.deadline(),
            Some(link) if link.has_more => Instant::ZERO,
            Some(link) => link.last_received + if link.probed { FAILED_AFTER } else { PROBE_AFTER },
        }
    }

    /// Connects if it is time, and probes an idle connection.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        collector: &mut Collector<Folder>,
        poll: &Poll<CollectorToken>,
        waker: &Arc<Waker>,
    ) {
        let Some(link) = &mut self.link else {
            let route = &self.route;
            let begin = |address| route.begin_connect(address, poll);
            if let Err(error) = self.connector.advance(now, waker, begin) {
                self.fail(now, collector, &error);
            }
            return;
        };
        if now >= link.last_received + FAILED_AFTER {
            self.fail(now, collector, "the head does not answer");
        } else if now >= link.last_received + PROBE_AFTER && !link.probed {
            link.probed = true;
            crate::protocol::Frame::Ping.write(&mut link.out);
            self.transmit(now, collector);
        }
    }

    /// The socket is ready.
    pub(super) fn handle_event(
        &mut self,
        now: Instant,
        collector: &mut Collector<Folder>,
        buffer: &mut [u8],
    ) {
        if self.link.is_none() {
            match self.connector.poll_connected() {
                Ok(Some(socket)) => self.establish(now, collector, socket),
                Ok(None) => return,
                Err(error) => return self.fail(now, collector, &error),
            }
        }
        if let Err(error) = self.receive(now, collector, buffer) {
            self.fail(now, collector, &error);
            return;
        }
        self.transmit(now, collector);
    }

    fn establish(&mut self, now: Instant, collector: &mut Collector<Folder>, socket: Socket) {
        let stream = match &self.tls {
            None => Ok(Stream::plain(socket)),
            Some(tls) => Stream::client(socket, tls),
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => return self.fail(now, collector, &error.to_string()),
        };
        let mut out = Vec::new();
        collector.handle_connected(self.route.shard, &mut out);
        let frames = FrameReader::default();
        self.link = Some(Link {
            stream,
            frames,
            out,
            written: 0,
            last_received: now,
            probed: false,
            has_more: false,
        });
    }

    fn receive(
        &mut self,
        now: Instant,
        collector: &mut Collector<Folder>,
        buffer: &mut [u8],
    ) -> Result<(), String> {
        let Some(link) = &mut self.link else { return Ok(()) };
        loop {
            let length = match link.stream.read(buffer) {
                Ok(Some(0)) => return Err("the head has closed the connection".to_owned()),
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            (link.last_received, link.probed) = (now, false);
            link.frames.push(&buffer[..length]);
            while let Some(frame) = link.frames.next_frame().map_err(|error| error.to_string())? {
                collector
                    .handle_frame(self.route.shard, &frame, &mut link.out)
                    .map_err(|error: SessionError| error.to_string())?;
            }
            let shard = self.route.shard;
            if collector.poll_lost(shard) {
                let target = self.connector.target();
                report(Level::Warning, &format!("shard {shard}, head {target}: {LOST}"));
            }
            if collector.is_established(shard) && self.connector.handle_established(now) {
                report(Level::Notice, &format!("shard {shard}: connected again"));
            }
        }
    }

    /// Sends as much as the socket accepts.
    pub(super) fn transmit(&mut self, now: Instant, collector: &mut Collector<Folder>) {
        if let Err(error) = self.try_transmit(collector) {
            self.fail(now, collector, &error);
        }
    }

    fn try_transmit(&mut self, collector: &mut Collector<Folder>) -> Result<(), String> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let mut budget = QUANTUM;
        link.has_more = false;
        link.stream.write(&[]).map_err(|error| error.to_string())?;
        loop {
            while link.out.len() - link.written < OUTPUT {
                match collector.fill(self.route.shard, &mut link.out) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        let message = error.to_string();
                        self.damage = error.into_damage();
                        return Err(message);
                    }
                }
            }
            let rest = &link.out[link.written..];
            if rest.is_empty() {
                link.out = Vec::new();
                link.written = 0;
                link.has_more = collector.is_searching(self.route.shard);
                return Ok(());
            }
            if budget == 0 {
                link.has_more = true;
                return Ok(());
            }
            let length = rest.len();
            let sent = link.stream.write(rest).map_err(|error| error.to_string())?;
            link.written += sent;
            budget = budget.saturating_sub(sent);
            if sent < length {
                // What was written is removed now and then, so that the output stays within its
                // limit.
                if link.written > OUTPUT {
                    link.out.drain(..link.written);
                    link.written = 0;
                }
                return Ok(());
            }
            link.out.clear();
            link.written = 0;
        }
    }

    fn fail(&mut self, now: Instant, collector: &mut Collector<Folder>, message: &str) {
        collector.handle_disconnected(self.route.shard);
        self.link = None;
        self.reconnections += 1;
        if self.connector.handle_failure(now, message) {
            let (shard, target) = (self.route.shard, self.connector.target());
            report(Level::Warning, &format!("shard {shard}, head {target}: {message}"));
        }
    }
}

impl Route {
    fn begin_connect(
        &self,
        address: SocketAddr,
        poll: &Poll<CollectorToken>,
    ) -> Result<Socket, Error> {
        let failed = || Error::call("connecting to the head");
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
            .map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        socket.set_tcp_nodelay(true).map_err(failed())?;
        set_option(&socket, SocketOption::NotSentLowWater, NOT_SENT).map_err(failed())?;
        if let Some(name) = &self.congestion_control {
            set_congestion_control(&socket, name)?;
        }
        if let Some(source) = self.source {
            // Several addresses of the machine may be assigned as one prefix.
            bind_free(&socket, SocketAddr::new(source, 0))?;
        }
        begin_connect(&socket, address).map_err(failed())?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        poll.add(&socket, CollectorToken::Upstream(u32::from(self.shard)), flags)
            .map_err(failed())?;
        Ok(socket)
    }
}
