//! Messages for rejected runs: the key, the estimate, the limit and the remedy.

use anyhow::anyhow;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::counted;

use super::RunEstimate;
use super::workload::{backlog, transits};

pub(super) const IGNORE_HINT: &str = "--ignore-estimate starts the run anyway";

/// Message for a run that exceeds the free memory; `part` is the index of its largest part, in the
/// order of [`RunEstimate::check_memory`].
pub(super) fn memory_error(
    estimate: &RunEstimate<'_>,
    part: usize,
    bytes: f64,
    free: f64,
) -> anyhow::Error {
    let scenario = estimate.scenario;
    let (key, remedy) = match part {
        0 => (connections(scenario), "lower `count` of the flow or of its nodes"),
        1 => {
            (links(scenario), "lower `count` of the node, or let its members use one `shared` link")
        }
        2 => (format!("replications = {}", scenario.replications), "lower `replications`"),
        3 => (sweep(estimate), "sweep fewer values"),
        4 => {
            ("record.interval".to_owned(), "choose a longer interval (`--series`), or fewer points")
        }
        5 => ("record.pcap".to_owned(), "capture fewer links, or fewer points"),
        _ => (
            overloaded(scenario),
            "the load exceeds the capacity of the route, and the messages wait: lower the load, or \
             raise `rate` of the slowest link",
        ),
    };
    anyhow!(
        "{key}: the run is estimated to need {:.1} GB of memory; {:.1} GB are free\n  \
         help: {remedy}; {IGNORE_HINT}",
        bytes / 1e9,
        free / 1e9,
    )
}

/// Message for a run that exceeds the time limit.
pub(super) fn time_error(estimate: &RunEstimate<'_>, seconds: f64, limit: f64) -> anyhow::Error {
    let scenario = estimate.scenario;
    let one = seconds / (estimate.points * estimate.replications);
    let (key, remedy) = if one > limit {
        longest(estimate)
    } else if estimate.replications >= estimate.points {
        (format!("replications = {}", scenario.replications), "lower `replications`")
    } else {
        (sweep(estimate), "sweep fewer values")
    };
    anyhow!(
        "{key}: the run is estimated to take {} ({} × {} × {}); the limit is {}\n  \
         help: {remedy}; {IGNORE_HINT}, and Ctrl-C keeps the finished results",
        time(seconds),
        counted(estimate.points as u64, "point"),
        counted(estimate.replications as u64, "replication"),
        time(one),
        time(limit),
    )
}

/// The key that makes a single replication long.
fn longest(estimate: &RunEstimate<'_>) -> (String, &'static str) {
    let scenario = estimate.scenario;
    if estimate.largest.connections > estimate.largest.seconds {
        return (connections(scenario), "lower `count` of the flow or of its nodes, or `duration`");
    }
    (format!("duration = \"{}\"", scenario.duration), "choose a shorter `duration`")
}

/// The flow with the most connections or, if equal, the most packets.
fn connections(scenario: &Scenario) -> String {
    let maximum = scenario.flow.iter().max_by(|(a, one), (b, other)| {
        let by_count = scenario.connections(one).cmp(&scenario.connections(other));
        by_count.then(transits(scenario, a, one).total_cmp(&transits(scenario, b, other)))
    });
    maximum.map_or_else(String::new, |(name, flow)| {
        format!("flow.{name}: {}", counted(scenario.connections(flow), "connection"))
    })
}

/// The flow with the largest backlog.
fn overloaded(scenario: &Scenario) -> String {
    let backlogs = scenario.flow.iter().map(|(name, flow)| (name, backlog(scenario, name, flow)));
    let maximum = backlogs.max_by(|(_, one), (_, other)| one.total_cmp(other));
    maximum.map_or_else(String::new, |(name, _)| format!("flow.{name}"))
}

/// The node whose members have the most links.
fn links(scenario: &Scenario) -> String {
    let maximum = scenario.link.values().max_by_key(|link| scenario.link_members(link));
    let ends = maximum.into_iter().flat_map(|link| [&link.from, &link.to]);
    let count = |name: &str| scenario.node.get(name).map_or(1, |node| node.count);
    ends.max_by_key(|name| count(name))
        .map_or_else(String::new, |name| format!("node.{name}.count = {}", count(name)))
}

fn sweep(estimate: &RunEstimate<'_>) -> String {
    format!("sweep: {}", counted(estimate.points as u64, "point"))
}

/// A time in a suitable unit.
pub(crate) fn time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    // A unit is used from twice its size on, so that 90 s stay seconds; hours already from one on.
    match UNITS
        .iter()
        .find(|(unit, _)| seconds >= 2.0 * unit || *unit == 3600.0 && seconds >= 3600.0)
    {
        Some((unit, name)) if seconds / unit >= 100.0 => {
            format!("{:.0e} {name}", seconds / unit)
        }
        Some((unit, name)) => format!("{:.0} {name}", seconds / unit),
        None if seconds >= 10.0 => format!("{seconds:.0} s"),
        None => format!("{seconds:.1e} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_suitable_unit() {
        assert_eq!(time(43_200.0), "12 h");
        assert_eq!(time(86_400.0), "24 h");
        assert_eq!(time(864_000.0), "10 days");
        assert_eq!(time(3e13), "1e6 years");
        assert_eq!(time(90.0), "90 s");
        assert_eq!(time(0.00012), "1.2e-4 s");
    }
}
