//! The file of lines after any interruption.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::super::{Delivery, JsonLines};
use crate::protocol::{Identity, Record, ResetCause};

fn delivery(sequence: u64, bytes: &[u8]) -> Delivery<'_> {
    Delivery {
        collector: "c",
        epoch: 5,
        number: (0, sequence),
        record: Record::Data { meter: 1, offset: sequence, ends_message: true, bytes },
        identity: Identity::default(),
    }
}

#[test]
fn a_torn_line_is_removed_and_the_last_record_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let mut lines = JsonLines::open(&path).unwrap();
    lines.push(&delivery(7, b"one"));
    lines.push(&delivery(8, &[0xff, 0]));
    lines.write().unwrap();
    lines.sync().unwrap();
    drop(lines);
    let whole = fs::read_to_string(&path).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"collector\":\"c").unwrap();
    let lines = JsonLines::open(&path).unwrap();
    assert!(lines.is_last(&delivery(8, b"")));
    assert!(!lines.is_last(&delivery(7, b"")));
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    let last: serde_json::Value = serde_json::from_str(whole.lines().last().unwrap()).unwrap();
    assert_eq!((last["hex"].as_str(), last["sequence"].as_u64()), (Some("ff00"), Some(8)));
}

#[test]
fn lines_of_one_restart_differ_by_their_meters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let reset = |meter| Delivery {
        record: Record::Reset { meter, cause: ResetCause::Restart },
        ..delivery(9, b"")
    };
    let mut lines = JsonLines::open(&path).unwrap();
    lines.push(&reset(1));
    lines.write().unwrap();
    let lines = JsonLines::open(&path).unwrap();
    assert!(lines.is_last(&reset(1)));
    assert!(!lines.is_last(&reset(2)), "the line of the second meter is still to be written");
}
