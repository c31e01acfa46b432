//! A queue on a path, shared by several classes of senders.

use crate::queue::Mm1b;

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
}

impl Resource {
    /// Loss and delay at load ρ with packets of a mean size.
    #[must_use]
    pub fn response(&self, rho: f64, mean_bits: f64) -> Response {
        let service = mean_bits / self.rate;
        match Mm1b::new(rho, self.capacity.max(1)) {
            Some(queue) => Response {
                rho,
                loss: queue.blocking(),
                wait: (queue.sojourn() - 1.0) * service,
                service,
            },
            // Infinite load: all packets are lost.
            None => Response { rho, loss: 1.0, wait: f64::from(self.capacity) * service, service },
        }
    }
}

impl Response {
    /// Utilisation of the transmitter.
    #[must_use]
    pub fn carried(&self) -> f64 {
        self.rho * (1.0 - self.loss)
    }
}
