//! The emulator loop: reads packets from devices, offers them to links, and writes the packets that
//! arrive.

use std::collections::BTreeMap;
use std::io;

use gridhaul_core::link::{
    EcnCodePoint, LinkAccount, LinkObserver, LinkSet, LossCause, PacketTransit, PathCounters,
    TimedLinks,
};
use gridhaul_core::wire::{clamp_mss, mark_congestion, reported_mtu};
use gridhaul_scenario::answer::{Capture, Recording};
use gridhaul_scenario::scenario::{Direction, FlowEnd, Hop, PacketsWhileDown, Scenario};
use gridhaul_scenario::units::{Duration, Instant};

use super::bridged_device::{self, BridgeStates};
use super::capture::CaptureWriter;
use super::packet_header::{Header, corrupt, corrupt_frame_undetected, corrupt_undetected};
use super::packet_store::{PacketStore, StoredPacket};
use super::recorder::Recorder;
use super::{ForwardedCounter, Lateness, RowCounters};
use crate::error::EmulationError;
use crate::network::{Address, LinkDevice, NetworkPlan};
use crate::thread_wakeup::{Thread, WakeupSchedule};
use gridhaul_linux::Clock;
use gridhaul_linux::{EventFlags, Poll, Tun, request_realtime_priority};

/// Forwards the packets of one run.
#[derive(Debug)]
pub(crate) struct Emulator<'a> {
    plan: &'a NetworkPlan,
    devices: &'a [Tun],
    links: EmulatedLinks,
    packets: PacketStore,
    /// One for each flow of the scenario.
    counters: Vec<RowCounters>,
    /// Lost data of flows whose congestion control classifies losses.
    lost: Vec<LostData>,
    /// Identification of the last datagram of each flow of which a fragment was lost.
    lost_datagrams: BTreeMap<u64, u32>,
    lateness: Lateness,
    /// MTUs of the links whose reports never arrive.
    black_holes: Vec<u32>,
    /// Counts the packets for other threads, if they read the counts.
    forwarded: Option<&'a ForwardedCounter>,
    /// Whether the daemons of the proxies run.
    bridges: Option<&'a BridgeStates>,
    recorder: Recorder,
    poll: Poll,
    buffer: Vec<u8>,
}

/// The links of a run.
pub(super) type EmulatedLinks = TimedLinks<StoredPacket, CaptureObserver>;

/// State of one direction in addition to its counters.
#[derive(Debug)]
pub(super) struct CaptureObserver {
    /// Index of the packet that left last. A duplicate of it may follow directly.
    last_left: Option<u32>,
    /// Capture of the packets, if requested.
    capture: Option<CaptureWriter>,
}

/// Counters at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct EmulatorState {
    /// One for each direction.
    pub links: Vec<LinkAccount>,
    /// One for each flow of the scenario.
    pub flows: Vec<RowCounters>,
}

/// A segment with data that did not arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostData {
    pub at: Instant,
    pub flow: u16,
    pub member: u32,
    pub seq: u32,
    pub len: u32,
    pub cause: LossCause,
}

/// Results of the emulator.
#[derive(Debug)]
pub(crate) struct EmulatorOutcome {
    /// At the end of the warm-up, and at the end.
    pub before: EmulatorState,
    pub after: EmulatorState,
    /// Lost data of flows whose congestion control classifies losses, in order of time.
    pub lost: Vec<LostData>,
    /// Lateness of forwarded packets relative to their deadlines.
    pub lateness: Lateness,
    /// Queues and throughput over time.
    pub recording: Recording,
    pub captures: Vec<Capture>,
}

impl EmulatorOutcome {
    /// Data packets of a flow after the warm-up.
    pub(crate) fn path_counters(&self, flow: usize) -> PathCounters {
        self.after.flows[flow].data.since(&self.before.flows[flow].data)
    }
}

/// Largest number of packets that are read from one device before the others are served.
const BATCH: usize = 64;

impl<'a> Emulator<'a> {
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &'a NetworkPlan,
        devices: &'a [Tun],
        replication: u32,
        interval: Option<Duration>,
    ) -> Result<Self, EmulationError> {
        let poll = Poll::new()?;
        for (device, port) in devices.iter().zip(0..) {
            poll.watch(device, port, EventFlags::IN)?;
        }
        let observer = |name: &str, member, _: &Direction| {
            let recorded = replication == scenario.record.replication;
            let captured = recorded && member == 0 && scenario.record.captures(name);
            CaptureObserver { last_left: None, capture: captured.then(|| CaptureWriter::new(name)) }
        };
        // The kernel shapes.
        let unshaped = scenario.without_shapers();
        let mut links = LinkSet::of_scenario(&unshaped, &plan.directions, replication, observer)
            .expect("a valid scenario pairs existing directions");
        links.classify_flows(scenario, Header::flow_keys);
        Ok(Self {
            plan,
            devices,
            links: TimedLinks::new(links),
            packets: PacketStore::default(),
            counters: vec![RowCounters::default(); plan.flows.len()],
            lost: Vec::new(),
            lost_datagrams: BTreeMap::new(),
            lateness: Lateness::new(),
            black_holes: plan.black_holes().collect(),
            forwarded: None,
            bridges: None,
            recorder: Recorder::new(&plan.directions, interval),
            poll,
            buffer: vec![0; 1 << 16],
        })
    }

    /// The same emulator, whose packets are counted for other threads.
    pub(crate) const fn counted_by(mut self, counter: &'a ForwardedCounter) -> Self {
        self.forwarded = Some(counter);
        self
    }

    /// The same emulator, with proxies whose daemons another thread starts and stops.
    pub(crate) const fn bridged_by(mut self, bridges: &'a BridgeStates) -> Self {
        self.bridges = Some(bridges);
        self
    }

    /// The network plan of the run.
    pub(crate) const fn plan(&self) -> &'a NetworkPlan {
        self.plan
    }

    /// Forwards packets until the end, or until `stop` returns `true`.
    pub(crate) fn run(
        mut self,
        (clock, wakeups): (Clock, &WakeupSchedule),
        warmup: Instant,
        end: Instant,
        stop: impl Fn() -> bool,
    ) -> Result<EmulatorOutcome, EmulationError> {
        request_realtime_priority();
        let mut before = None;
        loop {
            let now = clock.now();
            if before.is_none() && now >= warmup {
                self.links.links.restart_maxima(now);
                before = Some(self.state(now));
            }
            if now >= end || stop() {
                break;
            }
            self.deliver(clock)?;
            self.recorder.sample(now, &mut self.links);
            let limit = before.as_ref().map_or(warmup, |_| end);
            let due = self.links.next_deadline().min(limit).min(self.recorder.due());
            let due = wakeups.announce(Thread::Emulator, due, now);
            self.wait(clock, due)?;
        }
        let after = self.state(clock.now());
        let before = before.unwrap_or_else(|| after.clone());
        let recording = self.recorder.into_recording();
        let writers = self.links.links.iter_mut().filter_map(|link| link.observer.capture.take());
        let captures: io::Result<_> = writers.map(CaptureWriter::into_capture).collect();
        let captures = captures.map_err(EmulationError::Capture)?;
        let (lost, lateness) = (self.lost, self.lateness);
        Ok(EmulatorOutcome { before, after, lost, lateness, recording, captures })
    }

    fn state(&self, now: Instant) -> EmulatorState {
        EmulatorState {
            links: self.links.links.accounts(now).collect(),
            flows: self.counters.clone(),
        }
    }

    /// Waits until a device has something to read or a link is due, and reads.
    fn wait(&mut self, clock: Clock, due: Instant) -> Result<(), EmulationError> {
        for event in self.poll.wait::<32>(clock.until(due))? {
            self.read_device(event.data.u64() as usize, clock)?;
        }
        Ok(())
    }

    /// Reads the packets that the kernel has sent through a device.
    fn read_device(&mut self, number: usize, clock: Clock) -> Result<(), EmulationError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..BATCH {
            let read = self.devices[number].read(&mut buffer);
            let port = &self.plan.ports[number];
            match read.map_err(|error| self.device_error(port, "reading from", error))? {
                None => break,
                Some(length) if self.plan.proxy_at(number).is_some() => {
                    if let Some(packet) = bridged_device::packet_of(&buffer[..length]) {
                        self.enter(number, packet, clock.now());
                    }
                }
                Some(length) => self.enter(number, &buffer[..length], clock.now()),
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// A packet leaves a node for a link. A packet that belongs to no flow is dropped.
    fn enter(&mut self, port: usize, packet: &[u8], now: Instant) {
        if !self.black_holes.is_empty()
            && reported_mtu(packet).is_some_and(|mtu| self.black_holes.contains(&mtu))
        {
            // A firewall drops the report.
            return;
        }
        let Some((header, direction)) = self.direction_of(port, packet) else { return };
        let bytes = packet.len() as u32;
        let flow = usize::from(header.to.flow);
        let data = header.is_forward() && header.payload > 0;
        if data && self.plan.ports[port].node == self.plan.flows[flow].node(FlowEnd::From) {
            self.counters[flow].data.on_sent(bytes);
        }
        if let Some(capture) = &mut self.links.links.entry_mut(direction).observer.capture {
            capture.on_offered(now, packet);
        }
        let stored = self.packets.insert(header, packet);
        if let Some(limit) = self.plan.ports[port].mss_clamp {
            clamp_mss(self.packets.get_mut(stored.index).1, limit);
        }
        if self.links.offer(now, direction, bytes, stored).is_err() {
            self.record_loss(stored.index, LossCause::Queue, now);
            self.packets.release(stored.index);
        }
    }

    /// The direction of a packet that a node sends through this device, with the headers of the
    /// packet.
    fn direction_of(&self, port: usize, packet: &[u8]) -> Option<(Header, u32)> {
        let hop = self.plan.ports[port].leads?;
        let header = match self.plan.frames() {
            None => Header::read(packet)?,
            Some(flow) => {
                let paths = &self.plan.flows.get(flow)?.paths;
                // Frames have no address of a flow: the device determines the direction.
                let on_path = |path: &[Hop]| path.contains(&hop);
                let side = match (on_path(&paths[0]), on_path(&paths[1])) {
                    (true, _) => FlowEnd::To,
                    (false, true) => FlowEnd::From,
                    (false, false) => return None,
                };
                Header::read_frame(packet, flow, side)?
            }
        };
        let flow = self.plan.flows.get(usize::from(header.to.flow))?;
        let member = u64::from(header.to.number) % flow.group;
        let direction = self.plan.directions.of(&[hop], member, flow.group).next()?;
        Some((header, direction))
    }

    /// Delivers the packets that have arrived at the other end of their link.
    fn deliver(&mut self, clock: Clock) -> Result<(), EmulationError> {
        let now = clock.now();
        while let Some((number, transit)) = self.links.poll(now) {
            let last_left = &mut self.links.links.entry_mut(number).observer.last_left;
            let previous = last_left.replace(transit.payload.index);
            if let Some(previous) = previous.filter(|_| !transit.outcome.is_duplicate()) {
                self.packets.release(previous);
            }
            self.leave(number, transit, now)?;
        }
        Ok(())
    }

    /// A packet leaves a direction, or is lost in it.
    fn leave(
        &mut self,
        direction: u32,
        transit: PacketTransit<StoredPacket>,
        now: Instant,
    ) -> Result<(), EmulationError> {
        let PacketTransit { payload: stored, outcome, offered, left, .. } = transit;
        if let Some(cause) = outcome.loss_cause() {
            self.record_loss(stored.index, cause, now);
        }
        if !outcome.arrives() {
            return Ok(());
        }
        let late = now.since(left);
        self.lateness.record(late);
        self.forwarded.iter().for_each(|counter| counter.record(late));
        let arrival = self.plan.arrival(direction);
        let (header, bytes) = self.packets.get_mut(stored.index);
        let (header, length) = (*header, bytes.len() as u64);
        let carries_frames = self.plan.frames().is_some();
        if outcome.is_corrupted_undetected() && !outcome.is_duplicate() {
            if carries_frames { corrupt_frame_undetected(bytes) } else { corrupt_undetected(bytes) }
        }
        let is_marked = stored.ecn == EcnCodePoint::Ce;
        if is_marked && header.ecn != EcnCodePoint::Ce {
            mark_congestion(bytes);
        }
        if outcome.is_corrupted() && carries_frames {
            // The network card of the receiver discards a frame with a wrong frame check sequence.
            return Ok(());
        }
        if outcome.is_corrupted() && !outcome.is_duplicate() {
            // The packet is forwarded, and its receiver rejects its checksum.
            corrupt(bytes);
        }
        let row_counters = &mut self.counters[usize::from(header.to.flow)];
        let flow = &self.plan.flows[usize::from(header.to.flow)];
        // A hybrid router may send packets over other links than those of the path.
        let has_path = !flow.paths[usize::from(!header.is_forward())].is_empty();
        let last = has_path && self.plan.ports[arrival].node == flow.node(header.to.side);
        let data = header.is_forward() && header.payload > 0;
        if data && !outcome.is_duplicate() {
            row_counters.data.delay_ns += left.since(offered).as_nanos();
        }
        match (last, header.is_forward()) {
            (false, _) => {}
            _ if outcome.is_corrupted() => {}
            (true, true) => {
                row_counters.arrived_bytes += length;
                row_counters.data.arrived += u64::from(data && !outcome.is_duplicate());
                row_counters.marks += u64::from(data && is_marked);
            }
            (true, false) => row_counters.reverse_bytes += length,
        }
        if let Some(next) = self.next_link(&header, arrival).filter(|_| carries_frames) {
            // Between two links, the emulator is the switch.
            let frame = self.packets.get_mut(stored.index).1.to_vec();
            self.enter(next, &frame, now);
            return Ok(());
        }
        if let Some(proxy) = self.plan.proxy_at(arrival) {
            return self.pass_to_proxy(proxy, arrival, stored, now);
        }
        let bytes = self.packets.get_mut(stored.index).1;
        let written = self.devices[arrival].write(bytes);
        written.map_err(|error| self.device_error(&self.plan.ports[arrival], "writing to", error))
    }

    /// A packet has reached the node of a proxy. While the daemon does not run, the emulator
    /// forwards the packet in place of the kernel's bridge, or drops it, as the scenario demands.
    fn pass_to_proxy(
        &mut self,
        proxy: usize,
        arrival: usize,
        stored: StoredPacket,
        now: Instant,
    ) -> Result<(), EmulationError> {
        let down = self.bridges.and_then(|bridges| bridges.down(proxy));
        let (header, bytes) = self.packets.get_mut(stored.index);
        match down {
            None => {
                let from_first = self.plan.proxies[proxy].ports[0] == arrival;
                let frame = bridged_device::frame_of(bytes, from_first);
                let written = self.devices[arrival].write(&frame);
                written.map_err(|error| {
                    self.device_error(&self.plan.ports[arrival], "writing to", error)
                })
            }
            Some(PacketsWhileDown::Drop) => Ok(()),
            Some(PacketsWhileDown::Forward) => {
                let (header, packet) = (*header, bytes.to_vec());
                if let Some(next) = self.next_link(&header, arrival) {
                    self.enter(next, &packet, now);
                }
                Ok(())
            }
        }
    }

    /// The device at which the next link of the path begins, after the link that ends at `arrival`.
    fn next_link(&self, header: &Header, arrival: usize) -> Option<usize> {
        let flow = &self.plan.flows[usize::from(header.to.flow)];
        let path = &flow.paths[usize::from(!header.is_forward())];
        let reached = path.iter().position(|hop| self.plan.port_number(hop, true) == arrival)?;
        path.get(reached + 1).map(|hop| self.plan.port_number(hop, false))
    }

    fn record_loss(&mut self, index: u32, cause: LossCause, at: Instant) {
        let header = *self.packets.header(index);
        let row_counters = &mut self.counters[usize::from(header.to.flow)];
        let data = header.is_forward() && header.payload > 0;
        row_counters.data.lost += u64::from(data);
        // A datagram is lost with the first of its fragments that is lost.
        let is_first = header.fragment_of.is_none_or(|datagram| {
            self.lost_datagrams.insert(header.flow_key(), datagram) != Some(datagram)
        });
        row_counters.lost += u64::from(header.payload > 0 && is_first);
        self.record_cause(&header, cause, at);
    }

    /// Records the cause of the loss of a data segment if its sender classifies losses.
    fn record_cause(&mut self, header: &Header, cause: LossCause, at: Instant) {
        let Header { to: Address { flow, number: member, .. }, payload: len, seq, .. } = *header;
        if header.is_forward() && len > 0 && self.plan.flows[usize::from(flow)].classifies_losses()
        {
            self.lost.push(LostData { at, flow, member, seq, len, cause });
        }
    }

    /// The error of a device that cannot be read or written.
    fn device_error(
        &self,
        port: &LinkDevice,
        doing: &str,
        error: std::io::Error,
    ) -> EmulationError {
        let node = self.plan.nodes[port.node].clone();
        if Tun::is_gone(&error) {
            return EmulationError::DeviceGone { link: port.link.clone(), node };
        }
        EmulationError::call(format!("{doing} the device of link `{}` at `{node}`", port.link))(
            error,
        )
    }
}

impl LinkObserver<StoredPacket> for CaptureObserver {}
