//! The loop: applications on time, sockets when they are ready.

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

use self::member::Member;
use self::observe::judgement_interval;
use super::row::RowTraffic;
use crate::control::Controls;
use crate::error::EmulationError;
use crate::handover::{Appointments, Thread};
use crate::network::{Address, Plan};

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

/// Numbers of listeners in the epoll begin here; below, members with their end.
const LISTENER: u64 = 1 << 40;

/// Numbers of recordings among those that are due begin here; below, members.
const PLAYBACK: u32 = 1 << 31;

/// A connection is looked at when something about it has changed: it reads and writes until the kernel
/// has no more.
const BOTH_ON_CHANGE: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::ET);

impl Traffic<'_> {
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
        let mut judgements_at = if self.judges.is_empty() { Instant::NEVER } else { Instant::ZERO };
        let mut warm = false;
        loop {
            let now = clock.now();
            if !warm && now >= warmup {
                warm = true;
                self.read_counters(0);
            }
            if now >= sample_at {
                self.sample(now, warm, sampling.recorded.then_some(&mut recording));
                sample_at = sample_at.max(now) + sampling.interval;
            }
            if now >= judgements_at {
                self.read_judgements(now);
                judgements_at = now + judgement_interval(self.judges.len());
            }
            if now >= end || stop() {
                break;
            }
            self.act(clock)?;
            let limit = if warm { end } else { warmup };
            let next = self.due.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
            let due = next.min(limit).min(sample_at).min(judgements_at);
            self.wait(clock, appointments.meet(Thread::Traffic, due, now))?;
        }
        self.read_counters(1);
        self.read_judgements(end);
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
                Member::Datagram(datagrams) if datagrams.due() <= now => {
                    let flow = usize::from(datagrams.flow);
                    datagrams.on_due(now, &self.plan.flows[flow], &mut self.rows[flow]);
                }
                // A burst has begun or ended meanwhile: the deadline that was noted is out of date.
                _ => {}
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
                let arrival = Arrival { at, bytes };
                match &mut self.members[index as usize] {
                    Member::Tcp(connection) => {
                        let flow = usize::from(connection.flow);
                        let about = (&self.plan.flows[flow], &mut self.rows[flow]);
                        connection.on_recorded(now, arrival, about);
                    }
                    Member::Datagram(datagrams) => {
                        let row = &mut self.rows[usize::from(datagrams.flow)];
                        datagrams.send(now, arrival, row);
                    }
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn schedule(&mut self, index: usize) {
        let due = self.members[index].due();
        if due != Instant::NEVER {
            self.due.push(Reverse((due, index as u32)));
        }
    }

    /// Waits until somebody is due or a socket is ready, and serves the sockets.
    fn wait(&mut self, clock: Clock, due: Instant) -> Result<(), EmulationError> {
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
    fn accept(&mut self, flow: usize) -> Result<(), EmulationError> {
        let Some(listener) = self.listeners[flow].take() else { return Ok(()) };
        loop {
            match listener.accept() {
                Ok((socket, peer)) => {
                    let member = peer.as_socket().and_then(|peer| match peer.ip() {
                        std::net::IpAddr::V4(ip) => Address::of(&ip.octets()),
                        std::net::IpAddr::V6(ip) => Address::of(&ip.octets()),
                    });
                    let Some(Address { number, .. }) = member else { continue };
                    socket.set_nonblocking(true).map_err(EmulationError::call("accepting"))?;
                    let index = self.first[flow] + number as usize;
                    self.poll.watch(&socket, 2 * index as u64 + 1, BOTH_ON_CHANGE)?;
                    if let Some(Member::Tcp(connection)) = self.members.get_mut(index) {
                        connection.accept(socket);
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

    fn serve(&mut self, index: usize, end: usize, flags: EventFlags, clock: Clock) {
        let scratch = &mut self.scratch[..];
        let mut woken = false;
        match &mut self.members[index] {
            Member::Tcp(connection) => {
                let flow = usize::from(connection.flow);
                let (plan, row) = (&self.plan.flows[flow], &mut self.rows[flow]);
                let side = if end == 0 { FlowEnd::From } else { FlowEnd::To };
                connection.note_open(clock.now(), row);
                if flags.intersects(!EventFlags::OUT) {
                    woken = connection.read(side, plan, scratch, || clock.now(), row);
                }
                if flags.contains(EventFlags::OUT) && connection.begun {
                    connection.write(side, clock.now(), row);
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
}
