//! Delayed acknowledgements after a silence, or on a new connection.

use gridhaul_core::tcp::StackParams;

/// How a receiver delays acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AckDelay {
    /// Segments that an acknowledgement covers, at least one.
    every: u32,
    /// Time for which an acknowledgement of fewer segments is delayed, in seconds.
    seconds: f64,
}

impl AckDelay {
    /// The delays of a stack. Linux acknowledges the first segments of a connection, or after a
    /// silence, at once.
    pub(crate) fn new(stack: &StackParams) -> Self {
        let is_at_once = stack.policy.adaptive_delayed_ack || stack.quick_ack > 0;
        let seconds = if is_at_once { 0.0 } else { stack.delayed_ack.as_secs_f64() };
        Self { every: stack.ack_every.max(1), seconds }
    }

    /// Delay of the acknowledgement of a single segment, in seconds.
    pub(crate) const fn of_one_s(self) -> f64 {
        self.seconds
    }

    /// Time until the first of these segments is acknowledged, after its arrival: they arrive at
    /// this distance from each other, in seconds.
    pub(crate) fn of_first_s(self, segments: u32, spacing_s: f64) -> f64 {
        if segments < self.every {
            return self.seconds;
        }
        (f64::from(self.every - 1) * spacing_s).min(self.seconds)
    }

    /// Time until the last of these segments is acknowledged, after its arrival, in seconds.
    pub(crate) const fn of_last_s(self, segments: u32) -> f64 {
        if segments.is_multiple_of(self.every) { 0.0 } else { self.seconds }
    }
}
