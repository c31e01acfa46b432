//! Steady-state throughput of bulk flows by published formulas.
//!
//! All formulas use full-sized segments and seconds: rates in segments per second, windows in
//! segments, round-trip times and timers in seconds. Loss is the ratio of lost segments; loss of
//! acknowledgements is neglected, as in all of these papers.

mod ack_cycle;
mod answer;
mod assumptions;
mod buffers;
mod bursts;
mod channel_loss;
mod completion;
mod connection_chain;
mod cubic;
mod cubic_cycles;
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
pub use cubic::{cubic_rate, cubic_send_rate, cubic_window};
pub use point_answer::{PointAnswer, answer_point};
pub use sawtooth::sawtooth_utilisation;
pub use slow_start::{Handshake, TransferTime, WindowGrowth, transfer_time};
pub use square_root::{limited_square_root_rate, square_root_rate};
pub use throughput_law::{ThroughputLaw, law_of};
pub use timeouts::{approximate_rate, delivery_rate, send_rate, timeout_share};

/// The parameters of one connection in the formulas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection {
    /// Round-trip time without queueing, in seconds; above zero.
    pub rtt_s: f64,
    /// Loss ratio of the data segments, 0 to 1.
    pub loss: f64,
    /// Receive window, in segments; at least one.
    pub window: f64,
    /// Segments per acknowledgement that increases the window: `b` of the papers.
    pub acked_by_each: f64,
    /// Retransmission timeout before back-off, `T0` of the papers, in seconds.
    pub timeout_s: f64,
    /// Segments that the sender adds to its window after a loss, because of duplicate
    /// acknowledgements (RFC 3042, section 2): zero to two.
    pub limited_transmit: f64,
}
