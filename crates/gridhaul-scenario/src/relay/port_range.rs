//! Ranges of TCP ports.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A range of TCP ports. In files: `4059`, or `"7000-7010"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

const EXPECTED: &str = "a port such as 4059, or a range such as \"7000-7010\"";

impl PortRange {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range: RangeInclusive<u16> = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (!range.is_empty() && *range.start() > 0).then_some(Self(range))
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last {
            return serializer.serialize_u16(*first);
        }
        serializer.collect_str(&format_args!("{first}-{last}"))
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PortVisitor)
    }
}

struct PortVisitor;

impl de::Visitor<'_> for PortVisitor {
    type Value = PortRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<PortRange, E> {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))?;
        Ok(PortRange(port..=port))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<PortRange, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PortRange, E> {
        PortRange::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for PortRange {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PortRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": 65535,
            "pattern": r"^\s*[0-9]+\s*(-\s*[0-9]+\s*)?$",
            "description": EXPECTED,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_first_and_a_last_port() {
        assert_eq!(PortRange::parse("7000-7010"), Some(PortRange(7_000..=7_010)));
        assert_eq!(PortRange::parse("4059"), Some(PortRange(4_059..=4_059)));
        for wrong in ["", "7010-7000", "0", "0-5", "1-70000", "http"] {
            assert_eq!(PortRange::parse(wrong), None, "{wrong}");
        }
    }
}
