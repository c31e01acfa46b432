//! Connections whose meter is not known yet: before the PROXY header and the TLS handshake are
//! complete.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use gridhaul_scenario::relay::WhenFull;
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::Loop;
use super::sources::NO_SOURCE;
use super::token::CollectorToken;
use super::upstream::Upstream;
use crate::protocol::{ProxyHeader, ProxyHeaderReader};
use crate::runtime::Level;
use crate::runtime::listener::canonical;
use crate::runtime::poll::NUMBER_MASK;
use crate::runtime::socket;
use crate::runtime::stream::Stream;
use crate::runtime::tls::certificate;

/// Why connections are refused, as in metrics.
pub(super) const CAUSES: [&str; 8] = [
    "allow_list",
    "handshake",
    "handshake_limit",
    "log_full",
    "loop",
    "proxy_header",
    "source_limit",
    "system",
];

/// Largest number of arrivals at the same time. Others wait in the queue of the listener.
const ARRIVALS_MAX: usize = 1_024;

/// Bytes of a PROXY header that are read at once.
const HEADER_READ: usize = 2_048;

/// Addresses of a connection: of the meter, and where it has connected.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Addresses {
    pub peer: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
}

/// A connection that is ready for data.
#[derive(Debug)]
pub(super) struct Admitted {
    pub stream: Stream,
    pub listener: u16,
    pub source: u32,
    pub addresses: Addresses,
}

/// A connection before its first byte of data.
#[derive(Debug)]
struct Arrival {
    number: u32,
    admitted: Admitted,
    /// The PROXY header, until it is complete.
    header: Option<Box<ProxyHeaderReader>>,
}

/// All arrivals.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    rows: Vec<Option<Arrival>>,
    count: usize,
    next: u32,
    /// When arrivals have taken too long, in the order in which they came.
    deadlines: VecDeque<(Instant, u32, u32)>,
}

impl Arrivals {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// When the first arrival has taken too long.
    pub(super) fn deadline(&self) -> Instant {
        self.deadlines.front().map_or(Instant::NEVER, |first| first.0)
    }

    fn insert(&mut self, deadline: Instant, admitted: Admitted, needs_header: bool) -> (u32, u32) {
        let row = self.rows.iter().position(Option::is_none).unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() - 1
        });
        let number = self.next & NUMBER_MASK;
        self.next = self.next.wrapping_add(1);
        self.count += 1;
        let header = needs_header.then(Box::default);
        self.rows[row] = Some(Arrival { number, admitted, header });
        self.deadlines.push_back((deadline, row as u32, number));
        (row as u32, number)
    }

    fn get(&mut self, row: u32, number: u32) -> Option<&mut Arrival> {
        self.rows.get_mut(row as usize)?.as_mut().filter(|arrival| arrival.number == number)
    }

    fn remove(&mut self, row: u32, number: u32) -> Option<Arrival> {
        self.get(row, number)?;
        self.count -= 1;
        self.rows[row as usize].take()
    }
}

/// Limits the rate of TLS handshakes, whose computation would delay the connected meters (token
/// bucket).
#[derive(Debug)]
pub(super) struct RateLimit {
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl RateLimit {
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second: per_second.into(), tokens: per_second.into(), at: Instant::ZERO }
    }

    pub(super) fn refill(&mut self, now: Instant) {
        let added = now.since(self.at).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + added).min(self.per_second);
        self.at = now;
    }

    const fn is_available(&self) -> bool {
        self.tokens >= 1.0
    }

    /// When a handshake may begin.
    fn next(&self) -> Instant {
        self.at + Duration::from_secs_f64((1.0 - self.tokens).max(0.0) / self.per_second)
    }
}

impl Loop {
    /// Whether a connection of this listener can be accepted now.
    pub(super) fn may_accept(&self, index: usize) -> bool {
        let listener = &self.listeners[index];
        let is_encrypted = listener.tls.is_some();
        let arrives = is_encrypted || listener.config.proxy_protocol;
        !self.drain.has_begun()
            && self.collector.meter_count() + self.arrivals.len() < self.meters_max
            && (!arrives || self.arrivals.len() < ARRIVALS_MAX)
            && (!is_encrypted || self.handshakes.is_available())
    }

    /// When a TLS connection that waits in the queue of a listener can be accepted.
    pub(super) fn handshake_deadline(&self) -> Instant {
        let waits =
            self.listeners.iter().any(|listener| listener.is_ready && listener.tls.is_some());
        if waits && !self.handshakes.is_available() {
            self.handshakes.next()
        } else {
            Instant::NEVER
        }
    }

    /// Checks a new connection. A refused one is reset.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        index: usize,
        socket: Socket,
        peer: Option<SocketAddr>,
    ) {
        let listener = &self.listeners[index];
        if peer.is_some_and(|peer| !listener.config.is_allowed(peer.ip())) {
            self.refuse(now, "allow_list", &format!("{} is not in `allow`", shown(peer)));
            return;
        }
        if self.is_own_upstream(&socket, peer) {
            let text = "the connection of this collector to its head has arrived at its own \
                listener, and is reset\n  \
                        help: correct `collector.upstream`, or the translation of addresses on \
                        the path";
            self.refuse(now, "loop", text);
            return;
        }
        if self.refuses_for_full_log() {
            self.refuse(now, "log_full", "less than a tenth of the log is free");
            return;
        }
        let needs_header = listener.config.proxy_protocol;
        let stream = match &listener.tls {
            None => Ok(Stream::plain(socket)),
            Some(config) => {
                self.handshakes.tokens -= 1.0;
                Stream::server(socket, config)
            }
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                self.refuse(now, "system", &error.to_string());
                return;
            }
        };
        let local = || stream.socket().local_addr().ok()?.as_socket().map(canonical);
        let local = listener.local.or_else(local);
        let addresses = Addresses { peer, local };
        let mut admitted =
            Admitted { stream, listener: index as u16, source: NO_SOURCE, addresses };
        if !needs_header && !self.count_source(now, &mut admitted) {
            return;
        }
        if !needs_header && !admitted.stream.is_encrypted() {
            self.open(now, admitted, None);
            return;
        }
        let deadline = now + self.handshake_limit;
        let (row, number) = self.arrivals.insert(deadline, admitted, needs_header);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let added = self.arrivals.get(row, number).map(|arrival| {
            self.poll.add(&arrival.admitted.stream, CollectorToken::Arrival(row, number), flags)
        });
        if let Some(Err(error)) = added {
            self.drop_arrival(row, number);
            self.refuse(now, "system", &error.to_string());
        }
    }

    /// Whether an accepted connection is one of the upstream connections of this collector: its
    /// records would become data of a meter.
    fn is_own_upstream(&self, socket: &Socket, peer: Option<SocketAddr>) -> bool {
        let local = || Some(canonical(socket.local_addr().ok()?.as_socket()?).ip());
        // A connection on which a head has answered does not lead to this collector. The kernel
        // gives its local port also to connections to other addresses, so that a meter on this
        // machine may have the same one.
        let leads_here = |upstream: &Upstream, peer| {
            !self.collector.is_established(upstream.shard())
                && upstream.local_address().map(canonical) == Some(peer)
        };
        // A peer on another machine needs no comparison.
        peer.is_some_and(|peer| {
            (peer.ip().is_loopback() || local() == Some(peer.ip()))
                && self.upstreams.iter().any(|upstream| leads_here(upstream, peer))
        })
    }

    /// Counts the connection for the limit of its address. False if it was refused.
    fn count_source(&mut self, now: Instant, admitted: &mut Admitted) -> bool {
        let address = admitted.addresses.peer.map(|peer| peer.ip());
        match self.sources.add(address, self.source_limit) {
            Some(row) => {
                admitted.source = row;
                true
            }
            None => {
                let text = format!(
                    "{} has the largest number of connections",
                    shown(admitted.addresses.peer)
                );
                self.refuse(now, "source_limit", &text);
                false
            }
        }
    }

    /// Whether new connections are refused because less than a tenth of the space for records is
    /// free.
    pub(super) fn refuses_for_full_log(&self) -> bool {
        self.when_full == WhenFull::RefuseNew
            && self.collector.backlog_size() >= self.collector.settings().backlog / 10 * 9
    }

    /// An arrival has sent something.
    pub(super) fn handle_arrival(&mut self, now: Instant, row: u32, number: u32) {
        let Some(arrival) = self.arrivals.get(row, number) else { return };
        if let Some(reader) = &mut arrival.header {
            match read_header(arrival.admitted.stream.socket(), reader) {
                Ok(None) => return,
                Ok(Some(header)) => {
                    arrival.header = None;
                    if let Some((peer, local)) = header.addresses {
                        arrival.admitted.addresses =
                            Addresses { peer: Some(peer), local: Some(local) };
                    }
                }
                Err(error) => {
                    let text = format!("{}: {error}", shown(arrival.admitted.addresses.peer));
                    self.drop_arrival(row, number);
                    self.refuse(now, "proxy_header", &text);
                    return;
                }
            }
        }
        match arrival.admitted.stream.shake_hands() {
            Ok(false) => {}
            Ok(true) => {
                let Some(mut arrival) = self.arrivals.remove(row, number) else { return };
                let is_counted = arrival.admitted.source != NO_SOURCE;
                if is_counted || self.count_source(now, &mut arrival.admitted) {
                    self.open(now, arrival.admitted, Some(row));
                }
            }
            Err(error) => {
                let text = format!("{}: {error}", shown(arrival.admitted.addresses.peer));
                self.drop_arrival(row, number);
                self.refuse(now, "handshake", &text);
            }
        }
    }

    /// Resets arrivals that have taken too long.
    pub(super) fn end_slow_arrivals(&mut self, now: Instant) {
        while let Some((_, row, number)) =
            self.arrivals.deadlines.front().copied().filter(|first| first.0 <= now)
        {
            self.arrivals.deadlines.pop_front();
            if let Some(arrival) = self.arrivals.get(row, number) {
                let text = format!("{} takes too long", shown(arrival.admitted.addresses.peer));
                self.drop_arrival(row, number);
                self.refuse(now, "handshake_limit", &text);
            }
        }
    }

    fn drop_arrival(&mut self, row: u32, number: u32) {
        if let Some(arrival) = self.arrivals.remove(row, number) {
            self.sources.remove(arrival.admitted.source);
        }
    }

    /// Counts and reports a connection that was refused.
    pub(super) fn refuse(&mut self, now: Instant, cause: &'static str, text: &str) {
        self.counters.refuse(cause);
        self.reports.report(now, cause, Level::Warning, text);
    }

    /// Name in the certificate of a meter; empty if there is none.
    pub(super) fn certificate_name(stream: &Stream) -> String {
        let names = stream.certificate().map(certificate::names);
        names.and_then(|names| names.into_iter().next()).unwrap_or_default()
    }
}

fn shown(address: Option<SocketAddr>) -> String {
    address.map_or("a meter".to_owned(), |address| address.to_string())
}

/// Reads the PROXY header and nothing after it; `None` if it is incomplete. The header may be
/// longer than the receive buffer.
fn read_header(socket: &Socket, reader: &mut ProxyHeaderReader) -> io::Result<Option<ProxyHeader>> {
    let mut bytes = [0; HEADER_READ];
    while reader.wanted() > 0 {
        let wanted = reader.wanted().min(HEADER_READ);
        match socket::read(socket, &mut bytes[..wanted])? {
            None => return Ok(None),
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(length) => {
                let pushed = reader.push(&bytes[..length]);
                pushed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            }
        }
    }
    Ok(Some(std::mem::take(reader).header()))
}
