//! Throughput of the bulk flows and transfers of one scenario, and the load of its links.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Estimate, Metric, Row, Scope};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Hop, Load, Scenario};
use gridhaul_scenario::units::Duration;

use super::completion::Completion;
use super::connection_chain::ConnectionChain;
use super::cubic_cycles::CubicCycles;
use super::demand::{Bottleneck, Demand};
use super::path::direction;
use super::throughput_law::ThroughputLaw;
use crate::model_rules::ModelRules;

/// The result of the formulas for one point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct PointAnswer {
    /// One row for each flow.
    pub flows: Vec<Row>,
    /// One row for each direction of each link.
    pub links: Vec<Row>,
    /// For each flow: its key, the name of the formula, and the bottleneck.
    pub laws: Vec<(String, &'static str, String)>,
    /// Warnings: a key and the message.
    pub notes: Vec<(String, String)>,
}

/// Answers one point of a sweep by formulas.
///
/// # Errors
/// Each key for which there is no formula.
pub fn answer_point(
    scenario: &Scenario,
    rules: ModelRules,
) -> Result<PointAnswer, Vec<Unsupported>> {
    let mut chains = Vec::new();
    let mut unsupported = Vec::new();
    for name in scenario.flow.keys() {
        match ConnectionChain::of(scenario, name, rules) {
            Ok(chain) => chains.push(chain),
            Err(mut keys) => unsupported.append(&mut keys),
        }
    }
    if unsupported.is_empty() {
        unsupported = contended(scenario, &chains);
    }
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let key = |demand: &Demand<'_>| format!("flow.{}", demand.name);
    let slowest = chains.iter().map(|chain| &chain.split_connections[chain.slowest]);
    let laws = slowest
        .map(|split_connection| {
            let (law, limit) = split_connection.law_and_limit();
            (key(split_connection), law, limit)
        })
        .collect();
    let mut notes = Vec::new();
    for split_connection in chains.iter().flat_map(|chain| &chain.split_connections) {
        notes.extend(
            split_connection.notes.iter().map(|note| (key(split_connection), note.clone())),
        );
    }
    let completions: Vec<_> =
        chains.iter().map(|chain| Completion::of(scenario, chain, rules)).collect();
    for (chain, completion) in chains.iter().zip(&completions) {
        let note = completion.as_ref().and_then(|completion| completion.note.clone());
        notes.extend(note.map(|note| (key(chain.first()), note)));
    }
    // The connections of one flow mostly share their notes.
    notes.sort();
    notes.dedup();
    let rows = chains.iter().zip(&completions);
    let flows = rows.map(|(chain, completion)| flow_row(chain, completion.as_ref())).collect();
    Ok(PointAnswer { flows, links: link_rows(scenario, &chains), laws, notes })
}

/// The load of all flows on one direction of one link.
#[derive(Debug, Default)]
struct LinkLoad<'d> {
    /// Offered load of one such link, in bit/s.
    offered: f64,
    flows: Vec<&'d str>,
    /// Whether a flow takes all remaining capacity.
    is_filled: bool,
}

fn carried<'d>(chains: &[ConnectionChain<'d>]) -> BTreeMap<(usize, bool), LinkLoad<'d>> {
    let mut links: BTreeMap<(usize, bool), LinkLoad<'d>> = BTreeMap::new();
    for demand in chains.iter().flat_map(|chain| &chain.split_connections) {
        let path = &demand.path;
        let acks = demand.arriving() / demand.segments_per_ack();
        let sides = [
            (&path.forward, demand.rate, path.segment_bytes),
            (&path.reverse, acks, path.ack_bytes),
        ];
        for (hops, mut rate, bytes) in sides {
            for hop in hops {
                let carried = links.entry((hop.hop.link, hop.hop.forward)).or_default();
                carried.offered += rate * hop.sharers * bytes * 8.0;
                carried.flows.push(demand.name);
                carried.is_filled |= demand.limit.saturates(&hop.key);
                rate *= 1.0 - hop.loss;
            }
        }
    }
    links
}

/// Links whose capacity is contended by different flows. Equal flows share evenly; for unequal
/// flows there is no formula that holds for all congestion control algorithms, round-trip times and
/// queues.
fn contended(scenario: &Scenario, chains: &[ConnectionChain<'_>]) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for ((link, forward), carried) in carried(chains) {
        let (key, direction) = direction(scenario, Hop { link, forward });
        let rate = direction.rate.as_bits_per_sec() as f64;
        let is_over = carried.is_filled || carried.offered > rate * (1.0 + 1e-9);
        if is_over && carried.flows.len() > 1 {
            unsupported.push(Unsupported {
                key: format!("{key}.rate"),
                reason: format!(
                    "the flows {} together saturate this link, and no formula gives their \
                        shares; use backend `sim`",
                    carried.flows.join(", ")
                ),
            });
        }
    }
    unsupported
}

fn flow_row(chain: &ConnectionChain<'_>, completion: Option<&Completion>) -> Row {
    let demand = chain.first();
    let mut known: Vec<(Metric, Estimate)> = Vec::new();
    let mut set = |metric, value| known.push((metric, Estimate::exact(value, 1)));
    let (path, loss) = (&demand.path, demand.connection.loss);
    let connections = demand.connections as f64;
    let sent = demand.rate * connections;
    // Each segment that is sent arrives or is lost; arriving segments are assumed to be new data.
    let arrived = chain.arriving() * connections;
    let payload_bits = f64::from(demand.stack.mss) * 8.0;
    let segment_bits = path.segment_bytes * 8.0;
    let is_bulk = demand.flow.load == Load::Bulk;
    if is_bulk {
        let acks = demand.arriving() * connections / demand.segments_per_ack();
        set(Metric::Goodput, arrived * payload_bits);
        set(Metric::Throughput, arrived * segment_bits);
        set(Metric::ReverseThroughput, acks * path.ack_bytes * 8.0 * (1.0 - path.ack_loss()));
        set(Metric::OfferedLoad, sent * segment_bits);
    }
    if let Load::Transfer(transfer) = &demand.flow.load
        && let Some(completion) = completion
    {
        let bits = transfer.size.get() as f64 * 8.0;
        let is_single = demand.connections == 1;
        if let Some(mean_s) = completion.mean_s {
            if is_single || demand.flow.start_spread.is_some_and(Duration::is_zero) {
                set(Metric::Goodput, connections * bits / completion.last_s);
            }
            set(Metric::CompletionTime, mean_s);
            set(Metric::TransferRate, bits / mean_s);
        }
    }
    if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk) {
        set(Metric::RttMean, rtt_s);
        if demand.law == ThroughputLaw::Cubic && demand.limit == Bottleneck::Loss {
            let cycles = CubicCycles::new(rtt_s, loss, demand.connection.window);
            set(Metric::CwndMean, cycles.rate * rtt_s * f64::from(demand.stack.mss));
        }
    }
    if !matches!(demand.law, ThroughputLaw::Sawtooth | ThroughputLaw::FullLink) {
        // Every lost segment is retransmitted, and no other segment.
        set(Metric::RetransmissionRatio, loss);
        set(Metric::SegmentLoss, chain.loss());
        set(Metric::SegmentLossTotal, chain.loss());
        let is_single = chain.split_connections.len() == 1;
        if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk && is_single) {
            let queued = match demand.limit {
                Bottleneck::Acknowledgements(_) => 0.0,
                _ => rtt_s - demand.connection.rtt_s,
            };
            set(Metric::SegmentDelayMean, path.forward_s + queued);
            set(Metric::SegmentDelayTotal, path.forward_s + queued);
        }
    }
    Row::new((demand.name.to_owned(), demand.connections), Scope::Flow, known)
}

fn link_rows(scenario: &Scenario, chains: &[ConnectionChain<'_>]) -> Vec<Row> {
    let carried = carried(chains);
    let is_steady = chains.iter().all(|chain| chain.first().flow.load == Load::Bulk);
    let mut rows = Vec::new();
    for (index, (name, link)) in scenario.link.iter().enumerate() {
        let members = scenario.link_members(link);
        let sides = [("forward", true, link.forward()), ("reverse", false, link.reverse())];
        for (side, forward, direction) in sides {
            let Some(direction) = direction else { continue };
            let offered = carried.get(&(index, forward)).map_or(0.0, |carried| carried.offered);
            let used = offered / direction.rate.as_bits_per_sec() as f64;
            let known = is_steady.then(|| (Metric::Utilisation, Estimate::exact(used, 1)));
            let named = (format!("{name}.{side}"), u64::from(members));
            rows.push(Row::new(named, Scope::Link, known));
        }
    }
    rows
}
