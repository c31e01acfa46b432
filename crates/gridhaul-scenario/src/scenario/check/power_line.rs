//! Checks of power lines, shadowing and noise.

use super::Report;
use crate::scenario::{Noise, PowerLine, Shadowing};
use crate::units::Decibel;

impl Report<'_> {
    /// Checks a power line. True if it is valid, and therefore the values that it sets for the
    /// directions.
    pub(super) fn power_line(&mut self, key: &str, line: &PowerLine) -> bool {
        let before = self.diagnostics.len();
        if line.distance.is_some_and(|distance| distance.is_zero()) {
            self.refuse(
                format!("{key}.distance"),
                "the length of a line must be above 0",
                "write \"2 km\", or leave it out for one hop of paper `plc`",
            );
        }
        if line.span.is_some_and(|span| span.is_zero()) {
            self.refuse(
                format!("{key}.span"),
                "the length of a span must be above 0",
                "write \"800 m\", or leave it out",
            );
        } else if line.spans() > u64::from(Shadowing::SPANS_MAX) {
            self.refuse(
                format!("{key}.distance"),
                format!(
                    "the line has {} spans; the limit is {}",
                    line.spans(),
                    Shadowing::SPANS_MAX
                ),
                "increase `span`, or check the units",
            );
        }
        if line.attenuation_per_km.is_some_and(|per_km| per_km < Decibel::ZERO) {
            self.refuse(
                format!("{key}.attenuation_per_km"),
                "the attenuation must not be negative",
                "write the attenuation as a positive number, such as \"50 dB\"",
            );
        }
        for (name, given) in [
            ("attenuation_per_km", line.attenuation_per_km.is_some()),
            ("budget", line.budget.is_some()),
        ] {
            if given && !line.shadowing {
                self.refuse(
                    format!("{key}.{name}"),
                    "this key requires `shadowing`, which the line does not have",
                    "add `shadowing = true`, or remove the key",
                );
            }
        }
        self.diagnostics.len() == before
    }

    pub(super) fn shadowing(&mut self, key: &str, shadowing: &Shadowing) {
        if shadowing.deviation < Decibel::ZERO {
            self.refuse(
                format!("{key}.deviation"),
                "a standard deviation must not be negative",
                "write \"4 dB\"; \"0 dB\" for a level that does not vary",
            );
        }
        if shadowing.coherence.is_some_and(|coherence| coherence.is_zero()) {
            self.refuse(
                format!("{key}.coherence"),
                "the coherence time must be above 0",
                "write \"1 s\", or leave it out for one level in the whole run",
            );
        }
        if shadowing.spans == 0 || shadowing.spans > Shadowing::SPANS_MAX {
            self.refuse(
                format!("{key}.spans"),
                format!("the number of spans must be from 1 to {}", Shadowing::SPANS_MAX),
                "write 1, or leave it out, if there are no regenerators",
            );
        }
    }

    pub(super) fn noise(&mut self, key: &str, noise: &Noise) {
        if noise.length.is_zero() {
            self.refuse(
                format!("{key}.length"),
                "the length of a burst must be above 0",
                "write \"100 us\", or remove the noise",
            );
        } else if noise.gap.is_zero() {
            self.refuse(
                format!("{key}.gap"),
                "the gap must be above 0: noise without a gap is an outage",
                "write \"1 s\", or use `outage`",
            );
        } else if noise.length + noise.gap < Noise::CYCLE_MIN {
            self.refuse(
                format!("{key}.gap"),
                format!("the mean time between bursts is below {}", Noise::CYCLE_MIN),
                "use `loss.bernoulli` for noise with so many bursts",
            );
        }
    }
}
