//! The upstream connection of a shard: frames to and from the head.

use gridhaul_core::coverage_mark::mark;
use thiserror::Error;

use super::machine::{Collector, Event};
use super::meter::MeterId;
use super::session_state::SessionState;
use super::settings::Tier;
use super::stored::StoredBefore;
use crate::log::{LogError, Storage};
use crate::protocol::{
    AckNumber, Close, DOWN_ENDED, DOWN_WINDOW, Frame, Hello, LostRecords, PROTOCOL_VERSION,
    Welcome, compress,
};

/// Why an upstream connection must be closed.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The head has refused the collector.
    #[error("the head refuses this collector: {0}")]
    Refused(String),
    /// The head has records that follow the start of this run, and that this run has not sent.
    #[error(
        "the head has {head} records of this log's numbering, and this collector has sent \
         {collector}: the log is older than \
         the head's records (restored from a backup?), or another collector uses a copy of it; \
         nothing is sent\n  \
         help: stop this collector, move the folder of `log.folder` to another place, and start \
         it again: it begins a new log"
    )]
    OlderLog {
        /// Sequence number of the next record that the head expects.
        head: u64,
        /// The largest such number that follows from what this collector has sent.
        collector: u64,
    },
    /// A frame at the wrong time, or with wrong numbers.
    #[error("unexpected frame from the head: {0}")]
    Protocol(&'static str),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl SessionError {
    /// The error of the log, if an entry is damaged.
    #[must_use]
    pub fn into_damage(self) -> Option<LogError> {
        match self {
            Self::Log(error) if error.is_damage() => Some(error),
            _ => None,
        }
    }
}

impl<S: Storage + Clone> Collector<S> {
    /// An upstream connection was established. Appends the first frame to `out`.
    pub fn handle_connected(&mut self, shard: u16, out: &mut Vec<u8>) {
        let next = self.shards[usize::from(shard)].builder.next();
        self.shards[usize::from(shard)].session.connect();
        Frame::Hello(Hello {
            version: PROTOCOL_VERSION,
            collector: &self.settings.name,
            epoch: self.epoch,
            shard,
            shards: self.shard_count(),
            oldest: 0,
            next,
            replies: self.settings.replies,
            compression: self.settings.compression,
        })
        .write(out);
    }

    /// An upstream connection has ended.
    pub fn handle_disconnected(&mut self, shard: u16) {
        self.shards[usize::from(shard)].session.state = SessionState::Disconnected;
    }

    /// Whether the head has lost records that it had confirmed: true once after such a connection
    /// was established.
    pub fn poll_lost(&mut self, shard: u16) -> bool {
        std::mem::take(&mut self.shards[usize::from(shard)].session.has_lost)
    }

    /// Records of a shard that are missing in the log. Each gap is returned once.
    pub(crate) fn poll_lost_records(&mut self, shard: u16) -> Option<LostRecords> {
        self.shards[usize::from(shard)].session.lost.pop()
    }

    /// Whether the head has welcomed the connection of a shard.
    #[must_use]
    pub fn is_established(&self, shard: u16) -> bool {
        self.shards[usize::from(shard)].session.state == SessionState::Established
    }

    /// A frame of the head has arrived. Answers are appended to `out`.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn handle_frame(
        &mut self,
        shard: u16,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        let index = usize::from(shard);
        let is_established = self.is_established(shard);
        match *frame {
            Frame::Welcome(welcome) if !is_established => self.handle_welcome(index, welcome)?,
            Frame::Refused(refusal) => {
                return Err(SessionError::Refused(refusal.reason.to_owned()));
            }
            Frame::Ping => Frame::Pong.write(out),
            Frame::Pong => {}
            _ if !is_established => return Err(SessionError::Protocol("no welcome")),
            Frame::Ack { next } => {
                // Records of an earlier connection may become durable at the head after this one
                // was established.
                if next.get() > self.shards[index].session.expected_max {
                    mark!(collector_refuses_an_acknowledgement_of_unsent_records);
                    return Err(SessionError::Protocol("acknowledgement of unsent records"));
                }
                self.handle_ack(index, next);
            }
            Frame::Credit { limit } => {
                let session = &mut self.shards[index].session;
                session.credit = session.credit.max(limit);
            }
            Frame::Down { meter, offset, bytes } => {
                self.handle_down(meter, offset, bytes, out)?;
            }
            Frame::Close { meter, close } => {
                self.handle_close(meter, close);
                // Without this answer the head would repeat the frame after a reconnection.
                Frame::DownAck { meter, offset: DOWN_ENDED }.write(out);
            }
            _ => return Err(SessionError::Protocol("a frame of a collector")),
        }
        Ok(())
    }

    fn handle_welcome(&mut self, index: usize, welcome: Welcome) -> Result<(), SessionError> {
        let session = &mut self.shards[index].session;
        let next = welcome.next.get();
        if next > session.expected_max {
            mark!(collector_with_an_older_log_sends_nothing);
            let collector = session.expected_max;
            return Err(SessionError::OlderLog { head: next, collector });
        }
        if next < session.confirmed {
            mark!(collector_notices_that_the_head_has_lost_records);
            session.has_lost = true;
            session.confirmed = next;
        }
        session.state = SessionState::Established;
        session.credit = welcome.credit;
        session.follows = next;
        session.compression = welcome.compression && self.settings.compression;
        let is_new = session.instance.replace(welcome.instance) != Some(welcome.instance);
        if is_new {
            // The head has restarted: servers begin new streams.
            mark!(collector_servers_begin_anew_after_a_restart_of_the_head);
            for meter in self.meters.iter_mut().filter(|meter| usize::from(meter.shard) == index) {
                meter.down_expected = 0;
                meter.down_written = 0;
                meter.server_fin &= meter.fin_sent;
            }
        }
        self.shards[index].backlog.rewind(next);
        self.handle_ack(index, welcome.next);
        Ok(())
    }

    fn handle_ack(&mut self, index: usize, next: AckNumber) {
        let shard = &mut self.shards[index];
        shard.session.confirmed = shard.session.confirmed.max(next.get());
        shard.backlog.confirm(next.get());
        if self.settings.tier == Tier::Server {
            self.handle_stored(index, StoredBefore::at_head(next));
        }
    }

    fn handle_down(
        &mut self,
        number: u64,
        offset: u64,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        let id = self.meters.find(number);
        let found = id.and_then(|id| Some((id, self.meters.get_mut(id)?)));
        let Some((id, meter)) = found.filter(|(_, meter)| !meter.fin_sent) else {
            mark!(collector_drops_data_for_an_ended_meter);
            Frame::DownAck { meter: number, offset: DOWN_ENDED }.write(out);
            return Ok(());
        };
        // After a reconnection the head repeats what was not acknowledged.
        let known = meter.down_expected.saturating_sub(offset) as usize;
        if offset > meter.down_expected || known >= bytes.len() {
            Frame::DownAck { meter: number, offset: meter.down_written }.write(out);
            return Ok(());
        }
        let end = offset + bytes.len() as u64;
        if end > meter.down_written + DOWN_WINDOW {
            mark!(collector_refuses_data_beyond_the_window_of_a_meter);
            return Err(SessionError::Protocol("more data for a meter than its window"));
        }
        meter.down_expected = end;
        self.events.push_back(Event::Down { meter: id, bytes: bytes[known..].to_vec() });
        Ok(())
    }

    fn handle_close(&mut self, number: u64, close: Close) {
        let Some(id) = self.meters.find(number) else { return };
        match close {
            Close::Fin { .. } => {
                if let Some(meter) = self.meters.get_mut(id) {
                    meter.server_fin = true;
                }
                self.finish_if_complete(id);
            }
            Close::Reset { cause } => self.abort(id, cause),
        }
    }

    /// So many bytes of [`Event::Down`] were passed to the meter's socket. Appends the
    /// acknowledgement to `out`, the output of the meter's shard.
    pub fn handle_down_written(&mut self, id: MeterId, bytes: u64, out: &mut Vec<u8>) {
        let Some(meter) = self.meters.get_mut(id) else { return };
        meter.down_written = (meter.down_written + bytes).min(meter.down_expected);
        Frame::DownAck { meter: id.number, offset: meter.down_written }.write(out);
        self.finish_if_complete(id);
    }

    /// Shard of a meter.
    #[must_use]
    pub fn shard(&self, id: MeterId) -> Option<u16> {
        self.meters.get(id).map(|meter| meter.shard)
    }

    /// Whether [`Self::fill`] has returned false although the log may have another batch: the
    /// caller calls it again after the meters were served.
    #[must_use]
    pub fn is_searching(&self, shard: u16) -> bool {
        self.is_established(shard) && self.shards[usize::from(shard)].backlog.is_searching()
    }

    /// Appends the next batch of a shard to `out`. False if none was found, or without credit.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn fill(&mut self, shard: u16, out: &mut Vec<u8>) -> Result<bool, SessionError> {
        let shard = &mut self.shards[usize::from(shard)];
        if shard.session.state != SessionState::Established {
            return Ok(false);
        }
        let credit = shard.session.credit.saturating_sub(shard.session.sent);
        let Some(batch) = shard.backlog.next(credit)? else { return Ok(false) };
        if shard.session.expected != Some(batch.first) {
            Frame::Resume { next: batch.first }.write(out);
        }
        shard.session.note_lost(&batch);
        shard.session.expected = Some(batch.next);
        shard.session.expected_max = shard.session.expected_max.max(batch.next);
        shard.session.sent += batch.bytes.len() as u64;
        let compressed = if shard.session.compression { compress(&batch.bytes) } else { None };
        let frame = compressed
            .as_ref()
            .map_or(Frame::Batch(&batch.bytes), |bytes| Frame::Compressed(bytes));
        frame.write(out);
        shard.session.batches += batch.bytes.len() as u64;
        shard.session.compressed += compressed.as_ref().unwrap_or(&batch.bytes).len() as u64;
        Ok(true)
    }

    /// Bytes of all batches that were passed to upstream connections, before and after compression.
    #[must_use]
    pub fn upstream_bytes(&self) -> (u64, u64) {
        let sessions = self.shards.iter().map(|shard| &shard.session);
        sessions.fold((0, 0), |sum, session| (sum.0 + session.batches, sum.1 + session.compressed))
    }
}
