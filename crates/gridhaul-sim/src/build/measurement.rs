//! The measurements of a run: counters, and the recorder of time series.

use std::io;

use gridhaul_core::load::{CoapCounters, InProgress};
use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::{Direction, Directions, Load, Scenario, Transport};
use gridhaul_scenario::units::Instant;

use super::attacks::may_be_altered;
use super::deadline_checks;
use crate::counters::RunCounters;
use crate::duplicates::Duplicates;
use crate::flow::Flow;
use crate::layout::{Layout, members};
use crate::loss_cause::LossCauses;
use crate::managed_flow::RowConnections;
use crate::member_counters::MemberCounters;
use crate::outage_ends::OutageEnds;
use crate::recorder::Recorder;
use crate::subscriptions::subscriptions;

/// The counters of a run.
pub(super) fn counters(scenario: &Scenario, layout: &Layout, flows: &[Flow]) -> RunCounters {
    let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
    let datagrams = scenario.flow.values().any(|flow| flow.transport != Transport::Tcp);
    let indirect_payload = datagrams || !layout.aggregation.groups.is_empty();
    let indirect_payload = vec![0; if indirect_payload { flows.len() } else { 0 }];
    let loss_causes = LossCauses::new(flows, layout.flows.len());
    let mut counters = RunCounters::new(
        deadline_checks(scenario, layout),
        indirect_payload,
        loss_causes,
        warmup..end,
    );
    for (row, (name, flow)) in counters.in_progress.iter_mut().zip(&scenario.flow) {
        // The datagrams of a flood are no burst whose end is of interest.
        let is_burst = matches!(flow.load, Load::Burst(_)) && !scenario.attack.contains_key(name);
        *row = is_burst.then(InProgress::default);
    }
    for (row, flow) in counters.connections.iter_mut().zip(scenario.flow.values()) {
        let hosts = members(scenario, &flow.from, &flow.to);
        *row = RowConnections::of(flow, hosts, warmup..end);
    }
    for (row, flow) in counters.coap.iter_mut().zip(scenario.flow.values()) {
        *row = flow
            .confirmable()
            .map(|_| Box::new(CoapCounters::new(warmup..end, flow.dtls.is_some())));
    }
    let duplicates = |direction: &Direction| direction.duplicate.is_some();
    counters.duplicates = (datagrams && Directions::keys(scenario).any(duplicates))
        .then(|| Duplicates::new(layout.flows.len()));
    counters.outage_ends = OutageEnds::new(scenario);
    for (row, name) in counters.rows.iter_mut().zip(scenario.flow.keys()) {
        row.may_be_altered = may_be_altered(scenario, name);
    }
    counters.subscriptions = subscriptions(scenario, flows);
    counters.members = MemberCounters::new(scenario, flows.len());
    counters
}

/// The recorder of time series, if the scenario has a recording interval and records this
/// replication.
pub(super) fn recorder(
    scenario: &Scenario,
    replication: u32,
    layout: &Layout,
    (flows, starts): (&[Flow], &[Instant]),
    progress: &dyn Progress,
) -> io::Result<Option<Recorder>> {
    let recorded = scenario.record.interval_of(replication);
    let Some(interval) = recorded else { return Ok(None) };
    let names = |rows: &[(String, u64)]| rows.iter().map(|(name, _)| name.clone()).collect();
    let mut firsts = vec![(0, Instant::ZERO); layout.flows.len()];
    for (index, (flow, &start)) in flows.iter().zip(starts).enumerate().rev() {
        // A connection that a recorded trace opens is sampled from the start.
        let start = if start == Instant::NEVER { Instant::ZERO } else { start };
        firsts[flow.row as usize] = (index as u32, start);
    }
    let links = (names(layout.directions.rows()), layout.directions.row_of().to_vec());
    let file = progress.recording_file()?;
    Ok(Some(Recorder::new(interval, (names(&layout.flows), firsts), links, file.as_ref())))
}
