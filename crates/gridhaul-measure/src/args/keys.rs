//! Options and the keys of a measurement that they set: a finding about a key names the option, and
//! a matrix sets the key of an option that is varied.

use gridhaul_measure::measurement::{Draft, Key};
use toml::{Table, Value};

/// Options that do not have the name of their key, with the last steps of the key.
const RENAMED: [(&str, &str); 15] = [
    ("allow-idle-states", "generator.idle_states"),
    ("broker", "broker.given.url"),
    ("ca", "broker.given.ca"),
    ("cross-traffic", "cross_traffic.forward"),
    ("cross-traffic-bytes", "cross_traffic.packet_bytes"),
    ("cross-traffic-reverse", "cross_traffic.reverse"),
    ("flow", "scenario.flow"),
    ("pin", "generator.processor"),
    ("predict", "record.capture"),
    ("reconnect-after", "reconnect.after"),
    ("retransmit-after", "doubling.after"),
    ("retransmit-every", "doubling.every"),
    ("reverse", "emulated.reverse"),
    ("vlan", "vlan.id"),
    ("vlan-priority", "vlan.priority"),
];

/// Flags that stand for one of several values of a key.
const FLAGS: [(&str, &str, &str); 4] = [
    ("capture", "record.capture", "packets"),
    ("no-reconnect", "connection.reconnect", "never"),
    ("no-retransmission", "goose.retransmission", "never"),
    ("predict", "record.capture", "prediction"),
];

/// The option that sets a key, for findings.
pub(super) fn option_of(key: &str) -> String {
    let steps: Vec<_> = key.split('.').collect();
    let is_own = |(_, last_steps): &&(&str, &str)| {
        let last: Vec<_> = last_steps.split('.').collect();
        steps.ends_with(&last)
    };
    let renamed = RENAMED.iter().find(is_own).map(|(option, _)| *option);
    let option = match steps[..] {
        [.., "disturbance", part] => return format!("--of {part}"),
        ["experiment", "rate", "first"] => "rate",
        ["experiment", "rate", "min"] => "rate_min",
        ["experiment", "rate", "max"] => "rate_max",
        ["protocol", "null"] => "agent",
        [.., last] => renamed.unwrap_or(last),
        [] => "",
    };
    format!("--{}", option.replace('_', "-"))
}

/// The keys that an option with this value sets in a measurement: none for a flag that is off.
/// `None` if the option has no effect on the measurement.
pub(crate) fn keys(draft: &Draft, option: &str, value: &str) -> Option<Vec<(Key, Value)>> {
    if let Some((_, last_steps, variant)) = FLAGS.iter().find(|(flag, ..)| *flag == option) {
        let key = draft.key(last_steps)?;
        return Some(match value {
            "false" => Vec::new(),
            "true" => vec![(key, (*variant).into())],
            // The reader states the values that it expects.
            other => vec![(key, other.into())],
        });
    }
    let has_connections = draft.key("connection").is_some();
    if ["congestion-control", "receive-window"].contains(&option) && !has_connections {
        return None;
    }
    let renamed = RENAMED.iter().find(|(known, _)| *known == option);
    let own = option.replace('-', "_");
    let last_steps = renamed.map_or(own.as_str(), |(_, last_steps)| *last_steps);
    let is_direct = draft.key("connection.port").is_some();
    let (key, value) = match option {
        // Both programs serve MQTT 3.1.1; each of the other protocols has one.
        "broker-program" => {
            draft.key("mqtt.broker.rabbitmq.tls")?;
            (draft.key("mqtt.broker")?, Table::from_iter([(value.to_owned(), empty())]).into())
        }
        // Without a broker, both ends are clients.
        "nodelay" if is_direct && ["both", "clients"].contains(&value) => {
            (draft.key(last_steps)?, Value::Boolean(true))
        }
        "nodelay" if is_direct && ["broker", "none"].contains(&value) => {
            (draft.key(last_steps)?, Value::Boolean(false))
        }
        _ => (draft.key(last_steps)?, value_of(value)),
    };
    Some(vec![(key, value)])
}

fn empty() -> Value {
    Value::Table(Table::new())
}

/// A value as in a file; quotes around texts are omitted on the command line.
fn value_of(text: &str) -> Value {
    let document: Option<Table> = format!("value = {text}").parse().ok();
    let value = document.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_findings_are_named_by_their_options() {
        assert_eq!(option_of("message.bytes"), "--bytes");
        assert_eq!(option_of("protocol.goose.retransmission.doubling.after"), "--retransmit-after");
        assert_eq!(option_of("experiment.outage.disturbance.broker"), "--of broker");
        assert_eq!(option_of("experiment.latency.schedule.warm_up"), "--warm-up");
        assert_eq!(option_of("experiment.latency.record.capture"), "--predict");
        assert_eq!(option_of("experiment.latency.cross_traffic"), "--cross-traffic");
    }
}
