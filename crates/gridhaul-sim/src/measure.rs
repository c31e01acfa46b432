//! From counters to metrics: what happened between the end of the warm-up and the end of the run.

mod undelivered;

use gridhaul_core::link::{ConfusionMatrix, LinkAccount, PathCounters};
use gridhaul_core::load::{
    Application, DeadlineCounter, Goodputs, InFlightMessages, Transfers, message_loss,
};
use gridhaul_scenario::answer::{DelayCounts, Metric, Metrics, RunRows};
use gridhaul_scenario::units::{Duration, Instant};

use self::undelivered::Undelivered;
use crate::account::{RowAccount, SenderSums};
use crate::collect::{Collectors, Levels};
use crate::flow::{Ends, Flow};
use crate::layout::Layout;
use crate::ledger::Ledger;
use crate::network::Network;
use crate::proxy::{Proxies, ProxySums};

/// The state of a run that metrics are computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State<'a> {
    pub net: &'a Network,
    pub flows: &'a [Flow],
    pub under_way: &'a InFlightMessages,
    pub collect: &'a Collectors,
    pub proxies: &'a Proxies,
    pub ledger: &'a Ledger,
}

/// Counters at the end of the warm-up.
#[derive(Debug)]
pub(crate) struct Before {
    at: Instant,
    links: Vec<LinkAccount>,
    accounts: Vec<RowAccount>,
    /// Windows integrated and senders' counters of each row.
    cwnd_integrals: Vec<u128>,
    senders: Vec<SenderSums>,
    /// Payload that each flow has delivered; empty where none has.
    delivered: Vec<u64>,
    /// What waits in collectors, for each upstream connection.
    levels: Vec<Levels>,
    /// What the proxies of each row have counted; empty where there are none.
    proxies: Vec<ProxySums>,
    crossings: Vec<PathCounters>,
    confusions: Vec<ConfusionMatrix>,
}

impl Before {
    /// The counters now, at the end of the warm-up.
    pub(crate) fn new(now: Instant, state: State<'_>) -> Self {
        let State { net, flows, ledger, .. } = state;
        for slot in net.links.iter().map(|link| &link.account) {
            debug_assert!(slot.arrived <= slot.offered + slot.duplicates);
        }
        let rows = ledger.accounts.len();
        Self {
            at: now,
            links: net.links.accounts(now).collect(),
            accounts: ledger.accounts.clone(),
            cwnd_integrals: ledger.accounts.iter().map(|row| row.cwnd_integral_at(now)).collect(),
            senders: sender_sums(flows, rows),
            delivered: if now == Instant::ZERO {
                Vec::new()
            } else {
                (0..flows.len()).map(|index| state.delivered(index)).collect()
            },
            levels: state.collect.levels(now),
            proxies: state.proxies.sums(now, flows, rows),
            crossings: ledger.crossings.clone(),
            confusions: ledger.truth.rows().to_vec(),
        }
    }
}

impl State<'_> {
    /// When the run ends.
    const fn end(&self) -> Instant {
        self.ledger.measured.end
    }

    /// Payload of a flow that has reached the application at the end of its path.
    fn delivered(&self, index: usize) -> u64 {
        let flow = &self.flows[index];
        let goes_on = || self.collect.outlet_after(index as u32).is_some();
        match &flow.ends {
            Ends::Tcp(ends) if flow.app.is_none() || !goes_on() => ends[1].receiver().delivered(),
            _ => self.ledger.apart[index],
        }
    }
}

/// What the senders of each row have counted so far.
fn sender_sums(flows: &[Flow], rows: usize) -> Vec<SenderSums> {
    let mut sums = vec![SenderSums::default(); rows];
    for flow in flows {
        if let Ends::Tcp(ends) = &flow.ends {
            sums[flow.row as usize].add(ends);
        }
    }
    sums
}

/// The rows of a finished run, from the counters `before` the measured time on.
pub(crate) fn rows(state: State<'_>, before: Option<&Before>, layout: &Layout) -> RunRows {
    let (flow_rows, link_rows) = (layout.flows.len(), layout.directions.rows().len());
    let Some(before) = before else {
        let (flows, links) = (vec![Vec::new(); flow_rows], vec![Vec::new(); link_rows]);
        return RunRows { flows, links, delays: Vec::new() };
    };
    let State { net, flows, ledger, .. } = state;
    let end = state.end();
    let span = end.since(before.at);
    let senders = sender_sums(flows, flow_rows);
    let senders = senders.iter().zip(&before.senders).map(|(now, then)| now.since(then));
    let crossings = ledger.crossings.iter().zip(&before.crossings);
    let crossings: Vec<PathCounters> = crossings.map(|(now, then)| now.since(then)).collect();
    let proxies = state.proxies.sums(end, flows, flow_rows);
    let flow = |(row, senders): (usize, SenderSums)| {
        let stages: Vec<_> = layout.stages(row).iter().map(|&stage| crossings[stage]).collect();
        let mut metrics = flow_row(state, before, row, &senders, (&crossings[row], &stages), span);
        if let Some(sums) = proxies.get(row) {
            sums.metrics(&before.proxies[row], span, &mut metrics);
        }
        if row >= layout.plan.flows.len() {
            let row = (flows, row as u32);
            state.collect.metrics(row, &before.levels, (end, span), &mut metrics);
        }
        metrics
    };
    let rows = senders.enumerate().map(flow).collect();
    let links = net.links.accounts(end);
    let links = LinkAccount::rows(links, &before.links, &layout.directions, span);
    let delays = delays(state, flow_rows);
    RunRows { flows: rows, links, delays }
}

/// The delays of each row whose flows send messages.
fn delays(state: State<'_>, rows: usize) -> Vec<Option<DelayCounts>> {
    let mut delays = vec![None; rows];
    for flow in state.flows.iter().filter(|flow| flow.has_messages()) {
        let row = flow.row as usize;
        delays[row].get_or_insert_with(|| state.ledger.delays[row].counts());
    }
    delays
}

/// What is gathered from the flows of a row.
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
    state: State<'_>,
    before: &Before,
    row: usize,
    senders: &SenderSums,
    (own, stages): (&PathCounters, &[PathCounters]),
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let mut members = Members::default();
    for (index, flow) in state.flows.iter().enumerate() {
        if flow.row as usize == row {
            let delivered = state.delivered(index);
            let earlier = before.delivered.get(index).copied().unwrap_or(0);
            members.add(flow, (earlier, delivered), (state.end(), secs));
            members.undelivered.add(flow, state);
        }
    }
    members.undelivered.add_collected(row as u32, state);
    let (account, earlier) = (&state.ledger.accounts[row], &before.accounts[row]);
    let mut metrics = Vec::new();
    members.rates(account, earlier, secs, &mut metrics);
    own.metrics(secs, members.tcp, &mut metrics);
    if members.tcp && !stages.is_empty() {
        PathCounters::totals(stages, &mut metrics);
    }
    if let Some(openings) = state.ledger.handshakes.of(row) {
        openings.metrics(&mut metrics);
    }
    if members.tcp {
        senders.metrics(&mut metrics);
        metrics.push((Metric::SegmentsReceived, (account.returned - earlier.returned) as f64));
        let truth = &state.ledger.truth;
        if truth.judges(row as u32) {
            truth.rows()[row].since(&before.confusions[row]).metrics(&mut metrics);
        }
        let integral = account.cwnd_integral_at(state.end()) - before.cwnd_integrals[row];
        let mean = integral as f64 / 1e9 / secs / members.count as f64;
        metrics.push((Metric::CwndMean, mean));
    }
    if members.messages {
        metrics.push((Metric::MessagesDue, account.due as f64));
        let (lost, of) = if members.tcp {
            (members.undelivered.unsent, account.due)
        } else {
            // What was lost in the warm-up may have arrived as a copy since.
            let lost = account.datagrams_lost.saturating_sub(earlier.datagrams_lost);
            (lost, account.datagrams - earlier.datagrams)
        };
        metrics.extend(message_loss(lost, of).map(|loss| (Metric::MessageLoss, loss)));
        state.ledger.delays[row].metrics(&members.undelivered.waiting, &mut metrics);
        let judge = state.ledger.judges[row].as_ref();
        metrics.extend(
            judge.and_then(DeadlineCounter::share).map(|share| (Metric::DeadlineMet, share)),
        );
    }
    metrics
}

impl Members {
    /// Adds a flow that had delivered so many bytes at the end of the warm-up and at the end of the
    /// run. The warm-up does not matter to a transfer: it is measured from its start on.
    fn add(&mut self, flow: &Flow, (earlier, delivered): (u64, u64), (end, secs): (Instant, f64)) {
        self.count += 1;
        self.tcp |= matches!(flow.ends, Ends::Tcp(_));
        self.messages |= flow.has_messages();
        match flow.app.as_ref().and_then(Application::transfer) {
            Some(transfer) => self.transfers.add(transfer, delivered, end),
            None => self.goodputs.add(delivered - earlier, secs),
        }
    }

    fn rates(&self, now: &RowAccount, then: &RowAccount, secs: f64, into: &mut Metrics) {
        if self.goodputs.count() > 0 {
            self.goodputs.metrics(into);
        }
        self.transfers.metrics(into);
        let arrived = now.arrived_bytes - then.arrived_bytes;
        into.push((Metric::Throughput, arrived as f64 * 8.0 / secs));
        let returned = now.returned_bytes - then.returned_bytes;
        into.push((Metric::ReverseThroughput, returned as f64 * 8.0 / secs));
    }
}

impl SenderSums {
    fn metrics(&self, into: &mut Metrics) {
        into.push((Metric::SegmentsSent, self.segments as f64));
        into.push((Metric::Retransmissions, self.retransmissions as f64));
        if self.segments > 0 {
            let ratio = self.retransmissions as f64 / self.segments as f64;
            into.push((Metric::RetransmissionRatio, ratio));
        }
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
    }
}
