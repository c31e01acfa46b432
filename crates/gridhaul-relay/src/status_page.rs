//! The status as a page for a browser, and as metrics for Prometheus.

use serde_json::Value;

/// One page without scripts, readable on a phone.
pub(crate) fn page(status: &Value) -> String {
    let mut rows = String::new();
    for (name, value) in flat(status) {
        rows += &format!("<tr><th>{}</th><td>{}</td></tr>\n", escaped(&name), escaped(&value));
    }
    let role = escaped(status["role"].as_str().unwrap_or("relay"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"refresh\" content=\"5\"><title>gridhaul relay: {role}</title>\
         <style>body{{font-family:sans-serif;margin:1rem;max-width:40rem}}\
         th{{text-align:left;font-weight:normal;padding-right:1rem}}td{{text-align:right}}\
         tr:nth-child(even){{background:#eee}}</style></head>\n\
         <body><h1>gridhaul relay: {role}</h1>\n<table>\n{rows}</table>\n\
         <p><a href=\"/status\">JSON</a> <a href=\"/meters\">meters</a> \
         <a href=\"/metrics\">metrics</a></p></body></html>\n"
    )
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
    const COUNTERS: [&str; 7] = [
        "accepted",
        "refused",
        "received",
        "upstream_failures",
        "resets",
        "to_servers",
        "to_clients",
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

/// Names and values of all fields; nested ones are joined by a full stop.
fn flat(status: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => found.extend(
                flat(value).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)),
            ),
            Value::String(text) => found.push((key.clone(), text.clone())),
            other => found.push((key.clone(), other.to_string())),
        }
    }
    found
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
    fn the_page_escapes_names() {
        let html = page(&json!({ "role": "head", "name": "<script>" }));
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"));
    }
}
