//! Nodes that do more than forward: aggregators and proxies.

use gridhaul_core::tcp::Segment;
use gridhaul_scenario::answer::{LossReason, NodeCause};
use gridhaul_scenario::units::Instant;

use super::World;
use crate::counters::ArrivedMessage;
use crate::end_id::EndId;
use crate::event_log::ProxyStep;
use crate::flow::Ends;
use crate::packet::Packet;
use crate::proxy::{AcceptedSegment, PacketOutcome};
use crate::waiting_message::WaitingMessage;
use crate::{aggregation, proxy};

impl World {
    /// A segment with data reaches an end that belongs to an aggregator.
    #[inline(never)]
    pub(super) fn on_segment_at_aggregator(
        &mut self,
        now: Instant,
        to: EndId,
        segment: &Segment,
        sent: Instant,
    ) {
        let ends = self.aggregation_context().on_segment(now, to, segment, sent);
        if self.event_logs.is_active() {
            self.log_segment_at_aggregator(now, to, segment, ends == [None; 2]);
        }
        for end in ends.into_iter().flatten() {
            self.transmit_ready::<false>(now, end);
        }
    }

    /// Messages have completely arrived over an upstream connection at their destination.
    pub(super) fn on_delivered(&mut self, now: Instant, flow_index: u32) {
        while let Some(message) = self.aggregation_context().poll_delivered(now, flow_index) {
            if message.ready != Instant::NEVER {
                let row = self.flows[message.origin as usize].row;
                let WaitingMessage { origin: flow, ready, is_altered, .. } = message;
                self.on_message(now, &ArrivedMessage { row, flow, ready, is_altered });
            }
        }
    }

    /// An upstream connection may have sent data or received acknowledgements.
    #[inline(never)]
    pub(super) fn on_upstream_transmitted(&mut self, now: Instant, flow_index: u32) {
        self.aggregation_context().on_transmitted(now, flow_index);
        while let Some(end) = self.aggregation_context().poll_departed(now, flow_index) {
            self.transmit_ready::<false>(now, end);
        }
        if self.event_logs.is_active() {
            self.event_logs.on_aggregators(now, &self.aggregators, NodeCause::Upstream);
        }
    }

    /// Logs a segment with data at an aggregator, which has accepted or dropped it.
    #[cold]
    fn log_segment_at_aggregator(
        &mut self,
        now: Instant,
        to: EndId,
        segment: &Segment,
        is_dropped: bool,
    ) {
        if is_dropped && let Ends::Tcp(ends) = &self.flows[to.flow() as usize].ends {
            self.event_logs.on_refused(now, to.flow(), ends[1].incoming(segment));
        }
        self.event_logs.on_aggregators(now, &self.aggregators, NodeCause::Segment);
    }

    /// A packet has reached the proxy with this ordinal on its path.
    #[cold]
    pub(super) fn on_packet_at_proxy(&mut self, now: Instant, packet: &Packet, ordinal: u32) {
        match self.proxy_context().on_packet(now, packet, ordinal) {
            PacketOutcome::Accepted => {
                let index = self.proxies.first[packet.flow() as usize] + ordinal;
                self.log_proxy(now, index, ProxyStep::Segment);
            }
            PacketOutcome::Forwarded(packet) => self.forward(now, packet),
            PacketOutcome::Dropped => self.on_lost(now, packet, LossReason::Proxy),
        }
    }

    /// A proxy has accepted a segment.
    #[inline]
    pub(super) fn on_accepted_by_proxy(&mut self, now: Instant, accepted: AcceptedSegment) {
        self.proxy_context().on_accepted_by_proxy(now, accepted);
        self.log_proxy(now, accepted.instance, ProxyStep::Segment);
    }

    /// A timer of a proxy has expired, or a crash begins or ends.
    #[cold]
    pub(super) fn on_proxy_timeout(&mut self, now: Instant, index: u32) {
        let is_due = self.proxies.instances[index as usize].is_timer_due(now);
        self.proxy_context().on_timeout(now, index);
        self.log_proxy(now, index, if is_due { ProxyStep::Timer } else { ProxyStep::Other });
    }

    #[inline]
    fn log_proxy(&mut self, now: Instant, index: u32, step: ProxyStep) {
        if self.event_logs.is_active() {
            self.event_logs.on_proxy(now, &self.proxies, index, step);
        }
    }

    fn aggregation_context(&mut self) -> aggregation::Context<'_> {
        aggregation::Context {
            aggregators: &mut self.aggregators,
            flows: &mut self.flows,
            in_flight: &mut self.in_flight,
            counters: &mut self.counters,
            alterations: &mut self.alterations,
        }
    }

    fn proxy_context(&mut self) -> proxy::Context<'_> {
        proxy::Context {
            proxies: &mut self.proxies,
            net: &mut self.net,
            counters: &mut self.counters,
        }
    }
}
