//! Values of the tables that list the cases of a benchmark.

use anyhow::{Context, ensure};
use toml::{Table, Value};

/// The text of a key.
///
/// # Errors
/// The key is missing or empty.
pub(super) fn text<'a>(table: &'a Table, key: &str) -> anyhow::Result<&'a str> {
    let value = table.get(key).and_then(Value::as_str);
    let value = value.with_context(|| format!("a table has no text {key:?}: {table}"))?;
    ensure!(!value.is_empty(), "a table has an empty {key:?}: {table}");
    Ok(value)
}

/// A rate in kbit/s.
///
/// # Errors
/// The rate has another unit.
pub(super) fn kbit_per_s(rate: &str) -> anyhow::Result<u64> {
    match rate.split_once(' ') {
        Some((number, "kbit/s")) => Ok(number.parse()?),
        Some((number, "Mbit/s")) => Ok(number.parse::<u64>()? * 1000),
        _ => anyhow::bail!("unknown rate {rate:?}; expected a rate in kbit/s or Mbit/s"),
    }
}
