//! Records as JSON, for files, brokers and lists.

use serde_json::{Value, json};

use super::delivery::Delivery;
use crate::protocol::{Reception, Record};

/// A record as JSON; `None` if it concerns only the relay.
pub(crate) fn json_of(delivery: &Delivery<'_>) -> Option<Value> {
    if let Record::Gap { records, bytes } = delivery.record {
        return Some(gap_of(delivery, records, bytes));
    }
    let (shard, sequence) = delivery.number;
    let mut line = json!({
        "collector": delivery.collector,
        "epoch": format!("{:016x}", delivery.epoch),
        "shard": shard,
        "sequence": sequence,
    });
    match delivery.record {
        Record::Open { meter, identity } => {
            set(&mut line, "event", "open");
            set(&mut line, "meter", meter);
            set(&mut line, "peer", identity.peer.map(|address| address.to_string()));
            set(&mut line, "listener", identity.listener);
            set(&mut line, "certificate", identity.certificate);
        }
        Record::Data { meter, offset, ends_message, bytes } => {
            set(&mut line, "event", "data");
            set(&mut line, "meter", meter);
            set(&mut line, "offset", offset);
            set(&mut line, "ends_message", ends_message);
            match std::str::from_utf8(bytes) {
                Ok(text) => set(&mut line, "text", text),
                Err(_) => set(&mut line, "hex", hexadecimal(bytes)),
            }
        }
        Record::Eof { meter, offset } => {
            set(&mut line, "event", "eof");
            set(&mut line, "meter", meter);
            set(&mut line, "offset", offset);
        }
        Record::Reset { meter, cause } => {
            set(&mut line, "event", "reset");
            set(&mut line, "meter", meter);
            set(&mut line, "cause", cause.name());
        }
        Record::Restart { .. } | Record::Gap { .. } => return None,
    }
    set_time(&mut line, delivery.time);
    Some(line)
}

/// States when the collector has received the record, and the quality of its clock.
fn set_time(line: &mut Value, time: Option<Reception>) {
    set(line, "received_at", time.map(|time| time.text()));
    set(line, "clock_synchronised", time.and_then(|time| time.clock.is_synchronised()));
    set(line, "clock_error_s", time.and_then(|time| time.clock.error_s()));
}

/// Lost records as JSON. Collector, epoch, shard and sequence number of the first lost record are
/// null if the log of the head has lost records of unknown collectors.
fn gap_of(delivery: &Delivery<'_>, records: Option<u64>, bytes: Option<u64>) -> Value {
    let (shard, sequence) = delivery.number;
    let is_known = delivery.epoch != 0;
    let mut line = json!({
        "event": "gap",
        "collector": is_known.then_some(delivery.collector),
        "epoch": is_known.then(|| format!("{:016x}", delivery.epoch)),
        "shard": is_known.then_some(shard),
        "sequence": is_known.then_some(sequence),
        "lost_records_count": records,
        "lost_byte": bytes,
    });
    set_time(&mut line, delivery.time);
    line
}

fn set(line: &mut Value, key: &str, value: impl Into<Value>) {
    line[key] = value.into();
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
