//! The sim arm: the TCP machines of `gridhaul-core` on a virtual clock.

use gridhaul_core::tcp::{Connection, Segment};
use gridhaul_scenario::units::{Duration, Instant};

use super::Arm;
use super::ends::{Scripted, connections};
use super::route::{Route, routes};
use super::witness::Witness;
use crate::case::{Action, Case, Step};
use crate::observe::{Observation, Sample, Value};

/// Runs the machines of `gridhaul-core`.
pub struct SimArm;

impl Arm for SimArm {
    fn name(&self) -> &'static str {
        "sim"
    }
    fn run(&self, case: &Case) -> Result<Observation, String> {
        self.run_within(case, Limits::default())
    }
}

impl SimArm {
    /// Runs a case with other limits and another seed of its random links.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn run_within(&self, case: &Case, limits: Limits) -> Result<Observation, String> {
        let mut world = World::new(case, limits)?;
        world.run(limits.start + case.until);
        Ok(world.finish(case))
    }
}

/// What bounds a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Seed of chance on the path.
    pub seed: u64,
    /// Events at one instant above which the machines are said to spin.
    pub events_at_once: u32,
    /// Time of the machines' clock at which the run begins: where its ticks lie.
    pub start: Instant,
    /// Whether the run ends when both ends are closed or in TIME-WAIT.
    pub stop_when_closed: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { seed: 1, events_at_once: 20_000, start: Instant::ZERO, stop_when_closed: false }
    }
}

struct World {
    limits: Limits,
    now: Instant,
    at_once: u32,
    isn: [u32; 2],
    ends: [Option<Connection>; 2],
    /// From the client, from the server.
    routes: [Route<Segment>; 2],
    steps: std::vec::IntoIter<Step>,
    next_step: Option<Step>,
    scripted: Scripted,
    witness: Witness,
}

impl World {
    fn new(case: &Case, limits: Limits) -> Result<Self, String> {
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
            ends: connections(case),
            routes: routes(case, limits.seed)?,
            next_step: steps.next(),
            steps,
            scripted: Scripted::new(case),
            witness: Witness::new(case)?,
        })
    }

    fn run(&mut self, until: Instant) {
        self.witness.seen.mss = self.ends[0].as_ref().map_or(0, |end| end.params().mss);
        self.witness.seen.scripted = self.ends[1].is_none();
        self.settle(0);
        self.settle(1);
        loop {
            let next = self.next_event();
            if next > until || self.limits.stop_when_closed && self.is_closed() {
                return;
            }
            if next < self.now {
                let late = self.now.since(next).as_nanos();
                self.witness.seen.violations.push(format!("a deadline lies {late} ns in the past"));
                return;
            }
            self.at_once = if next == self.now { self.at_once + 1 } else { 0 };
            if self.at_once > self.limits.events_at_once {
                self.witness
                    .seen
                    .violations
                    .push(format!("spins at {} ms", next.as_secs_f64() * 1e3));
                return;
            }
            self.now = next;
            self.happen();
        }
    }

    fn next_event(&self) -> Instant {
        let step = self.next_step.as_ref().map_or(Instant::NEVER, |step| step.at);
        let ends = self.ends.iter().flatten().map(Connection::next_deadline);
        ends.chain(self.routes.iter().map(Route::next_deadline)).fold(step, Instant::min)
    }

    /// Time since the beginning of the run.
    fn clock(&self) -> Instant {
        Instant::ZERO + self.now.since(self.limits.start)
    }

    fn is_closed(&self) -> bool {
        let over = |end: &Connection| matches!(state(end).as_str(), "Closed" | "TimeWait");
        self.ends.iter().flatten().all(over)
    }

    /// Everything that is due now: the input first, then arrivals, then timers.
    fn happen(&mut self) {
        while let Some(step) = self.next_step.take_if(|step| step.at <= self.now) {
            self.next_step = self.steps.next();
            self.act(&step);
        }
        for from in 0..2 {
            for segment in self.routes[from].arrived(self.now) {
                self.arrive(1 - from, &segment);
            }
        }
        for index in 0..2 {
            let now = self.now;
            if let Some(end) = &mut self.ends[index]
                && end.next_deadline() <= now
            {
                end.handle_timeout(now);
                self.settle(index);
            }
        }
    }

    fn act(&mut self, step: &Step) {
        let index = step.end as usize;
        if let Action::Receive(made) = &step.action {
            let segment = self.scripted.segment(made, self.isn);
            self.arrive(0, &segment);
            return;
        }
        let Some(end) = &mut self.ends[index] else { return };
        match step.action {
            Action::Write(bytes) => {
                end.write(bytes);
            }
            Action::Close => end.close(),
            Action::ReadOnDemand => end.read_on_demand(),
            Action::Read(bytes) => end.read(bytes),
            Action::Receive(_) => {}
        }
        self.settle(index);
    }

    fn arrive(&mut self, index: usize, segment: &Segment) {
        self.witness.arrived(self.clock(), index, segment, self.isn);
        if let Some(end) = &mut self.ends[index] {
            end.handle_segment(self.now, segment);
        }
        self.settle(index);
    }

    /// Sends what an end wants to send, and notes its state.
    fn settle(&mut self, index: usize) {
        let now = self.now;
        while let Some(segment) = self.ends[index].as_mut().and_then(|end| end.poll_transmit(now)) {
            let fate = self.witness.sent(self.clock(), index, &segment, self.isn);
            if self.ends[1 - index].is_some() {
                self.routes[index].send(now, segment, segment.wire_bytes(), fate);
            }
            self.at_once += 1;
            if self.at_once > self.limits.events_at_once {
                break;
            }
        }
        self.note(index);
    }

    fn note(&mut self, index: usize) {
        let Some(end) = &self.ends[index] else { return };
        let name = state(end);
        self.witness.note_state(self.clock(), index, &name);
        if index == 0 {
            let Some(sender) = end.sender() else { return };
            let flight = sender.next() - sender.una();
            let (cwnd, ssthresh) = (sender.cwnd(), sender.ssthresh());
            self.witness.seen.samples.push(Sample { at: self.clock(), cwnd, ssthresh, flight });
        }
    }

    fn finish(mut self, case: &Case) -> Observation {
        let mut put = |name: &str, number: f64| {
            self.witness.seen.totals.insert(name.to_owned(), Value::Number(number));
        };
        let names = [("client", "server"), ("server", "client")];
        for (index, (own, other)) in names.into_iter().enumerate() {
            let Some(end) = &self.ends[index] else { continue };
            let Some(sender) = end.sender() else { continue };
            let stats = sender.stats();
            put(&format!("{own}_segments"), stats.segments as f64);
            put(&format!("{own}_retransmissions"), f64::from(stats.retransmissions));
            put(&format!("{own}_timeouts"), f64::from(stats.timeouts));
            put(&format!("{own}_fast_retransmits"), f64::from(stats.fast_retransmits));
            put(&format!("bytes_from_{other}"), end.receiver().delivered() as f64);
            let rto = sender.rtt().rto(end.params()).as_secs_f64() * 1e3;
            put(&format!("{own}_rto_ms"), rto);
            let srtt = sender.rtt().srtt().unwrap_or(Duration::ZERO);
            put(&format!("{own}_srtt_ms"), srtt.as_secs_f64() * 1e3);
        }
        put("dropped_by_queue", (self.routes[0].refused() + self.routes[1].refused()) as f64);
        if let Some(server) = &self.ends[1] {
            let bits = server.receiver().delivered() as f64 * 8.0;
            put("goodput_kbit_per_s", bits / 1e3 / case.until.as_secs_f64());
        }
        for (end, index) in [("client", 0), ("server", 1)] {
            if let Some(connection) = &self.ends[index] {
                let word = Value::Word(state(connection));
                self.witness.seen.totals.insert(format!("{end}_state"), word);
            }
        }
        self.witness.seen
    }
}

/// The state's name as RFC 9293 has it, without hyphens.
fn state(connection: &Connection) -> String {
    format!("{:?}", connection.state())
}
