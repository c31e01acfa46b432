//! Idle states of the processors during a run.

use std::time::Duration;

use gridhaul_linux::CpuLatencyLimit;

/// Keeps processors awake until it is dropped, if that is wanted and permitted: a thread on a
/// processor in a deep idle state wakes up late.
#[derive(Debug)]
pub struct IdleStates {
    /// `None` if processors may enter all idle states.
    limit: Option<CpuLatencyLimit>,
}

impl IdleStates {
    /// Keeps the processors awake, unless idle states are allowed.
    #[must_use]
    pub fn new(are_allowed: bool) -> Self {
        let hold = || CpuLatencyLimit::hold(Duration::ZERO).ok();
        Self { limit: if are_allowed { None } else { hold() } }
    }

    /// The setting in the result.
    #[must_use]
    pub const fn setting(&self) -> (&'static str, &'static str) {
        let states = if self.limit.is_some() { "none (/dev/cpu_dma_latency)" } else { "all" };
        ("idle_states", states)
    }
}
