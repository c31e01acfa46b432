//! The proxies of a run: relay daemons that bridge the two devices of their nodes, and are killed
//! and started again where the scenario has crashes.

mod configuration;
mod status;

use std::path::{Path, PathBuf};

use gridhaul_linux::{Clock, Poll};
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::scenario::{Crash, Scenario};
use gridhaul_scenario::units::Instant;

use super::process::{self, RelayProcess};
use super::{Folder, waited_for_processor};
use crate::error::EmulationError;
use crate::link_emulator::BridgeStates;
use crate::network::{NetworkPlan, Testbed};
use status::Status;

/// The relay daemons of the proxies of a run. Dropping this value ends them.
#[derive(Debug)]
pub(crate) struct Bridges<'a> {
    plan: &'a NetworkPlan,
    testbed: &'a Testbed,
    program: PathBuf,
    /// One for each proxy of the plan. Before the folder, so that the processes end first.
    daemons: Vec<Daemon>,
    _folder: Option<Folder>,
}

/// The daemon of a proxy.
#[derive(Debug)]
struct Daemon {
    /// Name of its node.
    node: String,
    file: PathBuf,
    process: RelayProcess,
    /// Crashes that have not begun, the last first.
    crashes: Vec<Crash>,
    /// The time at which it starts again, if it is down.
    restart: Option<Instant>,
    has_crashed: bool,
    /// Counters of earlier processes.
    ended: Status,
    /// Counters at the end of the warm-up.
    before: Status,
}

/// Counters of the proxies of a flow. Flows whose proxies serve other flows as well have none,
/// because a daemon counts all of its connections together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProxyCounters {
    /// Index of the flow.
    pub flow: usize,
    /// Segments that the proxies have retransmitted after the warm-up.
    pub retransmissions: u64,
    /// Bytes that are acknowledged to their senders at the end, and not by the next hop.
    pub at_risk: u64,
    /// A proxy has crashed, or has reset a connection with bytes at risk.
    pub has_lost: bool,
}

impl<'a> Bridges<'a> {
    /// Starts a daemon for each proxy, and waits until they forward.
    ///
    /// # Errors
    /// The program is missing, or does not start.
    pub(crate) fn start(
        scenario: &Scenario,
        plan: &'a NetworkPlan,
        testbed: &'a Testbed,
    ) -> Result<Self, EmulationError> {
        let (program, daemons) = (PathBuf::new(), Vec::new());
        let mut bridges = Self { plan, testbed, program, daemons, _folder: None };
        if plan.proxies.is_empty() {
            return Ok(bridges);
        }
        bridges.program = process::program()?;
        let folder = Folder::create()?;
        for (index, proxy) in plan.proxies.iter().enumerate() {
            let text = configuration::bridge(scenario, plan, proxy);
            let file = folder.write(&format!("bridge{index}"), &text)?;
            let (node, found) =
                scenario.node.get_index(proxy.node).expect("a proxy of this scenario");
            let mut crashes =
                found.proxy.as_ref().map_or_else(Vec::new, |proxy| proxy.crash.clone());
            crashes.sort_by_key(|crash| std::cmp::Reverse(crash.at));
            let process = bridges.spawn(index, node, &file)?;
            bridges.daemons.push(Daemon {
                node: node.clone(),
                file,
                process,
                crashes,
                restart: None,
                has_crashed: false,
                ended: Status::default(),
                before: Status::default(),
            });
        }
        for daemon in &mut bridges.daemons {
            daemon.process.await_ready()?;
        }
        bridges._folder = Some(folder);
        Ok(bridges)
    }

    /// Kills and starts daemons at the times of the scenario until the end, and reads their
    /// counters.
    ///
    /// # Errors
    /// A daemon has ended without a crash of the scenario, or does not start again.
    pub(crate) fn run(
        &mut self,
        (clock, states): (Clock, &BridgeStates),
        warmup: Instant,
        end: Instant,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<ProxyCounters>, EmulationError> {
        // Nothing is watched: the wait ends with its time.
        let mut idle = Poll::new()?;
        let mut is_warm = false;
        while !stop() {
            let now = clock.now();
            if !is_warm && now >= warmup {
                is_warm = true;
                for index in 0..self.daemons.len() {
                    self.daemons[index].before = self.status(index)?;
                }
            }
            if now >= end {
                break;
            }
            for index in 0..self.daemons.len() {
                self.crash_and_restart(index, now, states)?;
            }
            let events = self.daemons.iter().filter_map(Daemon::next_event);
            let next = events.chain([if is_warm { end } else { warmup }]).min().unwrap_or(end);
            let _none = idle.wait::<1>(clock.until(next).min(STOP_INTERVAL))?;
        }
        self.counters()
    }

    /// A warning if the daemons have waited for a processor.
    pub(crate) fn disturbance(&self) -> Option<Warning> {
        waited_for_processor(self.daemons.iter().map(|daemon| &daemon.process))
    }

    fn spawn(&self, index: usize, node: &str, file: &Path) -> Result<RelayProcess, EmulationError> {
        let namespace = &self.testbed.namespaces[self.plan.proxies[index].node];
        RelayProcess::start(&self.program, file, namespace, format!("proxy at `{node}`"))
    }

    /// Kills a daemon whose crash is due, and starts it again after its pause.
    fn crash_and_restart(
        &mut self,
        index: usize,
        now: Instant,
        states: &BridgeStates,
    ) -> Result<(), EmulationError> {
        if let Some(crash) = self.daemons[index].due_crash(now) {
            let counted = self.status(index)?;
            let daemon = &mut self.daemons[index];
            daemon.ended = Status { at_risk: 0, ..counted };
            daemon.has_crashed = true;
            states.set_down(index, Some(crash.packets));
            daemon.process.kill();
            daemon.restart = Some(Instant::ZERO + crash.at + crash.down);
        }
        if self.daemons[index].restart.is_some_and(|at| at <= now) {
            let (node, file) = (self.daemons[index].node.clone(), self.daemons[index].file.clone());
            let mut process = self.spawn(index, &node, &file)?;
            process.await_ready()?;
            let daemon = &mut self.daemons[index];
            (daemon.process, daemon.restart) = (process, None);
            states.set_down(index, None);
        }
        let daemon = &mut self.daemons[index];
        if daemon.restart.is_none() { daemon.process.check() } else { Ok(()) }
    }

    /// The counters of a daemon, with those of the processes before its crashes.
    fn status(&self, index: usize) -> Result<Status, EmulationError> {
        let daemon = &self.daemons[index];
        if daemon.restart.is_some() {
            return Ok(daemon.ended);
        }
        let namespace = &self.testbed.namespaces[self.plan.proxies[index].node];
        let failed = format!("reading the status of the proxy at `{}`", daemon.node);
        let read = namespace.enter(status::read)?.map_err(EmulationError::call(failed))?;
        Ok(daemon.ended.and_next(read))
    }

    fn counters(&self) -> Result<Vec<ProxyCounters>, EmulationError> {
        let mut of_flows: Vec<ProxyCounters> = Vec::new();
        let mut shared = Vec::new();
        for (index, proxy) in self.plan.proxies.iter().enumerate() {
            let [served] = &proxy.served[..] else {
                shared.extend(proxy.served.iter().map(|served| served.flow));
                continue;
            };
            let (daemon, after) = (&self.daemons[index], self.status(index)?);
            let flow = served.flow;
            if !of_flows.iter().any(|counters| counters.flow == flow) {
                let none = ProxyCounters { flow, retransmissions: 0, at_risk: 0, has_lost: false };
                of_flows.push(none);
            }
            for counters in of_flows.iter_mut().filter(|counters| counters.flow == flow) {
                let sent = after.retransmissions.saturating_sub(daemon.before.retransmissions);
                counters.retransmissions += sent;
                counters.at_risk += after.at_risk;
                counters.has_lost |= daemon.has_crashed || after.lost > 0;
            }
        }
        of_flows.retain(|counters| !shared.contains(&counters.flow));
        Ok(of_flows)
    }
}

impl Daemon {
    /// The crash that is due, if any.
    fn due_crash(&mut self, now: Instant) -> Option<Crash> {
        self.crashes.pop_if(|crash| Instant::ZERO + crash.at <= now)
    }

    fn next_event(&self) -> Option<Instant> {
        let crash = self.crashes.last().map(|crash| Instant::ZERO + crash.at);
        self.restart.into_iter().chain(crash).min()
    }
}

/// Interval in which an interrupt by the user is noticed.
const STOP_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);
