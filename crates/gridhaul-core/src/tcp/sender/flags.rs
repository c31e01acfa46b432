//! Properties of a sender in one byte: every connection of a simulation holds them.

/// A property of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    /// The controller paces.
    Paced = 1,
    /// The segment sent last has filled the congestion window: another poll would return nothing.
    WindowFilled = 2,
    /// The stack takes the common path (`common_path.rs`).
    CommonPath = 4,
}

/// The properties that hold.
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
