//! Aggregation (paper `sa-tcp`, section 3.2; RFC 3135, section 2.4, split connections): many TCP
//! connections end at an aggregator, and their messages are forwarded over few upstream
//! connections.
//!
//! Two front ends admit data, and share the accounting and the upstream queues (`forwarding.rs`):
//!
//! | front end | admission by | ends of messages | payload |
//! |---|---|---|---|
//! | [`SegmentAggregator`] | segment, before its acknowledgement | passed by the caller in advance | not stored |
//! | [`ByteAggregator`] | bytes that a kernel socket has acknowledged | found by a [`Framer`] | stored |
//!
//! Both forward messages in the order in which they became complete, so that the messages of each
//! connection keep their order. Both avoid a deadlock of incomplete messages that wait for each
//! other's buffer space: admission by segment reserves space for a whole message when its first
//! byte arrives; admission by byte, where the length is unknown, keeps space for one message of the
//! maximum size in reserve.

mod buffer;
mod by_byte;
mod by_segment;
mod forwarding;
mod framer;
#[cfg(test)]
mod reference_model;
mod upstream;
mod window_share;

use super::{Payload, TimeAverage};
pub use by_byte::{
    Accepted, ByteAggregator, ByteLimits, ConnectionId, ConnectionStatus, Delivered, Ended,
    LimitsError, Message, OfferError, OpenError,
};
pub use by_segment::{Departed, SegmentAggregator};
pub use framer::{
    ByteOrder, Delimiter, FixedSize, Framer, Framing, FramingError, LengthPrefix, LengthWidth,
    PrefixProgress, WholeStream,
};
pub use window_share::window_share;
