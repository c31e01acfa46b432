//! Parsing and formatting of `"<number> <unit>"`.

use std::borrow::Cow;

use thiserror::Error;

use super::number::{Decimal, split};

/// A text that is not the quantity that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected}: {reason}")]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// The expected text, with an example.
    pub expected: &'static str,
    /// The error in the text.
    pub reason: Cow<'static, str>,
}

/// A kind of quantity, with its units and text format.
pub trait Quantity: Sized {
    /// Text to write, with an example: `a time such as "25 ms"`.
    const EXPECTED: &'static str;
    /// Units, largest first, as (name, how many base units one of them is).
    const UNITS: &'static [(&'static str, f64)];

    /// Makes the quantity from a whole number of base units.
    fn from_base(base: u64) -> Self;

    /// Text for zero; `None`: zero in the smallest unit.
    const ZERO_TEXT: Option<&'static str> = None;

    /// Common wrong units, and what to write instead.
    const MISTAKES: &'static [(&'static str, &'static str)] = &[];

    /// Reads `"<number> <unit>"`, rounded to whole base units.
    ///
    /// # Errors
    /// A missing or unknown unit, a negative, infinite or unrepresentable number.
    fn parse(text: &str) -> Result<Self, UnitError> {
        let fail = |reason: Cow<'static, str>| UnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
            reason,
        };
        let (digits, unit) = split(text);
        let Some(number) = Decimal::parse(digits) else {
            let text = text.trim_start_matches(['+', '-', ' ']).to_ascii_lowercase();
            return Err(fail(match text.starts_with("nan") || text.starts_with("inf") {
                true => "it must be a finite number".into(),
                false => "write a number, a space and a unit".into(),
            }));
        };
        if unit.is_empty() {
            return Err(fail(
                format!("the unit is missing; use one of {}", names::<Self>()).into(),
            ));
        }
        if unit.starts_with(',') {
            let point = text.replacen(',', ".", 1);
            return Err(fail(format!("write a decimal point, not a comma: {point:?}").into()));
        }
        let Some(scale) = scale::<Self>(unit) else {
            let mistake = Self::MISTAKES.iter().find(|(name, _)| *name == unit);
            let remedy = match mistake {
                Some((_, remedy)) => converted(remedy, digits, unit),
                None => format!("use one of {}", names::<Self>()),
            };
            return Err(fail(format!("unknown unit {unit:?}; {remedy}").into()));
        };
        if number.negative {
            return Err(fail("it must not be negative".into()));
        }
        // Half of the range of u64: far above any sensible quantity, and sums do not overflow.
        let base = number.times(scale).filter(|base| *base <= i64::MAX as u128);
        let Some(base) = base else {
            return Err(fail("it is too large".into()));
        };
        if base == 0 && number.digits > 0 {
            return Err(fail("it is smaller than the smallest step".into()));
        }
        Ok(Self::from_base(base as u64))
    }

    /// Writes a number of base units in the largest unit that needs at most three decimals, so
    /// that it reads back exactly. Binary units are used for whole numbers only: 64000 B is
    /// `64 kB`, not `62.5 KiB`.
    fn write_base(base: u64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let (0, Some(text)) = (base, Self::ZERO_TEXT) {
            return f.write_str(text);
        }
        let smallest = Self::UNITS[Self::UNITS.len() - 1];
        let thousandths = |unit: &str, scale: f64| {
            let (base, scale) = (u128::from(base) * 1_000, scale as u128);
            let step = if unit.ends_with("iB") { scale * 1_000 } else { scale };
            (base >= scale * 1_000 && base % step == 0).then(|| base / scale)
        };
        let found =
            Self::UNITS.iter().find_map(|(unit, scale)| Some((*unit, thousandths(unit, *scale)?)));
        let (unit, value) = found.unwrap_or((smallest.0, u128::from(base) * 1_000));
        write!(f, "{}", value / 1_000)?;
        if value % 1_000 > 0 {
            write!(f, ".{}", format!("{:03}", value % 1_000).trim_end_matches('0'))?;
        }
        write!(f, " {unit}")
    }
}

/// A remedy such as `1 kB/s is "8 kbit/s"` for the number that was written: `3 kB/s is "24
/// kbit/s"`.
fn converted(remedy: &str, number: &str, unit: &str) -> String {
    let replaced = || {
        let (before, value) = remedy.split_once(&format!("1 {unit} is \""))?;
        let (factor, rest) = value.split_once(' ')?;
        let value: f64 = number.trim().replace('_', "").parse().ok()?;
        let product = value * factor.parse::<f64>().ok()?;
        let (value, product) = (short(value), short(product));
        Some(format!("{before}{value} {unit} is \"{product} {rest}"))
    };
    replaced().unwrap_or_else(|| remedy.to_owned())
}

/// A number with at most 12 significant digits, so that binary fractions are not visible.
fn short(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

/// Base units in one of a unit.
fn scale<Q: Quantity>(unit: &str) -> Option<u64> {
    // Scales are whole numbers below 2^53, which both types hold exactly.
    Q::UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale as u64)
}

pub(super) fn names<Q: Quantity>() -> String {
    Q::UNITS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Implements text in files (`Display`, `FromStr`, serde, JSON Schema) for a [`Quantity`] that is
/// a newtype around `u64`.
macro_rules! quantity_text {
    ($type:ident, $pattern:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                <Self as crate::units::Quantity>::write_base(self.0, f)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::units::UnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                <Self as crate::units::Quantity>::parse(text)
            }
        }

        crate::units::quantity::text_serde!($type, $pattern);
    };
}

/// Implements serde through `Display` and `FromStr`, and the JSON Schema of such a text.
macro_rules! text_serde {
    ($type:ident, $pattern:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::units::quantity::deserialize_text(
                    deserializer,
                    <Self as crate::units::quantity::Expected>::EXPECTED,
                )
            }
        }

        #[cfg(any(test, feature = "schema"))]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "description": <Self as crate::units::quantity::Expected>::EXPECTED,
                })
            }
        }
    };
}

pub(crate) use {quantity_text, text_serde};

/// The text that a file should contain: for errors and the schema.
pub(crate) trait Expected {
    const EXPECTED: &'static str;
}

impl<Q: Quantity> Expected for Q {
    const EXPECTED: &'static str = <Q as Quantity>::EXPECTED;
}

/// Reads a text that implements `FromStr`; a bare number gets an error that names the unit.
pub(crate) fn deserialize_text<'de, T, D>(
    deserializer: D,
    expected: &'static str,
) -> Result<T, D::Error>
where
    T: std::str::FromStr<Err = UnitError>,
    D: serde::Deserializer<'de>,
{
    struct Visitor<T>(&'static str, std::marker::PhantomData<T>);
    impl<T: std::str::FromStr<Err = UnitError>> serde::de::Visitor<'_> for Visitor<T> {
        type Value = T;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Visitor(expected, std::marker::PhantomData))
}
