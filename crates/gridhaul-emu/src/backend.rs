//! The backend: one run after the other, in real time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Capture, Point, RunRows, Series, TimeBase, Warning};
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};
use gridhaul_scenario::units::{Duration, Instant};

use crate::control::{self, Controls};
use crate::fault::Fault;
use crate::handover::Appointments;
use crate::network::{Lab, Plan};
use crate::outcome;
use crate::refuse::refusals;
use crate::traffic::{Sampling, Traffic, TrafficOutcome};
use crate::wire::{Emulator, WireOutcome};
use gridhaul_linux::Clock;
use gridhaul_linux::{Namespace, Tun, raise_open_file_limit};

/// Real kernels on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Emu {
    /// Runs at the same time; 0 is one. More save real time where each takes little of the machine, as
    /// on links of some Mbit/s; what they take from each other shows in the lateness.
    pub beside: usize,
    /// Processor that the emulator keeps for itself. `None`: wherever the kernel puts it.
    pub pin: Option<usize>,
}

/// The emulator and the applications start together, this long after they were made.
const HEAD_START: Duration = Duration::from_millis(20);

/// Windows are looked at this often; less often where there are many connections.
const LOOK: Duration = Duration::from_millis(50);

impl Backend for Emu {
    fn name(&self) -> &'static str {
        "emu"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        // What makes no points is no scenario, which a run says.
        all_carried(&scenario.points().unwrap_or_default())
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
        all_carried(&points).map_err(RunError::Unsupported)?;
        raise_open_file_limit();
        let plans = points.iter().map(|point| Plan::new(&point.scenario));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let mut done = self.run_all(&points, &plans, progress)?.into_iter();
        let mut answer = Answer::without_points(scenario, self.name());
        for (point, plan) in points.iter().zip(&plans) {
            let mut runs: Vec<RunRows> = Vec::new();
            for run in done.by_ref().take(scenario.repeat as usize) {
                answer.warnings.extend(run.warnings);
                let number = (points.len() > 1).then_some(answer.points.len());
                answer.keep(number, (run.series, run.captures));
                runs.push(run.rows);
            }
            let flows = point.scenario.flow.keys().zip(&plan.flows);
            let flows = flows.map(|(name, flow)| (name.clone(), u64::from(flow.count))).collect();
            let names = (&flows, plan.directions.rows());
            answer.points.push(Point::of_runs(point, names, &runs, TimeBase::Real));
        }
        answer.warn_of_unopened(scenario);
        answer.warnings.sort();
        answer.warnings.dedup();
        Ok(answer)
    }
}

/// What comes out of one run.
struct Run {
    rows: RunRows,
    series: Vec<Series>,
    captures: Vec<Capture>,
    warnings: Vec<Warning>,
}

impl Emu {
    /// Whether this machine lets us run anything: makes a network namespace with a device in it.
    ///
    /// # Errors
    /// What is missing.
    pub fn available() -> Result<(), Fault> {
        let device = Namespace::new()?.enter(|| Tun::new("link0"))?;
        device.map(drop).map_err(Fault::call("making a device (/dev/net/tun)"))
    }

    /// What this machine lacks to run a scenario, if anything: permissions and devices, and the
    /// congestion control of its stacks. Nothing is said of keys that no kernel honours.
    #[must_use]
    pub fn lacking(scenario: &Scenario) -> Option<String> {
        let lacking = Self::available().and_then(|()| {
            let points = scenario.points().unwrap_or_default();
            points.iter().try_for_each(|point| control::require(&point.scenario))
        });
        lacking.err().map(|fault| fault.to_string())
    }

    /// All runs, point by point and repeat by repeat.
    fn run_all(
        &self,
        points: &[ScenarioPoint],
        plans: &[Plan],
        progress: &dyn Progress,
    ) -> Result<Vec<Run>, RunError> {
        let all = points.iter().zip(plans);
        let jobs: Vec<_> = all
            .flat_map(|(point, plan)| {
                (0..point.scenario.repeat).map(move |repeat| (&point.scenario, plan, repeat))
            })
            .collect();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let mut own = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(scenario, plan, repeat)) = jobs.get(number) else { break };
                let run = self.run_once(scenario, plan, repeat);
                // Nobody begins another run after one has failed.
                next.fetch_add(if run.is_err() { jobs.len() } else { 0 }, Ordering::Relaxed);
                own.push((number, run));
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress.advance(done as u64, jobs.len() as u64);
            }
            own
        };
        let workers = self.beside.clamp(1, jobs.len().max(1));
        let mut runs = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().map_err(|_| Fault::panicked())?);
            }
            Ok::<_, RunError>(all)
        })?;
        runs.sort_by_key(|(number, _)| *number);
        runs.into_iter().map(|(_, run)| run).collect()
    }

    fn run_once(&self, scenario: &Scenario, plan: &Plan, repeat: u32) -> Result<Run, RunError> {
        let controls = Controls::load(plan)?;
        let mended_before = controls.mended();
        let lab = Lab::build(plan)?;
        let traffic = Traffic::new(scenario, plan, (&lab, &controls), repeat)?;
        let interval = scenario.record.interval.filter(|_| repeat == 0);
        let emulator = Emulator::new(scenario, plan, &lab.devices, repeat, interval)?;
        let (wire, traffic) = self.drive(scenario, emulator, traffic, interval)?;
        let rows = outcome::rows(scenario, plan, &wire, &traffic);
        let mut warnings = rows.warnings(scenario);
        let mended = controls.mended().saturating_sub(mended_before);
        warnings.extend(outcome::warnings(scenario, plan, &wire, &traffic, mended));
        let links: Vec<String> =
            plan.directions.rows().iter().map(|(name, _)| name.clone()).collect();
        let flows: Vec<String> = scenario.flow.keys().cloned().collect();
        let mut series = traffic.recording.into_series(&flows, &links);
        series.extend(wire.recording.into_series(&flows, &links));
        Ok(Run { rows, series, captures: wire.captures, warnings })
    }

    /// Lets both threads run. If one fails, the other stops.
    fn drive(
        &self,
        scenario: &Scenario,
        emulator: Emulator<'_>,
        traffic: Traffic<'_>,
        recorded: Option<Duration>,
    ) -> Result<(WireOutcome, TrafficOutcome), RunError> {
        let counts = emulator.plan().flows.iter().map(|flow| u64::from(flow.count));
        let times = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
        let connections: u64 = counts.sum();
        let interval = scenario.record.interval.unwrap_or(LOOK.mul_f64(connections as f64 / 100.0));
        let sampling = Sampling {
            interval: interval.max(Duration::from_millis(1)),
            recorded: recorded.is_some(),
        };
        let appointments = Appointments::new();
        let stop = AtomicBool::new(false);
        let stopped = || stop.load(Ordering::Relaxed);
        let clock = Clock::starts_in(HEAD_START);
        thread::scope(|scope| {
            let wire = scope.spawn(|| {
                self.pin();
                let outcome = emulator.run((clock, &appointments), times, stopped);
                stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                outcome
            });
            let traffic = scope.spawn(|| {
                let outcome = traffic.run((clock, &appointments), times, sampling, stopped);
                stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                outcome
            });
            let wire = wire.join().map_err(|_| Fault::panicked())?;
            let traffic = traffic.join().map_err(|_| Fault::panicked())?;
            Ok((wire?, traffic?))
        })
    }

    /// Keeps the calling thread on its processor. One that does not exist is no reason to stop.
    fn pin(&self) {
        if let Some(cpu) = self.pin {
            let mut set = rustix::thread::CpuSet::new();
            set.set(cpu);
            let _ = rustix::thread::sched_setaffinity(None, &set);
        }
    }
}

/// Refuses what cannot be carried at some point; what holds at several is told once.
fn all_carried(points: &[ScenarioPoint]) -> Result<(), Vec<Unsupported>> {
    let mut refused: Vec<Unsupported> = Vec::new();
    for key in points.iter().flat_map(|point| refusals(&point.scenario)) {
        if !refused.contains(&key) {
            refused.push(key);
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}
