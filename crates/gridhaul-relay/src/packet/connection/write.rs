//! Packets of the segments that a proxy sends.

use gridhaul_core::pep::{Origin, Outgoing, Side};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::TcpHeader;
use gridhaul_scenario::units::Instant;

use super::super::direction::Template;
use super::super::output::{Generated, Output, tcp_header};
use super::{Arrival, Connection, first_number};

impl Connection {
    /// Writes all segments of the proxy. Returns whether the segment that has arrived was
    /// forwarded.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        arrived: Option<(&Arrival<'_>, &Segment)>,
        output: &mut Output<'_>,
    ) -> bool {
        let mut is_forwarded = false;
        while let Some(outgoing) = self.proxy.poll_transmit(now) {
            let Outgoing { to, segment, origin } = &outgoing;
            let own = arrived.filter(|(arrival, _)| arrival.from != *to);
            match (origin, own) {
                (Origin::Proxy, _) => {
                    output.counters.generated += 1;
                    self.write_generated(*to, segment, output);
                }
                (Origin::Forwarded | Origin::Rewritten, Some((arrival, _))) => {
                    output.counters.forwarded += 1;
                    is_forwarded = true;
                    let adds_nothing = *origin == Origin::Forwarded
                        && !(self.acknowledges() && segment.flags.has(Flags::SYN));
                    if adds_nothing {
                        arrival.forward(self.port_of(*to), output);
                    } else {
                        self.write_rewritten(*to, segment, arrival, output);
                    }
                }
                // A proxy forwards only the segment that has just arrived.
                (Origin::Forwarded | Origin::Rewritten, None) => {
                    debug_assert!(false, "{outgoing:?} has not arrived");
                }
            }
        }
        self.release();
        is_forwarded
    }

    /// Writes a segment that the proxy has generated, with payload from the store.
    fn write_generated(&mut self, to: Side, segment: &Segment, output: &mut Output<'_>) {
        let (from, over) = (to.other(), self.port_of(to));
        if let Some(held) = self.held.take_if(|held| held.segment == *segment) {
            output.forward(over, &held.ethernet, &held.packet);
            return;
        }
        let Some(template) = self.template(from) else { return };
        let mut header = self.header(from, segment);
        header.flags = header.flags.without(Flags::URG);
        if segment.flags.has(Flags::SYN) {
            header.options.mss = Some(self.mss_max(&template, output));
            header.options.window_scale = self.handshake.offered_scale(to);
        }
        let packet_max = self.packet_max(to, &template);
        let generated = Generated { template, header, len: segment.len, packet_max };
        output.generate(over, &mut self.directions[from.index()], &generated);
    }

    /// Writes the packet that has just arrived, with the header of `segment` and the payload that
    /// its sequence numbers cover. Options that are not part of a [`Segment`] are preserved.
    fn write_rewritten(
        &self,
        to: Side,
        segment: &Segment,
        arrival: &Arrival<'_>,
        output: &mut Output<'_>,
    ) {
        let Arrival { from, frame, header: incoming, .. } = arrival;
        let template = Template::of(frame);
        let mut header = self.header(*from, segment);
        header.urgent = incoming.urgent;
        header.options.unknown = incoming.options.unknown;
        if segment.flags.has(Flags::SYN) {
            let mss_max = self.mss_max(&template, output);
            header.options.mss = incoming.options.mss.map(|mss| mss.min(mss_max));
            header.options.window_scale = incoming.options.window_scale;
        }
        let syn = u32::from(incoming.flags.has(Flags::SYN));
        let start = first_number(segment).wrapping_sub(incoming.seq.wrapping_add(syn)) as usize;
        let range = start..start.saturating_add(segment.len as usize);
        let payload = arrival.payload().get(range).unwrap_or_default();
        debug_assert_eq!(payload.len(), segment.len as usize, "a part of the arrived payload");
        let part = (payload.len() as u32, std::iter::once(payload));
        output.write(self.port_of(to), (&template, &template.ip), &header, part);
    }

    fn header(&self, from: Side, segment: &Segment) -> TcpHeader<'static> {
        let ports = [self.host(from).port(), self.host(from.other()).port()];
        tcp_header(segment, ports, self.handshake.shift_toward(from.other()))
    }

    /// Headers below TCP of packets in the place of a side.
    pub(super) fn template(&self, of: Side) -> Option<Template> {
        let seen = |side: Side| {
            let headers = self.directions[side.index()].headers?;
            Some(headers.template([side, side.other()].map(|side| self.host(side))))
        };
        seen(of).or_else(|| seen(of.other()).map(|template| template.reversed()))
    }

    /// Largest IP packet that a side and the path to it accept. Options shorten the payload (RFC
    /// 6691).
    fn packet_max(&self, to: Side, template: &Template) -> u32 {
        let headers = template.ip.header_len() as u32 + TcpHeader::MIN_LEN as u32;
        let stated = self.handshake.syn(to).map_or(u32::MAX, |syn| syn.mss + headers);
        stated.min(self.directions[to.other().index()].path_mtu)
    }

    /// Largest MSS that fits both interfaces.
    fn mss_max(&self, template: &Template, output: &Output<'_>) -> u16 {
        let mtu = output.mtus[0].min(output.mtus[1]);
        let headers = template.ip.header_len() + TcpHeader::MIN_LEN;
        u16::try_from(mtu.saturating_sub(headers as u32)).unwrap_or(u16::MAX)
    }
}
