//! Flows whose connections open and close: the packets of an exchange, the load on each link, and
//! the times of connections and messages.
//!
//! Assumptions, which `docs/limitations/connections.md` lists: no packet is lost; the first data of
//! a connection are acknowledged at once, and later data with the answer; the packets of a round
//! arrive at each queue together, at random times (M/G/1 with batches); every transmission of an
//! exchange waits for the mean time of its queues, and a message for the earlier connection of its
//! device.

mod answer;
mod batch;
mod device;
mod early_timeout;
mod exchange;
mod queues;
mod rounds;
mod timers;
mod unsupported;

pub(crate) use answer::answer;
pub(crate) use unsupported::unsupported_keys as unsupported;
