//! The records of a log as JSON, for `gridhaul-relay log list`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::head::{Delivery, Item, items, json_of};
use crate::log::{LogError, LogReader, Storage, verify};
use crate::protocol::{Batch, DecodeError, Identity, Record, batches};

/// Whose log is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A collector with this name.
    Collector(&'a str),
    /// A head.
    Head,
}

/// Why a list is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The log cannot be read, or an entry is damaged.
    #[error("{0}\n  help: `gridhaul-relay log verify` reports all damage")]
    Log(#[from] LogError),
    /// An intact entry has other content than expected.
    #[error("entry at position {position}: {source}")]
    Content {
        /// Position of the entry.
        position: u64,
        /// Fault, in words.
        source: DecodeError,
    },
}

/// Passes each record of a log that no relay uses to `line`: the keys of the head's file, and the
/// position of the record's entry. The log is not changed.
///
/// # Errors
/// A damaged entry ends the list.
pub fn list<S: Storage + Clone>(
    storage: &S,
    owner: Owner<'_>,
    mut line: impl FnMut(&Value),
) -> Result<(), ListingError> {
    let findings = verify(storage)?;
    let Some(epoch) = findings.epoch else { return Ok(()) };
    let mut reader = LogReader::new(storage.clone(), epoch, findings.start);
    // A head's log names the collector of an epoch once.
    let mut names = BTreeMap::new();
    while let Some(entry) = reader.next(findings.end)? {
        let position = entry.position;
        let content = |source| ListingError::Content { position, source };
        match owner {
            Owner::Collector(name) => {
                for batch in batches(entry.payload) {
                    records(name, position, &batch.map_err(content)?, &mut line)
                        .map_err(content)?;
                }
            }
            Owner::Head => {
                for item in items(entry.payload) {
                    match item.map_err(content)? {
                        Item::Source { epoch, collector } => {
                            names.insert(epoch, collector.to_owned());
                        }
                        Item::Batch(batch) => {
                            let name = names.get(&batch.epoch).map_or("", String::as_str);
                            records(name, position, &batch, &mut line).map_err(content)?;
                        }
                        Item::End { .. } | Item::Jump { .. } => {}
                    }
                }
            }
        }
    }
    Ok(())
}

fn records(
    collector: &str,
    position: u64,
    batch: &Batch<'_>,
    line: &mut impl FnMut(&Value),
) -> Result<(), DecodeError> {
    for found in batch.timed_records() {
        let (sequence, time, record) = found?;
        let (epoch, number) = (batch.epoch, (batch.shard, sequence));
        let identity = Identity::default();
        let delivery = Delivery { collector, epoch, number, time, record, identity };
        let mut value = json_of(&delivery).unwrap_or_else(|| {
            let shard = batch.shard;
            json!({
                "collector": collector,
                "epoch": format!("{epoch:016x}"),
                "shard": shard,
                "sequence": sequence,
            })
        });
        if let Record::Restart { first_meter, .. } = record {
            value["event"] = "restart".into();
            value["first_meter"] = first_meter.into();
        }
        value["position"] = position.into();
        line(&value);
    }
    Ok(())
}
