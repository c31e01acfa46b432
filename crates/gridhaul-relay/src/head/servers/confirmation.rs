//! When data counts as delivered: the server closes its direction after FIN, or answers; and what
//! is assumed without that.

use gridhaul_core::coverage_mark::mark;
use gridhaul_scenario::relay::Confirmation;
use gridhaul_scenario::units::{Duration, Instant};

use super::stream::{Link, Stream, StreamEnd};
use super::{ServerStreams, StreamId};
use crate::head::MeterKey;

/// Data of an open connection that the server's TCP has acknowledged is resent after a failure for
/// at least this time, and for less than twice as long: the log cannot keep what a connection of
/// months has carried.
pub(super) const OPEN_AGE: Duration = Duration::from_secs(60);

/// Time between the acknowledgement of the last byte and the end of a stream, if nothing confirms
/// the last byte. A server reads in this time, or its death resets the connection and the data is
/// resent. Afterwards RST may discard what the server has not read; and once both directions have
/// ended, the kernel sends no RST for unread data, so that the death of the server is not seen.
pub(in crate::head) const READ_DELAY: Duration = Duration::from_secs(2);

/// An answer of the server: its end in the data of the server, and the state of the stream when it
/// was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    down: u64,
    acknowledged: u64,
    boundary: u64,
}

/// Data of an open connection that the server's TCP has acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    due: Instant,
    id: StreamId,
    connection: u32,
    boundary: u64,
}

/// Data that the server's TCP has acknowledged, and the server has not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unconfirmed {
    /// All bytes of this kind.
    pub bytes: u64,
    /// The part that cannot be resent.
    pub at_risk: u64,
}

impl Stream {
    /// Whether FIN waits, because the server has closed its direction before it had everything. Its
    /// FIN confirms nothing that follows.
    pub(super) fn must_wait_before_fin(&self, confirmation: Confirmation) -> bool {
        confirmation == Confirmation::Close
            && self.link == Link::Connected
            && self.is_closed_by_server
            && !self.is_fin_sent
            && self.confirmed < self.received
            && !self.timers.had_time_to_read
    }

    /// Bytes of the server were read.
    pub(super) fn note_answer(&mut self) {
        let (down, acknowledged, boundary) = (self.down_read, self.acknowledged, self.boundary);
        if self.answers.back().is_none_or(|last| last.acknowledged < acknowledged) {
            self.answers.push_back(Answer { down, acknowledged, boundary });
        }
    }

    /// The meter has received the server's data up to this position. Returns whether this confirms
    /// something.
    fn confirm_answers(&mut self, position: u64) -> bool {
        let mut is_progress = false;
        while let Some(answer) =
            self.answers.front().copied().filter(|answer| answer.down <= position)
        {
            mark!(server_answer_that_the_meter_has_confirms_data);
            self.answers.pop_front();
            self.confirmed = self.confirmed.max(answer.acknowledged);
            is_progress |= self.release(answer.boundary);
        }
        is_progress
    }
}

impl ServerStreams {
    /// Whether the server may not have acknowledged something of a stream.
    pub fn is_unacknowledged(&mut self, id: StreamId) -> bool {
        self.stream(id).is_some_and(|stream| stream.is_unacknowledged())
    }

    /// The server has not acknowledged the last `unacknowledged` bytes of the connection, FIN
    /// counted as one.
    pub fn handle_acknowledged(&mut self, now: Instant, id: StreamId, unacknowledged: u64) {
        let confirmation = self.confirmation;
        let aged = self.update(id, |stream| {
            let had_fin = stream.is_fin_acknowledged;
            stream.acknowledge(unacknowledged);
            if confirmation == Confirmation::Acknowledgement {
                stream.confirmed = stream.acknowledged;
                if stream.release(stream.boundary) {
                    stream.backoff = Duration::ZERO;
                }
                return (None, false);
            }
            // One acknowledgement of a stream ages at a time: the queue has an entry for each
            // stream, and not for each acknowledgement.
            let ages = stream.end.is_none() && !stream.is_ageing && stream.boundary > stream.resume;
            stream.is_ageing |= ages;
            let ageing = ages.then_some((stream.connection, stream.boundary));
            (ageing, stream.is_fin_acknowledged && !had_fin)
        });
        let Some((ageing, is_fin_acknowledged)) = aged else { return };
        if let Some((connection, boundary)) = ageing {
            self.ageing.push_back(Acknowledged { due: now + OPEN_AGE, id, connection, boundary });
        }
        if is_fin_acknowledged {
            self.update(id, |stream| stream.timers.awaiting_close_since = Some(now));
            self.awaiting_close.insert((now, id));
        }
        self.end_if_complete(now, id);
    }

    /// The server has closed its direction (FIN). A socket with unread data would have been reset
    /// instead (RFC 9293, section 3.6.1, and RFC 2525, section 2.17): the server has read
    /// everything that its TCP has acknowledged. The caller reports the acknowledgements first.
    ///
    /// This confirms nothing that is sent afterwards: each later read of the socket finds its end
    /// again. The connection stays, because the server may read on.
    pub fn handle_server_fin(&mut self, now: Instant, id: StreamId) {
        self.update(id, |stream| {
            if stream.is_closed_by_server {
                return;
            }
            mark!(server_fin_confirms_acknowledged_data if stream.confirmed < stream.acknowledged);
            stream.is_closed_by_server = true;
            stream.confirmed = stream.acknowledged;
            if stream.release(stream.boundary) {
                stream.backoff = Duration::ZERO;
            }
        });
        self.end_if_complete(now, id);
    }

    /// The collector has passed the data of the server to the meter's socket up to this position.
    /// Returns the stream, from whose server more can be read now.
    pub fn handle_down_confirmed(&mut self, key: MeterKey, position: u64) -> Option<StreamId> {
        let id = *self.by_key.get(&key)?;
        self.update(id, |stream| {
            stream.down_confirmed = position;
            // A meter that accepts nothing has received no answer.
            if position != crate::protocol::DOWN_ENDED && stream.confirm_answers(position) {
                stream.backoff = Duration::ZERO;
            }
        })?;
        Some(id)
    }

    /// Ends a stream that is complete.
    pub(super) fn end_if_complete(&mut self, now: Instant, id: StreamId) {
        let confirmation = self.confirmation;
        let Some(stream) = self.streams.get(&id) else { return };
        let is_acknowledged = stream.acknowledged == stream.received;
        let is_confirmed = stream.is_closed_by_server && stream.confirmed == stream.received;
        match stream.end {
            Some(StreamEnd::Fin) if stream.is_fin_acknowledged && stream.is_closed_by_server => {
                self.remove(id);
            }
            Some(StreamEnd::Fin)
                if stream.is_fin_acknowledged && confirmation == Confirmation::Acknowledgement =>
            {
                self.update(id, |stream| stream.is_delivered = true);
            }
            Some(StreamEnd::Reset) if stream.resume == stream.received => self.remove(id),
            Some(StreamEnd::Fin)
                if stream.must_wait_before_fin(confirmation) && is_acknowledged =>
            {
                mark!(server_that_has_closed_early_has_time_to_read_before_fin);
                self.end_later(now, id);
            }
            Some(StreamEnd::Reset) if stream.link == Link::Connected && is_acknowledged => {
                if is_confirmed || confirmation == Confirmation::Acknowledgement {
                    self.remove(id);
                } else {
                    mark!(server_has_time_to_read_before_a_reset);
                    self.end_later(now, id);
                }
            }
            _ => {}
        }
    }

    /// The stream ends when the server had time to read.
    fn end_later(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.timers.end_at.is_none() {
            let at = now + READ_DELAY;
            stream.timers.end_at = Some(at);
            self.ends.insert((at, id));
        }
    }

    /// Ends streams whose server had time to read, and releases data of open connections that is
    /// old enough.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, id)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, id));
            let Some(stream) = self.stream(id) else { continue };
            stream.timers.end_at = None;
            if stream.end == Some(StreamEnd::Fin) {
                stream.timers.had_time_to_read = true;
                self.schedule(now, id);
            } else {
                self.remove(id);
            }
        }
        while let Some(old) = self.ageing.front().copied().filter(|old| old.due <= now) {
            self.ageing.pop_front();
            let next = self.update(old.id, |stream| {
                if stream.connection != old.connection || !stream.is_ageing {
                    return None;
                }
                stream.is_ageing = false;
                if stream.end.is_some() {
                    return None;
                }
                mark!(server_open_connection_keeps_the_log_for_a_limited_time);
                stream.release(old.boundary);
                // The connection has lasted.
                stream.backoff = Duration::ZERO;
                stream.is_ageing = stream.boundary > stream.resume;
                stream.is_ageing.then_some(stream.boundary)
            });
            if let Some(boundary) = next.flatten() {
                let due = now + OPEN_AGE;
                self.ageing.push_back(Acknowledged { due, boundary, ..old });
            }
        }
    }

    /// When [`Self::handle_timeout`] must be called.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        let end = self.ends.first().map_or(Instant::NEVER, |(at, _)| *at);
        self.ageing.front().map_or(end, |oldest| oldest.due.min(end))
    }

    /// Releases data of open connections that the server's TCP has acknowledged and whose records
    /// are before this position of the log: open connections must not fill the log, not even with
    /// the start of a message that never ends.
    pub fn release_before(&mut self, position: u64) {
        let old: Vec<StreamId> =
            self.holds.range(..(position, StreamId::new(0))).map(|(_, id)| *id).collect();
        for id in old {
            self.update(id, |stream| {
                if stream.end.is_none() {
                    stream.release(stream.acknowledged);
                }
            });
        }
    }

    /// The oldest stream whose FIN is acknowledged and whose server has not closed its direction
    /// since, and the number of such streams.
    #[must_use]
    pub fn awaiting_close(&self) -> Option<(Instant, usize)> {
        self.awaiting_close.first().map(|(since, _)| (*since, self.awaiting_close.len()))
    }

    /// Number of streams with data for the server whose connections have failed more than once,
    /// without a confirmation between.
    #[must_use]
    pub const fn failing(&self) -> u64 {
        self.sums.failing
    }

    /// Data that the server's TCP has acknowledged, and the server has not confirmed.
    #[must_use]
    pub const fn unconfirmed(&self) -> Unconfirmed {
        Unconfirmed { bytes: self.sums.unconfirmed, at_risk: self.sums.at_risk }
    }
}
