//! Opening the log of a configuration.

use std::path::Path;

use gridhaul_scenario::relay::RelayLog;

use super::listener::{START_ATTEMPTS, pause};
use super::{Level, random, report};
use crate::log::{DamageCause, Findings, Folder, LogError, Opened, open};

/// Opens the log and reports what was found.
pub(crate) fn open_log(log: &RelayLog, folder: &Path) -> Result<Opened<Folder>, LogError> {
    let storage = lock(&folder.join(&log.folder))?;
    let opened = open(storage, random(), &[])?;
    report_findings(&opened.findings);
    Ok(opened)
}

/// Opens and locks the folder. A relay that was killed while it started a program, as for an
/// upgrade, leaves the lock with that process for a moment.
fn lock(path: &Path) -> Result<Folder, LogError> {
    for _ in 0..START_ATTEMPTS {
        match Folder::open(path) {
            Err(LogError::Locked { .. }) => pause(),
            done => return done,
        }
    }
    Folder::open(path)
}

fn report_findings(findings: &Findings) {
    if findings.torn_bytes > 0 {
        report(
            Level::Notice,
            &format!(
                "record log: {} bytes of an incomplete append were dropped; a disk that keeps \
                 what it has reported as written has lost nothing that was confirmed",
                findings.torn_bytes
            ),
        );
    }
    for damage in &findings.damage {
        let copy = match damage.cause {
            DamageCause::Missing => String::new(),
            DamageCause::Entries => format!("; a copy is in damaged-{:016x}", damage.position),
            DamageCause::Header { .. } if damage.length.is_none() => {
                format!("; the file is renamed to damaged-{:016x}", damage.position)
            }
            DamageCause::Header { .. } => {
                format!("; a copy is in damaged-header-{:016x}", damage.position)
            }
        };
        report(Level::Error, &format!("record log: {damage}{copy}"));
    }
}

/// Bytes of the log that are lost, for the status: those that are known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogLosses {
    /// Number of damaged or missing regions that the last start has found.
    pub gaps: u64,
    pub bytes: u64,
}

impl LogLosses {
    pub(crate) fn of(findings: &Findings) -> Self {
        let losses = findings.damage.iter().filter(|damage| damage.length != Some(0));
        losses.fold(Self::default(), |sum, damage| Self {
            gaps: sum.gaps + 1,
            bytes: sum.bytes + damage.length.unwrap_or(0),
        })
    }
}
