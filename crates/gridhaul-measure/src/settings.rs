//! Settings of a run in its result.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Every setting that influences a result, in the order of the tables. Files of results have pairs
/// of name and value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Appends a setting.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Appends all settings of others.
    pub fn append(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The value of a setting; `None` if the run does not have it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is no setting.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings as JSON object.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        self.iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// `name = value`, separated by commas.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.iter().enumerate() {
            let separator = if number > 0 { ", " } else { "" };
            write!(f, "{separator}{name} = {value}")?;
        }
        Ok(())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Settings {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<N: Into<String>, V: Into<String>> Extend<(N, V)> for Settings {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, pairs: I) {
        self.0.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_pairs_in_files_and_one_object_in_summaries() {
        let mut settings: Settings = [("qos", "1"), ("nodelay", "true")].into_iter().collect();
        settings.push("broker_nice", "-20");
        let pairs = serde_json::to_string(&settings).unwrap();
        assert_eq!(pairs, r#"[["qos","1"],["nodelay","true"],["broker_nice","-20"]]"#);
        assert_eq!(serde_json::from_str::<Settings>(&pairs).unwrap(), settings);
        assert_eq!(settings.to_json()["qos"], "1");
        assert_eq!((settings.get("qos"), settings.get("k")), (Some("1"), None));
        assert_eq!(settings.to_string(), "qos = 1, nodelay = true, broker_nice = -20");
    }
}
