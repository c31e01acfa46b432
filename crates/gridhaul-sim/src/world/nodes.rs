//! Nodes that do more than forward: aggregators and proxies.

use gridhaul_core::link::LossCause;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::packet::Packet;
use crate::proxy::{Passage, TakenIn};
use crate::{collect, proxy};

impl World {
    /// A segment with data reaches an end that belongs to an aggregator.
    #[inline(never)]
    pub(super) fn on_collected_segment(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        sent: Instant,
    ) {
        let ends = self.aggregation().on_segment(now, to, segment, sent);
        for end in ends.into_iter().flatten() {
            self.pump_apart(now, end);
        }
    }

    /// Messages are whole at the far end of an upstream connection, and thereby at their destination.
    pub(super) fn on_delivered(&mut self, now: Instant, flow_index: u32) {
        while let Some(parcel) = self.aggregation().poll_delivered(now, flow_index) {
            if parcel.ready != Instant::NEVER {
                let row = self.flows[parcel.origin as usize].row;
                self.on_message(now, (row, parcel.origin), parcel.ready);
            }
        }
    }

    /// An upstream connection may have sent something, or had it acknowledged.
    #[inline(never)]
    pub(super) fn on_upstream_pumped(&mut self, now: Instant, flow_index: u32) {
        self.aggregation().on_pumped(now, flow_index);
        while let Some(end) = self.aggregation().poll_departed(now, flow_index) {
            self.pump_apart(now, end);
        }
    }

    /// A packet is at the proxy with this number on its path.
    #[cold]
    pub(super) fn on_proxied(&mut self, now: Instant, packet: &Packet, ordinal: u32) {
        match self.proxying().on_packet(now, packet, ordinal) {
            Passage::TakenIn => {}
            Passage::Passed(packet) => self.forward(now, packet),
            Passage::Lost => self.on_lost(packet, LossCause::Error),
        }
    }

    /// A proxy has taken a segment in.
    #[inline(never)]
    pub(super) fn on_taken_in(&mut self, now: Instant, taken: TakenIn) {
        self.proxying().on_taken_in(now, taken);
    }

    /// A deadline of a proxy has come: a timer, a crash, or the end of one.
    #[cold]
    pub(super) fn on_unit(&mut self, now: Instant, index: u32) {
        self.proxying().on_timeout(now, index);
    }

    fn aggregation(&mut self) -> collect::Context<'_> {
        collect::Context {
            collect: &mut self.collect,
            flows: &mut self.flows,
            under_way: &mut self.under_way,
            ledger: &mut self.ledger,
        }
    }

    fn proxying(&mut self) -> proxy::Context<'_> {
        proxy::Context {
            proxies: &mut self.proxies,
            net: &mut self.net,
            flows: &self.flows,
            ledger: &mut self.ledger,
        }
    }
}
