//! Maximum number of segments sent after an acknowledgement, where ns-2 limits it (`maxburst`).

/// Number of segments that may be sent before the next acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxBurst(u8);

impl MaxBurst {
    /// No limit.
    pub(super) const UNLIMITED: Self = Self(u8::MAX);
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn of(segments: u8) -> Self {
        Self(segments)
    }

    #[inline]
    pub(super) const fn allows_sending(self) -> bool {
        self.0 > 0
    }

    /// A segment is sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        if *self != Self::UNLIMITED {
            self.0 = self.0.saturating_sub(1);
        }
    }
}
