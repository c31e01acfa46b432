//! Upstream connections of a collector.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gridhaul_linux::{
    Error, SocketOption, TcpInfo, begin_connect, bind_free, set_congestion_control, set_option,
};
use gridhaul_scenario::relay::Collector;
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::backoff::Backoff;
use super::log_folder::random;
use super::poll::{Poll, Token, Waker};
use super::resolver::Resolution;
use super::stream::Stream;
use super::tls::UpstreamTlsConfig;
use super::{Level, report};
use crate::aggregate::{Aggregate, SessionError};
use crate::log::Folder;
use crate::protocol::FrameReader;

/// Time after which an attempt to connect has failed. The kernel would repeat SYN at intervals of up to a minute, and
/// notice late that the head is reachable again.
const CONNECT: Duration = Duration::from_secs(5);

/// Bytes that the kernel accepts beyond those in transit (`TCP_NOTSENT_LOWAT`, tcp(7)): records that wait longer share
/// the header of a batch.
const NOT_SENT: u32 = 8 * 1024;

/// Bytes of output above which no further batch is added.
const OUTPUT: usize = 256 * 1024;

/// Bytes that are sent before the meters are served again.
const QUANTUM: usize = 1024 * 1024;

/// Time without any byte from the head after which a probe is sent, and after which the connection is closed.
const PROBE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));

/// The upstream connection of a shard.
#[derive(Debug)]
pub(super) struct Upstream {
    shard: u16,
    target: String,
    source: Option<IpAddr>,
    congestion_control: Option<String>,
    tls: Option<UpstreamTlsConfig>,
    state: State,
    backoff: Backoff,
    /// Message of the last failure, so that each is reported once.
    reported: String,
    pub reconnections: u64,
}

#[derive(Debug)]
enum State {
    Waiting(Instant),
    Resolving(Resolution),
    Connecting(Socket, Instant),
    Connected(Link),
}

#[derive(Debug)]
struct Link {
    stream: Stream,
    frames: FrameReader,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    heard: Instant,
    probed: bool,
    /// There is more to send, and the socket accepts it.
    has_more: bool,
}

impl Upstream {
    pub(super) fn new(shard: u16, collector: &Collector, tls: Option<UpstreamTlsConfig>) -> Self {
        Self {
            shard,
            target: collector.upstream.clone(),
            source: collector.source.as_ref().and_then(|source| source.parse().ok()),
            congestion_control: collector.congestion_control.clone(),
            tls,
            state: State::Waiting(Instant::ZERO),
            backoff: Backoff::new(Instant::ZERO),
            reported: String::new(),
            reconnections: 0,
        }
    }

    /// Later connections use these certificates.
    pub(super) fn set_tls(&mut self, tls: Option<UpstreamTlsConfig>) {
        self.tls = tls;
    }

    /// The kernel's state of the connection.
    pub(super) fn tcp_info(&self) -> Option<TcpInfo> {
        match &self.state {
            State::Connected(link) => TcpInfo::of(&link.stream).ok(),
            _ => None,
        }
    }

    pub(super) const fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    /// Whether the socket accepts no more bytes now.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(&self.state, State::Connected(link) if link.written < link.out.len())
    }

    /// The output of the connection; `None` if there is no connection.
    pub(super) fn output(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.state {
            State::Connected(link) => Some(&mut link.out),
            _ => None,
        }
    }

    /// When [`Self::advance`] must be called again.
    pub(super) fn deadline(&self) -> Instant {
        match &self.state {
            State::Waiting(until) => *until,
            State::Connecting(_, begun) => *begun + CONNECT,
            State::Connected(link) if link.has_more => Instant::ZERO,
            State::Connected(link) => link.heard + if link.probed { PROBE.1 } else { PROBE.0 },
            State::Resolving(_) => Instant::NEVER,
        }
    }

    /// Connects if it is time, and probes an idle connection.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        aggregate: &mut Aggregate<Folder>,
        poll: &Poll,
        waker: &Arc<Waker>,
    ) {
        match &mut self.state {
            State::Waiting(until) if *until <= now => match self.target.parse() {
                Ok(address) => self.connect(now, aggregate, address, poll),
                Err(_) => {
                    let resolution = Resolution::start(&self.target, Arc::clone(waker));
                    self.state = State::Resolving(resolution);
                }
            },
            State::Resolving(resolution) => match resolution.poll() {
                None => {}
                Some(Err(error)) => self.fail(now, aggregate, error),
                Some(Ok(address)) => self.connect(now, aggregate, address, poll),
            },
            State::Connecting(_, begun) if now >= *begun + CONNECT => {
                self.fail(now, aggregate, format!("no answer within {CONNECT}"));
            }
            State::Connected(link) => {
                if now >= link.heard + PROBE.1 {
                    self.fail(now, aggregate, "the head does not answer".to_owned());
                } else if now >= link.heard + PROBE.0 && !link.probed {
                    link.probed = true;
                    crate::protocol::Frame::Ping.write(&mut link.out);
                    self.transmit(now, aggregate);
                }
            }
            State::Waiting(_) | State::Connecting(..) => {}
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        aggregate: &mut Aggregate<Folder>,
        address: SocketAddr,
        poll: &Poll,
    ) {
        match self.begin_connect(address, poll) {
            Ok(socket) => self.state = State::Connecting(socket, now),
            Err(error) => self.fail(now, aggregate, error.to_string()),
        }
    }

    fn begin_connect(&self, address: SocketAddr, poll: &Poll) -> Result<Socket, Error> {
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
        poll.add(&socket, Token::Upstream(u32::from(self.shard)), flags).map_err(failed())?;
        Ok(socket)
    }

    /// The socket is ready.
    pub(super) fn handle_event(
        &mut self,
        now: Instant,
        aggregate: &mut Aggregate<Folder>,
        buffer: &mut [u8],
    ) {
        if let State::Connecting(socket, _) = &self.state {
            match socket.take_error() {
                Ok(None) if socket.peer_addr().is_ok() => self.establish(now, aggregate),
                Ok(None) => return,
                Ok(Some(error)) | Err(error) => {
                    self.fail(now, aggregate, error.to_string());
                    return;
                }
            }
        }
        if let Err(error) = self.receive(now, aggregate, buffer) {
            self.fail(now, aggregate, error);
            return;
        }
        self.transmit(now, aggregate);
    }

    fn establish(&mut self, now: Instant, aggregate: &mut Aggregate<Folder>) {
        let State::Connecting(socket, _) =
            std::mem::replace(&mut self.state, State::Waiting(Instant::NEVER))
        else {
            return;
        };
        let stream = match &self.tls {
            None => Ok(Stream::plain(socket)),
            Some(tls) => Stream::client(socket, &tls.config, tls.name.clone()),
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                self.fail(now, aggregate, error.to_string());
                return;
            }
        };
        let mut out = Vec::new();
        aggregate.handle_connected(self.shard, &mut out);
        let frames = FrameReader::default();
        self.state = State::Connected(Link {
            stream,
            frames,
            out,
            written: 0,
            heard: now,
            probed: false,
            has_more: false,
        });
    }

    fn receive(
        &mut self,
        now: Instant,
        aggregate: &mut Aggregate<Folder>,
        buffer: &mut [u8],
    ) -> Result<(), String> {
        let State::Connected(link) = &mut self.state else { return Ok(()) };
        loop {
            let length = match link.stream.read(buffer) {
                Ok(Some(0)) => return Err("the head has closed the connection".to_owned()),
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            (link.heard, link.probed) = (now, false);
            link.frames.push(&buffer[..length]);
            while let Some(frame) = link.frames.next_frame().map_err(|error| error.to_string())? {
                aggregate
                    .handle_frame(self.shard, &frame, &mut link.out)
                    .map_err(|error: SessionError| error.to_string())?;
            }
            if aggregate.is_established(self.shard) {
                self.backoff.handle_established(now);
            }
            if aggregate.is_established(self.shard) && !self.reported.is_empty() {
                self.reported.clear();
                report(Level::Notice, &format!("shard {}: connected again", self.shard));
            }
        }
    }

    /// Sends as much as the socket accepts.
    pub(super) fn transmit(&mut self, now: Instant, aggregate: &mut Aggregate<Folder>) {
        if let Err(error) = self.try_transmit(aggregate) {
            self.fail(now, aggregate, error);
        }
    }

    fn try_transmit(&mut self, aggregate: &mut Aggregate<Folder>) -> Result<(), String> {
        let State::Connected(link) = &mut self.state else { return Ok(()) };
        let mut budget = QUANTUM;
        link.has_more = false;
        link.stream.write(&[]).map_err(|error| error.to_string())?;
        loop {
            while link.out.len() - link.written < OUTPUT {
                if !aggregate.fill(self.shard, &mut link.out).map_err(|error| error.to_string())? {
                    break;
                }
            }
            let rest = &link.out[link.written..];
            if rest.is_empty() {
                link.out = Vec::new();
                link.written = 0;
                link.has_more = aggregate.is_searching(self.shard);
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
                // What was written is removed now and then, so that the output stays within its limit.
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

    fn fail(&mut self, now: Instant, aggregate: &mut Aggregate<Folder>, message: String) {
        aggregate.handle_disconnected(self.shard);
        self.state = State::Waiting(self.backoff.handle_failure(now, random()));
        self.reconnections += 1;
        if self.reported != message {
            let text = format!("shard {}, head {}: {message}", self.shard, self.target);
            report(Level::Warning, &text);
            self.reported = message;
        }
    }
}
