//! Converts the results of the link emulator and the sockets into the rows of an answer.

use gridhaul_core::link::{LinkAccount, PathCounters};
use gridhaul_core::load::{
    AcknowledgementCounters, Goodputs, InProgress, MessageRow, message_loss,
};
use gridhaul_scenario::answer::{Metric, Metrics, RunRows, Warning, segment_metrics};
use gridhaul_scenario::scenario::{Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant, counted};

use crate::link_emulator::{EmulatorOutcome, Lateness, RowCounters};
use crate::loss_classification;
use crate::network::{NetworkPlan, RelayLayout};
use crate::relay::TcpCounters;
use crate::traffic::{RowTraffic, TrafficOutcome};

/// The rows of one run.
pub(crate) fn rows(
    scenario: &Scenario,
    plan: &NetworkPlan,
    emulated: &EmulatorOutcome,
    traffic: &TrafficOutcome,
) -> RunRows {
    let span = scenario.duration.saturating_sub(scenario.warmup);
    let rows = scenario.flow.values().zip(&traffic.rows).enumerate();
    let flows = rows.map(|(index, (flow, row))| {
        let (before, after) = (&emulated.before.flows[index], &emulated.after.flows[index]);
        let mut stages = vec![emulated.path_counters(index)];
        let relay = plan.relays.iter().find(|relay| relay.flow == index);
        stages.extend(relay.map(|relay| emulated.path_counters(relay.upstream)));
        let (transport, has_ecn) = (plan.flows[index].transport, plan.flows[index].has_ecn());
        let end = Instant::ZERO + scenario.duration;
        let publications = scenario.publications_of(flow);
        let publications = publications.and_then(|(row, _)| traffic.rows[row].acknowledged());
        let row_of = (row, publications);
        let mut metrics = flow_row(row_of, transport, before, after, (&stages, span, end));
        if has_ecn {
            metrics.push((Metric::CongestionMarks, (after.marks - before.marks) as f64));
        }
        if let Some(classifications) = &row.classifications {
            let lost = emulated.lost.iter().filter(|lost| usize::from(lost.flow) == index);
            let begin = Instant::ZERO + scenario.warmup;
            loss_classification::confusion(classifications, lost, begin).metrics(&mut metrics);
        }
        metrics
    });
    let links = LinkAccount::rows(
        emulated.after.links.iter().copied(),
        &emulated.before.links,
        &plan.directions,
        span,
    );
    let delays = traffic.rows.iter().map(|row| row.has_messages.then(|| row.delays.counts()));
    let upstream = plan.relays.iter().zip(&traffic.relays);
    let upstream = upstream.map(|(relay, counters)| upstream_row(relay, emulated, *counters, span));
    let flows = flows.chain(upstream).collect();
    let delays = delays.chain(plan.relays.iter().map(|_| None)).collect();
    RunRows { flows, links, delays, members: Vec::new() }
}

/// The row of the upstream connections of aggregators. Payload is not counted: the relays add
/// headers.
fn upstream_row(
    relay: &RelayLayout,
    emulated: &EmulatorOutcome,
    counters: TcpCounters,
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let (before, after) =
        (&emulated.before.flows[relay.upstream], &emulated.after.flows[relay.upstream]);
    let rate = |now: u64, then: u64| (now - then) as f64 * 8.0 / secs;
    let data = emulated.path_counters(relay.upstream);
    let mut metrics = vec![
        (Metric::Throughput, rate(after.arrived_bytes, before.arrived_bytes)),
        (Metric::ReverseThroughput, rate(after.reverse_bytes, before.reverse_bytes)),
    ];
    data.metrics(secs, true, &mut metrics);
    segment_metrics(data.sent, counters.retransmissions, &mut metrics);
    metrics.push((Metric::Timeouts, counters.timeouts as f64));
    metrics
}

fn flow_row(
    (row, publications): (&RowTraffic, Option<&AcknowledgementCounters>),
    transport: Transport,
    before: &RowCounters,
    after: &RowCounters,
    (stages, span, end): (&[PathCounters], Duration, Instant),
) -> Metrics {
    let secs = span.as_secs_f64();
    let rate = |now: u64, then: u64| (now - then) as f64 * 8.0 / secs;
    let mut metrics = Vec::new();
    if row.transfers.count() > 0 {
        row.transfers.metrics(&mut metrics);
        if let Some(counter) = &row.deadline_counter {
            let met = row.transfers.deadline_met(counter.deadline(), end);
            metrics.extend(met.map(|share| (Metric::DeadlineMet, share)));
        }
    } else {
        let in_progress = row.in_progress.as_ref().map(InProgress::total);
        // Without a message that was due, nothing was delivered either.
        let in_progress = in_progress.filter(|time| !time.is_zero());
        let secs_in_progress = in_progress.map_or(secs, |time| time.as_secs_f64());
        let mut goodputs = Goodputs::default();
        for (now, then) in row.after.iter().zip(&row.before) {
            goodputs.add(now - then, secs_in_progress);
        }
        goodputs.metrics(&mut metrics);
    }
    metrics.push((Metric::Throughput, rate(after.arrived_bytes, before.arrived_bytes)));
    metrics.push((Metric::ReverseThroughput, rate(after.reverse_bytes, before.reverse_bytes)));
    let tcp = transport == Transport::Tcp;
    let data = after.data.since(&before.data);
    data.metrics(secs, tcp, &mut metrics);
    if tcp {
        sender_metrics(row, &mut metrics);
        PathCounters::totals(stages, &mut metrics);
    }
    if let Some(connections) = &row.connections {
        connections.metrics(&mut metrics);
    } else if let Some(openings) = &row.openings {
        openings.metrics(&mut metrics);
    }
    if row.has_messages {
        metrics.push((Metric::MessagesDue, row.ready as f64));
        // TCP retransmits segments that a link has lost, so that only datagrams stay lost.
        let lost = row.unsent + if tcp { 0 } else { after.lost - before.lost };
        match (&row.coap, row.acknowledged()) {
            (Some(coap), _) => coap.metrics(&mut metrics),
            (None, Some(messages)) => messages.metrics(publications, &mut metrics),
            (None, None) => metrics
                .extend(message_loss(lost, row.ready).map(|loss| (Metric::MessageLoss, loss))),
        }
        let messages = MessageRow {
            due: row.ready,
            delays: &row.delays,
            waiting: &row.waiting,
            in_progress: row.in_progress.as_ref(),
            deadline: row.deadline_counter.as_ref(),
        };
        messages.metrics(&mut metrics);
    }
    metrics
}

fn sender_metrics(row: &RowTraffic, into: &mut Metrics) {
    let counts = row.counts[1].since(&row.counts[0]);
    segment_metrics(counts.segments, counts.retransmissions, into);
    into.push((Metric::Timeouts, counts.timeouts as f64));
    into.push((Metric::SegmentsReceived, counts.received as f64));
    into.extend(row.averages.rtt().map(|rtt| (Metric::RttMean, rtt)));
    into.extend(row.averages.cwnd().map(|cwnd| (Metric::CwndMean, cwnd)));
}

/// Warnings about a run that is not trustworthy. `corrected` counts the windows that the kernel set
/// without its congestion control algorithm of gridhaul-cc.
pub(crate) fn disturbances(
    scenario: &Scenario,
    plan: &NetworkPlan,
    emulated: &EmulatorOutcome,
    traffic: &TrafficOutcome,
    corrected: u64,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |about: String, message: String| warnings.push(Warning { about, message });
    // Late packets add to the delays of the links, and late messages change the load.
    if let Some(late) = late(&emulated.lateness) {
        warn(
            "emulator".to_owned(),
            format!(
                "2 % of the packets were forwarded more than {late} late: this machine was too \
                 busy, and the run is not trustworthy; use slower links or a less busy machine"
            ),
        );
    }
    let connections: u64 = plan.flows.iter().map(|flow| u64::from(flow.count)).sum();
    if corrected * CONNECTIONS_PER_CORRECTION > connections {
        warn(
            "kernel".to_owned(),
            format!(
                "it set {corrected} windows without the congestion control algorithm of \
                 gridhaul-cc, and the run is not trustworthy; run it again"
            ),
        );
    }
    for ((name, _), row) in scenario.flow.iter().zip(&traffic.rows) {
        if let Some(late) = late(&row.lateness) {
            warn(
                format!("flow.{name}"),
                format!(
                    "2 % of the messages were sent more than {late} late: the load differs from \
                     that of the scenario, and the run is not trustworthy"
                ),
            );
        }
    }
    warnings
}

/// Warnings about connections that the kernel aborted.
pub(crate) fn aborted_connections(scenario: &Scenario, traffic: &TrafficOutcome) -> Vec<Warning> {
    let rows = scenario.flow.keys().zip(&traffic.rows);
    let warning = |(name, row): (&String, &RowTraffic)| {
        let failure = row.failure.as_ref()?;
        let aborted = counted(row.failed, "connection");
        let message = format!("the kernel aborted {aborted} ({failure})");
        Some(Warning { about: format!("flow.{name}"), message })
    };
    rows.filter_map(warning).collect()
}

/// Connections per permitted correction of a window: one correction matters for one connection, but
/// not for 100.
const CONNECTIONS_PER_CORRECTION: u64 = 100;

/// The 98th percentile of the lateness, if it makes the run untrustworthy.
fn late(lateness: &Lateness) -> Option<Duration> {
    lateness.quantile(0.98).filter(|late| *late > LATE)
}

/// Largest lateness of a trustworthy run: ten times the documented accuracy of delays (0.5 ms).
const LATE: Duration = Duration::from_millis(5);
