//! Delivered records, from the file of the head.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

/// Identifies a meter: epoch of the collector, and number.
pub(crate) type Key = (String, u64);

/// Delivered data of a meter.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub length: u64,
    pub is_ended: bool,
}

/// Reads the file, and checks that each record is there once, in order, and that each stream has no
/// gap. `visit` receives each piece of data with its position.
pub(crate) fn read(
    path: &Path,
    mut visit: impl FnMut(&Key, u64, &str),
) -> BTreeMap<Key, Delivered> {
    let mut meters: BTreeMap<Key, Delivered> = BTreeMap::new();
    let mut last: BTreeMap<(String, u64), (u64, u64)> = BTreeMap::new();
    for line in BufReader::new(File::open(path).unwrap()).lines() {
        let line = line.unwrap();
        let line: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if line["event"] == "gap" {
            // Records that the log of a relay has lost; the number is that of the first of them.
            continue;
        }
        let number = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key}: {line}"));
        let epoch = line["epoch"].as_str().unwrap().to_owned();
        let event = line["event"].as_str().unwrap();
        let sequence = number("sequence");
        // Resets that follow from one restart share its number, and are in the order of the meters.
        let place = (sequence, number("meter"));
        let before = last.insert((epoch.clone(), number("shard")), place);
        let is_reset = event == "reset";
        let is_new = before.is_none_or(|before| {
            before.0 < sequence || before.0 == sequence && is_reset && before < place
        });
        assert!(is_new, "delivered twice or in disorder, after {before:?}: {line}");
        let key = (epoch, number("meter"));
        let known = meters.entry(key.clone()).or_default();
        match event {
            "open" | "reset" => {}
            "data" => {
                assert_eq!(number("offset"), known.length, "gap or disorder: {line}");
                let text = line["text"].as_str().unwrap();
                visit(&key, known.length, text);
                known.length += text.len() as u64;
            }
            "eof" => {
                assert_eq!(number("offset"), known.length, "{line}");
                known.is_ended = true;
            }
            _ => panic!("{line}"),
        }
    }
    meters
}
