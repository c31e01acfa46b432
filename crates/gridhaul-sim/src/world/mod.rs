//! The event loop of a run: handles events of links, connection ends and applications in order of
//! time.

mod applications;
mod coap;
mod external;
mod fragments;
mod losses;
mod managed;
mod nodes;
mod path_mtu;
mod transmission;

use gridhaul_core::link::TransitOutcome;
use gridhaul_core::load::{Application, InFlightMessages};
use gridhaul_core::tcp::{LinkEvent, Sender, State};
use gridhaul_data::trace::Playback;
use gridhaul_scenario::answer::{LossReason, RunRows};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::units::Instant;

use crate::aggregation::Aggregators;
use crate::alterations::Alterations;
use crate::counters::RunCounters;
use crate::end_id::EndId;
use crate::event_log::EventLogs;
use crate::events::{Events, Target};
use crate::external_messages::ExternalMessages;
use crate::flow::{Ends, Flow, Received};
use crate::fragmentation::Fragmentation;
use crate::hybrid_router::HybridRouters;
use crate::layout::Layout;
use crate::metrics::{RunState, WarmupSnapshot, rows};
use crate::network::{END_OF_ROUTE, FIRST_PROXY, Network};
use crate::packet::{Body, Packet};
use crate::proxy::Proxies;
use crate::recorder::Recorder;

use self::transmission::transmit_one;

pub(crate) use external::StepEnd;

/// The state of one run.
#[derive(Debug)]
pub(crate) struct World {
    pub net: Network,
    pub flows: Vec<Flow>,
    /// The messages of all flows.
    pub in_flight: InFlightMessages,
    /// When the application of each flow starts; empty after the run has begun.
    pub starts: Vec<Instant>,
    pub aggregators: Aggregators,
    pub proxies: Proxies,
    pub hybrid_routers: HybridRouters,
    pub playbacks: Vec<Playback>,
    /// The messages of a session; none in a run.
    pub external: ExternalMessages,
    /// Data that were altered on the way.
    pub alterations: Alterations,
    /// `None` if the links have no MTU.
    pub fragmentation: Option<Box<Fragmentation>>,
    /// The error that ends the run.
    pub failure: Option<RunError>,
    pub counters: RunCounters,
    /// The counters at the end of the warm-up, once it is over.
    pub warmup: Option<WarmupSnapshot>,
    pub recorder: Option<Recorder>,
    pub event_logs: EventLogs,
}

/// Events between two checks whether the run continues: some hundredths of a second.
const EVENTS_PER_SLICE: u64 = 100_000;

impl World {
    /// Simulates the run in slices of simulated time. After each slice, `continues` gets the
    /// completed thousandths of the run and decides whether to continue. Returns whether the end
    /// was reached.
    ///
    /// # Errors
    /// A recorded trace has an invalid row that was not read before the run.
    pub(crate) fn run(&mut self, continues: impl Fn(u64) -> bool) -> Result<bool, RunError> {
        self.begin();
        let is_plain = self.is_plain();
        let end = self.counters.measured.end;
        // The run ends before this time: an event at it would belong to a longer run, and messages
        // of whole periods would be one more than the periods.
        let last = end.as_nanos().saturating_sub(1);
        let (mut until, mut slice) = (0_u64, (last >> 20).max(1));
        loop {
            until = last.min(until.saturating_add(slice));
            let before = self.net.events.entries();
            self.run_until(Instant::from_nanos(until), is_plain)?;
            if until == last {
                break;
            }
            if !continues((u128::from(until) * 1000 / u128::from(last)) as u64) {
                return Ok(false);
            }
            // The slice is adapted to the event rate, so that no counter is needed for each event.
            let events = (self.net.events.entries() - before).max(1);
            let wanted = u128::from(slice) * u128::from(EVENTS_PER_SLICE) / u128::from(events);
            let (minimum, maximum) = (u128::from(slice) / 8, u128::from(slice) * 8);
            slice = wanted.clamp(minimum, maximum).clamp(1, u128::from(last / 64).max(1)) as u64;
        }
        continues(1000);
        // A series has a row for the end.
        if self.net.events.is_due_at(Target::Sampling, end) {
            self.on_sampling(end);
        }
        self.counters.finish_handshakes(&self.flows);
        // The evaluation lists all messages that have not arrived, for which this makes room.
        self.net.events = Events::new(0, 0, 0, 0);
        Ok(true)
    }

    /// Schedules the first events.
    pub(crate) fn begin(&mut self) {
        // A session has no end, and records no series.
        if self.recorder.is_some() && !self.external.is_active() {
            self.net.events.schedule(Target::Sampling, Instant::ZERO);
        }
        for (index, start) in std::mem::take(&mut self.starts).into_iter().enumerate() {
            self.net.events.schedule(Target::App(index as u32), start);
        }
        for (index, instance) in self.proxies.instances.iter().enumerate() {
            self.net.events.schedule(Target::Proxy(index as u32), instance.next_deadline());
        }
        for (index, start) in self.hybrid_routers.starts().enumerate() {
            self.net.events.schedule(Target::Router(index as u32), start);
        }
        for (index, playback) in self.playbacks.iter().enumerate() {
            self.net.events.schedule(Target::Trace(index as u32), playback.at());
        }
        self.reserve_external();
    }

    /// Whether the run has none of the features for which the event loop would have to check at
    /// each packet. This does not change during a run.
    fn is_plain(&self) -> bool {
        let is_greedy = |flow: &Flow| flow.app.as_ref().is_some_and(Application::is_greedy);
        !(self.aggregators.is_active()
            || self.alterations.is_active()
            || self.counters.loss_causes.is_active()
            || self.event_logs.is_active()
            || self.external.is_active()
            || self.flows.iter().any(is_greedy))
    }

    /// Handles all events up to and including a time. `is_plain` is that of the run.
    fn run_until(&mut self, until: Instant, is_plain: bool) -> Result<(), RunError> {
        let start = self.counters.measured.start;
        if self.warmup.is_none() && until >= start {
            // Events at the end of the warm-up belong to the measured time.
            if let Some(last) = start.as_nanos().checked_sub(1) {
                self.handle_all_until(Instant::from_nanos(last), is_plain)?;
            }
            self.net.links.restart_maxima(start);
            self.aggregators.restart_maxima();
            self.proxies.restart_maxima();
            self.warmup = Some(WarmupSnapshot::new(start, self.state()));
        }
        self.handle_all_until(until, is_plain)
    }

    /// Handles events in the loop of plain runs or in that of all: the first one is compiled
    /// without the checks for the features that plain runs lack.
    fn handle_all_until(&mut self, until: Instant, is_plain: bool) -> Result<(), RunError> {
        if is_plain { self.handle_until::<true>(until) } else { self.handle_until::<false>(until) }
    }

    /// [`handle_all_until`](Self::handle_all_until) in one of both loops.
    fn handle_until<const PLAIN: bool>(&mut self, until: Instant) -> Result<(), RunError> {
        while let Some((now, target)) = self.net.events.pop(until) {
            self.handle::<PLAIN>(now, target)?;
        }
        Ok(())
    }

    /// Handles an event.
    #[inline(always)]
    fn handle<const PLAIN: bool>(&mut self, now: Instant, target: Target) -> Result<(), RunError> {
        match target {
            Target::Link(link) => self.on_link::<PLAIN>(now, link),
            Target::End(end) => self.on_end::<PLAIN>(now, end),
            Target::App(flow) => self.on_app::<PLAIN>(now, flow),
            Target::Sampling => self.on_sampling(now),
            Target::Proxy(instance) => self.on_proxy_timeout(now, instance),
            Target::Router(router) => {
                self.hybrid_routers.proceed(now, &mut self.net, router);
            }
            Target::Trace(trace) => {
                self.on_trace(now, trace);
                if let Some(failure) = self.failure.take() {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Packets have left a link: each enters the next link or reaches its destination.
    #[inline(always)]
    fn on_link<const PLAIN: bool>(&mut self, now: Instant, link: u32) {
        // Most packets are the only ones of their time.
        let deadline = match self.on_departure::<PLAIN>(now, link) {
            Some(deadline) => deadline,
            None => self.on_further_departures::<PLAIN>(now, link),
        };
        self.net.events.schedule_link(link, deadline);
    }

    /// Further packets of the same time leave a link. Returns its next deadline.
    #[inline(never)]
    fn on_further_departures<const PLAIN: bool>(&mut self, now: Instant, link: u32) -> Instant {
        loop {
            if let Some(deadline) = self.on_departure::<PLAIN>(now, link) {
                return deadline;
            }
        }
    }

    /// A packet may have left a link. Returns the next deadline of the link, or `None` if another
    /// packet leaves now.
    #[inline(always)]
    fn on_departure<const PLAIN: bool>(&mut self, now: Instant, link: u32) -> Option<Instant> {
        let Some(entry) = self.net.links.direction_mut(link) else {
            self.net.advance_medium(now, link);
            return Some(Instant::NEVER);
        };
        let Some(transit) = entry.front(now) else {
            return Some(entry.direction.next_deadline());
        };
        let packet = &transit.payload;
        let next = self.net.routes[packet.next as usize];
        // An earlier link of the path may have altered the segment.
        let intact = matches!(transit.outcome, TransitOutcome::Arrived)
            && (PLAIN || !self.alterations.has_segments());
        if let Body::Tcp(segment) = &packet.body
            && intact
            && next == END_OF_ROUTE
        {
            // The end reads the segment in the buffer of the link, which saves most copies.
            let to = packet.to;
            if !PLAIN && self.aggregators.receives(to, segment) {
                let (segment, sent) = (*segment, packet.sent);
                entry.direction.drop_front();
                self.on_segment_at_aggregator(now, to, &segment, sent);
            } else {
                let flow = &mut self.flows[to.flow() as usize];
                self.counters.on_segment_arrived(now, flow.row, packet, segment);
                let totals = &mut self.counters.rows[flow.row as usize];
                // The size of the transit is that on the link, which compression changes.
                let sized = (segment, segment.wire_bytes());
                let received = flow.on_segment(now, to, sized, totals);
                entry.direction.drop_front();
                if PLAIN && received == Received::Other {
                    // The end sends over a link that begins at its node, where this one ends.
                    let deadline = entry.direction.next_deadline();
                    if transmit_one(now, to, flow, &mut self.net, &mut self.counters) {
                        self.transmit_ready::<PLAIN>(now, to);
                    }
                    return (deadline > now).then_some(deadline);
                }
                if received != Received::Other {
                    self.on_received(now, to, received);
                }
                self.transmit_ready::<PLAIN>(now, to);
            }
        } else if intact
            && next != END_OF_ROUTE
            && next >= FIRST_PROXY
            && let Some(accepted) = self.proxies.accept(now, packet, next - FIRST_PROXY)
        {
            // The proxy has read the segment in the same way.
            entry.direction.drop_front();
            self.on_accepted_by_proxy(now, accepted);
        } else {
            let (packet, outcome) = (*packet, transit.outcome);
            entry.direction.drop_front();
            self.on_left_link(now, outcome, packet);
        }
        let deadline = self.net.links.entry(link).direction.next_deadline();
        (deadline > now).then_some(deadline)
    }

    /// A packet has left a link and is not an intact segment at its destination.
    fn on_left_link(&mut self, now: Instant, outcome: TransitOutcome, packet: Packet) {
        match outcome {
            TransitOutcome::Arrived | TransitOutcome::Marked | TransitOutcome::Duplicate => {
                self.forward(now, packet);
            }
            TransitOutcome::CorruptedUndetected | TransitOutcome::CorruptedUndetectedDuplicate => {
                self.forward_altered(now, packet);
            }
            // The receiver discards a packet with a wrong checksum silently.
            TransitOutcome::Corrupted => self.on_lost(now, &packet, LossReason::Corrupted),
            TransitOutcome::Lost(reason) => self.on_lost(now, &packet, losses::reason(reason)),
            // The loss of the original is counted.
            TransitOutcome::CorruptedDuplicate => {}
        }
    }

    /// A packet whose payload was altered is forwarded or delivered.
    #[cold]
    fn forward_altered(&mut self, now: Instant, mut packet: Packet) {
        match &mut packet.body {
            Body::Datagram(datagram) => datagram.is_altered = true,
            Body::Tcp(segment) => self.alterations.on_altered(packet.to, segment, packet.sent),
            // Its sender or number would be wrong: the receiver discards it.
            Body::Probe(probe) => return self.hybrid_routers.on_lost(probe.id),
            // Its checksum covers all content.
            Body::PacketTooBig(_) => return,
        }
        self.forward(now, packet);
    }

    /// A packet is forwarded to the next hop or delivered to its destination.
    fn forward(&mut self, now: Instant, packet: Packet) {
        let next = self.net.routes[packet.next as usize];
        if next != END_OF_ROUTE && next >= FIRST_PROXY {
            self.on_packet_at_proxy(now, &packet, next - FIRST_PROXY);
            return;
        }
        if next != END_OF_ROUTE {
            if self.fragmentation.is_some() && self.forward_oversized(now, &packet) {
                return;
            }
            let bytes = packet.body.wire_bytes();
            let offered = self.net.offer(now, packet.next, bytes, |next| Packet { next, ..packet });
            if let Err(reason) = offered {
                self.on_lost(now, &packet, losses::reason(reason));
            } else if self.counters.loss_causes.needs_reports() && self.net.marks(now, packet.next)
            {
                self.report_to_sender(&packet, LinkEvent::Marked);
            }
            return;
        }
        match packet.body {
            Body::Datagram(datagram) => self.on_datagram(now, packet, datagram),
            Body::Probe(probe) => {
                self.hybrid_routers.on_probe(now, &mut self.net, &packet, probe.id);
            }
            Body::PacketTooBig(report) => self.on_packet_too_big(now, packet.to, report),
            Body::Tcp(segment) => {
                let (to, bytes) = (packet.to, segment.wire_bytes());
                if self.aggregators.receives(to, &segment) {
                    self.on_segment_at_aggregator(now, to, &segment, packet.sent);
                    return;
                }
                let flow = &mut self.flows[to.flow() as usize];
                self.counters.on_segment_arrived(now, flow.row, &packet, &segment);
                if self.alterations.on_arrived(to, &segment, packet.sent)
                    && let Ends::Tcp(ends) = &flow.ends
                {
                    self.alterations.on_accepted(to, &segment, &ends[to.side()]);
                }
                let totals = &mut self.counters.rows[flow.row as usize];
                let received = flow.on_segment(now, to, (&segment, bytes), totals);
                if received != Received::Other {
                    self.on_received(now, to, received);
                }
                self.transmit_ready::<false>(now, to);
            }
        }
    }

    fn on_end<const PLAIN: bool>(&mut self, now: Instant, end: EndId) {
        let flow = &mut self.flows[end.flow() as usize];
        let Ends::Tcp(ends) = &mut flow.ends else { return };
        let connection = &mut ends[end.side()];
        let deadline = connection.next_deadline();
        if PLAIN && deadline > now && connection.ignores_polls_until_deadline() {
            // The timer has moved to a later time since the event was scheduled.
            self.net.events.schedule_end(end, deadline, || true);
            return;
        }
        if deadline <= now {
            let timeouts = connection.sender().map_or(0, |sender| sender.stats().timeouts);
            connection.handle_timeout(now);
            let closed = connection.state() == State::Closed;
            if self.counters.outage_ends.has_any()
                && connection.sender().is_some_and(|sender| sender.stats().timeouts > timeouts)
            {
                self.counters.outage_ends.on_timeout(now, flow.row, connection);
            }
            if end.is_from() {
                let cwnd = connection.sender().map_or(0, Sender::cwnd);
                self.counters.rows[flow.row as usize].note_cwnd(now, &mut flow.cwnd, cwnd);
            }
            if closed && self.external.is_active() {
                self.report_if_closed(now, end.flow());
            }
        }
        self.transmit_ready::<PLAIN>(now, end);
    }

    /// The rows of the answer at the end of the run.
    pub(crate) fn rows(&self, layout: &Layout) -> RunRows {
        rows(self.state(), self.warmup.as_ref(), layout)
    }

    const fn state(&self) -> RunState<'_> {
        RunState {
            net: &self.net,
            flows: self.flows.as_slice(),
            in_flight: &self.in_flight,
            aggregators: &self.aggregators,
            proxies: &self.proxies,
            counters: &self.counters,
        }
    }

    /// Records a row of each series.
    #[cold]
    fn on_sampling(&mut self, now: Instant) {
        let warmup = self.counters.measured.start;
        if let Some(recorder) = &mut self.recorder {
            let next = recorder.sample(now, &mut self.net, &self.flows);
            let next = if now < warmup { next.min(warmup) } else { next };
            self.net.events.schedule(Target::Sampling, next);
        }
    }
}

#[cfg(test)]
mod plain_runs;
