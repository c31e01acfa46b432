//! From what the wire and the sockets have shown to the rows of an answer.

use gridhaul_core::link::LinkAccount;
use gridhaul_core::load::{DeadlineCounter, Goodputs, message_loss};
use gridhaul_scenario::answer::{Metric, Metrics, RunRows, Warning};
use gridhaul_scenario::scenario::{Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};

use crate::network::Plan;
use crate::traffic::{RowTraffic, TrafficOutcome};
use crate::truth;
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
        let mut metrics = flow_row(row, plan.flows[index].transport, tallies, span);
        if let Some(judgements) = &row.judgements {
            let lost = wire.lost.iter().filter(|lost| usize::from(lost.flow) == index);
            let begin = Instant::ZERO + scenario.warmup;
            truth::confusion(judgements, lost, begin).metrics(&mut metrics);
        }
        metrics
    });
    let links = LinkAccount::rows(
        wire.after.links.iter().copied(),
        &wire.before.links,
        &plan.directions,
        span,
    );
    let delays = traffic.rows.iter().map(|row| row.has_messages.then(|| row.delays.counts()));
    RunRows { flows: flows.collect(), links, delays: delays.collect() }
}

fn flow_row(
    row: &RowTraffic,
    transport: Transport,
    (before, after): (&Tally, &Tally),
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let rate = |now: u64, then: u64| (now - then) as f64 * 8.0 / secs;
    let mut metrics = Vec::new();
    if row.transfers.count() > 0 {
        row.transfers.metrics(&mut metrics);
    } else {
        let mut goodputs = Goodputs::default();
        for (now, then) in row.after.iter().zip(&row.before) {
            goodputs.add(now - then, secs);
        }
        goodputs.metrics(&mut metrics);
    }
    metrics.push((Metric::Throughput, rate(after.arrived_bytes, before.arrived_bytes)));
    metrics.push((Metric::ReverseThroughput, rate(after.returned_bytes, before.returned_bytes)));
    let tcp = transport == Transport::Tcp;
    let data = after.data.since(&before.data);
    data.metrics(secs, tcp, &mut metrics);
    if tcp {
        sender_metrics(row, &mut metrics);
        gridhaul_core::link::PathCounters::totals(&[data], &mut metrics);
    }
    if let Some(openings) = &row.openings {
        openings.metrics(&mut metrics);
    }
    if row.has_messages {
        metrics.push((Metric::MessagesDue, row.ready as f64));
        let lost = row.unsent + if tcp { 0 } else { after.lost - before.lost };
        metrics.extend(message_loss(lost, row.ready).map(|loss| (Metric::MessageLoss, loss)));
        row.delays.metrics(&row.waiting, &mut metrics);
        metrics.extend(
            row.judge.as_ref().and_then(DeadlineCounter::share).map(|it| (Metric::DeadlineMet, it)),
        );
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

/// What a reader must know of how the run went; `mended`: how often our congestion control was not asked.
pub(crate) fn warnings(
    scenario: &Scenario,
    plan: &Plan,
    wire: &WireOutcome,
    traffic: &TrafficOutcome,
    mended: u64,
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
    let connections: u64 = plan.flows.iter().map(|flow| u64::from(flow.count)).sum();
    if mended * UNASKED > connections {
        warn(
            "kernel".to_owned(),
            format!(
                "it did not ask our congestion control for {mended} of its windows, and the run is not \
                 trustworthy; run it again"
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

/// One window that was made up is much for a connection, and little for a hundred.
const UNASKED: u64 = 100;

/// The lateness that 2 % exceeded, where that touches the trust in the run.
fn late(lateness: &Lateness) -> Option<Duration> {
    lateness.quantile(0.98).filter(|late| *late > LATE)
}

/// Delays are promised to within half a millisecond; beyond a few of them a run is another one.
const LATE: Duration = Duration::from_millis(5);
