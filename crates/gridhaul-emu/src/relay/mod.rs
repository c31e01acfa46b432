//! The aggregators, proxies and hybrid routers of a run: relay daemons (`gridhaul-relay`) as child
//! processes in the namespaces of their nodes.

mod bridges;
mod configuration;
mod counters;
mod process;
mod routers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use gridhaul_linux::Namespace;
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use self::configuration::{collector, head};
use self::process::RelayProcess;
use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{NetworkPlan, RelayLayout, Testbed};

pub(crate) use bridges::{Bridges, ProxyCounters};
pub(crate) use counters::TcpCounters;
pub(crate) use routers::Routers;

/// The relay daemons of a run. Dropping this value ends them and removes their logs.
#[derive(Debug)]
pub(crate) struct Relays<'a> {
    plan: &'a NetworkPlan,
    testbed: &'a Testbed,
    /// Before the folder, so that the processes end first.
    processes: Vec<RelayProcess>,
    _folder: Option<Folder>,
}

impl<'a> Relays<'a> {
    /// Starts a collector for each aggregator and a head at each server, and waits until they
    /// accept connections.
    ///
    /// # Errors
    /// The program is missing, or does not start.
    pub(crate) fn start(
        scenario: &Scenario,
        plan: &'a NetworkPlan,
        testbed: &'a Testbed,
        controls: &KernelCongestionControls,
    ) -> Result<Self, EmulationError> {
        let mut relays = Self { plan, testbed, processes: Vec::new(), _folder: None };
        if plan.relays.is_empty() {
            return Ok(relays);
        }
        let program = process::program()?;
        let folder = Folder::create()?;
        for (index, relay) in plan.relays.iter().enumerate() {
            let [node, server] = plan.flows[relay.upstream].ends;
            let file = folder.write(&format!("head{index}"), &head(plan, relay, index))?;
            let name = format!("head of `{}`", relay.row);
            let namespace = &testbed.namespaces[server];
            let mut started = vec![RelayProcess::start(&program, &file, namespace, name)?];
            for number in 0..plan.flows[relay.upstream].count {
                let text = collector((scenario, plan, controls), (relay, index), number);
                let file = folder.write(&format!("collector{index}-{number}"), &text)?;
                let name = format!("collector {number} at `{}`", relay.node);
                let namespace = &testbed.namespaces[node];
                started.push(RelayProcess::start(&program, &file, namespace, name)?);
            }
            for process in &mut started {
                process.await_ready()?;
            }
            relays.processes.append(&mut started);
        }
        relays._folder = Some(folder);
        Ok(relays)
    }

    /// Counters of the upstream connections of each row of aggregators: those of the namespace of
    /// their node.
    pub(crate) fn counters(&self) -> Vec<TcpCounters> {
        let namespace = |relay: &RelayLayout| -> &Namespace {
            &self.testbed.namespaces[self.plan.flows[relay.upstream].ends[0]]
        };
        let relays = self.plan.relays.iter();
        relays.map(|relay| namespace(relay).enter(TcpCounters::read).unwrap_or_default()).collect()
    }

    /// A warning if the daemons have waited for a processor: their links then carry other traffic
    /// than planned.
    pub(crate) fn disturbance(&self) -> Option<Warning> {
        waited_for_processor(self.processes.iter())
    }

    /// The first relay that has ended before the run, with its messages.
    ///
    /// # Errors
    /// A relay has ended.
    pub(crate) fn check(&mut self) -> Result<(), EmulationError> {
        self.processes.iter_mut().try_for_each(RelayProcess::check)
    }
}

/// A warning if one of these daemons has waited for a processor for long.
fn waited_for_processor<'p>(processes: impl Iterator<Item = &'p RelayProcess>) -> Option<Warning> {
    let longest =
        processes.filter_map(RelayProcess::mean_wait).max().filter(|wait| *wait > WAIT)?;
    Some(Warning {
        about: "relay".to_owned(),
        message: format!(
            "a relay daemon waited {longest} for a processor on average: this machine was too \
             busy, and the run is not trustworthy; use fewer aggregators or proxies, or a less \
             busy machine"
        ),
    })
}

/// Largest mean wait of a trustworthy run. A message passes two daemons.
const WAIT: Duration = Duration::from_millis(1);

/// A folder for configurations and logs, in memory if the system has a file system for that: the
/// disk of this machine is not part of the scenario.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, EmulationError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        remove_stale(&base);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let created = fs::create_dir(&path);
        created.map_err(EmulationError::call(format!("creating the folder {}", path.display())))?;
        Ok(Self(path))
    }

    /// Writes a configuration in a folder of its own, and returns the path of the file.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, EmulationError> {
        let folder = self.0.join(name);
        let file = folder.join("relay.toml");
        fs::create_dir(&folder)
            .and_then(|()| fs::write(&file, text))
            .map_err(EmulationError::call(format!("writing {}", file.display())))?;
        Ok(file)
    }
}

/// First part of the names of folders; the number of the process follows.
const PREFIX: &str = "gridhaul-emu-";

/// Removes the folders of processes that were killed.
fn remove_stale(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let is_stale = process.is_some_and(|(process, _)| {
            process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists()
        });
        if is_stale {
            // Another user may own the folder.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The folder may be incomplete.
        let _ = fs::remove_dir_all(&self.0);
    }
}
