//! Missing segments, removals that fail, and damaged headers.

use gridhaul_core::coverage_mark::covers;

use super::super::extent::Extent;
use super::super::format::segment_name;
use super::super::{
    DamageCause, Entry, Findings, LogError, LogReader, LogWriter, Lost, Storage, open, verify,
};
use super::disk::ModelDisk;

/// A log of four segments with three entries each, and its positions.
fn log_of_four_segments() -> (ModelDisk, Vec<u64>) {
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 7, b"state 0").unwrap().writer;
    let mut positions = Vec::new();
    for segment in 0..4 {
        if segment > 0 {
            writer.roll(format!("state {segment}").as_bytes()).unwrap();
        }
        positions.push(writer.end());
        append(&mut writer, segment);
    }
    positions.push(writer.end());
    (disk, positions)
}

fn append(writer: &mut LogWriter<ModelDisk>, segment: u8) {
    for number in 0..3 {
        writer.append(format!("entry {segment}.{number}").as_bytes()).unwrap();
    }
    writer.commit().unwrap();
}

/// All entries as texts, with the losses before them.
fn entries(disk: &ModelDisk, findings: &Findings) -> Vec<(String, Option<Option<u64>>)> {
    let mut reader = LogReader::new(disk.clone(), 7, findings.start);
    let mut found = Vec::new();
    while let Some(Entry { payload, lost, .. }) = reader.next(findings.end).unwrap() {
        let text = String::from_utf8_lossy(payload).into_owned();
        found.push((text, lost.map(|lost| lost.bytes)));
    }
    found
}

/// The entries of some segments, without losses.
fn expected(segments: &[u8]) -> Vec<(String, Option<Option<u64>>)> {
    let numbers = segments.iter().flat_map(|segment| (0..3).map(move |index| (segment, index)));
    numbers.map(|(segment, number)| (format!("entry {segment}.{number}"), None)).collect()
}

#[test]
fn a_missing_segment_is_reported_once_and_stated_with_the_next_entry() {
    covers!(log_reported_gap_is_stated_with_the_next_entry);
    for missing in 0..4_u8 {
        let (disk, positions) = log_of_four_segments();
        let at = usize::from(missing);
        let (from, to) = (positions[at], positions[at + 1]);
        disk.remove(&segment_name(from)).unwrap();
        let verified = verify(&disk).unwrap();
        let opened = open(disk.clone(), 8, b"").unwrap();
        assert_eq!(verified, opened.findings);
        let [damage] = &verified.damage[..] else { panic!("{verified:?}") };
        // The log cannot know how long its last segment was.
        let length = (missing < 3).then_some(to - from);
        assert_eq!((damage.cause, damage.position), (DamageCause::Missing, from));
        assert_eq!((damage.length, &*damage.segment), (length, &*segment_name(from)));
        assert_eq!(verified.lost(), Some(Lost { bytes: length }));
        let mut writer = opened.writer;
        append(&mut writer, 9);
        drop(writer);

        let again = open(disk.clone(), 8, b"").unwrap().findings;
        assert_eq!(again.damage, [], "segment {missing} was reported before");
        assert_eq!(again.repaired, u64::from(missing > 0));
        let kept: Vec<u8> = (0..4).filter(|segment| *segment != missing).chain([9]).collect();
        let mut rest = expected(&kept);
        if missing > 0 {
            rest[3 * at].1 = Some(length);
        }
        assert_eq!(entries(&disk, &again), rest);
    }
}

#[test]
fn a_log_whose_segments_are_all_missing_is_incomplete() {
    covers!(log_missing_end_has_an_unknown_length);
    let (disk, positions) = log_of_four_segments();
    for position in &positions[..4] {
        disk.remove(&segment_name(*position)).unwrap();
    }
    let opened = open(disk, 8, b"new").unwrap();
    assert_eq!(opened.findings.lost(), Some(Lost { bytes: None }));
    assert_eq!((opened.writer.epoch(), &*opened.snapshot), (8, &b"new"[..]));
}

#[test]
fn the_missing_end_of_a_segment_is_reported_once() {
    covers!(log_segment_ends_where_the_next_begins);
    let (disk, _) = log_of_four_segments();
    disk.corrupt(&segment_name(0), |bytes| bytes.truncate(bytes.len() - 10));
    let findings = open(disk.clone(), 8, b"").unwrap().findings;
    let [damage] = &findings.damage[..] else { panic!("{findings:?}") };
    let length = 28 + "entry 0.2".len() as u64;
    assert_eq!((damage.cause, damage.length), (DamageCause::Missing, Some(length)));
    let again = open(disk.clone(), 8, b"").unwrap().findings;
    assert_eq!((&again.damage[..], again.repaired), (&[][..], 1));
    let mut rest = expected(&[0, 1, 2, 3]);
    rest.remove(2);
    rest[2].1 = Some(Some(length));
    assert_eq!(entries(&disk, &again), rest);
}

/// Segments were copied into the folder of another log.
#[test]
fn the_list_of_segments_of_another_log_is_ignored() {
    covers!(log_ignores_the_list_of_another_log);
    let (disk, positions) = log_of_four_segments();
    let gaps = Vec::new();
    let other = Extent { epoch: 99, first: positions[2], last: positions[3], gaps };
    other.write(&disk).unwrap();
    let findings = open(disk.clone(), 8, b"").unwrap().findings;
    assert_eq!((findings.start, &findings.damage[..]), (0, &[][..]));
    assert_eq!(entries(&disk, &findings), expected(&[0, 1, 2, 3]));
}

#[test]
fn a_reader_of_a_log_in_use_stops_before_a_missing_segment() {
    covers!(log_reader_stops_before_an_unreported_gap);
    let (disk, positions) = log_of_four_segments();
    let mut reader = LogReader::new(disk.clone(), 7, 0);
    reader.next(positions[4]).unwrap().unwrap();
    disk.remove(&segment_name(positions[1])).unwrap();
    let failure = loop {
        match reader.next(positions[4]) {
            Ok(Some(entry)) => assert!(entry.end <= positions[1]),
            Ok(None) => panic!("the log is longer"),
            Err(error) => break error,
        }
    };
    let text = failure.to_string();
    assert!(failure.is_damage(), "a start repairs the log");
    let bytes = positions[2] - positions[1];
    assert!(text.contains(&format!("{bytes} bytes at position {}", positions[1])), "{text}");
}

#[test]
fn nothing_is_committed_to_a_file_that_was_removed() {
    covers!(log_commits_to_no_removed_file);
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 7, b"").unwrap().writer;
    append(&mut writer, 0);
    let committed = writer.committed().position();
    writer.check().unwrap();
    disk.remove(&segment_name(0)).unwrap();
    assert!(matches!(writer.check(), Err(LogError::Removed { .. })));
    let (disk, _) = log_of_four_segments();
    let mut writer = open(disk.clone(), 7, b"").unwrap().writer;
    let name = disk.files().iter().rfind(|file| file.0.ends_with(".segment")).unwrap().0.clone();
    // Another file takes the name.
    disk.remove(&name).unwrap();
    disk.create(&name).unwrap();
    let before = writer.committed().position();
    writer.append(b"lost").unwrap();
    assert!(matches!(writer.commit(), Err(LogError::Removed { .. })));
    assert_eq!(writer.committed().position(), before);
    assert!(matches!(writer.append(b"more"), Err(LogError::SyncFailed)));
    assert!(committed > 0);
}

fn segment_count(disk: &ModelDisk) -> usize {
    disk.files().iter().filter(|(name, _)| name.ends_with(".segment")).count()
}

#[test]
fn removal_continues_after_a_failure_and_is_repeated() {
    covers!(log_removal_is_repeated);
    let (disk, positions) = log_of_four_segments();
    let mut writer = open(disk.clone(), 7, b"").unwrap().writer;
    disk.set_fail_remove(true);
    assert!(writer.trim(positions[2]).is_err());
    assert_eq!((writer.unremoved(), writer.start(), segment_count(&disk)), (2, positions[2], 4));
    // The process ends. What was not removed is no part of the log, and no gap.
    drop(writer);
    let opened = open(disk.clone(), 7, b"").unwrap();
    assert_eq!((opened.findings.start, &opened.findings.damage[..]), (positions[2], &[][..]));
    let mut writer = opened.writer;
    assert_eq!(writer.unremoved(), 2);
    disk.set_fail_remove(false);
    // Another program removes one of them.
    disk.remove(&segment_name(0)).unwrap();
    assert_eq!(writer.trim(positions[3]).unwrap(), positions[3]);
    assert_eq!((writer.unremoved(), segment_count(&disk)), (0, 1));
    assert_eq!(verify(&disk).unwrap().damage, []);
}

#[test]
fn segments_are_removed_from_a_full_disk() {
    covers!(log_removal_needs_no_space);
    let (disk, positions) = log_of_four_segments();
    let mut writer = open(disk.clone(), 7, b"").unwrap().writer;
    // The list of segments keeps its length.
    writer.trim(positions[1]).unwrap();
    disk.set_free(Some(0));
    assert_eq!(writer.trim(positions[3]).unwrap(), positions[3]);
    assert_eq!(segment_count(&disk), 1);
    disk.set_free(None);
    drop(writer);
    let findings = open(disk, 7, b"").unwrap().findings;
    assert_eq!((findings.start, &findings.damage[..]), (positions[3], &[][..]));
}

#[test]
fn a_damaged_header_costs_no_entry() {
    covers!(log_damaged_header_follows_from_an_entry);
    for damaged in 0..4_u8 {
        for place in [0, 7, 12, 20, 26, 30, 34] {
            let (disk, positions) = log_of_four_segments();
            let name = segment_name(positions[usize::from(damaged)]);
            disk.corrupt(&name, |bytes| bytes[place] ^= 0x10);
            let opened = open(disk.clone(), 8, b"").unwrap();
            let [damage] = &opened.findings.damage[..] else { panic!("{:?}", opened.findings) };
            assert_eq!(damage.cause, DamageCause::Header { recovered: 3, snapshot: 7 });
            assert_eq!((damage.length, opened.findings.lost()), (Some(0), None));
            assert_eq!(entries(&disk, &opened.findings), expected(&[0, 1, 2, 3]), "byte {place}");
            let state = if damaged == 0 { &b""[..] } else { b"state 0" };
            assert_eq!(opened.snapshot, state);
            assert!(disk.files().iter().any(|(name, _)| name.starts_with("damaged-header-")));
            drop(opened);
            assert_eq!(verify(&disk).unwrap().damage, [], "the header was written again");
        }
    }
}

#[test]
fn a_log_never_begins_with_a_segment_whose_snapshot_is_lost() {
    covers!(log_keeps_what_a_lost_snapshot_follows_from);
    let (disk, positions) = log_of_four_segments();
    disk.corrupt(&segment_name(positions[1]), |bytes| bytes[33] ^= 1);
    let mut writer = open(disk.clone(), 8, b"").unwrap().writer;
    // The state at the second segment follows from the first one only.
    assert_eq!(writer.trim(positions[1]).unwrap(), 0);
    drop(writer);
    let mut writer = open(disk.clone(), 8, b"").unwrap().writer;
    assert_eq!(writer.trim(positions[1]).unwrap(), 0, "also after a restart");
    assert_eq!(writer.trim(positions[2]).unwrap(), positions[2]);
    assert_eq!(segment_count(&disk), 2);
    assert_eq!(open(disk, 8, b"").unwrap().snapshot, b"state 2");
}

#[test]
fn a_damaged_header_and_a_damaged_entry_cost_one_entry() {
    covers!(log_filler_counts_as_lost_bytes);
    let (disk, positions) = log_of_four_segments();
    let name = segment_name(positions[2]);
    // Magic of the header, and payload of the first entry.
    disk.corrupt(&name, |bytes| {
        bytes[0] ^= 1;
        bytes[32 + 7 + 28] ^= 1;
    });
    let findings = open(disk.clone(), 8, b"").unwrap().findings;
    let length = 28 + "entry 2.0".len() as u64;
    assert_eq!(findings.lost(), Some(Lost { bytes: Some(length) }));
    let mut rest = expected(&[0, 1, 2, 3]);
    rest.remove(6);
    rest[6].1 = Some(Some(length));
    assert_eq!(entries(&disk, &findings), rest);
}

#[test]
fn the_only_segment_is_recovered_with_the_epoch_in_its_damaged_header() {
    let disk = ModelDisk::default();
    let mut writer = open(disk.clone(), 7, b"state").unwrap().writer;
    append(&mut writer, 0);
    drop(writer);
    // As in a log of version 1, without the list of segments.
    disk.remove("segments").unwrap();
    disk.corrupt(&segment_name(0), |bytes| bytes[33] ^= 1);
    let opened = open(disk.clone(), 8, b"").unwrap();
    assert_eq!((opened.findings.epoch, opened.findings.entries), (Some(7), 3));
}
