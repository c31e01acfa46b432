//! An entry that is to be written.

/// Records to write to the log as one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Batches.
    pub payload: Vec<u8>,
    /// Begin a new segment with this snapshot before the entry is appended.
    pub snapshot: Option<Vec<u8>>,
}
