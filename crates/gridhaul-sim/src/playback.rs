//! Playing recorded traces: one reader for all members of a flow.

use std::ops::Range;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::trace::{TraceReader, TraceRow};
use gridhaul_scenario::units::Instant;

/// A trace that is being played.
#[derive(Debug)]
pub(crate) struct Playback {
    reader: TraceReader,
    next: TraceRow,
    /// Numbers of the flows of its members.
    members: Range<u32>,
    start: Instant,
}

impl Playback {
    /// Opens the trace of a flow, if its load is one, for these members.
    pub(crate) fn open(
        scenario: &Scenario,
        flow: &str,
        members: Range<u32>,
    ) -> Result<Option<Self>, RunError> {
        let invalid = |message: &dyn std::fmt::Display| {
            RunError::Invalid(format!("flow.{flow}.load.trace: {message}"))
        };
        let Some(opened) = scenario.open_trace(flow) else { return Ok(None) };
        let mut reader = opened.map_err(|error| invalid(&error))?;
        let first = reader.next_row().map_err(|error| invalid(&error))?;
        let start = Instant::ZERO + scenario.flow[flow].start;
        Ok(first.map(|next| Self { reader, next, members, start }))
    }

    /// When the next message is ready.
    pub(crate) fn at(&self) -> Instant {
        self.start + self.next.at
    }

    /// Size of the next message, and the flows that send it.
    pub(crate) fn next(&self) -> (u64, Range<u32>) {
        let flows = match self.next.member {
            None => self.members.clone(),
            Some(member) => {
                // The reader refuses members that there are not.
                let flow = self.members.start + member as u32;
                flow..flow + 1
            }
        };
        (self.next.bytes, flows)
    }

    /// Goes on to the next message. False at the end of the trace.
    pub(crate) fn advance(&mut self) -> Result<bool, RunError> {
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
