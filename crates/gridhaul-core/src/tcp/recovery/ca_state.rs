//! States of the congestion avoidance of Linux (`enum tcp_ca_state`).

/// The state. `Disorder` is not a state of its own here: see [`super::LossRecovery::is_watching`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CaState {
    #[default]
    Open,
    /// A congestion mark has reduced the window; no segment is lost.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}
