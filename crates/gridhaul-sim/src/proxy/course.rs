//! What happens at the proxies of a run.

use gridhaul_core::link::LossCause;
use gridhaul_core::pep::{Outgoing, Side};
use gridhaul_scenario::scenario::PacketsWhileDown;
use gridhaul_scenario::units::Instant;

use super::{Proxies, Unit};
use crate::events::Target;
use crate::flow::Flow;
use crate::ledger::Ledger;
use crate::network::Network;
use crate::packet::{Body, Packet};

/// The state of a run that proxies read and change.
pub(crate) struct Context<'a> {
    pub proxies: &'a mut Proxies,
    pub net: &'a mut Network,
    pub flows: &'a [Flow],
    pub ledger: &'a mut Ledger,
}

/// What becomes of a packet that is at a proxy.
pub(crate) enum Passage {
    /// The proxy has taken it in.
    TakenIn,
    /// The proxy is down and lets it pass: the packet with its next place in the list of routes.
    Passed(Packet),
    /// The proxy is down, and the packet is lost.
    Lost,
}

impl Context<'_> {
    /// A packet is at the proxy with this number on its way, which may be down.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, ordinal: u32) -> Passage {
        if let Some(taken) = self.proxies.take_in(now, packet, ordinal) {
            self.on_taken_in(now, taken);
            return Passage::TakenIn;
        }
        let index = self.proxies.index(packet, ordinal);
        let unit = &self.proxies.units[index as usize];
        match unit.down {
            Some((_, PacketsWhileDown::Drop)) => Passage::Lost,
            Some((_, PacketsWhileDown::Forward)) => {
                let next = unit.next[side_of(packet).other().index()];
                Passage::Passed(Packet { next, ..*packet })
            }
            // No segment.
            None => Passage::TakenIn,
        }
    }

    /// A proxy has taken a segment in.
    pub(crate) fn on_taken_in(&mut self, now: Instant, taken: TakenIn) {
        let passed = self.pump_unit(now, taken.unit, Some(taken.sent));
        let unit = &self.proxies.units[taken.unit as usize];
        if taken.is_data && unit.terminates_connections() && !passed {
            // It ends here: what goes on is another packet.
            let row = self.flows[unit.flow as usize].row as usize;
            self.ledger.crossings[row].on_arrived(now.since(taken.sent));
        }
    }

    /// Time has come for a proxy: a deadline, a crash, or the end of one.
    pub(crate) fn on_timeout(&mut self, now: Instant, index: u32) {
        let unit = &mut self.proxies.units[index as usize];
        if unit.crashes.last().is_some_and(|crash| crash.0 <= now) {
            unit.crash(now);
        }
        if unit.down.is_some_and(|(until, _)| until <= now) {
            unit.down = None;
        }
        if unit.down.is_none() && unit.machine.next_deadline() <= now {
            unit.machine.handle_timeout(now);
        }
        self.pump_unit(now, index, None);
    }

    /// Sends what a proxy has to send. `sent` is when the segment was sent that has just come in.
    /// Returns whether a data segment was let through.
    fn pump_unit(&mut self, now: Instant, index: u32, sent: Option<Instant>) -> bool {
        let unit = &mut self.proxies.units[index as usize];
        let (flow, row) = (unit.flow, self.flows[unit.flow as usize].row);
        let mut passed = false;
        // Read where it is: to move it would take longer than to send it.
        while unit.down.is_none()
            && let Some(outgoing) = &unit.machine.poll_transmit(now)
        {
            let Outgoing { to, segment, .. } = outgoing;
            let sent = sent.filter(|_| outgoing.is_forwarded()).unwrap_or(now);
            let own = segment.len > 0 && unit.note_sent(outgoing);
            let data = segment.len > 0 && *to == Side::Server;
            if data && own {
                self.ledger.crossings[row as usize].on_sent(segment.wire_bytes());
            }
            passed |= segment.len > 0 && outgoing.is_forwarded();
            let (to, next) = (2 * flow + to.index() as u32, unit.next[to.index()]);
            let packet = |next| Packet { to, next, sent, body: Body::Tcp(*segment) };
            if !self.net.offer(now, next, segment.wire_bytes(), packet) && data {
                self.ledger.on_segment_lost(row, flow, segment, LossCause::Queue);
            }
        }
        unit.note_held(now);
        self.net.events.schedule(Target::Unit(index), unit.next_deadline());
        passed
    }
}

/// A segment that a proxy has taken in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenIn {
    unit: u32,
    sent: Instant,
    /// Whether it brings data of the `from` end.
    is_data: bool,
}

impl Proxies {
    /// Lets the proxy with this number on the way of a packet take it in: `None` if it does not,
    /// because it is down.
    #[inline]
    pub(crate) fn take_in(
        &mut self,
        now: Instant,
        packet: &Packet,
        ordinal: u32,
    ) -> Option<TakenIn> {
        let index = self.index(packet, ordinal);
        let unit = &mut self.units[index as usize];
        let Body::Tcp(segment) = &packet.body else { return None };
        if unit.down.is_some() {
            return None;
        }
        unit.machine.handle_segment(now, side_of(packet), segment);
        let is_data = segment.len > 0 && !packet.returning();
        Some(TakenIn { unit: index, sent: packet.sent, is_data })
    }

    /// Number of the unit.
    #[inline]
    fn index(&self, packet: &Packet, ordinal: u32) -> u32 {
        self.first[packet.flow() as usize] + ordinal
    }
}

/// Where a packet comes from.
#[inline]
const fn side_of(packet: &Packet) -> Side {
    if packet.returning() { Side::Server } else { Side::Client }
}

impl Unit {
    /// It forgets everything.
    fn crash(&mut self, now: Instant) {
        let Some((_, until, packets)) = self.crashes.pop() else { return };
        self.bytes_at_risk.set(now, 0);
        self.crashed += 1;
        self.down = Some((until, packets));
        self.machine = self.recipe.anew();
        self.sent_up_to = [None; 2];
    }

    /// It sends a data segment. Returns whether that is one more than it was given: a copy, or what
    /// it sends over a connection of its own.
    fn note_sent(&mut self, outgoing: &Outgoing) -> bool {
        let Outgoing { to, segment, .. } = outgoing;
        let passed = outgoing.is_forwarded();
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let known = &mut self.sent_up_to[to.index()];
        let beyond = known.is_none_or(|known| end.wrapping_sub(known).cast_signed() > 0);
        if beyond {
            *known = Some(end);
        }
        let repeated = !beyond && !passed;
        self.repeated += u64::from(repeated);
        repeated || !passed && self.terminates_connections()
    }
}
