//! Causes of changes, from the states of the sender before and after a step.

use gridhaul_scenario::answer::{Cause, LossRecoveryState};
use gridhaul_scenario::units::Instant;

use crate::tcp::sender::SenderSnapshot;

/// A step of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A segment, an expired timer or data of the application was handled at this time.
    Handled(Instant),
    /// The connection was polled for a segment.
    Polled,
}

/// States of the loss recovery before and after a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecoveryStates {
    pub old: LossRecoveryState,
    pub new: LossRecoveryState,
}

/// The cause of the changes of a step; `recovery` is the state of the loss recovery before and
/// after.
pub(super) fn of(
    step: Step,
    before: &SenderSnapshot,
    after: &SenderSnapshot,
    recovery: RecoveryStates,
) -> Cause {
    match step {
        Step::Handled(now) => of_handled(now, before, after, recovery),
        Step::Polled => of_polled(before, after),
    }
}

fn of_handled(
    now: Instant,
    before: &SenderSnapshot,
    after: &SenderSnapshot,
    RecoveryStates { old, new }: RecoveryStates,
) -> Cause {
    use LossRecoveryState::{Loss, Recovery};
    let advanced = after.una > before.una;
    let more_sacked = after.sacked > before.sacked || after.duplicates > before.duplicates;
    let ended = matches!(old, Loss | Recovery) && !matches!(new, Loss | Recovery);
    if after.stats.timeouts > before.stats.timeouts {
        Cause::RetransmissionTimeout
    } else if !advanced && !more_sacked && before.reordering_at <= now {
        Cause::ReorderingTimeout
    } else if after.tail_loss_probe_due && !before.tail_loss_probe_due {
        Cause::TailLossProbe
    } else if new == Recovery && old != Recovery {
        Cause::FastRetransmit
    } else if ended && after.ssthresh > before.ssthresh {
        // Only an undo raises the threshold at the end of a recovery.
        Cause::SpuriousRetransmission
    } else if advanced {
        of_acknowledgement(before, after, ended, new)
    } else if is_reduced_by_mark(before, after) {
        Cause::CongestionMark
    } else if more_sacked {
        Cause::DuplicateAcknowledgement
    } else {
        Cause::Segment
    }
}

/// New data was acknowledged, and no recovery begins.
fn of_acknowledgement(
    before: &SenderSnapshot,
    after: &SenderSnapshot,
    ended: bool,
    new: LossRecoveryState,
) -> Cause {
    let lowered = after.ssthresh < before.ssthresh;
    if before.una == 0 {
        Cause::Handshake
    } else if ended {
        Cause::RecoveryCompleted
    } else if matches!(new, LossRecoveryState::Loss | LossRecoveryState::Recovery) {
        Cause::PartialAcknowledgement
    } else if lowered && before.tail_loss_probe_out && !after.tail_loss_probe_out {
        Cause::TailLossProbe
    } else if is_reduced_by_mark(before, after) {
        Cause::CongestionMark
    } else if lowered {
        Cause::SlowStartExit
    } else {
        Cause::Acknowledgement
    }
}

/// Whether the peer's echo of an ECN mark has reduced the window.
const fn is_reduced_by_mark(before: &SenderSnapshot, after: &SenderSnapshot) -> bool {
    after.ecn_reductions > before.ecn_reductions
}

fn of_polled(before: &SenderSnapshot, after: &SenderSnapshot) -> Cause {
    if after.cwnd >= before.cwnd {
        Cause::Transmission
    } else if before.una == before.next {
        Cause::IdleRestart
    } else {
        Cause::WindowValidation
    }
}
