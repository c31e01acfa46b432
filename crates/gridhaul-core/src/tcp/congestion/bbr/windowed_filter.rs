//! The largest delivery rate of the last ten rounds (section 4.1.1.2).

/// `BtlBwFilterLen`: "10 packet-timed round trips", longer than a gain cycle of eight.
const ROUNDS: usize = 10;

/// Maximum over the last rounds with samples; exact, with one value for each round.
#[derive(Debug, Clone)]
pub(super) struct WindowedMax {
    /// Round, and its largest sample.
    slots: [(u64, f64); ROUNDS],
    round: u64,
    max: f64,
}

impl WindowedMax {
    pub(super) const fn new() -> Self {
        Self { slots: [(0, 0.0); ROUNDS], round: 0, max: 0.0 }
    }

    /// The maximum; 0 without samples. Old values expire only when a new sample arrives: a pause
    /// carries no information about the path.
    #[inline]
    pub(super) const fn max(&self) -> f64 {
        self.max
    }

    /// Adds a sample of `round`; rounds must not decrease.
    #[inline]
    pub(super) fn update(&mut self, round: u64, sample: f64) {
        let slot = &mut self.slots[(round % ROUNDS as u64) as usize];
        *slot = (round, if slot.0 == round { slot.1.max(sample) } else { sample });
        if sample >= self.max {
            self.max = sample;
        } else if round != self.round {
            let young = |&&(then, _): &&(u64, f64)| then + ROUNDS as u64 > round;
            self.max = self.slots.iter().filter(young).fold(0.0, |max, slot| max.max(slot.1));
        }
        self.round = round;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_peak_is_remembered_for_ten_rounds() {
        let mut filter = WindowedMax::new();
        filter.update(1, 100.0);
        for round in 2..=10 {
            filter.update(round, 50.0);
            assert_eq!(filter.max(), 100.0, "round {round}");
        }
        filter.update(11, 50.0);
        assert_eq!(filter.max(), 50.0);
    }

    #[test]
    fn a_pause_does_not_expire_the_maximum() {
        let mut filter = WindowedMax::new();
        filter.update(1, 100.0);
        assert_eq!(filter.max(), 100.0);
        filter.update(1000, 1.0);
        assert_eq!(filter.max(), 1.0);
    }

    proptest! {
        #[test]
        fn the_filter_returns_the_maximum_of_the_window(
            samples in prop::collection::vec((0_u64..4, 0_f64..1e9), 1..200)
        ) {
            let mut filter = WindowedMax::new();
            let (mut round, mut all) = (0, Vec::new());
            for (step, sample) in samples {
                round += step;
                all.push((round, sample));
                filter.update(round, sample);
                let expected = all.iter().filter(|(then, _)| then + 10 > round);
                let expected = expected.fold(0.0, |max: f64, (_, sample)| max.max(*sample));
                prop_assert_eq!(filter.max(), expected);
            }
        }
    }
}
