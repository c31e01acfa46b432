//! Aggregation (paper `sa-tcp`, section 3.2; RFC 3135, section 2.4, split connections): many TCP
//! connections end at an aggregator, and their messages are forwarded over few upstream
//! connections.
//!
//! `by_segment/` admits segments; `forwarding.rs` has the accounting and the upstream queues.

mod buffer;
mod by_segment;
mod forwarding;
mod share;
mod upstream;

use super::Level;
pub use by_segment::{Aggregate, Departed};
pub use share::window_share;
