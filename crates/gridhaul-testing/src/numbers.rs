//! Random numbers of tests.

/// Random numbers that a seed determines, so that a test can be repeated (SplitMix64, Steele et
/// al., OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Numbers {
    state: u64,
}

impl Numbers {
    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    pub const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Uniform between two limits.
    pub const fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in the logarithm.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// One of these values.
    ///
    /// # Panics
    /// There are no values.
    pub const fn choice<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.draw() % values.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation by Vigna.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut numbers = Numbers::new(1_234_567);
        let found: [u64; 3] = std::array::from_fn(|_| numbers.draw());
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!(found[..2], expected);
        assert_eq!(found[2], 9_817_491_932_198_370_423);
    }

    #[test]
    fn uniform_numbers_fill_their_limits() {
        let mut numbers = Numbers::new(1);
        let found: Vec<f64> = (0..10_000).map(|_| numbers.between(2.0, 6.0)).collect();
        assert!(found.iter().all(|number| (2.0..6.0).contains(number)));
        let mean = found.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 4.0).abs() < 0.05, "{mean}");
        // Half of the logarithms are below the geometric mean.
        let low = (0..10_000).filter(|_| numbers.scale(1.0, 100.0) < 10.0).count();
        assert!((4_800..5_200).contains(&low), "{low}");
        let mut chosen = [0; 3];
        (0..300).for_each(|_| chosen[numbers.choice(&[0, 1, 2])] += 1);
        assert!(chosen.iter().all(|number| *number > 60), "{chosen:?}");
    }
}
