//! Jitter: a random addition to the delay.

use gridhaul_scenario::scenario::{self, JitterShape};
use gridhaul_scenario::units::Duration;

use crate::random::RandomStream;

/// Generates the additional delay of each packet.
#[derive(Debug, Clone)]
pub(super) struct Jitter {
    size: Duration,
    shape: JitterShape,
    random: RandomStream,
}

impl Jitter {
    /// Jitter with its own random stream.
    pub(super) fn new(jitter: &scenario::Jitter, random: RandomStream) -> Self {
        Self { size: jitter.size, shape: jitter.shape, random }
    }

    /// The additional delay of the next packet.
    pub(super) fn addition(&mut self) -> Duration {
        match self.shape {
            JitterShape::Uniform => self.random.uniform(self.size),
            JitterShape::HalfNormal => self.random.half_normal(self.size),
            JitterShape::Exponential => self.random.exponential(self.size),
        }
    }
}
