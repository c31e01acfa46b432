//! Connections of collectors.

use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::Loop;
use super::token::HeadToken;
use crate::protocol::{Frame, FrameReader, Refusal};
use crate::runtime::stream::Stream;
use crate::runtime::tls::certificate;
use crate::runtime::{Level, listener};

/// Time after which a connection without any byte is closed: collectors probe every 10 s.
const SILENCE: Duration = Duration::from_secs(60);

/// Probes of a collector that are answered at once, and later one per second. A collector probes
/// every 10 s; answers to a peer that does not read them would fill the memory.
const PROBES: u64 = 10;

/// A connection of a collector.
pub(super) struct Link {
    stream: Stream,
    /// Address of the collector, for messages.
    peer: String,
    frames: FrameReader,
    pub out: Vec<u8>,
    begun: Instant,
    last_received: Instant,
    /// The collector has stated its name.
    is_introduced: bool,
    /// Number of probes so far, each of which is answered.
    probes: u64,
}

/// The end of a connection.
enum LinkEnd {
    /// The collector has closed the connection.
    Closed,
    /// The connection has failed, or the collector has broken a rule: a text for the operator.
    Failed(String),
}

impl Loop {
    pub(super) fn accept(&mut self, now: Instant) {
        while self.is_ready && self.accept_at <= now {
            match listener::accept(&self.listener) {
                Ok(Some((socket, _))) => self.open(now, socket),
                Ok(None) => self.is_ready = false,
                Err(error) => {
                    self.accept_at = now + listener::EXHAUSTED;
                    let text = format!("cannot accept a collector: {error}");
                    self.reports.report(now, "system", Level::Error, &text);
                }
            }
        }
    }

    fn open(&mut self, now: Instant, socket: Socket) {
        let _ = socket.set_tcp_nodelay(true);
        let peer = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let stream = match &self.tls {
            None => Ok(Stream::plain(socket)),
            Some(config) => Stream::server(socket, config),
        };
        let Ok(stream) = stream else { return };
        let free = self.links.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.links.push(None);
            self.links.len() - 1
        });
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        if self.poll.add(&stream, HeadToken::Collector(index as u32), flags).is_err() {
            return;
        }
        self.links[index] = Some(Link {
            stream,
            peer: peer.map_or("a collector".to_owned(), |peer| peer.to_string()),
            frames: FrameReader::default(),
            out: Vec::new(),
            begun: now,
            last_received: now,
            is_introduced: false,
            probes: 0,
        });
        self.head.handle_connected(index as u32);
    }

    pub(super) fn handle_link(&mut self, now: Instant, index: u32) {
        match self.receive(now, index) {
            Ok(()) => {}
            Err(end) => {
                // The collector gets the reason of a refusal, and other collectors their output,
                // before the connection is closed.
                if let (LinkEnd::Failed(message), Some(Some(link))) =
                    (end, self.links.get(index as usize))
                {
                    let text = format!("{}: {message}", link.peer);
                    self.reports.report(now, "collector", Level::Warning, &text);
                }
                while let Some((other, bytes)) = self.head.poll_output() {
                    if let Some(Some(link)) = self.links.get_mut(other as usize) {
                        link.out.extend_from_slice(&bytes);
                    }
                    self.transmit(other);
                }
                self.close(index);
                return;
            }
        }
        self.transmit(index);
    }

    fn receive(&mut self, now: Instant, index: u32) -> Result<(), LinkEnd> {
        let failed = |error: &dyn std::fmt::Display| LinkEnd::Failed(error.to_string());
        let Some(Some(link)) = self.links.get_mut(index as usize) else { return Ok(()) };
        loop {
            let length = match link.stream.read(&mut self.buffer) {
                Ok(Some(0)) => return Err(LinkEnd::Closed),
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) => return Err(failed(&error)),
            };
            link.last_received = now;
            link.frames.push(&self.buffer[..length]);
            while let Some(frame) = link.frames.next_frame().map_err(|error| failed(&error))? {
                if let Frame::Hello(hello) = &frame
                    && let Err(reason) = check_name(&link.stream, hello.collector)
                {
                    Frame::Refused(Refusal { reason: &reason }).write(&mut link.out);
                    let _ = link.stream.write(&link.out);
                    return Err(LinkEnd::Failed(reason));
                }
                // Only frames that cost an answer are counted: credit limits batches.
                link.probes += u64::from(matches!(frame, Frame::Ping));
                if link.probes > PROBES + now.since(link.begun).as_nanos() / 1_000_000_000 {
                    return Err(failed(&"probes are too frequent"));
                }
                self.head.handle_frame(index, &frame).map_err(|error| failed(&error))?;
                link.is_introduced |= matches!(frame, Frame::Hello(_));
            }
        }
    }

    pub(super) fn transmit(&mut self, index: u32) {
        let Some(Some(link)) = self.links.get_mut(index as usize) else { return };
        match link.stream.write(&link.out) {
            Ok(written) => {
                link.out.drain(..written);
            }
            Err(_) => self.close(index),
        }
    }

    pub(super) fn close(&mut self, index: u32) {
        if let Some(slot) = self.links.get_mut(index as usize) {
            *slot = None;
        }
        self.head.handle_disconnected(index);
    }

    /// Closes connections that have not stated their name in time, or are silent.
    pub(super) fn close_silent(&mut self, now: Instant) {
        if now < self.next_check {
            return;
        }
        let limit = self.state.config.head.as_ref().map_or(SILENCE, |head| head.handshake_limit);
        self.next_check = now + (SILENCE / 4).min(limit);
        for index in 0..self.links.len() {
            let Some(link) = &self.links[index] else { continue };
            let is_slow = !link.is_introduced && now.since(link.begun) >= limit;
            if is_slow {
                let text = format!("{} has not stated its name in time", link.peer);
                self.reports.report(now, "handshake_limit", Level::Warning, &text);
            }
            if is_slow || now.since(link.last_received) > SILENCE {
                self.close(index as u32);
            }
        }
    }
}

/// With TLS, a collector has the name that its certificate states.
fn check_name(stream: &Stream, collector: &str) -> Result<(), String> {
    let Some(certificate) = stream.certificate() else { return Ok(()) };
    let names = certificate::names(certificate);
    if names.iter().any(|name| name == collector) {
        return Ok(());
    }
    Err(format!("collector {collector:?} has a certificate for {}", names.join(", ")))
}
