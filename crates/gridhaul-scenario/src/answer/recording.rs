//! Recording of series: windows, queues, throughput and message delays over time.

use super::{Column, ColumnData, Series};
use crate::units::{Duration, Instant};

/// Collects the rows of the series of one run. Flows and links are identified by their rows in the
/// answer.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    windows: Windows,
    queues: Queues,
    rates: Rates,
    delays: Delays,
}

/// A sample of the sender of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSample {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `None` before a loss sets it.
    pub ssthresh: Option<u64>,
    /// Bytes sent and not yet acknowledged.
    pub in_flight: u64,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
}

#[derive(Debug, Clone, Default)]
struct Windows {
    time: Vec<f64>,
    flow: Vec<u32>,
    cwnd: Vec<f64>,
    ssthresh: Vec<f64>,
    in_flight: Vec<f64>,
    srtt: Vec<f64>,
    rto: Vec<f64>,
}

#[derive(Debug, Clone, Default)]
struct Queues {
    time: Vec<f64>,
    link: Vec<u32>,
    packets: Vec<u64>,
    bytes: Vec<u64>,
}

#[derive(Debug, Clone, Default)]
struct Rates {
    time: Vec<f64>,
    link: Vec<u32>,
    throughput: Vec<f64>,
}

#[derive(Debug, Clone, Default)]
struct Delays {
    time: Vec<f64>,
    flow: Vec<u32>,
    member: Vec<u32>,
    delay: Vec<f64>,
}

/// Largest number of messages whose individual delays are recorded.
const DELAYS_MAX: usize = 1_000_000;

impl Recording {
    /// Records a sample of the sender of a flow.
    pub fn on_window(&mut self, at: Instant, flow: u32, sample: WindowSample) {
        let windows = &mut self.windows;
        windows.time.push(at.as_secs_f64());
        windows.flow.push(flow);
        windows.cwnd.push(sample.cwnd as f64);
        windows.ssthresh.push(sample.ssthresh.map_or(f64::NAN, |bytes| bytes as f64));
        windows.in_flight.push(sample.in_flight as f64);
        windows.srtt.push(sample.srtt.map_or(f64::NAN, Duration::as_secs_f64));
        windows.rto.push(sample.rto.as_secs_f64());
    }

    /// Records the queue of a direction of a link.
    pub fn on_queue(&mut self, at: Instant, link: u32, (packets, bytes): (u32, u64)) {
        self.queues.time.push(at.as_secs_f64());
        self.queues.link.push(link);
        self.queues.packets.push(u64::from(packets));
        self.queues.bytes.push(bytes);
    }

    /// Records the throughput of a direction in bit/s since the previous sample.
    pub fn on_throughput(&mut self, at: Instant, link: u32, bits_per_s: f64) {
        self.rates.time.push(at.as_secs_f64());
        self.rates.link.push(link);
        self.rates.throughput.push(bits_per_s);
    }

    /// Records the delay of a message that a member of a flow had ready at `ready`.
    pub fn on_message(&mut self, ready: Instant, (flow, member): (u32, u32), delay: Duration) {
        if self.delays.time.len() < DELAYS_MAX {
            self.delays.time.push(ready.as_secs_f64());
            self.delays.flow.push(flow);
            self.delays.member.push(member);
            self.delays.delay.push(delay.as_secs_f64());
        }
    }

    /// The series with at least one row.
    #[must_use]
    pub fn into_series(self, flow_names: &[String], link_names: &[String]) -> Vec<Series> {
        let flow = |rows| text("flow", flow_names, rows);
        let link = |rows| text("link", link_names, rows);
        let Self { windows, queues, rates, delays } = self;
        let tables = [
            (
                "windows",
                Vec::new(),
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
                Vec::new(),
                vec![
                    real("time_s", queues.time),
                    link(queues.link),
                    whole("queue_packets", queues.packets),
                    whole("queue_byte", queues.bytes),
                ],
            ),
            (
                "throughput",
                Vec::new(),
                vec![
                    real("time_s", rates.time),
                    link(rates.link),
                    real("throughput_bit_per_s", rates.throughput),
                ],
            ),
            (
                "delays",
                delays.member,
                vec![real("time_s", delays.time), flow(delays.flow), real("delay_s", delays.delay)],
            ),
        ];
        tables
            .into_iter()
            .filter(|(_, _, columns)| !columns[0].data.is_empty())
            .map(|(name, members, columns)| Series {
                name: name.to_owned(),
                point: 0,
                members,
                columns,
            })
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

#[cfg(test)]
mod tests {
    use super::super::SeriesInfo;
    use super::*;

    #[test]
    fn the_tables_are_those_of_the_reference() {
        let mut recording = Recording::default();
        let (now, delay) = (Instant::from_nanos(7), Duration::from_nanos(3));
        let sample = WindowSample { cwnd: 1, ssthresh: None, in_flight: 1, srtt: None, rto: delay };
        recording.on_window(now, 0, sample);
        recording.on_queue(now, 0, (1, 2));
        recording.on_throughput(now, 0, 1.0);
        recording.on_message(now, (0, 5), delay);
        let made = recording.into_series(&["up".to_owned()], &["wire.forward".to_owned()]);
        let names = |series: &Series| series.columns.iter().map(|c| c.name.clone()).collect();
        let made: Vec<(String, Vec<String>)> =
            made.iter().map(|series| (series.name.clone(), names(series))).collect();
        let documented = |info: &SeriesInfo| {
            let names = info.columns.iter().map(|column| column.name.to_owned());
            (info.name.to_owned(), names.collect())
        };
        assert_eq!(made, SeriesInfo::ALL.iter().map(documented).collect::<Vec<_>>());
    }
}
