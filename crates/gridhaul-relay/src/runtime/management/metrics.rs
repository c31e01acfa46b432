//! The status as metrics in the text format of Prometheus (exposition format 0.0.4). Their number
//! does not depend on the number of meters.

use std::fmt::Write;

use serde_json::Value;

/// Key of the status, and meaning. Keys with the ending `_error` are 1 while there is an error.
const METRICS: &[(&str, &str)] = &[
    ("abandoned_resets_count", "Segments of abandoned connections that were answered by a reset"),
    ("accepted_count", "Connections that were accepted"),
    ("backlog_byte", "Bytes of records that wait for the head or the destination"),
    ("backlog_max_byte", "Largest number of bytes of records that may wait"),
    (
        "bytes_at_risk_byte",
        "Bytes that were accepted and are not stored, or not acknowledged by the next hop",
    ),
    ("bytes_at_risk_limit_byte", "Largest number of bytes that a crash can take"),
    ("collector_connections_count", "Connections of a collector with the head; 0 if it is missing"),
    ("collector_gaps_count", "Places at which records of collectors are lost"),
    ("collector_lost_byte", "Bytes that collectors have lost"),
    ("collector_meters_count", "Open meters of a collector"),
    ("collectors_connected_count", "Connections of collectors"),
    ("connecting_count", "Clients that wait for a connection to their server"),
    ("connections_count", "Clients that are connected"),
    ("connections_max_count", "Largest number of clients"),
    ("delivered_byte", "Position in the log up to which records are delivered"),
    ("delivery_error", "Whether records cannot be delivered"),
    ("delivery_error_age_s", "Time for which records could not be delivered"),
    ("dropped_count", "Frames that were dropped, by cause"),
    ("durable_delay_max_s", "Longest time between arrival and acknowledgement of durable data"),
    ("durable_delay_s", "Smoothed time between arrival and acknowledgement of durable data"),
    ("durable_dropped_count", "Packets of the TUN device that were dropped, by cause"),
    ("durable_half_open_count", "Connections on the TUN device whose handshake is not complete"),
    ("durable_half_open_evicted_count", "Such connections that were removed for others"),
    ("durable_meters_count", "Meters whose data is acknowledged when it is durable"),
    (
        "durable_retransmissions_count",
        "Segments that meters have retransmitted before their data was durable",
    ),
    ("durable_timeouts_count", "Meters on the TUN device that did not answer any more"),
    ("durable_unknown_count", "Segments of unknown connections that were answered with a reset"),
    ("durable_withheld_byte", "Bytes that have arrived and are not acknowledged"),
    ("ended_count", "Connections whose proxy has ended, by cause"),
    ("forwarded_count", "Segments of hosts that proxies have forwarded"),
    ("generated_count", "Segments that proxies have generated"),
    ("half_closed_count", "Connections of which one direction has ended"),
    ("handshaking_count", "Connections before their header and handshake are complete"),
    ("link_error", "Whether a link of a hybrid router is not usable"),
    ("link_round_trip_s", "Newest round-trip time of the probes of a link"),
    ("link_usable_count", "Whether packets over a link arrive at the peer"),
    ("links_count", "Links of a hybrid router"),
    ("links_usable_count", "Links over which packets arrive at the peer"),
    ("listeners_count", "Listeners in the configuration"),
    ("listeners_open_count", "Listeners that accept connections"),
    ("log_end_byte", "Position of the end of the log"),
    (
        "log_error",
        "Whether nothing can be appended to the log, or delivered segments cannot be removed",
    ),
    ("log_gaps_count", "Places at which segments of the log are missing"),
    ("log_lost_byte", "Bytes of segments that are missing"),
    ("lost_byte", "Bytes that were acknowledged to their sender and are lost"),
    ("lost_records_count", "Records that are lost"),
    ("memory_byte", "Memory with data in transit"),
    ("memory_max_byte", "Largest memory for data in transit"),
    ("message_parts_count", "Records that are parts of messages and do not end them"),
    ("meters_count", "Meters that are connected"),
    ("meters_max_count", "Largest number of meters"),
    ("oldest_record_age_s", "Age of the oldest record that waits"),
    ("opened_count", "Connections that were opened through a proxy, by mode"),
    ("passed_count", "Frames that passed unchanged"),
    ("path_mtu_lowered_count", "Reports of routers that have lowered the MTU of a path"),
    ("peer_error", "Whether no probe of the other hybrid router arrives"),
    ("pending_byte", "Bytes that were read and are not written"),
    ("pipes_count", "Pipes in use"),
    ("pipes_max_count", "Largest number of pipes"),
    ("receive_buffer_byte", "Receive buffer of a meter's socket"),
    ("received_byte", "Bytes that meters have sent"),
    ("refused_count", "Connections that were refused, by cause"),
    ("refused_probes_count", "Datagrams that are no probes of the other hybrid router"),
    ("refuted_suspicions_count", "Suspected links that have answered before they had failed"),
    ("resets_count", "Connections that were reset, by cause"),
    ("retransmissions_count", "Segments that proxies have retransmitted"),
    (
        "server_at_risk_byte",
        "Bytes that a server has acknowledged and its program may not have read",
    ),
    ("server_unconfirmed_byte", "Bytes that were sent to a server and that it has not confirmed"),
    ("suspicions_count", "Links that were suspected, because several probes were missing"),
    ("switches_count", "Changes of the link of a class of packets"),
    ("timeouts_count", "Expirations of retransmission timers of proxies"),
    ("to_clients_byte", "Bytes that were written to clients"),
    ("to_servers_byte", "Bytes that were written to servers"),
    ("unprotected_count", "Connections at risk that could not be protected against a failure"),
    ("untouched_count", "Connections and fragments that were forwarded unchanged, by cause"),
    ("upstream_batches_byte", "Bytes of batches for the head before compression"),
    ("upstream_compressed_byte", "Bytes of batches for the head after compression"),
    (
        "upstream_congestion_window_count",
        "Smallest congestion window of the connections to the head, in segments",
    ),
    ("upstream_error", "Whether the peer of this relay cannot be reached"),
    ("upstream_error_age_s", "Time for which the peer of this relay could not be reached"),
    ("upstream_failures_count", "Failures of connections to the head"),
    (
        "upstream_retransmissions_count",
        "Retransmitted segments of the present connections to the head",
    ),
    ("upstream_round_trip_s", "Largest smoothed round-trip time of the connections to the head"),
    ("upstream_unsent_byte", "Bytes in the send buffers of the connections to the head"),
    ("upstreams_connected_count", "Connections to the head that are established"),
    ("upstreams_count", "Connections to the head in the configuration"),
    ("withheld_count", "Packets that were withheld from the kernel's bridge"),
];

/// Counters end in `_total`, by the convention of Prometheus.
const COUNTERS: &[&str] = &[
    "accepted",
    "refused",
    "received",
    "message_parts",
    "upstream_failures",
    "resets",
    "to_servers",
    "to_clients",
    "lost_records",
    "collector_gaps",
    "collector_lost",
    "refused_probes",
    "refuted_suspicions",
    "suspicions",
    "switches",
    "durable_dropped",
    "durable_half_open_evicted",
    "durable_retransmissions",
    "durable_timeouts",
    "durable_unknown",
    "opened",
    "ended",
    "untouched",
    "dropped",
    "passed",
    "forwarded",
    "generated",
    "lost",
    "path_mtu_lowered",
    "retransmissions",
    "timeouts",
    "abandoned_resets",
    "unprotected",
    "withheld",
];

/// All metrics of a status.
pub(crate) fn metrics(status: &Value) -> String {
    let mut text = String::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        let Some((name, kind)) = metric(key) else { continue };
        let samples = match value {
            Value::Number(number) => format!("{name} {number}\n"),
            // A message as a label would begin a time series with each wording.
            _ if key.ends_with("_error") => format!("{name} {}\n", u8::from(!value.is_null())),
            Value::Object(values) => {
                let label = match key.split('_').next() {
                    Some("collector") => "collector",
                    Some("link") => "link",
                    Some("opened") => "mode",
                    _ => "cause",
                };
                values.iter().fold(String::new(), |mut lines, (value, number)| {
                    let _ = writeln!(lines, "{name}{{{label}=\"{}\"}} {number}", quoted(value));
                    lines
                })
            }
            _ => continue,
        };
        let help = METRICS
            .iter()
            .find(|metric| metric.0 == key)
            .map_or("Value of the status", |metric| metric.1);
        let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{samples}");
    }
    text
}

/// Name and type of a metric.
fn metric(key: &str) -> Option<(String, &'static str)> {
    let (name, unit) = key.rsplit_once('_')?;
    let unit = match unit {
        "byte" => "_bytes",
        "s" => "_seconds",
        "count" => "",
        "error" => "_error",
        _ => return None,
    };
    let is_counter = COUNTERS.contains(&name);
    let suffix = if is_counter { "_total" } else { "" };
    let kind = if is_counter { "counter" } else { "gauge" };
    Some((format!("gridhaul_relay_{name}{unit}{suffix}"), kind))
}

/// A value of a label: names of collectors may have any characters.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_become_metrics_with_base_units_and_a_meaning() {
        let status = json!({
            "role": "collector", "meters_count": 3, "received_byte": 7,
            "upstream_round_trip_s": null,
            "resets_count": { "meter": 1 }, "oldest_record_age_s": 0.5, "delivery_error": "no \
             answer", "upstream_error": null,
            "collector_connections_count": { "a\"\\": 2 },
        });
        let text = metrics(&status);
        for line in [
            "gridhaul_relay_meters 3",
            "# HELP gridhaul_relay_received_bytes_total Bytes that meters have sent.",
            "# TYPE gridhaul_relay_received_bytes_total counter",
            "gridhaul_relay_resets_total{cause=\"meter\"} 1",
            "gridhaul_relay_oldest_record_age_seconds 0.5",
            "gridhaul_relay_delivery_error 1",
            "gridhaul_relay_upstream_error 0",
            "gridhaul_relay_collector_connections{collector=\"a\\\"\\\\\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("no answer") && !text.contains("round_trip"));
    }

    #[test]
    fn meanings_are_listed_once_and_in_order() {
        assert!(METRICS.is_sorted_by(|one, next| one.0 < next.0));
    }
}
