//! What happens at the proxies of a run.

use gridhaul_core::link::Cause;
use gridhaul_core::pep::{Outgoing, Side};
use gridhaul_scenario::scenario::Bypass;
use gridhaul_scenario::units::Instant;

use super::Unit;
use crate::events::Target;
use crate::packet::{Body, Packet};
use crate::world::World;

impl World {
    /// A packet is at the proxy with this number on its way.
    #[inline(never)]
    pub(crate) fn on_proxied(&mut self, now: Instant, packet: Packet, ordinal: u32) {
        let index = self.proxies.first[packet.flow() as usize] + ordinal;
        let unit = &mut self.proxies.units[index as usize];
        let from = if packet.returning() { Side::Right } else { Side::Left };
        let Body::Tcp(segment) = &packet.body else { return };
        match unit.down {
            Some((_, Bypass::Lose)) => self.on_lost(&packet, Cause::Error),
            Some((_, Bypass::Pass)) => {
                let next = unit.next[from.other().index()];
                self.forward(now, Packet { next, ..packet });
            }
            None => {
                unit.machine.handle_segment(now, from, segment);
                let passed = self.pump_unit(now, index, Some(packet.sent));
                let ends = self.proxies.units[index as usize].ends_connections();
                if segment.len > 0 && from == Side::Left && ends && !passed {
                    // It ends here: what goes on is another packet.
                    let row = self.flows[packet.flow() as usize].row as usize;
                    self.ledger.crossings[row].on_arrived(now.since(packet.sent));
                }
            }
        }
    }

    /// Time has come for a proxy: a deadline, a crash, or the end of one.
    #[cold]
    pub(crate) fn on_unit(&mut self, now: Instant, index: u32) {
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
        let mut passed = false;
        loop {
            let unit = &mut self.proxies.units[index as usize];
            if unit.down.is_some() {
                break;
            }
            // Read where it is: to move it would take longer than to send it.
            let polled = unit.machine.poll_transmit(now);
            let Some(outgoing) = &polled else { break };
            let Outgoing { to, segment, .. } = outgoing;
            let sent = sent.filter(|_| outgoing.passed).unwrap_or(now);
            let (flow, next) = (unit.flow, unit.next[to.index()]);
            let own = segment.len > 0 && unit.note_sent(outgoing);
            let row = self.flows[flow as usize].row as usize;
            let data = segment.len > 0 && *to == Side::Right;
            if data && own {
                self.ledger.crossings[row].on_sent(segment.wire_bytes());
            }
            passed |= segment.len > 0 && outgoing.passed;
            let to = 2 * flow + to.index() as u32;
            let packet = |next| Packet { to, next, sent, body: Body::Tcp(*segment) };
            if !self.net.offer(now, next, segment.wire_bytes(), packet) && data {
                self.ledger.on_segment_lost(row as u32, flow, segment, Cause::Queue);
            }
        }
        let unit = &mut self.proxies.units[index as usize];
        unit.note_held(now);
        self.net.events.schedule(Target::Unit(index), unit.next_deadline());
        passed
    }
}

impl Unit {
    /// It forgets everything.
    fn crash(&mut self, now: Instant) {
        let Some((_, until, packets)) = self.crashes.pop() else { return };
        self.only_copy.set(now, 0);
        self.crashed += 1;
        self.down = Some((until, packets));
        self.machine = self.recipe.anew();
        self.sent_up_to = [None; 2];
    }

    /// It sends a data segment. Returns whether that is one more than it was given: a copy, or what
    /// it sends over a connection of its own.
    fn note_sent(&mut self, outgoing: &Outgoing) -> bool {
        let Outgoing { to, segment, passed } = outgoing;
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let known = &mut self.sent_up_to[to.index()];
        let beyond = known.is_none_or(|known| end.wrapping_sub(known).cast_signed() > 0);
        if beyond {
            *known = Some(end);
        }
        let repeated = !beyond && !passed;
        self.repeated += u64::from(repeated);
        repeated || !passed && self.ends_connections()
    }
}
