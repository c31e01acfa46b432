//! The arguments of `--set` and `--vary`.

use std::ops::Range as Span;
use std::str::FromStr;

use gridhaul_scenario::scenario::{ValueRange, Values};
use toml::Value;

/// A key and its new value: `link.uplink.forward.rate=3 Mbit/s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) source: ArgumentText,
}

/// A key and the values of its sweep: a list, or a range after `lin:` or `log:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Vary {
    pub(super) key: String,
    pub(super) values: Values,
    pub(super) source: ArgumentText,
}

/// The text of an argument, for error messages that point into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ArgumentText {
    pub(super) text: String,
    pub(super) key: Span<usize>,
    /// Position of each value; of a range, of both ends and the number of points.
    pub(super) values: Vec<Span<usize>>,
}

impl FromStr for Setting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = split_argument(text)
            .ok_or("expected KEY=VALUE, such as 'link.uplink.forward.rate=3 Mbit/s'")?;
        let source = ArgumentText::new(text, &[value]);
        Ok(Self { key, value: value_of(value), source })
    }
}

impl FromStr for Vary {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = split_argument(text).ok_or(
            "expected KEY=VALUES: values with commas between them, such as \
             'link.uplink.forward.rate=1 Mbit/s,3 Mbit/s', or a range, such as \
             'link.uplink.forward.rate=lin:1 Mbit/s:3 Mbit/s:5'",
        )?;
        let (values, parts) = match values.split_once(':') {
            Some(("lin", ends)) => (range(ends, false)?, ends.split(':').map(str::trim).collect()),
            Some(("log", ends)) => (range(ends, true)?, ends.split(':').map(str::trim).collect()),
            _ => {
                let pieces = split_values(values);
                (Values::List(pieces.iter().map(|piece| value_of(piece)).collect()), pieces)
            }
        };
        let source = ArgumentText::new(text, &parts);
        Ok(Self { key, values, source })
    }
}

impl ArgumentText {
    /// The parts are slices of the text.
    fn new(text: &str, parts: &[&str]) -> Self {
        let span = |part: &&str| {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            start..start + part.len()
        };
        let key = text.split('=').next().unwrap_or_default().trim();
        Self { text: text.to_owned(), key: span(&key), values: parts.iter().map(span).collect() }
    }
}

/// The key, and what follows the equals sign.
fn split_argument(text: &str) -> Option<(String, &str)> {
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    (!key.is_empty() && !value.is_empty()).then(|| (dotted_key(key), value))
}

/// The key with list indices after dots instead of in brackets, as error messages write them.
pub(super) fn dotted_key(key: &str) -> String {
    key.replace('[', ".").replace(']', "")
}

/// Parses a value as TOML. Quotes around strings may be omitted.
fn value_of(text: &str) -> Value {
    let document = format!("value = {text}");
    let read = document.parse::<toml::Table>().ok().filter(|table| table.len() == 1);
    read.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.into()))
}

fn range(text: &str, log: bool) -> Result<Values, String> {
    let parts: Vec<_> = text.split(':').map(str::trim).collect();
    let [first, last, points] = parts[..] else {
        return Err("expected first:last:number, such as 'lin:1 Mbit/s:10 Mbit/s:10'".into());
    };
    let points =
        points.parse().map_err(|_| format!("expected the number of points, found {points:?}"))?;
    let ends = Some([value_of(first), value_of(last)]);
    let (linear, log) = if log { (None, ends) } else { (ends, None) };
    Ok(Values::Range(ValueRange { linear, log, points }))
}

/// Splits at the commas outside quotes and brackets.
fn split_values(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_texts_numbers_and_tables() {
        let value = |text: &str| text.parse::<Setting>().unwrap().value;
        assert_eq!(value("link.a.forward.rate=3 Mbit/s"), Value::String("3 Mbit/s".into()));
        assert_eq!(value("seed=7"), Value::Integer(7));
        assert_eq!(value("stack.a.sack=true"), Value::Boolean(true));
        assert!(value("link.a.forward.loss={bernoulli = \"1 %\"}").is_table());
        let setting: Setting = "link.a.forward.outage[0].start=1 s".parse().unwrap();
        assert_eq!(setting.key, "link.a.forward.outage.0.start");
        assert!("seed".parse::<Setting>().is_err());
        assert!("=7".parse::<Setting>().is_err());
        // A line break must not add a second key.
        assert_eq!(value("title=1\nseed = 2"), Value::String("1\nseed = 2".into()));
    }

    #[test]
    fn values_are_a_list_or_a_range() {
        let values = |text: &str| text.parse::<Vary>().map(|vary| vary.values);
        for incomplete in ["a", "a="] {
            assert!(values(incomplete).is_err_and(|error| error.contains("lin:")), "{incomplete}");
        }
        let Ok(Values::List(list)) = values("a=1 ms, 2 ms") else { panic!() };
        assert_eq!(list, [Value::String("1 ms".into()), Value::String("2 ms".into())]);
        let Ok(Values::List(list)) = values("a={x = 1, y = 2},{x = 3, y = 4}") else { panic!() };
        assert_eq!(list.len(), 2);
        let Ok(Values::Range(range)) = values("a=log:1 ms:100 ms:3") else { panic!() };
        assert_eq!((range.linear, range.points), (None, 3));
        assert!(values("a=lin:1 ms:100 ms").is_err());
        assert!(values("a=lin:1 ms:100 ms:many").is_err());
    }

    #[test]
    fn the_positions_of_key_and_values_are_known() {
        let at = |text: &str| {
            let Vary { source, .. } = text.parse().unwrap();
            let parts: Vec<_> =
                source.values.iter().map(|span| text[span.clone()].to_owned()).collect();
            (text[source.key].to_owned(), parts)
        };
        let texts = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            at("a.b = 1 ms , {x = 1, y = 2}"),
            ("a.b".into(), texts(&["1 ms", "{x = 1, y = 2}"]))
        );
        assert_eq!(at("a=lin:1 ms:9 ms:3"), ("a".into(), texts(&["1 ms", "9 ms", "3"])));
    }
}
