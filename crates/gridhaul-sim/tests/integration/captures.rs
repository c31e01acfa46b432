//! Storage of captures and series during a run.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, RecordingFile};
use gridhaul_scenario::backend::{Backend, NoProgress, Progress, RunError};
use gridhaul_sim::Sim;

use crate::support::two_nodes;

/// Stores recordings in files, and counts them.
struct Files<F> {
    open: F,
    count: AtomicUsize,
}

impl<F: Fn() -> io::Result<File> + Sync> Progress for Files<F> {
    fn advance(&self, _done: u64, _total: u64) {}

    fn recording_file(&self) -> io::Result<Option<Arc<RecordingFile>>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.open)().map(|file| Some(Arc::new(RecordingFile::new(file))))
    }
}

fn run(progress: &dyn Progress) -> Result<Answer, RunError> {
    let keys =
        "duration = '5 s'\nreplications = 2\nrecord = { pcap = ['line'], interval = '1 ms' }";
    let flow = "[flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'";
    let text = two_nodes(keys, "rate = '1 Mbit/s', delay = '10 ms'", flow);
    Sim { threads: 1 }.run(&Scenario::from_toml(&text, "test.toml").unwrap(), progress)
}

#[test]
fn recordings_in_files_have_the_bytes_of_recordings_in_memory() {
    let files = Files { open: tempfile::tempfile, count: AtomicUsize::new(0) };
    let (in_files, in_memory) = (run(&files).unwrap(), run(&NoProgress).unwrap());
    assert_eq!(in_files, in_memory);
    // 1 Mbit/s for 5 s is more than 400 packets, of which each has a block of at least 72 B.
    assert!(in_memory.captures[0].pcapng.len() > 400 * 72);
    // 5,000 samples of a window have seven numbers of 8 B each.
    assert!(in_memory.series.iter().any(|series| series.row_count() >= 5_000));
    // Both directions and the series ask for it: only the first replication is recorded.
    assert_eq!(files.count.into_inner(), 3);
}

#[test]
fn a_full_disk_ends_the_run_with_an_error() {
    let open = || File::options().write(true).open("/dev/full");
    let error = run(&Files { open, count: AtomicUsize::new(0) }).unwrap_err();
    let RunError::Storage(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
