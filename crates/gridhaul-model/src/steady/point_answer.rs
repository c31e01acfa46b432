//! Throughput of the bulk flows and transfers of one scenario, and the load of its links.

use std::collections::BTreeMap;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::answer::{Estimate, Metric, Row, Scope};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Hop, Load, Scenario};
use gridhaul_scenario::units::{Bytes, Duration};

use super::connection_chain::ConnectionChain;
use super::cubic::cubic_window;
use super::demand::{Bottleneck, Demand};
use super::path::direction;
use super::slow_start::{
    Handshake, TransferTime, WindowGrowth, begins_with_one_segment, handshake_time, transfer_time,
};
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
    // The connections of one flow mostly share their notes.
    notes.sort();
    notes.dedup();
    let flows = chains.iter().map(flow_row).collect();
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

fn flow_row(chain: &ConnectionChain<'_>) -> Row {
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
        && let Some(time) = completion(chain, transfer.size)
    {
        let is_single = demand.connections == 1;
        if is_single || demand.flow.start_spread.is_some_and(Duration::is_zero) {
            set(Metric::Goodput, connections * transfer.size.get() as f64 * 8.0 / time);
        }
        set(Metric::CompletionTime, time);
        set(Metric::TransferRate, transfer.size.get() as f64 * 8.0 / time);
    }
    if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk) {
        set(Metric::RttMean, rtt_s);
        if demand.law == ThroughputLaw::Cubic && demand.limit == Bottleneck::Loss {
            let window = cubic_window(rtt_s, loss).0.min(demand.connection.window);
            set(Metric::CwndMean, window * f64::from(demand.stack.mss));
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

/// Completion time of a transfer. Through proxies: the time over the slowest connection plus the
/// one-way delay of the others, which work in parallel.
fn completion(chain: &ConnectionChain<'_>, size: Bytes) -> Option<f64> {
    let demand = &chain.split_connections[chain.slowest];
    let mss = u64::from(demand.stack.mss);
    let segments = size.get().div_ceil(mss).max(1);
    let last = size.get() - (segments - 1) * mss;
    let segments = segments as f64;
    if demand.law == ThroughputLaw::SquareRoot {
        // The paper assumes steady-state throughput from the first segment on.
        return Some(segments / chain.arriving());
    }
    let transfer = TransferTime {
        segments,
        initial_window: initial_window(demand),
        growth: WindowGrowth::of(&demand.stack),
        link: demand.path.bottleneck().map_or(f64::INFINITY, |(rate, _)| rate),
        steady: demand.arriving(),
        forward_s: demand.path.last_segment_s(segments, last as f64),
        ack_loss: demand.path.ack_loss(),
        handshake: handshake(demand).filter(|_| chain.split_connections.len() == 1),
    };
    let others =
        chain.split_connections.iter().enumerate().filter(|(index, _)| *index != chain.slowest);
    let path_s: f64 = others.map(|(_, split_connection)| split_connection.path.forward_s).sum();
    let time_s = transfer_time(&demand.connection, &transfer)?
        + first_ack_s(&demand.stack, &transfer)
        + path_s;
    let is_split = chain.split_connections.len() > 1;
    Some(time_s + if is_split { opening_s(chain, time_s - path_s) } else { 0.0 })
}

/// Time in seconds that the data wait for connections of a chain to open. `transfer_s` is the time
/// over the slowest connection.
fn opening_s(chain: &ConnectionChain<'_>, transfer_s: f64) -> f64 {
    let established_s = established_s(chain);
    let (mut arrived_s, mut moving_s) = (0.0_f64, 0.0);
    for (index, demand) in chain.split_connections.iter().enumerate() {
        let time_s = if index == chain.slowest { transfer_s } else { demand.path.forward_s };
        arrived_s = arrived_s.max(established_s[index]) + time_s;
        moving_s += time_s;
    }
    arrived_s - moving_s
}

/// Times at which the connections of a chain are established, in seconds. A split proxy accepts SYN
/// at once, and sends its own SYN to the next hop at the same time; a reflecting one forwards SYN
/// and SYN-ACK.
fn established_s(chain: &ConnectionChain<'_>) -> Vec<f64> {
    let mut established = Vec::new();
    let (mut syn_s, mut since) = (0.0, 0);
    for (index, demand) in chain.split_connections.iter().enumerate() {
        if chain.reflects.get(index) == Some(&true) {
            continue;
        }
        let joined = &chain.split_connections[since..=index];
        let opening_s = |demand: &Demand<'_>| {
            handshake_time(&demand.connection, demand.path.ack_loss(), handshake(demand))
        };
        let opened_s = syn_s + joined.iter().map(opening_s).sum::<f64>();
        established.extend(joined.iter().map(|_| opened_s));
        if demand.stack.handshake {
            let forward_s = joined.iter().map(|demand| demand.path.forward_without_payload_s());
            syn_s += forward_s.sum::<f64>();
        }
        since = index + 1;
    }
    established
}

fn handshake(demand: &Demand<'_>) -> Option<Handshake> {
    demand.stack.handshake.then(|| Handshake {
        rtt_s: demand.path.rtt_without_payload_s(),
        timeout_s: demand.stack.rto_initial.as_secs_f64(),
    })
}

/// Initial congestion window, in segments.
fn initial_window(demand: &Demand<'_>) -> f64 {
    let stack = &demand.stack;
    match stack.congestion_control {
        CongestionControlAlgorithm::Fixed => demand.connection.window,
        _ if begins_with_one_segment(stack) => 1.0,
        _ => f64::from(stack.initial_window) / f64::from(stack.mss),
    }
}

/// Time in seconds that the receiver delays the acknowledgement of the first round, if the round
/// has fewer segments than an acknowledgement covers (Cardwell et al., section 2.5).
fn first_ack_s(stack: &StackParams, transfer: &TransferTime) -> f64 {
    let initial = transfer.initial_window;
    let waits = initial < f64::from(stack.ack_every) && initial < transfer.segments;
    let delays = waits && stack.quick_ack == 0 && stack.receive_window > stack.mss;
    if delays { stack.delayed_ack.as_secs_f64() } else { 0.0 }
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
