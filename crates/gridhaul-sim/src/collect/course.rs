//! What happens at the collectors of a run.

use gridhaul_core::link::LossCause;
use gridhaul_core::load::{Application, InFlightMessages};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::units::Instant;

use super::Collectors;
use crate::flow::{Ends, Flow, Received};
use crate::ledger::Ledger;
use crate::parcel::Parcel;

/// The state of a run that aggregators read and change. The caller lets connections send.
pub(crate) struct Context<'a> {
    pub collect: &'a mut Collectors,
    pub flows: &'a mut [Flow],
    pub under_way: &'a mut InFlightMessages,
    pub ledger: &'a mut Ledger,
}

impl Context<'_> {
    /// A segment with data reaches an end that belongs to a collector. Returns the ends that may have
    /// something to send now, in this order.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        sent: Instant,
    ) -> [Option<u32>; 2] {
        let flow_index = to / 2;
        let row = self.flows[flow_index as usize].row as usize;
        let Some(taken) = self.admit(now, flow_index, segment) else {
            // As if it had been lost on the way: its sender will repeat it.
            self.ledger.on_segment_lost(row as u32, flow_index, segment, LossCause::Queue);
            return [None, None];
        };
        self.ledger.crossings[row].on_arrived(now.since(sent));
        let flow = &mut self.flows[flow_index as usize];
        let before = flow.received();
        let account = &mut self.ledger.accounts[row];
        let received = flow.on_segment(now, to, (&taken, segment.wire_bytes()), account);
        let news = flow.received() - before;
        let (machine, _) = self.collect.place(flow_index);
        self.collect.machines[machine].audit.on_taken(news);
        let upstream =
            if received == Received::Awaited { self.on_whole(now, flow_index) } else { None };
        [upstream, Some(to)]
    }

    /// What of a segment there is room for.
    fn admit(&mut self, now: Instant, flow_index: u32, segment: &Segment) -> Option<Segment> {
        let flow = &self.flows[flow_index as usize];
        let Ends::Tcp(ends) = &flow.ends else { return None };
        // What brings nothing new needs no room.
        let Some(data) = ends[1].incoming(segment) else { return Some(*segment) };
        let next = ends[1].receiver().delivered();
        let (machine, slot) = self.collect.place(flow_index);
        let outlet = self.collect.outlet_of(flow_index);
        let aggregate = &mut self.collect.machines[machine].aggregate;
        let member = (flow_index, slot);
        let until = match (flow.app.as_ref().and_then(Application::outbox), outlet) {
            (Some(outbox), _) => {
                aggregate.admit(now, member, data.clone(), next, outbox.ends(self.under_way))
            }
            (_, Some(outlet)) => {
                let ends = self.collect.outlets[outlet].parcels.iter().map(|parcel| parcel.end);
                aggregate.admit(now, member, data.clone(), next, ends)
            }
            _ => {
                let pieces = flow.pieces(flow.watch);
                aggregate.admit(now, member, data.clone(), next, pieces)
            }
        };
        if until == data.end {
            return Some(*segment);
        }
        if until <= data.start.max(next) {
            return None;
        }
        let len = (until - data.start) as u32;
        Some(Segment { len, flags: segment.flags.without(Flags::FIN), ..*segment })
    }

    /// Messages of a flow are whole at a collector: they go on over the upstream connection whose end is
    /// returned.
    fn on_whole(&mut self, now: Instant, flow_index: u32) -> Option<u32> {
        let into = self.collect.outlet_after(flow_index)?;
        let (machine, slot) = self.collect.place(flow_index);
        let mut bytes = 0;
        while let Some(parcel) = self.next_whole(flow_index) {
            let Collectors { machines, outlets, .. } = &mut *self.collect;
            let size =
                machines[machine].aggregate.handle_message(now, (flow_index, slot), parcel.end);
            let end = machines[machine].aggregate.written(slot);
            let parcel = Parcel { end, ..parcel };
            machines[machine].audit.on_message(slot, &parcel, size);
            outlets[into as usize].parcels.push_back(parcel);
            bytes += size;
        }
        let upstream_index = self.collect.first + into;
        let first = self.collect.outlets[into as usize].parcels.front();
        let upstream = &mut self.flows[upstream_index as usize];
        upstream.watch = first.map_or(u64::MAX, |parcel| parcel.end);
        if let Ends::Tcp(ends) = &mut upstream.ends {
            self.ledger.handshakes.on_use(now, upstream_index, &ends[0]);
            ends[0].write(bytes);
        }
        Some(2 * upstream_index)
    }

    /// The next message of a flow that is whole at its far end, with its end in the flow's stream.
    fn next_whole(&mut self, flow_index: u32) -> Option<Parcel> {
        let flow = &mut self.flows[flow_index as usize];
        let delivered = flow.received();
        let end = flow.watch;
        if end > delivered {
            return None;
        }
        if let Some(outlet) = self.collect.outlet_of(flow_index) {
            let outlet = &mut self.collect.outlets[outlet];
            let parcel = outlet.parcels.pop_front()?;
            flow.watch = outlet.parcels.front().map_or(u64::MAX, |parcel| parcel.end);
            let size = parcel.end - std::mem::replace(&mut outlet.delivered, parcel.end);
            let (machine, slot) = (outlet.machine as usize, outlet.slot as usize);
            self.collect.machines[machine].audit.on_delivered(slot, &parcel, size);
            return Some(parcel);
        }
        let mut ready = Instant::NEVER;
        match flow.app.as_mut().and_then(Application::outbox_mut) {
            Some(outbox) => {
                ready = outbox.pop(delivered, self.under_way)?.at;
                flow.watch = outbox.watch(self.under_way);
            }
            None => {
                flow.watch = flow.pieces(end).nth(1).unwrap_or(u64::MAX);
                if flow.watch == u64::MAX
                    && let Ends::Tcp(ends) = &mut flow.ends
                {
                    ends[1].close();
                }
            }
        }
        Some(Parcel { end, ready, origin: flow_index })
    }

    /// Returns a message, or piece of a byte stream, that is whole at the far end of an upstream connection and
    /// thereby at its destination.
    pub(crate) fn poll_delivered(&mut self, now: Instant, flow_index: u32) -> Option<Parcel> {
        let outlet = self.collect.outlet_of(flow_index)?;
        let before = self.collect.outlets[outlet].delivered;
        let parcel = self.next_whole(flow_index)?;
        let origin = &mut self.flows[parcel.origin as usize];
        let delivered = &mut self.ledger.apart[parcel.origin as usize];
        *delivered += parcel.end - before;
        if let Some(transfer) = origin.app.as_mut().and_then(Application::transfer_mut)
            && *delivered == transfer.bytes
        {
            transfer.completed = now;
        }
        Some(parcel)
    }

    /// An upstream connection may have sent something, or had it acknowledged.
    pub(crate) fn on_pumped(&mut self, now: Instant, flow_index: u32) {
        let Some(upstream) = self.upstream(flow_index) else { return };
        let machine = &mut self.collect.machines[upstream.machine];
        machine.audit.on_sent(upstream.slot, upstream.sent);
        machine.aggregate.handle_acknowledged(now, upstream.slot, upstream.acknowledged);
    }

    /// Frees the space of what the upstream connection has sent since. Returns an end whose window has opened
    /// by that, which may have something to send; `None` when all is done.
    pub(crate) fn poll_departed(&mut self, now: Instant, flow_index: u32) -> Option<u32> {
        let Upstream { machine, slot, sent, .. } = self.upstream(flow_index)?;
        let machine = &mut self.collect.machines[machine];
        while let Some(departed) = machine.aggregate.poll_departed(now, slot, sent) {
            let member = &mut self.flows[departed.connection as usize];
            self.ledger.crossings[member.row as usize].on_aggregator_wait(departed.waited);
            if machine.waits
                && let Ends::Tcp(ends) = &mut member.ends
            {
                ends[1].read(departed.bytes);
                return Some(2 * departed.connection + 1);
            }
        }
        None
    }

    fn upstream(&self, flow_index: u32) -> Option<Upstream> {
        let outlet = &self.collect.outlets[self.collect.outlet_of(flow_index)?];
        let Ends::Tcp(ends) = &self.flows[flow_index as usize].ends else { return None };
        let (next, una) = ends[0].sent_and_acknowledged();
        Some(Upstream {
            machine: outlet.machine as usize,
            slot: outlet.slot as usize,
            // Position 0 is SYN.
            sent: next.saturating_sub(1),
            acknowledged: una.saturating_sub(1),
        })
    }
}

/// An upstream connection: its place at an aggregator, and bytes of payload sent and acknowledged.
struct Upstream {
    machine: usize,
    slot: usize,
    sent: u64,
    acknowledged: u64,
}

impl Collectors {
    /// The collector at which a flow ends, and which of its outlets takes the flow on.
    fn place(&self, flow: u32) -> (usize, usize) {
        let outlet = &self.outlets[self.into[flow as usize] as usize];
        (outlet.machine as usize, outlet.slot as usize)
    }
}
