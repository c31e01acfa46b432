//! The fixed point of senders and network (paper `sa-tcp`, section 4.1): the offered load
//! determines the loss and delay of the queues, and these determine the offered load.
//!
//! It is found by root finding instead of iteration. For one queue, the rate of the senders falls
//! with its load while the carried load grows, so that there is exactly one solution. It is found
//! by secant steps from the previous solution or, if these fail, by bracketing. Several queues are
//! solved in turn until none changes any more.

mod network;
mod resource;
mod workspace;

pub use network::{Class, DataSource, Network, Region, Solution, Stream};
pub use resource::{Resource, Response};
pub use workspace::Workspace;
