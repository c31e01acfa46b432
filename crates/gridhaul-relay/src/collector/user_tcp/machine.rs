//! The state machine of TCP in user space.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::units::Instant;

use super::counters::UserTcpCounters;
use super::endpoint::{Endpoint, Opening, Phase, Progress};
use super::flow::Flow;
use super::half_open::HalfOpen;
use super::initial_sequence_number::InitialSequenceNumbers;
use super::packets::{self, Incoming, Syn};
use super::parameters::Parameters;
use super::settings::{DropCause, UserTcpSettings};
use super::table::{ConnectionId, Table};
use super::timers::Timers;

/// TCP in user space: listeners and the connections of meters.
///
/// Call order: after [`Self::handle_packet`], [`Self::handle_timeout`] and the calls of the
/// application, [`Self::poll_event`] until `None` and [`Self::poll_packet`] until false.
#[derive(Debug)]
pub struct UserTcp {
    pub(super) settings: UserTcpSettings,
    pub(super) sequence_numbers: InitialSequenceNumbers,
    pub(super) parameters: Parameters,
    pub(super) table: Table,
    pub(super) half_open: HalfOpen,
    pub(super) timers: Timers,
    /// Rows that may have a segment to send.
    pub(super) queue: VecDeque<u32>,
    /// Resets of segments that belong to no connection.
    pub(super) resets: VecDeque<(Flow, Segment)>,
    pub(super) events: VecDeque<UserTcpEvent>,
    /// Rows whose window is limited by the space for records.
    pub(super) narrow: BTreeSet<u32>,
    /// The row after which the search for opened windows continues.
    pub(super) narrow_from: u32,
    pub(super) counters: UserTcpCounters,
    pub(super) is_accepting: bool,
    pub(super) payload: Vec<u8>,
}

/// Event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTcpEvent {
    /// The handshake is complete. The application answers at the end with
    /// [`UserTcp::release`].
    Opened {
        /// The connection.
        connection: ConnectionId,
        /// Its addresses.
        flow: Flow,
        /// Row of the listener in the settings.
        listener: u16,
    },
    /// There is something to read: data, the end or a failure.
    Readable(ConnectionId),
    /// A write that was not accepted as a whole can be repeated.
    Writable(ConnectionId),
}

/// Resets that wait to be sent. Others are dropped: the peer's retransmission is answered.
const RESETS_MAX: usize = 256;

impl UserTcp {
    /// A machine without connections.
    #[must_use]
    pub fn new(settings: UserTcpSettings) -> Self {
        Self {
            sequence_numbers: InitialSequenceNumbers::new(settings.secret),
            parameters: Parameters::new(settings.receive_window, settings.mtu),
            table: Table::default(),
            half_open: HalfOpen::default(),
            timers: Timers::default(),
            queue: VecDeque::new(),
            resets: VecDeque::new(),
            events: VecDeque::new(),
            narrow: BTreeSet::new(),
            narrow_from: 0,
            counters: UserTcpCounters::default(),
            is_accepting: true,
            payload: Vec::new(),
            settings,
        }
    }

    /// Sets the largest number of connections, which a reload can change.
    pub const fn set_connections_max(&mut self, connections_max: usize) {
        self.settings.connections_max = connections_max;
    }

    /// Whether connections are accepted. Otherwise SYN is dropped, so that the meter repeats it.
    pub const fn set_accepting(&mut self, is_accepting: bool) {
        self.is_accepting = is_accepting;
    }

    /// Handles a packet that the device has received.
    pub fn handle_packet(&mut self, now: Instant, packet: &Bytes) {
        match packets::parse(packet).and_then(|incoming| self.check(incoming)) {
            Ok(incoming) => self.handle_segment(now, &incoming),
            Err(cause) => self.counters.drop(cause),
        }
    }

    /// Addresses to which nothing may be answered.
    fn check(&self, incoming: Incoming) -> Result<Incoming, DropCause> {
        let flow = &incoming.flow;
        let mut listeners = self.settings.listeners.iter();
        if !listeners.any(|listener| listener.ip() == flow.local.ip()) {
            return Err(DropCause::Address);
        }
        if !flow.has_valid_peer() { Err(DropCause::Source) } else { Ok(incoming) }
    }

    fn handle_segment(&mut self, now: Instant, incoming: &Incoming) {
        let Incoming { flow, segment, syn, payload } = incoming;
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let mut found = self.table.find(flow);
        if let Some(row) = found
            && opens
            && self.table.row(row).is_some_and(|endpoint| endpoint.may_be_replaced(segment.seq))
        {
            self.remove(row);
            found = None;
        }
        let listener = self.settings.listeners.iter().position(|address| *address == flow.local);
        let row = match (found, listener) {
            (Some(row), _) => row,
            (None, Some(listener)) if opens && !segment.flags.has(Flags::RST) => {
                let Some(row) = self.open(now, *flow, listener as u16, syn) else {
                    self.counters.drop(DropCause::Full);
                    return;
                };
                row
            }
            (None, _) => {
                self.reset_unknown(*flow, segment);
                return;
            }
        };
        let Some(endpoint) = self.table.row_mut(row) else { return };
        let before = endpoint.progress();
        let repeats = endpoint.handle_segment(now, *segment, payload);
        self.counters.early_retransmissions += u64::from(repeats);
        self.announce(row, before);
    }

    /// A segment that belongs to no connection is answered with RST (RFC 9293, 3.10.7.1): after a
    /// restart, the meter learns that its connection has ended.
    fn reset_unknown(&mut self, flow: Flow, segment: &Segment) {
        if segment.flags.has(Flags::RST) || self.resets.len() >= RESETS_MAX {
            return;
        }
        self.counters.unknown += 1;
        let answer = if segment.flags.has(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            let ack = segment.seq.wrapping_add(segment.sequence_len());
            Segment { ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
        };
        self.resets.push_back((flow, answer));
    }

    /// The row of a new connection; `None` if there is no space for it.
    fn open(&mut self, now: Instant, flow: Flow, listener: u16, syn: &Syn) -> Option<u32> {
        if !self.is_accepting {
            return None;
        }
        let is_full = self.table.len() >= self.settings.connections_max
            || self.half_open.len() >= self.settings.half_open_max;
        if is_full {
            let table = &self.table;
            let oldest = self.half_open.oldest(|id| is_half_open(table, id))?;
            self.counters.half_open_evicted += 1;
            self.remove(oldest.row);
        }
        let opening = Opening {
            flow,
            listener,
            params: self.parameters.of(syn, flow.local.is_ipv6()),
            isn: self.sequence_numbers.next(now, &flow),
            peer_scale: syn.window_scale,
            receive_only: self.settings.receive_only,
        };
        let id = self.table.insert(Endpoint::new(now, opening));
        self.half_open.push(id);
        let table = &self.table;
        self.half_open.shrink(|id| is_half_open(table, id));
        Some(id.row)
    }

    /// Creates events for what has happened to a connection, which had made this progress before.
    fn announce(&mut self, row: u32, before: Progress) {
        let Some(endpoint) = self.table.row_mut(row) else { return };
        let connection = ConnectionId { row, number: endpoint.number };
        if endpoint.phase == Phase::Opening && endpoint.is_open() {
            endpoint.phase = Phase::Open;
            self.half_open.remove_one();
            let (flow, listener) = (endpoint.flow, endpoint.listener);
            self.events.push_back(UserTcpEvent::Opened { connection, flow, listener });
        }
        if endpoint.phase == Phase::Open {
            if endpoint.progress() != before {
                self.events.push_back(UserTcpEvent::Readable(connection));
            }
            if endpoint.take_space() {
                self.events.push_back(UserTcpEvent::Writable(connection));
            }
        }
        self.enqueue(row);
    }

    pub(super) fn enqueue(&mut self, row: u32) {
        if let Some(endpoint) = self.table.row_mut(row)
            && !endpoint.is_queued
        {
            endpoint.is_queued = true;
            self.queue.push_back(row);
        }
    }

    pub(super) fn remove(&mut self, row: u32) {
        let Some(mut endpoint) = self.table.remove(row) else { return };
        if endpoint.phase == Phase::Opening {
            self.half_open.remove_one();
        }
        self.timers.set(row, &mut endpoint.timer, Instant::NEVER);
        self.narrow.remove(&row);
    }

    /// When [`Self::handle_timeout`] must be called.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.timers.deadline()
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(row) = self.timers.poll(now) {
            let Some(endpoint) = self.table.row_mut(row) else { continue };
            endpoint.timer = Instant::NEVER;
            let before = endpoint.progress();
            let has_failed = endpoint.handle_timeout(now);
            self.counters.timeouts += u64::from(has_failed && endpoint.phase == Phase::Open);
            self.announce(row, before);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<UserTcpEvent> {
        self.events.pop_front()
    }
}

fn is_half_open(table: &Table, id: ConnectionId) -> bool {
    table.get(id).is_some_and(|endpoint| endpoint.phase == Phase::Opening)
}
