//! Probabilities and ratios.

use std::fmt;
use std::str::FromStr;

use super::UnitError;
use super::quantity::{Expected, text_serde};

/// A probability from 0 to 1. In files: `"0.3 %"`.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Expected for Probability {
    const EXPECTED: &'static str = "a probability such as \"0.3 %\"";
}
text_serde!(Probability, r"^\s*[0-9][0-9_.eE+-]*\s*%\s*$");

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// From a ratio; `None` outside 0 to 1.
    #[must_use]
    pub fn new(ratio: f64) -> Option<Self> {
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }
    /// As a ratio from 0 to 1.
    #[must_use]
    pub const fn ratio(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = |problem: &'static str| UnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
            problem: problem.into(),
        };
        let number = text.trim().strip_suffix('%').ok_or_else(|| fail("the % is missing"))?;
        let percent: f64 =
            number.trim().parse().map_err(|_| fail("write a number, a space and %"))?;
        Self::new(percent / 100.0).ok_or_else(|| fail("it must be from 0 % to 100 %"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Twelve digits: enough to read back the same ratio from any percentage people write.
        write!(f, "{} %", (self.0 * 1e14).round() / 1e12)
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
