//! Recorded series: tables over time, written as Parquet files.

/// A table with columns of equal length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Name of the file: the name of the table ([`SeriesInfo`]) and, in a sweep, the number of the point.
    pub name: String,
    /// Index of the point of the answer ([`Answer::points`](super::Answer::points)).
    pub point: usize,
    /// For each row, the member of the group of flows or links; empty if all rows are of member 0.
    pub members: Vec<u32>,
    /// Columns; the first is the time.
    pub columns: Vec<Column>,
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

const fn column(
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    doc: &'static str,
) -> ColumnInfo {
    ColumnInfo { name, kind, unit, doc }
}

const TIME: ColumnInfo = column("time_s", "double", "s", "Time since the start of the run.");
const FLOW: ColumnInfo = column("flow", "string", "", "Name of the flow, as in the answer.");
const LINK: ColumnInfo =
    column("link", "string", "", "Direction of a link, as in the answer: `<link>.forward`.");

impl SeriesInfo {
    /// All tables that backends record.
    pub const ALL: &[Self] = &[
        Self {
            name: "windows",
            doc: "A sample of the TCP sender of a flow, at each multiple of `record.interval`. Of a \
                  group of flows, member 0 is sampled.",
            columns: &[
                TIME,
                FLOW,
                column("cwnd_byte", "double", "B", "Congestion window."),
                column(
                    "ssthresh_byte",
                    "double",
                    "B",
                    "Slow-start threshold; null while it is unlimited.",
                ),
                column("in_flight_byte", "double", "B", "Data sent and not yet acknowledged."),
                column(
                    "srtt_s",
                    "double",
                    "s",
                    "Smoothed round-trip time (RFC 6298); null before the first measurement.",
                ),
                column("rto_s", "double", "s", "Retransmission timeout."),
            ],
        },
        Self {
            name: "queues",
            doc: "A sample of the queue of a direction of a link, at each multiple of `record.interval`. Of \
                  a group of links, member 0 is sampled.",
            columns: &[
                TIME,
                LINK,
                column("queue_packets", "uint64", "packets", "Packets in the queue."),
                column("queue_byte", "uint64", "B", "Bytes in the queue."),
            ],
        },
        Self {
            name: "throughput",
            doc: "Throughput of a direction of a link in the interval that ends at the sample. Of a \
                  group of links, member 0 is sampled.",
            columns: &[
                TIME,
                LINK,
                column("throughput_bit_per_s", "double", "bit/s", "Packets with their headers."),
            ],
        },
        Self {
            name: "delays",
            doc: "A message that arrived; at most the first million messages of a run.",
            columns: &[
                column("time_s", "double", "s", "Time at which the message was due."),
                FLOW,
                column(
                    "delay_s",
                    "double",
                    "s",
                    "Time from then to the arrival of the complete message.",
                ),
            ],
        },
    ];

    /// Additional columns of every file, after those of the table. A column for each swept key
    /// follows, with the name of the key.
    pub const COMMON: &[ColumnInfo] = &[
        column("member", "uint64", "", "Member of the group of flows or links, counted from 0."),
        column("point", "uint64", "", "Point of the sweep, counted from 0; 0 without a sweep."),
    ];
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
}
