//! Properties of a sender in one byte, to keep connections small.

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
}

/// A set of properties.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags(u8);

impl Flags {
    #[inline]
    pub(super) const fn has(self, flag: Flag) -> bool {
        self.0 & flag as u8 != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, flag: Flag, holds: bool) {
        self.0 = self.0 & !(flag as u8) | if holds { flag as u8 } else { 0 };
    }
}
