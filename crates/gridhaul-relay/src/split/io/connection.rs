//! The sockets of a session, and the data between them.

use std::net::SocketAddr;

use gridhaul_linux::EventFlags;
use gridhaul_scenario::units::Instant;
use socket2::Socket;

use super::pipes::Pipe;
use super::transfer::Shared;
use crate::split::{Leg, Session};

/// A session with its sockets. There may be many: every byte counts.
#[derive(Debug)]
pub(super) struct Connection {
    pub session: Session,
    pub sockets: [Socket; 2],
    /// Data that was read from a leg and not yet written to the other.
    pub carry: [Carry; 2],
    /// Tells events of this session from those of an earlier one in the same row.
    pub number: u32,
    pub listener: u16,
    /// Local port of the connection to the server.
    pub port: u16,
    pub readiness: [Readiness; 2],
    /// Whether the session is in the queue of sessions to serve.
    pub is_queued: bool,
    /// Time of the session in the set of timers.
    pub timer: Instant,
}

/// Operations of a socket that do not block, since its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Readiness {
    pub readable: bool,
    pub writable: bool,
    /// The peer has closed its direction, or the connection has failed.
    pub ended: bool,
    /// Urgent data waits: a read ends before it, although more follows (RFC 9293, section 3.8.5).
    pub urgent: bool,
}

/// Data in transit in one direction.
#[derive(Debug, Default)]
pub(super) enum Carry {
    #[default]
    None,
    /// Bytes from this position on.
    Bytes(Box<[u8]>, u32),
    Pipe(Box<Pipe>),
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Row of the listener that has accepted the client.
    pub listener: u16,
    /// Local port of the connection to the server; 0 if it is transparent.
    pub port: u16,
}

impl Connection {
    pub(super) fn new(now: Instant, sockets: [Socket; 2], number: u32, origin: Origin) -> Self {
        let Origin { listener, port } = origin;
        Self {
            session: Session::new(now),
            sockets,
            carry: [Carry::None, Carry::None],
            number,
            listener,
            port,
            readiness: [Readiness::default(); 2],
            is_queued: false,
            timer: Instant::NEVER,
        }
    }

    pub(super) const fn socket(&self, leg: Leg) -> &Socket {
        &self.sockets[leg as usize]
    }

    pub(super) fn note(&mut self, leg: Leg, flags: EventFlags) {
        let readiness = &mut self.readiness[leg as usize];
        let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        readiness.ended |= flags.intersects(ended);
        readiness.urgent = flags.contains(EventFlags::PRI);
        readiness.readable |= flags.intersects(EventFlags::IN | ended);
        readiness.writable |= flags.intersects(EventFlags::OUT | ended);
    }

    /// Returns memory or the pipe of a direction, whose pending data is lost.
    pub(super) fn drop_carry(&mut self, from: Leg, shared: &mut Shared) {
        match std::mem::take(&mut self.carry[from as usize]) {
            Carry::None => {}
            Carry::Bytes(bytes, _) => shared.memory -= bytes.len() as u64,
            Carry::Pipe(pipe) => {
                shared.pipes.put(*pipe, self.session.from(from).pending() == 0);
            }
        }
    }

    /// Returns pipes without data.
    pub(super) fn release_idle_pipes(&mut self, shared: &mut Shared) {
        for leg in Leg::BOTH {
            let is_empty = self.session.from(leg).pending() == 0;
            if is_empty && matches!(self.carry[leg as usize], Carry::Pipe(_)) {
                self.drop_carry(leg, shared);
                self.session.from_mut(leg).handle_pause();
            }
        }
    }

    pub(super) fn holds_pipe(&self) -> bool {
        self.carry.iter().any(|carry| matches!(carry, Carry::Pipe(_)))
    }

    /// Address of the peer of a leg.
    pub(super) fn peer(&self, leg: Leg) -> Option<SocketAddr> {
        self.socket(leg).peer_addr().ok()?.as_socket()
    }
}
