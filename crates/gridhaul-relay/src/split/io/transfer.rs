//! Moving data from one leg to the other.
//!
//! Small traffic passes one buffer that all sessions share; only what the other leg does not accept
//! is kept. Bulk data passes a pipe in the kernel. Without memory for a remainder, data is written
//! from a preview of the receive buffer (`MSG_PEEK`), and removed from it afterwards.

use std::io;
use std::net::Shutdown;

use gridhaul_linux::acknowledge_at_once;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{SpliceFlags, splice};
use socket2::Socket;

use super::connection::{Carry, Connection};
use super::pipes::PipePool;
use crate::split::{Leg, SessionEnd};

/// Size of the shared buffer.
const BUFFER: usize = 64 << 10;

/// Bytes of one direction after which other sessions are served.
const QUANTUM: u64 = 1 << 20;

const SPLICE: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// State shared by all sessions.
#[derive(Debug)]
pub(super) struct Shared {
    buffer: Box<[u8]>,
    /// Bytes that sessions keep, and their limit.
    pub memory: u64,
    pub memory_max: u64,
    pub pipes: PipePool,
    /// Whether each read of a leg is acknowledged at once.
    pub immediate_acks: [bool; 2],
}

/// Result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Transfer {
    /// Bytes that were written.
    pub moved: u64,
    /// Whether the direction could continue.
    pub is_unfinished: bool,
    /// Whether the source has closed the stream in this transfer, or FIN was forwarded.
    pub is_closing: bool,
}

/// Whether a transfer may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Continue,
    Blocked,
}

/// Whether a pipe was filled as far as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    Yes,
    /// The stream is at its end, or at urgent data: only a read shows which.
    Undecided,
}

impl Shared {
    pub(super) fn new(memory_max: u64, pipes: PipePool, immediate_acks: [bool; 2]) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { buffer, memory: 0, memory_max, pipes, immediate_acks }
    }
}

impl Connection {
    /// Moves data of the stream that begins at a leg, until a socket blocks or others must be
    /// served.
    pub(super) fn transfer(
        &mut self,
        from: Leg,
        shared: &mut Shared,
    ) -> Result<Transfer, SessionEnd> {
        let before = self.session.from(from).transferred();
        let mut result = Transfer::default();
        loop {
            let direction = self.session.from(from);
            result.moved = direction.transferred() - before;
            if direction.pending() > 0 {
                if !self.readiness[from.other() as usize].writable {
                    break;
                }
                self.drain(from, shared)?;
            } else if direction.must_send_fin() {
                // shutdown(2) fails after a reset, which the event loop reports.
                let done = self.socket(from.other()).shutdown(Shutdown::Write);
                done.map_err(|_| failure(from.other()))?;
                self.session.from_mut(from).handle_fin_sent();
                self.drop_carry(from, shared);
                result.is_closing = true;
                break;
            } else if !direction.may_read() || !self.readiness[from as usize].readable {
                break;
            } else if result.moved >= QUANTUM {
                result.is_unfinished = true;
                break;
            } else {
                let was_ended = direction.is_ended();
                let step = self.fill(from, shared)?;
                result.is_closing |= self.session.from(from).is_ended() != was_ended;
                if step == Step::Blocked {
                    break;
                }
            }
        }
        Ok(result)
    }

    /// Reads once, by the means that suit the traffic.
    fn fill(&mut self, from: Leg, shared: &mut Shared) -> Result<Step, SessionEnd> {
        let index = from as usize;
        let is_bulk = self.session.from(from).is_bulk();
        match &self.carry[index] {
            Carry::Pipe(_) if !is_bulk => self.drop_carry(from, shared),
            Carry::None if is_bulk => {
                if let Some(pipe) = shared.pipes.take() {
                    self.carry[index] = Carry::Pipe(Box::new(pipe));
                }
            }
            _ => {}
        }
        if matches!(self.carry[index], Carry::Pipe(_)) {
            if self.fill_pipe(from, shared)? == Filled::Yes {
                return Ok(Step::Continue);
            }
            self.drop_carry(from, shared);
        }
        if shared.memory + BUFFER as u64 <= shared.memory_max {
            self.copy(from, shared)?;
        } else if self.readiness[from.other() as usize].writable {
            self.copy_preview(from, shared)?;
        } else {
            return Ok(Step::Blocked);
        }
        Ok(Step::Continue)
    }

    /// Moves data from the receive buffer to the pipe, which is empty: otherwise a full pipe and an
    /// empty receive buffer would be the same error.
    ///
    /// splice(2) does not pass urgent data: before it, the stream seems to be at its end if FIN has
    /// arrived, and empty otherwise. recv(2) passes it, and shows which is the case.
    fn fill_pipe(&mut self, from: Leg, shared: &Shared) -> Result<Filled, SessionEnd> {
        let Carry::Pipe(pipe) = &self.carry[from as usize] else { return Ok(Filled::Undecided) };
        let size = shared.pipes.size();
        match splice(self.socket(from), None, &pipe.write, None, size, SPLICE) {
            Ok(0) => return Ok(Filled::Undecided),
            Ok(length) => {
                self.session.from_mut(from).handle_read(length as u32, BUFFER as u32);
                self.acknowledge(from, shared);
            }
            Err(Errno::AGAIN) if self.readiness[from as usize].urgent => {
                return Ok(Filled::Undecided);
            }
            Err(error) => self.read_failed(from, error)?,
        }
        Ok(Filled::Yes)
    }

    /// Copies through the shared buffer, and keeps what the other leg does not accept.
    fn copy(&mut self, from: Leg, shared: &mut Shared) -> Result<(), SessionEnd> {
        let length = match receive(self.socket(from), &mut shared.buffer, RecvFlags::empty()) {
            Ok(0) => {
                self.session.from_mut(from).handle_end();
                return Ok(());
            }
            Ok(length) => length,
            Err(error) => return self.read_failed(from, error),
        };
        self.session.from_mut(from).handle_read(length as u32, BUFFER as u32);
        if length < BUFFER {
            // A read that leaves space has emptied the receive buffer (epoll(7)), unless FIN or
            // urgent data follows.
            let readiness = &mut self.readiness[from as usize];
            readiness.readable = readiness.ended || readiness.urgent;
        }
        self.acknowledge(from, shared);
        let written = self.write(from.other(), &shared.buffer[..length])?;
        self.session.from_mut(from).handle_written(written as u32);
        if written < length {
            let rest: Box<[u8]> = shared.buffer[written..length].into();
            shared.memory += rest.len() as u64;
            self.carry[from as usize] = Carry::Bytes(rest, 0);
        }
        Ok(())
    }

    /// Writes from a preview of the receive buffer, and removes what was written: without memory of
    /// this process.
    fn copy_preview(&mut self, from: Leg, shared: &mut Shared) -> Result<(), SessionEnd> {
        let length = match receive(self.socket(from), &mut shared.buffer, RecvFlags::PEEK) {
            Ok(0) => {
                self.session.from_mut(from).handle_end();
                return Ok(());
            }
            Ok(length) => length,
            Err(error) => return self.read_failed(from, error),
        };
        let written = self.write(from.other(), &shared.buffer[..length])?;
        let mut removed = 0;
        while removed < written {
            let part = &mut shared.buffer[removed..written];
            match receive(self.socket(from), part, RecvFlags::TRUNC) {
                Ok(0) | Err(_) => return Err(failure(from)),
                Ok(length) => removed += length,
            }
        }
        self.session.from_mut(from).handle_read(written as u32, BUFFER as u32);
        self.session.from_mut(from).handle_written(written as u32);
        Ok(())
    }

    /// Writes pending data.
    fn drain(&mut self, from: Leg, shared: &mut Shared) -> Result<(), SessionEnd> {
        let to = from.other();
        let pending = self.session.from(from).pending() as usize;
        let written = match &mut self.carry[from as usize] {
            Carry::None => 0,
            Carry::Bytes(bytes, position) => {
                let start = *position as usize;
                let written =
                    write(&self.sockets[to as usize], &bytes[start..]).map_err(|_| failure(to))?;
                *position += written as u32;
                written
            }
            Carry::Pipe(pipe) => {
                let socket = &self.sockets[to as usize];
                match splice(&pipe.read, None, socket, None, pending, SPLICE) {
                    Ok(written) => written,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(_) => return Err(failure(to)),
                }
            }
        };
        self.session.from_mut(from).handle_written(written as u32);
        let is_copy = matches!(self.carry[from as usize], Carry::Bytes(..));
        if written == pending && is_copy {
            self.drop_carry(from, shared);
        }
        // splice(2) also returns at the end of a buffer of the pipe: only a call without progress
        // shows that the socket blocks.
        if written == 0 || written < pending && is_copy {
            self.readiness[to as usize].writable = false;
        }
        Ok(())
    }

    /// Writes to a leg, and notes when it blocks.
    fn write(&mut self, to: Leg, bytes: &[u8]) -> Result<usize, SessionEnd> {
        let written = write(self.socket(to), bytes).map_err(|_| failure(to))?;
        if written < bytes.len() {
            self.readiness[to as usize].writable = false;
        }
        Ok(written)
    }

    fn read_failed(&mut self, from: Leg, error: Errno) -> Result<(), SessionEnd> {
        match error {
            Errno::AGAIN => {
                self.readiness[from as usize].readable = false;
                Ok(())
            }
            Errno::INTR => Ok(()),
            _ => Err(failure(from)),
        }
    }

    fn acknowledge(&self, from: Leg, shared: &Shared) {
        if shared.immediate_acks[from as usize] {
            // Without it, acknowledgements are delayed; data is not affected.
            let _ = acknowledge_at_once(self.socket(from));
        }
    }
}

const fn failure(leg: Leg) -> SessionEnd {
    match leg {
        Leg::Client => SessionEnd::Client,
        Leg::Server => SessionEnd::Server,
    }
}

fn receive(socket: &Socket, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
    recv(socket, buffer, flags).map(|(_, length)| length)
}

/// Writes what the socket accepts.
fn write(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::NOSIGNAL) {
        Ok(length) => Ok(length),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
