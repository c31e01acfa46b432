//! Series over time, on request: windows, queues, throughput and message delays.

use gridhaul_scenario::answer::{Column, ColumnData, Series};
use gridhaul_scenario::units::{Duration, Instant};

use crate::flow::{Ends, Flow};
use crate::network::Network;

/// Records series during a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    flow_names: Vec<String>,
    link_names: Vec<String>,
    /// When the first flow of each row starts.
    starts: Vec<Instant>,
    /// Row of each direction; only the first member of a group is recorded.
    link_row: Vec<u32>,
    windows: Windows,
    queues: Queues,
    rates: Rates,
    delays: DelaysOverTime,
}

#[derive(Debug, Default)]
struct Windows {
    time: Vec<f64>,
    flow: Vec<u32>,
    cwnd: Vec<f64>,
    ssthresh: Vec<f64>,
    in_flight: Vec<f64>,
    srtt: Vec<f64>,
    rto: Vec<f64>,
}

#[derive(Debug, Default)]
struct Queues {
    time: Vec<f64>,
    link: Vec<u32>,
    packets: Vec<u64>,
    bytes: Vec<u64>,
}

#[derive(Debug, Default)]
struct Rates {
    time: Vec<f64>,
    link: Vec<u32>,
    throughput: Vec<f64>,
    before: Vec<u64>,
}

#[derive(Debug, Default)]
struct DelaysOverTime {
    time: Vec<f64>,
    flow: Vec<u32>,
    delay: Vec<f64>,
}

/// Most messages whose delay is recorded one by one.
const DELAYS_MAX: usize = 1_000_000;

impl Recorder {
    pub(crate) fn new(
        interval: Duration,
        (flow_names, starts): (Vec<String>, Vec<Instant>),
        (link_names, link_row): (Vec<String>, Vec<u32>),
    ) -> Self {
        Self {
            interval,
            rates: Rates { before: vec![0; link_names.len()], ..Rates::default() },
            flow_names,
            link_names,
            starts,
            link_row,
            windows: Windows::default(),
            queues: Queues::default(),
            delays: DelaysOverTime::default(),
        }
    }

    /// Takes a sample. Returns when the next one is due.
    pub(crate) fn sample(&mut self, now: Instant, net: &mut Network, flows: &[Flow]) -> Instant {
        let time = now.as_secs_f64();
        self.sample_flows(now, time, flows);
        let mut seen = vec![false; self.link_names.len()];
        for (slot, &row) in net.links.iter_mut().zip(&self.link_row) {
            let row_index = row as usize;
            if std::mem::replace(&mut seen[row_index], true) {
                continue;
            }
            self.queues.time.push(time);
            self.queues.link.push(row);
            self.queues.packets.push(u64::from(slot.link.queue_packets(now)));
            self.queues.bytes.push(slot.link.queue_bytes(now));
            let arrived = slot.stats.arrived_bytes;
            let bits = (arrived - self.rates.before[row_index]) * 8;
            self.rates.before[row_index] = arrived;
            if now > Instant::ZERO {
                self.rates.time.push(time);
                self.rates.link.push(row);
                self.rates.throughput.push(bits as f64 / self.interval.as_secs_f64());
            }
        }
        now + self.interval
    }

    fn sample_flows(&mut self, now: Instant, time: f64, flows: &[Flow]) {
        let mut seen = vec![false; self.flow_names.len()];
        for flow in flows {
            let Ends::Tcp(ends) = &flow.ends else { continue };
            let row = flow.row as usize;
            if std::mem::replace(&mut seen[row], true) || now < self.starts[row] {
                continue;
            }
            let Some(sender) = ends[0].sender() else { continue };
            let unlimited = sender.ssthresh() == u32::MAX;
            let windows = &mut self.windows;
            windows.time.push(time);
            windows.flow.push(flow.row);
            windows.cwnd.push(f64::from(sender.cwnd()));
            windows.ssthresh.push(if unlimited { f64::NAN } else { f64::from(sender.ssthresh()) });
            windows.in_flight.push(sender.in_flight() as f64);
            windows.srtt.push(sender.rtt().srtt().map_or(f64::NAN, Duration::as_secs_f64));
            windows.rto.push(sender.rtt().rto(ends[0].params()).as_secs_f64());
        }
    }

    /// A message that was ready at `ready` has arrived after `delay`.
    pub(crate) fn on_message(&mut self, ready: Instant, row: u32, delay: Duration) {
        if self.delays.time.len() < DELAYS_MAX {
            self.delays.time.push(ready.as_secs_f64());
            self.delays.flow.push(row);
            self.delays.delay.push(delay.as_secs_f64());
        }
    }

    /// The tables.
    pub(crate) fn into_series(self) -> Vec<Series> {
        let flow = |rows| text("flow", &self.flow_names, rows);
        let link = |rows| text("link", &self.link_names, rows);
        let Self { windows, queues, rates, delays, .. } = self;
        let tables = [
            (
                "windows",
                vec![
                    real("time_s", windows.time),
                    flow(windows.flow),
                    real("cwnd_byte", windows.cwnd),
                    real("ssthresh_byte", windows.ssthresh),
                    real("in_flight_byte", windows.in_flight),
                    real("srtt_s", windows.srtt),
                    real("rto_s", windows.rto),
                ],
            ),
            (
                "queues",
                vec![
                    real("time_s", queues.time),
                    link(queues.link),
                    whole("queue_packets", queues.packets),
                    whole("queue_byte", queues.bytes),
                ],
            ),
            (
                "throughput",
                vec![
                    real("time_s", rates.time),
                    link(rates.link),
                    real("throughput_bit_per_s", rates.throughput),
                ],
            ),
            (
                "delays",
                vec![real("time_s", delays.time), flow(delays.flow), real("delay_s", delays.delay)],
            ),
        ];
        tables
            .into_iter()
            .filter(|(_, columns)| !columns[0].data.is_empty())
            .map(|(name, columns)| Series { name: name.to_owned(), columns })
            .collect()
    }
}

fn real(name: &str, values: Vec<f64>) -> Column {
    Column { name: name.to_owned(), data: ColumnData::Real(values) }
}

fn whole(name: &str, values: Vec<u64>) -> Column {
    Column { name: name.to_owned(), data: ColumnData::Whole(values) }
}

fn text(name: &str, words: &[String], rows: Vec<u32>) -> Column {
    Column { name: name.to_owned(), data: ColumnData::Text { words: words.to_vec(), rows } }
}
