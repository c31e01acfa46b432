//! Random operations, power failures and damage: committed entries are kept, in order, and nothing
//! else is read.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::{Findings, LogReader, LogWriter, Storage, open};
use super::disk::ModelDisk;

const EPOCH: u64 = 0x1234_5678_9abc_def0;

#[derive(Debug, Clone)]
enum Action {
    Append(usize),
    Commit,
    Roll,
    Trim(u8),
    /// The process ends; the operating system continues.
    Restart,
    /// The power fails; one bit for each unsynchronised sector or name.
    PowerFailure(u64),
    /// The disk has space for so many more bytes.
    Full(usize),
    FailSync,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (0_usize..3_000).prop_map(Action::Append),
        6 => Just(Action::Commit),
        2 => Just(Action::Roll),
        1 => any::<u8>().prop_map(Action::Trim),
        2 => Just(Action::Restart),
        4 => any::<u64>().prop_map(Action::PowerFailure),
        1 => (0_usize..2_000).prop_map(Action::Full),
        1 => Just(Action::FailSync),
    ]
}

/// The log, and what it must contain.
struct Bench {
    disk: ModelDisk,
    writer: LogWriter<ModelDisk>,
    /// Number and length of each appended entry that is not trimmed, and its end.
    appended: Vec<(u32, usize, u64)>,
    next: u32,
    committed: u64,
    start: u64,
}

fn payload(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(4 + length, number as u8);
    bytes
}

/// All entries between two positions.
fn entries<S: Storage>(storage: S, epoch: u64, from: u64, to: u64) -> Vec<(u32, usize, u64)> {
    let mut reader = LogReader::new(storage, epoch, from);
    let mut found = Vec::new();
    while let Some(entry) = reader.next(to).unwrap() {
        let number = u32::from_le_bytes(entry.payload[..4].try_into().unwrap());
        assert_eq!(entry.payload, payload(number, entry.payload.len() - 4));
        found.push((number, entry.payload.len() - 4, entry.end));
    }
    found
}

impl Bench {
    fn new() -> Self {
        let disk = ModelDisk::default();
        let writer = open(disk.clone(), EPOCH, b"first").unwrap().writer;
        Self { disk, writer, appended: Vec::new(), next: 0, committed: 0, start: 0 }
    }

    fn reopen(&mut self) -> Findings {
        let opened = open(self.disk.clone(), 7, b"other").unwrap();
        self.writer = opened.writer;
        opened.findings
    }

    fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Append(length) => {
                let number = self.next;
                if let Ok(end) = self.writer.append(&payload(number, *length)) {
                    self.appended.push((number, *length, end));
                    self.next += 1;
                }
            }
            Action::Commit => {
                if let Ok(committed) = self.writer.commit() {
                    self.committed = committed.position();
                }
            }
            Action::Roll => {
                // A roll that fails because the disk is full may have committed.
                let _ = self.writer.roll(b"snapshot");
                self.committed = self.committed.max(self.writer.committed().position());
            }
            Action::Trim(share) => {
                let position = self.start + (self.committed - self.start) * u64::from(*share) / 255;
                // Segments are removed even if the names cannot be made durable.
                let _ = self.writer.trim(position);
                let start = self.writer.start();
                prop_assert!(start <= position.max(self.start));
                self.start = start;
                self.appended.retain(|(_, _, end)| *end > start);
            }
            Action::Restart => self.after_restart(true)?,
            Action::PowerFailure(bits) => {
                let mut bits = *bits;
                self.disk.lose_power(|| {
                    bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    bits >> 63 == 1
                });
                self.after_restart(false)?;
            }
            Action::Full(bytes) => self.disk.set_free(Some(*bytes)),
            Action::FailSync => self.disk.set_fail_sync(true),
        }
        Ok(())
    }

    /// All committed entries are there; of the others, the first ones may be.
    fn after_restart(&mut self, is_process_only: bool) -> Result<(), TestCaseError> {
        self.disk.set_free(None);
        self.disk.set_fail_sync(false);
        let findings = self.reopen();
        prop_assert_eq!(&findings.damage, &Vec::new());
        prop_assert_eq!(findings.epoch, Some(EPOCH));
        // A removed segment may return; its entries were confirmed.
        prop_assert!(findings.start <= self.start);
        let found = entries(self.disk.clone(), EPOCH, self.start, findings.end);
        prop_assert!(found.len() <= self.appended.len());
        prop_assert_eq!(&found[..], &self.appended[..found.len()]);
        prop_assert!(findings.end >= self.committed);
        prop_assert!(!is_process_only || found.len() == self.appended.len());
        self.appended = found;
        self.committed = findings.end;
        self.start = findings.start.max(self.start);
        Ok(())
    }
}

proptest! {
    #[test]
    fn committed_entries_survive(actions in proptest::collection::vec(action(), 1..60)) {
        let mut bench = Bench::new();
        for action in &actions {
            bench.act(action)?;
            let found = entries(bench.disk.clone(), EPOCH, bench.start, bench.writer.end());
            prop_assert_eq!(&found, &bench.appended);
        }
        bench.after_restart(true)?;
    }

    #[test]
    fn damage_is_reported_and_set_aside(
        lengths in proptest::collection::vec(0_usize..2_000, 2..40),
        rolls in proptest::collection::vec(any::<bool>(), 40),
        place in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        cut in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        for (length, roll) in lengths.iter().zip(&rolls) {
            bench.act(&Action::Append(*length))?;
            bench.act(if *roll { &Action::Roll } else { &Action::Commit })?;
        }
        let total: usize = bench.disk.files().iter().map(|(_, size)| size).sum();
        let mut place = place.index(total);
        let files = bench.disk.files();
        let (name, size) = files.iter().find(|(_, size)| {
            let here = place < *size;
            if !here { place -= size; }
            here
        }).unwrap();
        let before = entries(bench.disk.clone(), EPOCH, 0, bench.committed);
        bench.disk.corrupt(name, |bytes| match cut {
            true => bytes.truncate(place),
            false => bytes[place] ^= 1 << bit,
        });
        // Reading ends with an error, or skips removed data; it never returns wrong data and always
        // terminates.
        let mut reader = LogReader::new(bench.disk.clone(), EPOCH, 0);
        while let Ok(Some(_)) = reader.next(bench.committed) {}
        let findings = bench.reopen();
        let found = if findings.epoch == Some(EPOCH) {
            entries(bench.disk.clone(), EPOCH, findings.start, findings.end)
        } else {
            Vec::new()
        };
        // Exactly the damaged entries are missing: one, or all of a segment whose header or tail is
        // damaged.
        prop_assert!(found.iter().all(|entry| before.contains(entry)));
        if found.len() < before.len() {
            prop_assert!(!findings.damage.is_empty() || findings.torn_bytes > 0 || *size > 0);
            let is_last_entry = found[..] == before[..found.len()];
            prop_assert!(!findings.damage.is_empty() || is_last_entry);
        }
        if !cut && place > 38 && files.len() == 2 && name.ends_with(".segment") {
            prop_assert_eq!(found.len() + 1, before.len());
        }
        // The first header has 32 B and the snapshot `first`, the others have longer snapshots.
        if !cut && place < 37 && name.ends_with(".segment") {
            // Entries have their own checksums and positions: a damaged header costs none of them.
            prop_assert_eq!(&found, &before);
        }
        // The repaired log is intact, and can be extended.
        bench.next = 1_000_000;
        bench.appended = found;
        bench.act(&Action::Append(10))?;
        bench.act(&Action::Commit)?;
        let again = bench.reopen();
        prop_assert_eq!(again.damage.len(), 0, "{:?}", again);
        let epoch = again.epoch.unwrap();
        prop_assert_eq!(entries(bench.disk.clone(), epoch, again.start, again.end), bench.appended);
    }
}
