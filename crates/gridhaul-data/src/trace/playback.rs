//! Playback of recorded traces: one reader for all members of a flow.

use std::ops::Range;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Instant;

use super::{TraceReader, TraceRow, open};

/// Playback of a trace for the members of a flow, with numbers from the caller.
#[derive(Debug)]
pub struct Playback {
    reader: TraceReader,
    next: TraceRow,
    /// Numbers of the members.
    members: Range<u32>,
    start: Instant,
}

impl Playback {
    /// Opens the trace of a flow for these members; `None` if its load is not a trace, or has no
    /// rows.
    ///
    /// # Errors
    /// The file cannot be read, or is not a trace.
    pub fn open(
        scenario: &Scenario,
        flow: &str,
        members: Range<u32>,
    ) -> Result<Option<Self>, RunError> {
        let invalid = |message: &dyn std::fmt::Display| {
            RunError::Invalid(format!("flow.{flow}.load.trace: {message}"))
        };
        let Some(opened) = open(scenario, flow) else { return Ok(None) };
        let mut reader = opened.map_err(|error| invalid(&error))?;
        let first = reader.next_row().map_err(|error| invalid(&error))?;
        let start = Instant::ZERO + scenario.flow[flow].start;
        Ok(first.map(|next| Self { reader, next, members, start }))
    }

    /// Time at which the next message is due.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.start + self.next.at
    }

    /// Size of the next message, and the numbers of the members that send it.
    #[must_use]
    pub fn message(&self) -> (u64, Range<u32>) {
        let members = match self.next.member {
            None => self.members.clone(),
            Some(member) => {
                // The reader has checked that the member exists.
                let number = self.members.start + member as u32;
                number..number + 1
            }
        };
        (self.next.bytes, members)
    }

    /// Advances to the next message. False at the end of the trace.
    ///
    /// # Errors
    /// The next row is invalid.
    pub fn advance(&mut self) -> Result<bool, RunError> {
        match self.reader.next_row() {
            Ok(Some(row)) => {
                self.next = row;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(RunError::Invalid(error.to_string())),
        }
    }
}
