//! Messages of a Poisson process.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::RandomStream;

/// A Poisson process: independent, exponentially distributed interarrival times, also before the
/// first message.
#[derive(Debug, Clone)]
pub struct Poisson {
    bytes: u64,
    every: Duration,
    next_time: Instant,
    random: RandomStream,
}

impl Poisson {
    /// A process that runs from `start` on.
    #[must_use]
    pub fn new(keys: &scenario::Poisson, start: Instant, mut random: RandomStream) -> Self {
        // With a mean of zero, time would not advance.
        let every = keys.every.max(Duration::from_nanos(1));
        let next_time = start + random.exponential(every);
        Self { bytes: keys.size.get(), every, next_time, random }
    }

    /// When the next message arrives.
    #[must_use]
    pub const fn next_time(&self) -> Instant {
        self.next_time
    }

    /// The next message.
    pub fn next_message(&mut self) -> Arrival {
        let message = Arrival { at: self.next_time, bytes: self.bytes };
        self.next_time += self.random.exponential(self.every);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    #[test]
    fn counts_have_the_mean_and_the_variance_of_a_poisson_process() {
        let every = Duration::from_millis(10);
        let keys = scenario::Poisson { size: Bytes::new(100), every, synchronised: false };
        let random = RandomStream::named(1, 0, "alarms", 0, "load");
        let mut source = Poisson::new(&keys, Instant::ZERO, random);
        // 2,000 windows of 1 s with 100 messages expected in each.
        let mut counts = vec![0.0_f64; 2_000];
        loop {
            let second = source.next_message().at.as_nanos() / 1_000_000_000;
            let Some(count) = counts.get_mut(second as usize) else { break };
            *count += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2_000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 1_999.0;
        assert!((mean - 100.0).abs() < 1.0, "{mean}");
        assert!((variance - 100.0).abs() < 14.0, "{variance}");
    }
}
