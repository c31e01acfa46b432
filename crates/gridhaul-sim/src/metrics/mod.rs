//! Metrics of a run, from differences of counters between the end of the warm-up and the end of the
//! run.

mod comparison;
mod distribution;
mod members;
mod undelivered;

use gridhaul_core::link::{ConfusionMatrix, LinkAccount, PathCounters};
use gridhaul_core::load::{
    Application, Goodputs, InFlightMessages, MessageRow, Transfers, message_loss,
};
use gridhaul_scenario::answer::{DelayCounts, Metric, Metrics, RunRows, segment_metrics};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};

use self::undelivered::Undelivered;
use crate::aggregation::{Aggregators, BufferIntegrals};
use crate::counters::RunCounters;
use crate::flow::{Ends, Flow};
use crate::layout::Layout;
use crate::network::Network;
use crate::proxy::{Proxies, ProxySums};
use crate::row_counters::{RowCounters, SenderSums};

/// The state of a run from which metrics are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunState<'a> {
    pub net: &'a Network,
    pub flows: &'a [Flow],
    pub in_flight: &'a InFlightMessages,
    pub aggregators: &'a Aggregators,
    pub proxies: &'a Proxies,
    pub counters: &'a RunCounters,
}

/// Counters at the end of the warm-up.
#[derive(Debug, Clone)]
pub(crate) struct WarmupSnapshot {
    at: Instant,
    links: Vec<LinkAccount>,
    rows: Vec<RowCounters>,
    /// Integrated congestion windows and sender counters of each row.
    cwnd_integrals: Vec<u128>,
    senders: Vec<SenderSums>,
    /// Payload that each flow has delivered; empty without a warm-up.
    delivered: Vec<u64>,
    /// Buffer integrals of each upstream connection.
    buffers: Vec<BufferIntegrals>,
    /// Counters of the proxies of each row; empty without proxies.
    proxies: Vec<ProxySums>,
    path_counters: Vec<PathCounters>,
    confusion_matrices: Vec<ConfusionMatrix>,
    /// Counters of the sender of each flow; empty without `record.members`.
    members: Vec<SenderSums>,
}

impl WarmupSnapshot {
    /// The counters at `now`, the end of the warm-up.
    pub(crate) fn new(now: Instant, state: RunState<'_>) -> Self {
        let RunState { net, flows, counters, .. } = state;
        for account in net.links.iter().map(|link| &link.account) {
            debug_assert!(account.arrived <= account.offered + account.duplicates);
        }
        let rows = counters.rows.len();
        Self {
            at: now,
            links: net.links.accounts(now).collect(),
            rows: counters.rows.clone(),
            cwnd_integrals: counters.rows.iter().map(|row| row.cwnd_integral_at(now)).collect(),
            senders: sender_sums(flows, rows),
            delivered: if now == Instant::ZERO {
                Vec::new()
            } else {
                (0..flows.len()).map(|index| state.delivered(index)).collect()
            },
            buffers: state.aggregators.buffer_integrals(now),
            proxies: state.proxies.sums(now, flows, rows),
            path_counters: counters.path_counters.clone(),
            confusion_matrices: counters.loss_causes.rows().to_vec(),
            members: counters.members.senders(flows),
        }
    }
}

impl RunState<'_> {
    /// When the run ends.
    const fn end(&self) -> Instant {
        self.counters.measured.end
    }

    /// Time in which messages of a row of `burst` loads are in progress, including those from
    /// before the measured time, whose bytes also arrive in it; `None` for other rows, and if no
    /// message was.
    fn in_progress(&self, row: usize) -> Option<Duration> {
        let mut in_progress = self.counters.in_progress[row].clone()?;
        let own = self.flows.iter().filter(|flow| flow.row as usize == row);
        let written = own.flat_map(|flow| undelivered::written(flow, *self));
        let forwarded = undelivered::forwarded(row as u32, *self).map(|(ready, _)| ready);
        let start = self.counters.measured.start;
        for ready in written.chain(forwarded) {
            if ready < start {
                in_progress.carry_over(start, self.end());
            } else {
                in_progress.add(ready, self.end());
            }
        }
        Some(in_progress.total()).filter(|total| !total.is_zero())
    }

    /// Time base of the goodputs of a row and of its members, in a measured time of `span`.
    fn goodput_secs(&self, row: usize, span: Duration) -> f64 {
        self.in_progress(row).unwrap_or(span).as_secs_f64()
    }

    /// Adds the columns of acknowledged messages, with their loss. Returns whether the row has any.
    fn add_acknowledged(&self, row: usize, into: &mut Metrics) -> bool {
        let coap = self.counters.coap[row].as_ref();
        let connections = self.counters.connections[row].as_ref();
        let messages = connections.and_then(|row| row.counters.messages.as_ref());
        // Messages that have not reached the broker have not reached its subscriber either.
        let publications = self.counters.publications_of(row);
        let publications = publications.and_then(|row| self.counters.connections[row].as_ref());
        let publications = publications.and_then(|row| row.counters.messages.as_deref());
        if let Some(coap) = coap {
            coap.metrics(into);
        }
        if let Some(messages) = messages {
            messages.metrics(publications, into);
        }
        coap.is_some() || messages.is_some()
    }

    /// Payload of a flow that has reached the application at the end of its path; of a dialogue,
    /// the payload that has reached both applications.
    fn delivered(&self, index: usize) -> u64 {
        let flow = &self.flows[index];
        let is_forwarded = || self.aggregators.upstream_after(index as u32).is_some();
        match &flow.ends {
            Ends::Tcp(ends) if flow.app.is_none() || !is_forwarded() => {
                let is_dialogue = flow.app.as_ref().is_some_and(Application::is_dialogue);
                let responses = if is_dialogue { ends[0].receiver().delivered() } else { 0 };
                ends[1].receiver().delivered() + responses
            }
            Ends::Managed(managed) => {
                let of_both = || {
                    let delivered = |end| managed.manager.delivered(end);
                    delivered(FlowEnd::From) + delivered(FlowEnd::To)
                };
                flow.app.as_ref().and_then(Application::delivered_payload).unwrap_or_else(of_both)
            }
            _ => self.counters.indirect_payload[index],
        }
    }
}

/// Counters of the senders of each row so far.
fn sender_sums(flows: &[Flow], rows: usize) -> Vec<SenderSums> {
    let mut sums = vec![SenderSums::default(); rows];
    for flow in flows {
        flow.add_senders(&mut sums[flow.row as usize]);
    }
    sums
}

/// The rows of a finished run. `before` has the counters at the start of the measurement interval.
pub(crate) fn rows(
    state: RunState<'_>,
    before: Option<&WarmupSnapshot>,
    layout: &Layout,
) -> RunRows {
    let (flow_rows, link_rows) = (layout.flows.len(), layout.directions.answer_rows().len());
    let Some(before) = before else {
        let answer_rows = flow_rows + layout.comparisons.len();
        let (flows, links) = (vec![Vec::new(); answer_rows], vec![Vec::new(); link_rows]);
        return RunRows { flows, links, ..RunRows::default() };
    };
    let RunState { net, flows, counters, .. } = state;
    let end = state.end();
    let span = end.since(before.at);
    let senders = sender_sums(flows, flow_rows);
    let senders = senders.iter().zip(&before.senders).map(|(now, then)| now.since(then));
    let path_counters = counters.path_counters.iter().zip(&before.path_counters);
    let path_counters: Vec<PathCounters> =
        path_counters.map(|(now, then)| now.since(then)).collect();
    let proxies = state.proxies.sums(end, flows, flow_rows);
    let flow = |(row, senders): (usize, SenderSums)| {
        let stages: Vec<_> = layout.stages(row).iter().map(|&stage| path_counters[stage]).collect();
        let mut metrics =
            flow_row(state, before, row, &senders, (&path_counters[row], &stages), span);
        if let Some(sums) = proxies.get(row) {
            sums.metrics(&before.proxies[row], span, &mut metrics);
        }
        if counters.members.distributions.contains(&(row as u32)) {
            distribution::metrics(state, before, row, span, &mut metrics);
        }
        if row >= layout.aggregation.flows.len() {
            let row = (flows, row as u32);
            state.aggregators.metrics(row, &before.buffers, (end, span), &mut metrics);
        }
        metrics
    };
    let compared = layout.comparisons.iter();
    let compared = compared.map(|comparison| comparison::row(state, before, comparison, span));
    let rows = senders.enumerate().map(flow).chain(compared).collect();
    let links = net.links.accounts(end);
    let links = LinkAccount::rows(links, &before.links, &layout.directions, span);
    let delays = delays(state, flow_rows);
    let members = members::rows(state, before, layout, span);
    RunRows { flows: rows, links, delays, members }
}

/// The delays of each row whose flows send messages.
fn delays(state: RunState<'_>, rows: usize) -> Vec<Option<DelayCounts>> {
    let mut delays = vec![None; rows];
    for flow in state.flows.iter().filter(|flow| flow.has_messages()) {
        let row = flow.row as usize;
        delays[row].get_or_insert_with(|| state.counters.delays[row].counts());
    }
    delays
}

/// Sums over the flows of a row.
#[derive(Default)]
struct Members {
    count: u64,
    goodputs: Goodputs,
    transfers: Transfers,
    tcp: bool,
    messages: bool,
    undelivered: Undelivered,
}

fn flow_row(
    state: RunState<'_>,
    before: &WarmupSnapshot,
    row: usize,
    senders: &SenderSums,
    (own, stages): (&PathCounters, &[PathCounters]),
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let mut members = Members::default();
    members.add_row(state, before, row, span);
    members.add_undelivered(state, row);
    let (totals, earlier) = (&state.counters.rows[row], &before.rows[row]);
    let mut metrics = Vec::new();
    members.rates(totals, earlier, secs, &mut metrics);
    own.metrics(secs, members.tcp, &mut metrics);
    if members.tcp && !stages.is_empty() {
        PathCounters::totals(stages, &mut metrics);
    }
    let connections = state.counters.connections[row].as_ref();
    if let Some(connections) = connections {
        connections.counters.metrics(&mut metrics);
    } else if let Some(openings) = state.counters.handshakes.of(row) {
        openings.metrics(&mut metrics);
    }
    if members.tcp {
        tcp_metrics(state, before, row, senders, &mut metrics);
        // Successive connections have no common window.
        if connections.is_none() {
            let integral = totals.cwnd_integral_at(state.end()) - before.cwnd_integrals[row];
            let mean = integral as f64 / 1e9 / secs / members.count as f64;
            metrics.push((Metric::CwndMean, mean));
        }
    }
    if let Some(check) = &state.counters.deadline_checks[row] {
        let met = members.transfers.deadline_met(check.deadline(), state.end());
        metrics.extend(met.map(|share| (Metric::DeadlineMet, share)));
    }
    if members.messages {
        members.message_metrics(state, row, &mut metrics);
    }
    metrics
}

/// Adds the metrics of the senders of a row of TCP flows, whose counters since the warm-up are
/// `senders`.
fn tcp_metrics(
    state: RunState<'_>,
    before: &WarmupSnapshot,
    row: usize,
    senders: &SenderSums,
    into: &mut Metrics,
) {
    senders.metrics(into);
    let received = state.counters.rows[row].reverse_segments - before.rows[row].reverse_segments;
    into.push((Metric::SegmentsReceived, received as f64));
    let loss_causes = &state.counters.loss_causes;
    if loss_causes.classifies(row as u32) {
        loss_causes.rows()[row].since(&before.confusion_matrices[row]).metrics(into);
    }
}

impl Members {
    /// Adds the messages that have not arrived: those of the row itself, of aggregators, and of the
    /// publications that the row forwards.
    fn add_undelivered(&mut self, state: RunState<'_>, row: usize) {
        let publications = state.counters.publications_of(row);
        for (index, flow) in state.flows.iter().enumerate() {
            let sender = flow.row as usize;
            if sender == row || Some(sender) == publications {
                self.undelivered.add(index, state);
            }
        }
        self.undelivered.add_forwarded(row as u32, state);
    }

    /// Adds the flows of a row.
    fn add_row(
        &mut self,
        state: RunState<'_>,
        before: &WarmupSnapshot,
        row: usize,
        span: Duration,
    ) {
        let secs = state.goodput_secs(row, span);
        for (index, flow) in state.flows.iter().enumerate() {
            if flow.row as usize == row {
                self.add_flow(state, before, index, secs);
            }
        }
    }

    /// Adds a flow, whose data were delivered in `secs` seconds. A transfer is measured from its
    /// start, independent of the warm-up.
    fn add_flow(&mut self, state: RunState<'_>, before: &WarmupSnapshot, index: usize, secs: f64) {
        let (flow, end) = (&state.flows[index], state.end());
        let delivered = state.delivered(index);
        let earlier = before.delivered.get(index).copied().unwrap_or(0);
        self.count += 1;
        self.tcp |= flow.is_tcp();
        self.messages |= flow.has_messages();
        match flow.app.as_ref().and_then(Application::transfer) {
            Some(transfer) => self.transfers.add(transfer, delivered, end),
            None => self.goodputs.add(delivered - earlier, secs),
        }
    }

    /// Adds the metrics of the messages of a row.
    fn message_metrics(&self, state: RunState<'_>, row: usize, into: &mut Metrics) {
        let counters = state.counters;
        let totals = &counters.rows[row];
        into.push((Metric::MessagesDue, totals.due as f64));
        if totals.may_be_altered {
            into.push((Metric::AlteredMessages, totals.altered as f64));
        }
        // Acknowledged messages have columns of their own for losses.
        if !state.add_acknowledged(row, into) {
            let lost = if self.tcp { self.undelivered.unsent } else { totals.datagrams_lost };
            let loss = message_loss(lost, totals.due);
            into.extend(loss.map(|loss| (Metric::MessageLoss, loss)));
        }
        let messages = MessageRow {
            due: totals.due,
            delays: &counters.delays[row],
            waiting: &self.undelivered.waiting,
            in_progress: counters.in_progress[row].as_ref(),
            deadline: counters.deadline_checks[row].as_ref(),
        };
        messages.metrics(into);
    }

    /// Adds the metrics of transfers, or the goodput of flows without transfers.
    fn deliveries(&self, into: &mut Metrics) {
        match self.transfers.count() {
            0 => self.goodputs.metrics(into),
            _ => self.transfers.metrics(into),
        }
    }

    fn rates(&self, now: &RowCounters, then: &RowCounters, secs: f64, into: &mut Metrics) {
        if self.goodputs.count() > 0 {
            self.goodputs.metrics(into);
        }
        self.transfers.metrics(into);
        let arrived = now.arrived_bytes - then.arrived_bytes;
        into.push((Metric::Throughput, arrived as f64 * 8.0 / secs));
        let returned = now.reverse_bytes - then.reverse_bytes;
        into.push((Metric::ReverseThroughput, returned as f64 * 8.0 / secs));
    }
}

impl SenderSums {
    fn metrics(&self, into: &mut Metrics) {
        segment_metrics(self.segments, self.retransmissions, into);
        into.push((Metric::FastRetransmits, self.fast_retransmits as f64));
        into.push((Metric::Timeouts, self.timeouts as f64));
        if self.rtt_count > 0 {
            let mean = self.rtt_sum_ns as f64 / self.rtt_count as f64 / 1e9;
            into.push((Metric::RttMean, mean));
        }
        if self.has_estimator_counters {
            into.push((Metric::EstimatorUpdates, self.updates as f64));
            into.push((Metric::EstimatorEvaluations, self.evaluations as f64));
        }
        if self.has_ecn {
            into.push((Metric::CongestionMarks, self.congestion_marks as f64));
            into.push((Metric::EcnReductions, self.ecn_reductions as f64));
        }
    }
}
