//! The status as a page for a browser.

use serde_json::Value;

/// One page without scripts, readable on a phone: first whether the relay works, then groups of
/// values.
pub(crate) fn page(status: &Value) -> String {
    let text = |key: &str| escaped(status[key].as_str().unwrap_or("relay"));
    let (role, name) = (text("role"), text("name"));
    let problems = problems(status);
    let summary = if problems.is_empty() {
        "<p class=\"healthy\">healthy</p>\n".to_owned()
    } else {
        let lines =
            problems.iter().map(|problem| format!("<p class=\"error\">{}</p>\n", escaped(problem)));
        lines.collect()
    };
    let mut groups = String::new();
    let rows = rows_of("", status);
    for (index, (title, _)) in GROUPS.iter().enumerate() {
        let rows: String = rows.iter().filter(|row| row.group == index).map(Row::html).collect();
        if !rows.is_empty() {
            groups += &format!("<h2>{title}</h2>\n<table>\n{rows}</table>\n");
        }
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"refresh\" content=\"5\">\n<title>{name}: gridhaul relay</title>\n\
         <style>{STYLE}</style></head>\n\
         <body><h1>{name}</h1>\n<p>gridhaul relay, {role}</p>\n{summary}{groups}\
         <nav><a href=\"/status\">JSON</a> <a href=\"/details\">Details</a> \
         <a href=\"/metrics\">Metrics</a></nav></body></html>\n"
    )
}

/// Long messages are wrapped, so that a narrow screen needs no horizontal scrolling.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1rem/1.4 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:40rem}\
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}p{margin:0 0 1rem}\
h2{font-size:1rem;margin:1.5rem 0 .25rem}\
table{width:100%;border-collapse:collapse}th,td{padding:.3rem 0;border-bottom:1px solid #8885}\
th{text-align:left;font-weight:normal;padding-right:.5rem;overflow-wrap:anywhere}\
td{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\
.zero{color:#767676}.error{color:#b00020;overflow-wrap:anywhere}.healthy{color:#1b6e2d}\
@media(prefers-color-scheme:dark){.zero{color:#949494}.error{color:#ff8a80}.healthy{color:#81c995}}\
nav a{display:inline-block;padding:.75rem 1rem .75rem 0}";

/// Titles of the groups, and beginnings of the keys in them. Other keys are in the last group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Meters",
        &[
            "meter",
            "message",
            "accepted",
            "opened",
            "ended",
            "handshaking",
            "received",
            "connect",
            "half",
            "listener",
            "resets",
            "to_",
        ],
    ),
    (
        "Log",
        &[
            "tier",
            "backlog",
            "log",
            "lost",
            "oldest",
            "bytes_at_risk",
            "receive_buffer",
            "memory",
            "pending",
            "pipes",
        ],
    ),
    ("Upstream and delivery", &["upstream", "deliver", "collector", "server"]),
    (
        "Frames",
        &["passed", "forwarded", "generated", "retransmissions", "timeouts", "path", "dropped"],
    ),
    ("Refused", &["refused", "untouched"]),
    ("Others", &[]),
];

/// Largest number of collectors on the page; all are in the JSON document.
const ENTRIES_MAX: usize = 100;

/// Fault and its duration.
fn problems(status: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        if let (Some(name), Some(text)) = (key.strip_suffix("_error"), value.as_str()) {
            let since = status[format!("{key}_age_s")].as_f64();
            let since = since.map_or(String::new(), |age| format!(", for {}", span(age)));
            found.push(format!("{}{since}: {text}", name.replace('_', " ")));
        }
    }
    let number = |key: &str| status[key].as_f64();
    let pair = |key: &str, limit: &str| Some((number(key)?, number(limit)?));
    if let Some((used, limit)) = pair("backlog_byte", "backlog_max_byte")
        && used * 2.0 > limit
    {
        found.push(format!("{:.0} % of the space for records is used", 100.0 * used / limit));
    }
    if let Some((open, limit)) = pair("meters_count", "meters_max_count")
        && open >= limit
    {
        found.push("as many meters are connected as possible; others wait".to_owned());
    }
    if let Some((open, all)) = pair("upstreams_connected_count", "upstreams_count")
        && open < all
        && status["upstream_error"].is_null()
    {
        found.push(format!("{open} of {all} connections to the head are established"));
    }
    for (collector, connections) in
        status["collector_connections_count"].as_object().into_iter().flatten()
    {
        if connections.as_u64() == Some(0) {
            found.push(format!("collector {collector} is not connected"));
        }
    }
    if number("log_gaps_count").is_some_and(|gaps| gaps > 0.0) {
        found.push("segments of the log are missing: records are lost".to_owned());
    }
    found
}

/// A time in words.
fn span(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A line of the page.
struct Row {
    /// Number of the group.
    group: usize,
    name: String,
    value: String,
    is_zero: bool,
}

impl Row {
    fn html(&self) -> String {
        let class = if self.is_zero { " class=\"zero\"" } else { "" };
        let (name, value) = (escaped(&self.name), escaped(&self.value));
        format!("<tr{class}><th scope=\"row\">{name}</th><td>{value}</td></tr>\n")
    }
}

/// All fields, in words and with units; those of an object have its name before theirs. Role, name
/// and errors are above the tables.
fn rows_of(object: &str, status: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let fields = status.as_object().into_iter().flatten();
    for (index, (key, value)) in fields.enumerate() {
        if !object.is_empty() && index == ENTRIES_MAX {
            break;
        }
        if object.is_empty() && (matches!(&**key, "role" | "name") || is_error(key)) {
            continue;
        }
        let (name, unit) = match key.rsplit_once('_') {
            Some((name, "byte")) => (name, " bytes"),
            Some((name, "s")) => (name, " s"),
            Some((name, "count")) => (name, ""),
            _ => (&**key, ""),
        };
        let name = format!("{object}{}", name.replace('_', " "));
        let value_text = match value {
            Value::Object(_) => {
                let group = group_of(key);
                let entries = rows_of(&format!("{name}: "), value).into_iter();
                rows.extend(entries.map(|row| Row { group, ..row }));
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Number(number) => format!("{}{unit}", grouped(&number.to_string())),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        let is_zero = value.is_null() || value.as_f64() == Some(0.0);
        rows.push(Row { group: group_of(key), name, value: value_text, is_zero });
    }
    rows
}

fn is_error(key: &str) -> bool {
    key.ends_with("_error") || key.ends_with("_error_age_s")
}

fn group_of(key: &str) -> usize {
    let is_in = |starts: &[&str]| starts.iter().any(|start| key.starts_with(start));
    GROUPS.iter().position(|(_, starts)| is_in(starts)).unwrap_or(GROUPS.len() - 1)
}

/// A number with a comma after each group of three digits.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    // Microseconds suffice.
    text + &fraction[..fraction.len().min(7)]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_has_words_units_and_groups() {
        let html = page(&json!({
            "role": "collector", "name": "<script>", "received_byte": 1_234_567,
            "meters_count": 19_000,
            "oldest_record_age_s": 0.123_456_7, "refused_count": { "allow_list": 999, "loop": 0 },
            "upstream_round_trip_s": null, "upstream_error": null, "delivery_error": null,
        }));
        for (name, value) in [
            ("received", "1,234,567 bytes"),
            ("meters", "19,000"),
            ("oldest record age", "0.123456 s"),
            ("refused: allow list", "999"),
        ] {
            let row = format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
            assert!(html.contains(&row), "{row}\n{html}");
        }
        for (name, value) in [("refused: loop", "0"), ("upstream round trip", "none")] {
            let row =
                format!("<tr class=\"zero\"><th scope=\"row\">{name}</th><td>{value}</td></tr>");
            assert!(html.contains(&row), "{row}\n{html}");
        }
        let titles: Vec<_> =
            html.split("<h2>").skip(1).filter_map(|part| part.split("</h2>").next()).collect();
        assert_eq!(titles, ["Meters", "Log", "Upstream and delivery", "Refused"]);
        assert!(html.contains("collector</p>\n<p class=\"healthy\">healthy</p>"), "{html}");
        assert!(html.contains("<h1>&lt;script&gt;</h1>") && !html.contains("<script"), "{html}");
    }

    #[test]
    fn the_first_line_states_each_problem_and_its_duration() {
        let html = page(&json!({
            "role": "head", "name": "head", "delivery_error": "no \
             answer", "delivery_error_age_s": 200.9,
            "backlog_byte": 600, "backlog_max_byte": 1_000, "meters_count": 3,
            "collector_connections_count": { "a": 1, "b": 0 },
        }));
        let problems: Vec<_> = html
            .split("<p class=\"error\">")
            .skip(1)
            .filter_map(|part| part.split("</p>").next())
            .collect();
        let expected = [
            "delivery, for 3 min 20 s: no answer",
            "60 % of the space for records is used",
            "collector b is not connected",
        ];
        assert_eq!(problems, expected);
        assert!(!html.contains("healthy</p>"));
        assert_eq!([span(59.0), span(7_300.0), span(200_000.0)], ["59 s", "2 h 1 min", "2 d 7 h"]);
    }
}
