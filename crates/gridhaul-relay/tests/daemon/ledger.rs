//! What was delivered, from the file of the head.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Delivered data of a meter, identified by the collector's epoch and number.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub text: String,
    pub is_ended: bool,
}

/// Reads the file, and checks that each record is there once and each stream has no gap.
pub(crate) fn read(path: &Path) -> BTreeMap<(String, u64), Delivered> {
    let mut meters: BTreeMap<(String, u64), Delivered> = BTreeMap::new();
    let mut records = BTreeSet::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let number = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key}: {line}"));
        let epoch = line["epoch"].as_str().unwrap().to_owned();
        let event = line["event"].as_str().unwrap();
        let meter = number("meter");
        // Resets that follow from one restart share its number.
        let record = (epoch.clone(), number("shard"), number("sequence"), meter);
        assert!(records.insert(record), "delivered twice: {line}");
        let known = meters.entry((epoch, meter)).or_default();
        match event {
            "open" | "reset" => {}
            "data" => {
                assert_eq!(number("offset"), known.text.len() as u64, "gap or disorder: {line}");
                known.text += line["text"].as_str().unwrap();
            }
            "eof" => {
                assert_eq!(number("offset"), known.text.len() as u64, "{line}");
                known.is_ended = true;
            }
            _ => panic!("{line}"),
        }
    }
    meters
}
