//! A queue on a path, shared by several classes of senders.

use crate::queue::{FiniteSource, Mm1b};

/// A queue with its transmitter, or several identical ones that share their load evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    /// Rate of each, in bit/s.
    pub rate: f64,
    /// Capacity of each in packets, the one in transmission included.
    pub capacity: u32,
    /// Number of identical queues.
    pub copies: f64,
    /// Whether packets are acknowledged on entry, so that their waiting time is not part of the
    /// round-trip time: the buffer of an aggregator.
    pub acknowledges: bool,
    /// Number of segments that all senders together may have in this queue, if each of them waits
    /// until its own have left: an aggregator with `when_full = "backpressure"`.
    pub window_limit: Option<u32>,
}

/// Loss and delay of a queue at some load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Offered load relative to the capacity.
    pub rho: f64,
    /// Probability of loss.
    pub loss: f64,
    /// Mean waiting time before the packet's own transmission, in seconds.
    pub wait: f64,
    /// Mean transmission time of the packets, in seconds.
    pub service: f64,
    /// Utilisation of the transmitter.
    pub carried: f64,
}

impl Resource {
    /// Loss and delay at load ρ with packets of a mean size.
    #[must_use]
    pub fn response(&self, rho: f64, mean_bits: f64) -> Response {
        let service = mean_bits / self.rate;
        if let Some(queue) = self.finite_source(rho) {
            let (loss, carried) = (queue.blocking, queue.busy);
            return Response { rho, loss, wait: queue.wait() * service, service, carried };
        }
        let Some(queue) = Mm1b::new(rho, self.capacity.max(1)) else {
            // Infinite load: all packets are lost.
            let wait = f64::from(self.capacity) * service;
            return Response { rho, loss: 1.0, wait, service, carried: 1.0 };
        };
        let loss = queue.blocking();
        let wait = (queue.sojourn() - 1.0) * service;
        Response { rho, loss, wait, service, carried: rho * (1.0 - loss) }
    }

    /// The queue at load ρ, if its senders wait for their own segments.
    #[must_use]
    pub fn finite_source(&self, rho: f64) -> Option<FiniteSource> {
        FiniteSource::new(rho, self.window_limit?, self.capacity.max(1))
    }
}
