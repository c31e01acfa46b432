//! Swept values as numbers in base units.

use serde_json::Value as Json;

use crate::units::{BaseUnit, BaseValue};

/// The column of a swept key and the number of its value: `link.a.both.delay_s` and 0.04 for
/// `"40 ms"`. `None` for truth values, names, words and tables.
pub(super) fn column(key: &str, value: &Json) -> Option<(String, f64)> {
    let BaseValue { value, unit } = match value {
        Json::Number(number) => BaseValue { value: number.as_f64()?, unit: BaseUnit::Number },
        Json::String(text) => BaseValue::parse(text)?,
        _ => return None,
    };
    Some((format!("{key}_{}", unit.suffix()), value))
}
