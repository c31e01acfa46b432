//! Flows whose connections open and close during the run.

mod connections;
mod idle_watch;
mod row;
mod unsupported;

use gridhaul_core::load::{ConnectionManager, IdleRules};
use gridhaul_core::tcp::{Connection, Segment, State};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use self::connections::{CurrentConnection, LiveConnection};
use crate::end_id::EndId;
use crate::row_counters::SenderSums;
use crate::stacks::Stacks;

pub(crate) use row::RowConnections;
pub(crate) use unsupported::unsupported_connections;

/// The connections of one member.
#[derive(Debug, Clone)]
pub(crate) struct ManagedFlow {
    pub manager: ConnectionManager,
    /// Connections that are not closed at both ends, in the order in which they opened.
    live: Vec<LiveConnection>,
    stacks: Stacks,
    /// `None` if idle connections are neither forgotten nor watched.
    idle: Option<IdleRules>,
    /// Initial sequence numbers of the next connection: those that follow the sequence numbers of
    /// the newest one. They tell to which connection a segment belongs, as the local port does in a
    /// network.
    isns: [u32; 2],
    /// Number of the pair of hosts, for their local ports.
    hosts: u32,
    /// A segment that has arrived and is to be handled now.
    arrived: Option<(EndId, Segment)>,
    /// Counters of the senders of connections that have ended.
    ended: SenderSums,
}

/// Connections of a member that may exist at the same time. More would be attempts that the device
/// has given up and whose packets have waited for minutes.
const LIVE_MAX: usize = 8;

impl ManagedFlow {
    pub(crate) fn new(
        manager: ConnectionManager,
        stacks: Stacks,
        isns: [u32; 2],
        hosts: u32,
        idle: Option<IdleRules>,
    ) -> Self {
        let (live, arrived, ended) = (Vec::new(), None, SenderSums::default());
        Self { manager, live, stacks, idle, isns, hosts, arrived, ended }
    }

    /// A segment has arrived at an end. [`Self::handle_events`] must follow.
    pub(crate) const fn on_arrived(&mut self, to: EndId, segment: &Segment) {
        self.arrived = Some((to, *segment));
    }

    /// Handles the segment that has arrived and the timers of all connections. A kernel sends an
    /// acknowledgement that is due before the application runs, so the caller transmits before it
    /// calls [`Self::advance`].
    pub(crate) fn handle_events(&mut self, now: Instant, row: &mut RowConnections) {
        if let Some((to, segment)) = self.arrived.take() {
            self.handle_segment(now, to, &segment, row);
        }
        let ends = self.live.iter_mut().flat_map(|live| &mut live.ends);
        for end in ends.filter(|end| end.next_deadline() <= now) {
            end.handle_timeout(now);
        }
        self.watch_idle(now, row);
    }

    /// Lets the manager act.
    pub(crate) fn advance(&mut self, now: Instant, row: &mut RowConnections) {
        let Self { manager, live, stacks, idle, isns, hosts, .. } = self;
        let RowConnections { counters, ports, .. } = row;
        let ports = &mut ports[*hosts as usize];
        let (idle, fast_open) = (idle.as_ref(), manager.offers_fast_open());
        let mut transport = CurrentConnection { now, live, stacks, isns, ports, idle, fast_open };
        manager.poll(now, &mut transport, counters);
    }

    fn handle_segment(
        &mut self,
        now: Instant,
        to: EndId,
        segment: &Segment,
        row: &mut RowConnections,
    ) {
        let side = to.side();
        let Some(live) = self.live.iter_mut().rfind(|live| live.owns(side, segment)) else {
            return;
        };
        if live.watch.as_mut().is_some_and(|watch| !watch.on_arrived(now, to.end(), segment)) {
            return;
        }
        let opens = side == FlowEnd::To as usize && live.ends[side].state() == State::Listen;
        if opens && row.drops_syn(now) {
            return;
        }
        // Linux, `tcp_v4_syn_recv_sock`: while the queue is full, the acknowledgement that would
        // complete a handshake is dropped. The server retransmits SYN-ACK, and the device answers.
        if side == FlowEnd::To as usize
            && live.would_establish_server(segment)
            && row.is_accept_queue_full(now)
        {
            return;
        }
        live.ends[side].handle_segment(now, segment);
        if live.accepted_at == Instant::NEVER && live.is_established_at_server() {
            live.accepted_at = row.accept(now);
        }
    }

    /// Does what the timers of idle connections require.
    fn watch_idle(&mut self, now: Instant, row: &mut RowConnections) {
        if self.idle.is_some() {
            self.live.iter_mut().for_each(|live| live.watch_idle(now, &mut row.counters));
        }
    }

    /// The connections that are not closed at both ends.
    pub(crate) fn live_mut(&mut self) -> impl Iterator<Item = &mut LiveConnection> {
        self.live.iter_mut()
    }

    /// All segments are sent: forgets the connections that have ended.
    pub(crate) fn retire(&mut self, now: Instant, row: &mut RowConnections) {
        // Data that has just been sent is outstanding from now on.
        self.watch_idle(now, row);
        let ports = &mut row.ports[self.hosts as usize];
        let surplus = self.live.len().saturating_sub(LIVE_MAX);
        let mut number = 0;
        let ended = &mut self.ended;
        self.live.retain_mut(|live| {
            number += 1;
            live.free_port(now, ports);
            let keep = number > surplus && !live.has_ended();
            if !keep {
                ended.add(&live.ends);
                live.release_port(ports);
            }
            keep
        });
    }

    /// When [`Self::advance`] is due without a segment.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let live = self.live.iter().map(|live| live.next_deadline(now));
        live.fold(self.manager.next_deadline(), Instant::min)
    }

    /// Adds the counters of the senders at the `from` end.
    pub(crate) fn add_senders(&self, sums: &mut SenderSums) {
        sums.add_sums(&self.ended);
        self.live.iter().for_each(|live| sums.add(&live.ends));
    }

    /// The end that opens the newest connection, while its TCP handshake is in progress.
    pub(crate) fn opening(&self) -> Option<&Connection> {
        let newest = self.live.last().filter(|_| self.manager.is_opening());
        newest.map(|live| &live.ends[FlowEnd::From as usize])
    }

    /// The ends of the connections that exist.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &[Connection; 2]> {
        self.live.iter().map(|live| &live.ends)
    }
}
