//! The loop: read from devices, hand to links, write what arrives.

use gridhaul_core::link::{
    LinkAccount, LinkObserver, LinkSet, LossCause, PacketTransit, TimedLinks,
};
use gridhaul_scenario::answer::{Capture, Recording};
use gridhaul_scenario::scenario::{Direction, Scenario};
use gridhaul_scenario::units::{Duration, Instant};

use super::frames::{Frame, Frames};
use super::packet::{Header, damage, garble};
use super::recorder::Recorder;
use super::tap::Tap;
use super::{Lateness, Tally};
use crate::error::EmulationError;
use crate::handover::{Appointments, Thread};
use crate::network::{Address, Plan, Port};
use gridhaul_linux::Clock;
use gridhaul_linux::{EventFlags, Poll, Tun, request_realtime_priority};

/// Carries the packets of one run.
#[derive(Debug)]
pub(crate) struct Emulator<'a> {
    plan: &'a Plan,
    devices: &'a [Tun],
    links: EmulatedLinks,
    frames: Frames,
    /// One for each flow of the scenario.
    tallies: Vec<Tally>,
    /// Lost data of flows whose congestion control judges losses.
    lost: Vec<LostData>,
    lateness: Lateness,
    recorder: Recorder,
    poll: Poll,
    buffer: Vec<u8>,
}

/// The links of a run.
pub(super) type EmulatedLinks = TimedLinks<Frame, FrameObserver>;

/// What is known of the frames of one direction beside the counters.
#[derive(Debug)]
pub(super) struct FrameObserver {
    /// Place of the frame that left last. A second copy of it may follow directly.
    last_left: Option<u32>,
    /// Captures the frames. The emulator hands it their bytes, which a direction does not have.
    tap: Option<Tap>,
}

/// What is counted at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireState {
    /// One for each direction.
    pub links: Vec<LinkAccount>,
    /// One for each flow of the scenario.
    pub flows: Vec<Tally>,
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

/// What a run has shown on the wire.
#[derive(Debug)]
pub(crate) struct WireOutcome {
    /// At the end of the warm-up, and at the end.
    pub before: WireState,
    pub after: WireState,
    /// Lost data of flows whose congestion control judges losses, in the order of time.
    pub lost: Vec<LostData>,
    /// How late packets were handed on, against the time at which they were due.
    pub lateness: Lateness,
    /// Queues and throughput over time.
    pub recording: Recording,
    pub captures: Vec<Capture>,
}

/// Packets that are read from one device before others have their turn.
const BATCH: usize = 64;

impl<'a> Emulator<'a> {
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &'a Plan,
        devices: &'a [Tun],
        replication: u32,
        interval: Option<Duration>,
    ) -> Result<Self, EmulationError> {
        let poll = Poll::new()?;
        for (device, port) in devices.iter().zip(0..) {
            poll.watch(device, port, EventFlags::IN)?;
        }
        let observer = |name: &str, member, _: &Direction| {
            let tapped = replication == 0 && member == 0 && scenario.record.captures(name);
            FrameObserver { last_left: None, tap: tapped.then(|| Tap::new(name)) }
        };
        let links = LinkSet::of_scenario(scenario, &plan.directions, replication, observer)
            .expect("a valid scenario pairs directions that it has");
        Ok(Self {
            plan,
            devices,
            links: TimedLinks::new(links),
            frames: Frames::default(),
            tallies: vec![Tally::default(); plan.flows.len()],
            lost: Vec::new(),
            lateness: Lateness::new(),
            recorder: Recorder::new(&plan.directions, interval),
            poll,
            buffer: vec![0; 1 << 16],
        })
    }

    /// What it carries packets through.
    pub(crate) const fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// Carries packets until the end, or until `stop` says so.
    pub(crate) fn run(
        mut self,
        (clock, appointments): (Clock, &Appointments),
        (warmup, end): (Instant, Instant),
        stop: impl Fn() -> bool,
    ) -> Result<WireOutcome, EmulationError> {
        request_realtime_priority();
        let mut before = None;
        loop {
            let now = clock.now();
            if before.is_none() && now >= warmup {
                before = Some(self.state(now));
            }
            if now >= end || stop() {
                break;
            }
            self.deliver(clock)?;
            self.recorder.sample(now, &mut self.links);
            let limit = before.as_ref().map_or(warmup, |_| end);
            let due = self.links.next_deadline().min(limit).min(self.recorder.due());
            let due = appointments.meet(Thread::Wire, due, now);
            self.wait(clock, due)?;
        }
        let after = self.state(clock.now());
        let before = before.unwrap_or_else(|| after.clone());
        let recording = self.recorder.into_recording();
        let taps = self.links.links.iter_mut().filter_map(|link| link.observer.tap.take());
        let captures = taps.map(Tap::into_capture).collect();
        let (lost, lateness) = (self.lost, self.lateness);
        Ok(WireOutcome { before, after, lost, lateness, recording, captures })
    }

    fn state(&self, now: Instant) -> WireState {
        WireState { links: self.links.links.accounts(now).collect(), flows: self.tallies.clone() }
    }

    /// Waits until a device has something to read or a link is due, and reads.
    fn wait(&mut self, clock: Clock, due: Instant) -> Result<(), EmulationError> {
        for event in self.poll.wait::<32>(clock.until(due))? {
            self.take_in(event.data.u64() as usize, clock)?;
        }
        Ok(())
    }

    /// Reads what the kernel has sent through a device.
    fn take_in(&mut self, number: usize, clock: Clock) -> Result<(), EmulationError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..BATCH {
            let read = self.devices[number].read(&mut buffer);
            let port = &self.plan.ports[number];
            match read.map_err(|error| self.lost(port, "reading from", error))? {
                None => break,
                Some(length) => self.enter(number, &buffer[..length], clock.now()),
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// A packet leaves a node for a link. One that belongs to no flow goes nowhere.
    fn enter(&mut self, port: usize, packet: &[u8], now: Instant) {
        let Some((header, direction)) = self.direction_of(port, packet) else { return };
        let bytes = packet.len() as u32;
        let flow = usize::from(header.to.flow);
        let data = header.goes_out() && header.payload > 0;
        let way = &self.plan.flows[flow].ways[usize::from(!header.goes_out())];
        if data && way.first() == self.plan.ports[port].leads.as_ref() {
            self.tallies[flow].data.on_sent(bytes);
        }
        if let Some(tap) = &mut self.links.links.entry_mut(direction).observer.tap {
            tap.on_offered(now, packet);
        }
        let frame = self.frames.keep(header, packet);
        if self.links.offer(now, direction, bytes, frame).is_err() {
            self.note_lost(frame.place, LossCause::Queue, now);
            self.frames.release(frame.place);
        }
    }

    /// Which direction a packet takes that leaves through this device.
    fn direction_of(&self, port: usize, packet: &[u8]) -> Option<(Header, u32)> {
        let header = Header::read(packet)?;
        let flow = self.plan.flows.get(usize::from(header.to.flow))?;
        let hop = self.plan.ports[port].leads?;
        let member = u64::from(header.to.number) % flow.group;
        let direction = self.plan.directions.of(&[hop], member, flow.group).next()?;
        Some((header, direction))
    }

    /// Hands on whatever has arrived at the far end of its link.
    fn deliver(&mut self, clock: Clock) -> Result<(), EmulationError> {
        let now = clock.now();
        while let Some((number, passage)) = self.links.poll(now) {
            let last_left = &mut self.links.links.entry_mut(number).observer.last_left;
            let previous = last_left.replace(passage.payload.place);
            if let Some(previous) = previous.filter(|_| !passage.outcome.is_duplicate()) {
                self.frames.release(previous);
            }
            self.leave(number, passage, now)?;
        }
        Ok(())
    }

    /// A packet comes out of a direction, or is lost in it.
    fn leave(
        &mut self,
        direction: u32,
        passage: PacketTransit<Frame>,
        now: Instant,
    ) -> Result<(), EmulationError> {
        let PacketTransit { payload: frame, outcome, offered, left, .. } = passage;
        if let Some(cause) = outcome.loss_cause() {
            self.note_lost(frame.place, cause, now);
        }
        if !outcome.arrives() {
            return Ok(());
        }
        self.lateness.record(now.since(left));
        let arrival = self.plan.arrival(direction);
        let (header, bytes) = self.frames.get_mut(frame.place);
        let (header, length) = (*header, bytes.len() as u64);
        if outcome.is_corrupted_undetected() && !outcome.is_duplicate() {
            garble(bytes);
        }
        if outcome.is_corrupted() && !outcome.is_duplicate() {
            // The packet travels on, and its receiver's checksum rejects it.
            damage(bytes);
        }
        let tally = &mut self.tallies[usize::from(header.to.flow)];
        let flow = &self.plan.flows[usize::from(header.to.flow)];
        let way = &flow.ways[usize::from(!header.goes_out())];
        let last = way.last().is_some_and(|hop| self.plan.port_number(hop, true) == arrival);
        let data = header.goes_out() && header.payload > 0;
        if data && !outcome.is_duplicate() {
            tally.data.delay_ns += left.since(offered).as_nanos();
        }
        match (last, header.goes_out()) {
            (false, _) => {}
            _ if outcome.is_corrupted() => {}
            (true, true) => {
                tally.arrived_bytes += length;
                tally.data.arrived += u64::from(data && !outcome.is_duplicate());
            }
            (true, false) => tally.returned_bytes += length,
        }
        let bytes = self.frames.get_mut(frame.place).1;
        let written = self.devices[arrival].write(bytes);
        written.map_err(|error| self.lost(&self.plan.ports[arrival], "writing to", error))
    }

    fn note_lost(&mut self, place: u32, cause: LossCause, at: Instant) {
        let header = *self.frames.header(place);
        let tally = &mut self.tallies[usize::from(header.to.flow)];
        let data = header.goes_out() && header.payload > 0;
        tally.data.lost += u64::from(data);
        tally.lost += u64::from(header.payload > 0);
        self.note_cause(&header, cause, at);
    }

    /// Remembers why a segment with data is not there, where its sender judges.
    fn note_cause(&mut self, header: &Header, cause: LossCause, at: Instant) {
        let Header { to: Address { flow, number: member, .. }, payload: len, seq } = *header;
        if header.goes_out() && len > 0 && self.plan.flows[usize::from(flow)].judges() {
            self.lost.push(LostData { at, flow, member, seq, len, cause });
        }
    }

    /// The error of a device that does not work any more.
    fn lost(&self, port: &Port, doing: &str, error: std::io::Error) -> EmulationError {
        let node = self.plan.nodes[port.node].clone();
        if Tun::is_gone(&error) {
            return EmulationError::DeviceGone { link: port.link.clone(), node };
        }
        EmulationError::call(format!("{doing} the device of link `{}` at `{node}`", port.link))(
            error,
        )
    }
}

impl LinkObserver<Frame> for FrameObserver {}
