//! Recorded series: tables over time, written as Parquet files.

use std::io;
use std::ops::Range;

use super::RecordedBytes;

/// A table over time. Its rows can exceed the memory: they are read column by column, in parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Name of the file: the name of the table ([`SeriesInfo`]) and, in a sweep, the number of the
    /// point.
    pub name: String,
    /// Index of the point of the answer ([`Answer::points`](super::Answer::points)).
    pub point: usize,
    /// Number of the recorded replication.
    pub replication: u32,
    /// Columns; the first is the time.
    pub columns: Vec<SeriesColumn>,
    /// Whether each row has the member of its group of flows or links; else all are of member 0.
    pub(super) has_members: bool,
    /// The rows, each with a word of eight bytes, little-endian, for each column and for the
    /// member.
    pub(super) rows: RecordedBytes,
    /// Messages after the largest number that a table holds.
    pub(super) omitted_rows: u64,
}

/// Name and type of a column of a [`Series`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesColumn {
    /// Name, `<quantity>_<unit>`.
    pub name: String,
    /// Type of the values.
    pub kind: ColumnKind,
}

/// Type of the values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// Real numbers; NaN for missing values.
    Real,
    /// Whole numbers.
    Whole,
    /// Texts out of this list.
    Text(Vec<String>),
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, `<quantity>_<unit>`.
    pub name: String,
    /// Values.
    pub data: ColumnData,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// Real numbers; NaN for missing values (written as null).
    Real(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Texts, as indices into a list of distinct texts.
    Text {
        /// Distinct texts.
        words: Vec<String>,
        /// For each row, the index of its text.
        rows: Vec<u32>,
    },
}

/// Some rows of a [`Series`].
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesBatch {
    /// The values of each column.
    pub columns: Vec<ColumnData>,
    /// The member of its group of flows or links in each row; `None` if all are of member 0.
    pub members: Option<Vec<u64>>,
}

/// Description of a recorded table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesInfo {
    /// Name of the table and beginning of the file name.
    pub name: &'static str,
    /// Meaning of a row.
    pub doc: &'static str,
    /// Columns of the table, in order.
    pub columns: &'static [ColumnInfo],
}

/// Description of a column of a recorded table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Name, `<quantity>_<unit>`.
    pub name: &'static str,
    /// Type in the Parquet file.
    pub kind: &'static str,
    /// Unit for display; empty for names and pure numbers.
    pub unit: &'static str,
    /// Definition.
    pub doc: &'static str,
}

impl ColumnInfo {
    pub(crate) const fn new(
        name: &'static str,
        kind: &'static str,
        unit: &'static str,
        doc: &'static str,
    ) -> Self {
        Self { name, kind, unit, doc }
    }
}

const TIME: ColumnInfo =
    ColumnInfo::new("time_s", "double", "s", "Time since the start of the run.");
const FLOW: ColumnInfo =
    ColumnInfo::new("flow", "string", "", "Name of the flow, as in the answer.");
const LINK: ColumnInfo = ColumnInfo::new(
    "link",
    "string",
    "",
    "Direction of a link, as in the answer: `<link>.forward`.",
);

impl SeriesInfo {
    /// All tables that backends record.
    pub const ALL: &[Self] = &[
        Self {
            name: "windows",
            doc: "A sample of the TCP sender of a flow, at each multiple of `record.interval`. Of \
                  a group of flows, member 0 is sampled.",
            columns: &[
                TIME,
                FLOW,
                ColumnInfo::new("cwnd_byte", "double", "B", "Congestion window."),
                ColumnInfo::new(
                    "ssthresh_byte",
                    "double",
                    "B",
                    "Slow-start threshold; null while it is unlimited.",
                ),
                ColumnInfo::new(
                    "in_flight_byte",
                    "double",
                    "B",
                    "Data sent and not yet acknowledged.",
                ),
                ColumnInfo::new(
                    "srtt_s",
                    "double",
                    "s",
                    "Smoothed round-trip time (RFC 6298); null before the first measurement.",
                ),
                ColumnInfo::new("rto_s", "double", "s", "Retransmission timeout."),
            ],
        },
        Self {
            name: "queues",
            doc: "A sample of the queue of a direction of a link, at each multiple of \
                  `record.interval`. Of a group of links, member 0 is sampled.",
            columns: &[
                TIME,
                LINK,
                ColumnInfo::new("queue_packets", "uint64", "packets", "Packets in the queue."),
                ColumnInfo::new("queue_byte", "uint64", "B", "Bytes in the queue."),
            ],
        },
        Self {
            name: "throughput",
            doc: "Throughput of a direction of a link in the interval that ends at the sample. Of \
                  a group of links, member 0 is sampled.",
            columns: &[
                TIME,
                LINK,
                ColumnInfo::new(
                    "throughput_bit_per_s",
                    "double",
                    "bit/s",
                    "Packets with their headers.",
                ),
            ],
        },
        Self {
            name: "delays",
            doc: "A message that arrived; at most the first million messages of a run.",
            columns: &[
                ColumnInfo::new("time_s", "double", "s", "Time at which the message was due."),
                FLOW,
                ColumnInfo::new(
                    "delay_s",
                    "double",
                    "s",
                    "Time from then to the arrival of the complete message.",
                ),
            ],
        },
        Self {
            name: "losses",
            doc: "A message that did not arrive: a datagram that was lost, a message that its \
                  application gave up, or a message over TCP that had not arrived completely at \
                  the end of the run; a subscription includes those that did not reach its broker. \
                  Datagrams in transit at the end of the run have no row. At most the first \
                  million messages of a run; recorded by the simulator only.",
            columns: &[
                ColumnInfo::new("time_s", "double", "s", "Time at which the message was due."),
                FLOW,
                ColumnInfo::new(
                    "lost_s",
                    "double",
                    "s",
                    "Time since the start of the run at which the datagram was lost, or the \
                     message given up or lost with its connection (MQTT with QoS 0); null for \
                     other messages over TCP.",
                ),
                ColumnInfo::new(
                    "reason",
                    "string",
                    "",
                    "`queue_full`, `aqm`, `loss`, `outage`, `shadowing`, `noise`, `collision`: by \
                     a link; `attack`: by an attacker; `corrupted`: rejected by the checksum of \
                     the receiver; `proxy`: dropped by a proxy that is down; \
                     `connection_failed`: the connection of the message did not open; \
                     `connection_closed`: the connection was closed or reset before the message \
                     arrived; `given_up`: by the sender after all retransmissions of the message \
                     (`coap`, `acknowledgement` and MQTT); `unfinished`: not sent, in transit or \
                     in the buffer of an aggregator at the end of the run.",
                ),
            ],
        },
    ];

    /// Additional columns of every file, after those of the table. Columns with the text and the
    /// number of each swept value follow.
    pub const COMMON: &[ColumnInfo] = &[
        ColumnInfo::new(
            "member",
            "uint64",
            "",
            "Member of the group of flows or links, counted from 0.",
        ),
        ColumnInfo::new(
            "point",
            "uint64",
            "",
            "Point of the sweep, counted from 0; 0 without a sweep.",
        ),
        ColumnInfo::new("replication", "uint64", "", "Number of the recorded replication, from 0."),
    ];
}

impl Series {
    /// A table of columns in memory.
    ///
    /// # Panics
    /// The columns have different lengths.
    #[must_use]
    pub fn from_columns(name: &str, columns: Vec<Column>) -> Self {
        let count = columns.first().map_or(0, |column| column.data.len());
        assert!(columns.iter().all(|column| column.data.len() == count), "columns of equal length");
        let row = |row: usize| columns.iter().map(move |column| column.data.word(row));
        let words = (0..count).flat_map(row).flat_map(u64::to_le_bytes);
        let rows = RecordedBytes::from(words.collect::<Vec<u8>>());
        let columns = columns.into_iter().map(|Column { name, data }| {
            let kind = match data {
                ColumnData::Real(_) => ColumnKind::Real,
                ColumnData::Whole(_) => ColumnKind::Whole,
                ColumnData::Text { words, .. } => ColumnKind::Text(words),
            };
            SeriesColumn { name, kind }
        });
        let columns = columns.collect();
        Self { name: name.to_owned(), columns, rows, ..Self::default() }
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len() as usize / self.row_bytes().max(1)
    }

    /// The values of a column, by its index, in some rows.
    ///
    /// # Errors
    /// The recorded data cannot be read.
    ///
    /// # Panics
    /// There is no such column.
    pub fn values(&self, column: usize, rows: Range<usize>) -> io::Result<ColumnData> {
        let words = self.words(&[column], rows)?.pop().unwrap_or_default();
        Ok(self.columns[column].kind.data(words))
    }

    /// The values of several columns, by their indices, in some rows, which are read once.
    ///
    /// # Errors
    /// The recorded data cannot be read.
    ///
    /// # Panics
    /// There is no such column.
    pub fn selected(&self, columns: &[usize], rows: Range<usize>) -> io::Result<Vec<ColumnData>> {
        let words = self.words(columns, rows)?.into_iter();
        Ok(columns
            .iter()
            .zip(words)
            .map(|(&at, words)| self.columns[at].kind.data(words))
            .collect())
    }

    /// The members of groups of flows or links in some rows.
    ///
    /// # Errors
    /// The recorded data cannot be read.
    pub fn members(&self, rows: Range<usize>) -> io::Result<Vec<u64>> {
        if self.has_members {
            Ok(self.words(&[self.columns.len()], rows)?.pop().unwrap_or_default())
        } else {
            Ok(vec![0; rows.len()])
        }
    }

    /// All columns in some rows, which are read once: with the values of one column after the
    /// other, every row is read as often as there are columns.
    ///
    /// # Errors
    /// The recorded data cannot be read.
    pub fn batch(&self, rows: Range<usize>) -> io::Result<SeriesBatch> {
        let stored: Vec<usize> = (0..self.row_bytes() / WORD).collect();
        let mut words = self.words(&stored, rows)?;
        let members = if self.has_members { words.pop() } else { None };
        let columns = self.columns.iter().zip(words);
        let columns = columns.map(|(column, words)| column.kind.data(words)).collect();
        Ok(SeriesBatch { columns, members })
    }

    /// The words of some columns, by their indices, in some rows.
    fn words(&self, indices: &[usize], rows: Range<usize>) -> io::Result<Vec<Vec<u64>>> {
        let width = self.row_bytes();
        let mut columns: Vec<Vec<u64>> =
            indices.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        let mut chunk = vec![0; ROWS_READ.min(rows.len()) * width];
        // The words of a row are stored together, so that the simulator appends a row at a time: a
        // column is read with the others, in parts that fit into the cache of a processor.
        for start in rows.clone().step_by(ROWS_READ) {
            let chunk = &mut chunk[..ROWS_READ.min(rows.end - start) * width];
            self.rows.read_at((start * width) as u64, chunk)?;
            let (words, _) = chunk.as_chunks::<WORD>();
            for (index, column) in indices.iter().zip(&mut columns) {
                append_column(column, words, width / WORD, *index);
            }
        }
        Ok(columns)
    }

    const fn row_bytes(&self) -> usize {
        (self.columns.len() + self.has_members as usize) * WORD
    }
}

/// Appends the word with an index in each row.
fn append_column(column: &mut Vec<u64>, words: &[[u8; WORD]], row_words: usize, index: usize) {
    match row_words {
        // The rows of the tables of the simulator: with a fixed number of words, a value takes less
        // than half of the instructions.
        3 => append_of_rows::<3>(column, words, index),
        4 => append_of_rows::<4>(column, words, index),
        5 => append_of_rows::<5>(column, words, index),
        7 => append_of_rows::<7>(column, words, index),
        _ => {
            let rows = words.chunks_exact(row_words);
            column.extend(rows.map(|row| u64::from_le_bytes(row[index])));
        }
    }
}

fn append_of_rows<const N: usize>(column: &mut Vec<u64>, words: &[[u8; WORD]], index: usize) {
    let (rows, _) = words.as_chunks::<N>();
    column.extend(rows.iter().map(|row| u64::from_le_bytes(row[index])));
}

/// Bytes of a stored value.
const WORD: usize = size_of::<u64>();

/// Rows that are read at once.
const ROWS_READ: usize = 1024;

impl ColumnKind {
    /// The values of a column that is stored as these words.
    fn data(&self, words: Vec<u64>) -> ColumnData {
        match self {
            Self::Real => ColumnData::Real(words.into_iter().map(f64::from_bits).collect()),
            Self::Whole => ColumnData::Whole(words),
            Self::Text(texts) => ColumnData::Text {
                words: texts.clone(),
                rows: words.into_iter().map(|word| word as u32).collect(),
            },
        }
    }
}

impl ColumnData {
    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Text { rows, .. } => rows.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A value as it is stored in a [`Series`].
    fn word(&self, row: usize) -> u64 {
        match self {
            Self::Real(values) => values[row].to_bits(),
            Self::Whole(values) => values[row],
            Self::Text { rows, .. } => u64::from(rows[row]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_each_width_have_their_words() {
        for width in 1..10 {
            let value = |column: usize, row: usize| (100 * row + column) as u64;
            let columns = (0..width).map(|column| Column {
                name: column.to_string(),
                data: ColumnData::Whole((0..50).map(|row| value(column, row)).collect()),
            });
            let series = Series::from_columns("table", columns.collect());
            for column in 0..width {
                let expected = (3..47).map(|row| value(column, row)).collect();
                assert_eq!(series.values(column, 3..47).unwrap(), ColumnData::Whole(expected));
            }
        }
    }
}
