//! From counters to metrics: what happened between the end of the warm-up and the end of the run.

use gridhaul_core::tcp::{Connection, SenderStats};
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::units::{Duration, Instant};
use hdrhistogram::Histogram;

use crate::crossing::Crossings;
use crate::flow::{App, Ends, Flow, FlowCounters};
use crate::judge::Judge;
use crate::network::{LinkStats, Network};
use crate::world::World;

/// The account of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Message delays of each row of flows.
    pub delays: Vec<Delays>,
    /// How the data packets of each row of flows cross its stage.
    pub crossings: Vec<Crossings>,
    /// Who judges the messages of each row of flows, if they have a deadline.
    pub judges: Vec<Option<Judge>>,
    /// The counters at the end of the warm-up.
    pub before: Option<Before>,
}

/// Counters at the end of the warm-up.
#[derive(Debug)]
pub(crate) struct Before {
    at: Instant,
    links: Vec<LinkStats>,
    flows: Vec<FlowBefore>,
    crossings: Vec<Crossings>,
}

#[derive(Debug, Clone, Copy)]
struct FlowBefore {
    counters: FlowCounters,
    cwnd_integral: u128,
    delivered: u64,
    sender: SenderStats,
}

/// Delays of messages.
#[derive(Debug)]
pub(crate) struct Delays {
    /// In microseconds, to three digits.
    histogram: Histogram<u64>,
    sum_ns: u128,
    max: Duration,
}

/// The metrics of one row in one run.
pub(crate) type Metrics = Vec<(Metric, f64)>;

/// The rows of one run.
#[derive(Debug)]
pub(crate) struct RunRows {
    pub flows: Vec<Metrics>,
    pub links: Vec<Metrics>,
}

impl Delays {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new(3).expect("three digits are within hdrhistogram's bounds");
        Self { histogram, sum_ns: 0, max: Duration::ZERO }
    }

    pub(crate) fn record(&mut self, delay: Duration) {
        self.histogram.record(delay.as_nanos() / 1_000).expect("the histogram grows");
        self.sum_ns += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    fn metrics(&self, into: &mut Metrics) {
        let count = self.histogram.len();
        into.push((Metric::Messages, count as f64));
        if count == 0 {
            return;
        }
        let quantile = |q: f64| self.histogram.value_at_quantile(q) as f64 / 1e6;
        into.push((Metric::DelayMean, self.sum_ns as f64 / count as f64 / 1e9));
        into.push((Metric::DelayMedian, quantile(0.5)));
        into.push((Metric::DelayP98, quantile(0.98)));
        into.push((Metric::DelayMax, self.max.as_secs_f64()));
    }
}

impl Ledger {
    /// One row for each of the judges: `None` where there is no deadline.
    pub(crate) fn new(judges: Vec<Option<Judge>>) -> Self {
        let rows = judges.len();
        Self {
            delays: (0..rows).map(|_| Delays::new()).collect(),
            crossings: vec![Crossings::default(); rows],
            judges,
            before: None,
        }
    }

    /// A message of a row is ready.
    #[inline]
    pub(crate) fn on_ready(&mut self, row: u32, ready: Instant) {
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_ready(ready);
        }
    }

    /// A message of a row has arrived whole.
    pub(crate) fn on_delivered(
        &mut self,
        row: u32,
        ready: Instant,
        delay: Duration,
        warmup: Instant,
    ) {
        if ready >= warmup {
            self.delays[row as usize].record(delay);
        }
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_delivered(ready, delay);
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin(&mut self, now: Instant, net: &Network, flows: &mut [Flow]) {
        for slot in net.links.iter().map(|slot| &slot.stats) {
            debug_assert!(slot.arrived <= slot.offered + slot.copies);
        }
        self.before = Some(Before {
            at: now,
            links: net.links.iter().map(|slot| slot.stats).collect(),
            flows: flows.iter().map(|flow| flow.snapshot(now)).collect(),
            crossings: self.crossings.clone(),
        });
    }
}

impl Flow {
    fn snapshot(&self, now: Instant) -> FlowBefore {
        FlowBefore {
            counters: self.counters,
            cwnd_integral: self.counters.cwnd_integral_at(now),
            delivered: self.delivered(),
            sender: match &self.ends {
                Ends::Tcp(ends) => sender_stats(ends),
                Ends::Datagram { .. } => SenderStats::default(),
            },
        }
    }
}

fn sender_stats(ends: &[Connection; 2]) -> SenderStats {
    ends[0].sender().map_or_else(SenderStats::default, |sender| *sender.stats())
}

/// The rows of a finished run. `flow_rows` and `link_rows` say how many rows there are and
/// `link_row` to which one each direction belongs.
pub(crate) fn rows(world: &World, flow_rows: usize, link_rows: usize, link_row: &[u32]) -> RunRows {
    let Some(before) = &world.ledger.before else {
        return RunRows { flows: vec![Vec::new(); flow_rows], links: vec![Vec::new(); link_rows] };
    };
    let span = world.end.since(before.at);
    let flows = (0..flow_rows).map(|row| flow_row(world, before, row, span)).collect();
    let links =
        (0..link_rows).map(|row| link_metrics(world, before, row, link_row, span)).collect();
    RunRows { flows, links }
}

/// Sums over the equal flows of a row.
#[derive(Default)]
struct FlowSums {
    goodputs: Vec<f64>,
    arrived: u64,
    returned: u64,
    segments: u64,
    retransmissions: u64,
    fast: u64,
    timeouts: u64,
    rtt_ns: u64,
    rtts: u64,
    cwnd: f64,
    completion: Vec<f64>,
    datagrams: u64,
    lost: u64,
}

fn flow_row(world: &World, before: &Before, row: usize, span: Duration) -> Metrics {
    let secs = span.as_secs_f64();
    let mut sums = FlowSums::default();
    let (mut tcp, mut messages, mut transfer) = (false, false, false);
    let members = world.flows.iter().zip(&before.flows);
    for (flow, earlier) in members.filter(|(flow, _)| flow.row as usize == row) {
        sums.add(flow, earlier, world.end, secs);
        tcp |= matches!(flow.ends, Ends::Tcp(_));
        messages |= !matches!(flow.app, App::Bulk | App::Transfer { .. });
        transfer |= matches!(flow.app, App::Transfer { .. });
    }
    let mut metrics = Vec::new();
    sums.rates(secs, &mut metrics);
    let crossings = world.ledger.crossings[row].since(&before.crossings[row]);
    crossings.metrics(secs, tcp, &mut metrics);
    if tcp {
        Crossings::totals(&[crossings], &mut metrics);
    }
    if transfer && !sums.completion.is_empty() {
        let mean = sums.completion.iter().sum::<f64>() / sums.completion.len() as f64;
        metrics.push((Metric::CompletionTime, mean));
    }
    if tcp {
        sums.tcp(&mut metrics);
    }
    if messages {
        if !tcp {
            let loss = sums.lost as f64 / sums.datagrams.max(1) as f64;
            metrics.push((Metric::MessageLoss, loss));
        }
        world.ledger.delays[row].metrics(&mut metrics);
        let judge = world.ledger.judges[row].as_ref();
        metrics.extend(judge.and_then(Judge::share).map(|share| (Metric::DeadlineMet, share)));
    }
    metrics
}

impl FlowSums {
    fn add(&mut self, flow: &Flow, earlier: &FlowBefore, end: Instant, secs: f64) {
        let bits = (flow.delivered() - earlier.delivered) * 8;
        self.goodputs.push(bits as f64 / secs);
        self.arrived += flow.counters.arrived_bytes - earlier.counters.arrived_bytes;
        self.returned += flow.counters.returned_bytes - earlier.counters.returned_bytes;
        self.datagrams += flow.counters.datagrams - earlier.counters.datagrams;
        self.lost += flow.counters.datagrams_lost - earlier.counters.datagrams_lost;
        if let Ends::Tcp(ends) = &flow.ends {
            let (now, then) = (sender_stats(ends), &earlier.sender);
            self.segments += now.segments - then.segments;
            self.retransmissions += u64::from(now.retransmissions - then.retransmissions);
            self.fast += u64::from(now.fast_retransmits - then.fast_retransmits);
            self.timeouts += u64::from(now.timeouts - then.timeouts);
            self.rtt_ns += now.rtt_sum_ns - then.rtt_sum_ns;
            self.rtts += now.rtt_count - then.rtt_count;
            let integral = flow.counters.cwnd_integral_at(end) - earlier.cwnd_integral;
            self.cwnd += integral as f64 / 1e9 / secs;
        }
        if let Some(completed) = flow.counters.completed {
            self.completion.push(completed.since(flow.start).as_secs_f64());
        }
    }

    fn rates(&self, secs: f64, into: &mut Metrics) {
        let sum: f64 = self.goodputs.iter().sum();
        let squares: f64 = self.goodputs.iter().map(|goodput| goodput * goodput).sum();
        into.push((Metric::Goodput, sum));
        into.push((Metric::Throughput, self.arrived as f64 * 8.0 / secs));
        into.push((Metric::ReverseThroughput, self.returned as f64 * 8.0 / secs));
        if self.goodputs.len() > 1 && squares > 0.0 {
            // Jain, Chiu and Hawe 1984: (sum x)^2 / (n * sum x^2).
            let fairness = sum * sum / (self.goodputs.len() as f64 * squares);
            into.push((Metric::Fairness, fairness));
        }
    }

    fn tcp(&self, into: &mut Metrics) {
        into.push((Metric::SegmentsSent, self.segments as f64));
        into.push((Metric::Retransmissions, self.retransmissions as f64));
        if self.segments > 0 {
            let ratio = self.retransmissions as f64 / self.segments as f64;
            into.push((Metric::RetransmissionRatio, ratio));
        }
        into.push((Metric::FastRetransmits, self.fast as f64));
        into.push((Metric::Timeouts, self.timeouts as f64));
        if self.rtts > 0 {
            into.push((Metric::RttMean, self.rtt_ns as f64 / self.rtts as f64 / 1e9));
        }
        into.push((Metric::CwndMean, self.cwnd / self.goodputs.len() as f64));
    }
}

fn link_metrics(
    world: &World,
    before: &Before,
    row: usize,
    link_row: &[u32],
    span: Duration,
) -> Metrics {
    let secs = span.as_secs_f64();
    let mut sum = LinkStats::default();
    let mut members = 0_u32;
    for ((slot, earlier), &of) in world.net.links.iter().zip(&before.links).zip(link_row) {
        if of as usize == row {
            sum.add_difference(&slot.stats, earlier);
            members += 1;
        }
    }
    let lost = sum.dropped_queue + sum.dropped_loss + sum.dropped_outage;
    let per_link = span.as_nanos() as f64 * f64::from(members.max(1));
    let mut metrics = vec![
        (Metric::LinkThroughput, sum.arrived_bytes as f64 * 8.0 / secs),
        (Metric::Utilisation, sum.busy_ns as f64 / per_link),
        (Metric::PacketsIn, sum.offered as f64),
        (Metric::PacketsOut, sum.arrived as f64),
        (Metric::DropsQueue, sum.dropped_queue as f64),
        (Metric::DropsLoss, sum.dropped_loss as f64),
        (Metric::DropsOutage, sum.dropped_outage as f64),
        (Metric::Corrupted, sum.damaged as f64),
        (Metric::Duplicated, sum.copies as f64),
        // Little's law: packets waiting on average are packets a second times the time each waits.
        (Metric::QueueMean, sum.waited_ns as f64 / per_link),
        (Metric::QueueMax, f64::from(sum.queue_max)),
    ];
    if sum.offered > 0 {
        metrics.push((Metric::LossRatio, lost as f64 / sum.offered as f64));
    }
    let originals = sum.arrived - sum.copies;
    if originals > 0 {
        metrics.push((Metric::LinkDelayMean, sum.delay_ns as f64 / originals as f64 / 1e9));
    }
    metrics
}

impl LinkStats {
    fn add_difference(&mut self, now: &Self, earlier: &Self) {
        self.offered += now.offered - earlier.offered;
        self.arrived += now.arrived - earlier.arrived;
        self.arrived_bytes += now.arrived_bytes - earlier.arrived_bytes;
        self.dropped_queue += now.dropped_queue - earlier.dropped_queue;
        self.dropped_loss += now.dropped_loss - earlier.dropped_loss;
        self.dropped_outage += now.dropped_outage - earlier.dropped_outage;
        self.damaged += now.damaged - earlier.damaged;
        self.copies += now.copies - earlier.copies;
        self.waited_ns += now.waited_ns - earlier.waited_ns;
        self.busy_ns += now.busy_ns - earlier.busy_ns;
        self.delay_ns += now.delay_ns - earlier.delay_ns;
        self.queue_max = self.queue_max.max(now.queue_max);
    }
}
