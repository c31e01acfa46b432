//! Sweeps: several values for keys of the scenario.

use std::fmt;

use indexmap::IndexMap;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// One axis of a sweep. Several keys in one entry vary together (with equally long lists); several
/// entries are combined with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Path of a key, such as `"link.dvbt.forward.loss.bernoulli"`, and its values.
    pub vary: IndexMap<String, Values>,
    /// Labels of the values in reports, in the same order, such as
    /// `["no delayed ACK", "delayed ACK"]`. Absent: the key and the value, such as
    /// `delayed ACK 40 ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Vec<String>>,
}

/// Values of a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a scenario has few sweeps")]
pub enum Values {
    /// A list of values, as they would be written in the file.
    List(
        #[cfg_attr(any(test, feature = "schema"), schemars(with = "Vec<serde_json::Value>"))]
        Vec<toml::Value>,
    ),
    /// A range of values.
    Range(ValueRange),
}

/// Values between two values, both included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ValueRange {
    /// First and last value, with equal steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<[serde_json::Value; 2]>"))]
    pub linear: Option<[toml::Value; 2]>,
    /// First and last value, with equal ratios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<[serde_json::Value; 2]>"))]
    pub log: Option<[toml::Value; 2]>,
    /// Number of values, at least two.
    pub points: u32,
}

// Manual, since the derived code for untagged enums does not report which key of a range is wrong.
impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValuesVisitor;
        impl<'de> Visitor<'de> for ValuesVisitor {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of values or a range such as { linear = [1, 9], points = 5 }")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Values, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Values::List)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Values, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(table)).map(Values::Range)
            }
        }
        deserializer.deserialize_any(ValuesVisitor)
    }
}
