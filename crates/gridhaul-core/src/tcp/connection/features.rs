//! Features of a connection in one byte, to keep connections small.

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
}

/// A set of features.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features(u8);

impl Features {
    #[inline]
    pub(super) const fn has(self, feature: Feature) -> bool {
        self.0 & feature as u8 != 0
    }

    pub(super) const fn set(&mut self, feature: Feature, holds: bool) {
        self.0 = self.0 & !(feature as u8) | if holds { feature as u8 } else { 0 };
    }

    /// Keeps a feature only if it `holds`.
    pub(super) const fn restrict(&mut self, feature: Feature, holds: bool) {
        self.set(feature, self.has(feature) && holds);
    }
}
