//! Labels of swept keys and their values: `delayed ACK 40 ms` instead of `stack.linux.delayed_ack =
//! "40 ms"`.

use std::collections::BTreeSet;

use gridhaul_scenario::answer::Point;
use indexmap::IndexSet;
use serde_json::Value as Json;

use crate::format;
use crate::quantity::quantity;

/// Parts of keys that are acronyms or names.
const NAMES: &[(&str, &str)] = &[
    ("ack", "ACK"),
    ("aqm", "AQM"),
    ("ecn", "ECN"),
    ("ip", "IP"),
    ("mss", "MSS"),
    ("mtu", "MTU"),
    ("nagle", "Nagle"),
    ("rack", "RACK"),
    ("rto", "RTO"),
    ("rtt", "RTT"),
    ("sack", "SACK"),
    ("tcp", "TCP"),
];

/// The last part of a key as words: `delayed ACK`.
pub(crate) fn short(key: &str) -> String {
    let (before, last) = key.rsplit_once('.').unwrap_or(("", key));
    // "loss" is clearer than the name of the loss model.
    if before.ends_with(".loss") && last == "bernoulli" {
        return "loss".to_owned();
    }
    if last == "count" && before.contains('.') {
        let name = words(before.rsplit('.').next().unwrap_or(before));
        let flows = if before.starts_with("flow.") { " flows" } else { "" };
        return format!("number of {name}{flows}");
    }
    words(last)
}

/// The last part of a key with its stack, link, flow or node: `delayed ACK of stack linux`.
pub(crate) fn label(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let [kind @ ("stack" | "link" | "flow" | "node"), name, rest @ ..] = parts.as_slice() else {
        return words(key);
    };
    let direction = match rest {
        ["both", _, ..] => " (both directions)".to_owned(),
        [direction @ ("forward" | "reverse"), _, ..] => format!(" ({direction})"),
        ["count"] => return short(key),
        [_, ..] => String::new(),
        [] => return key.to_owned(),
    };
    format!("{} of {kind} {name}{direction}", short(key))
}

/// The value of a swept key at a point: its label if the scenario gives one, else its text without
/// JSON syntax; `None` if the point does not have the key.
pub(crate) fn value(point: &Point, key: &str) -> Option<String> {
    let label = point.labels.get(key).cloned();
    label.or_else(|| point.parameters.get(key).map(|text| plain(text)))
}

/// The label of a point's value for a key among other keys: the label of the scenario, or the value
/// itself if it is a word. Numbers and switches are prefixed with the key, in full if two keys have
/// the same last part.
pub(crate) fn label_at(point: &Point, key: &str, all: &[String]) -> Option<String> {
    if let Some(label) = point.labels.get(key) {
        return Some(label.clone());
    }
    Some(named(key, point.parameters.get(key)?, all))
}

/// As [`label_at`], for a value without a label in the scenario.
pub(crate) fn named(key: &str, value: &str, all: &[String]) -> String {
    let text = plain(value);
    let is_table = value.starts_with(['{', '[']);
    if quantity(value).is_none() && !is_table && !matches!(value, "true" | "false" | "on" | "off") {
        return text;
    }
    let is_unique = all.iter().all(|other| other == key || short(other) != short(key));
    if is_unique { format!("{} {text}", short(key)) } else { format!("{} {text}", label(key)) }
}

/// Whether two keys belong to the same sweep entry with labels: each point has the same label for
/// both.
pub(crate) fn share_label(points: &[&Point], one: &str, other: &str) -> bool {
    let label = |point: &Point, key: &str| point.labels.get(key).cloned();
    let is_shared =
        |point: &&Point| label(point, one).is_some() && label(point, one) == label(point, other);
    !points.is_empty() && points.iter().all(is_shared)
}

/// The swept keys of points as columns of a table, each with its heading. Keys of one sweep entry
/// with labels are a single column, `label`.
pub(crate) fn columns<'a>(points: &[&'a Point]) -> Vec<(&'a String, String)> {
    let mut columns: Vec<(&String, String)> = Vec::new();
    let keys: IndexSet<&String> = points.iter().flat_map(|point| point.parameters.keys()).collect();
    for key in keys {
        match columns.iter_mut().find(|(first, _)| share_label(points, first, key)) {
            Some((_, heading)) => *heading = "label".to_owned(),
            None => columns.push((key, key.clone())),
        }
    }
    columns
}

/// Labels of the points of a sweep: the keys that differ between the points, with their values.
pub(crate) struct PointLabels<'a> {
    points: &'a [Point],
    /// Keys that do not have the same value at all points.
    varied: BTreeSet<&'a str>,
}

impl<'a> PointLabels<'a> {
    pub(crate) fn new(points: &'a [Point]) -> Self {
        let keys = points.iter().flat_map(|point| point.parameters.keys());
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        let value = |point: &'a Point, key: &str| point.parameters.get(key);
        let is_varied =
            |key: &&str| points.windows(2).any(|pair| value(&pair[0], key) != value(&pair[1], key));
        Self { points, varied: keys.into_iter().filter(is_varied).collect() }
    }

    /// The label of a point. Keys that vary together with another one are omitted.
    pub(crate) fn of(&self, index: usize) -> String {
        let Some(point) = self.points.get(index) else { return format!("point {index}") };
        let varied = point.parameters.keys().filter(|key| self.varied.contains(key.as_str()));
        let keys: Vec<String> = varied.cloned().collect();
        // The keys of one sweep entry share a label.
        let words: IndexSet<String> =
            keys.iter().filter_map(|key| label_at(point, key, &keys)).collect();
        words.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// The label of one point within its sweep.
pub(crate) fn of_point(points: &[Point], index: usize) -> String {
    PointLabels::new(points).of(index)
}

/// A value without JSON syntax: `gilbert elliott (p 1 %, r 30 %)`, `on`, `40 ms`.
pub(crate) fn plain(text: &str) -> String {
    match text {
        "true" => return "on".to_owned(),
        "false" => return "off".to_owned(),
        _ => {}
    }
    match serde_json::from_str(text) {
        Ok(json @ (Json::Object(_) | Json::Array(_))) => in_words(&json),
        _ => rounded(text).unwrap_or_else(|| text.to_owned()),
    }
}

/// An interpolated value of a range, rounded to four digits: `0.1468 %`.
fn rounded(text: &str) -> Option<String> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let digits = number.chars().filter(char::is_ascii_digit).count();
    let value: f64 = number.parse().ok().filter(|_| digits > 6 && number.contains('.'))?;
    Some(format!("{} {unit}", format::number(value)).trim_end().to_owned())
}

fn in_words(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Bool(true) => "on".to_owned(),
        Json::Bool(false) => "off".to_owned(),
        Json::Null => "none".to_owned(),
        Json::Number(number) => number.to_string(),
        Json::Array(list) if list.is_empty() => "none".to_owned(),
        Json::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(" + "),
        Json::Object(table) => {
            let pair = |(key, value): (&String, &Json)| match value {
                Json::Object(inner) if inner.is_empty() => words(key),
                Json::Object(inner) if inner.len() > 1 => {
                    format!("{} ({})", words(key), in_words(value))
                }
                value => format!("{} {}", words(key), in_words(value)),
            };
            table.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
    }
}

fn words(key: &str) -> String {
    let word = |word: &str| {
        let name = NAMES.iter().find(|(key, _)| *key == word);
        name.map_or(word, |(_, name)| *name).to_owned()
    };
    key.split('_').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_converted_to_words() {
        assert_eq!(label("stack.linux.delayed_ack"), "delayed ACK of stack linux");
        assert_eq!(label("link.a.forward.rate"), "rate of link a (forward)");
        assert_eq!(label("link.a.both.loss.bernoulli"), "loss of link a (both directions)");
        assert_eq!(label("flow.ping.load.periodic.every"), "every of flow ping");
        assert_eq!(label("flow.meters.count"), "number of meters flows");
        assert_eq!(label("duration"), "duration");
        let keys = ["link.a.both.rate", "link.b.both.rate", "stack.x.sack"].map(String::from);
        let rate = named(&keys[0], "1 Mbit/s", &keys);
        assert_eq!(rate, "rate of link a (both directions) 1 Mbit/s");
        assert_eq!(named(&keys[0], "1 Mbit/s", &keys[..1]), "rate 1 Mbit/s");
        assert_eq!(named(&keys[2], "true", &keys), "SACK on");
        assert_eq!(named("stack.x.congestion", "reno", &keys), "reno");
    }

    #[test]
    fn values_contain_no_json_syntax() {
        for (json, words) in [
            (r#"{"bernoulli":"1 %"}"#, "bernoulli 1 %"),
            (
                r#"{"red":{"min":"5 packets","max":"15 packets"}}"#,
                "red (min 5 packets, max 15 packets)",
            ),
            (r#"{"codel":{}}"#, "codel"),
            (r#"[{"start":"1 s","length":"4 s"}]"#, "start 1 s, length 4 s"),
            ("[]", "none"),
            ("40 ms", "40 ms"),
            ("0.146779926762 %", "0.1468 %"),
            ("1234567", "1234567"),
            ("12", "12"),
            ("false", "off"),
        ] {
            assert_eq!(plain(json), words);
        }
        let keys = ["link.a.forward.loss".to_owned()];
        assert_eq!(named(&keys[0], r#"{"bernoulli":"1 %"}"#, &keys), "loss bernoulli 1 %");
    }

    #[test]
    fn a_label_replaces_its_value() {
        let mut points = vec![Point::default(), Point::default()];
        for (point, value) in points.iter_mut().zip(["0 s", "40 ms"]) {
            point.parameters.insert("stack.x.delayed_ack".into(), value.into());
        }
        assert_eq!(of_point(&points, 1), "delayed ACK 40 ms");
        points[1].labels.insert("stack.x.delayed_ack".into(), "delayed ACK".into());
        assert_eq!(
            [of_point(&points, 0), of_point(&points, 1)],
            ["delayed ACK 0 s", "delayed ACK"]
        );
        assert_eq!(value(&points[1], "stack.x.delayed_ack").unwrap(), "delayed ACK");
    }

    #[test]
    fn keys_of_an_entry_with_labels_are_one_column() {
        let point = |router: &str, queue: &str| Point {
            parameters: [("near.on", router), ("far.on", router), ("queue", queue)]
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .into(),
            ..Point::default()
        };
        let mut points = [point("true", "5 packets"), point("false", "9 packets")];
        let headings = |points: &[Point]| {
            let points: Vec<&Point> = points.iter().collect();
            columns(&points).into_iter().map(|(_, heading)| heading).collect::<Vec<_>>()
        };
        assert_eq!(headings(&points), ["near.on", "far.on", "queue"]);
        for (point, label) in points.iter_mut().zip(["failover", "DSL only"]) {
            for key in ["near.on", "far.on"] {
                point.labels.insert(key.into(), label.into());
            }
        }
        assert_eq!(headings(&points), ["label", "queue"]);
    }
}
