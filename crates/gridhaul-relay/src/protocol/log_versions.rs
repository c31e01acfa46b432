//! Versions of the format: logs of all versions are read, others are refused, and what this version
//! writes has not changed.

use std::fs;
use std::path::PathBuf;

use super::{
    BatchBuilder, ClockState, Identity, PreviousRecords, Reception, Record, ResetCause, batches,
};
use crate::log::tests::disk::ModelDisk;
use crate::log::{
    LogError, LogReader, SEGMENT_HEADER, Storage, StorageFile, VERSION, VERSIONS, open, verify,
};

const EPOCH: u64 = 0x0123_4567_89ab_cdef;
const SNAPSHOT: &[u8] = b"snapshot";

/// A record of each kind that a version has.
fn records(version: u16) -> Vec<Record<'static>> {
    let identity = Identity {
        peer: "192.0.2.7:5000".parse().ok(),
        local: "[2001:db8::1]:4059".parse().ok(),
        listener: "readings",
        certificate: "meter-7",
    };
    let previous = match version {
        1 => PreviousRecords::Unstated,
        _ => PreviousRecords::EndAt(999_000),
    };
    let mut records = vec![
        Record::Restart { first_meter: 300, previous },
        Record::Open { meter: 300, identity },
        Record::Data { meter: 300, offset: 70_000, ends_message: true, bytes: b"reading 42\n" },
        Record::Eof { meter: 300, offset: 70_011 },
        Record::Reset { meter: 301, cause: ResetCause::Framing },
    ];
    if version > 1 {
        records.push(Record::Gap { records: None, bytes: Some(4_096) });
        let previous = PreviousRecords::Unknown;
        records.push(Record::Restart { first_meter: 302, previous });
    }
    records
}

/// When a record was received. Version 1 has no times. The clock may be set back.
fn time(version: u16, number: u64) -> Option<Reception> {
    let clock = ClockState::Synchronised { error_us: 2_500 };
    let utc_us = 1_700_000_000_000_000 + 40 * number - 3 * number * number;
    (version > 1).then_some(Reception { utc_us, clock })
}

/// The segment file of a log with these records.
fn written() -> Vec<u8> {
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), EPOCH, SNAPSHOT).unwrap().writer;
    let mut builder = BatchBuilder::new(EPOCH, 1, 1_000_000);
    let mut payload = Vec::new();
    for (number, record) in records(VERSION).iter().enumerate() {
        builder.push_at(record, time(VERSION, number as u64));
    }
    builder.finish(&mut payload);
    writer.append(&payload).unwrap();
    writer.commit().unwrap();
    content(&disk)
}

fn content(disk: &ModelDisk) -> Vec<u8> {
    let mut bytes = Vec::new();
    disk.corrupt(&disk.files()[0].0, |file| bytes.clone_from(file));
    bytes
}

fn disk_with(segment: &[u8]) -> ModelDisk {
    let disk = ModelDisk::default();
    let file = disk.create("0000000000000000.segment").unwrap();
    file.write_at(segment, 0).unwrap();
    file.sync().unwrap();
    disk
}

/// The log of a version in the repository.
fn path(version: u16) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/log_versions");
    PathBuf::from(format!("{folder}/version-{version}.segment"))
}

/// The same segment with another version and the checksum of its header.
fn with_version(segment: &[u8], version: u16) -> Vec<u8> {
    let mut segment = segment.to_vec();
    segment[6..8].copy_from_slice(&version.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&segment[..28]), SNAPSHOT);
    segment[28..SEGMENT_HEADER].copy_from_slice(&crc.to_le_bytes());
    segment
}

#[test]
fn logs_of_all_versions_are_read() {
    for version in VERSIONS {
        let disk = disk_with(&fs::read(path(version.number)).unwrap());
        let opened = open(disk.clone(), 1, b"").unwrap();
        assert_eq!(opened.snapshot, SNAPSHOT);
        assert_eq!((opened.findings.entries, &*opened.findings.damage), (1, &[][..]));
        let mut reader = LogReader::new(disk, opened.writer.epoch(), opened.writer.start());
        let entry = reader.next(opened.writer.end()).unwrap().unwrap();
        let batch = batches(entry.payload).next().unwrap().unwrap();
        assert_eq!((batch.epoch, batch.shard), (EPOCH, 1));
        let read: Result<Vec<_>, _> = batch.timed_records().collect();
        let expected: Vec<_> = records(version.number)
            .into_iter()
            .zip(0..)
            .map(|(record, number)| (1_000_000 + number, time(version.number, number), record))
            .collect();
        assert_eq!(read.unwrap(), expected, "version {}", version.number);
    }
}

#[test]
fn what_is_written_has_the_format_of_its_version() {
    let bytes = written();
    if std::env::var_os("GRIDHAUL_UPDATE").is_some() && !path(VERSION).exists() {
        fs::write(path(VERSION), &bytes).unwrap();
    }
    let expected = fs::read(path(VERSION)).unwrap();
    assert!(bytes == expected, "the format has changed: add a line to `VERSIONS`");
}

#[test]
fn an_intact_log_of_an_unknown_version_is_refused_and_not_changed() {
    for (version, relay) in [(VERSION + 1, "newer"), (0, "older")] {
        let segment = with_version(&written(), version);
        let disk = disk_with(&segment);
        for error in [open(disk.clone(), 1, b"").unwrap_err(), verify(&disk).unwrap_err()] {
            assert!(matches!(error, LogError::Version { found, .. } if found == version));
            let text = error.to_string();
            assert!(
                text.contains(&format!("start the {relay} relay that wrote the log")),
                "{text}"
            );
        }
        assert!(content(&disk) == segment && disk.files().len() == 1, "not changed");
    }
}

#[test]
fn a_log_of_an_older_version_continues_in_a_new_segment() {
    // A relay of the older version must not find entries that it cannot read in a segment of its
    // version.
    let disk = disk_with(&fs::read(path(1)).unwrap());
    let opened = open(disk.clone(), 1, b"").unwrap();
    assert!(opened.has_old_version);
    let mut writer = opened.writer;
    writer.roll(SNAPSHOT).unwrap();
    drop(writer);
    assert!(!open(disk, 1, b"").unwrap().has_old_version);
}

#[test]
fn a_flipped_bit_in_the_version_is_damage() {
    let mut segment = written();
    segment[6] ^= 1;
    let findings = verify(&disk_with(&segment)).unwrap();
    assert_eq!(findings.damage.len(), 1, "{findings:?}");
}
