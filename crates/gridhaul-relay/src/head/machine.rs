//! The state machine of a head: connections of collectors.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_core::coverage_mark::mark;
use thiserror::Error;

use super::data_for_meters::DownStreams;
use super::log_item::Item;
use super::positions::{Positions, next_durable, positions};
use super::settings::HeadSettings;
use super::sources::HeadState;
use crate::log::{Durable, Group, SEGMENT_FULL};
use crate::protocol::{
    AckNumber, Batch, DecodeError, Frame, Hello, Record, Refusal, Welcome, decompress,
};

/// Why the connection of a collector must be closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeadError {
    /// The collector is refused; the frame with the reason is in the output.
    #[error("collector refused: {0}")]
    Refused(String),
    /// A frame at the wrong time, or with wrong numbers.
    #[error("unexpected frame of a collector: {0}")]
    Protocol(&'static str),
    /// A batch opens more meters than a collector can have.
    #[error("the collector has more than {limit} open meters")]
    TooManyMeters {
        /// Largest number.
        limit: usize,
    },
    /// A batch is damaged.
    #[error("batch of a collector: {0}")]
    Decode(#[from] DecodeError),
}

/// A head.
#[derive(Debug)]
pub struct Head {
    pub(super) settings: HeadSettings,
    instance: u64,
    /// State after all records that were received, durable or not.
    pub(super) state: HeadState,
    /// Sequence numbers up to which records are durable, by epoch and shard.
    durable: Durable<Positions>,
    pub(super) connections: BTreeMap<u32, Connection>,
    /// Data of servers for meters.
    pub(super) down: DownStreams,
    /// Epochs of collectors whose meters expect nothing from servers.
    pub(super) without_replies: BTreeSet<u64>,
    /// Items that are not part of a group.
    pending: Vec<u8>,
    /// State at the end of the group that is being written.
    writing: Option<Positions>,
    superseded: Vec<u32>,
    pub(super) outputs: BTreeSet<u32>,
    pub(super) log_end: Durable<u64>,
    pub(super) delivered: u64,
    segment_used: u64,
    /// State before the first pending item, if that item begins a segment.
    snapshot: Option<Vec<u8>>,
    losses: Vec<Loss>,
}

/// Records that a collector does not have any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Name of the collector.
    pub collector: String,
    /// Shard of the records.
    pub shard: u16,
    /// Number of records; `None` if it is unknown.
    pub records: Option<u64>,
    /// Bytes of the collector's log; `None` if they are unknown.
    pub bytes: Option<u64>,
}

/// The connection of a collector. Counts are bytes of batches since the connection began.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub source: Option<(u64, u16)>,
    received: u64,
    /// Durable, and therefore acknowledged.
    pub durable: u64,
    /// Received when the group that is being written was taken: durable once that group is.
    in_group: u64,
    /// Sum of all credits: the collector may send up to this position.
    pub granted: u64,
    pub out: Vec<u8>,
}

impl Head {
    /// A head that continues with this state; its log ends at `log_end`. `instance` is a random
    /// number.
    #[must_use]
    pub fn new(
        settings: HeadSettings,
        instance: u64,
        state: HeadState,
        log_end: Durable<u64>,
    ) -> Self {
        Self {
            settings,
            instance,
            durable: log_end.map(|_| positions(&state)),
            state,
            connections: BTreeMap::new(),
            down: DownStreams::default(),
            without_replies: BTreeSet::new(),
            pending: Vec::new(),
            writing: None,
            superseded: Vec::new(),
            outputs: BTreeSet::new(),
            log_end,
            delivered: 0,
            segment_used: 0,
            snapshot: None,
            losses: Vec::new(),
        }
    }

    /// A collector has connected; the caller chooses an unused number.
    pub fn handle_connected(&mut self, connection: u32) {
        self.connections.insert(connection, Connection::default());
    }

    /// A connection has ended.
    pub fn handle_disconnected(&mut self, connection: u32) {
        self.connections.remove(&connection);
        self.outputs.remove(&connection);
        // The caller may use the number for another connection.
        self.superseded.retain(|number| *number != connection);
    }

    /// A frame has arrived.
    ///
    /// # Errors
    /// The connection must be closed after its output was sent.
    pub fn handle_frame(&mut self, connection: u32, frame: &Frame<'_>) -> Result<(), HeadError> {
        let Some(peer) = self.connections.get_mut(&connection) else { return Ok(()) };
        match (*frame, peer.source) {
            (Frame::Hello(hello), None) => self.handle_hello(connection, &hello),
            (Frame::Ping, _) => {
                Frame::Pong.write(&mut peer.out);
                self.outputs.insert(connection);
                Ok(())
            }
            (Frame::Pong, _) => Ok(()),
            (Frame::DownAck { meter, offset }, Some((epoch, _))) => {
                self.down.handle_ack((epoch, meter), offset);
                Ok(())
            }
            (Frame::Resume { next }, Some((epoch, shard))) => {
                self.handle_resume(epoch, shard, next);
                Ok(())
            }
            (Frame::Batch(bytes), Some(source)) => self.handle_batch(connection, source, bytes),
            (Frame::Compressed(bytes), Some(source)) => {
                self.handle_batch(connection, source, &decompress(bytes)?)
            }
            (_, None) => Err(HeadError::Protocol("the first frame must be Hello")),
            _ => Err(HeadError::Protocol("a frame that only a head sends")),
        }
    }

    fn handle_hello(&mut self, connection: u32, hello: &Hello<'_>) -> Result<(), HeadError> {
        if let Some(reason) = self.refusal(hello) {
            let peer = self.connections.get_mut(&connection).expect("the connection exists");
            Frame::Refused(Refusal { reason: &reason }).write(&mut peer.out);
            self.outputs.insert(connection);
            return Err(HeadError::Refused(reason));
        }
        let (epoch, shard) = (hello.epoch, hello.shard);
        let others = self.connections.iter().filter(|(number, other)| {
            **number != connection && other.source == Some((epoch, shard))
        });
        self.superseded.extend(others.map(|(number, _)| *number));
        mark!(head_second_connection_of_a_shard_replaces_the_first if !self.superseded.is_empty());
        if self.is_nameless(epoch) {
            self.append(&Item::Source { epoch, collector: hello.collector });
        } else if !self.state.sources.contains_key(&epoch) {
            // A collector begins a new epoch if it has lost its log: the rest of the meters of the
            // old epoch never comes.
            let same = |name: &str| name == hello.collector;
            let ended: Vec<u64> = (self.state.sources.iter())
                .filter(|(_, source)| same(&source.collector))
                .map(|(epoch, _)| *epoch)
                .collect();
            for ended in ended {
                mark!(head_new_epoch_ends_the_meters_of_the_old_one);
                self.append(&Item::End { epoch: ended });
                self.down.end(ended);
                self.without_replies.remove(&ended);
            }
            self.append(&Item::Source { epoch, collector: hello.collector });
        }
        if !hello.replies && self.without_replies.insert(epoch) {
            self.down.end(epoch);
        }
        let next = self.confirmed((epoch, shard));
        let credit = self.first_credit();
        let peer = self.connections.get_mut(&connection).expect("the connection exists");
        peer.source = Some((epoch, shard));
        peer.granted = credit;
        let (instance, compression) = (self.instance, hello.compression);
        let version = hello.version;
        Frame::Welcome(Welcome { version, instance, next, credit, compression })
            .write(&mut peer.out);
        self.down.rewind(epoch, shard);
        self.outputs.insert(connection);
        Ok(())
    }

    fn handle_resume(&mut self, epoch: u64, shard: u16, next: u64) {
        let expected = self.expected(epoch, shard);
        if next > expected {
            self.append(&Item::Jump { epoch, shard, next });
        }
    }

    fn expected(&self, epoch: u64, shard: u16) -> u64 {
        let source = self.state.sources.get(&epoch);
        source.and_then(|source| source.expected.get(&shard)).copied().unwrap_or(0)
    }

    fn handle_batch(
        &mut self,
        connection: u32,
        (epoch, shard): (u64, u16),
        bytes: &[u8],
    ) -> Result<(), HeadError> {
        let batch = Batch::read(bytes)?.ok_or(DecodeError::Truncated("batch"))?;
        if batch.bytes.len() != bytes.len() {
            return Err(DecodeError::Trailing("batch").into());
        }
        if (batch.epoch, batch.shard) != (epoch, shard) {
            return Err(HeadError::Protocol("a batch of another shard"));
        }
        let mut opened = 0;
        for record in batch.records() {
            opened += usize::from(matches!(record?.1, Record::Open { .. }));
        }
        let peer = self.connections.get_mut(&connection).expect("the connection exists");
        peer.received += bytes.len() as u64;
        if peer.received > peer.granted {
            mark!(head_refuses_a_batch_without_credit);
            return Err(HeadError::Protocol("a batch beyond the credit of the connection"));
        }
        let expected = self.expected(epoch, shard);
        if batch.next() <= expected {
            mark!(head_drops_a_known_batch);
            // The collector retransmitted the batch after a reconnection.
            return Ok(());
        }
        if batch.first != expected {
            mark!(head_refuses_a_batch_after_a_gap);
            return Err(HeadError::Protocol("a batch does not continue the records of its shard"));
        }
        let open = self.state.sources.get(&epoch).map_or(0, |source| source.meters.len());
        let limit = self.settings.meters;
        if opened > 0 && open + opened > limit {
            mark!(head_limits_open_meters);
            return Err(HeadError::TooManyMeters { limit });
        }
        self.append(&Item::Batch(batch));
        Ok(())
    }

    fn append(&mut self, item: &Item<'_>) {
        let is_full = self.segment_used >= self.settings.segment;
        mark!(head_no_segment_between_jump_and_batch if is_full && !self.state.is_complete());
        if self.pending.is_empty() && is_full && self.state.is_complete() {
            self.snapshot = Some(self.state.to_bytes());
        }
        item.write(&mut self.pending);
        let losses = &mut self.losses;
        self.state.apply(item, |observed, source| {
            if let Record::Gap { records, bytes } = observed.record {
                let (collector, shard) = (source.collector.clone(), observed.number.0);
                losses.push(Loss { collector, shard, records, bytes });
            }
        });
    }

    /// The next records to write to the log, unless others are being written. The caller reports
    /// the result with [`Self::handle_written`].
    pub fn poll_group(&mut self) -> Option<Group> {
        if self.writing.is_some() || self.pending.is_empty() && !self.has_unacknowledged() {
            return None;
        }
        if self.pending.is_empty() {
            // Only duplicates were received.
            mark!(head_acknowledges_duplicates_without_writing);
            self.writing = Some(self.durable.get().clone());
            self.mark_group();
            self.handle_written(self.log_end);
            return None;
        }
        let snapshot = self.snapshot.take();
        let payload = std::mem::take(&mut self.pending);
        self.segment_used =
            if snapshot.is_some() { 0 } else { self.segment_used } + payload.len() as u64;
        self.writing = Some(positions(&self.state));
        self.mark_group();
        Some(Group { payload, snapshot })
    }

    fn has_unacknowledged(&self) -> bool {
        self.connections.values().any(|peer| peer.received > peer.durable)
    }

    fn mark_group(&mut self) {
        for peer in self.connections.values_mut() {
            peer.in_group = peer.received;
        }
    }

    /// The last group is durable; the log ends here.
    ///
    /// # Panics
    /// The log ends before records that were durable.
    pub fn handle_written(&mut self, end: Durable<u64>) {
        let Some(positions) = self.writing.take() else { return };
        assert!(end >= self.log_end, "a log does not become shorter");
        self.log_end = end;
        // The group of these positions ends at or before the end of the log.
        self.durable = end.map(|_| positions);
        for (number, peer) in &mut self.connections {
            let Some(source) = peer.source else { continue };
            if peer.in_group > peer.durable {
                assert!(peer.in_group <= peer.received, "only received batches are written");
                mark!(head_acknowledges_after_the_commit);
                peer.durable = peer.in_group;
                let next = next_durable(&self.durable, source).into();
                Frame::Ack { next }.write(&mut peer.out);
                self.outputs.insert(*number);
            }
        }
        self.grant();
    }

    /// Records before this position of the log were delivered, and are durable at their sink.
    pub fn handle_delivered(&mut self, position: u64) {
        self.delivered = self.delivered.max(position);
        self.grant();
    }

    /// Bytes to send on a connection.
    pub fn poll_output(&mut self) -> Option<(u32, Vec<u8>)> {
        self.write_down();
        let number = self.outputs.pop_first()?;
        let peer = self.connections.get_mut(&number)?;
        Some((number, std::mem::take(&mut peer.out)))
    }

    /// A connection that the caller must close, because its collector has connected again.
    pub fn poll_superseded(&mut self) -> Option<u32> {
        self.superseded.pop()
    }

    /// Records that are missing in what a collector sends. Each loss is returned once.
    pub fn poll_loss(&mut self) -> Option<Loss> {
        self.losses.pop()
    }

    /// The next records begin a new segment of the log.
    pub const fn begin_segment(&mut self) {
        self.segment_used = SEGMENT_FULL;
    }

    /// The state after all received records.
    #[must_use]
    pub const fn state(&self) -> &HeadState {
        &self.state
    }

    /// Sequence number up to which the records of a shard are durable.
    #[must_use]
    pub fn durable(&self, epoch: u64, shard: u16) -> u64 {
        next_durable(&self.durable, (epoch, shard)).position()
    }

    fn confirmed(&self, source: (u64, u16)) -> AckNumber {
        next_durable(&self.durable, source).into()
    }
}
