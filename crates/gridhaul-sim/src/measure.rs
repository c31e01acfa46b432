//! From counters to metrics: what happened between the end of the warm-up and the end of the run.

use std::ops::Range;

use gridhaul_core::link::{Cause, Confusion, Crossings, LinkAccount};
use gridhaul_core::load::{Application, Delays, Goodputs, Judge, Transfers, message_loss};
use gridhaul_core::tcp::{Flags, Segment, Sender};
use gridhaul_scenario::answer::{DelayCounts, Metric, Metrics, RunRows};
use gridhaul_scenario::units::{Duration, Instant};

use crate::account::{RowAccount, SenderSums};
use crate::build::Layout;
use crate::collect::{Collectors, Levels};
use crate::copies::Copies;
use crate::flow::{Ends, Flow};
use crate::network::Network;
use crate::opening::Handshakes;
use crate::proxy::{Proxies, ProxySums};
use crate::truth::Truth;
use crate::undelivered::Undelivered;
use crate::world::World;

/// The account of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Message delays of each row of flows.
    pub delays: Vec<Delays>,
    /// The account of each row of flows.
    pub accounts: Vec<RowAccount>,
    /// How the data packets of each row of flows cross its stage.
    pub crossings: Vec<Crossings>,
    /// Payload of each flow that has arrived without its own connection: datagrams, and what
    /// collectors have taken on. Empty where there are neither.
    pub apart: Vec<u64>,
    /// Who judges the messages of each row of flows, if they have a deadline.
    pub judges: Vec<Option<Judge>>,
    /// Which datagrams have arrived and are lost, where links make copies of packets.
    pub copies: Option<Copies>,
    /// What senders say of losses, beside the truth.
    pub truth: Truth,
    pub handshakes: Handshakes,
    /// The measured time.
    measured: Range<Instant>,
    /// The counters at the end of the warm-up.
    pub before: Option<Before>,
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
    crossings: Vec<Crossings>,
    confusions: Vec<Confusion>,
}

impl Ledger {
    /// One row for each of the judges: `None` where there is no deadline. `apart` has a zero for
    /// each flow, if some of their payload will arrive apart from connections.
    pub(crate) fn new(
        judges: Vec<Option<Judge>>,
        apart: Vec<u64>,
        truth: Truth,
        measured: Range<Instant>,
    ) -> Self {
        let rows = judges.len();
        Self {
            delays: (0..rows).map(|_| Delays::new()).collect(),
            accounts: vec![RowAccount::default(); rows],
            crossings: vec![Crossings::default(); rows],
            apart,
            judges,
            copies: None,
            truth,
            handshakes: Handshakes::new(rows),
            measured,
            before: None,
        }
    }

    /// A data segment of a flow is lost, and why.
    #[inline]
    pub(crate) fn on_segment_lost(&mut self, row: u32, flow: u32, segment: &Segment, cause: Cause) {
        self.crossings[row as usize].lost += 1;
        self.truth.on_lost(flow, segment, cause);
    }

    /// A datagram is lost.
    pub(crate) fn on_datagram_lost(&mut self, row: u32, number: u32) {
        let account = &mut self.accounts[row as usize];
        match &mut self.copies {
            Some(copies) => copies.on_lost(row, number, account),
            None => account.datagrams_lost += 1,
        }
    }

    /// A datagram has arrived: whether nothing of its message has before.
    pub(crate) fn is_first(&mut self, row: u32, number: u32) -> bool {
        let account = &mut self.accounts[row as usize];
        self.copies.as_mut().is_none_or(|copies| copies.on_arrived(row, number, account))
    }

    /// A segment of so many bytes has reached an end of a flow, and was handled there.
    #[inline]
    pub(crate) fn on_received(
        &mut self,
        now: Instant,
        to: u32,
        segment: &Segment,
        bytes: u32,
        flow: &mut Flow,
    ) {
        let account = &mut self.accounts[flow.row as usize];
        let bytes = u64::from(bytes);
        if to % 2 == 1 {
            account.arrived_bytes += bytes;
            return;
        }
        account.returned_bytes += bytes;
        account.returned += 1;
        let Ends::Tcp([near, _]) = &flow.ends else { return };
        account.note_cwnd(now, &mut flow.cwnd, near.sender().map_or(0, Sender::cwnd));
        if segment.flags.has(Flags::SYN) {
            self.handshakes.on_answered(now, to / 2, flow.row, near);
        }
    }

    /// A message of a row is ready.
    #[inline]
    pub(crate) fn on_ready(&mut self, row: u32, ready: Instant) {
        self.accounts[row as usize].due += u64::from(self.measured.contains(&ready));
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_ready(ready);
        }
    }

    /// A message of a row has arrived whole.
    pub(crate) fn on_delivered(&mut self, row: u32, ready: Instant, delay: Duration) {
        if ready >= self.measured.start {
            self.delays[row as usize].record(delay);
        }
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_delivered(ready, delay);
        }
    }

    /// Payload of a flow that has reached the application at the end of the way.
    fn delivered(&self, index: usize, flow: &Flow, collect: &Collectors) -> u64 {
        let goes_on = || collect.outlet_after(index as u32).is_some();
        match &flow.ends {
            Ends::Tcp(ends) if flow.app.is_none() || !goes_on() => ends[1].receiver().delivered(),
            _ => self.apart[index],
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        net: &Network,
        flows: &[Flow],
        (collect, proxies): (&Collectors, &Proxies),
    ) {
        for slot in net.links.iter().map(|slot| &slot.stats) {
            debug_assert!(slot.arrived <= slot.offered + slot.copies);
        }
        self.before = Some(Before {
            at: now,
            links: net.links.iter().map(|slot| slot.stats.at(now, &slot.link)).collect(),
            accounts: self.accounts.clone(),
            cwnd_integrals: self.accounts.iter().map(|row| row.cwnd_integral_at(now)).collect(),
            senders: sender_sums(flows, self.accounts.len()),
            delivered: if now == Instant::ZERO {
                Vec::new()
            } else {
                let flows = flows.iter().enumerate();
                flows.map(|(index, flow)| self.delivered(index, flow, collect)).collect()
            },
            levels: collect.levels(now),
            proxies: proxies.sums(now, flows, self.accounts.len()),
            crossings: self.crossings.clone(),
            confusions: self.truth.rows().to_vec(),
        });
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

/// The rows of a finished run.
pub(crate) fn rows(world: &World, layout: &Layout) -> RunRows {
    let (flow_rows, link_rows) = (layout.flows.len(), layout.directions.rows().len());
    let Some(before) = &world.ledger.before else {
        let (flows, links) = (vec![Vec::new(); flow_rows], vec![Vec::new(); link_rows]);
        return RunRows { flows, links, delays: Vec::new() };
    };
    let span = world.end.since(before.at);
    let senders = sender_sums(&world.flows, flow_rows);
    let senders = senders.iter().zip(&before.senders).map(|(now, then)| now.since(then));
    let crossings = world.ledger.crossings.iter().zip(&before.crossings);
    let crossings: Vec<Crossings> = crossings.map(|(now, then)| now.since(then)).collect();
    let proxies = world.proxies.sums(world.end, &world.flows, flow_rows);
    let flow = |(row, senders): (usize, SenderSums)| {
        let stages: Vec<_> = layout.stages(row).iter().map(|&stage| crossings[stage]).collect();
        let mut metrics = flow_row(world, before, row, &senders, (&crossings[row], &stages), span);
        if let Some(sums) = proxies.get(row) {
            sums.metrics(&before.proxies[row], span, &mut metrics);
        }
        if row >= layout.plan.flows.len() {
            let collect = &world.collect;
            collect.metrics(world, row as u32, &before.levels, span, &mut metrics);
        }
        metrics
    };
    let flows = senders.enumerate().map(flow).collect();
    let links = world.net.links.iter().map(|slot| slot.stats.at(world.end, &slot.link));
    let links = LinkAccount::rows(links, &before.links, &layout.directions, span);
    let delays = delays(world, flow_rows);
    RunRows { flows, links, delays }
}

/// The delays of each row whose flows send messages.
fn delays(world: &World, rows: usize) -> Vec<Option<DelayCounts>> {
    let mut delays = vec![None; rows];
    for flow in world.flows.iter().filter(|flow| flow.has_messages()) {
        let row = flow.row as usize;
        delays[row].get_or_insert_with(|| world.ledger.delays[row].counts());
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
    world: &World,
    before: &Before,
    row: usize,
    senders: &SenderSums,
    (own, stages): (&Crossings, &[Crossings]),
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let mut members = Members::default();
    for (index, flow) in world.flows.iter().enumerate() {
        if flow.row as usize == row {
            let delivered = world.ledger.delivered(index, flow, &world.collect);
            let earlier = before.delivered.get(index).copied().unwrap_or(0);
            members.add(flow, (earlier, delivered), (world.end, secs));
            members.undelivered.add(flow, world);
        }
    }
    members.undelivered.add_collected(row as u32, world);
    let (account, earlier) = (&world.ledger.accounts[row], &before.accounts[row]);
    let mut metrics = Vec::new();
    members.rates(account, earlier, secs, &mut metrics);
    own.metrics(secs, members.tcp, &mut metrics);
    if members.tcp && !stages.is_empty() {
        Crossings::totals(stages, &mut metrics);
    }
    if let Some(openings) = world.ledger.handshakes.of(row) {
        openings.metrics(&mut metrics);
    }
    if members.tcp {
        senders.metrics(&mut metrics);
        metrics.push((Metric::SegmentsReceived, (account.returned - earlier.returned) as f64));
        let truth = &world.ledger.truth;
        if truth.judges(row as u32) {
            truth.rows()[row].since(&before.confusions[row]).metrics(&mut metrics);
        }
        let integral = account.cwnd_integral_at(world.end) - before.cwnd_integrals[row];
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
        world.ledger.delays[row].metrics(&members.undelivered.waiting, &mut metrics);
        let judge = world.ledger.judges[row].as_ref();
        metrics.extend(judge.and_then(Judge::share).map(|share| (Metric::DeadlineMet, share)));
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
            into.push((Metric::MeasureUpdates, self.updates as f64));
            into.push((Metric::MeasureEvaluations, self.evaluations as f64));
        }
    }
}
