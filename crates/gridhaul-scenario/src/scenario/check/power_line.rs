//! Contradictions in power lines, attenuation and noise.

use super::Report;
use crate::scenario::{Noise, PowerLine, Shadowing};
use crate::units::{Decibel, Probability};

impl Report<'_> {
    /// Whether the line makes sense: then what it gives to the directions does too.
    pub(super) fn power_line(&mut self, key: &str, line: &PowerLine) -> bool {
        let before = self.diagnostics.len();
        if line.distance.is_some_and(|distance| distance.is_zero()) {
            self.refuse(
                format!("{key}.distance"),
                "a line is longer than nothing",
                "write \"2 km\", or leave it out for one hop of paper `plc`",
            );
        }
        if line.span.is_some_and(|span| span.is_zero()) {
            self.refuse(
                format!("{key}.span"),
                "regenerators stand further apart than nothing",
                "write \"800 m\", or leave it out",
            );
        } else if line.spans() > u64::from(Shadowing::SPANS_MAX) {
            self.refuse(
                format!("{key}.distance"),
                format!("this takes {} spans; the limit is {}", line.spans(), Shadowing::SPANS_MAX),
                "make `span` longer, or check the units",
            );
        }
        if line.attenuation_per_km.is_some_and(|per_km| per_km < Decibel::ZERO) {
            self.refuse(
                format!("{key}.attenuation_per_km"),
                "a line does not amplify",
                "write what a kilometre takes from the signal as a positive number",
            );
        }
        for (name, given) in [
            ("attenuation_per_km", line.attenuation_per_km.is_some()),
            ("budget", line.budget.is_some()),
        ] {
            if given && !line.shadowing {
                self.refuse(
                    format!("{key}.{name}"),
                    "it is about attenuation that varies, which this line has not",
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
                "a deviation is not negative",
                "write \"4 dB\"; \"0 dB\" for a level that does not vary",
            );
        }
        if shadowing.coherence.is_some_and(|coherence| coherence.is_zero()) {
            self.refuse(
                format!("{key}.coherence"),
                "a level stays for longer than nothing",
                "write \"1 s\", or leave it out for one level in the whole run",
            );
        }
        if shadowing.spans == 0 || shadowing.spans > Shadowing::SPANS_MAX {
            self.refuse(
                format!("{key}.spans"),
                format!("a line has from 1 to {} spans", Shadowing::SPANS_MAX),
                "write 1, or leave it out, where nothing regenerates the signal",
            );
        }
    }

    pub(super) fn noise(&mut self, key: &str, noise: &Noise) {
        if noise.length.is_zero() {
            self.refuse(
                format!("{key}.length"),
                "a burst lasts longer than nothing",
                "write \"100 us\", or remove the noise",
            );
        } else if noise.gap.is_zero() {
            self.refuse(
                format!("{key}.gap"),
                "noise without a gap is an outage",
                "write \"1 s\", or use `outage`",
            );
        } else if noise.length + noise.gap < Noise::CYCLE_MIN {
            self.refuse(
                format!("{key}.gap"),
                format!("bursts come more often than every {}", Noise::CYCLE_MIN),
                "each is a step of a run; use `loss.bernoulli` for noise that is so dense",
            );
        }
        if noise.loss == Probability::ZERO {
            self.refuse(
                format!("{key}.loss"),
                "noise that destroys nothing",
                "write \"100 %\", or remove the noise",
            );
        }
    }
}
