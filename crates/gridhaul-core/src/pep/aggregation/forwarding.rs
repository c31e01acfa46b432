//! Accounting of forwarded messages: one bounded buffer, and a queue per upstream connection.
//!
//! The aggregator reserves space, decides when a message is complete, and determines up to which
//! position of the upstream stream space is released.

use gridhaul_scenario::units::{BufferLimit, Instant};

use super::buffer::{Buffer, Space};
use super::upstream::{Upstream, Waiting};

/// The buffer and the upstream queues of an aggregator.
#[derive(Debug, Clone)]
pub(super) struct Forwarding {
    buffer: Buffer,
    upstreams: Vec<Upstream>,
}

impl Forwarding {
    pub(super) fn new(limit: BufferLimit, upstreams: usize) -> Self {
        Self { buffer: Buffer::new(limit), upstreams: vec![Upstream::default(); upstreams] }
    }

    /// Whether `space` is free.
    pub(super) fn fits(&self, space: Space) -> bool {
        self.buffer.fits(space)
    }

    /// Reserves space. The caller has checked that it [fits](Self::fits).
    pub(super) fn reserve(&mut self, now: Instant, upstream: usize, space: Space) {
        self.buffer.reserve(space);
        self.upstreams[upstream].waiting.increase(now, space.messages);
    }

    /// Appends a complete message, whose space is reserved, to the queue of its upstream
    /// connection.
    pub(super) fn complete(&mut self, upstream: usize, message: Waiting) {
        self.upstreams[upstream].push(message);
    }

    /// Removes the next message that ends at or before `position` of the upstream stream, and
    /// releases its space.
    pub(super) fn poll_before(
        &mut self,
        now: Instant,
        upstream: usize,
        position: u64,
    ) -> Option<Waiting> {
        let message = self.upstreams[upstream].pop(now, position)?;
        self.buffer.release(Space { messages: 1, bytes: message.bytes });
        Some(message)
    }

    pub(super) fn upstream(&self, upstream: usize) -> &Upstream {
        &self.upstreams[upstream]
    }

    pub(super) fn upstream_mut(&mut self, upstream: usize) -> &mut Upstream {
        &mut self.upstreams[upstream]
    }

    /// The maxima of all upstream connections begin anew.
    pub(super) fn restart_maxima(&mut self) {
        for upstream in &mut self.upstreams {
            upstream.waiting.restart_max();
            upstream.at_risk.restart_max();
        }
    }

    /// Reserved space in the whole buffer.
    pub(super) const fn used(&self) -> Space {
        self.buffer.used()
    }
}
