//! The backend: runs all sweep points and replications on several threads and combines them to one
//! answer.

use std::mem;
use std::num::NonZero;
use std::thread;

use gridhaul_core::tcp::{ecn_through_proxies, oversized_segments};
use gridhaul_scenario::answer::{Answer, PointRows, Run, StoppingRule, TimeBase};
use gridhaul_scenario::backend::{
    Backend, Progress, QueuedRun, RunError, RunQueue, Unsupported, external_loads,
};
use gridhaul_scenario::scenario::{Scenario, Transport};

use crate::aggregation::unsupported;
use crate::audit::{AuditError, LinkTotals, check_medium, directions_on};
use crate::build::{build, unsupported_attacks, unsupported_paths};
use crate::hybrid_router::unsupported_routers;
use crate::layout::Layout;
use crate::limitations;
use crate::managed_flow::unsupported_connections;
use crate::path_mtu::unsupported_path_mtu;
use crate::proxy;
use crate::world::World;

/// The packet simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sim {
    /// Threads for replications and sweep points; 0: one for each core. The answer does not depend
    /// on the number.
    pub threads: usize,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        let mut unsupported = unsupported_keys(scenario);
        unsupported.extend(external_loads(scenario));
        if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
        for point in &points {
            self.supports(&point.scenario).map_err(RunError::Unsupported)?;
        }
        let queue = RunQueue::new(points.len(), StoppingRule::of(scenario), progress);
        let execute = |run: &QueuedRun<'_>| {
            let scenario = &points[run.point].scenario;
            run_once(scenario, run.replication, progress, |thousandths| run.report(thousandths))
        };
        let ended = match queue.threads(self.available_threads()) {
            // Browsers have no threads, and one thread does not need another.
            1 => queue.work(execute),
            threads => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let pool = pool.map_err(|error| RunError::Machine(format!("threads: {error}")))?;
                pool.broadcast(|_| queue.work(execute)).into_iter().flatten().collect()
            }
        };
        let rows = |point: usize| Self::rows(&points[point].scenario);
        Answer::of_replications(scenario, self.name(), TimeBase::Virtual, &points, ended, rows)
    }
}

impl Sim {
    /// Simulates one replication of a point. After each part, `continues` gets the completed
    /// thousandths and decides whether to continue; if not, there is no result.
    ///
    /// # Errors
    /// A scenario that is not supported or not valid, or a run that violated an invariant.
    pub fn replication(
        scenario: &Scenario,
        replication: u32,
        progress: &dyn Progress,
        continues: impl Fn(u64) -> bool,
    ) -> Result<Option<Run>, RunError> {
        Self::default().supports(scenario).map_err(RunError::Unsupported)?;
        run_once(scenario, replication, progress, continues)
    }

    /// The rows of a point.
    ///
    /// # Errors
    /// The scenario is not valid.
    pub fn rows(scenario: &Scenario) -> Result<PointRows, RunError> {
        let layout = Layout::new(&scenario.with_floods())?;
        Ok(PointRows { flows: layout.answer_flows(), links: layout.directions.answer_rows() })
    }

    /// The number of threads that the machine or the caller permits.
    fn available_threads(self) -> usize {
        match self.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        }
    }
}

/// The keys that the simulator does not support, whether it runs a scenario or is stepped.
pub(crate) fn unsupported_keys(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = unsupported(scenario);
    unsupported.extend(proxy::unsupported(scenario));
    unsupported.extend(unsupported_attacks(scenario));
    unsupported.extend(oversized_segments(scenario));
    unsupported.extend(unsupported_path_mtu(scenario));
    unsupported.extend(ecn_through_proxies(scenario));
    unsupported.extend(captured_fragments(scenario));
    unsupported.extend(unsupported_connections(scenario));
    unsupported.extend(unsupported_routers(scenario));
    unsupported.extend(unsupported_paths(scenario));
    unsupported
}

/// Captures of links with fragments, which the simulator cannot write.
fn captured_fragments(scenario: &Scenario) -> Option<Unsupported> {
    let is_captured = scenario.has_mtu() && !scenario.record.pcap.is_empty();
    let has_datagrams = scenario.flow.values().any(|flow| flow.transport != Transport::Tcp);
    (is_captured && has_datagrams).then(|| Unsupported {
        key: "record.pcap".to_owned(),
        reason:
            "the simulator writes no fragments to captures; use backend `emu`, or remove `mtu` \
                 from the links"
                .to_owned(),
    })
}

/// Simulates one run. Returns `None` if `continues` has ended it early.
fn run_once(
    scenario: &Scenario,
    replication: u32,
    progress: &dyn Progress,
    continues: impl Fn(u64) -> bool,
) -> Result<Option<Run>, RunError> {
    let scenario = &*scenario.with_floods();
    let layout = Layout::new(scenario)?;
    let mut world = match build(scenario, &layout, replication, progress) {
        Err(RunError::Interrupted) => return Ok(None),
        built => built?,
    };
    if !world.run(continues)? {
        return Ok(None);
    }
    audit(&mut world, scenario, &layout, replication)?;
    let rows = world.rows(&layout);
    let taps = world.net.links.iter_mut().filter_map(|link| link.observer.tap.take());
    let captures = taps.map(|tap| tap.into_capture()).collect::<Result<_, _>>()?;
    let event_logs = mem::take(&mut world.event_logs).into_logs()?;
    let mut warnings = rows.warnings(scenario);
    warnings.extend(limitations::warnings(scenario, &rows));
    let reset = world.proxies.rows_reset_with_loss(&world.flows);
    warnings.extend(reset.map(|row| limitations::proxy_reset(&layout.flows[row as usize].0)));
    let close = world.counters.outage_ends.rows();
    warnings.extend(close.map(|row| limitations::outage_end(&layout.flows[row as usize].0)));
    warnings.extend(limitations::rows_after_end(scenario, &world.playbacks, |member| {
        &layout.flows[world.flows[member as usize].row as usize].0
    }));
    let series = world.take_recorder().map(|recorder| recorder.into_series()).transpose()?;
    let series = series.unwrap_or_default();
    Ok(Some(Run { rows, series, captures, event_logs, warnings, disturbed: false }))
}

/// Audits a finished run.
fn audit(
    world: &mut World,
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
) -> Result<(), RunError> {
    let failed = |entity: &str, violation| {
        let error = AuditError { replication, entity: entity.to_owned(), violation };
        RunError::Audit(Box::new(error))
    };
    let flow_name = |row: u32| layout.flows[row as usize].0.as_str();
    for (link, &row) in world.net.links.iter_mut().zip(layout.directions.row_of()) {
        let totals = LinkTotals {
            offered: link.account.offered,
            refused: link.account.refused,
            copies: link.direction.copies(),
            inside: link.direction.inside() as u64,
        };
        let name = &layout.directions.rows()[row as usize].0;
        link.observer.audit.finish(totals).map_err(|violation| failed(name, violation))?;
    }
    let end = world.counters.measured.end;
    for medium in layout.directions.media(scenario) {
        let directions = directions_on(&medium);
        let uses = directions
            .iter()
            .map(|&direction| world.net.links.entry_mut(direction).observer.audit.medium_use());
        let checked = check_medium(&medium, uses, end);
        let name = directions.first().map_or("", |&direction| {
            let row = layout.directions.row_of()[direction as usize];
            &layout.directions.rows()[row as usize].0
        });
        checked.map_err(|violation| failed(name, violation))?;
    }
    for (index, flow) in world.flows.iter().enumerate() {
        let audited = world.proxies.audit(index, flow);
        audited.map_err(|violation| failed(flow_name(flow.row), violation))?;
    }
    let audited = world.aggregators.audit(&world.flows);
    audited.map_err(|(row, violation)| failed(flow_name(row), violation))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Interrupted;

    impl Progress for Interrupted {
        fn advance(&self, _done: u64, _total: u64) {}

        fn is_interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn an_interruption_ends_the_building_of_members() {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n[link.l]\n\
                    from = \"a\"\nto = \"b\"\nboth = { rate = \"1 Mbit/s\" }\n[flow.f]\n\
                    from = \"a\"\nto = \"b\"\nload = \"bulk\"\n";
        let scenario = Scenario::from_toml(text, "a.toml").unwrap();
        let begins = |_| panic!("the run begins");
        assert!(run_once(&scenario, 0, &Interrupted, begins).unwrap().is_none());
    }
}
