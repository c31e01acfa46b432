//! A wait of the sender: the time between two transmissions, and what the sender knew at its end.

use gridhaul_scenario::units::Duration;

/// A wait of the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Its length.
    pub(crate) length: Duration,
    /// The part during which nothing was outstanding.
    pub(crate) idle: Duration,
    /// Whether the sender transmits as soon as an acknowledgement makes space in the receive window
    /// for this data.
    pub(crate) is_permitted_by_window: bool,
    /// Whether the transmission before the wait was shorter than a full-sized segment, although
    /// the receive window had space for more: the sender had no more data, or kept it back.
    pub(crate) after_short: bool,
    /// The transmission that ends the wait.
    pub(crate) next: Next,
    /// Whether the sender transmits as soon as an acknowledgement arrives.
    pub(crate) is_prompt: bool,
    /// Whether everything was acknowledged at the end.
    pub(crate) all_acked: bool,
    /// Whether the receiver sent data during the wait.
    pub(crate) received_data: bool,
    /// Time by which the receiver delayed the last acknowledgement.
    pub(crate) delayed_ack: Option<Duration>,
    /// Whether the sender recovers from a loss.
    pub(crate) is_recovering: bool,
    /// Whether a loss has reduced the congestion window before.
    pub(crate) is_after_loss: bool,
    /// Queueing delay of the last acknowledged segment.
    pub(crate) queueing: Duration,
    /// Whether the wait is too long for a sender that only paces its packets, which is observed
    /// only at the sender.
    pub(crate) is_unprompted: bool,
}

/// A transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// New data.
    New {
        /// Shorter than a full-sized segment.
        is_short: bool,
    },
    /// A retransmission that acknowledgements caused.
    FastRetransmission,
    /// A retransmission that a timer caused.
    TimerRetransmission,
    /// A retransmission of data that the receiver dropped, because it had closed its window after
    /// the data was sent.
    Refused,
}
