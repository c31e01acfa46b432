//! Aggregation (paper `sa-tcp`, section 3.2; RFC 3135, section 2.4, split connections): many TCP
//! connections end at an aggregator, and their messages are forwarded over few upstream
//! connections.
//!
//! Two front ends admit data, and share the accounting and the upstream queues (`forwarding.rs`):
//!
//! | front end | unit of admission | ends of messages | payload |
//! |---|---|---|---|
//! | [`SegmentAggregator`] | segment, before its acknowledgement | known to the caller in advance | none |
//! | [`ByteAggregator`] | bytes that a kernel socket has acknowledged | found by a [`Framer`] | kept |
//!
//! Both forward messages in the order in which they became complete, so that each connection's
//! messages keep their order, and neither lets a full buffer consist of incomplete messages that
//! wait for each other: by segment, buffer space is reserved for a whole message when it begins;
//! by byte, where its length is unknown, space for one largest message is kept in reserve.

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
    WholeStream,
};
pub use window_share::window_share;
