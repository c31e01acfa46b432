//! Numbers of quantities in their base units, for tables: `"40 ms"` is 0.04 s.

use super::number::{Decimal, split};

/// A quantity as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaseValue {
    /// Number of base units.
    pub value: f64,
    /// The base unit.
    pub unit: BaseUnit,
}

/// A unit of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaseUnit {
    /// A number without a unit.
    Number,
    /// A share from 0 to 1; in scenarios a percentage.
    Ratio,
    /// Seconds.
    Second,
    /// Bits per second.
    BitPerSecond,
    /// Bytes.
    Byte,
    /// Metres.
    Metre,
    /// Decibels.
    Decibel,
    /// Packets, for queues.
    Packets,
    /// Segments, for windows.
    Segments,
    /// Messages, for buffers.
    Messages,
}

impl BaseUnit {
    /// All units, with the examples of the reference page.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Second, "40 ms"),
        (Self::BitPerSecond, "3 Mbit/s"),
        (Self::Byte, "64 kB"),
        (Self::Metre, "1.5 km"),
        (Self::Decibel, "-3.5 dB"),
        (Self::Ratio, "5 %"),
        (Self::Packets, "50 packets"),
        (Self::Segments, "10 segments"),
        (Self::Messages, "100 messages"),
        (Self::Number, "400_000"),
    ];

    /// End of the name of a column with numbers of this unit, after `_`.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Ratio => "ratio",
            Self::Second => "s",
            Self::BitPerSecond => "bit_per_s",
            Self::Byte => "byte",
            Self::Metre => "m",
            Self::Decibel => "db",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Messages => "messages",
        }
    }

    /// The unit of a column whose name ends in this suffix.
    #[must_use]
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(unit, _)| unit.suffix() == suffix);
        found.map(|(unit, _)| *unit)
    }

    /// Unit for display; empty for pure numbers.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::Ratio => "",
            Self::Second => "s",
            Self::BitPerSecond => "bit/s",
            Self::Byte => "B",
            Self::Metre => "m",
            Self::Decibel => "dB",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Messages => "messages",
        }
    }
}

/// A unit of scenarios: `factor` × 10^`exponent` base units.
struct Scale {
    name: &'static str,
    unit: BaseUnit,
    factor: u64,
    exponent: i32,
}

const fn scale(name: &'static str, unit: BaseUnit, factor: u64, exponent: i32) -> Scale {
    Scale { name, unit, factor, exponent }
}

/// Every unit of scenarios.
const SCALES: &[Scale] = &[
    scale("%", BaseUnit::Ratio, 1, -2),
    scale("Gbit/s", BaseUnit::BitPerSecond, 1, 9),
    scale("Mbit/s", BaseUnit::BitPerSecond, 1, 6),
    scale("kbit/s", BaseUnit::BitPerSecond, 1, 3),
    scale("bit/s", BaseUnit::BitPerSecond, 1, 0),
    scale("d", BaseUnit::Second, 86_400, 0),
    scale("h", BaseUnit::Second, 3_600, 0),
    scale("min", BaseUnit::Second, 60, 0),
    scale("s", BaseUnit::Second, 1, 0),
    scale("ms", BaseUnit::Second, 1, -3),
    scale("us", BaseUnit::Second, 1, -6),
    scale("ns", BaseUnit::Second, 1, -9),
    scale("GiB", BaseUnit::Byte, 1 << 30, 0),
    scale("GB", BaseUnit::Byte, 1, 9),
    scale("MiB", BaseUnit::Byte, 1 << 20, 0),
    scale("MB", BaseUnit::Byte, 1, 6),
    scale("KiB", BaseUnit::Byte, 1 << 10, 0),
    scale("kB", BaseUnit::Byte, 1, 3),
    scale("B", BaseUnit::Byte, 1, 0),
    scale("km", BaseUnit::Metre, 1, 3),
    scale("m", BaseUnit::Metre, 1, 0),
    scale("mm", BaseUnit::Metre, 1, -3),
    scale("dB", BaseUnit::Decibel, 1, 0),
    scale("packets", BaseUnit::Packets, 1, 0),
    scale("segments", BaseUnit::Segments, 1, 0),
    scale("messages", BaseUnit::Messages, 1, 0),
];

impl BaseValue {
    /// Reads a text with a unit; `None` for other texts, such as `unlimited` or a name. The number
    /// is the double that is closest to the text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text);
        let number = Decimal::parse(number)?;
        let scale = SCALES.iter().find(|scale| scale.name == unit)?;
        let digits = number.digits.checked_mul(u128::from(scale.factor))?;
        let sign = if number.negative { "-" } else { "" };
        // As a decimal: a multiplication in binary would round a second time.
        let text = format!("{sign}{digits}e{}", number.exponent.checked_add(scale.exponent)?);
        let value: f64 = text.parse().ok()?;
        value.is_finite().then_some(Self { value, unit: scale.unit })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitRate, Bytes, Distance, Duration, Quantity};
    use super::*;

    #[test]
    fn texts_with_a_unit_are_the_closest_number_in_the_base_unit() {
        let parse = |text: &str| BaseValue::parse(text).map(|found| (found.value, found.unit));
        assert_eq!(parse("40 ms"), Some((0.04, BaseUnit::Second)));
        // 35 × 0.001 is not 0.035 in binary.
        assert_eq!(parse("35 ms"), Some((0.035, BaseUnit::Second)));
        assert_eq!(parse("1.5 h"), Some((5_400.0, BaseUnit::Second)));
        assert_eq!(parse("3 Mbit/s"), Some((3e6, BaseUnit::BitPerSecond)));
        assert_eq!(parse("64 KiB"), Some((65_536.0, BaseUnit::Byte)));
        assert_eq!(parse("-3.5 dB"), Some((-3.5, BaseUnit::Decibel)));
        assert_eq!(parse("0.3 %"), Some((0.003, BaseUnit::Ratio)));
        for text in ["unlimited", "reno", "7", "", "3 parsec", "1e400 s", "%"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for (unit, example) in BaseUnit::ALL.iter().filter(|(unit, _)| *unit != BaseUnit::Number) {
            assert_eq!(parse(example).map(|(_, unit)| unit), Some(*unit), "{example}");
        }
    }

    #[test]
    fn every_unit_of_a_quantity_has_a_base_unit() {
        let units = [Duration::UNITS, BitRate::UNITS, Bytes::UNITS, Distance::UNITS];
        for (name, _) in units.into_iter().flatten() {
            assert!(BaseValue::parse(&format!("1 {name}")).is_some(), "{name}");
        }
    }
}
