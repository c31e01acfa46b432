//! The loop: applications on time, sockets when they are ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;

use gridhaul_core::chance::Chance;
use gridhaul_core::load::{Demand, Message, Opening, SharedLoad};
use gridhaul_data::trace::Playback;
use gridhaul_linux::{Clock, EventFlags, Poll, TcpInfo, request_realtime_priority};
use gridhaul_scenario::answer::Recording;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Flow, Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use super::application::Application;
use super::connection::Connection;
use super::datagrams::Datagrams;
use super::row::RowTraffic;
use super::samples::window;
use super::socket;
use crate::control::Controls;
use crate::fault::Fault;
use crate::handover::{Appointments, Thread};
use crate::network::{Address, Lab, Plan};
use crate::truth::Judgement;

/// All applications of a run.
#[derive(Debug)]
pub(crate) struct Traffic<'a> {
    plan: &'a Plan,
    controls: &'a Controls,
    members: Vec<Member>,
    /// The first member of each flow.
    first: Vec<usize>,
    /// The `to` ends of TCP flows that wait for connections.
    listeners: Vec<Option<Socket>>,
    rows: Vec<RowTraffic>,
    /// Recordings that are played to members.
    playbacks: Vec<Playback>,
    /// Members whose congestion control judges, and how many of its judgements were seen.
    judges: Vec<(usize, u32)>,
    /// When members are due, and recordings: these are numbered from [`PLAYBACK`] on.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    poll: Poll,
    scratch: Vec<MaybeUninit<u8>>,
}

#[derive(Debug)]
enum Member {
    Tcp(Connection),
    Datagram(Datagrams),
}

/// What a run has shown at the sockets.
#[derive(Debug)]
pub(crate) struct TrafficOutcome {
    /// One for each flow of the scenario.
    pub rows: Vec<RowTraffic>,
    /// Windows over time, and the delays of messages, if a series was asked for.
    pub recording: Recording,
}

/// When to look at windows, and whether to write it down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    pub interval: Duration,
    pub recorded: bool,
}

/// How often MEDX is asked what it has said, and what each of many connections adds to that: it keeps its newest
/// 16 judgements, and makes one in a round trip at most.
const HEAR: Duration = Duration::from_millis(5);
const HEAR_EACH: Duration = Duration::from_micros(50);

/// Numbers of listeners in the epoll begin here; below, members with their end.
const LISTENER: u64 = 1 << 40;

/// Numbers of recordings among those that are due begin here; below, members.
const PLAYBACK: u32 = 1 << 31;

/// A connection is looked at when something about it has changed: it reads and writes until the kernel
/// has no more.
const BOTH_ON_CHANGE: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::ET);

impl<'a> Traffic<'a> {
    /// Opens the sockets of a run, each inside the namespace of its node.
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &'a Plan,
        (lab, controls): (&Lab, &'a Controls),
        repeat: u32,
    ) -> Result<Self, RunError> {
        let mut traffic = Self {
            plan,
            controls,
            members: Vec::new(),
            first: Vec::new(),
            listeners: Vec::new(),
            rows: Vec::new(),
            playbacks: Vec::new(),
            judges: Vec::new(),
            due: BinaryHeap::new(),
            poll: Poll::new().map_err(Fault::from)?,
            scratch: vec![MaybeUninit::uninit(); 1 << 18],
        };
        for (number, (name, flow)) in scenario.flow.iter().enumerate() {
            traffic.first.push(traffic.members.len());
            traffic.rows.push(RowTraffic::new(scenario, flow));
            let seed = |member: u32, purpose: &str| {
                Chance::named(scenario.seed, repeat, name, u64::from(member), purpose)
            };
            traffic.open(number as u16, flow, lab, &seed)?;
            let members = traffic.first[number] as u32..traffic.members.len() as u32;
            if let Some(playback) = Playback::open(scenario, name, members)? {
                let number = PLAYBACK + traffic.playbacks.len() as u32;
                traffic.due.push(Reverse((playback.at(), number)));
                traffic.playbacks.push(playback);
            }
        }
        Ok(traffic)
    }

    fn open(
        &mut self,
        number: u16,
        flow: &Flow,
        lab: &Lab,
        seed: &impl Fn(u32, &str) -> Chance,
    ) -> Result<(), Fault> {
        let plan = &self.plan.flows[usize::from(number)];
        let [near, far] = plan.ends.map(|node| &lab.namespaces[node]);
        let tcp = plan.transport == Transport::Tcp;
        let opened: Result<Vec<Socket>, Fault> = near.enter(|| {
            (0..plan.count)
                .map(|member| socket::near(plan, number, member, self.controls))
                .collect()
        })?;
        let near = opened?;
        let mut far_ends = Vec::new();
        if tcp {
            let listener = far.enter(|| socket::listener(plan, number, self.controls))??;
            self.poll.watch(&listener, LISTENER + u64::from(number), EventFlags::IN)?;
            self.listeners.push(Some(listener));
        } else {
            self.listeners.push(None);
            let opened: Result<Vec<Socket>, Fault> = far.enter(|| {
                (0..plan.count)
                    .map(|member| socket::far_datagram(plan, number, member, self.controls))
                    .collect()
            })?;
            far_ends = opened?;
        }
        let load = SharedLoad::from(&flow.load);
        let opening = Opening::of(flow, u64::from(plan.count));
        let mut far_ends = far_ends.into_iter();
        for (near, member) in near.into_iter().zip(0..) {
            let mut chance = seed(member, "start");
            let start = opening.load_begins(&mut chance);
            let demand = Demand::of_member(&load, start, seed(member, "load"));
            let opens = opening.connection_opens(start, &demand, &mut chance);
            let index = self.members.len();
            let who = (number, member);
            self.poll.watch(&near, 2 * index as u64, BOTH_ON_CHANGE)?;
            let made = match (demand, far_ends.next()) {
                (demand, Some(far)) => {
                    self.poll.watch(&far, 2 * index as u64 + 1, BOTH_ON_CHANGE)?;
                    let echo = plan.transport == Transport::Echo;
                    // A valid scenario gives datagrams a source or a recording.
                    let source = match demand {
                        Demand::Open(source) => Some(source),
                        _ => None,
                    };
                    Member::Datagram(Datagrams::new(who, [near, far], source, (start, echo)))
                }
                (demand, None) => {
                    let application = Application::new(demand);
                    if matches!(application, Application::Greedy(_)) {
                        socket::write_one_by_one(&near)?;
                    }
                    self.rows[usize::from(number)].has_messages |= application.has_messages();
                    Member::Tcp(Connection::new(who, near, application, (start, opens)))
                }
            };
            if plan.judges() {
                self.judges.push((index, 0));
                self.rows[usize::from(number)].judgements.get_or_insert_default();
            }
            self.members.push(made);
            self.schedule(index);
        }
        Ok(())
    }

    /// Drives the applications until the end, or until `stop` says so.
    pub(crate) fn run(
        mut self,
        (clock, appointments): (Clock, &Appointments),
        (warmup, end): (Instant, Instant),
        sampling: Sampling,
        stop: impl Fn() -> bool,
    ) -> Result<TrafficOutcome, RunError> {
        request_realtime_priority();
        clock.await_start();
        let mut recording = Recording::default();
        let mut sample_at = Instant::ZERO;
        let hear_every = HEAR + HEAR_EACH.mul_f64(self.judges.len() as f64);
        let mut hear_at = if self.judges.is_empty() { Instant::NEVER } else { Instant::ZERO };
        let mut warm = false;
        loop {
            let now = clock.now();
            if !warm && now >= warmup {
                warm = true;
                self.note(0);
            }
            if now >= sample_at {
                self.sample(now, warm, sampling.recorded.then_some(&mut recording));
                sample_at = sample_at.max(now) + sampling.interval;
            }
            if now >= hear_at {
                self.hear(now);
                hear_at = now + hear_every;
            }
            if now >= end || stop() {
                break;
            }
            self.act(clock)?;
            let limit = if warm { end } else { warmup };
            let next = self.due.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
            let due = next.min(limit).min(sample_at).min(hear_at);
            self.wait(clock, appointments.meet(Thread::Traffic, due, now))?;
        }
        self.note(1);
        self.hear(end);
        for member in &self.members {
            if let Member::Tcp(connection) = member {
                self.rows[usize::from(connection.flow)].finish(connection, end);
            }
        }
        if sampling.recorded {
            for (number, row) in self.rows.iter().enumerate() {
                for &(member, ready, delay) in &row.messages {
                    recording.on_message(ready, (number as u32, member), delay);
                }
            }
        }
        Ok(TrafficOutcome { rows: self.rows, recording })
    }

    /// Lets everybody act who is due.
    fn act(&mut self, clock: Clock) -> Result<(), RunError> {
        let now = clock.now();
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
                // What was noted may be out of date.
                Member::Tcp(connection) if connection.due() <= now => {
                    let flow = usize::from(connection.flow);
                    let row = &mut self.rows[flow];
                    if connection.begun {
                        connection.on_due(now, row);
                    } else {
                        connection.begin(now, &self.plan.flows[flow], row);
                    }
                    connection.write(0, now, row);
                    connection.write(1, now, row);
                }
                Member::Datagram(datagrams) if datagrams.due() <= now => {
                    let flow = usize::from(datagrams.flow);
                    datagrams.on_due(now, &self.plan.flows[flow], &mut self.rows[flow]);
                }
                _ => continue,
            }
            self.schedule(index);
        }
        Ok(())
    }

    /// Hands over what a recording says that is ready.
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
                let message = Message { at, bytes };
                match &mut self.members[index as usize] {
                    Member::Tcp(connection) => {
                        let flow = usize::from(connection.flow);
                        let about = (&self.plan.flows[flow], &mut self.rows[flow]);
                        connection.on_recorded(now, message, about);
                    }
                    Member::Datagram(datagrams) => {
                        let row = &mut self.rows[usize::from(datagrams.flow)];
                        datagrams.send(now, message, row);
                    }
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn schedule(&mut self, index: usize) {
        let due = match &self.members[index] {
            Member::Tcp(connection) => connection.due(),
            Member::Datagram(datagrams) => datagrams.due(),
        };
        if due != Instant::NEVER {
            self.due.push(Reverse((due, index as u32)));
        }
    }

    /// Waits until somebody is due or a socket is ready, and serves the sockets.
    fn wait(&mut self, clock: Clock, due: Instant) -> Result<(), Fault> {
        for event in self.poll.wait::<256>(clock.until(due))? {
            let number = event.data.u64();
            if number >= LISTENER {
                self.accept((number - LISTENER) as usize)?;
            } else {
                self.serve((number / 2) as usize, (number % 2) as usize, event.flags, clock);
            }
        }
        Ok(())
    }

    /// Takes the connections that wait at the `to` end of a flow.
    fn accept(&mut self, flow: usize) -> Result<(), Fault> {
        let Some(listener) = self.listeners[flow].take() else { return Ok(()) };
        loop {
            match listener.accept() {
                Ok((socket, peer)) => {
                    let member = peer.as_socket().and_then(|peer| match peer.ip() {
                        std::net::IpAddr::V4(ip) => Address::of(&ip.octets()),
                        std::net::IpAddr::V6(ip) => Address::of(&ip.octets()),
                    });
                    let Some(Address { number, .. }) = member else { continue };
                    socket.set_nonblocking(true).map_err(Fault::call("accepting"))?;
                    let index = self.first[flow] + number as usize;
                    self.poll.watch(&socket, 2 * index as u64 + 1, BOTH_ON_CHANGE)?;
                    if let Some(Member::Tcp(connection)) = self.members.get_mut(index) {
                        connection.ends[1] = Some(socket);
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => {
                        return Err(Fault::call("accepting a connection")(error));
                    }
                    _ => break,
                },
            }
        }
        self.listeners[flow] = Some(listener);
        Ok(())
    }

    fn serve(&mut self, index: usize, end: usize, flags: EventFlags, clock: Clock) {
        let scratch = &mut self.scratch[..];
        let mut woken = false;
        match &mut self.members[index] {
            Member::Tcp(connection) => {
                let flow = usize::from(connection.flow);
                let (plan, row) = (&self.plan.flows[flow], &mut self.rows[flow]);
                connection.note_open(clock.now(), row);
                if flags.intersects(!EventFlags::OUT) {
                    woken = connection.read(end, plan, scratch, || clock.now(), row);
                }
                if flags.contains(EventFlags::OUT) && connection.begun {
                    connection.write(end, clock.now(), row);
                }
            }
            Member::Datagram(datagrams) => {
                let row = &mut self.rows[usize::from(datagrams.flow)];
                datagrams.read(end, scratch, || clock.now(), row);
            }
        }
        if woken {
            self.schedule(index);
        }
    }

    /// Notes what has been received and counted: at the end of the warm-up (0), at the end (1).
    fn note(&mut self, time: usize) {
        for member in &self.members {
            let (flow, received) = match member {
                Member::Tcp(connection) => (connection.flow, connection.received[1]),
                Member::Datagram(datagrams) => (datagrams.flow, datagrams.received),
            };
            let row = &mut self.rows[usize::from(flow)];
            if time == 0 { &mut row.before } else { &mut row.after }.push(received);
            if let Some(info) = member.info() {
                row.counts[time].add(&info, member.syn_retransmissions(&info));
            }
        }
    }

    /// Takes down what MEDX has said of losses since it was asked last.
    fn hear(&mut self, at: Instant) {
        for (index, seen) in &mut self.judges {
            let Member::Tcp(connection) = &self.members[*index] else { continue };
            let Connection { flow, member, ends: [Some(near), _], .. } = connection else {
                continue;
            };
            let Some(counters) = self.controls.judgements(near) else { continue };
            let row = &mut self.rows[usize::from(*flow)];
            let new = counters.judged_since(*seen);
            let new = new.map(|judged| Judgement { at, member: *member, judged });
            row.judgements.get_or_insert_default().extend(new);
            *seen = counters.judged;
        }
    }

    /// Looks at windows and round trips.
    fn sample(&mut self, at: Instant, warm: bool, mut into: Option<&mut Recording>) {
        for (index, member) in self.members.iter().enumerate() {
            let Some(info) = member.info() else { continue };
            let row = member.row();
            if warm {
                self.rows[row].averages.add(&info);
            }
            if let Some(into) = into.as_deref_mut().filter(|_| self.first[row] == index) {
                into.on_window(at, row as u32, window(&info));
            }
        }
    }
}

impl Member {
    /// How often SYN was retransmitted.
    fn syn_retransmissions(&self, info: &TcpInfo) -> u32 {
        match self {
            Self::Tcp(connection) => connection.syn_retransmissions(info),
            Self::Datagram(_) => 0,
        }
    }

    fn row(&self) -> usize {
        match self {
            Self::Tcp(connection) => usize::from(connection.flow),
            Self::Datagram(datagrams) => usize::from(datagrams.flow),
        }
    }

    /// What the kernel says of the sender, once it has begun.
    fn info(&self) -> Option<TcpInfo> {
        match self {
            Self::Tcp(connection) if connection.begun => {
                connection.ends[0].as_ref().and_then(|socket| TcpInfo::of(socket).ok())
            }
            _ => None,
        }
    }
}
