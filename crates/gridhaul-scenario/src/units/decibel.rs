//! Ratios of powers in decibels.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use super::quantity::{Expected, text_serde};
use super::{Decimal, UnitError, split};

/// A ratio of powers in whole thousandths of a decibel; the only quantity that may be negative. In
/// files: `"20 dB"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decibel(i32);

impl Expected for Decibel {
    const EXPECTED: &'static str = "a ratio such as \"20 dB\" or \"-3.5 dB\"";
}
text_serde!(Decibel, r"^\s*-?[0-9][0-9_.eE+-]*\s*dB\s*$");

impl Decibel {
    /// Neither gain nor loss.
    pub const ZERO: Self = Self(0);
    /// Largest value, and its negative the smallest: far beyond the dynamic range of receivers.
    pub const MAX: Self = Self(1_000_000);

    /// From thousandths of a decibel, limited to ±[`Decibel::MAX`].
    #[inline]
    #[must_use]
    pub const fn from_thousandths(thousandths: i32) -> Self {
        let limit = Self::MAX.0;
        Self(if thousandths > limit {
            limit
        } else if thousandths < -limit {
            -limit
        } else {
            thousandths
        })
    }
    /// From decibels.
    #[inline]
    #[must_use]
    pub const fn new(decibels: i32) -> Self {
        Self::from_thousandths(decibels.saturating_mul(1_000))
    }
    /// In thousandths of a decibel.
    #[inline]
    #[must_use]
    pub const fn as_thousandths(self) -> i32 {
        self.0
    }
    /// In decibels.
    #[inline]
    #[must_use]
    pub fn as_decibels(self) -> f64 {
        f64::from(self.0) / 1e3
    }
}

impl Add for Decibel {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self::from_thousandths(self.0 + other.0)
    }
}
impl Sub for Decibel {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self::from_thousandths(self.0 - other.0)
    }
}

impl FromStr for Decibel {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = |reason: &'static str| UnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
            reason: reason.into(),
        };
        let (number, unit) = split(text);
        let Some(number) = Decimal::parse(number) else {
            return Err(fail("write a number, a space and dB"));
        };
        match unit {
            "dB" => {}
            "" => return Err(fail("the unit is missing; use dB")),
            "db" | "DB" | "Db" => return Err(fail("write \"dB\"")),
            "dBm" => return Err(fail("this is a ratio of powers, not a power: write \"dB\"")),
            _ => return Err(fail("its unit must be dB")),
        }
        let size = number.times(1_000).and_then(|size| i32::try_from(size).ok());
        let Some(size) = size.filter(|size| *size <= Self::MAX.0) else {
            return Err(fail("it must be from -1000 dB to 1000 dB"));
        };
        if size == 0 && number.digits > 0 {
            return Err(fail("it is smaller than the smallest step"));
        }
        Ok(Self(if number.negative { -size } else { size }))
    }
}

impl fmt::Display for Decibel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, size) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}", size / 1_000)?;
        if !size.is_multiple_of(1_000) {
            write!(f, ".{}", format!("{:03}", size % 1_000).trim_end_matches('0'))?;
        }
        f.write_str(" dB")
    }
}

impl fmt::Debug for Decibel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
