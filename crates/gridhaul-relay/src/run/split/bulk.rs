//! What a direction with bulk data has: a pipe, and the state of reading in large pieces.

use gridhaul_linux::{SocketOption, set_option};
use gridhaul_scenario::units::Instant;
use socket2::Socket;

use super::pipes::Pipe;
use crate::split::{Batching, LOW_WATER};

/// Bulk data of a direction.
#[derive(Debug)]
pub(super) struct Bulk {
    pub pipe: Pipe,
    batching: Batching,
}

impl Bulk {
    pub(super) const fn new(pipe: Pipe) -> Self {
        Self { pipe, batching: Batching::new() }
    }

    /// One read has moved `length` bytes to the pipe. True if the source is not to be read again before the kernel reports it.
    pub(super) fn handle_read(&mut self, source: &Socket, length: usize) -> bool {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if self.batching.handle_read(length) {
            // Without the mark, the source is reported with every byte: more wake-ups move the same data.
            let _ = set_option(source, SocketOption::ReceiveLowWater, LOW_WATER);
        }
        self.batching.waits_after(length)
    }

    /// The session was served. Returns when the source is to be read although the kernel has not reported it, if this is new.
    pub(super) fn handle_served(&mut self, now: Instant, is_waiting: bool) -> Option<Instant> {
        self.batching.handle_served(now, is_waiting)
    }

    /// When the source is read although the kernel has not reported it.
    pub(super) const fn check_at(&self) -> Instant {
        self.batching.check_at()
    }

    /// From now on, the kernel reports the source with every byte.
    pub(super) fn stop_batching(&mut self, source: &Socket) {
        if self.batching.stop() {
            // The kernel never rejects this value (socket(7)).
            let _ = set_option(source, SocketOption::ReceiveLowWater, 1);
        }
    }
}
