//! Single cases: locks, versions, failures of the disk, snapshots.

use gridhaul_core::coverage_mark::covers;

use super::super::format::segment_name;
use super::super::{Folder, LogError, LogReader, Lost, Storage, open, verify};
use super::disk::ModelDisk;

#[test]
fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = Folder::open(folder.path()).unwrap();
    let error = Folder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("in use by another relay") && error.contains("log.folder"), "{error}");
    drop(first);
    Folder::open(folder.path()).unwrap();
}

#[test]
fn a_log_on_a_real_folder_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Folder::open(folder.path()).unwrap();
    let mut writer = open(storage.clone(), 5, b"snapshot").unwrap().writer;
    writer.append(b"one").unwrap();
    let end = writer.append(b"two").unwrap();
    assert_eq!(writer.commit().unwrap().position(), end);
    drop(writer);
    let opened = open(storage.clone(), 6, b"").unwrap();
    assert_eq!((opened.findings.entries, opened.findings.epoch), (2, Some(5)));
    assert_eq!(opened.snapshot, b"snapshot");
    let mut reader = LogReader::new(storage, 5, 0);
    assert_eq!(reader.next(end).unwrap().unwrap().payload, b"one");
    assert_eq!(reader.next(end).unwrap().unwrap().payload, b"two");
    assert_eq!(reader.next(end).unwrap(), None);
}

#[test]
fn segments_without_content_lose_nothing_else() {
    covers!(log_torn_creation_of_a_segment_is_no_damage);
    // The machine has stopped after the file was created.
    let disk = ModelDisk::default();
    disk.create(&segment_name(0)).unwrap();
    let opened = open(disk.clone(), 5, b"first").unwrap();
    assert_eq!((opened.findings.damage.len(), opened.writer.epoch()), (0, 5));
    assert_eq!(opened.snapshot, b"first");
    let mut writer = opened.writer;
    let end = writer.append(b"one").unwrap();
    writer.commit().unwrap();
    drop(writer);
    // The same with a segment after the first.
    disk.create(&segment_name(end)).unwrap();
    let opened = open(disk.clone(), 6, b"").unwrap();
    assert_eq!((opened.findings.damage.len(), opened.findings.entries), (0, 1));
    assert_eq!(opened.writer.epoch(), 5);
    // A segment in the middle that has lost its content is reported.
    let mut writer = opened.writer;
    writer.roll(b"").unwrap();
    writer.append(b"two").unwrap();
    writer.commit().unwrap();
    drop(writer);
    disk.corrupt(&segment_name(0), Vec::clear);
    let opened = open(disk, 7, b"").unwrap();
    assert_eq!((opened.findings.damage.len(), opened.findings.entries), (1, 1));
}

#[test]
fn a_committed_entry_survives_a_power_failure() {
    covers!(log_entries_are_durable_after_sync);
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
    writer.append(b"one").unwrap();
    assert_eq!(writer.committed().position(), 0, "appended, and not durable");
    let end = writer.commit().unwrap().position();
    writer.append(b"two").unwrap();
    assert_eq!(writer.committed().position(), end);
    drop(writer);
    disk.lose_power(|| false);
    let findings = open(disk, 1, b"").unwrap().findings;
    assert_eq!((findings.entries, findings.end), (1, end));
}

/// The kernel writes pages in any order: a later entry may reach the disk before an earlier one.
#[test]
fn an_intact_entry_after_a_torn_one_is_dropped_unless_the_torn_one_was_durable() {
    covers!(log_drops_intact_entries_after_a_torn_one);
    for is_durable in [false, true] {
        let disk = ModelDisk::default();
        let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
        writer.append(b"first").unwrap();
        let torn = 32 + writer.commit().unwrap().position() as usize;
        writer.append(b"second").unwrap();
        if is_durable {
            writer.commit().unwrap();
        }
        writer.append(b"third").unwrap();
        drop(writer);
        let name = disk.files()[0].0.clone();
        disk.corrupt(&name, |bytes| bytes[torn + 28] ^= 1);
        let findings = open(disk, 1, b"").unwrap().findings;
        let dropped = 28 + "second".len() + 28 + "third".len();
        let expected = if is_durable { (1, 2, 0) } else { (0, 1, dropped as u64) };
        let found = (findings.damage.len(), findings.entries, findings.torn_bytes);
        assert_eq!(found, expected, "damage, entries, torn bytes");
    }
}

#[test]
fn a_failed_sync_ends_the_log() {
    covers!(log_ends_with_a_failed_sync);
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
    writer.append(b"one").unwrap();
    disk.set_fail_sync(true);
    assert!(matches!(writer.commit(), Err(LogError::Storage { .. })));
    // The kernel reports the error once. A second call would succeed without the data.
    disk.set_fail_sync(false);
    assert!(matches!(writer.commit(), Err(LogError::SyncFailed)));
    assert!(matches!(writer.append(b"two"), Err(LogError::SyncFailed)));
    assert_eq!(writer.committed().position(), 0);
}

#[test]
fn a_full_disk_is_not_the_end() {
    covers!(log_continues_after_a_failed_append);
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
    disk.set_free(Some(40));
    let error = writer.append(&[7; 100]).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(writer.roll(b"").is_ok(), "nothing to roll");
    disk.set_free(None);
    writer.append(&[8; 10]).unwrap();
    let end = writer.commit().unwrap().position();
    let findings = verify(&disk).unwrap();
    assert_eq!((findings.entries, findings.end, findings.torn_bytes), (1, end, 0));
}

#[test]
fn an_entry_in_the_payload_of_a_damaged_entry_is_not_read() {
    covers!(log_searches_the_next_intact_entry);
    // A meter that has the format, but not the epoch, sends an entry as data.
    let disk = ModelDisk::default();
    let forged = {
        let other = ModelDisk::default();
        let mut writer = open(other.clone(), 99, b"").unwrap().writer;
        writer.append(&[0; 20]).unwrap();
        writer.append(b"forged").unwrap();
        let mut bytes = Vec::new();
        other.corrupt(&other.files()[0].0, |file| bytes = file[32 + 48..].to_vec());
        bytes
    };
    let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
    let payload = [&[0; 20][..], &forged, b"rest"].concat();
    writer.append(&payload).unwrap();
    writer.commit().unwrap();
    writer.append(b"honest").unwrap();
    let end = writer.commit().unwrap().position();
    let name = disk.files()[0].0.clone();
    disk.corrupt(&name, |bytes| bytes[40] ^= 1);
    let opened = open(disk.clone(), 1, b"").unwrap();
    assert_eq!(opened.findings.damage.len(), 1, "{:?}", opened.findings);
    let mut reader = LogReader::new(disk, 1, 0);
    let entry = reader.next(end).unwrap().unwrap();
    assert_eq!(entry.payload, b"honest");
    assert_eq!(entry.lost, Some(Lost { bytes: Some(28 + payload.len() as u64) }));
}

#[test]
fn a_long_snapshot_is_read_again() {
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 1, b"").unwrap().writer;
    writer.append(b"first").unwrap();
    // The state of a head with a million meters.
    let snapshot = vec![7; 100_000_000];
    writer.roll(&snapshot).unwrap();
    writer.append(b"second").unwrap();
    let end = writer.commit().unwrap().position();
    writer.trim(end).unwrap();
    let opened = open(disk, 2, b"").unwrap();
    assert_eq!((opened.findings.damage.len(), opened.findings.entries), (0, 1));
    assert!(opened.snapshot == snapshot);
}
