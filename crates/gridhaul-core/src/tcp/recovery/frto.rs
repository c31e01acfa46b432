//! F-RTO: detection of a spurious timeout (RFC 5682, section 3.1, for SACK as in Linux).

use crate::coverage_mark::mark;
use crate::tcp::recovery::LossRecoveryContext;

/// The step of the algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FrtoState {
    /// The timeout was needed, or F-RTO does not apply.
    #[default]
    Inactive,
    /// Step 1: only the first segment has been retransmitted.
    FirstRetransmitted,
    /// Step 2b: the first segment is acknowledged, and new data is sent instead of segments marked
    /// lost.
    SendingNewData,
    /// New data has been sent: the next acknowledgement decides (step 3).
    NewDataSent,
}

/// Result of an acknowledgement after a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrtoVerdict {
    /// The timeout was spurious.
    Spurious,
    /// Step 2b: new data is sent to find out.
    SendNewData,
    /// Nothing changes, or retransmission continues (steps 2a and 3a).
    Continue,
}

impl FrtoState {
    /// The step at a timeout; `open` if no recovery is under way. RFC 5682, section 3.2: used after
    /// a recovery only if the same segment times out again.
    pub(super) fn at_timeout(context: &LossRecoveryContext<'_>, open: bool) -> Self {
        let timed_out_before = context.queue.front().is_some_and(|first| first.timed_out);
        if open || timed_out_before { Self::FirstRetransmitted } else { Self::Inactive }
    }

    /// Handles an acknowledgement after a timeout at which `recover` was the end of the sent data;
    /// `advanced` if it acknowledges new data. Step 3b: the timeout was spurious if a segment has
    /// arrived that was outstanding at the timeout and not retransmitted.
    pub(super) fn on_ack(
        &mut self,
        context: &LossRecoveryContext<'_>,
        advanced: bool,
        recover: u64,
    ) -> FrtoVerdict {
        if *self == Self::Inactive {
            return FrtoVerdict::Continue;
        }
        if context.ack.newest.is_some_and(|newest| newest.original < recover) {
            mark!(f_rto_spurious_timeout);
            return FrtoVerdict::Spurious;
        }
        if *self == Self::FirstRetransmitted && advanced && context.una < recover {
            mark!(f_rto_sends_new_data);
            *self = Self::SendingNewData;
            return FrtoVerdict::SendNewData;
        }
        *self = match *self {
            Self::FirstRetransmitted => Self::FirstRetransmitted,
            Self::SendingNewData | Self::NewDataSent if advanced => Self::NewDataSent,
            Self::SendingNewData | Self::NewDataSent | Self::Inactive => Self::Inactive,
        };
        FrtoVerdict::Continue
    }
}
