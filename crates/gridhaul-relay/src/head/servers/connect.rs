//! Connection attempts and back-off.

use gridhaul_core::coverage_mark::mark;
use gridhaul_scenario::units::{Duration, Instant};

use super::stream::{Link, Timers};
use super::{ServerStreams, StreamId, StreamIdentity};

/// Shortest time between attempts to connect, after the first failure.
pub(super) const BACKOFF_MIN: Duration = Duration::from_millis(100);

/// Longest time between attempts to connect.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Attempts to connect at the same time.
const CONNECTING_MAX: usize = 256;

impl ServerStreams {
    /// A stream for which a connection is to be made now.
    pub fn poll_connect(&mut self, now: Instant) -> Option<(StreamId, StreamIdentity)> {
        if self.connecting >= CONNECTING_MAX || now < self.next_attempt_at {
            return None;
        }
        let &(at, id) = self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        let stream = self.stream(id)?;
        stream.due = None;
        stream.link = Link::Connecting;
        let identity = stream.identity.clone();
        self.connecting += 1;
        Some((id, identity))
    }

    /// When [`Self::poll_connect`] must be called again.
    #[must_use]
    pub fn next_connect(&self) -> Instant {
        let first = self.due.first().filter(|_| self.connecting < CONNECTING_MAX);
        first.map_or(Instant::NEVER, |(at, _)| (*at).max(self.next_attempt_at))
    }

    /// The connection of a stream is established. Returns the position of its first byte in the
    /// stream of the meter.
    pub fn handle_connected(&mut self, id: StreamId) -> u64 {
        self.connecting = self.connecting.saturating_sub(1);
        self.attempt_backoff = Duration::ZERO;
        let connected = self.update(id, |stream| (stream.connect(), stream.is_loaded()));
        let Some((position, is_loaded)) = connected else { return 0 };
        if !is_loaded {
            self.unloaded.insert(id);
        }
        self.ready.insert(id);
        position
    }

    /// The connection could not be made: the server is not reachable. Returns when the next attempt
    /// is made.
    pub fn handle_unreachable(&mut self, now: Instant, id: StreamId) -> Instant {
        self.connecting = self.connecting.saturating_sub(1);
        mark!(server_attempts_of_all_meters_wait_together);
        self.attempt_backoff = (self.attempt_backoff * 2).max(BACKOFF_MIN).min(BACKOFF_MAX);
        self.next_attempt_at = now + self.attempt_backoff;
        if let Some(stream) = self.stream(id) {
            stream.link = Link::Idle;
            self.schedule(now, id);
        }
        self.end_if_complete(now, id);
        self.next_attempt_at
    }

    /// The connection of a stream has failed after it was established. What the server has not
    /// confirmed is resent over a new connection. The interval of attempts grows until the server
    /// confirms something: one that fails at the same message again and again must not occupy the
    /// head.
    pub fn handle_failed(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.stream(id) else { return };
        let timers = std::mem::take(&mut stream.timers);
        self.forget_connection(id, &timers);
        let needs_connection = self.update(id, |stream| {
            stream.disconnect();
            mark!(server_failing_stream_waits_longer if stream.backoff > BACKOFF_MIN);
            stream.backoff = (stream.backoff * 2).max(BACKOFF_MIN).min(BACKOFF_MAX);
            (stream.needs_connection(), stream.end.is_some())
        });
        match needs_connection {
            Some((true, _)) => self.schedule(now, id),
            // Everything is delivered.
            Some((false, true)) => self.remove(id),
            _ => {}
        }
    }

    /// Nothing is to be done for the connection of a stream any more.
    pub(super) fn forget_connection(&mut self, id: StreamId, timers: &Timers) {
        if let Some(at) = timers.end_at {
            self.ends.remove(&(at, id));
        }
        if let Some(since) = timers.awaiting_close_since {
            self.awaiting_close.remove(&(since, id));
        }
        self.ready.remove(&id);
        self.unloaded.remove(&id);
        self.loading.remove(&id);
    }
}
