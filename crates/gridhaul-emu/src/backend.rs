//! The emulator as a backend: runs a scenario in real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Metric, PointRows, Run, StoppingRule, TimeBase};
use gridhaul_scenario::backend::{
    Backend, Progress, QueuedRun, RunError, RunQueue, Unsupported, external_loads,
};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};
use gridhaul_scenario::units::{Duration, Instant};

use crate::error::EmulationError;
use crate::kernel_congestion_control::{self, KernelCongestionControls};
use crate::link_emulator::{BridgeStates, Emulator, EmulatorOutcome};
use crate::network::{NetworkPlan, Testbed};
use crate::outcome;
use crate::relay::{Bridges, ProxyCounters, Relays, Routers};
use crate::thread_wakeup::WakeupSchedule;
use crate::traffic::{Sampling, Traffic, TrafficOutcome};
use crate::unsupported::unsupported_keys;
use gridhaul_linux::{Clock, check_tun_in_namespace, pin_to_processor, raise_open_file_limit};

/// Runs scenarios on the kernel of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Emu {
    /// Number of concurrent runs; 0 means one. Concurrent runs save time if each needs little CPU
    /// time, as on links of some Mbit/s; interference between them shows in the lateness.
    pub concurrent_runs: usize,
    /// Number of times that a replication is repeated if the machine was too busy, until it was
    /// not.
    pub repetitions: u32,
    /// Processor to pin the emulator thread to; `None` leaves the choice to the kernel.
    pub pin: Option<usize>,
}

/// The emulator and the applications start together, this long after they are created.
const START_DELAY: Duration = Duration::from_millis(20);

/// Interval between samples of the windows of 100 connections; proportional to their number.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(50);

impl Backend for Emu {
    fn name(&self) -> &'static str {
        "emu"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        let external = external_loads(scenario);
        if !external.is_empty() {
            return Err(external);
        }
        // A scenario without points is not valid, which a run reports.
        check_supported(&scenario.points().unwrap_or_default())
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
        check_supported(&points).map_err(RunError::Unsupported)?;
        raise_open_file_limit();
        let plans = points.iter().map(|point| NetworkPlan::new(&point.scenario));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let queue = RunQueue::new(points.len(), StoppingRule::of(scenario), progress);
        let execute = |run: &QueuedRun<'_>| {
            let (scenario, plan) = (&points[run.point].scenario, &plans[run.point]);
            self.run_undisturbed(scenario, plan, run.replication, progress)
        };
        let ended = thread::scope(|scope| {
            let workers = 0..queue.threads(self.concurrent_runs);
            let workers: Vec<_> = workers.map(|_| scope.spawn(|| queue.work(execute))).collect();
            let mut ended = Vec::new();
            for worker in workers {
                ended.extend(worker.join().map_err(|_| EmulationError::panicked())?);
            }
            Ok::<_, RunError>(ended)
        })?;
        let rows = |point: usize| Ok(rows(&points[point].scenario, &plans[point]));
        Answer::of_replications(scenario, self.name(), TimeBase::Real, &points, ended, rows)
    }
}

/// The rows of a point: its flows, the upstream connections of its aggregators, and its links.
fn rows(scenario: &Scenario, plan: &NetworkPlan) -> PointRows {
    let count = |flow: usize| u64::from(plan.flows[flow].count);
    let flows = scenario.flow.keys().enumerate().map(|(flow, name)| (name.clone(), count(flow)));
    let upstream = plan.relays.iter().map(|relay| (relay.row.clone(), count(relay.upstream)));
    let links = plan.directions.answer_rows();
    PointRows { flows: flows.chain(upstream).collect(), links }
}

impl Emu {
    /// The prerequisite that this machine lacks to run a scenario, if any: permissions, devices,
    /// and the congestion control of its stacks. Keys that the kernel does not support are not
    /// checked.
    #[must_use]
    pub fn lacking(scenario: &Scenario) -> Option<String> {
        let lacking = check_tun_in_namespace().map_err(EmulationError::from).and_then(|()| {
            let points = scenario.points().unwrap_or_default();
            points.iter().try_for_each(|point| kernel_congestion_control::require(&point.scenario))
        });
        lacking.err().map(|error| error.to_string())
    }

    /// A run during which the machine was not too busy, or the last repetition; none if it was
    /// interrupted.
    fn run_undisturbed(
        &self,
        scenario: &Scenario,
        plan: &NetworkPlan,
        replication: u32,
        progress: &dyn Progress,
    ) -> Result<Option<Run>, RunError> {
        let run = || self.run_once(scenario, plan, replication, progress);
        repeat_while_disturbed(self.repetitions, run)
    }

    /// One run; none if it was interrupted.
    fn run_once(
        &self,
        scenario: &Scenario,
        plan: &NetworkPlan,
        replication: u32,
        progress: &dyn Progress,
    ) -> Result<Option<Run>, RunError> {
        let controls = KernelCongestionControls::load(plan)?;
        let corrected_before = controls.corrected();
        let testbed = Testbed::build(plan)?;
        let mut relays = Relays::start(scenario, plan, &testbed, &controls)?;
        let mut bridges = Bridges::start(scenario, plan, &testbed)?;
        let mut routers = Routers::start(scenario, plan, &testbed)?;
        let states = BridgeStates::running(plan.proxies.len());
        let kernel = (&testbed, &controls);
        let traffic = Traffic::new(scenario, plan, kernel, &relays, replication, progress)?;
        let interval = scenario.record.interval_of(replication);
        let emulator = Emulator::new(scenario, plan, &testbed.devices, replication, interval)?;
        let emulator = emulator.bridged_by(&states);
        let proxies = (&mut bridges, &states);
        let (emulated, traffic, counters) =
            self.drive(scenario, (emulator, traffic, proxies), interval, progress)?;
        if progress.is_interrupted() {
            return Ok(None);
        }
        relays.check()?;
        routers.check()?;
        let mut rows = outcome::rows(scenario, plan, &emulated, &traffic);
        for counters in counters {
            let (flow, sent) = (counters.flow, counters.retransmissions);
            rows.flows[flow].push((Metric::ProxyRetransmissions, sent as f64));
            let missing = traffic.rows[flow].acknowledged_undelivered;
            let lost = if counters.has_lost { missing.saturating_sub(counters.at_risk) } else { 0 };
            rows.flows[flow].push((Metric::LostInCrashes, lost as f64));
        }
        let mut warnings = rows.warnings(scenario);
        let corrected = controls.corrected().saturating_sub(corrected_before);
        let mut disturbances =
            outcome::disturbances(scenario, plan, &emulated, &traffic, corrected);
        disturbances.extend(relays.disturbance());
        disturbances.extend(bridges.disturbance());
        disturbances.extend(routers.disturbance());
        let disturbed = !disturbances.is_empty();
        warnings.append(&mut disturbances);
        warnings.extend(outcome::aborted_connections(scenario, &traffic));
        let links: Vec<String> =
            plan.directions.rows().iter().map(|(name, _)| name.clone()).collect();
        let flows: Vec<String> = scenario.flow.keys().cloned().collect();
        let mut series = traffic.recording.into_series(&flows, &links)?;
        series.extend(emulated.recording.into_series(&flows, &links)?);
        let (captures, event_logs) = (emulated.captures, traffic.event_logs.into_logs()?);
        Ok(Some(Run { rows, series, captures, event_logs, warnings, disturbed }))
    }

    /// Runs the threads of the emulator, the applications, and the proxies if there are any. If one
    /// fails or the user interrupts the run, all stop.
    fn drive(
        &self,
        scenario: &Scenario,
        (emulator, traffic, (bridges, states)): (
            Emulator<'_>,
            Traffic<'_>,
            (&mut Bridges<'_>, &BridgeStates),
        ),
        recorded: Option<Duration>,
        progress: &dyn Progress,
    ) -> Result<(EmulatorOutcome, TrafficOutcome, Vec<ProxyCounters>), RunError> {
        let emulator_plan = emulator.plan();
        let counts = emulator_plan.flows.iter().map(|flow| u64::from(flow.count));
        let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
        let connections: u64 = counts.sum();
        let interval = scenario
            .record
            .interval
            .unwrap_or(SAMPLING_INTERVAL.mul_f64(connections as f64 / 100.0));
        let sampling = Sampling {
            interval: interval.max(Duration::from_millis(1)),
            recorded: recorded.is_some(),
        };
        let wakeups = WakeupSchedule::new();
        let stop = AtomicBool::new(false);
        let stopped = || stop.load(Ordering::Relaxed) || progress.is_interrupted();
        let clock = Clock::starts_in(START_DELAY);
        thread::scope(|scope| {
            let emulated = scope.spawn(|| {
                if let Some(number) = self.pin {
                    pin_to_processor(number);
                }
                let outcome = emulator.run((clock, &wakeups), warmup, end, stopped);
                stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                outcome
            });
            let traffic = scope.spawn(|| {
                let outcome = traffic.run((clock, &wakeups), warmup, end, sampling, stopped);
                stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                outcome
            });
            let has_proxies = !emulator_plan.proxies.is_empty();
            let proxies = has_proxies.then(|| {
                scope.spawn(|| {
                    let outcome = bridges.run((clock, states), warmup, end, stopped);
                    stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            });
            let emulated = emulated.join().map_err(|_| EmulationError::panicked())?;
            let traffic = traffic.join().map_err(|_| EmulationError::panicked())?;
            let proxies =
                proxies.map(|thread| thread.join().map_err(|_| EmulationError::panicked()));
            let counters = proxies.transpose()?.transpose()?.unwrap_or_default();
            Ok((emulated?, traffic?, counters))
        })
    }
}

/// The first run during which the machine was not too busy, or the last repetition.
fn repeat_while_disturbed(
    repetitions: u32,
    mut run: impl FnMut() -> Result<Option<Run>, RunError>,
) -> Result<Option<Run>, RunError> {
    for _ in 0..repetitions {
        match run()? {
            Some(run) if run.disturbed => {}
            run => return Ok(run),
        }
    }
    run()
}

/// Checks all points of a scenario; a key that several points share is reported once.
fn check_supported(points: &[ScenarioPoint]) -> Result<(), Vec<Unsupported>> {
    let mut unsupported: Vec<Unsupported> = Vec::new();
    for key in points.iter().flat_map(|point| unsupported_keys(&point.scenario)) {
        if !unsupported.contains(&key) {
            unsupported.push(key);
        }
    }
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_repeated_until_the_machine_does_not_disturb_it() {
        let made = |repetitions, disturbed: &[bool]| {
            let mut runs = disturbed.iter();
            let run = || Ok(runs.next().map(|&disturbed| Run { disturbed, ..Run::default() }));
            let last = repeat_while_disturbed(repetitions, run).unwrap().unwrap().disturbed;
            (last, disturbed.len() - runs.len())
        };
        assert_eq!(made(2, &[false, false, false]), (false, 1));
        assert_eq!(made(2, &[true, false, false]), (false, 2));
        assert_eq!(made(2, &[true, true, true, true]), (true, 3));
        assert_eq!(made(0, &[true, true]), (true, 1));
    }
}
