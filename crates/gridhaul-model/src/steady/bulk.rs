//! Bulk flows and transfers of one scenario: what each takes, and whether the links can give it.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Estimate, Metric, Row, Scope};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Hop, Load, Scenario};
use gridhaul_scenario::units::Duration;

use super::course::Course;
use super::demand::{Demand, Limit};
use super::law::Law;
use super::slow_start::{TransferTime, transfer_time};
use super::way::direction;
use crate::rules::Rules;

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
pub fn answer_point(scenario: &Scenario, rules: Rules) -> Result<PointAnswer, Vec<Unsupported>> {
    let mut courses = Vec::new();
    let mut unsupported = Vec::new();
    for name in scenario.flow.keys() {
        match Course::of(scenario, name, rules) {
            Ok(course) => courses.push(course),
            Err(mut keys) => unsupported.append(&mut keys),
        }
    }
    if unsupported.is_empty() {
        unsupported = contended(scenario, &courses);
    }
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let key = |demand: &Demand<'_>| format!("flow.{}", demand.name);
    let slowest = courses.iter().map(|course| &course.pieces[course.slowest]);
    let laws = slowest.map(|piece| (key(piece), piece.law.title(), piece.limit.text())).collect();
    let mut notes = Vec::new();
    for piece in courses.iter().flat_map(|course| &course.pieces) {
        notes.extend(piece.notes.iter().map(|note| (key(piece), note.clone())));
    }
    // What holds for one piece of a flow mostly holds for the others.
    notes.sort();
    notes.dedup();
    let flows = courses.iter().map(flow_row).collect();
    Ok(PointAnswer { flows, links: link_rows(scenario, &courses), laws, notes })
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

fn carried<'d>(courses: &[Course<'d>]) -> BTreeMap<(usize, bool), Carried<'d>> {
    let mut links: BTreeMap<(usize, bool), Carried<'d>> = BTreeMap::new();
    for demand in courses.iter().flat_map(|course| &course.pieces) {
        let way = &demand.way;
        let acks = demand.arriving() / demand.segments_for_each_ack();
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
fn contended(scenario: &Scenario, courses: &[Course<'_>]) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for ((link, forward), carried) in carried(courses) {
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

fn flow_row(course: &Course<'_>) -> Row {
    let demand = course.first();
    let mut known: Vec<(Metric, Estimate)> = Vec::new();
    let mut set = |metric, value| known.push((metric, Estimate::exact(value, 1)));
    let (way, loss) = (&demand.way, demand.connection.loss);
    let connections = demand.connections as f64;
    let sent = demand.rate * connections;
    // Each segment that is sent arrives or is lost; what arrives is taken to be new.
    let arrived = course.arriving() * connections;
    let payload_bits = f64::from(demand.stack.mss) * 8.0;
    let segment_bits = way.segment_bytes * 8.0;
    let is_bulk = demand.flow.load == Load::Bulk;
    if is_bulk {
        let acks = demand.arriving() * connections / demand.segments_for_each_ack();
        set(Metric::Goodput, arrived * payload_bits);
        set(Metric::Throughput, arrived * segment_bits);
        set(Metric::ReverseThroughput, acks * way.ack_bytes * 8.0 * (1.0 - way.ack_loss()));
        set(Metric::OfferedLoad, sent * segment_bits);
    }
    if let Load::Transfer(transfer) = &demand.flow.load {
        let segments = transfer.size.get().div_ceil(u64::from(demand.stack.mss)).max(1) as f64;
        if let Some(time) = completion(course, segments) {
            let alone = demand.connections == 1;
            if alone || demand.flow.start_spread.is_some_and(Duration::is_zero) {
                set(Metric::Goodput, connections * transfer.size.get() as f64 * 8.0 / time);
            }
            set(Metric::CompletionTime, time);
            set(Metric::TransferRate, transfer.size.get() as f64 * 8.0 / time);
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
        set(Metric::SegmentLoss, course.loss());
        set(Metric::SegmentLossTotal, course.loss());
        let alone = course.pieces.len() == 1;
        if let Some(rtt_s) = demand.rtt_s.filter(|_| is_bulk && alone) {
            let queued = match demand.limit {
                Limit::Acknowledgements(_) => 0.0,
                _ => rtt_s - demand.connection.rtt_s,
            };
            set(Metric::SegmentDelayMean, way.out_s + queued);
            set(Metric::SegmentDelayTotal, way.out_s + queued);
        }
    }
    Row::new((demand.name.to_owned(), demand.connections), Scope::Flow, known)
}

/// How long a transfer takes. Through proxies: as long as over the slowest piece, and the way over
/// the others, which work at the same time.
fn completion(course: &Course<'_>, segments: f64) -> Option<f64> {
    let demand = &course.pieces[course.slowest];
    if demand.law == Law::SquareRoot {
        // The paper's throughput is that of the steady state, from the first segment on.
        return Some(segments / course.arriving());
    }
    let stack = &demand.stack;
    let transfer = TransferTime {
        segments,
        initial_window: f64::from(stack.initial_window) / f64::from(stack.mss),
        link: demand.way.narrowest().map_or(f64::INFINITY, |(rate, _)| rate),
        steady: demand.arriving(),
        out_s: demand.way.out_s,
        ack_loss: demand.way.ack_loss(),
        handshake_s: stack.handshake.then(|| stack.rto_initial.as_secs_f64()),
    };
    let others = course.pieces.iter().enumerate().filter(|(index, _)| *index != course.slowest);
    let handshakes = if stack.handshake { 1.0 } else { 0.0 };
    let way_s: f64 =
        others.map(|(_, piece)| piece.way.out_s + handshakes * piece.way.rtt_s()).sum();
    Some(transfer_time(&demand.connection, &transfer)? + way_s)
}

fn link_rows(scenario: &Scenario, courses: &[Course<'_>]) -> Vec<Row> {
    let carried = carried(courses);
    let is_steady = courses.iter().all(|course| course.first().flow.load == Load::Bulk);
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
