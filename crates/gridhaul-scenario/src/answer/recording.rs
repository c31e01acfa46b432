//! Recording of series: windows, queues, throughput, message delays and losses over time.

use std::io;
use std::sync::Arc;

use super::{ColumnKind, RecordedBytesWriter, RecordingFile, Series, SeriesColumn, SeriesInfo};
use crate::units::{Duration, Instant};

/// Collects the rows of the series of one run. Flows and links are identified by their rows in the
/// answer.
#[derive(Debug)]
pub struct Recording {
    windows: RecordedBytesWriter,
    queues: RecordedBytesWriter,
    throughput: RecordedBytesWriter,
    delays: RecordedBytesWriter,
    losses: RecordedBytesWriter,
    /// Messages that were offered for `delays` and `losses`.
    messages: u64,
    lost: u64,
    /// Messages of the same tables that the caller had no space for.
    unkept_messages: u64,
    unkept_losses: u64,
}

/// A message that did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostMessage {
    /// When the message was due.
    pub ready: Instant,
    /// Row of the flow.
    pub flow: u32,
    /// Member of the flow.
    pub member: u32,
    /// When the datagram was lost or the message given up; `None` for other messages over TCP.
    pub lost: Option<Instant>,
    /// The reason.
    pub reason: LossReason,
}

/// Why a message did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The queue of a link was full.
    QueueFull,
    /// Active queue management dropped the packet.
    Aqm,
    /// Random loss.
    Loss,
    /// An outage of a link.
    Outage,
    /// Shadowing.
    Shadowing,
    /// A noise burst.
    Noise,
    /// Collisions on a shared medium.
    Collision,
    /// The checksum of the receiver did not match.
    Corrupted,
    /// A proxy was down.
    Proxy,
    /// The connection did not open.
    ConnectionFailed,
    /// The connection was closed or reset.
    ConnectionClosed,
    /// The message was on its way at the end of the run.
    Unfinished,
    /// An attacker dropped the packet.
    Attack,
    /// The sender gave the message up after all retransmissions.
    GivenUp,
}

impl LossReason {
    const ALL: [Self; 14] = [
        Self::QueueFull,
        Self::Aqm,
        Self::Loss,
        Self::Outage,
        Self::Shadowing,
        Self::Noise,
        Self::Collision,
        Self::Corrupted,
        Self::Proxy,
        Self::ConnectionFailed,
        Self::ConnectionClosed,
        Self::Unfinished,
        Self::Attack,
        Self::GivenUp,
    ];

    /// Name in the column `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Aqm => "aqm",
            Self::Loss => "loss",
            Self::Outage => "outage",
            Self::Shadowing => "shadowing",
            Self::Noise => "noise",
            Self::Collision => "collision",
            Self::Corrupted => "corrupted",
            Self::Proxy => "proxy",
            Self::ConnectionFailed => "connection_failed",
            Self::ConnectionClosed => "connection_closed",
            Self::Unfinished => "unfinished",
            Self::Attack => "attack",
            Self::GivenUp => "given_up",
        }
    }
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

/// Largest numbers of messages whose individual delays and losses are recorded.
const DELAYS_MAX: u64 = 1_000_000;

impl Recording {
    /// Records into a file, or without a file into memory.
    #[must_use]
    pub fn new(file: Option<&Arc<RecordingFile>>) -> Self {
        let writer = || RecordedBytesWriter::new(file.cloned());
        Self {
            windows: writer(),
            queues: writer(),
            throughput: writer(),
            delays: writer(),
            losses: writer(),
            messages: 0,
            lost: 0,
            unkept_messages: 0,
            unkept_losses: 0,
        }
    }

    /// Records a sample of the sender of a flow.
    pub fn on_window(&mut self, at: Instant, flow: u32, sample: WindowSample) {
        let row = [
            seconds(at),
            u64::from(flow),
            f64_word(sample.cwnd as f64),
            f64_word(sample.ssthresh.map_or(f64::NAN, |bytes| bytes as f64)),
            f64_word(sample.in_flight as f64),
            f64_word(sample.srtt.map_or(f64::NAN, Duration::as_secs_f64)),
            f64_word(sample.rto.as_secs_f64()),
        ];
        append(&mut self.windows, row);
    }

    /// Records the queue of a direction of a link.
    pub fn on_queue(&mut self, at: Instant, link: u32, (packets, bytes): (u32, u64)) {
        append(&mut self.queues, [seconds(at), u64::from(link), u64::from(packets), bytes]);
    }

    /// Records the throughput of a direction in bit/s since the previous sample.
    pub fn on_throughput(&mut self, at: Instant, link: u32, bits_per_s: f64) {
        append(&mut self.throughput, [seconds(at), u64::from(link), f64_word(bits_per_s)]);
    }

    /// Records the delay of a message that a member of a flow had ready at `ready`.
    pub fn on_message(&mut self, ready: Instant, flow: u32, member: u32, delay: Duration) {
        self.messages += 1;
        if self.messages <= DELAYS_MAX {
            let delay = f64_word(delay.as_secs_f64());
            append(&mut self.delays, [seconds(ready), u64::from(flow), delay, u64::from(member)]);
        }
    }

    /// Records a message that did not arrive.
    pub fn on_lost(&mut self, message: LostMessage) {
        self.lost += 1;
        if self.lost <= DELAYS_MAX {
            let LostMessage { ready, flow, member, lost, reason } = message;
            let lost = f64_word(lost.map_or(f64::NAN, Instant::as_secs_f64));
            let row = [seconds(ready), u64::from(flow), lost, reason as u64, u64::from(member)];
            append(&mut self.losses, row);
        }
    }

    /// Counts messages whose delays were not kept for [`on_message`](Self::on_message).
    pub const fn omit_messages(&mut self, count: u64) {
        self.unkept_messages += count;
    }

    /// Counts losses that were not kept for [`on_lost`](Self::on_lost).
    pub const fn omit_losses(&mut self, count: u64) {
        self.unkept_losses += count;
    }

    /// The series with at least one row.
    ///
    /// # Errors
    /// The file could not be written, such as on a full disk.
    pub fn into_series(
        self,
        flow_names: &[String],
        link_names: &[String],
    ) -> io::Result<Vec<Series>> {
        let offered_messages = self.messages + self.unkept_messages;
        let offered_losses = self.lost + self.unkept_losses;
        let Self { windows, queues, throughput, delays, losses, .. } = self;
        let tables = [windows, queues, throughput, delays, losses];
        let mut all = Vec::new();
        for (info, table) in SeriesInfo::ALL.iter().zip(tables) {
            let columns = info.columns.iter().map(|column| SeriesColumn {
                name: column.name.to_owned(),
                kind: match (column.kind, column.name) {
                    ("string", "flow") => ColumnKind::Text(flow_names.to_vec()),
                    ("string", "reason") => {
                        let names = LossReason::ALL.map(|reason| reason.name().to_owned());
                        ColumnKind::Text(names.to_vec())
                    }
                    ("string", _) => ColumnKind::Text(link_names.to_vec()),
                    ("uint64", _) => ColumnKind::Whole,
                    _ => ColumnKind::Real,
                },
            });
            let (name, columns) = (info.name.to_owned(), columns.collect());
            let has_members = matches!(info.name, "delays" | "losses");
            let rows = table.finish()?;
            let mut series = Series { name, columns, has_members, rows, ..Series::default() };
            let offered = match info.name {
                "delays" => offered_messages,
                "losses" => offered_losses,
                _ => series.row_count() as u64,
            };
            series.omitted_rows = offered - series.row_count() as u64;
            all.extend((series.row_count() > 0).then_some(series));
        }
        Ok(all)
    }
}

fn append<const N: usize>(table: &mut RecordedBytesWriter, row: [u64; N]) {
    table.append(row.map(u64::to_le_bytes).as_flattened());
}

fn seconds(at: Instant) -> u64 {
    f64_word(at.as_secs_f64())
}

/// A real number as it is stored.
const fn f64_word(value: f64) -> u64 {
    value.to_bits()
}

#[cfg(test)]
mod tests {
    use super::super::ColumnData;
    use super::*;

    fn recorded(file: Option<&Arc<RecordingFile>>, rows: u64) -> Vec<Series> {
        let mut recording = Recording::new(file);
        let delay = Duration::from_nanos(3);
        for row in 0..rows {
            let now = Instant::from_nanos(1_000_000_000 * row);
            let sample =
                WindowSample { cwnd: row, ssthresh: None, in_flight: 1, srtt: None, rto: delay };
            recording.on_window(now, 1, sample);
            recording.on_queue(now, 0, (1, row));
            recording.on_throughput(now, 0, 1.5);
            recording.on_message(now, 0, 5, delay);
            let (lost, reason) = (Some(now + delay), LossReason::Outage);
            recording.on_lost(LostMessage { ready: now, flow: 1, member: 6, lost, reason });
        }
        let flows = ["up".to_owned(), "down".to_owned()];
        recording.into_series(&flows, &["wire.forward".to_owned()]).unwrap()
    }

    #[test]
    fn a_table_counts_the_messages_that_it_lacks() {
        let mut recording = Recording::new(None);
        for _ in 0..DELAYS_MAX + 2 {
            recording.on_message(Instant::ZERO, 0, 0, Duration::ZERO);
        }
        recording.omit_messages(5);
        let series = recording.into_series(&["up".to_owned()], &[]).unwrap();
        assert_eq!((series[0].row_count() as u64, series[0].omitted_rows), (DELAYS_MAX, 7));
    }

    #[test]
    fn the_rows_have_the_columns_of_the_reference() {
        let series = recorded(None, 3);
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, SeriesInfo::ALL.iter().map(|info| info.name).collect::<Vec<_>>());
        let [windows, queues, throughput, delays, losses] = &series[..] else {
            panic!("five tables")
        };
        let f64_word = |series: &Series, column| match series.values(column, 1..3).unwrap() {
            ColumnData::Real(values) => values,
            other => panic!("{other:?}"),
        };
        assert_eq!((f64_word(windows, 0), f64_word(windows, 2)), (vec![1.0, 2.0], vec![1.0, 2.0]));
        assert!(f64_word(windows, 3)[0].is_nan());
        assert_eq!(f64_word(windows, 6), [3e-9, 3e-9]);
        let text = |words: &[&str], row| ColumnData::Text {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            rows: vec![row],
        };
        assert_eq!(windows.values(1, 0..1).unwrap(), text(&["up", "down"], 1));
        assert_eq!(queues.values(1, 2..3).unwrap(), text(&["wire.forward"], 0));
        assert_eq!(queues.values(3, 0..3).unwrap(), ColumnData::Whole(vec![0, 1, 2]));
        assert_eq!(f64_word(throughput, 2), [1.5, 1.5]);
        assert_eq!(
            (delays.members(0..2).unwrap(), queues.members(0..2).unwrap()),
            (vec![5; 2], vec![0; 2])
        );
        assert_eq!(f64_word(losses, 2), [1.0 + 3e-9, 2.0 + 3e-9]);
        assert_eq!(losses.members(0..1).unwrap(), [6]);
        let ColumnData::Text { words, rows } = losses.values(3, 0..1).unwrap() else { panic!() };
        assert_eq!(words[rows[0] as usize], "outage");
        assert!(recorded(None, 0).is_empty());
    }

    #[test]
    fn a_file_has_the_rows_of_memory() {
        let file = Arc::new(RecordingFile::new(tempfile::tempfile().unwrap()));
        let (in_file, in_memory) = (recorded(Some(&file), 10_000), recorded(None, 10_000));
        assert_eq!(in_file, in_memory);
        assert_eq!(in_file[0].row_count(), 10_000);
        let last = in_file[1].values(3, 9_999..10_000).unwrap();
        assert_eq!(last, ColumnData::Whole(vec![9_999]));
    }

    #[test]
    fn a_batch_has_the_values_of_every_column() {
        let file = Arc::new(RecordingFile::new(tempfile::tempfile().unwrap()));
        for series in recorded(Some(&file), 5_000) {
            let rows = 700..4_321;
            let batch = series.batch(rows.clone()).unwrap();
            assert_eq!(batch.columns.len(), series.columns.len());
            for (index, column) in batch.columns.into_iter().enumerate() {
                // As texts, since NaN equals nothing.
                let expected = series.values(index, rows.clone()).unwrap();
                assert!(
                    format!("{column:?}") == format!("{expected:?}"),
                    "{} {index}",
                    series.name
                );
            }
            let members = batch.members.unwrap_or_else(|| vec![0; rows.len()]);
            assert_eq!(members, series.members(rows).unwrap(), "{}", series.name);
        }
    }
}
