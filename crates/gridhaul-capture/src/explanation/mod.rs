//! The explanation of a capture: what limits each connection, with the evidence.

mod decide;
mod doubt;
mod facts;
mod position;
mod table;
mod text;

use gridhaul_scenario::units::{Duration, Instant};
use serde::Serialize;

use crate::connection::{HandshakeGap, History};
use crate::estimate::DelayBasis;
use crate::limit::{Counters, Leg};
use crate::{Ends, LinkEstimate, Message, Shares};

pub use decide::{Confidence, Verdict};
pub use position::Position;
pub use table::connections_csv;

pub(crate) use facts::Context;

/// Share of the rate of the bottleneck from which on the rate is the limit, although no queue shows
/// it, and although the receive window is full as well.
const SATURATED: f64 = 0.9;

/// The explanation of a capture.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The connections in the order of their first segments.
    pub connections: Vec<ConnectionExplanation>,
    /// Time of the first segment.
    #[serde(skip)]
    pub first_at: Instant,
    /// From the first to the last segment in s.
    pub duration_s: f64,
    /// TCP segments.
    pub segments: u64,
    /// Packets of other protocols, and fragments.
    pub other_packets: u64,
    /// Packets whose captured bytes end before the TCP header does.
    pub cut_packets: u64,
    /// Packets without a time, which are not part of any connection.
    pub untimed_packets: u64,
    /// Whether reading ended before the end of the files.
    pub is_interrupted: bool,
}

/// A fact about a connection as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// Name, such as "round trip, mean".
    pub name: &'static str,
    /// Value with its unit, and with its interval if it is an estimate.
    pub value: String,
}

/// The explanation of a connection: of the direction with more data.
#[derive(Debug, Clone, Serialize)]
pub struct ConnectionExplanation {
    /// Number of the connection, from 1.
    pub number: usize,
    /// Both ends.
    #[serde(flatten)]
    pub ends: Ends,
    /// Point of the capture: the name of the interface, or of the file.
    pub point: String,
    /// Whether the client sends the data.
    pub is_upload: bool,
    /// Time of the first segment since the first one of the capture, in s.
    pub start_s: f64,
    /// From the first to the last segment in s.
    pub duration_s: f64,
    /// From the first to the last transmission of data in s: the time that the shares divide.
    pub transfer_s: f64,
    /// Mean rate of the acknowledged data until the last transmission, or the last acknowledgement
    /// of new data.
    pub goodput_bit_per_s: Option<f64>,
    /// Where the capture was taken.
    pub position: Position,
    /// The limit, and how certain it is.
    pub verdict: Verdict,
    /// Share of the time in which each limit held.
    pub shares: Shares,
    /// Numbers of the evidence.
    pub counters: Counters,
    /// Smallest round trip in s.
    pub round_trip_s: Option<f64>,
    /// Mean round trip in s.
    pub round_trip_mean_s: Option<f64>,
    /// Mean queueing delay in s.
    pub queueing_mean_s: f64,
    /// Share of the rate of the bottleneck that the connection used.
    pub utilisation: Option<f64>,
    /// Estimate of the link.
    pub link: LinkEstimate,
    /// The connection by which a proxy forwards the data.
    pub proxied_by: Option<Leg>,
    /// Restrictions of the capture.
    pub notes: Vec<String>,
    /// Time of the first segment.
    #[serde(skip)]
    pub first_at: Instant,
    /// The messages of the client and of the server: what a load trace contains.
    #[serde(skip)]
    pub messages: [Vec<Message>; 2],
    /// Time of the first segment of the capture.
    #[serde(skip)]
    pub(crate) capture_start_at: Instant,
    /// The progress of the data of the client and of the server, if it was recorded.
    #[serde(skip)]
    pub(crate) histories: [Option<History>; 2],
    /// Initial sequence numbers of both ends.
    #[serde(skip)]
    pub(crate) initial_numbers: [Option<u32>; 2],
    /// Number of the point of the capture.
    #[serde(skip)]
    pub(crate) point_number: u32,
    /// Time of the last segment.
    #[serde(skip)]
    pub(crate) last_at: Instant,
    /// Round trips of the handshake between the point and the sender, and the receiver.
    #[serde(skip)]
    pub(crate) sides: Option<[Duration; 2]>,
    /// The part of the handshake that the capture lacks, if the position is unknown.
    #[serde(skip)]
    pub(crate) handshake_gap: HandshakeGap,
    /// The round trips for an estimate with another rate.
    #[serde(skip)]
    pub(crate) delay_basis: DelayBasis,
    /// Round trip between the point and the sender in s, from echoed timestamps.
    #[serde(skip)]
    pub(crate) echo_round_trip_s: Option<f64>,
}
