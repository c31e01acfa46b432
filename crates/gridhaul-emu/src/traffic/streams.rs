//! The two sockets of a connection as byte streams: bytes written by the application, accepted by
//! the sockets, and delivered.

use std::io;
use std::net::Shutdown;

use gridhaul_core::load::{Carrier, Message};
use gridhaul_linux::TcpInfo;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;
use socket2::Socket;

use super::connection::Observer;

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    /// The `from` end, and the `to` end once it was accepted.
    pub sockets: [Option<Socket>; 2],
    /// Bytes of each end that the application has written, that its socket has accepted, and that
    /// were delivered there.
    written: [u64; 2],
    accepted: [u64; 2],
    pub delivered: [u64; 2],
    /// Whether the connection is established.
    pub is_open: bool,
    /// Whether the `from` end shuts down once all written data is accepted.
    closing: bool,
    /// Whether each end is shut down.
    is_closed: [bool; 2],
    /// The error with which the kernel has aborted the connection, if any.
    pub failure: Option<String>,
}

/// Payload; its content is not checked.
static ZEROS: [u8; 1 << 17] = [0; 1 << 17];

impl Streams {
    pub(super) fn new(sender: Socket) -> Self {
        Self {
            sockets: [Some(sender), None],
            written: [0; 2],
            accepted: [0; 2],
            delivered: [0; 2],
            is_open: false,
            closing: false,
            is_closed: [false; 2],
            failure: None,
        }
    }

    /// The application of an end writes bytes.
    pub(super) const fn push(&mut self, end: FlowEnd, bytes: u64) {
        self.written[end as usize] += bytes;
    }

    /// Whether an end is shut down.
    pub(super) const fn is_shut_down(&self, end: FlowEnd) -> bool {
        self.is_closed[end as usize]
    }

    /// Flushes the written data into the socket of an end. Returns whether all of it is accepted.
    pub(super) fn flush(&mut self, end: FlowEnd) -> bool {
        let index = end as usize;
        while self.accepted[index] < self.written[index] {
            let Some(taken) = self.offer(end, self.written[index] - self.accepted[index]) else {
                return false;
            };
            self.accepted[index] += taken;
        }
        true
    }

    /// Offers `bytes` bytes to the socket of an end. Returns the number that it accepts; `None` if
    /// the socket would block.
    fn offer(&mut self, end: FlowEnd, bytes: u64) -> Option<u64> {
        let mut socket = self.sockets[end as usize].as_ref()?;
        let length = usize::try_from(bytes).map_or(ZEROS.len(), |bytes| bytes.min(ZEROS.len()));
        match io::Write::write(&mut socket, &ZEROS[..length]) {
            Ok(taken) => Some(taken as u64),
            Err(error) => {
                if !is_wait(&error) {
                    self.fail(&error);
                }
                None
            }
        }
    }

    /// Shuts the `from` end down if the application has closed it and all data is accepted.
    pub(super) fn finish(&mut self) {
        if self.closing && self.accepted[0] == self.written[0] {
            self.shut_down(FlowEnd::From);
        }
    }

    /// Shuts an end down, once. Each call of shutdown(2) reports a change of the socket, so that
    /// calls in answer to such reports would never end.
    pub(super) fn shut_down(&mut self, end: FlowEnd) {
        let index = end as usize;
        if !self.is_closed[index]
            && let Some(socket) = &self.sockets[index]
        {
            // It fails before the handshake, and if the other end has reset the connection.
            let result = socket.shutdown(Shutdown::Write);
            self.is_closed[index] = result.is_ok() || self.is_open;
        }
    }

    /// Bytes of both directions that are acknowledged to their sender and were not delivered.
    pub(super) fn acknowledged_undelivered(&self) -> u64 {
        let missing = |from: usize| {
            let info = self.sockets[from].as_ref().and_then(|socket| TcpInfo::of(socket).ok());
            // The kernel counts SYN of the end that opens the connection, and FIN.
            let syn = u64::from(from == 0);
            let acknowledged = info.map_or(0, |info| info.bytes_acknowledged.saturating_sub(syn));
            acknowledged.min(self.accepted[from]).saturating_sub(self.delivered[1 - from])
        };
        missing(0) + missing(1)
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
        // A handshake in progress is not a failure.
        if error.raw_os_error() != Some(libc::ENOTCONN) && self.failure.is_none() {
            self.failure = Some(error.to_string());
        }
    }
}

/// Whether an error only means that the call must be tried again later.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.raw_os_error() == Some(libc::ENOTCONN)
}

/// The streams as the carrier of an application, which reports messages to their row.
pub(super) struct StreamCarrier<'a, T> {
    pub streams: &'a mut Streams,
    pub now: Instant,
    pub observer: &'a mut T,
}

impl<T: Observer> Carrier for StreamCarrier<'_, T> {
    type Class = ();
    /// All payload is zeros.
    type Payload = std::convert::Infallible;

    fn write(&mut self, end: FlowEnd, message: Message) {
        self.observer.on_late(self.now.since(message.at));
        if end == FlowEnd::From {
            self.observer.on_ready(message.at);
        }
        self.streams.written[end as usize] += message.bytes;
    }

    /// The kernel applies the low-water mark of its sockets, so no state is needed here.
    fn try_write(&mut self, end: FlowEnd, message: Message, _refused: bool) -> bool {
        let streams = &mut *self.streams;
        let index = end as usize;
        if message.bytes == 0 || streams.accepted[index] < streams.written[index] {
            return false;
        }
        let Some(taken) = streams.offer(end, message.bytes) else { return false };
        streams.accepted[index] += taken;
        streams.written[index] += message.bytes;
        self.observer.on_ready(message.at);
        true
    }

    fn announce(&mut self, ready: Instant) {
        self.observer.on_late(self.now.since(ready));
        self.observer.on_ready(ready);
    }

    fn write_stream(&mut self, end: FlowEnd, bytes: u64) {
        let written = &mut self.streams.written[end as usize];
        *written = written.saturating_add(bytes);
    }

    /// The `to` end closes by itself when it has read FIN, as a server does.
    fn close(&mut self, end: FlowEnd) {
        self.streams.closing |= end == FlowEnd::From;
    }

    fn written(&self, end: FlowEnd) -> u64 {
        self.streams.written[end as usize]
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        self.streams.delivered[end as usize]
    }

    fn is_open(&self) -> bool {
        self.streams.is_open
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_linux::{EventFlags, Poll};
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn the_close_of_an_end_wakes_the_loop_only_a_few_times() {
        for end in [FlowEnd::From, FlowEnd::To] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let sender = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            sender.connect(&listener.local_addr().unwrap().into()).unwrap();
            let receiver = Socket::from(listener.accept().unwrap().0);
            let mut poll = Poll::new().unwrap();
            let flags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::ET);
            let watched = if end == FlowEnd::From { &sender } else { &receiver };
            poll.watch(watched, 0, flags).unwrap();
            let mut streams = Streams::new(sender);
            streams.sockets[1] = Some(receiver);
            // The application of the `from` end has closed; the other end may answer for long.
            streams.closing = true;
            let mut events = 0;
            let limit = std::time::Duration::from_millis(50);
            while events < 100 && poll.wait::<1>(limit).unwrap().count() > 0 {
                events += 1;
                match end {
                    FlowEnd::From => streams.finish(),
                    FlowEnd::To => streams.shut_down(end),
                }
            }
            assert!(events < 10, "{end:?}: {events} events");
        }
    }
}
