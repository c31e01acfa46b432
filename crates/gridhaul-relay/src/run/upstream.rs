//! Upstream connections of a collector.

use std::io;
use std::sync::Arc;

use gridhaul_linux::{Error, begin_connect, set_congestion_control};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::meter_socket;
use super::poll::{Poll, Token, Waker};
use super::resolver::Resolution;
use super::{Level, report};
use crate::aggregate::{Aggregate, SessionError};
use crate::log::Folder;
use crate::protocol::FrameReader;

/// First and longest time between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Bytes of output above which no further batch is added.
const OUTPUT: usize = 256 * 1024;

/// Time without any byte from the head after which a probe is sent, and after which the connection is closed.
const PROBE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));

/// The upstream connection of a shard.
#[derive(Debug)]
pub(super) struct Upstream {
    shard: u16,
    target: String,
    congestion_control: Option<String>,
    state: State,
    backoff: Duration,
    /// Message of the last failure, so that each is reported once.
    reported: String,
    pub reconnections: u64,
}

#[derive(Debug)]
enum State {
    Waiting(Instant),
    Resolving(Resolution),
    Connecting(Socket),
    Connected(Link),
}

#[derive(Debug)]
struct Link {
    socket: Socket,
    frames: FrameReader,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    heard: Instant,
    probed: bool,
}

impl Upstream {
    pub(super) fn new(shard: u16, target: &str, congestion_control: Option<&str>) -> Self {
        Self {
            shard,
            target: target.to_owned(),
            congestion_control: congestion_control.map(str::to_owned),
            state: State::Waiting(Instant::ZERO),
            backoff: BACKOFF.0,
            reported: String::new(),
            reconnections: 0,
        }
    }

    pub(super) const fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
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
            State::Connected(link) => link.heard + if link.probed { PROBE.1 } else { PROBE.0 },
            _ => Instant::NEVER,
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
            State::Waiting(until) if *until <= now => {
                self.state = State::Resolving(Resolution::start(&self.target, Arc::clone(waker)));
            }
            State::Resolving(resolution) => match resolution.poll() {
                None => {}
                Some(Err(error)) => self.fail(now, aggregate, error),
                Some(Ok(address)) => match self.connect(address, poll) {
                    Ok(socket) => self.state = State::Connecting(socket),
                    Err(error) => self.fail(now, aggregate, error.to_string()),
                },
            },
            State::Connected(link) => {
                if now >= link.heard + PROBE.1 {
                    self.fail(now, aggregate, "the head does not answer".to_owned());
                } else if now >= link.heard + PROBE.0 && !link.probed {
                    link.probed = true;
                    crate::protocol::Frame::Ping.write(&mut link.out);
                    self.transmit(now, aggregate);
                }
            }
            State::Waiting(_) | State::Connecting(_) => {}
        }
    }

    fn connect(&self, address: std::net::SocketAddr, poll: &Poll) -> Result<Socket, Error> {
        let failed = || Error::call("connecting to the head");
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
            .map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        socket.set_tcp_nodelay(true).map_err(failed())?;
        if let Some(name) = &self.congestion_control {
            set_congestion_control(&socket, name)?;
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
        if let State::Connecting(socket) = &self.state {
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
        let State::Connecting(socket) =
            std::mem::replace(&mut self.state, State::Waiting(Instant::NEVER))
        else {
            return;
        };
        let mut out = Vec::new();
        aggregate.handle_connected(self.shard, &mut out);
        let frames = FrameReader::default();
        self.state =
            State::Connected(Link { socket, frames, out, written: 0, heard: now, probed: false });
    }

    fn receive(
        &mut self,
        now: Instant,
        aggregate: &mut Aggregate<Folder>,
        buffer: &mut [u8],
    ) -> Result<(), String> {
        let State::Connected(link) = &mut self.state else { return Ok(()) };
        loop {
            let length = match meter_socket::read(&link.socket, buffer) {
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
            if aggregate.is_established(self.shard) && self.backoff != BACKOFF.0 {
                self.backoff = BACKOFF.0;
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
                return Ok(());
            }
            let length = rest.len();
            let sent = meter_socket::write(&link.socket, rest)
                .map_err(|error: io::Error| error.to_string())?;
            link.written += sent;
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
        self.state = State::Waiting(now + self.backoff);
        self.backoff = (self.backoff * 2).min(BACKOFF.1);
        self.reconnections += 1;
        if self.reported != message {
            let text = format!("shard {}, head {}: {message}", self.shard, self.target);
            report(Level::Warning, &text);
            self.reported = message;
        }
    }
}
