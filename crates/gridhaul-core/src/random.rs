//! Random number streams: each is named, and all use one portable generator.
//!
//! The name of a stream (`seed`, `replication`, `entity`, `member`, `purpose`) alone determines its
//! numbers. An additional entity, member or impairment therefore never changes the random numbers
//! of another, and two scenarios that differ in one value use the same random numbers elsewhere
//! (common random numbers).
//!
//! The numbers are equal on every platform: the generator uses integer arithmetic, and non-uniform
//! distributions use only the operations that IEEE 754 rounds correctly (+ − × ÷ √). The platform's
//! `ln` and `exp` are not among them; the samplers of `rand_distr` call these as soon as any crate
//! of the build enables the `std` feature of `num-traits`, and are therefore not used.

use gridhaul_scenario::units::{Duration, Probability};

use crate::rounding::round_to_u64;

/// A stream of random numbers: PCG XSL RR 128/64 (O'Neill, "PCG: a family of simple fast
/// space-efficient statistically good algorithms for random number generation", 2014) over a
/// multiplicative congruential generator.
#[derive(Debug, Clone)]
pub struct RandomStream {
    /// The halves of the state, which is odd: an integer of 128 bits would have to be aligned to
    /// them in each of a million meters.
    high: u64,
    low: u64,
}

/// The name of the streams of one entity, without the purpose.
#[derive(Debug, Clone, Copy)]
pub struct RandomStreamName(u64);

/// A probability as an integer, so that a trial takes one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold(u64);

/// A Bernoulli trial with its own random stream, sampled once for each packet.
#[derive(Debug, Clone)]
pub struct BernoulliTrial {
    threshold: Threshold,
    random: RandomStream,
}

impl RandomStream {
    /// The stream of this name. `member` is the index within a group.
    #[must_use]
    pub fn named(seed: u64, replication: u32, entity: &str, member: u64, purpose: &str) -> Self {
        RandomStreamName::new(seed, replication, entity, member).stream(purpose)
    }

    #[inline]
    fn next_u64(&mut self) -> u64 {
        let state = u128::from(self.high) << 64 | u128::from(self.low);
        let state = state.wrapping_mul(MULTIPLIER);
        (self.high, self.low) = ((state >> 64) as u64, state as u64);
        // The first six bits determine the rotation.
        (self.high ^ self.low).rotate_right((self.high >> 58) as u32)
    }

    /// Samples an event of this probability. Always uses one random number, also for the
    /// probabilities 0 and 1, so that a changed probability does not shift the stream.
    #[inline]
    pub fn occurs(&mut self, threshold: Threshold) -> bool {
        // 63 bits, so that 2^63 represents probability 1.
        self.next_u64() >> 1 < threshold.0
    }

    /// Uniformly distributed from 0 (included) to 1 (excluded), in steps of 2^-53.
    #[inline]
    pub fn standard_uniform(&mut self) -> f64 {
        (self.next_u64() >> 11).cast_signed() as f64 * TWO_POW_MINUS_53
    }

    /// A uniformly distributed integer from 0 to `n` − 1; 0 for `n` = 0.
    ///
    /// Lemire 2019, "Fast random integer generation in an interval", algorithm 5.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let reject = n.wrapping_neg() % n;
            while (product as u64) < reject {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// An exponentially distributed time, by inversion; at most 36.7 times the mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        nanos(-ln(1.0 - self.standard_uniform()) * mean.as_nanos() as f64)
    }

    /// A uniformly distributed time from zero to `max`, both included.
    pub fn uniform(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(self.below(max.as_nanos().saturating_add(1)))
    }

    /// A standard normal variable.
    ///
    /// Marsaglia and Bray 1964, the polar method; the second variable of each pair is discarded, so
    /// that the state of the stream is only that of the generator.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.standard_uniform() - 1.0, 2.0 * self.standard_uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    /// The absolute value of a normal variable of mean zero and standard deviation `sd`.
    pub fn half_normal(&mut self, sd: Duration) -> Duration {
        nanos(self.normal().abs() * sd.as_nanos() as f64)
    }
}

impl RandomStreamName {
    /// The name of an entity (a flow, a direction of a link, ...) in one run.
    #[must_use]
    pub fn new(seed: u64, replication: u32, entity: &str, member: u64) -> Self {
        let hash = fnv1a(FNV_OFFSET, &seed.to_le_bytes());
        let hash = fnv1a(hash, &replication.to_le_bytes());
        let hash = fnv1a(hash, entity.as_bytes());
        // No text contains this byte: ("ab", "c") and ("a", "bc") stay different.
        let hash = fnv1a(hash, &[END_OF_TEXT]);
        Self(fnv1a(hash, &member.to_le_bytes()))
    }

    /// The stream for one purpose.
    #[must_use]
    pub fn stream(self, purpose: &str) -> RandomStream {
        from_hash(fnv1a(self.0, purpose.as_bytes()))
    }

    /// The `number`th stream of one purpose, for example one for each interval of time: streams are
    /// independent of whether the others are used.
    #[must_use]
    pub fn numbered_stream(self, purpose: &str, number: u64) -> RandomStream {
        let hash = fnv1a(fnv1a(self.0, purpose.as_bytes()), &[END_OF_TEXT]);
        from_hash(fnv1a(hash, &number.to_le_bytes()))
    }
}
impl From<Probability> for Threshold {
    fn from(probability: Probability) -> Self {
        // 2^63 × ratio is exact, since it only changes the exponent; 1 becomes 2^63.
        Self((probability.ratio() * 9_223_372_036_854_775_808.0) as u64)
    }
}

impl BernoulliTrial {
    /// A trial with this probability of success.
    #[must_use]
    pub fn new(probability: Probability, random: RandomStream) -> Self {
        Self { threshold: probability.into(), random }
    }

    /// Samples the trial once.
    #[inline]
    pub fn sample(&mut self) -> bool {
        self.random.occurs(self.threshold)
    }
}

/// The multiplier of the generator.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
const TWO_POW_MINUS_53: f64 = 1.0 / 9_007_199_254_740_992.0;
const END_OF_TEXT: u8 = 0xff;

fn from_hash(hash: u64) -> RandomStream {
    // The last bytes of FNV-1a are badly mixed; splitmix64 spreads them over all 128 bits of state.
    let high = splitmix64(hash);
    let low = splitmix64(high);
    RandomStream { high, low: low | 1 }
}

/// FNV-1a, 64 bits (RFC 9923): offset basis and prime.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", figure 17.
pub(crate) fn splitmix64(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn nanos(nanos: f64) -> Duration {
    Duration::from_nanos(round_to_u64(nanos.min(Duration::MAX.as_nanos() as f64)))
}

/// Natural logarithm of a normal number above zero, to about one unit in the last place and the
/// same on every platform.
///
/// With x = m · 2^e and m in [√½, √2): ln x = e ln 2 + 2 artanh((m − 1) / (m + 1)), the series of
/// artanh cut where its terms fall below 2^-60.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa >= std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..11).rev().fold(1.0 / 23.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    const N: u32 = 200_000;

    fn random(purpose: &str) -> RandomStream {
        RandomStream::named(7, 0, "link.forward", 3, purpose)
    }

    fn mean_of(samples: impl Iterator<Item = f64>) -> f64 {
        samples.sum::<f64>() / f64::from(N)
    }

    #[test]
    fn the_numbers_of_a_stream_name_never_change() {
        // Every stored answer depends on these numbers: they must not change.
        let mut loss = random("loss");
        let samples = [loss.below(1_000_000), loss.below(1_000_000), loss.below(1_000_000)];
        assert_eq!(samples, [518_787, 674_824, 720_327]);
        let second = Duration::from_secs(1);
        let times = [loss.exponential(second), loss.half_normal(second), loss.uniform(second)];
        assert_eq!(times.map(Duration::as_nanos), [1_157_622_273, 1_862_200_961, 474_553_935]);
    }

    /// The generator is that of another implementation.
    #[test]
    fn the_numbers_are_those_of_pcg64_mcg() {
        let mut random = random("pcg");
        let state = u128::from(random.high) << 64 | u128::from(random.low);
        let mut expected = Pcg64Mcg::new(state);
        (0..1_000).for_each(|_| assert_eq!(random.next_u64(), expected.next_u64()));
    }

    #[test]
    fn every_part_of_a_name_changes_the_stream() {
        let streams = [
            RandomStream::named(1, 0, "a", 0, "loss"),
            RandomStream::named(2, 0, "a", 0, "loss"),
            RandomStream::named(1, 1, "a", 0, "loss"),
            RandomStream::named(1, 0, "b", 0, "loss"),
            RandomStream::named(1, 0, "a", 1, "loss"),
            RandomStream::named(1, 0, "a", 0, "jitter"),
        ];
        let name = RandomStreamName::new(1, 0, "a", 0);
        let numbered = [0, 1, 256].map(|number| name.numbered_stream("loss", number));
        let streams = streams.into_iter().chain(numbered);
        let mut first: Vec<u64> = streams.map(|mut s| s.next_u64()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 9);
    }

    #[test]
    fn probabilities_zero_and_one_are_exact() {
        let mut random = random("edge");
        let never = Threshold::from(Probability::ZERO);
        let always = Threshold::from(Probability::new(1.0).unwrap());
        assert!((0..N).all(|_| !random.occurs(never) && random.occurs(always)));
    }

    #[test]
    fn the_success_rate_is_within_four_standard_deviations() {
        let p = 0.003;
        let mut trial = BernoulliTrial::new(Probability::new(p).unwrap(), random("p"));
        let successes = (0..N).filter(|_| trial.sample()).count() as f64;
        let deviation = (f64::from(N) * p * (1.0 - p)).sqrt();
        assert!((successes - f64::from(N) * p).abs() < 4.0 * deviation, "{successes}");
    }

    #[test]
    fn below_is_uniform_and_within_its_bound() {
        let mut random = random("below");
        let mut seen = [0_u32; 7];
        (0..N).for_each(|_| seen[random.below(7) as usize] += 1);
        assert!(seen.iter().all(|n| n.abs_diff(N / 7) < 700), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn random_times_have_the_requested_means() {
        let mut random = random("means");
        let second = Duration::from_secs(1);
        let exponential = mean_of((0..N).map(|_| random.exponential(second).as_secs_f64()));
        let uniform = mean_of((0..N).map(|_| random.uniform(second).as_secs_f64()));
        let half_normal = mean_of((0..N).map(|_| random.half_normal(second).as_secs_f64()));
        assert!((exponential - 1.0).abs() < 0.01, "{exponential}");
        assert!((uniform - 0.5).abs() < 0.003, "{uniform}");
        // Mean of a half-normal variable: sd √(2/π).
        let expected = (2.0 / std::f64::consts::PI).sqrt();
        assert!((half_normal - expected).abs() < 0.006, "{half_normal}");
    }

    #[test]
    fn normal_variables_have_their_moments_and_tails() {
        let mut random = random("normal");
        let samples: Vec<f64> = (0..N).map(|_| random.normal()).collect();
        assert!(mean_of(samples.iter().copied()).abs() < 0.01);
        assert!((mean_of(samples.iter().map(|x| x * x)) - 1.0).abs() < 0.013);
        // Q(2.5) = 0.00621 (Abramowitz and Stegun 1964, table 26.1).
        let below = mean_of(samples.iter().map(|x| f64::from(u8::from(*x < -2.5))));
        assert!((below - 0.00621).abs() < 4.0 * (0.00621 / f64::from(N)).sqrt(), "{below}");
    }

    #[test]
    fn the_logarithm_is_accurate() {
        for x in [f64::MIN_POSITIVE, 1e-9, 0.25, 0.7, 0.999_999, 1.0, 1.5, 2.0, 1e12] {
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "{x}");
        }
    }
}
