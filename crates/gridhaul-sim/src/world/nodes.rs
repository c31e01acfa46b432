//! Nodes that do more than forward: aggregators and proxies.

use gridhaul_core::link::Cause;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::packet::Packet;
use crate::proxy::{AcceptedSegment, Passage};
use crate::{aggregation, proxy};

impl World {
    /// A segment with data reaches an end that belongs to an aggregator.
    #[inline(never)]
    pub(super) fn on_segment_at_aggregator(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        sent: Instant,
    ) {
        let ends = self.aggregation().on_segment(now, to, segment, sent);
        for end in ends.into_iter().flatten() {
            self.transmit_ready(now, end);
        }
    }

    /// Messages are whole at the far end of an upstream connection, and thereby at their destination.
    pub(super) fn on_delivered(&mut self, now: Instant, flow_index: u32) {
        while let Some(message) = self.aggregation().poll_delivered(now, flow_index) {
            if message.ready != Instant::NEVER {
                let row = self.flows[message.origin as usize].row;
                self.on_message(now, (row, message.origin), message.ready);
            }
        }
    }

    /// An upstream connection may have sent something, or had it acknowledged.
    #[inline(never)]
    pub(super) fn on_upstream_transmitted(&mut self, now: Instant, flow_index: u32) {
        self.aggregation().on_transmitted(now, flow_index);
        while let Some(end) = self.aggregation().poll_departed(now, flow_index) {
            self.transmit_ready(now, end);
        }
    }

    /// A packet is at the proxy with this number on its path.
    #[cold]
    pub(super) fn on_packet_at_proxy(&mut self, now: Instant, packet: &Packet, ordinal: u32) {
        match self.proxying().on_packet(now, packet, ordinal) {
            Passage::AcceptedSegment => {}
            Passage::Passed(packet) => self.forward(now, packet),
            Passage::Lost => self.on_lost(packet, Cause::Error),
        }
    }

    /// A proxy has taken a segment in.
    #[inline(never)]
    pub(super) fn on_accepted_by_proxy(&mut self, now: Instant, taken: AcceptedSegment) {
        self.proxying().on_accepted_by_proxy(now, taken);
    }

    /// A deadline of a proxy has come: a timer, a crash, or the end of one.
    #[cold]
    pub(super) fn on_proxy_timeout(&mut self, now: Instant, index: u32) {
        self.proxying().on_timeout(now, index);
    }

    fn aggregation(&mut self) -> aggregation::Context<'_> {
        aggregation::Context {
            aggregators: &mut self.aggregators,
            flows: &mut self.flows,
            under_way: &mut self.under_way,
            counters: &mut self.counters,
        }
    }

    fn proxying(&mut self) -> proxy::Context<'_> {
        proxy::Context {
            proxies: &mut self.proxies,
            net: &mut self.net,
            flows: &self.flows,
            counters: &mut self.counters,
        }
    }
}
