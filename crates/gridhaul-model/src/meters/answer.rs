//! Conversion of a solution to an answer.

use gridhaul_scenario::answer::{DeadlineCheck, Estimate, Metric, Point, Row, Scope, Warning};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use super::delay::{message, share_beyond_timeout};
use super::layout::{FlowEntry, Layout, LinkEntry, MessageInterval, Sizes};
use super::parameters::independent_loss;
use super::region::region;
use super::{running_timer, small_buffer, upstream_delay, upstream_segments, wide_window};
use crate::chain::Elimination;
use crate::fixed_point::{Network, Resource, Response, Solution, Stream};
use crate::model_rules::ModelRules;
use crate::nagle;
use crate::points::PointAnswer;

/// The answer about a point, from its solution. `timers` has an elimination plan for each flow.
pub(super) fn of_point(
    point: ScenarioPoint,
    layout: &Layout,
    solution: &Solution,
    timers: &mut Vec<Elimination>,
) -> PointAnswer {
    let scenario = &point.scenario;
    let mut links = links(scenario, &layout.links, &layout.network, solution, 0);
    for upstream in &layout.upstream {
        let (network, inner) = region(layout, solution, upstream);
        links.extend(self::links(scenario, &upstream.links, network, inner, 1));
    }
    let flows = flows(layout, solution, timers);
    if wide_window::limits_any(layout, solution) {
        for link in &mut links {
            *link = unknown(link, Scope::Link);
        }
    }
    let point = Point {
        parameters: point.parameters,
        numbers: point.numbers,
        deterministic: true,
        replications: None,
        disturbed: 0,
        deadline_checks: deadline_checks(layout, &flows),
        delays: layout.flows.iter().map(|place| (place.name.clone(), None)).collect(),
        labels: point.labels,
        flows,
        links,
        members: Vec::new(),
    };
    PointAnswer { point, warnings: warnings(layout, solution) }
}

/// Whether the flows with a deadline meet it.
fn deadline_checks(layout: &Layout, rows: &[Row]) -> Vec<DeadlineCheck> {
    let checks = layout.flows.iter().zip(rows).filter_map(|(place, row)| {
        let deadline = place.deadline?;
        Some(DeadlineCheck::of_deadline(&place.name, deadline, row.mean(Metric::DeadlineMet)))
    });
    checks.collect()
}

fn flows(layout: &Layout, solution: &Solution, timers: &mut Vec<Elimination>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    timers.resize_with(layout.flows.len(), Elimination::default);
    for (place, timers) in layout.flows.iter().zip(timers) {
        let (stream, next) = match place.upstream {
            None => (&solution.classes[place.class], None),
            Some(index) => {
                let upstream = &layout.upstream[index];
                let (_, inner) = region(layout, solution, upstream);
                (&inner.classes[place.class], Some(&solution.classes[upstream.class]))
            }
        };
        let mut metrics = stage(stream, place.count as f64, &place.sizes);
        let (passing, delay) = next.map_or((1.0, 0.0), |next| (1.0 - next.loss, next.delay));
        metrics.extend([
            (Metric::SegmentLossTotal, 1.0 - (1.0 - stream.loss) * passing),
            (Metric::SegmentDelayTotal, stream.delay + delay),
            (Metric::Residual, solution.residual),
            (Metric::Iterations, f64::from(solution.evaluations)),
        ]);
        metrics.extend(delays(layout, solution, place, timers));
        let named = (place.name.clone(), place.count);
        let row = Row::new(named, Scope::Flow, known(&metrics));
        let is_limited = wide_window::is_limited(layout, solution, place);
        rows.push(if is_limited { unknown(&row, Scope::Flow) } else { row });
    }
    for upstream in &layout.upstream {
        let (network, inner) = region(layout, solution, upstream);
        let stream = &solution.classes[upstream.class];
        let mut metrics = stage(stream, upstream.aggregators as f64, &upstream.sizes);
        let buffer = inner.resources[0];
        // Little's law for the waiting segments; the one in service is already in transmission.
        let segments = (buffer.carried * buffer.wait / buffer.service).max(0.0);
        let buffer_segments = f64::from(network.resources[0].capacity);
        let message = layout.flows.iter().find(|flow| flow.upstream.is_some());
        let in_each = message.map_or(1.0, |flow| f64::from(flow.sizes.segments));
        metrics.extend([
            (Metric::SegmentLossTotal, stream.loss),
            (Metric::SegmentDelayTotal, stream.delay),
            (Metric::BufferMean, segments.min(buffer_segments) / in_each),
            (Metric::Residual, inner.residual.max(solution.residual)),
            (Metric::Iterations, f64::from(inner.evaluations)),
        ]);
        let named = (upstream.name.clone(), upstream.aggregators);
        rows.push(Row::new(named, Scope::Flow, known(&metrics)));
    }
    rows
}

/// Message delay, and the share of messages within the deadline.
fn delays(
    layout: &Layout,
    solution: &Solution,
    place: &FlowEntry,
    timers: &mut Elimination,
) -> Vec<(Metric, f64)> {
    let delay = message(layout, solution, place, timers);
    let mut metrics = Vec::new();
    if let Some(delay) = &delay {
        metrics.extend([
            (Metric::DelayMean, delay.mean()),
            (Metric::DelayMedian, delay.quantile(0.5)),
            (Metric::DelayP98, delay.quantile(0.98)),
        ]);
    }
    if let Some(deadline) = place.deadline {
        let in_time = delay.map(|delay| delay.within(deadline.as_secs_f64()));
        metrics.push((Metric::DeadlineMet, in_time.unwrap_or(f64::NAN)));
    }
    metrics
}

/// Metrics of the connections of one stage.
fn stage(stream: &Stream, count: f64, sizes: &Sizes) -> Vec<(Metric, f64)> {
    let rates = stream.sent.rates;
    let (offered, arriving) = (count * rates.offered, count * rates.arriving);
    // The paper's chains do not distinguish retransmissions from new segments. Throughput is the
    // delivery rate (section 4), which is an upper bound of the rate of new segments.
    let fresh = count * rates.fresh.min(rates.arriving);
    let retransmitted = if offered > 0.0 { (1.0 - fresh / offered).max(0.0) } else { 0.0 };
    vec![
        (Metric::Goodput, fresh * sizes.payload),
        (Metric::Throughput, arriving * sizes.segment),
        (Metric::ReverseThroughput, arriving * sizes.ack),
        (Metric::OfferedLoad, offered * sizes.segment),
        (Metric::RetransmissionRatio, retransmitted),
        (Metric::RttMean, stream.rtt),
        (Metric::SegmentLoss, stream.loss),
        (Metric::SegmentDelayMean, stream.delay),
    ]
}

fn links(
    scenario: &Scenario,
    places: &[LinkEntry],
    network: &Network,
    solution: &Solution,
    buffers: usize,
) -> Vec<Row> {
    let losses: Vec<f64> = std::iter::repeat_n(0.0, buffers)
        .chain(places.iter().map(|place| independent_loss(place.hop.direction(scenario))))
        .collect();
    let queues = solution.resources.iter().zip(&network.resources).enumerate().skip(buffers);
    let row =
        |(place, (index, (response, resource))): (&LinkEntry, (usize, (&Response, &Resource)))| {
            let (link, _) = scenario.link.get_index(place.hop.link).expect("a hop is a link");
            let side = if place.hop.forward { "forward" } else { "reverse" };
            let busy = response.carried;
            let metrics = [
                (Metric::LinkThroughput, busy * resource.rate * place.count as f64),
                (Metric::Utilisation, busy),
                (Metric::LossRatio, lost(network, solution, &losses, index)),
                // Little's law.
                (Metric::QueueMean, busy * response.wait / response.service),
            ];
            Row::new((format!("{link}.{side}"), place.count), Scope::Link, known(&metrics))
        };
    places.iter().zip(queues).map(row).collect()
}

/// Share of the packets offered to a link that its queue drops or that are lost on it. `losses` has
/// the loss on the link of each queue.
///
/// The loss of a class is attributed to its links in proportion to the logarithms of their
/// delivery probabilities.
fn lost(network: &Network, solution: &Solution, losses: &[f64], queue: usize) -> f64 {
    let (mut offered, mut passing) = (0.0, 0.0);
    for (class, stream) in network.classes.iter().zip(&solution.classes) {
        if !class.path.contains(&queue) {
            continue;
        }
        let part =
            |index: &usize| (-solution.resources[*index].loss).ln_1p() + (-losses[*index]).ln_1p();
        let before = class.path.iter().take_while(|&&index| index != queue).map(part).sum::<f64>();
        let all: f64 = class.path.iter().map(part).sum::<f64>();
        let kept = 1.0 - stream.loss;
        let delivered = |part: f64| match all {
            _ if part >= 0.0 => 1.0,
            // A link that delivers nothing.
            f64::NEG_INFINITY => part.exp(),
            _ => kept.powf(part / all),
        };
        let reaching = class.senders * stream.sent.rates.offered * delivered(before);
        offered += reaching;
        passing += reaching * delivered(part(&queue));
    }
    if offered > 0.0 { 1.0 - passing / offered } else { 0.0 }
}

/// Values without a confidence interval; values that are not finite are omitted.
fn known(metrics: &[(Metric, f64)]) -> impl Iterator<Item = (Metric, Estimate)> {
    let finite = metrics.iter().filter(|(_, value)| value.is_finite());
    finite.map(|&(metric, value)| (metric, Estimate::exact(value, 1)))
}

/// A row without values.
fn unknown(row: &Row, scope: Scope) -> Row {
    Row::new((row.name.clone(), row.count), scope, std::iter::empty())
}

/// Share of the messages whose last segment waits, because an earlier message is unacknowledged.
fn delayed_by_nagle(place: &FlowEntry, stream: &Stream) -> f64 {
    let per_second = stream.sent.rates.fresh / f64::from(place.sizes.segments);
    let is_random = place.message_interval == MessageInterval::Random;
    nagle::delayed_share(per_second, place.message.nagle_s(stream.rtt), is_random)
}

/// Share of round trips longer than the retransmission timeout from which a warning is given.
const SPURIOUS: f64 = 0.02;

fn warnings(layout: &Layout, solution: &Solution) -> Vec<Warning> {
    let of_layout = layout.warnings.iter().cloned();
    let mut warnings: Vec<_> =
        of_layout.map(|(about, message)| Warning { about, message }).collect();
    let mut warn = |about: String, message: String| warnings.push(Warning { about, message });
    if !solution.converged {
        let inner =
            layout.upstream.iter().map(|upstream| region(layout, solution, upstream).1.residual);
        let residual = inner.fold(solution.residual, f64::max);
        warn(
            "model".to_owned(),
            format!(
                "the fixed-point iteration did not converge: residual {residual:.1e}; the results \
                    are not valid"
            ),
        );
    }
    for upstream in &layout.upstream {
        let found = [small_buffer::warning, upstream_delay::warning, upstream_segments::warning];
        for (about, message) in
            found.iter().filter_map(|warning| warning(layout, solution, upstream))
        {
            warn(about, message);
        }
    }
    for place in &layout.flows {
        let (network, inner) = match place.upstream {
            None => (&layout.network, solution),
            Some(index) => region(layout, solution, &layout.upstream[index]),
        };
        let stream = &inner.classes[place.class];
        if let Some(message) = running_timer::warning(network, place, stream) {
            warn(format!("flow.{}", place.name), message);
        }
        let too_long = match layout.network.rules {
            ModelRules::Refined => share_beyond_timeout(layout, solution, place),
            ModelRules::Paper | ModelRules::Printed => 0.0,
        };
        if too_long > SPURIOUS {
            warn(
                format!("flow.{}", place.name),
                format!(
                    "{:.0} % of the round trips are longer than the retransmission timeout: the \
                        equations ignore spurious retransmissions, so that offered load, \
                        retransmissions, loss and delay are too low; use backend `sim`",
                    too_long * 100.0
                ),
            );
        }
        if layout.network.rules == ModelRules::Refined
            && let Some(message) = nagle::warning(delayed_by_nagle(place, stream))
        {
            warn(format!("flow.{}", place.name), message);
        }
        if wide_window::is_limited(layout, solution, place) {
            warn(format!("flow.{}", place.name), wide_window::warning(place));
        } else if stream.sent.backlog {
            warn(
                format!("flow.{}", place.name),
                "the message rate exceeds the capacity of the connections: the backlog of the \
                    senders grows without bound, and there is no steady state"
                    .to_owned(),
            );
        }
    }
    warnings
}
