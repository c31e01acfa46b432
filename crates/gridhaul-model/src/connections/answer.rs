//! The answer about flows whose connections open and close.

use gridhaul_scenario::answer::{
    Answer, DeadlineCheck, Estimate, Metric, Point, Row, Scope, Warning,
};
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use super::exchange::Transmissions;
use super::queues::{FlowLoad, LinkQueue, Network};
use super::unsupported;
use crate::model_rules::ModelRules;
use crate::nagle;
use crate::points::answer_points;

/// Answers all points.
///
/// # Errors
/// A scenario that is not valid or not supported.
pub(crate) fn answer(
    scenario: &Scenario,
    rules: ModelRules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    answer_points(scenario, progress, |answer, point| {
        let refused = unsupported(&point.scenario, rules);
        if !refused.is_empty() {
            return Err(RunError::Unsupported(refused));
        }
        let network = Network::new(&point.scenario)
            .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))?;
        add(answer, point, &network);
        Ok(())
    })
}

fn add(answer: &mut Answer, point: &ScenarioPoint, network: &Network) {
    for flow in &network.flows {
        if network.utilisation(flow) >= 1.0 {
            let message = "the messages need more than the capacity of a link: the goodput is that \
                           of the saturated link, and delays grow without bound";
            let about = format!("flow.{}", flow.name);
            answer.warnings.push(Warning { about, message: message.to_owned() });
        } else if network.occupation(flow) >= 1.0 {
            let message = format!(
                "the connection of a message takes {:.1} s, longer than the time between the \
                 messages of a device, which opens one connection after another: the goodput is \
                 that of these connections, and delays grow without bound",
                network.occupied_s(flow)
            );
            answer.warnings.push(Warning { about: format!("flow.{}", flow.name), message });
        }
    }
    answer.warnings.extend(network.flows.iter().flat_map(|flow| warnings(network, flow)));
    let flows: Vec<Row> =
        network.flows.iter().map(|flow| flow_row(&point.scenario, network, flow)).collect();
    let deadlines = network.flows.iter().filter_map(|flow| {
        let deadline = point.scenario.flow[&flow.name].effective_deadline()?;
        Some(DeadlineCheck::of_deadline(&flow.name, deadline, None))
    });
    answer.points.push(Point {
        parameters: point.parameters.clone(),
        numbers: point.numbers.clone(),
        deterministic: true,
        replications: None,
        disturbed: 0,
        deadline_checks: deadlines.collect(),
        delays: network.flows.iter().map(|flow| (flow.name.clone(), None)).collect(),
        labels: point.labels.clone(),
        flows,
        links: network.queues.iter().map(link_row).collect(),
        members: Vec::new(),
    });
}

/// Utilisation of a link from which a warning is given.
const USED_MAX: f64 = 0.7;

/// Warnings about what the rounds of a connection exclude.
fn warnings(network: &Network, flow: &FlowLoad) -> Vec<Warning> {
    let exchange = &flow.exchange;
    let mut messages = Vec::new();
    let timeouts = network.syn_timeouts(flow);
    if timeouts > 0 {
        messages.push(
            "the handshake takes longer than `rto_initial`, so that each SYN is retransmitted, and \
             the connection may begin with a window of one segment: the equations exclude this; \
             enlarge `rto_initial`, or use backend `sim`"
                .to_owned(),
        );
    } else if let Some(early) = network.early_timeout(flow) {
        messages.push(format!(
            "the first acknowledgement of a flight arrives after {:.2} s, later than the timer of \
             its sender ({:.2} s) on a new connection, which retransmits segments that are not \
             lost: the equations exclude this, and the load of the links, up to twice as high, and \
             the waits that it causes are too low; use backend `sim`",
            early.acknowledged_s, early.timeout_s
        ));
    }
    let mut flights = exchange.opened.flights.iter().chain(&exchange.plain.flights);
    let has_rounds = flights.any(|flight| flight.segments as f64 > flight.window);
    if has_rounds && flow.windows.delays_acknowledgements() {
        messages.push(
            "a message takes several round trips, in which the receiver may delay the \
             acknowledgement of the last segment: the equations exclude this; use backend `sim`"
                .to_owned(),
        );
    }
    let used = network.utilisation(flow);
    if (USED_MAX..1.0).contains(&used) {
        messages.push(format!(
            "a link is used for {:.0} % of the time: packets of the same message meet in its \
             queues, which the equations exclude, and delays can be a tenth too short; use backend \
             `sim`",
            used * 100.0
        ));
    }
    messages.extend(nagle::warning(network.delayed_by_nagle(flow)));
    let warning = |message| Warning { about: format!("flow.{}", flow.name), message };
    messages.into_iter().map(warning).collect()
}

fn flow_row(scenario: &Scenario, network: &Network, flow: &FlowLoad) -> Row {
    let exchange = &flow.exchange;
    // A saturated link carries what fits, and a device what its connections do.
    let used = match network.utilisation(flow) {
        used if used < 1.0 => network.occupation(flow),
        used => used,
    };
    let carried = 1.0 / used.max(1.0);
    let per_s = flow.messages_per_s * flow.connections as f64;
    let times = |packets: &Transmissions| -> Vec<f64> {
        packets.flights.iter().map(|flight| network.flight_s(flow, flight)).collect()
    };
    let opened_s = times(&exchange.opened);
    let connect_s: f64 = opened_s.iter().take(exchange.flights_to_connect).sum();
    let plain_s: f64 = times(&exchange.plain).iter().sum();
    let delay_s = network.wait_at_device_s(flow)
        + exchange.opening * opened_s.iter().sum::<f64>()
        + (1.0 - exchange.opening) * plain_s;
    let messages = per_s * scenario.duration.saturating_sub(scenario.warmup).as_secs_f64();
    let opened = per_s * scenario.duration.as_secs_f64() * exchange.opening;
    let mut metrics = vec![
        (Metric::Goodput, per_s * carried * flow.payload * 8.0),
        (Metric::Throughput, per_s * carried * exchange.bytes(0) * 8.0),
        (Metric::ReverseThroughput, per_s * carried * exchange.bytes(1) * 8.0),
        (Metric::MessagesDue, messages),
        (Metric::DelayMean, delay_s),
    ];
    if exchange.opening > 0.0 {
        metrics.extend([
            (Metric::ConnectionsOpened, opened * carried),
            (Metric::ConnectTimeMean, connect_s),
        ]);
    }
    if exchange.tls_bytes > 0.0 {
        metrics.extend([
            (Metric::TlsHandshakes, opened * carried * (1.0 - exchange.resumed)),
            (Metric::TlsResumptions, opened * carried * exchange.resumed),
            (Metric::TlsHandshakeBytes, opened * carried * exchange.tls_bytes),
        ]);
    }
    Row::new((flow.name.clone(), flow.connections), Scope::Flow, known(&metrics))
}

fn link_row(queue: &LinkQueue) -> Row {
    let busy = queue.utilisation.min(1.0);
    let metrics = [
        (Metric::LinkThroughput, busy * queue.bits_per_s * queue.count as f64),
        (Metric::Utilisation, busy),
        (Metric::LossRatio, if queue.utilisation < 1.0 { 0.0 } else { f64::NAN }),
        (Metric::QueueMean, queue.waiting()),
    ];
    Row::new((queue.name.clone(), queue.count), Scope::Link, known(&metrics))
}

/// Values without a confidence interval; values that are not finite are omitted.
fn known(metrics: &[(Metric, f64)]) -> impl Iterator<Item = (Metric, Estimate)> {
    let finite = metrics.iter().filter(|(_, value)| value.is_finite());
    finite.map(|&(metric, value)| (metric, Estimate::exact(value, 1)))
}
