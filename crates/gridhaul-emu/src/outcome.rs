//! From what the wire and the sockets have shown to the rows of an answer.

use gridhaul_core::link::LinkAccount;
use gridhaul_core::load::Judge;
use gridhaul_scenario::answer::{Metric, Metrics, RunRows, Warning};
use gridhaul_scenario::scenario::{Scenario, Transport};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use crate::network::Plan;
use crate::traffic::{RowTraffic, TrafficOutcome};
use crate::wire::{Lateness, Tally, WireOutcome};

/// The rows of one run.
pub(crate) fn rows(
    scenario: &Scenario,
    plan: &Plan,
    wire: &WireOutcome,
    traffic: &TrafficOutcome,
) -> RunRows {
    let span = scenario.duration.saturating_sub(scenario.warmup);
    let flows = traffic.rows.iter().enumerate().map(|(index, row)| {
        let tallies = (&wire.before.flows[index], &wire.after.flows[index]);
        flow_row(row, plan.flows[index].transport, tallies, span)
    });
    let row_of = plan.directions.row_of();
    let links = (0..plan.directions.rows().len()).map(|row| {
        let mut sum = LinkAccount::default();
        let mut members = 0;
        for ((now, then), &of) in wire.after.links.iter().zip(&wire.before.links).zip(row_of) {
            if of as usize == row {
                sum.add_difference(now, then);
                members += 1;
            }
        }
        sum.metrics(members, span)
    });
    RunRows { flows: flows.collect(), links: links.collect() }
}

fn flow_row(
    row: &RowTraffic,
    transport: Transport,
    (before, after): (&Tally, &Tally),
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let rate = |now: u64, then: u64| (now - then) as f64 * 8.0 / secs;
    let goodputs: Vec<f64> =
        row.after.iter().zip(&row.before).map(|(now, then)| rate(*now, *then)).collect();
    let (sum, squares) = goodputs
        .iter()
        .fold((0.0, 0.0), |(sum, squares), goodput| (sum + goodput, squares + goodput * goodput));
    let mut metrics = vec![
        (Metric::Goodput, sum),
        (Metric::Throughput, rate(after.arrived_bytes, before.arrived_bytes)),
        (Metric::ReverseThroughput, rate(after.returned_bytes, before.returned_bytes)),
    ];
    if goodputs.len() > 1 && squares > 0.0 {
        // Jain, Chiu and Hawe 1984: (sum x)^2 / (n * sum x^2).
        metrics.push((Metric::Fairness, sum * sum / (goodputs.len() as f64 * squares)));
    }
    let tcp = transport == Transport::Tcp;
    let data = after.data.since(&before.data);
    data.metrics(secs, tcp, &mut metrics);
    if tcp {
        sender_metrics(row, &mut metrics);
        judgement_metrics(row, after, &mut metrics);
        gridhaul_core::link::Crossings::totals(&[data], &mut metrics);
    } else {
        let lost = (after.lost - before.lost) as f64;
        metrics.push((Metric::MessageLoss, lost / row.ready.max(1) as f64));
    }
    if row.has_messages {
        row.delays.metrics(&mut metrics);
        metrics
            .extend(row.judge.as_ref().and_then(Judge::share).map(|it| (Metric::DeadlineMet, it)));
    }
    metrics
}

fn sender_metrics(row: &RowTraffic, into: &mut Metrics) {
    let counts = row.counts[1].since(&row.counts[0]);
    into.push((Metric::SegmentsSent, counts.segments as f64));
    into.push((Metric::Retransmissions, counts.retransmissions as f64));
    if counts.segments > 0 {
        let ratio = counts.retransmissions as f64 / counts.segments as f64;
        into.push((Metric::RetransmissionRatio, ratio));
    }
    into.push((Metric::Timeouts, counts.timeouts as f64));
    into.push((Metric::SegmentsReceived, counts.received as f64));
    into.extend(row.averages.rtt().map(|rtt| (Metric::RttMean, rtt)));
    into.extend(row.averages.cwnd().map(|cwnd| (Metric::CwndMean, cwnd)));
}

/// What MEDX said of losses beside their true cause. The kernel counts judgements and not of which
/// packet, so the cause is only known where all losses of the run had the same.
fn judgement_metrics(row: &RowTraffic, after: &Tally, into: &mut Metrics) {
    let Some([before, now]) = &row.judgements else { return };
    let said = now.since(before);
    let (error, congestion) = (said.error as f64, said.congestion as f64);
    let all = error + congestion;
    if after.by_queue == 0 {
        into.push((Metric::ErrorLossCalledCongestion, congestion));
        into.push((Metric::ErrorLossCalledError, error));
        into.extend((all > 0.0).then(|| (Metric::ErrorRecognised, error / all)));
    } else if after.by_queue == after.data.lost {
        into.push((Metric::QueueLossCalledCongestion, congestion));
        into.push((Metric::QueueLossCalledError, error));
        into.extend((all > 0.0).then(|| (Metric::CongestionRecognised, congestion / all)));
    }
}

/// Adds the transfers of a row, whose size only the scenario knows.
pub(crate) fn transfers(row: &RowTraffic, size: Bytes, into: &mut Metrics) {
    if row.transfers.is_empty() {
        return;
    }
    let took = |&(start, end): &(Instant, Instant)| end.since(start).as_secs_f64();
    let count = row.transfers.len() as f64;
    let times: f64 = row.transfers.iter().map(took).sum();
    let rates: f64 = row.transfers.iter().map(|it| size.get() as f64 * 8.0 / took(it)).sum();
    into.push((Metric::CompletionTime, times / count));
    into.push((Metric::TransferRate, rates / count));
}

/// What a reader must know of how the run went.
pub(crate) fn warnings(
    scenario: &Scenario,
    wire: &WireOutcome,
    traffic: &TrafficOutcome,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |about: String, message: String| warnings.push(Warning { about, message });
    if let Some(late) = late(&wire.lateness) {
        warn(
            "emulator".to_owned(),
            format!(
                "2 % of the packets were handed on more than {late} after their time: this machine was \
                 too busy, and the run is not trustworthy; use slower links or a quieter machine"
            ),
        );
    }
    for ((name, _), row) in scenario.flow.iter().zip(&traffic.rows) {
        if let Some(late) = late(&row.lateness) {
            warn(
                format!("flow.{name}"),
                format!(
                    "2 % of the messages were handed over more than {late} after their time: the load \
                     was not the one that was asked for, and the run is not trustworthy"
                ),
            );
        }
        if let Some(failure) = &row.failure {
            warn(
                format!("flow.{name}"),
                format!("the kernel gave up {} connections ({failure})", row.failed),
            );
        }
    }
    warnings
}

/// The lateness that 2 % exceeded, where that touches the trust in the run.
fn late(lateness: &Lateness) -> Option<Duration> {
    lateness.quantile(0.98).filter(|late| *late > LATE)
}

/// Delays are promised to within half a millisecond; beyond a few of them a run is another one.
const LATE: Duration = Duration::from_millis(5);
