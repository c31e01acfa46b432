//! What both front ends share: one bounded buffer, and a queue for each upstream connection.
//!
//! A front end reserves space, decides when a message is complete, and says up to which position of
//! the upstream stream space is released: by segment, what is sent; by byte, what is delivered.

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

    /// Whether this much space is free.
    pub(super) fn fits(&self, space: Space) -> bool {
        self.buffer.fits(space)
    }

    /// Reserves space, of which the caller has found that it fits.
    pub(super) fn reserve(&mut self, now: Instant, upstream: usize, space: Space) {
        self.buffer.reserve(space);
        self.upstreams[upstream].waiting.increase(now, space.messages);
    }

    /// Releases the space of messages that will never be complete.
    pub(super) fn cancel(&mut self, now: Instant, upstream: usize, space: Space) {
        self.buffer.release(space);
        self.upstreams[upstream].waiting.decrease(now, space.messages);
    }

    /// A message is complete, and its space is reserved: it is forwarded after those that became
    /// complete earlier.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        upstream: usize,
        (connection, bytes): (u64, u64),
    ) {
        self.upstreams[upstream].push(Waiting { connection, bytes, since: now });
    }

    /// The next message that ends at or before `position` of the upstream stream. Its space is
    /// released.
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

    pub(super) const fn upstreams(&self) -> usize {
        self.upstreams.len()
    }

    /// Space that is reserved in the whole buffer.
    pub(super) const fn used(&self) -> Space {
        self.buffer.used()
    }
}
