//! Opening the log of a configuration.

use std::path::Path;

use gridhaul_scenario::relay::RelayLog;
use rustls::crypto::ring;

use super::{Level, report};
use crate::log::{Findings, Folder, LogError, Opened, open};

/// Opens the log and reports what was found.
pub(super) fn open_log(log: &RelayLog, folder: &Path) -> Result<Opened<Folder>, LogError> {
    let storage = Folder::open(&folder.join(&log.folder))?;
    let opened = open(storage, random(), &[])?;
    report_findings(&opened.findings);
    Ok(opened)
}

fn report_findings(findings: &Findings) {
    if findings.torn_bytes > 0 {
        report(
            Level::Notice,
            &format!(
                "record log: {} bytes of an incomplete append were dropped; they were not acknowledged",
                findings.torn_bytes
            ),
        );
    }
    for damage in &findings.damage {
        let length = damage.length.map_or("all".to_owned(), |length| length.to_string());
        report(
            Level::Error,
            &format!(
                "record log: {length} bytes at position {} of {} are damaged; a copy is in damaged-{:016x}",
                damage.position, damage.segment, damage.position
            ),
        );
    }
}

/// A random number that identifies a log or a run. It needs no file descriptor: getrandom(2) works while none is left.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    let filled = ring::default_provider().secure_random.fill(&mut bytes);
    filled.expect("the kernel has random numbers (getrandom(2))");
    u64::from_ne_bytes(bytes)
}
