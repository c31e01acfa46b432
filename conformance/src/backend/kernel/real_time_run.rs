//! A run in real time: reads the packets that a kernel sends, and delivers packets to it.
//!
//! Each event has the time at which it was due. A kernel replies to a packet before the write to
//! its device returns; such a reply has the time of that packet. Only packets that a timer of the
//! kernel sends have the time of the clock.

use std::collections::VecDeque;

use gridhaul_core::tcp::{Flags, Segment, StackParams};
use gridhaul_linux::Clock;
use gridhaul_linux::{Established, EventFlags, Poll};
use gridhaul_scenario::units::{Duration, Instant};

use super::host::Host;
use super::packets::{PORTS, PRIMING_PORTS, TcpPacket};
use crate::backend::endpoints::ScriptedPeer;
use crate::backend::path::{PacketPath, packet_paths};
use crate::backend::recorder::{ENDPOINTS, Recorder};
use crate::case::{Action, Case, Endpoint, InputEvent, OpenMode, Peer, ScriptedSegment};
use crate::observation::{Observation, Sample, Value};

/// A packet in transit: its index in [`RealTimeRun::packets`].
type PacketIndex = usize;

pub(super) struct RealTimeRun {
    now: Instant,
    clock: Clock,
    poll: Poll,
    /// Initial sequence numbers, as far as they are known: a kernel chooses its own.
    isn: [Option<u32>; 2],
    stacks: [StackParams; 2],
    /// Window scale of each host.
    window_shifts: [u8; 2],
    hosts: Vec<Host>,
    /// Paths from the client and from the server.
    paths: [PacketPath<PacketIndex>; 2],
    packets: Vec<Vec<u8>>,
    /// Buffer of the packet that is being read.
    buffer: Vec<u8>,
    steps: VecDeque<InputEvent>,
    scripted: ScriptedPeer,
    recorder: Recorder,
}

/// The run starts this long after its clock is created.
const START_DELAY: Duration = Duration::from_millis(2);

impl RealTimeRun {
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
        let mut window_shifts = [0; 2];
        if case.open == OpenMode::Established {
            let script = (case.peer == Peer::Script).then_some(&steps[..]);
            window_shifts =
                [scale(stacks[0].receive_window, None), scale(stacks[1].receive_window, script)];
        }
        Ok(Self {
            now: Instant::ZERO,
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            isn: [None, (case.peer == Peer::Script).then_some(case.isn[1])],
            stacks,
            window_shifts,
            hosts,
            paths: packet_paths(case, 1)?,
            packets: Vec::new(),
            buffer: vec![0; 1 << 16],
            steps: steps.into(),
            scripted: ScriptedPeer::new(case),
            recorder: Recorder::new(case)?,
        })
    }

    pub(super) fn run(&mut self, case: &Case) -> Result<(), String> {
        self.recorder.observation.mss = self.stacks[0].mss;
        self.recorder.observation.scripted = self.hosts.len() == 1;
        if case.open == OpenMode::Established {
            self.isn = case.isn.map(Some);
            for index in 0..self.hosts.len() {
                self.prime_path_metrics(index)?;
                let state = self.established_state(index, case.isn);
                self.restore_connection(index, &state)?;
            }
        }
        self.clock = Clock::starts_in(START_DELAY);
        self.clock.await_start();
        for (index, host) in self.hosts.iter_mut().enumerate() {
            match (case.open, ENDPOINTS[index]) {
                (OpenMode::Established, _) => {}
                (OpenMode::Both, _)
                | (OpenMode::Client, Endpoint::Client)
                | (OpenMode::Listen, Endpoint::Server) => {
                    host.connect()?;
                }
                (OpenMode::Client, Endpoint::Server) | (OpenMode::Listen, Endpoint::Client) => {
                    host.listen()?;
                }
            }
        }
        self.read_devices()?;
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
            self.handle_due_events()?;
        }
    }

    fn next_event(&self) -> Instant {
        let step = self.steps.front().map_or(Instant::NEVER, |step| step.at);
        self.paths.iter().map(PacketPath::next_deadline).fold(step, Instant::min)
    }

    /// Waits until `due`. Returns `true` early if a kernel has sent a packet.
    fn await_until(&mut self, due: Instant) -> Result<bool, String> {
        loop {
            let real = self.clock.now();
            self.now = self.now.max(real.min(due));
            if self.read_devices()? {
                return Ok(true);
            }
            if real >= due && self.clock.until(due).is_zero() {
                self.recorder.observation.late =
                    self.recorder.observation.late.max(real.since(due));
                return Ok(false);
            }
            let until = self.clock.until(due);
            self.poll.wait::<2>(until).map_err(|fault| fault.to_string())?.for_each(drop);
        }
    }

    /// Handles all events that are due now: first the input, then arrivals.
    fn handle_due_events(&mut self) -> Result<(), String> {
        while self.steps.front().is_some_and(|step| step.at <= self.now) {
            let Some(step) = self.steps.pop_front() else { break };
            if let Action::Receive(made) = &step.action {
                self.deliver_scripted(made)?;
            } else if let Some(host) = self.hosts.get_mut(step.end as usize) {
                host.apply(&step.action);
            }
            self.read_devices()?;
        }
        for from in 0..self.hosts.len() {
            for packet in self.paths[from].arrived(self.now) {
                let bytes = std::mem::take(&mut self.packets[packet]);
                let arrived = TcpPacket::read(&bytes).ok_or("a packet that is not TCP")?;
                let (segment, isn) = (self.scaled(from, arrived), self.isn_or_zero());
                self.recorder.arrived(self.now, 1 - from, &segment, isn);
                self.deliver(1 - from, &bytes)?;
                // The packet is stored again because it may arrive twice.
                self.packets[packet] = bytes;
                self.read_devices()?;
            }
        }
        Ok(())
    }

    /// Delivers a segment of the script to the client.
    fn deliver_scripted(&mut self, made: &ScriptedSegment) -> Result<(), String> {
        let isn = self.isn_or_zero();
        let segment = self.scripted.segment(made, isn);
        self.recorder.arrived(self.now, 0, &segment, isn);
        let syn = segment.flags.has(Flags::SYN);
        let clock_option = if segment.timestamps.is_some() { 12 } else { 0 };
        let window = (segment.window >> self.window_shifts[1]).min(u32::from(u16::MAX));
        let tcp_packet = TcpPacket {
            segment: Segment { window, ..segment },
            mss: syn.then_some((self.stacks[0].mss + clock_option) as u16),
            scale: None,
        };
        self.deliver(0, &tcp_packet.write(1, PORTS)?)
    }

    fn deliver(&mut self, index: usize, bytes: &[u8]) -> Result<(), String> {
        let host = &mut self.hosts[index];
        host.tun.write(bytes).map_err(|error| format!("writing to the device: {error}"))?;
        host.run_application();
        Ok(())
    }

    /// Reads the packets that the kernels have sent, and records their state. Returns whether there
    /// were any.
    fn read_devices(&mut self) -> Result<bool, String> {
        let mut any = false;
        let mut buffer = std::mem::take(&mut self.buffer);
        for index in 0..self.hosts.len() {
            while let Some(length) = self.hosts[index]
                .tun
                .read(&mut buffer)
                .map_err(|error| format!("reading from the device: {error}"))?
            {
                if let Some(tcp_packet) = TcpPacket::read(&buffer[..length]) {
                    any = true;
                    self.sent(index, tcp_packet, &buffer[..length]);
                }
            }
            self.record_state(index);
        }
        self.buffer = buffer;
        Ok(any)
    }

    fn sent(&mut self, index: usize, tcp_packet: TcpPacket, bytes: &[u8]) {
        if tcp_packet.segment.flags.has(Flags::SYN) {
            self.isn[index] = Some(tcp_packet.segment.seq);
            // A script sends no window scale option, so no scaling is agreed on.
            self.window_shifts[index] =
                tcp_packet.scale.filter(|_| self.hosts.len() == 2).unwrap_or(0);
        }
        let segment = self.scaled(index, tcp_packet);
        let impairment = self.recorder.sent(self.now, index, &segment, self.isn_or_zero());
        if self.hosts.len() == 2 {
            self.packets.push(bytes.to_vec());
            self.paths[index].send(
                self.now,
                self.packets.len() - 1,
                bytes.len() as u32,
                impairment,
            );
        }
    }

    /// A segment, with its window in bytes.
    fn scaled(&self, from: usize, tcp_packet: TcpPacket) -> Segment {
        let scale =
            if tcp_packet.segment.flags.has(Flags::SYN) { 0 } else { self.window_shifts[from] };
        Segment { window: tcp_packet.segment.window << scale, ..tcp_packet.segment }
    }

    fn isn_or_zero(&self) -> [u32; 2] {
        self.isn.map(Option::unwrap_or_default)
    }

    fn record_state(&mut self, index: usize) {
        let name = self.state(index);
        self.recorder.record_state(self.now, index, name);
        if index == 0
            && let Some(info) = self.hosts[0].info()
        {
            let mss = self.stacks[0].mss;
            self.recorder.observation.samples.push(Sample {
                at: self.now,
                cwnd: info.cwnd.saturating_mul(mss),
                ssthresh: info.ssthresh.saturating_mul(mss),
                flight: u64::from(info.unacked) * u64::from(mss),
            });
        }
    }

    /// The state of a host: from its socket; without a socket, from its packets.
    fn state(&self, index: usize) -> &'static str {
        let state = self.hosts[index].state();
        let mut packets = self
            .recorder
            .observation
            .packets
            .iter()
            .filter(|packet| packet.captured_at == ENDPOINTS[index]);
        let known = self.recorder.state(index);
        match (state, packets.next_back()) {
            ("Listen", Some(last)) if last.from == ENDPOINTS[index] && last.syn => "SynReceived",
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

    /// The state in which a host starts.
    fn established_state(&self, index: usize, isn: [u32; 2]) -> Established {
        let other = 1 - index;
        let clock_option = if self.stacks[index].has_clock_option() { 12 } else { 0 };
        let window = |end: usize| {
            let (scale, buffer) = (self.window_shifts[end], self.stacks[end].receive_window);
            (buffer >> scale).min(u32::from(u16::MAX)) << scale
        };
        let agreed = |of: fn(&StackParams) -> bool| self.stacks.iter().all(of);
        Established {
            next: [isn[index], isn[other]].map(|isn| isn.wrapping_add(1)),
            mss: self.stacks[index].mss + clock_option,
            windows: [window(other), window(index)],
            scales: [self.window_shifts[other], self.window_shifts[index]],
            sack: agreed(|stack| stack.sack),
            timestamps: agreed(|stack| stack.timestamps),
        }
    }

    /// Restores an established connection with a slightly smaller window. The first acknowledgement
    /// then opens the window: it clears the kernel's prediction of a zero window
    /// (`__tcp_fast_path_on`).
    fn restore_connection(&mut self, index: usize, state: &Established) -> Result<(), String> {
        let ([own, other], [send_window, offered]) = (state.next, state.windows);
        let window_step = 1 << state.scales[0];
        self.hosts[index].establish(
            &Established { windows: [send_window - window_step, offered], ..*state },
            PORTS,
        )?;
        let window = send_window >> state.scales[0];
        let segment =
            Segment { seq: other, ack: own, window, flags: Flags::ACK, ..Segment::default() };
        self.deliver(index, &TcpPacket { segment, ..TcpPacket::default() }.write(1 - index, PORTS)?)
    }

    /// Lets a kernel cache metrics of the path with a short connection: it uses the slow-start
    /// threshold and the RTT of the route only for paths with cached metrics (`tcp_init_metrics`).
    fn prime_path_metrics(&mut self, index: usize) -> Result<(), String> {
        let isn = [0, 0];
        let state = self.established_state(index, isn);
        self.hosts[index].establish(&Established { timestamps: false, ..state }, PRIMING_PORTS)?;
        self.hosts[index].apply(&Action::Write(1));
        let segment = |seq, ack, flags| {
            let window = u32::from(u16::MAX);
            let segment = Segment { seq, ack, window, flags, ..Segment::default() };
            TcpPacket { segment, ..TcpPacket::default() }.write(1 - index, PRIMING_PORTS)
        };
        self.deliver(index, &segment(1, 2, Flags::FIN.with(Flags::ACK))?)?;
        self.hosts[index].apply(&Action::Close);
        self.deliver(index, &segment(2, 3, Flags::ACK)?)?;
        let state = self.hosts[index].state();
        if state != "Closed" {
            return Err(format!(
                "the connection that primes the path metrics is in state {state}; expected Closed"
            ));
        }
        self.hosts[index].reset();
        while let Ok(Some(_)) = self.hosts[index].tun.read(&mut self.buffer) {}
        Ok(())
    }

    pub(super) fn finish(mut self, case: &Case) -> Observation {
        let mut totals = std::mem::take(&mut self.recorder.observation.totals);
        let mut put = |name: &str, number: f64| {
            totals.insert(name.to_owned(), Value::Number(number));
        };
        let received: Vec<u64> = self.hosts.iter().map(|host| host.received).collect();
        for (host, (own, other)) in
            self.hosts.iter_mut().zip([("client", "server"), ("server", "client")])
        {
            put(&format!("bytes_from_{other}"), host.received as f64);
            put(&format!("{own}_fast_retransmits"), host.fast_recoveries() as f64);
            let Some(info) = host.info() else { continue };
            put(&format!("{own}_segments"), f64::from(info.data_segments_sent));
            put(&format!("{own}_retransmissions"), f64::from(info.retransmissions));
            put(&format!("{own}_timeouts"), f64::from(info.timeouts));
            put(&format!("{own}_rto_ms"), info.rto.as_secs_f64() * 1e3);
            put(&format!("{own}_srtt_ms"), info.srtt.as_secs_f64() * 1e3);
        }
        put("dropped_by_queue", (self.paths[0].queue_drops() + self.paths[1].queue_drops()) as f64);
        if let Some(&bytes) = received.get(1) {
            put("goodput_kbit_per_s", bytes as f64 * 8.0 / 1e3 / case.until.as_secs_f64());
        }
        for (host, end) in self.hosts.iter_mut().zip(["client", "server"]) {
            totals.insert(format!("{end}_state"), Value::Word(host.listed().to_owned()));
        }
        self.recorder.observation.totals = totals;
        self.recorder.observation
    }
}

/// The smallest window scale with which the window fits into its field, and all windows of a script
/// are representable exactly.
fn scale(window: u32, script: Option<&[InputEvent]>) -> u8 {
    let windows = script.into_iter().flatten().filter_map(|step| match &step.action {
        Action::Receive(made) => made.window,
        _ => None,
    });
    let windows: Vec<u32> = windows.filter(|&window| window > 0).collect();
    let largest = windows.iter().copied().fold(window, u32::max);
    let needed = (0..14).find(|&shift| largest >> shift <= u32::from(u16::MAX)).unwrap_or(14);
    let exact = windows.iter().map(|window| window.trailing_zeros()).min().unwrap_or(14);
    needed.min(exact) as u8
}
