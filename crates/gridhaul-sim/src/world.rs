//! A run: the loop that wakes links, ends and applications in the order of time.

use gridhaul_core::link::Fate;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::{Duration, Instant};

use crate::events::Target;
use crate::flow::{App, Ends, Flow};
use crate::measure::Ledger;
use crate::network::Network;
use crate::packet::{Body, Datagram, Packet};
use crate::record::Recorder;

/// Everything that lives during one run.
#[derive(Debug)]
pub(crate) struct World {
    pub net: Network,
    pub flows: Vec<Flow>,
    pub ledger: Ledger,
    pub recorder: Option<Recorder>,
    pub warmup: Instant,
    pub end: Instant,
}

impl World {
    /// Runs from the beginning to the end.
    pub(crate) fn run(&mut self) {
        self.net.events.schedule(Target::Clock, self.first_tick());
        for (index, flow) in self.flows.iter().enumerate() {
            self.net.events.schedule(Target::App(index as u32), flow.start);
        }
        while let Some((now, target)) = self.net.events.pop(self.end) {
            match target {
                Target::Link(link) => self.on_link(now, link),
                Target::End(end) => self.on_end(now, end),
                Target::App(flow) => self.on_app(now, flow),
                Target::Clock => self.on_clock(now),
            }
        }
    }

    /// Packets have left a link: they enter the next one or reach their end.
    #[inline]
    fn on_link(&mut self, now: Instant, link: u32) {
        while let Some(passage) = self.net.take(now, link) {
            let packet = passage.payload;
            match passage.fate {
                Fate::Arrived | Fate::Copy => self.forward(now, packet),
                // The receiver's checksum rejects what is damaged; nothing answers it.
                Fate::Damaged | Fate::DamagedCopy | Fate::Lost(_) => self.on_lost(packet),
            }
        }
        self.net.reschedule(link);
    }

    #[inline]
    fn forward(&mut self, now: Instant, mut packet: Packet) {
        let flow = &self.flows[packet.flow as usize];
        let (first, last) = if packet.returning { flow.back } else { flow.forth };
        let next = first + u32::from(packet.hop);
        if next < last {
            packet.hop += 1;
            let link = self.net.routes[next as usize];
            if let Err(packet) = self.net.offer(now, link, packet) {
                self.on_lost(packet);
            }
            return;
        }
        match packet.body {
            Body::Tcp(segment) => self.on_segment(now, packet.flow, packet.returning, &segment),
            Body::Datagram(datagram) => self.on_datagram(now, packet, datagram),
        }
    }

    #[inline]
    fn on_segment(&mut self, now: Instant, flow_index: u32, returning: bool, segment: &Segment) {
        let flow = &mut self.flows[flow_index as usize];
        let Ends::Tcp(ends) = &mut flow.ends else { return };
        let side = usize::from(!returning);
        let bytes = u64::from(segment.wire_bytes());
        let end = &mut ends[side];
        end.handle_segment(now, segment);
        if returning {
            flow.counters.returned_bytes += bytes;
            flow.counters.note_cwnd(now, end.sender().cwnd());
        } else {
            flow.counters.arrived_bytes += bytes;
        }
        if end.receiver().delivered() >= flow.watch[side] {
            self.on_progress(now, flow_index, side);
        }
        self.pump(now, 2 * flow_index + side as u32);
    }

    /// Sends what an end has to send, and wakes it when it next wants to be.
    #[inline]
    fn pump(&mut self, now: Instant, end: u32) {
        let flow = &mut self.flows[(end / 2) as usize];
        let returning = end % 2 == 1;
        let (first, _) = if returning { flow.back } else { flow.forth };
        let Ends::Tcp(ends) = &mut flow.ends else { return };
        let connection = &mut ends[(end % 2) as usize];
        while let Some(segment) = connection.poll_transmit(now) {
            let body = Body::Tcp(segment);
            let packet = Packet { flow: end / 2, hop: 1, returning, body };
            let link = self.net.routes[first as usize];
            // A refused segment is TCP's to find out.
            let _ = self.net.offer(now, link, packet);
        }
        self.net.events.schedule(Target::End(end), connection.next_deadline());
    }

    fn on_end(&mut self, now: Instant, end: u32) {
        let flow = &mut self.flows[(end / 2) as usize];
        let Ends::Tcp(ends) = &mut flow.ends else { return };
        let connection = &mut ends[(end % 2) as usize];
        if connection.next_deadline() <= now {
            connection.handle_timeout(now);
            if end.is_multiple_of(2) {
                flow.counters.note_cwnd(now, connection.sender().cwnd());
            }
        }
        self.pump(now, end);
    }

    fn on_lost(&mut self, packet: Packet) {
        if let Body::Datagram(_) = packet.body {
            self.flows[packet.flow as usize].counters.datagrams_lost += 1;
        }
    }

    #[cold]
    fn on_datagram(&mut self, now: Instant, packet: Packet, datagram: Datagram) {
        let flow = &mut self.flows[packet.flow as usize];
        let bytes = u64::from(packet.body.wire_bytes());
        let echo = matches!(flow.ends, Ends::Datagram { echo: true });
        if packet.returning {
            flow.counters.returned_bytes += bytes;
        } else {
            flow.counters.arrived_bytes += bytes;
            flow.counters.datagram_bytes += u64::from(datagram.bytes);
        }
        if echo && !packet.returning {
            let link = self.net.routes[flow.back.0 as usize];
            let answer = Packet { hop: 1, returning: true, ..packet };
            if let Err(lost) = self.net.offer(now, link, answer) {
                self.on_lost(lost);
            }
            return;
        }
        let row = flow.row;
        self.on_message(now, row, datagram.ready);
    }

    /// The application of a flow is due: it starts, or a message is ready.
    fn on_app(&mut self, now: Instant, flow_index: u32) {
        let flow = &mut self.flows[flow_index as usize];
        if let Some(ends) = flow.tcp() {
            let cwnd = ends[0].sender().cwnd();
            flow.counters.note_cwnd(now, cwnd);
        }
        let again = match &flow.ends {
            Ends::Tcp(_) => flow.on_due(now),
            Ends::Datagram { .. } => {
                let Some((datagram, again)) = flow.next_datagram(now) else { return };
                if let Some(datagram) = datagram {
                    self.send_datagram(now, flow_index, datagram);
                }
                Some(again)
            }
        };
        if let Some(again) = again {
            self.net.events.schedule(Target::App(flow_index), again);
        }
        self.pump(now, 2 * flow_index);
        self.pump(now, 2 * flow_index + 1);
    }

    fn send_datagram(&mut self, now: Instant, flow_index: u32, datagram: Datagram) {
        let flow = &mut self.flows[flow_index as usize];
        flow.counters.datagrams += 1;
        let link = self.net.routes[flow.forth.0 as usize];
        let body = Body::Datagram(datagram);
        let packet = Packet { flow: flow_index, hop: 1, returning: false, body };
        if let Err(lost) = self.net.offer(now, link, packet) {
            self.on_lost(lost);
        }
    }

    /// What an application waits for has arrived at one of its ends.
    #[cold]
    fn on_progress(&mut self, now: Instant, flow_index: u32, side: usize) {
        let progress = self.flows[flow_index as usize].on_arrived(now, side);
        let row = self.flows[flow_index as usize].row;
        for ready in progress.messages {
            self.on_message(now, row, ready);
        }
        if let Some(at) = progress.wake {
            self.net.events.schedule(Target::App(flow_index), at);
        }
    }

    /// A message has arrived whole.
    fn on_message(&mut self, now: Instant, row: u32, ready: Instant) {
        let delay: Duration = now.since(ready);
        if ready >= self.warmup {
            self.ledger.delays[row as usize].record(delay);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.on_message(ready, row, delay);
        }
    }

    fn first_tick(&self) -> Instant {
        if self.recorder.is_some() { Instant::ZERO } else { self.warmup }
    }

    #[cold]
    fn on_clock(&mut self, now: Instant) {
        if now >= self.warmup && self.ledger.before.is_none() {
            self.ledger.begin(now, &self.net, &mut self.flows);
        }
        if let Some(recorder) = &mut self.recorder {
            let next = recorder.sample(now, &mut self.net, &self.flows);
            let next = if now < self.warmup { next.min(self.warmup) } else { next };
            self.net.events.schedule(Target::Clock, next);
        }
    }
}

impl Flow {
    /// The application of a TCP flow starts, or has a message ready. Returns when it is due again.
    fn on_due(&mut self, now: Instant) -> Option<Instant> {
        let Ends::Tcp(ends) = &mut self.ends else { return None };
        match &mut self.app {
            App::Bulk => {
                ends[0].write(u64::MAX);
                None
            }
            App::Transfer { bytes } => {
                ends[0].write(*bytes);
                ends[0].close();
                self.watch[1] = *bytes;
                None
            }
            App::Messages { source, coming, under_way, written } => {
                while let Some(message) = coming.filter(|message| message.at <= now) {
                    ends[0].write(message.bytes);
                    *written += message.bytes;
                    under_way.push_back((*written, message.at));
                    *coming = source.next_message();
                }
                self.watch[1] = under_way.front().map_or(u64::MAX, |&(end, _)| end);
                coming.map(|message| message.at)
            }
            App::Dialogue(dialogue) => dialogue.on_due(now, ends, &mut self.watch),
        }
    }

    /// A datagram that is ready now, if one is, and when the next one will be.
    fn next_datagram(&mut self, now: Instant) -> Option<(Option<Datagram>, Instant)> {
        let App::Messages { source, coming, .. } = &mut self.app else { return None };
        let message = (*coming)?;
        if message.at > now {
            return Some((None, message.at));
        }
        *coming = source.next_message();
        let again = coming.map_or(Instant::NEVER, |message| message.at);
        let bytes = u32::try_from(message.bytes).unwrap_or(u32::MAX);
        Some((Some(Datagram { bytes, ready: message.at }), again))
    }

    /// An end has received what the application waited for there.
    fn on_arrived(&mut self, now: Instant, side: usize) -> Progress {
        let mut progress = Progress::default();
        let Ends::Tcp(ends) = &mut self.ends else { return progress };
        match &mut self.app {
            App::Bulk => {}
            App::Transfer { .. } => {
                self.watch[side] = u64::MAX;
                self.counters.completed = Some(now);
                ends[1].close();
            }
            App::Messages { under_way, .. } => {
                let delivered = ends[1].receiver().delivered();
                while let Some(&(end, ready)) = under_way.front() {
                    if end > delivered {
                        break;
                    }
                    under_way.pop_front();
                    progress.messages.push(ready);
                }
                self.watch[1] = under_way.front().map_or(u64::MAX, |&(end, _)| end);
            }
            App::Dialogue(dialogue) => {
                progress = dialogue.on_arrived(now, side, &mut self.watch);
            }
        }
        progress
    }
}

/// What follows from an arrival.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// When the messages that are whole now were ready.
    pub messages: Vec<Instant>,
    /// When the application is due again.
    pub wake: Option<Instant>,
}
