//! Connections of meters.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use gridhaul_linux::{Error, EventFlags, set_receive_buffer};
use socket2::{Socket, TcpKeepalive};

use super::meter_stream::MeterStream;
use super::user_meters::UserMeters;
use crate::collector::MeterId;

/// The socket of a meter. There may be many: every byte counts.
#[derive(Debug)]
pub(super) struct MeterSocket {
    pub id: MeterId,
    pub stream: MeterStream,
    /// Row of the meter's IP address in the table of sources.
    pub source: u32,
    pub listener: u16,
    /// Whether the meter is in the queue of meters to read.
    pub is_ready: bool,
    pub input: Input,
    /// Whether data of the server waits until the socket is writable, or FIN follows.
    pub output: Option<Box<Output>>,
}

/// Received data of a connection, as its events have shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Input {
    #[default]
    Open,
    /// There was urgent data: a read ends before it, although more follows (RFC 9293, section
    /// 3.8.5).
    Urgent,
    /// The peer has closed its direction, or the connection has failed: it is read to its end.
    Ended,
}

/// Events of a connection that is read.
pub(super) const READ_EVENTS: EventFlags =
    EventFlags::IN.union(EventFlags::PRI).union(EventFlags::RDHUP).union(EventFlags::ET);

impl MeterSocket {
    /// Whether a read of fewer bytes than asked for has emptied the socket, so that an event
    /// announces further data (epoll(7), requests on edge-triggered mode). The event of FIN may be
    /// over, urgent data may follow, and TLS may hold more.
    pub(super) const fn is_emptied_by_short_read(&self) -> bool {
        matches!(self.input, Input::Open) && !self.stream.is_encrypted()
    }
}

/// Data for a meter that its socket has not accepted.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub bytes: VecDeque<u8>,
    pub fin: bool,
    /// Close the socket when everything was sent.
    pub close: bool,
}

/// Interval of probes on an idle connection: a meter that has lost power is detected after a few of
/// them.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Time for which sent data may stay unacknowledged (`TCP_USER_TIMEOUT`, RFC 5482).
const USER_TIMEOUT: Duration = Duration::from_secs(180);

/// Sets the options of a listener. Accepted sockets inherit them, without a system call for each;
/// the receive buffer limits the window from the handshake on. Until [`socket::allow_fin`], the end
/// of the process resets the connections: a FIN would state that all data is stored.
pub(super) fn configure(socket: &Socket, receive_buffer: u32) -> Result<(), Error> {
    let failed = || Error::call("configuring a listener for meters");
    socket.set_linger(Some(Duration::ZERO)).map_err(failed())?;
    socket.set_tcp_nodelay(true).map_err(failed())?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    socket.set_tcp_keepalive(&keepalive).map_err(failed())?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT)).map_err(failed())?;
    set_receive_buffer(socket, receive_buffer)
}

impl MeterSocket {
    /// Writes waiting data, then FIN. Returns how many bytes were written.
    pub(super) fn flush(&mut self, user: &mut Option<UserMeters>) -> io::Result<usize> {
        let Some(output) = &mut self.output else {
            self.stream.write(user, &[])?;
            return Ok(0);
        };
        let written = self.stream.write(user, output.bytes.make_contiguous())?;
        output.bytes.drain(..written);
        if output.bytes.is_empty() && output.fin {
            output.fin = false;
            self.stream.finish(user)?;
        }
        Ok(written)
    }

    /// Whether output waits until the socket is writable.
    pub(super) fn wants_write(&self) -> bool {
        self.stream.wants_write()
            || self.output.as_ref().is_some_and(|output| !output.bytes.is_empty())
    }

    /// Whether all data and FIN were sent and the socket is to be closed.
    pub(super) fn is_complete(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.close && output.bytes.is_empty())
            && !self.stream.wants_write()
    }
}
