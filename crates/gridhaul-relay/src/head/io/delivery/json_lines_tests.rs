//! The file of lines after any interruption.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::{JsonLines, Replaced, check_lines};
use crate::head::Delivery;
use crate::protocol::{Identity, Record, ResetCause};

fn delivery(sequence: u64, bytes: &[u8]) -> Delivery<'_> {
    Delivery {
        collector: "c",
        epoch: 5,
        number: (0, sequence),
        time: None,
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
fn a_file_of_another_kind_is_neither_cut_nor_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    let line = "{\"collector\":\"c\"}\n";
    for text in ["a text without a newline", "name = \"head\"\n", &format!("{line}a text")] {
        fs::write(&path, text).unwrap();
        let error = JsonLines::open(&path).unwrap_err().to_string();
        assert!(error.contains("other content"), "{error}");
        assert!(check_lines(&path).is_err(), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, format!("{line}{{\"coll")).unwrap();
    check_lines(&path).unwrap();
    for device in ["/dev/full", "/dev/zero"] {
        let error = JsonLines::open(Path::new(device)).unwrap_err().to_string();
        assert!(error.contains("regular file"), "{device}: {error}");
    }
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

/// Writes and confirms the lines of some records.
fn add(lines: &mut JsonLines, numbers: std::ops::Range<u64>) -> Option<Replaced> {
    numbers.for_each(|number| lines.push(&delivery(number, b"reading")));
    lines.write().unwrap();
    lines.sync().unwrap();
    lines.confirm().unwrap()
}

/// Sequence numbers of the lines of a file.
fn numbers(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn lines_of_other_programs_do_not_hide_the_last_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let mut lines = JsonLines::open(&path).unwrap();
    add(&mut lines, 7..9);
    let mut other = OpenOptions::new().append(true).open(&path).unwrap();
    other.write_all(b"# checked\n{\"event\":\"gap\",\"epoch\":null}\n").unwrap();
    let lines = JsonLines::open(&path).unwrap();
    assert!(lines.is_last(&delivery(8, b"")));
}

#[test]
fn a_renamed_file_is_followed_by_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("messages.jsonl"), folder.path().join("old"));
    let mut lines = JsonLines::open(&path).unwrap();
    assert_eq!(add(&mut lines, 0..2), None);
    fs::rename(&path, &old).unwrap();
    assert_eq!(add(&mut lines, 2..4), Some(Replaced::Renamed), "these are in the renamed file");
    assert_eq!(add(&mut lines, 4..6), None);
    assert_eq!((numbers(&old), numbers(&path)), (vec![0, 1, 2, 3], vec![4, 5]));
}

#[test]
fn lines_that_only_a_removed_file_has_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let mut lines = JsonLines::open(&path).unwrap();
    add(&mut lines, 0..2);
    fs::remove_file(&path).unwrap();
    assert!(matches!(add(&mut lines, 2..4), Some(Replaced::Removed(1..))));
    assert_eq!(add(&mut lines, 4..5), None);
    assert_eq!(numbers(&path), [2, 3, 4], "whoever has removed the file has 0 and 1");
}

#[test]
fn a_file_that_another_program_has_emptied_has_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let mut lines = JsonLines::open(&path).unwrap();
    add(&mut lines, 0..2);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    add(&mut lines, 2..4);
    assert_eq!(numbers(&path), [2, 3]);
}

#[test]
fn rotation_keeps_a_number_of_files_and_the_last_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.jsonl");
    let older = |number: u8| folder.path().join(format!("messages.jsonl.{number}"));
    let mut lines = JsonLines::open(&path).unwrap();
    for start in [0, 2, 4, 6] {
        assert!(!lines.rotate(1, 2).unwrap() || start > 0, "an empty file is not rotated");
        add(&mut lines, start..start + 2);
    }
    assert_eq!((numbers(&path), numbers(&older(1))), (vec![6, 7], vec![4, 5]));
    assert_eq!(numbers(&older(2)), [2, 3]);
    assert!(!older(3).exists());
    assert!(lines.rotate(1, 2).unwrap());
    // The process ends before the next line.
    let lines = JsonLines::open(&path).unwrap();
    assert!(lines.is_last(&delivery(7, b"")), "of {}", older(1).display());
}
