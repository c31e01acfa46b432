//! Sweeps: keys of the scenario that take several values.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One axis of a sweep. Several keys in one entry vary together (their lists have one length);
/// several entries are combined in every way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Path of a key, such as `"link.dvbt.forward.loss.bernoulli"`, and its values.
    pub vary: IndexMap<String, Values>,
}

/// Values of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Values {
    /// These, as they would be written in the file.
    List(#[schemars(with = "Vec<serde_json::Value>")] Vec<toml::Value>),
    /// From one value to another.
    Range(Range),
}

/// Values from one to another, both included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// First and last value, in equal steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<[serde_json::Value; 2]>")]
    pub linear: Option<[toml::Value; 2]>,
    /// First and last value, in equal ratios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<[serde_json::Value; 2]>")]
    pub log: Option<[toml::Value; 2]>,
    /// Number of values, at least two.
    pub points: u32,
}
