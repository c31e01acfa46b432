//! Features of a connection.

use crate::tcp::bit_set::Property;

/// A feature of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    /// Segments carry timestamps, or the delays of MEDX.
    Timestamps = 1,
    /// Selective acknowledgements.
    Sack = 2,
    /// The local application never writes.
    ReceiveOnly = 4,
    /// Explicit congestion notification.
    Ecn = 8,
    /// Acknowledgements echo a congestion mark (RFC 3168, section 6.1.3).
    EchoesMark = 16,
    /// TCP Fast Open.
    FastOpen = 32,
}

impl Property for Feature {
    #[inline]
    fn bit(self) -> u8 {
        self as u8
    }
}
