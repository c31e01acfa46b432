//! Aggregation (paper `sa-tcp`, section 3.2; RFC 3135, section 2.4, split connections): many TCP
//! connections end at an aggregator, and their messages are forwarded over few upstream
//! connections.
//!
//! [`SegmentAggregator`] admits segments before their acknowledgement, for a caller that knows the
//! ends of messages in advance and stores no payload: the simulator. The relay daemon reads bytes
//! that the kernel has acknowledged already, and its record log is its buffer; it has admission
//! rules of its own (crate `gridhaul-relay`), and finds the ends of messages in a stream with the
//! framings of crate `gridhaul-protocols`.
//!
//! Messages are forwarded in the order in which they became complete, so that the messages of each
//! connection keep their order. Incomplete messages never wait for each other's buffer space: space
//! for a whole message is reserved when its first byte arrives.

mod buffer;
mod by_segment;
mod forwarding;
#[cfg(test)]
mod reference_model;
mod upstream;
mod window_share;

use super::TimeAverage;
pub use by_segment::{Departed, SegmentAggregator};
pub use window_share::{MessageSizes, window_share};
