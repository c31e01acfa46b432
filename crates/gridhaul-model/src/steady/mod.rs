//! The steady state of bulk flows by published formulas.
//!
//! All formulas count whole segments and seconds: rates in segments per second, windows in
//! segments, round trips and timers in seconds. Loss is the share of segments that are lost; that
//! of acknowledgements is neglected, as all of these papers do.

mod answer;
mod buffers;
mod channel_loss;
mod connection_chain;
mod cubic;
mod demand;
mod own_queue;
mod path;
mod point_answer;
mod sawtooth;
mod slow_start;
mod square_root;
mod throughput_law;
mod timeouts;

pub use answer::{answer, is_bulk, supports};
pub use cubic::{cubic_rate, cubic_window};
pub use point_answer::{PointAnswer, answer_point};
pub use sawtooth::sawtooth_utilisation;
pub use slow_start::{TransferTime, transfer_time};
pub use square_root::{limited_square_root_rate, square_root_rate};
pub use throughput_law::{ThroughputLaw, law_of};
pub use timeouts::{approximate_rate, delivery_rate, send_rate, timeout_share};

/// One connection as the formulas see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection {
    /// Round trip without queues, in seconds; above zero.
    pub rtt_s: f64,
    /// Share of the data segments that are lost, 0 to 1.
    pub loss: f64,
    /// Largest window that the receiver offers, in segments; at least one.
    pub window: f64,
    /// Segments for each acknowledgement that lets the window grow: `b` of the papers.
    pub acked_by_each: f64,
    /// The retransmission timer before its back-off, `T0` of the papers, in seconds.
    pub timeout_s: f64,
}
