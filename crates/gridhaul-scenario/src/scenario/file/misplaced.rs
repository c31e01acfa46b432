//! Remedies for frequent mistakes: keys in another table than theirs, and tables in another form.

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};

use super::explain::unknown;
use crate::scenario::{Direction, Stack};

/// The remedy for a message of serde about this key, whose value or name is `written`; `None` if
/// the mistake is another one.
pub(super) fn remedy(message: &str, key: &str, written: &str) -> Option<String> {
    if let Some((name, _)) = unknown(message, "unknown field ") {
        return other_table(name, key);
    }
    if message.starts_with("unknown variant `udp`") && key.ends_with(".transport") {
        return Some("write \"datagram\", which is carried by UDP".to_owned());
    }
    if message.starts_with("invalid type: unit variant") {
        let (_, key) = key.rsplit_once('.')?;
        let name = written.trim_matches(['"', '\'']);
        let keys = if key == "aqm" { "{}" } else { "{ … }" };
        let is_name = key == "aqm" || key == "medium" || key == "proxy";
        return is_name.then(|| format!("write {key}.{name} = {keys}"));
    }
    // `[[flow]]` in the place of `[flow.readings]`.
    if message.starts_with("invalid type: sequence, expected a map") {
        let table = key.strip_suffix("[0]").unwrap_or(key);
        let is_table = ["node", "link", "flow", "stack", "medium", "attack"].contains(&table);
        return is_table
            .then(|| format!("give each a name: [{table}.NAME] in the place of [[{table}]]"));
    }
    None
}

/// The remedy for a key of a stack in a flow, or of a direction in a link.
fn other_table(name: &str, key: &str) -> Option<String> {
    let [table, _, _] = key.split('.').collect::<Vec<_>>()[..] else { return None };
    match table {
        "flow" if is_key_of::<Stack>(name) => Some(format!(
            "`{name}` is a key of [stack.NAME]; the key `stack` of the flow names this table"
        )),
        "link" if is_key_of::<Direction>(name) => Some(format!(
            "`{name}` is a key of a direction: write it in `both`, `forward` or `reverse`"
        )),
        _ => None,
    }
}

/// Whether a table has this key. The message for an unknown one has all of them.
fn is_key_of<'de, T: Deserialize<'de>>(name: &str) -> bool {
    let keys = [("", "")].into_iter();
    let table: MapDeserializer<'de, _, Error> = MapDeserializer::new(keys);
    let message = T::deserialize(table).err().map(|error| error.to_string());
    let message = message.unwrap_or_default();
    unknown(&message, "unknown field ").is_some_and(|(_, known)| known.contains(&name))
}
