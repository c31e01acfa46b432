//! The loop of all applications: timers when they expire, sockets when they are ready.

mod clock;
mod forward;
mod member;
mod observe;
mod open;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;

use gridhaul_core::load::Arrival;
use gridhaul_data::trace::Playback;
use gridhaul_linux::{Clock, EventFlags, Poll, request_realtime_priority};
use gridhaul_scenario::answer::Recording;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use self::clock::ApplicationClock;
use self::forward::Subscription;
use self::member::Member;
use self::observe::classification_interval;
use self::open::MemberSockets;
use super::event_log::EventLogs;
use super::row::RowTraffic;
use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{Address, NetworkPlan, Testbed};
use crate::relay::{Relays, TcpCounters};
use crate::thread_wakeup::{Thread, WakeupSchedule};

/// All applications of a run.
#[derive(Debug)]
pub(crate) struct Traffic<'a> {
    plan: &'a NetworkPlan,
    testbed: &'a Testbed,
    controls: &'a KernelCongestionControls,
    relays: &'a Relays<'a>,
    /// Counters of the relays at the end of the warm-up and at the end.
    relay_counters: [Vec<TcpCounters>; 2],
    members: Vec<Member>,
    /// The first member of each flow.
    first: Vec<usize>,
    /// The `to` ends of TCP flows that wait for connections.
    listeners: Vec<Option<Socket>>,
    rows: Vec<RowTraffic>,
    /// Members that forward the messages of others.
    subscriptions: Vec<Subscription>,
    /// Traces that are played to members.
    playbacks: Vec<Playback>,
    /// Members whose congestion control classifies losses, and the number of classifications read
    /// so far.
    loss_classifiers: Vec<(usize, u32)>,
    event_logs: EventLogs,
    /// Deadlines of members and of traces; traces are numbered from [`PLAYBACK`] on.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    poll: Poll,
    scratch: Vec<MaybeUninit<u8>>,
}

/// Results of the applications of a run.
#[derive(Debug)]
pub(crate) struct TrafficOutcome {
    /// One for each flow of the scenario.
    pub rows: Vec<RowTraffic>,
    /// Counters of each row of aggregators after the warm-up.
    pub relays: Vec<TcpCounters>,
    /// Time series of windows and message delays, if requested.
    pub recording: Recording,
    pub event_logs: EventLogs,
}

/// Interval of the samples of windows, and whether they are recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    pub interval: Duration,
    pub recorded: bool,
}

/// First epoll number of listeners; lower numbers are members with their end.
const LISTENER: u64 = 1 << 40;

/// First number of traces among the deadlines; lower numbers are members.
const PLAYBACK: u32 = 1 << 31;

/// Edge-triggered events: a connection reads and writes until the kernel would block.
const BOTH_ON_CHANGE: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::ET);

impl Traffic<'_> {
    /// Runs the applications until the end, or until `stop` returns `true`.
    pub(crate) fn run(
        mut self,
        (clock, wakeups): (Clock, &WakeupSchedule),
        warmup: Instant,
        end: Instant,
        sampling: Sampling,
        stop: impl Fn() -> bool,
    ) -> Result<TrafficOutcome, RunError> {
        request_realtime_priority();
        clock.await_start();
        let mut recording = Recording::new(None);
        let mut sample_at = Instant::ZERO;
        let mut classifications_at =
            if self.loss_classifiers.is_empty() { Instant::NEVER } else { Instant::ZERO };
        let mut warm = false;
        loop {
            let now = clock.now();
            if !warm && now >= warmup {
                warm = true;
                self.read_counters(0);
            }
            if now >= sample_at {
                self.sample(now, warm, sampling, &mut recording);
                sample_at = sample_at.max(now) + sampling.interval;
            }
            if now >= classifications_at {
                self.read_classifications(now);
                classifications_at = now + classification_interval(self.loss_classifiers.len());
            }
            if now >= end || stop() {
                break;
            }
            let applications = ApplicationClock::new(clock, end);
            self.act(applications.now())?;
            let limit = if warm { end } else { warmup };
            let next = self.due.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
            let due = next.min(limit).min(sample_at).min(classifications_at);
            self.wait(applications, wakeups.announce(Thread::Traffic, due, now))?;
        }
        self.read_counters(1);
        self.read_classifications(end);
        for member in &self.members {
            let row = &mut self.rows[member.row()];
            match member {
                Member::Tcp(connection) => row.finish(connection, end),
                Member::Managed(connections) => row.finish_managed(connections, end),
                Member::Coap(sockets) => row.finish_coap(sockets, end),
                Member::Datagram(_) => {}
            }
        }
        self.finish_subscriptions(end);
        if sampling.recorded {
            for (number, row) in self.rows.iter().enumerate() {
                for &(member, ready, delay) in &row.messages {
                    recording.on_message(ready, number as u32, member, delay);
                }
                recording.omit_messages(row.omitted_messages);
            }
        }
        let [before, after] = &self.relay_counters;
        let relays = after.iter().zip(before).map(|(after, before)| after.since(before)).collect();
        let Self { rows, event_logs, .. } = self;
        Ok(TrafficOutcome { rows, relays, recording, event_logs })
    }

    /// Serves all members and traces that are due.
    fn act(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(&Reverse((at, number))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            if let Some(playback) = number.checked_sub(PLAYBACK) {
                self.play(playback as usize, now)?;
                continue;
            }
            let index = number as usize;
            match &mut self.members[index] {
                Member::Tcp(connection) if connection.due() <= now => {
                    let flow = usize::from(connection.flow);
                    let row = &mut self.rows[flow];
                    if connection.begun {
                        connection.on_due(now, row);
                    } else {
                        connection.begin(now, &self.plan.flows[flow], row);
                    }
                    connection.write(FlowEnd::From, now, row);
                    connection.write(FlowEnd::To, now, row);
                }
                Member::Managed(_) => self.act_for(index, now),
                Member::Datagram(datagrams) if datagrams.due() <= now => {
                    let flow = usize::from(datagrams.flow);
                    datagrams.on_due(now, &self.plan.flows[flow], &mut self.rows[flow]);
                }
                // A deadline that has moved since has an entry of its own.
                Member::Coap(sockets) if sockets.due() != at => continue,
                Member::Coap(sockets) => {
                    let flow = usize::from(sockets.flow);
                    let plan = &self.plan.flows[flow];
                    self.rows[flow].count_coap(|about| sockets.act(now, plan, about));
                }
                // A burst has started or ended meanwhile: this deadline is obsolete.
                _ => {}
            }
            self.schedule(index);
        }
        Ok(())
    }

    /// Sends the messages of a trace that are ready.
    fn play(&mut self, number: usize, now: Instant) -> Result<(), RunError> {
        loop {
            let playback = &mut self.playbacks[number];
            let at = playback.at();
            if at > now {
                self.due.push(Reverse((at, PLAYBACK + number as u32)));
                return Ok(());
            }
            let (bytes, members) = playback.message();
            let more = playback.advance()?;
            for index in members {
                let arrival = Arrival { at, bytes };
                match &mut self.members[index as usize] {
                    Member::Tcp(connection) => {
                        let flow = usize::from(connection.flow);
                        let about = (&self.plan.flows[flow], &mut self.rows[flow]);
                        connection.on_recorded(now, arrival, about);
                    }
                    // Loads of recorded messages have no managed connections.
                    Member::Managed(_) => {}
                    Member::Datagram(datagrams) => {
                        let row = &mut self.rows[usize::from(datagrams.flow)];
                        datagrams.send(now, arrival, row);
                    }
                    Member::Coap(sockets) => {
                        let flow = usize::from(sockets.flow);
                        let plan = &self.plan.flows[flow];
                        self.rows[flow].count_coap(|(row, counters)| {
                            sockets.push(now, arrival, row);
                            sockets.act(now, plan, (row, counters));
                        });
                        self.due.push(Reverse((sockets.due(), index)));
                    }
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// A deadline of a member with managed connections has passed, or one of its sockets is ready.
    fn act_for(&mut self, index: usize, now: Instant) {
        let Member::Managed(connections) = &mut self.members[index] else { return };
        let number = usize::from(connections.flow);
        let flow = &self.plan.flows[number];
        let mut sockets = MemberSockets {
            testbed: self.testbed,
            controls: self.controls,
            flow,
            poll: &self.poll,
            identity: (connections.flow, connections.member),
            index,
        };
        let row = &mut self.rows[number];
        let Some(mut counters) = row.connections.take() else { return };
        let about = (flow, &mut self.scratch[..]);
        connections.act(now, about, &mut sockets, (&mut *row, &mut counters));
        row.connections = Some(counters);
        self.forward_publications(index, now);
    }

    fn schedule(&mut self, index: usize) {
        let due = self.members[index].due();
        if due != Instant::NEVER {
            self.due.push(Reverse((due, index as u32)));
        }
    }

    /// Waits until `due` or until a socket is ready, and serves the sockets.
    fn wait(&mut self, clock: ApplicationClock, due: Instant) -> Result<(), EmulationError> {
        for event in self.poll.wait::<256>(clock.until(due))? {
            let number = event.data.u64();
            if number >= LISTENER {
                self.accept((number - LISTENER) as usize, clock)?;
            } else {
                self.serve((number / 2) as usize, (number % 2) as usize, event.flags, clock);
            }
        }
        Ok(())
    }

    /// Accepts the pending connections at the `to` end of a flow.
    fn accept(&mut self, flow: usize, clock: ApplicationClock) -> Result<(), EmulationError> {
        let Some(listener) = self.listeners[flow].take() else { return Ok(()) };
        loop {
            match listener.accept() {
                Ok((socket, peer)) => {
                    let port = peer.as_socket().map_or(0, |peer| peer.port());
                    let member = peer.as_socket().and_then(|peer| match peer.ip() {
                        std::net::IpAddr::V4(ip) => Address::of(&ip.octets()),
                        std::net::IpAddr::V6(ip) => Address::of(&ip.octets()),
                    });
                    let Some(Address { number, .. }) = member else { continue };
                    socket.set_nonblocking(true).map_err(EmulationError::call("accepting"))?;
                    let index = self.first[flow] + number as usize;
                    self.poll.watch(&socket, 2 * index as u64 + 1, BOTH_ON_CHANGE)?;
                    match self.members.get_mut(index) {
                        Some(Member::Tcp(connection)) => connection.accept(socket),
                        Some(Member::Managed(connections)) => {
                            connections.accept(socket, port);
                            self.act_for(index, clock.now());
                            self.schedule(index);
                        }
                        _ => {}
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => {
                        return Err(EmulationError::call("accepting a connection")(error));
                    }
                    _ => break,
                },
            }
        }
        self.listeners[flow] = Some(listener);
        Ok(())
    }

    fn serve(&mut self, index: usize, end: usize, flags: EventFlags, clock: ApplicationClock) {
        let scratch = &mut self.scratch[..];
        let mut woken = false;
        match &mut self.members[index] {
            Member::Tcp(connection) => {
                let flow = usize::from(connection.flow);
                let (plan, row) = (&self.plan.flows[flow], &mut self.rows[flow]);
                let side = if end == 0 { FlowEnd::From } else { FlowEnd::To };
                connection.record_open(clock.now(), row);
                if flags.intersects(!EventFlags::OUT) {
                    woken = connection.read(side, plan, scratch, || clock.now(), row);
                }
                if flags.contains(EventFlags::OUT) && connection.begun {
                    connection.write(side, clock.now(), row);
                }
            }
            Member::Managed(_) => {
                self.act_for(index, clock.now());
                woken = true;
            }
            Member::Datagram(datagrams) => {
                let row = &mut self.rows[usize::from(datagrams.flow)];
                datagrams.read(end, scratch, || clock.now(), row);
            }
            Member::Coap(sockets) => {
                let row = &mut self.rows[usize::from(sockets.flow)];
                let side = if end == 0 { FlowEnd::From } else { FlowEnd::To };
                row.count_coap(|about| sockets.read(side, scratch, || clock.now(), about));
                woken = true;
            }
        }
        if woken {
            self.schedule(index);
        }
    }
}
