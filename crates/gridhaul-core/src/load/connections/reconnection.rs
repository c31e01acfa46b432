//! Pauses of a device between connection attempts.

use gridhaul_scenario::scenario::Reconnect;
use gridhaul_scenario::units::Duration;

use crate::random::RandomStream;

/// The attempts of one device.
#[derive(Debug, Clone)]
pub struct Reconnection {
    keys: Reconnect,
    /// Attempts that have failed since the last success.
    failed: u32,
    random: RandomStream,
}

impl Reconnection {
    /// No attempt has failed yet. Each device has a random stream of its own.
    #[must_use]
    pub const fn new(keys: Reconnect, random: RandomStream) -> Self {
        Self { keys, failed: 0, random }
    }

    /// Time after which an attempt is given up.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.keys.timeout
    }

    /// An attempt has failed. Returns the pause before the next one.
    pub fn on_failed(&mut self) -> Duration {
        let factor = u64::from(self.keys.factor).saturating_pow(self.failed);
        self.failed = self.failed.saturating_add(1);
        let longest = self.keys.pause_max.as_nanos();
        let pause = self.keys.pause.as_nanos().saturating_mul(factor).min(longest);
        let random = (pause as f64 * self.keys.jitter.ratio()) as u64;
        if random == 0 {
            return Duration::from_nanos(pause);
        }
        Duration::from_nanos(pause - random) + self.random.uniform(Duration::from_nanos(random))
    }

    /// A connection is ready.
    pub const fn on_ready(&mut self) {
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Probability;

    use super::*;

    fn pauses(jitter: f64, count: usize) -> Vec<u64> {
        let jitter = Probability::new(jitter).unwrap();
        let keys = Reconnect { pause_max: Duration::from_secs(10), jitter, ..Reconnect::default() };
        let mut device = Reconnection::new(keys, RandomStream::named(1, 0, "f", 0, "reconnect"));
        (0..count).map(|_| device.on_failed().as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn pauses_double_up_to_their_maximum() {
        assert_eq!(pauses(0.0, 6), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        // The exponent does not overflow.
        assert_eq!(pauses(0.0, 200)[199], 10_000);
    }

    #[test]
    fn a_random_part_shortens_pauses() {
        let pauses = pauses(0.5, 40);
        assert!(pauses[4..].iter().all(|pause| (5_000..=10_000).contains(pause)), "{pauses:?}");
        let mean = pauses[4..].iter().sum::<u64>() / 36;
        assert!((6_500..8_500).contains(&mean), "{mean}");
    }
}
