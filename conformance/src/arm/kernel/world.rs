//! A run in real time: what a kernel sends is read, what is sent to it is written.
//!
//! Everything is stamped with the time at which it was due. A kernel answers what is written to its
//! device before the call returns, so that its answers have the time of what they answer, and only what
//! its timers send is stamped by the clock.

use std::collections::VecDeque;

use gridhaul_core::tcp::{Flags, Segment, StackParams};
use gridhaul_linux::Clock;
use gridhaul_linux::{Established, EventFlags, Poll};
use gridhaul_scenario::units::{Duration, Instant};

use super::bytes::{BEFORE, PORTS, Wire};
use super::host::Host;
use crate::arm::ends::Scripted;
use crate::arm::route::{Route, routes};
use crate::arm::witness::{ENDS, Witness};
use crate::case::{Action, Case, Crafted, End, Open, Peer, Step};
use crate::observe::{Observation, Sample, Value};

/// A packet under way: its number among all.
type Frame = usize;

pub(super) struct World {
    now: Instant,
    clock: Clock,
    poll: Poll,
    /// Initial sequence numbers, as far as they are known: a kernel chooses its own.
    isn: [Option<u32>; 2],
    stacks: [StackParams; 2],
    /// By how much the windows of each end are scaled.
    scales: [u8; 2],
    hosts: Vec<Host>,
    /// From the client, from the server.
    routes: [Route<Frame>; 2],
    frames: Vec<Vec<u8>>,
    /// For the packet that is being read.
    buffer: Vec<u8>,
    steps: VecDeque<Step>,
    scripted: Scripted,
    witness: Witness,
}

/// Everything is made by then.
const HEAD_START: Duration = Duration::from_millis(2);

impl World {
    pub(super) fn new(case: &Case) -> Result<Self, String> {
        let stacks = [&case.stack, case.server_stack()].map(StackParams::resolve);
        let ends = if case.peer == Peer::Script { 1 } else { 2 };
        let profiles = [case.stack.profile, case.server_stack().profile];
        let poll = Poll::new().map_err(|fault| fault.to_string())?;
        let mut hosts = Vec::new();
        for (index, stack) in stacks.iter().enumerate().take(ends) {
            let host = Host::new(index, stack.clone(), profiles[index])?;
            poll.watch(&host.tun, index as u64, EventFlags::IN)
                .map_err(|fault| fault.to_string())?;
            hosts.push(host);
        }
        let steps = case.steps()?;
        let mut scales = [0; 2];
        if case.open == Open::Established {
            let told = (case.peer == Peer::Script).then_some(&steps[..]);
            scales = [scale(stacks[0].receive_window, None), scale(stacks[1].receive_window, told)];
        }
        Ok(Self {
            now: Instant::ZERO,
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            isn: [None, (case.peer == Peer::Script).then_some(case.isn[1])],
            stacks,
            scales,
            hosts,
            routes: routes(case, 1)?,
            frames: Vec::new(),
            buffer: vec![0; 1 << 16],
            steps: steps.into(),
            scripted: Scripted::new(case),
            witness: Witness::new(case)?,
        })
    }

    pub(super) fn run(&mut self, case: &Case) -> Result<(), String> {
        self.witness.seen.mss = self.stacks[0].mss;
        self.witness.seen.scripted = self.hosts.len() == 1;
        if case.open == Open::Established {
            self.isn = case.isn.map(Some);
            for index in 0..self.hosts.len() {
                self.remember(index)?;
                let state = self.established(index, case.isn);
                self.begin(index, &state)?;
            }
        }
        self.clock = Clock::starts_in(HEAD_START);
        self.clock.await_start();
        for (index, host) in self.hosts.iter_mut().enumerate() {
            match (case.open, ENDS[index]) {
                (Open::Established, _) => {}
                (Open::Both, _) | (Open::Client, End::Client) | (Open::Listen, End::Server) => {
                    host.connect()?;
                }
                (Open::Client, End::Server) | (Open::Listen, End::Client) => host.listen()?,
            }
        }
        self.look()?;
        let until = Instant::ZERO + case.until;
        loop {
            let due = self.next_event().min(until);
            if self.await_until(due)? {
                continue;
            }
            self.now = due;
            if due == until {
                return Ok(());
            }
            self.happen()?;
        }
    }

    fn next_event(&self) -> Instant {
        let step = self.steps.front().map_or(Instant::NEVER, |step| step.at);
        self.routes.iter().map(Route::next_deadline).fold(step, Instant::min)
    }

    /// Waits until then. Returns at once and says so when a kernel has sent something.
    fn await_until(&mut self, due: Instant) -> Result<bool, String> {
        loop {
            let real = self.clock.now();
            self.now = self.now.max(real.min(due));
            if self.look()? {
                return Ok(true);
            }
            if real >= due && self.clock.until(due).is_zero() {
                self.witness.seen.late = self.witness.seen.late.max(real.since(due));
                return Ok(false);
            }
            let until = self.clock.until(due);
            self.poll.wait::<2>(until).map_err(|fault| fault.to_string())?.for_each(drop);
        }
    }

    /// Everything that is due now: the input first, then arrivals.
    fn happen(&mut self) -> Result<(), String> {
        while self.steps.front().is_some_and(|step| step.at <= self.now) {
            let Some(step) = self.steps.pop_front() else { break };
            if let Action::Receive(made) = &step.action {
                self.inject(made)?;
            } else if let Some(host) = self.hosts.get_mut(step.end as usize) {
                host.act(&step.action);
            }
            self.look()?;
        }
        for from in 0..self.hosts.len() {
            for frame in self.routes[from].arrived(self.now) {
                let bytes = std::mem::take(&mut self.frames[frame]);
                let arrived = Wire::read(&bytes).ok_or("a packet that is none of TCP")?;
                let (segment, isn) = (self.scaled(from, arrived), self.known_isn());
                self.witness.arrived(self.now, 1 - from, &segment, isn);
                self.deliver(1 - from, &bytes)?;
                // It may arrive twice.
                self.frames[frame] = bytes;
                self.look()?;
            }
        }
        Ok(())
    }

    /// A segment of the script arrives at the client.
    fn inject(&mut self, made: &Crafted) -> Result<(), String> {
        let isn = self.known_isn();
        let segment = self.scripted.segment(made, isn);
        self.witness.arrived(self.now, 0, &segment, isn);
        let syn = segment.flags.has(Flags::SYN);
        let clock_option = if segment.timestamps.is_some() { 12 } else { 0 };
        let window = (segment.window >> self.scales[1]).min(u32::from(u16::MAX));
        let wire = Wire {
            segment: Segment { window, ..segment },
            mss: syn.then_some((self.stacks[0].mss + clock_option) as u16),
            scale: None,
        };
        self.deliver(0, &wire.write(1, PORTS)?)
    }

    fn deliver(&mut self, index: usize, bytes: &[u8]) -> Result<(), String> {
        let host = &mut self.hosts[index];
        host.tun.write(bytes).map_err(|error| format!("writing to the device: {error}"))?;
        host.serve();
        Ok(())
    }

    /// Reads what the kernels have sent, and notes their state. Says whether there was anything.
    fn look(&mut self) -> Result<bool, String> {
        let mut any = false;
        let mut buffer = std::mem::take(&mut self.buffer);
        for index in 0..self.hosts.len() {
            while let Some(length) = self.hosts[index]
                .tun
                .read(&mut buffer)
                .map_err(|error| format!("reading from the device: {error}"))?
            {
                if let Some(wire) = Wire::read(&buffer[..length]) {
                    any = true;
                    self.sent(index, wire, &buffer[..length]);
                }
            }
            self.note(index);
        }
        self.buffer = buffer;
        Ok(any)
    }

    fn sent(&mut self, index: usize, wire: Wire, bytes: &[u8]) {
        if wire.segment.flags.has(Flags::SYN) {
            self.isn[index] = Some(wire.segment.seq);
            // A script offers no scale, so that none is agreed on.
            self.scales[index] = wire.scale.filter(|_| self.hosts.len() == 2).unwrap_or(0);
        }
        let segment = self.scaled(index, wire);
        let fate = self.witness.sent(self.now, index, &segment, self.known_isn());
        if self.hosts.len() == 2 {
            self.frames.push(bytes.to_vec());
            self.routes[index].send(self.now, self.frames.len() - 1, bytes.len() as u32, fate);
        }
    }

    /// A segment with its window in bytes.
    fn scaled(&self, from: usize, wire: Wire) -> Segment {
        let scale = if wire.segment.flags.has(Flags::SYN) { 0 } else { self.scales[from] };
        Segment { window: wire.segment.window << scale, ..wire.segment }
    }

    fn known_isn(&self) -> [u32; 2] {
        self.isn.map(Option::unwrap_or_default)
    }

    fn note(&mut self, index: usize) {
        let name = self.state(index);
        self.witness.note_state(self.now, index, name);
        if index == 0
            && let Some(info) = self.hosts[0].info()
        {
            let mss = self.stacks[0].mss;
            self.witness.seen.samples.push(Sample {
                at: self.now,
                cwnd: info.cwnd.saturating_mul(mss),
                ssthresh: info.ssthresh.saturating_mul(mss),
                flight: u64::from(info.unacked) * u64::from(mss),
            });
        }
    }

    /// The state of an end. A kernel shows it where there is a socket; where there is none, packets do.
    fn state(&self, index: usize) -> &'static str {
        let state = self.hosts[index].state();
        let mut packets =
            self.witness.seen.packets.iter().filter(|packet| packet.seen_at == ENDS[index]);
        let known = self.witness.state(index);
        match (state, packets.next_back()) {
            ("Listen", Some(last)) if last.from == ENDS[index] && last.syn => "SynReceived",
            ("Listen", Some(last)) if known == Some("SynReceived") && !last.rst => "SynReceived",
            ("Closed", _) if known == Some("TimeWait") => "TimeWait",
            ("Closed", Some(last))
                if known
                    .is_some_and(|known| known.starts_with("FinWait") || known == "Closing")
                    && !last.rst =>
            {
                "TimeWait"
            }
            _ => state,
        }
    }

    /// The state in which an end begins.
    fn established(&self, index: usize, isn: [u32; 2]) -> Established {
        let other = 1 - index;
        let clock_option = if self.stacks[index].has_clock_option() { 12 } else { 0 };
        let window = |end: usize| {
            let (scale, buffer) = (self.scales[end], self.stacks[end].receive_window);
            (buffer >> scale).min(u32::from(u16::MAX)) << scale
        };
        let agreed = |of: fn(&StackParams) -> bool| self.stacks.iter().all(of);
        Established {
            next: [isn[index], isn[other]].map(|isn| isn.wrapping_add(1)),
            mss: self.stacks[index].mss + clock_option,
            windows: [window(other), window(index)],
            scales: [self.scales[other], self.scales[index]],
            sack: agreed(|stack| stack.sack),
            timestamps: agreed(|stack| stack.timestamps),
        }
    }

    /// Lets a connection be there. A first acknowledgement opens the window by what was missing: it makes
    /// the kernel forget that a window of zero was what it expected (`__tcp_fast_path_on`).
    fn begin(&mut self, index: usize, state: &Established) -> Result<(), String> {
        let ([own, other], [may_fill, offered]) = (state.next, state.windows);
        let unit = 1 << state.scales[0];
        self.hosts[index]
            .establish(&Established { windows: [may_fill - unit, offered], ..*state }, PORTS)?;
        let window = may_fill >> state.scales[0];
        let segment =
            Segment { seq: other, ack: own, window, flags: Flags::ACK, ..Segment::default() };
        self.deliver(index, &Wire { segment, ..Wire::default() }.write(1 - index, PORTS)?)
    }

    /// Lets a kernel remember of a connection before what the route says of the path: a slow-start
    /// threshold and a first round trip (`tcp_init_metrics`). They count only for paths that it knows.
    fn remember(&mut self, index: usize) -> Result<(), String> {
        let isn = [0, 0];
        let state = self.established(index, isn);
        self.hosts[index].establish(&Established { timestamps: false, ..state }, BEFORE)?;
        self.hosts[index].act(&Action::Write(1));
        let segment = |seq, ack, flags| {
            let window = u32::from(u16::MAX);
            let segment = Segment { seq, ack, window, flags, ..Segment::default() };
            Wire { segment, ..Wire::default() }.write(1 - index, BEFORE)
        };
        self.deliver(index, &segment(1, 2, Flags::FIN.with(Flags::ACK))?)?;
        self.hosts[index].act(&Action::Close);
        self.deliver(index, &segment(2, 3, Flags::ACK)?)?;
        let state = self.hosts[index].state();
        if state != "Closed" {
            return Err(format!("the connection before the first one is {state}, not closed"));
        }
        self.hosts[index].forget();
        while let Ok(Some(_)) = self.hosts[index].tun.read(&mut self.buffer) {}
        Ok(())
    }

    pub(super) fn finish(mut self, case: &Case) -> Observation {
        let mut totals = std::mem::take(&mut self.witness.seen.totals);
        let mut put = |name: &str, number: f64| {
            totals.insert(name.to_owned(), Value::Number(number));
        };
        let received: Vec<u64> = self.hosts.iter().map(|host| host.received).collect();
        for (host, (own, other)) in
            self.hosts.iter_mut().zip([("client", "server"), ("server", "client")])
        {
            put(&format!("bytes_from_{other}"), host.received as f64);
            put(&format!("{own}_fast_retransmits"), host.recoveries() as f64);
            let Some(info) = host.info() else { continue };
            put(&format!("{own}_segments"), f64::from(info.data_segments_sent));
            put(&format!("{own}_retransmissions"), f64::from(info.retransmissions));
            put(&format!("{own}_timeouts"), f64::from(info.timeouts));
            put(&format!("{own}_rto_ms"), info.rto.as_secs_f64() * 1e3);
            put(&format!("{own}_srtt_ms"), info.srtt.as_secs_f64() * 1e3);
        }
        put("dropped_by_queue", (self.routes[0].refused() + self.routes[1].refused()) as f64);
        if let Some(&bytes) = received.get(1) {
            put("goodput_kbit_per_s", bytes as f64 * 8.0 / 1e3 / case.until.as_secs_f64());
        }
        for (host, end) in self.hosts.iter_mut().zip(["client", "server"]) {
            totals.insert(format!("{end}_state"), Value::Word(host.listed().to_owned()));
        }
        self.witness.seen.totals = totals;
        self.witness.seen
    }
}

/// The smallest shift by which a window fits into its field, and all windows of a script can be said
/// as they are.
fn scale(window: u32, script: Option<&[Step]>) -> u8 {
    let windows = script.into_iter().flatten().filter_map(|step| match &step.action {
        Action::Receive(made) => made.window,
        _ => None,
    });
    let windows: Vec<u32> = windows.filter(|&window| window > 0).collect();
    let most = windows.iter().copied().fold(window, u32::max);
    let needed = (0..14).find(|&shift| most >> shift <= u32::from(u16::MAX)).unwrap_or(14);
    let exact = windows.iter().map(|window| window.trailing_zeros()).min().unwrap_or(14);
    needed.min(exact) as u8
}
