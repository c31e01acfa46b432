//! States of the congestion avoidance of Linux (`enum tcp_ca_state`).

/// The state. `Disorder` is not a state of its own here: see [`super::LossRecovery::is_watching`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CaState {
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}
