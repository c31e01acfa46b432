//! Properties of a sender.

use crate::tcp::bit_set::Property;

/// A property of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    /// The congestion control uses pacing.
    Paced = 1,
    /// The last segment has filled the congestion window, or all data is sent: another poll would
    /// return `None`.
    WindowFilled = 2,
    /// The stack uses the common path (`common_path.rs`).
    CommonPath = 4,
    /// On the common path, the congestion control only grows the window.
    GrowthOnly = 8,
    /// The application has closed, and data that it had written before can still be sent without
    /// FIN.
    Closing = 16,
    /// The peer has sent data with SYN (TCP Fast Open): the answer need not wait for the end of
    /// the handshake.
    AnswersEarly = 32,
}

impl Property for Flag {
    #[inline]
    fn bit(self) -> u8 {
        self as u8
    }
}
