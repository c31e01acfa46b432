//! The fixed point between senders and network (paper `sa-tcp`, section 4.1): what the senders
//! offer gives the loss and the delay of the queues, and these give what the senders offer.
//!
//! It is not iterated. For one queue, the senders' new segments fall with its load while what it
//! carries grows, so that the two meet once; the load at which they do is found by secants from
//! where the last solution ended or, where these fail, by bracketing. Several queues are solved in
//! turn until none changes any more.

mod network;
mod resource;
mod workspace;

pub use network::{Class, DataSource, Network, Region, Solution, Stream};
pub use resource::{Resource, Response};
pub use workspace::Workspace;
