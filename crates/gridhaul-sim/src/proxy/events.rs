//! Events at proxies: packets, timers, crashes.

use gridhaul_core::link::LossCause;
use gridhaul_core::pep::{Outgoing, Side};
use gridhaul_scenario::scenario::{FlowEnd, PacketsWhileDown};
use gridhaul_scenario::units::Instant;

use super::{Proxies, ProxyInstance, SentData};
use crate::counters::RunCounters;
use crate::end_id::EndId;
use crate::events::Target;
use crate::network::Network;
use crate::packet::{Body, Packet};

/// The state of a run that proxies read and change.
pub(crate) struct Context<'a> {
    pub proxies: &'a mut Proxies,
    pub net: &'a mut Network,
    pub counters: &'a mut RunCounters,
}

/// The result of a packet's arrival at a proxy.
pub(crate) enum PacketOutcome {
    /// The proxy has accepted the packet.
    Accepted,
    /// The proxy is down and forwards the packet, which has its next index in the list of routes.
    Forwarded(Packet),
    /// The proxy is down and drops the packet.
    Dropped,
}

impl Context<'_> {
    /// A packet has reached the proxy with this ordinal on its path, which may be down.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        packet: &Packet,
        ordinal: u32,
    ) -> PacketOutcome {
        if let Some(accepted) = self.proxies.accept(now, packet, ordinal) {
            self.on_accepted_by_proxy(now, accepted);
            return PacketOutcome::Accepted;
        }
        let index = self.proxies.index(packet, ordinal);
        let instance = &self.proxies.instances[index as usize];
        match instance.down {
            Some((_, PacketsWhileDown::Drop)) => PacketOutcome::Dropped,
            Some((_, PacketsWhileDown::Forward)) => {
                let next = instance.next[side_of(packet).other().index()];
                PacketOutcome::Forwarded(Packet { next, ..*packet })
            }
            // Datagrams end at no proxy.
            None => PacketOutcome::Accepted,
        }
    }

    /// A proxy has accepted a segment.
    #[inline(never)]
    pub(crate) fn on_accepted_by_proxy(&mut self, now: Instant, accepted: AcceptedSegment) {
        let forwarded = self.transmit(now, accepted.instance, Some(accepted.sent));
        let instance = &self.proxies.instances[accepted.instance as usize];
        if accepted.is_data && instance.sent_data.acknowledges_data && !forwarded {
            // The packet ends here; the proxy sends other packets.
            self.counters.path_counters[instance.row as usize].on_arrived(now.since(accepted.sent));
        }
    }

    /// A timer of a proxy has expired, or a crash begins or ends. Not part of the event loop, where
    /// it would be between the steps of segments, which are far more frequent.
    #[inline(never)]
    pub(crate) fn on_timeout(&mut self, now: Instant, index: u32) {
        let instance = &mut self.proxies.instances[index as usize];
        if instance.crashes.last().is_some_and(|crash| crash.0 <= now) {
            instance.crash(now);
        }
        if instance.down.is_some_and(|(until, _)| until <= now) {
            instance.down = None;
        }
        if instance.down.is_none() && instance.proxy.next_deadline() <= now {
            instance.proxy.handle_timeout(now);
        }
        self.transmit(now, index, None);
    }

    /// Transmits the segments that a proxy has ready. `sent` is the time at which the segment just
    /// accepted was sent. Returns whether a data segment was forwarded unchanged.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, index: u32, sent: Option<Instant>) -> bool {
        let Self { proxies, net, counters } = self;
        let instance = &mut proxies.instances[index as usize];
        let (flow, row) = (instance.flow, instance.row);
        let mut forwarded = false;
        let ProxyInstance { proxy, sent_data, next, down, .. } = instance;
        let (deadline, bytes_at_risk) = match *down {
            Some((until, _)) => (until, proxy.bytes_at_risk()),
            None => proxy.transmit(now, &mut |outgoing| {
                let Outgoing { to, segment, .. } = outgoing;
                let sent = sent.filter(|_| outgoing.is_forwarded()).unwrap_or(now);
                let is_original = segment.len > 0 && sent_data.record(outgoing);
                let data = segment.len > 0 && *to == Side::Server;
                if data && is_original {
                    counters.path_counters[row as usize].on_sent_by_proxy();
                }
                forwarded |= segment.len > 0 && outgoing.is_forwarded();
                let (to, next) = (EndId::of(flow, end_at(*to)), next[to.index()]);
                let packet = |next| Packet { to, next, sent, body: Body::Tcp(*segment) };
                if net.offer(now, next, segment.wire_bytes(), packet).is_err() && data {
                    counters.on_segment_lost(row, flow, segment, LossCause::Queue);
                }
            }),
        };
        if bytes_at_risk != instance.bytes_at_risk.value() {
            instance.bytes_at_risk.set(now, bytes_at_risk);
        }
        net.events.schedule(Target::Proxy(index), deadline.min(instance.next_crash()));
        forwarded
    }
}

/// A segment that a proxy has accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedSegment {
    pub instance: u32,
    sent: Instant,
    /// Whether the segment carries data of the `from` end.
    is_data: bool,
}

impl Proxies {
    /// Offers a packet to the proxy with this ordinal on its path. Returns `None` if the proxy is
    /// down.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        packet: &Packet,
        ordinal: u32,
    ) -> Option<AcceptedSegment> {
        let index = self.index(packet, ordinal);
        let instance = &mut self.instances[index as usize];
        let Body::Tcp(segment) = &packet.body else { return None };
        if instance.down.is_some() {
            return None;
        }
        instance.proxy.handle_segment(now, side_of(packet), segment);
        let is_data = segment.len > 0 && !packet.is_reverse();
        Some(AcceptedSegment { instance: index, sent: packet.sent, is_data })
    }

    /// Index of the proxy instance of a packet's flow.
    #[inline]
    fn index(&self, packet: &Packet, ordinal: u32) -> u32 {
        self.first[packet.flow() as usize] + ordinal
    }
}

/// The side from which a packet comes.
#[inline]
const fn side_of(packet: &Packet) -> Side {
    if packet.is_reverse() { Side::Server } else { Side::Client }
}

/// The end of a connection to which a side of a proxy leads.
#[inline]
const fn end_at(side: Side) -> FlowEnd {
    match side {
        Side::Client => FlowEnd::From,
        Side::Server => FlowEnd::To,
    }
}

impl ProxyInstance {
    /// The proxy crashes and loses all state of the connection.
    fn crash(&mut self, now: Instant) {
        let Some((_, until, packets)) = self.crashes.pop() else { return };
        self.bytes_at_risk.set(now, 0);
        self.crashes_so_far += 1;
        self.down = Some((until, packets));
        self.proxy = self.builder.build_after_crash();
        self.sent_data.highest = [None; 2];
    }
}

impl SentData {
    /// Counts a data segment that the proxy sends. Returns whether the proxy originates the
    /// segment: it is a retransmission, or belongs to a connection of the proxy.
    fn record(&mut self, outgoing: &Outgoing) -> bool {
        let Outgoing { to, segment, .. } = outgoing;
        let forwarded = outgoing.is_forwarded();
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let highest = &mut self.highest[to.index()];
        let is_new = highest.is_none_or(|highest| end.wrapping_sub(highest).cast_signed() > 0);
        if is_new {
            *highest = Some(end);
        }
        let is_retransmission = !is_new && !forwarded;
        self.retransmissions += u64::from(is_retransmission);
        is_retransmission || !forwarded && self.acknowledges_data
    }
}
