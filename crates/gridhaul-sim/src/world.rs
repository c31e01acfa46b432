//! A run: the loop that wakes links, ends and applications in the order of time.

mod applications;
mod nodes;

use gridhaul_core::link::{LossCause, TransitOutcome};
use gridhaul_core::load::InFlightMessages;
use gridhaul_core::tcp::{Flags, Segment, Sender};
use gridhaul_data::trace::Playback;
use gridhaul_scenario::answer::RunRows;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::units::Instant;

use crate::collect::Collectors;
use crate::events::Target;
use crate::flow::{Ends, Flow, Received};
use crate::layout::Layout;
use crate::ledger::Ledger;
use crate::measure::{Before, State, rows};
use crate::network::{ARRIVED, AT_PROXY, Network};
use crate::packet::{Body, Packet};
use crate::proxy::Proxies;
use crate::record::Recorder;

/// Everything that lives during one run.
#[derive(Debug)]
pub(crate) struct World {
    pub net: Network,
    pub flows: Vec<Flow>,
    /// The messages of all flows.
    pub under_way: InFlightMessages,
    /// When the application of each flow starts; empty once the run has begun.
    pub starts: Vec<Instant>,
    pub collect: Collectors,
    pub proxies: Proxies,
    pub playbacks: Vec<Playback>,
    /// Why the run cannot go on.
    pub failure: Option<RunError>,
    pub ledger: Ledger,
    /// The counters at the end of the warm-up, from then on.
    pub before: Option<Before>,
    pub recorder: Option<Recorder>,
}

/// Events between two looks at whether the run goes on: some hundredths of a second.
const EVENTS_PER_SLICE: u64 = 100_000;

impl World {
    /// Runs from the beginning to the end, in slices of simulated time. After each slice `goes_on`
    /// is asked, with the thousandths of the run that are done. Returns whether the end was reached.
    ///
    /// # Errors
    /// A recorded trace that is wrong further on.
    pub(crate) fn run(&mut self, goes_on: impl Fn(u64) -> bool) -> Result<bool, RunError> {
        self.begin();
        let end = self.ledger.measured.end.as_nanos();
        let (mut until, mut slice) = (0, (end >> 20).max(1));
        while until < end {
            until = end.min(until.saturating_add(slice));
            let before = self.net.events.entries();
            self.run_until(Instant::from_nanos(until))?;
            let done = (u128::from(until) * 1000 / u128::from(end)) as u64;
            if !goes_on(done) && until < end {
                return Ok(false);
            }
            // A slice that follows the number of events costs no counter for each of them.
            let events = (self.net.events.entries() - before).max(1);
            let wanted = u128::from(slice) * u128::from(EVENTS_PER_SLICE) / u128::from(events);
            let (least, most) = (u128::from(slice) / 8, u128::from(slice) * 8);
            slice = wanted.clamp(least, most).clamp(1, u128::from(end / 64).max(1)) as u64;
        }
        self.ledger.handshakes.finish(&self.flows);
        Ok(true)
    }

    /// Schedules what happens first.
    fn begin(&mut self) {
        self.net.events.schedule(Target::Clock, self.first_tick());
        for (index, start) in std::mem::take(&mut self.starts).into_iter().enumerate() {
            self.net.events.schedule(Target::App(index as u32), start);
        }
        for (index, unit) in self.proxies.units.iter().enumerate() {
            self.net.events.schedule(Target::Unit(index as u32), unit.next_deadline());
        }
        for (index, playback) in self.playbacks.iter().enumerate() {
            self.net.events.schedule(Target::Trace(index as u32), playback.at());
        }
    }

    /// Handles all events up to a time, this time included.
    fn run_until(&mut self, until: Instant) -> Result<(), RunError> {
        while let Some((now, target)) = self.net.events.pop(until) {
            match target {
                Target::Link(link) => self.on_link(now, link),
                Target::End(end) => self.on_end(now, end),
                Target::App(flow) => self.on_app(now, flow),
                Target::Clock => self.on_clock(now),
                Target::Unit(unit) => self.on_unit(now, unit),
                Target::Trace(trace) => {
                    self.on_trace(now, trace);
                    if let Some(failure) = self.failure.take() {
                        return Err(failure);
                    }
                }
            }
        }
        Ok(())
    }

    /// Packets have left a link: they enter the next one or reach their end.
    #[inline]
    fn on_link(&mut self, now: Instant, link: u32) {
        loop {
            let slot = self.net.links.entry_mut(link);
            let Some(passage) = slot.front(now) else { break };
            let packet = &passage.payload;
            let next = self.net.routes[packet.next as usize];
            let whole = matches!(passage.outcome, TransitOutcome::Arrived);
            if let Body::Tcp(segment) = &packet.body
                && whole
                && next == ARRIVED
            {
                // The end reads the segment where the link has it: most are never moved again.
                let to = packet.to;
                if self.collect.takes(to, segment) {
                    let (segment, sent) = (*segment, packet.sent);
                    slot.direction.drop_front();
                    self.on_collected_segment(now, to, &segment, sent);
                    continue;
                }
                let flow = &mut self.flows[to as usize / 2];
                if segment.len > 0 && !packet.returning() {
                    let delay = now.since(packet.sent);
                    self.ledger.crossings[flow.row as usize].on_arrived(delay);
                }
                let account = &mut self.ledger.accounts[flow.row as usize];
                let received = flow.on_segment(now, to, (segment, passage.bytes), account);
                slot.direction.drop_front();
                if received != Received::Other {
                    self.on_received(now, to, received);
                }
                self.pump(now, to);
                continue;
            }
            // So does a proxy, if it takes the segment in.
            if whole
                && next != ARRIVED
                && next >= AT_PROXY
                && let Some(taken) = self.proxies.take_in(now, packet, next - AT_PROXY)
            {
                slot.direction.drop_front();
                self.on_taken_in(now, taken);
                continue;
            }
            let (packet, outcome) = (*packet, passage.outcome);
            slot.direction.drop_front();
            self.on_passed(now, outcome, packet);
        }
        let deadline = self.net.links.entry(link).direction.next_deadline();
        self.net.events.schedule_link(link, deadline);
    }

    /// A packet has left a link and is not a segment at its end, or it is impaired.
    fn on_passed(&mut self, now: Instant, outcome: TransitOutcome, packet: Packet) {
        match outcome {
            TransitOutcome::Arrived
            | TransitOutcome::Duplicate
            | TransitOutcome::CorruptedUndetected
            | TransitOutcome::CorruptedUndetectedDuplicate => {
                self.forward(now, packet);
            }
            // The receiver's checksum rejects what is damaged; nothing answers it.
            TransitOutcome::Corrupted => self.on_lost(&packet, LossCause::Error),
            TransitOutcome::Lost(reason) if reason.is_by_queue() => {
                self.on_lost(&packet, LossCause::Queue)
            }
            TransitOutcome::Lost(_) => self.on_lost(&packet, LossCause::Error),
            // The original is counted.
            TransitOutcome::CorruptedDuplicate => {}
        }
    }

    /// A packet goes on or is at its end.
    fn forward(&mut self, now: Instant, packet: Packet) {
        let next = self.net.routes[packet.next as usize];
        if next != ARRIVED && next >= AT_PROXY {
            self.on_proxied(now, &packet, next - AT_PROXY);
            return;
        }
        if next != ARRIVED {
            let bytes = packet.body.wire_bytes();
            if !self.net.offer(now, packet.next, bytes, |next| Packet { next, ..packet }) {
                self.on_lost(&packet, LossCause::Queue);
            }
            return;
        }
        match packet.body {
            Body::Datagram(datagram) => self.on_datagram(now, packet, datagram),
            Body::Tcp(segment) => {
                let (to, bytes) = (packet.to, segment.wire_bytes());
                if self.collect.takes(to, &segment) {
                    self.on_collected_segment(now, to, &segment, packet.sent);
                    return;
                }
                let flow = &mut self.flows[to as usize / 2];
                if segment.len > 0 && !packet.returning() {
                    let delay = now.since(packet.sent);
                    self.ledger.crossings[flow.row as usize].on_arrived(delay);
                }
                let account = &mut self.ledger.accounts[flow.row as usize];
                let received = flow.on_segment(now, to, (&segment, bytes), account);
                if received != Received::Other {
                    self.on_received(now, to, received);
                }
                self.pump_apart(now, to);
            }
        }
    }

    /// Sends what an end has to send, and wakes it when it next wants to be.
    #[inline(always)]
    fn pump(&mut self, now: Instant, end: u32) {
        let flow = &mut self.flows[(end / 2) as usize];
        let side = (end % 2) as usize;
        let next = flow.routes[side];
        if side == 0
            && self.ledger.truth.is_asked()
            && let Ends::Tcp(ends) = &flow.ends
        {
            self.ledger.truth.on_handled(end / 2, ends);
        }
        let in_burst = side == 0 && flow.is_in_burst();
        let deadline = loop {
            let written = in_burst && poll_write(now, flow, &mut self.ledger, &mut self.under_way);
            let Ends::Tcp(ends) = &mut flow.ends else { return };
            let connection = &mut ends[side];
            let Some(pending) = connection.poll(now) else {
                if written {
                    // It waits for more.
                    continue;
                }
                break connection.next_deadline();
            };
            let segment = self.net.place_segment(now, next, end ^ 1);
            connection.write_segment(now, &pending, segment);
            let (len, seq, flags) = (segment.len, segment.seq, segment.flags);
            let bytes = segment.wire_bytes();
            // An end that has data to send sends it before it acknowledges without, unless that
            // acknowledges nothing but SYN.
            let last = len == 0 && flags == Flags::ACK && connection.receiver().next() > 1;
            let data = len > 0 && side == 0;
            if data {
                self.ledger.crossings[flow.row as usize].on_sent(bytes);
            }
            // TCP finds out about a refused segment.
            if !self.net.send(now, next, bytes) && data {
                let segment = Segment { seq, len, flags, ..Segment::default() };
                self.ledger.on_segment_lost(flow.row, end / 2, &segment, LossCause::Queue);
            }
            if last || data && !in_burst && connection.has_filled_window() {
                break connection.next_deadline();
            }
        };
        self.net.events.schedule(Target::End(end), deadline);
        if self.collect.sends_from(end) {
            self.on_upstream_pumped(now, end / 2);
        }
    }

    /// [`pump`](Self::pump) once more, for where it is called seldom.
    #[inline(never)]
    fn pump_apart(&mut self, now: Instant, end: u32) {
        self.pump(now, end);
    }

    fn on_end(&mut self, now: Instant, end: u32) {
        let flow = &mut self.flows[(end / 2) as usize];
        let Ends::Tcp(ends) = &mut flow.ends else { return };
        let connection = &mut ends[(end % 2) as usize];
        if connection.next_deadline() <= now {
            connection.handle_timeout(now);
            if end.is_multiple_of(2) {
                let cwnd = connection.sender().map_or(0, Sender::cwnd);
                self.ledger.accounts[flow.row as usize].note_cwnd(now, &mut flow.cwnd, cwnd);
            }
        }
        self.pump_apart(now, end);
    }

    fn on_lost(&mut self, packet: &Packet, cause: LossCause) {
        let flow = &mut self.flows[packet.flow() as usize];
        match &packet.body {
            Body::Datagram(datagram) => self.ledger.on_datagram_lost(flow.row, datagram.number),
            Body::Tcp(segment) => {
                if segment.len > 0 && !packet.returning() {
                    self.ledger.on_segment_lost(flow.row, packet.flow(), segment, cause);
                }
            }
        }
    }

    /// The rows of the answer, once the run is over.
    pub(crate) fn rows(&self, layout: &Layout) -> RunRows {
        rows(self.state(), self.before.as_ref(), layout)
    }

    const fn state(&self) -> State<'_> {
        State {
            net: &self.net,
            flows: self.flows.as_slice(),
            under_way: &self.under_way,
            collect: &self.collect,
            proxies: &self.proxies,
            ledger: &self.ledger,
        }
    }

    fn first_tick(&self) -> Instant {
        if self.recorder.is_some() { Instant::ZERO } else { self.ledger.measured.start }
    }

    #[cold]
    fn on_clock(&mut self, now: Instant) {
        let warmup = self.ledger.measured.start;
        if now >= warmup && self.before.is_none() {
            self.before = Some(Before::new(now, self.state()));
        }
        if let Some(recorder) = &mut self.recorder {
            let next = recorder.sample(now, &mut self.net, &self.flows);
            let next = if now < warmup { next.min(warmup) } else { next };
            self.net.events.schedule(Target::Clock, next);
        }
    }
}

/// During a burst, lets the application of a flow write a message. Returns whether it did.
#[inline(never)]
fn poll_write(
    now: Instant,
    flow: &mut Flow,
    ledger: &mut Ledger,
    under_way: &mut InFlightMessages,
) -> bool {
    let row = flow.row;
    flow.poll_write(now, under_way, |ready| ledger.on_ready(row, ready))
}
