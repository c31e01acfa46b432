//! The `sim` backend: the TCP state machines of `gridhaul-core` on a virtual clock.

use gridhaul_core::tcp::{Connection, Segment};
use gridhaul_scenario::units::{Duration, Instant};

use super::CaseBackend;
use super::endpoints::{ScriptedPeer, connections};
use super::path::{PacketPath, packet_paths};
use super::recorder::Recorder;
use crate::case::{Action, Case, InputEvent};
use crate::observation::{Observation, Sample, Value};

/// Runs the TCP state machines of `gridhaul-core`.
pub struct SimBackend;

impl CaseBackend for SimBackend {
    fn name(&self) -> &'static str {
        "sim"
    }
    fn run(&self, case: &Case) -> Result<Observation, String> {
        self.run_within(case, RunOptions::default())
    }
}

impl SimBackend {
    /// Runs a case with other options than the default.
    ///
    /// # Errors
    /// The reason why the case cannot be run.
    pub fn run_within(&self, case: &Case, limits: RunOptions) -> Result<Observation, String> {
        let mut run = SimRun::new(case, limits)?;
        run.run(limits.start + case.until);
        Ok(run.finish(case))
    }
}

/// Options of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// Seed of the random streams of the links.
    pub seed: u64,
    /// Largest number of events at one instant; more of them are reported as a busy loop.
    pub events_at_once: u32,
    /// Time on the clock of the state machines at the start of the run; sets the phase of its
    /// ticks.
    pub start: Instant,
    /// Whether the run ends when both hosts are in CLOSED or TIME-WAIT.
    pub stop_when_closed: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { seed: 1, events_at_once: 20_000, start: Instant::ZERO, stop_when_closed: false }
    }
}

struct SimRun {
    limits: RunOptions,
    now: Instant,
    at_once: u32,
    isn: [u32; 2],
    connections: [Option<Connection>; 2],
    /// Paths from the client and from the server.
    paths: [PacketPath<Segment>; 2],
    steps: std::vec::IntoIter<InputEvent>,
    next_step: Option<InputEvent>,
    scripted_peer: ScriptedPeer,
    recorder: Recorder,
}

impl SimRun {
    fn new(case: &Case, limits: RunOptions) -> Result<Self, String> {
        let mut steps = case.steps()?;
        for step in &mut steps {
            step.at += limits.start.since(Instant::ZERO);
        }
        let mut steps = steps.into_iter();
        Ok(Self {
            limits,
            now: limits.start,
            at_once: 0,
            isn: case.isn,
            connections: connections(case),
            paths: packet_paths(case, limits.seed)?,
            next_step: steps.next(),
            steps,
            scripted_peer: ScriptedPeer::new(case),
            recorder: Recorder::new(case)?,
        })
    }

    fn run(&mut self, until: Instant) {
        self.recorder.observation.mss =
            self.connections[0].as_ref().map_or(0, |connection| connection.params().mss);
        self.recorder.observation.scripted = self.connections[1].is_none();
        self.transmit_and_record(0);
        self.transmit_and_record(1);
        loop {
            let next = self.next_event();
            if next > until || self.limits.stop_when_closed && self.is_closed() {
                return;
            }
            if next < self.now {
                let late = self.now.since(next).as_nanos();
                self.recorder
                    .observation
                    .violations
                    .push(format!("a deadline is {late} ns in the past"));
                return;
            }
            self.at_once = if next == self.now { self.at_once + 1 } else { 0 };
            if self.at_once > self.limits.events_at_once {
                self.recorder
                    .observation
                    .violations
                    .push(format!("busy loop at {} ms", next.as_secs_f64() * 1e3));
                return;
            }
            self.now = next;
            self.handle_due_events();
        }
    }

    fn next_event(&self) -> Instant {
        let step = self.next_step.as_ref().map_or(Instant::NEVER, |step| step.at);
        let timers = self.connections.iter().flatten().map(Connection::next_deadline);
        timers.chain(self.paths.iter().map(PacketPath::next_deadline)).fold(step, Instant::min)
    }

    /// Time since the beginning of the run.
    fn clock(&self) -> Instant {
        Instant::ZERO + self.now.since(self.limits.start)
    }

    fn is_closed(&self) -> bool {
        let over =
            |connection: &Connection| matches!(state(connection).as_str(), "Closed" | "TimeWait");
        self.connections.iter().flatten().all(over)
    }

    /// Handles all events that are due now: first the input, then arrivals, then timers.
    fn handle_due_events(&mut self) {
        while let Some(step) = self.next_step.take_if(|step| step.at <= self.now) {
            self.next_step = self.steps.next();
            self.apply_input(&step);
        }
        for from in 0..2 {
            for segment in self.paths[from].arrived(self.now) {
                self.deliver(1 - from, &segment);
            }
        }
        for index in 0..2 {
            let now = self.now;
            if let Some(connection) = &mut self.connections[index]
                && connection.next_deadline() <= now
            {
                connection.handle_timeout(now);
                self.transmit_and_record(index);
            }
        }
    }

    fn apply_input(&mut self, step: &InputEvent) {
        let index = step.end as usize;
        if let Action::Receive(made) = &step.action {
            let segment = self.scripted_peer.segment(made, self.isn);
            self.deliver(0, &segment);
            return;
        }
        let Some(connection) = &mut self.connections[index] else { return };
        match step.action {
            Action::Write(bytes) => {
                connection.write(bytes);
            }
            Action::Close => connection.close(),
            Action::ReadOnDemand => connection.read_on_demand(),
            Action::Read(bytes) => connection.read(bytes),
            Action::Receive(_) => {}
        }
        self.transmit_and_record(index);
    }

    fn deliver(&mut self, index: usize, segment: &Segment) {
        self.recorder.arrived(self.clock(), index, segment, self.isn);
        if let Some(connection) = &mut self.connections[index] {
            connection.handle_segment(self.now, segment);
        }
        self.transmit_and_record(index);
    }

    /// Transmits the pending segments of a host, and records its state.
    fn transmit_and_record(&mut self, index: usize) {
        let now = self.now;
        while let Some(segment) =
            self.connections[index].as_mut().and_then(|connection| connection.poll_transmit(now))
        {
            let fate = self.recorder.sent(self.clock(), index, &segment, self.isn);
            if self.connections[1 - index].is_some() {
                self.paths[index].send(now, segment, segment.wire_bytes(), fate);
            }
            self.at_once += 1;
            if self.at_once > self.limits.events_at_once {
                break;
            }
        }
        self.record_state(index);
    }

    fn record_state(&mut self, index: usize) {
        let Some(connection) = &self.connections[index] else { return };
        let name = state(connection);
        self.recorder.record_state(self.clock(), index, &name);
        if index == 0 {
            let Some(sender) = connection.sender() else { return };
            let flight = sender.next() - sender.una();
            let (cwnd, ssthresh) = (sender.cwnd(), sender.ssthresh());
            self.recorder.observation.samples.push(Sample {
                at: self.clock(),
                cwnd,
                ssthresh,
                flight,
            });
        }
    }

    fn finish(mut self, case: &Case) -> Observation {
        let mut put = |name: &str, number: f64| {
            self.recorder.observation.totals.insert(name.to_owned(), Value::Number(number));
        };
        let names = [("client", "server"), ("server", "client")];
        for (index, (own, other)) in names.into_iter().enumerate() {
            let Some(connection) = &self.connections[index] else { continue };
            let Some(sender) = connection.sender() else { continue };
            let stats = sender.stats();
            put(&format!("{own}_segments"), stats.segments as f64);
            put(&format!("{own}_retransmissions"), f64::from(stats.retransmissions));
            put(&format!("{own}_timeouts"), f64::from(stats.timeouts));
            put(&format!("{own}_fast_retransmits"), f64::from(stats.fast_retransmits));
            put(&format!("bytes_from_{other}"), connection.receiver().delivered() as f64);
            let rto = sender.rtt().rto(connection.params()).as_secs_f64() * 1e3;
            put(&format!("{own}_rto_ms"), rto);
            let srtt = sender.rtt().srtt().unwrap_or(Duration::ZERO);
            put(&format!("{own}_srtt_ms"), srtt.as_secs_f64() * 1e3);
        }
        put("dropped_by_queue", (self.paths[0].queue_drops() + self.paths[1].queue_drops()) as f64);
        if let Some(server) = &self.connections[1] {
            let bits = server.receiver().delivered() as f64 * 8.0;
            put("goodput_kbit_per_s", bits / 1e3 / case.until.as_secs_f64());
        }
        for (end, index) in [("client", 0), ("server", 1)] {
            if let Some(connection) = &self.connections[index] {
                let word = Value::Word(state(connection));
                self.recorder.observation.totals.insert(format!("{end}_state"), word);
            }
        }
        self.recorder.observation
    }
}

/// Name of the connection state in RFC 9293, without hyphens.
fn state(connection: &Connection) -> String {
    format!("{:?}", connection.state())
}
