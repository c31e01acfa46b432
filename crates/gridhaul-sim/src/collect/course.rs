//! What happens at the collectors of a run.

use gridhaul_core::link::Cause;
use gridhaul_core::load::Application;
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::units::Instant;

use super::{Collectors, Parcel};
use crate::flow::{Ends, Flow};
use crate::world::World;

impl World {
    /// A segment with data reaches an end that belongs to a collector.
    #[inline(never)]
    pub(crate) fn on_collected_segment(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        sent: Instant,
    ) {
        let flow_index = to / 2;
        let row = self.flows[flow_index as usize].row as usize;
        let Some(taken) = self.admit(now, flow_index, segment) else {
            // As if it had been lost on the way: its sender will repeat it.
            self.ledger.on_segment_lost(row as u32, flow_index, segment, Cause::Queue);
            return;
        };
        self.ledger.crossings[row].on_arrived(now.since(sent));
        let flow = &mut self.flows[flow_index as usize];
        let before = flow.received();
        let progress = flow.on_segment(now, to, &taken);
        self.ledger.on_received(now, to, &taken, segment.wire_bytes(), flow);
        let news = flow.received() - before;
        let (machine, _) = self.collect.place(flow_index);
        self.collect.machines[machine].audit.on_taken(news);
        if progress {
            self.on_whole(now, flow_index);
        }
        self.pump_apart(now, to);
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
                aggregate.admit(now, member, data.clone(), next, outbox.ends(&self.under_way))
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

    /// Messages of a flow are whole at a collector: they go on.
    fn on_whole(&mut self, now: Instant, flow_index: u32) {
        let Some(into) = self.collect.outlet_after(flow_index) else { return };
        let (machine, slot) = self.collect.place(flow_index);
        let mut bytes = 0;
        while let Some(parcel) = self.next_whole(flow_index) {
            let Collectors { machines, outlets, .. } = &mut self.collect;
            let size =
                machines[machine].aggregate.handle_message(now, (flow_index, slot), parcel.end);
            let end = machines[machine].aggregate.handed_over(slot);
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
        self.pump_apart(now, 2 * upstream_index);
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
                ready = outbox.pop(delivered, &mut self.under_way)?.at;
                flow.watch = outbox.watch(&self.under_way);
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

    /// Messages are whole at the far end of an upstream connection, and at the end of their way.
    pub(crate) fn on_delivered(&mut self, now: Instant, flow_index: u32) {
        let Some(outlet) = self.collect.outlet_of(flow_index) else { return };
        loop {
            let before = self.collect.outlets[outlet].delivered;
            let Some(parcel) = self.next_whole(flow_index) else { break };
            let origin = &mut self.flows[parcel.origin as usize];
            let delivered = &mut self.ledger.apart[parcel.origin as usize];
            *delivered += parcel.end - before;
            if let Some(transfer) = origin.app.as_mut().and_then(Application::transfer_mut)
                && *delivered == transfer.bytes
            {
                transfer.completed = now;
            }
            let row = origin.row;
            if parcel.ready != Instant::NEVER {
                self.on_message(now, (row, parcel.origin), parcel.ready);
            }
        }
    }

    /// An upstream connection may have sent something, or had it acknowledged.
    #[inline(never)]
    pub(crate) fn on_upstream_pumped(&mut self, now: Instant, flow_index: u32) {
        let Some(outlet) = self.collect.outlet_of(flow_index) else { return };
        let Ends::Tcp(ends) = &self.flows[flow_index as usize].ends else { return };
        let (next, una) = ends[0].sent_and_acknowledged();
        // Position 0 is SYN.
        let (sent, acknowledged) = (next.saturating_sub(1), una.saturating_sub(1));
        let (machine, slot) = {
            let outlet = &self.collect.outlets[outlet];
            (outlet.machine as usize, outlet.slot as usize)
        };
        let waits = self.collect.machines[machine].waits;
        self.collect.machines[machine].audit.on_sent(slot, sent);
        let aggregate = &mut self.collect.machines[machine].aggregate;
        aggregate.handle_acknowledged(now, slot, acknowledged);
        while let Some(departed) =
            self.collect.machines[machine].aggregate.poll_departed(now, slot, sent)
        {
            let member = &mut self.flows[departed.member as usize];
            self.ledger.crossings[member.row as usize].on_waited(departed.waited);
            if waits && let Ends::Tcp(ends) = &mut member.ends {
                ends[1].read(departed.bytes);
                self.pump_apart(now, 2 * departed.member + 1);
            }
        }
    }
}

impl Collectors {
    /// The collector at which a flow ends, and which of its outlets takes the flow on.
    fn place(&self, flow: u32) -> (usize, usize) {
        let outlet = &self.outlets[self.into[flow as usize] as usize];
        (outlet.machine as usize, outlet.slot as usize)
    }
}

impl Flow {
    /// Payload that has arrived in order at the end of the flow's own connection.
    fn received(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(ends) => ends[1].receiver().delivered(),
            Ends::Datagram { .. } => 0,
        }
    }

    /// The ends of the pieces into which a collector cuts a byte stream, from `first` on: one for
    /// each full segment, as no message is known in it.
    fn pieces(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let mss = match &self.ends {
            Ends::Tcp(ends) => u64::from(ends[0].params().mss),
            Ends::Datagram { .. } => 1,
        };
        let transfer = self.app.as_ref().and_then(Application::transfer);
        let total = transfer.map_or(u64::MAX, |transfer| transfer.bytes);
        std::iter::successors(Some(first), move |&end| {
            (end < total).then(|| end.saturating_add(mss).min(total))
        })
    }

    /// A byte stream that a collector takes on has begun.
    pub(crate) fn begin_pieces(&mut self) {
        if self.app.as_ref().is_some_and(|app| !app.has_messages()) {
            self.watch = self.pieces(0).nth(1).unwrap_or(u64::MAX);
        }
    }
}
