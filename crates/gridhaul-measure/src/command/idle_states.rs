//! Idle states of the processors during a run.

use std::time::Duration;

use gridhaul_linux::CpuLatencyLimit;

use crate::args::IdleStateArgs;

/// Keeps processors awake until it is dropped, if that is wanted and permitted: a thread on a processor in a deep idle state wakes
/// up late.
#[derive(Debug)]
pub(super) struct IdleStates {
    /// `None` if processors may enter all idle states.
    limit: Option<CpuLatencyLimit>,
}

impl IdleStates {
    /// As the arguments request.
    pub(super) fn new(args: &IdleStateArgs) -> Self {
        let hold = || CpuLatencyLimit::hold(Duration::ZERO).ok();
        Self { limit: if args.allow_idle_states { None } else { hold() } }
    }

    /// The setting in the result.
    pub(super) fn setting(&self) -> (String, String) {
        let states = if self.limit.is_some() { "none (/dev/cpu_dma_latency)" } else { "all" };
        ("idle_states".to_owned(), states.to_owned())
    }
}
