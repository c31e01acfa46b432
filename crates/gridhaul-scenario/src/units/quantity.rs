//! Reading and writing `"<number> <unit>"`.

use std::borrow::Cow;

use thiserror::Error;

/// A text that is not the quantity that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected}: {problem}")]
pub struct UnitError {
    /// What was written.
    pub text: String,
    /// What was expected, with an example.
    pub expected: &'static str,
    /// What is wrong with it.
    pub problem: Cow<'static, str>,
}

/// One kind of quantity: its units and how it is written.
pub trait Quantity: Sized {
    /// What to write, with an example: `a time such as "25 ms"`.
    const EXPECTED: &'static str;
    /// Units, largest first, as (name, how many base units one of them is).
    const UNITS: &'static [(&'static str, f64)];

    /// Makes the quantity from a whole number of base units.
    fn from_base(base: u64) -> Self;

    /// Reads `"<number> <unit>"`.
    ///
    /// # Errors
    /// A missing or unknown unit, a negative, infinite or unrepresentable number.
    fn parse(text: &str) -> Result<Self, UnitError> {
        let fail = |problem: Cow<'static, str>| UnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
            problem,
        };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
        let split = split.unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].trim(), trimmed[split..].trim());
        let value: f64 = number
            .replace('_', "")
            .parse()
            .map_err(|_| fail("write a number, a space and a unit".into()))?;
        if unit.is_empty() {
            return Err(fail(format!("the unit is missing; use one of {}", names::<Self>()).into()));
        }
        let Some(&(_, scale)) = Self::UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(fail(
                format!("unknown unit {unit:?}; use one of {}", names::<Self>()).into(),
            ));
        };
        if value < 0.0 {
            return Err(fail("it must not be negative".into()));
        }
        let base = (value * scale).round();
        // 2^63: far above any sensible quantity, and exact in f64.
        if !base.is_finite() || base >= 9_223_372_036_854_775_808.0 {
            return Err(fail("it is too large".into()));
        }
        if base == 0.0 && value > 0.0 {
            return Err(fail("it is smaller than the smallest step".into()));
        }
        Ok(Self::from_base(base as u64))
    }

    /// Writes a number of base units in the largest unit that keeps it short and exact.
    fn write_base(base: u64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let smallest = Self::UNITS[Self::UNITS.len() - 1];
        if base == 0 {
            return write!(f, "0 {}", smallest.0);
        }
        let exact = |scale: f64| {
            let value = base as f64 / scale;
            value >= 1.0 && ((value * 1000.0).round() / 1000.0 * scale - base as f64).abs() < 0.5
        };
        let &(unit, scale) =
            Self::UNITS.iter().find(|(_, scale)| exact(*scale)).unwrap_or(&smallest);
        write!(f, "{} {unit}", (base as f64 / scale * 1000.0).round() / 1000.0)
    }
}

fn names<Q: Quantity>() -> String {
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

/// What a text in a file should have been: for errors and the schema.
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
