//! The status as a page for a browser, and as metrics for Prometheus.

use serde_json::Value;

/// One page without scripts, readable on a phone.
pub(crate) fn page(status: &Value) -> String {
    let mut rows = String::new();
    let (errors, others): (Vec<_>, Vec<_>) =
        rows_of("", status).into_iter().partition(|row| row.is_error);
    for Row { name, value, is_error } in errors.into_iter().chain(others) {
        let class = if is_error { " class=\"error\"" } else { "" };
        let (name, value) = (escaped(&name), escaped(&value));
        rows += &format!("<tr{class}><th scope=\"row\">{name}</th><td>{value}</td></tr>\n");
    }
    let text = |key: &str| escaped(status[key].as_str().unwrap_or("relay"));
    let (role, name) = (text("role"), text("name"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"refresh\" content=\"5\">\n<title>{name}: gridhaul relay</title>\n\
         <style>{STYLE}</style></head>\n\
         <body><h1>{name}</h1>\n<p>gridhaul relay, {role}</p>\n<table>\n{rows}</table>\n\
         <nav><a href=\"/status\">JSON</a> <a href=\"/meters\">Meters</a> \
         <a href=\"/metrics\">Metrics</a></nav></body></html>\n"
    )
}

/// Long messages are wrapped, so that a narrow screen needs no horizontal scrolling.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1rem/1.4 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:40rem}\
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}p{margin:0 0 1rem;opacity:.75}\
table{width:100%;border-collapse:collapse}th,td{padding:.3rem 0;border-bottom:1px solid #8885}\
th{text-align:left;font-weight:normal;padding-right:.5rem;overflow-wrap:anywhere}.error{color:#b00020}\
td{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
.error td{white-space:normal;overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){.error{color:#ff8a80}}\
nav a{display:inline-block;padding:.75rem 1rem .75rem 0}";

/// A line of the page.
struct Row {
    name: String,
    value: String,
    is_error: bool,
}

/// All fields, in words and with units; those of an object have its name before theirs. Role and name are above the table.
fn rows_of(object: &str, status: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        let (name, unit) = match key.rsplit_once('_') {
            Some((name, "byte")) => (name, " bytes"),
            Some((name, "s")) => (name, " s"),
            Some((name, "count")) => (name, ""),
            _ => (&**key, ""),
        };
        let name = format!("{object}{}", name.replace('_', " "));
        let is_error = name.ends_with("error") && !value.is_null();
        let value = match value {
            Value::Object(_) => {
                rows.extend(rows_of(&format!("{name}: "), value));
                continue;
            }
            Value::String(_) if matches!(&**key, "role" | "name") => continue,
            Value::String(text) => text.clone(),
            Value::Number(number) => format!("{}{unit}", grouped(&number.to_string())),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        rows.push(Row { name, value, is_error });
    }
    rows
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

/// Metrics in the text format of Prometheus. Their number does not depend on the number of meters.
pub(crate) fn metrics(status: &Value) -> String {
    let mut text = String::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        let Some((name, kind)) = metric(key) else { continue };
        match value {
            Value::Number(number) => {
                text += &format!("# TYPE {name} {kind}\n{name} {number}\n");
            }
            Value::Object(causes) => {
                text += &format!("# TYPE {name} {kind}\n");
                for (cause, number) in causes {
                    text += &format!("{name}{{cause=\"{cause}\"}} {number}\n");
                }
            }
            _ => {}
        }
    }
    text
}

/// Name and type of a metric. Counters end in `_total`, by the convention of Prometheus.
fn metric(key: &str) -> Option<(String, &'static str)> {
    const COUNTERS: [&str; 10] = [
        "accepted",
        "refused",
        "received",
        "upstream_failures",
        "resets",
        "to_servers",
        "to_clients",
        "lost_records",
        "collector_gaps",
        "collector_lost",
    ];
    let (name, unit) = key.rsplit_once('_')?;
    let unit = match unit {
        "byte" => "_bytes",
        "s" => "_seconds",
        "count" => "",
        _ => return None,
    };
    let is_counter = COUNTERS.contains(&name);
    let suffix = if is_counter { "_total" } else { "" };
    let kind = if is_counter { "counter" } else { "gauge" };
    Some((format!("gridhaul_relay_{name}{unit}{suffix}"), kind))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_become_metrics_with_base_units() {
        let status = json!({
            "role": "collector", "meters_count": 3, "received_byte": 7,
            "resets_count": { "meter": 1 }, "oldest_record_age_s": 0.5,
        });
        let text = metrics(&status);
        for line in [
            "gridhaul_relay_meters 3",
            "# TYPE gridhaul_relay_received_bytes_total counter",
            "gridhaul_relay_resets_total{cause=\"meter\"} 1",
            "gridhaul_relay_oldest_record_age_seconds 0.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("collector"));
    }

    #[test]
    fn the_page_has_words_and_units() {
        let html = page(&json!({
            "role": "collector", "name": "<script>", "received_byte": 1_234_567, "meters_count": 19_000,
            "oldest_record_age_s": 0.123_456_7, "refused_count": { "allow_list": 999 },
            "upstream_round_trip_s": null, "upstream_error": "no answer", "delivery_error": null,
        }));
        for (name, value) in [
            ("received", "1,234,567 bytes"),
            ("meters", "19,000"),
            ("oldest record age", "0.123456 s"),
            ("refused: allow list", "999"),
            ("upstream round trip", "none"),
            ("delivery error", "none"),
        ] {
            let row = format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
            assert!(html.contains(&row), "{row}\n{html}");
        }
        let error =
            "<tr class=\"error\"><th scope=\"row\">upstream error</th><td>no answer</td></tr>";
        assert!(html.contains(&format!("<table>\n{error}")), "errors are first: {html}");
        assert!(html.contains("<h1>&lt;script&gt;</h1>") && !html.contains("<script"), "{html}");
    }
}
