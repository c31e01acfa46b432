//! Bulk flows and transfers of one scenario: what each takes, and whether the links can give it.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Estimate, Metric, Row};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Hop, Load, Scenario};
use indexmap::IndexMap;

use super::demand::{Demand, Limit};
use super::law::Law;
use super::slow_start::{TransferTime, transfer_time};
use super::way::direction;

/// What the formulas say about one point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct PointAnswer {
    /// One row for each flow.
    pub flows: Vec<Row>,
    /// One row for each direction of each link.
    pub links: Vec<Row>,
    /// For each flow: its key, the name of the formula, and what limits the flow.
    pub laws: Vec<(String, &'static str, String)>,
    /// What a reader must know: a key, and the message.
    pub notes: Vec<(String, String)>,
}

/// Answers one point of a sweep by formulas.
///
/// # Errors
/// Each key for which there is no formula.
pub fn answer_point(scenario: &Scenario) -> Result<PointAnswer, Vec<Unsupported>> {
    let mut demands = Vec::new();
    let mut unsupported = Vec::new();
    for name in scenario.flow.keys() {
        match Demand::of(scenario, name) {
            Ok(demand) => demands.push(demand),
            Err(mut keys) => unsupported.append(&mut keys),
        }
    }
    if unsupported.is_empty() {
        unsupported = contended(scenario, &demands);
    }
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let key = |demand: &Demand<'_>| format!("flow.{}", demand.name);
    let laws = demands
        .iter()
        .map(|demand| (key(demand), demand.law.title(), demand.limit.text()))
        .collect();
    let notes = demands
        .iter()
        .flat_map(|demand| demand.notes.iter().map(|note| (key(demand), note.clone())))
        .collect();
    let flows = demands.iter().map(flow_row).collect();
    Ok(PointAnswer { flows, links: link_rows(scenario, &demands), laws, notes })
}

/// What all flows together put on one direction of one link.
#[derive(Debug, Default)]
struct Carried<'d> {
    /// Bits a second that are offered to one such link.
    offered: f64,
    flows: Vec<&'d str>,
    /// A flow that takes all that is left.
    is_filled: bool,
}

fn carried<'d>(demands: &[Demand<'d>]) -> BTreeMap<(usize, bool), Carried<'d>> {
    let mut links: BTreeMap<(usize, bool), Carried<'d>> = BTreeMap::new();
    for demand in demands {
        let way = &demand.way;
        let arriving = demand.rate * (1.0 - demand.connection.loss);
        let acks = arriving / demand.segments_for_each_ack();
        let sides = [(&way.out, demand.rate, way.segment_bytes), (&way.back, acks, way.ack_bytes)];
        for (hops, mut rate, bytes) in sides {
            for hop in hops {
                let carried = links.entry((hop.hop.link, hop.hop.forward)).or_default();
                carried.offered += rate * hop.sharers * bytes * 8.0;
                carried.flows.push(demand.name);
                carried.is_filled |= demand.limit.fills(&hop.key);
                rate *= 1.0 - hop.loss;
            }
        }
    }
    links
}

/// Links that different flows want more of than there is. Equal flows share evenly; how unequal
/// ones do has no formula that holds for all variants, round trips and queues.
fn contended(scenario: &Scenario, demands: &[Demand<'_>]) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for ((link, forward), carried) in carried(demands) {
        let (key, direction) = direction(scenario, Hop { link, forward });
        let rate = direction.rate.as_bits_per_sec() as f64;
        let is_over = carried.is_filled || carried.offered > rate * (1.0 + 1e-9);
        if is_over && carried.flows.len() > 1 {
            unsupported.push(Unsupported {
                key: format!("{key}.rate"),
                reason: format!(
                    "the flows {} together fill this link, and no formula says how different \
                     flows share it; ask `--on sim`",
                    carried.flows.join(", ")
                ),
            });
        }
    }
    unsupported
}

fn flow_row(demand: &Demand<'_>) -> Row {
    let mut metrics = IndexMap::new();
    let mut set = |metric, value: f64| {
        metrics.insert(metric, Estimate { mean: Some(value), ci95: None, n: 1 });
    };
    let (way, loss) = (&demand.way, demand.connection.loss);
    let connections = demand.connections as f64;
    let sent = demand.rate * connections;
    // Each segment that is sent arrives or is lost; what arrives is taken to be new.
    let arrived = sent * (1.0 - loss);
    let payload_bits = f64::from(demand.stack.mss) * 8.0;
    let segment_bits = way.segment_bytes * 8.0;
    let is_bulk = demand.flow.load == Load::Bulk;
    if is_bulk {
        let acks = arrived / demand.segments_for_each_ack();
        set(Metric::Goodput, arrived * payload_bits);
        set(Metric::Throughput, arrived * segment_bits);
        set(Metric::ReverseThroughput, acks * way.ack_bytes * 8.0 * (1.0 - way.ack_loss()));
        set(Metric::OfferedLoad, sent * segment_bits);
    }
    if let Load::Transfer(transfer) = &demand.flow.load {
        let segments = transfer.size.get().div_ceil(u64::from(demand.stack.mss)).max(1) as f64;
        if let Some(time) = completion(demand, segments) {
            set(Metric::CompletionTime, time);
        }
    }
    if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk) {
        set(Metric::RttMean, rtt_s);
        if demand.law == Law::Cubic && demand.limit == Limit::Loss {
            // Little's law: what is out is the rate times the round trip.
            set(Metric::CwndMean, demand.rate * rtt_s * f64::from(demand.stack.mss));
        }
    }
    if !matches!(demand.law, Law::Sawtooth | Law::FullLink) {
        // Every lost segment is sent again, and no other.
        set(Metric::RetransmissionRatio, loss);
        set(Metric::SegmentLoss, loss);
        set(Metric::SegmentLossTotal, loss);
        if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk) {
            let queued = match demand.limit {
                Limit::Acknowledgements(_) => 0.0,
                _ => rtt_s - demand.connection.rtt_s,
            };
            set(Metric::SegmentDelayMean, way.out_s + queued);
            set(Metric::SegmentDelayTotal, way.out_s + queued);
        }
    }
    metrics.sort_keys();
    Row { name: demand.name.to_owned(), count: demand.connections, metrics }
}

fn completion(demand: &Demand<'_>, segments: f64) -> Option<f64> {
    let stack = &demand.stack;
    let transfer = TransferTime {
        segments,
        initial_window: f64::from(stack.initial_window) / f64::from(stack.mss),
        link: demand.way.narrowest().map_or(f64::INFINITY, |(rate, _)| rate),
        steady: demand.rate * (1.0 - demand.connection.loss),
        out_s: demand.way.out_s,
        ack_loss: demand.way.ack_loss(),
        handshake_s: stack.handshake.then(|| stack.rto_initial.as_secs_f64()),
    };
    transfer_time(&demand.connection, &transfer)
}

fn link_rows(scenario: &Scenario, demands: &[Demand<'_>]) -> Vec<Row> {
    let carried = carried(demands);
    let is_steady = demands.iter().all(|demand| demand.flow.load == Load::Bulk);
    let mut rows = Vec::new();
    for (index, (name, link)) in scenario.link.iter().enumerate() {
        let members = scenario.link_members(link);
        let sides = [("forward", true, link.forward()), ("backward", false, link.backward())];
        for (side, forward, direction) in sides {
            let Some(direction) = direction else { continue };
            let offered = carried.get(&(index, forward)).map_or(0.0, |carried| carried.offered);
            let mut metrics = IndexMap::new();
            if is_steady {
                let used = offered / direction.rate.as_bits_per_sec() as f64;
                let known = Estimate { mean: Some(used), ci95: None, n: 1 };
                metrics.insert(Metric::Utilisation, known);
            }
            rows.push(Row { name: format!("{name}.{side}"), count: u64::from(members), metrics });
        }
    }
    rows
}
