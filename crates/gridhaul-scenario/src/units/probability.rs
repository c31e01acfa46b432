//! Probabilities and ratios.

use std::fmt;
use std::str::FromStr;

use super::quantity::{Expected, text_serde};
use super::{Decimal, UnitError, split};

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

    /// Always.
    pub const ONE: Self = Self(1.0);

    /// From a ratio; `None` outside 0 to 1.
    #[inline]
    #[must_use]
    pub fn new(ratio: f64) -> Option<Self> {
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }
    /// As a ratio from 0 to 1.
    #[inline]
    #[must_use]
    pub const fn ratio(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = |reason: &'static str| UnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
            reason: reason.into(),
        };
        let (number, unit) = split(text);
        let Some(decimal) = Decimal::parse(number) else {
            return Err(fail("write a number, a space and %"));
        };
        match unit {
            "%" => {}
            "" => return Err(fail("the % is missing; 1 % is a probability of 0.01")),
            _ => return Err(fail("its unit must be %")),
        }
        if decimal.negative {
            return Err(fail("it must be from 0 % to 100 %"));
        }
        // As a decimal: dividing by 100 in binary would round a second time.
        let ratio = format!("{}e{}", decimal.digits, decimal.exponent.saturating_sub(2));
        let ratio = ratio.parse().ok().and_then(Self::new);
        ratio.ok_or_else(|| fail("it must be from 0 % to 100 %"))
    }
}

impl fmt::Display for Probability {
    /// The shortest percentage that reads back to the same ratio.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 {
            return f.write_str("0 %");
        }
        let shortest = format!("{:e}", self.0);
        let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
        let digits = digits.replace('.', "");
        let exponent: i32 = exponent.parse().unwrap_or(0);
        // `digits` are read as d.ddd × 10^exponent; a percentage has two more before the point.
        let before = exponent + 3;
        match usize::try_from(before) {
            _ if before < -5 => write!(f, "{digits}e{} %", before - digits.len() as i32),
            Ok(before @ 1..) if before >= digits.len() => write!(f, "{digits:0<before$} %"),
            Ok(before @ 1..) => write!(f, "{}.{} %", &digits[..before], &digits[before..]),
            _ => write!(f, "0.{}{digits} %", "0".repeat(before.unsigned_abs() as usize)),
        }
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
