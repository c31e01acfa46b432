//! A measurement as the table of its file, whose keys are set one by one.

use gridhaul_scenario::scenario::{Diagnostic, read_text};
use serde::Deserialize;
use toml::{Table, Value};

use super::Measurement;

/// Keys whose value is one of several variants, each in a table of its own: a file has one of them.
const VARIANTS: [&str; 3] = ["broker", "reconnect", "retransmission"];

/// A measurement whose keys are being set. It is read as a file is when all are set, because some
/// keys are valid only together.
#[derive(Debug, Clone)]
pub struct Draft(Table);

/// A key with all of its steps, such as `protocol`, `mqtt`, `qos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(Vec<String>);

impl Draft {
    /// A draft with the values of a measurement.
    #[must_use]
    pub fn new(measurement: &Measurement) -> Self {
        #[expect(clippy::expect_used, reason = "every field is text, number, list or table")]
        let table = Table::try_from(measurement).expect("a measurement can be written as TOML");
        Self(table)
    }

    /// The key with these last steps, such as `qos` or `cross_traffic.forward`; `None` if the
    /// measurement has no such key, as without a network, or with another protocol.
    #[must_use]
    pub fn key(&self, last_steps: &str) -> Option<Key> {
        let steps: Vec<_> = last_steps.split('.').map(str::to_owned).collect();
        let keys = self.tables().into_iter().flat_map(|table| {
            let common = (0..steps.len()).filter(|&count| table.ends_with(&steps[..count]));
            common.map(|count| Key([&table[..], &steps[count..]].concat())).collect::<Vec<_>>()
        });
        keys.into_iter().find(|key| self.is_known(key))
    }

    /// Sets a key. The other variant of a key that has variants is removed.
    pub fn set(&mut self, key: &Key, value: Value) {
        let Some((last, steps)) = key.0.split_last() else { return };
        let mut table = &mut self.0;
        for (index, step) in steps.iter().enumerate() {
            let entry = table.entry(step).or_insert_with(|| Value::Table(Table::new()));
            let next = key.0.get(index + 1);
            let is_other = entry
                .as_table()
                .is_none_or(|known| next.is_none_or(|next| !known.contains_key(next)));
            if is_other && VARIANTS.contains(&step.as_str()) || !entry.is_table() {
                *entry = Value::Table(Table::new());
            }
            let Value::Table(found) = entry else { return };
            table = found;
        }
        table.insert(last.clone(), value);
    }

    /// Reads the measurement.
    ///
    /// # Errors
    /// Values of a wrong type or unit, and inconsistent values, each with its key.
    pub fn read(&self) -> Result<Measurement, Vec<Diagnostic>> {
        let text = self.0.to_string();
        read_text(&text, "", Measurement::diagnostics).map_err(|error| {
            // The lines of this text are nowhere in a file.
            let without_line = |found| Diagnostic { location: None, ..found };
            error.diagnostics.into_iter().map(without_line).collect()
        })
    }

    /// Tables in which a key is looked for, with their steps: those of the variants that the
    /// measurement has.
    fn tables(&self) -> Vec<Vec<String>> {
        let mut tables = Vec::new();
        for (name, value) in &self.0 {
            add_tables(std::slice::from_ref(name), value, &mut tables);
        }
        tables
    }

    /// Whether a file may have this key. A reader that does not know a key says so, whatever its
    /// value; other errors are about the value.
    fn is_known(&self, key: &Key) -> bool {
        let mut probe = self.clone();
        probe.set(key, Value::String(String::new()));
        let Err(error) = Measurement::deserialize(Value::Table(probe.0)) else { return true };
        let message = error.message();
        // A step may also be taken for a variant, of which a table has only one.
        let is_variant = |step: &String| message.starts_with(&format!("unknown variant `{step}`"));
        !message.starts_with("unknown field")
            && !message.starts_with("wanted exactly 1 element")
            && !key.0.iter().any(is_variant)
    }
}

impl Key {
    /// The key as findings name it.
    #[must_use]
    pub fn path(&self) -> String {
        let quoted = |step: &String| {
            if step.contains('.') { format!("\"{step}\"") } else { step.clone() }
        };
        self.0.iter().map(quoted).collect::<Vec<_>>().join(".")
    }

    /// Number of steps.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.0.len()
    }
}

fn add_tables(steps: &[String], value: &Value, tables: &mut Vec<Vec<String>>) {
    let Value::Table(table) = value else { return };
    tables.push(steps.to_vec());
    for (name, value) in table {
        add_tables(&[steps, std::slice::from_ref(name)].concat(), value, tables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(protocol: &str) -> Draft {
        let text = format!(
            "[experiment.latency]\n[protocol.\"{protocol}\"]\n[place.emulated]\n\
             network = {{ system = \"ethernet\" }}\n"
        );
        Draft::new(&Measurement::from_toml(&text, "test").unwrap())
    }

    fn path(protocol: &str, last_steps: &str) -> Option<String> {
        draft(protocol).key(last_steps).map(|key| key.path())
    }

    #[test]
    fn a_key_is_found_by_its_last_steps_where_the_measurement_has_it() {
        let found = |protocol, last_steps| path(protocol, last_steps).unwrap_or_default();
        assert_eq!(found("mqtt", "qos"), "protocol.mqtt.qos");
        assert_eq!(found("udp", "qos"), "");
        assert_eq!(found("amqp-1.0", "keep_alive"), "protocol.\"amqp-1.0\".connection.keep_alive");
        assert_eq!(
            found("udp", "cross_traffic.reverse"),
            "experiment.latency.cross_traffic.reverse"
        );
        assert_eq!(found("udp", "emulated.reverse"), "place.emulated.reverse");
        // Absent in the file, as a value without a default.
        assert_eq!(found("udp", "warm_up"), "experiment.latency.schedule.warm_up");
        assert_eq!(found("goose", "vlan.id"), "protocol.goose.vlan.id");
        assert_eq!(found("goose", "retransmission.doubling.after").len(), 44);
        assert_eq!(found("mqtt", "broker.given.url"), "protocol.mqtt.broker.given.url");
        assert_eq!(found("mqtt", "tls"), "protocol.mqtt.broker.mosquitto.tls");
        assert_eq!(found("zeromq", "broker.given.url"), "");
    }

    #[test]
    fn keys_that_are_valid_only_together_are_set_in_any_order() {
        let mut draft = draft("goose");
        for (last_steps, value) in [("vlan.priority", 5), ("vlan.id", 100)] {
            draft.set(&draft.key(last_steps).unwrap(), Value::Integer(value));
        }
        let vlan = draft.read().unwrap().protocol.vlan().unwrap();
        assert_eq!((vlan.id, vlan.priority), (100, 5));
    }

    #[test]
    fn a_variant_replaces_another_one() {
        let mut draft = draft("mqtt");
        draft.set(&draft.key("reconnect").unwrap(), "never".into());
        draft.set(&draft.key("broker.given.url").unwrap(), "127.0.0.1:1883".into());
        let measurement = draft.read().unwrap();
        assert!(measurement.protocol.given_broker().is_some());
        let connection = measurement.protocol.broker_connection().unwrap();
        assert_eq!(connection.reconnect, super::super::Reconnect::Never);
    }

    #[test]
    fn errors_name_the_key_and_the_expectation() {
        let mut draft = draft("mqtt");
        draft.set(&draft.key("qos").unwrap(), Value::Integer(7));
        let found = draft.read().unwrap_err();
        assert_eq!(found[0].key, "protocol.mqtt.qos");
        assert!(found[0].message.contains("from 0 to 1"), "{}", found[0].message);
        draft.set(&draft.key("schedule.rate").unwrap(), "fast".into());
        let found = draft.read().unwrap_err();
        assert!(found[0].key.ends_with("schedule.rate"), "{}", found[0].key);
    }
}
