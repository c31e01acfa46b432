//! Findings of a verification of a log.

use super::Lost;

/// A region of the log that was durable and cannot be read, or a damaged header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// File name of the segment.
    pub segment: String,
    /// Position of the first byte that is lost.
    pub position: u64,
    /// Number of bytes of entries that are lost; `None` if it is unknown.
    pub length: Option<u64>,
    /// Fault, in words.
    pub cause: DamageCause,
}

/// Fault of a region of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageCause {
    /// Entries are damaged.
    Entries,
    /// The header of a segment is damaged.
    Header {
        /// Number of entries that were found by their own checksums.
        recovered: u64,
        /// Bytes of the snapshot that are lost.
        snapshot: u64,
    },
    /// One or several segment files are missing, or the end of one.
    Missing,
}

/// Findings of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Random number that identifies the log; `None` if there is no intact segment.
    pub epoch: Option<u64>,
    /// Position of the first entry.
    pub start: u64,
    /// End of the last intact entry.
    pub end: u64,
    /// Number of intact entries.
    pub entries: u64,
    /// Bytes after the last intact entry: an append that was not committed when the machine
    /// stopped.
    pub torn_bytes: u64,
    /// Durable data that cannot be read.
    pub damage: Vec<Damage>,
    /// Damaged or missing regions that an earlier start or repair has reported.
    pub repaired: u64,
}

impl Findings {
    /// The entries that are lost; `None` if all are intact.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        let losses = self.damage.iter().filter(|damage| damage.length != Some(0));
        losses.fold(None, |sum, damage| Some(Lost { bytes: damage.length }.and(sum)))
    }
}

impl std::fmt::Display for Damage {
    /// The region, for a line of a report.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, position, length, cause } = self;
        let known = length.map_or("an unknown number of".to_owned(), |length| length.to_string());
        match cause {
            DamageCause::Entries => {
                write!(f, "damaged: {known} bytes at position {position} of {segment}")
            }
            DamageCause::Missing => {
                write!(f, "missing: {known} bytes at position {position}, from {segment} on")
            }
            DamageCause::Header { recovered, snapshot } => {
                write!(f, "damaged: the header of {segment}; ")?;
                match length {
                    None => write!(f, "its entries cannot be attributed to a position")?,
                    Some(_) => write!(f, "{recovered} entries are recovered")?,
                }
                if *snapshot > 0 {
                    write!(f, ", its snapshot of {snapshot} bytes is lost")?;
                }
                Ok(())
            }
        }
    }
}
