//! A queue on the way, as a resource that several classes of senders load.

use crate::queue::Mm1b;

/// A queue and the wire behind it, or several equal ones that share their load evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    /// Rate of one, in bit/s.
    pub rate: f64,
    /// Packets that one has room for, the one on the wire included.
    pub room: u32,
    /// Number of equal ones.
    pub copies: f64,
    /// The sender does not wait for what waits here, since it is acknowledged on entry: the buffer
    /// of an aggregator.
    pub acknowledges: bool,
}

/// What a resource does to a packet under some load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Offered load over what one can carry.
    pub rho: f64,
    /// Probability of loss.
    pub loss: f64,
    /// Mean wait before the own transmission, in seconds.
    pub wait: f64,
    /// Mean transmission time of the packets that load it, in seconds.
    pub service: f64,
}

impl Resource {
    /// Behaviour at load ρ by packets of a mean size.
    #[must_use]
    pub fn response(&self, rho: f64, mean_bits: f64) -> Response {
        let service = mean_bits / self.rate;
        match Mm1b::new(rho, self.room.max(1)) {
            Some(queue) => Response {
                rho,
                loss: queue.blocking(),
                wait: (queue.sojourn() - 1.0) * service,
                service,
            },
            // Offered without bound: everything is lost.
            None => Response { rho, loss: 1.0, wait: f64::from(self.room) * service, service },
        }
    }
}

impl Response {
    /// Share of time in which the wire is busy.
    #[must_use]
    pub fn carried(&self) -> f64 {
        self.rho * (1.0 - self.loss)
    }
}
