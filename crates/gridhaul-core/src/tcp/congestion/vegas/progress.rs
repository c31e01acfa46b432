//! The progress of a connection with Vegas: number of evaluated rounds, growth of slow start,
//! startup.

/// Number of evaluated rounds, whether slow start grows in the current round trip, and the startup
/// as in ns-2, in four bytes, because a simulation has up to a million connections.
///
/// Bit 0: slow start grows; bits 1 and 2: startup; above: the number of rounds, which wraps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress(u32);

/// Handling of the first two acknowledgements of data in ns-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ns2Startup {
    /// Normal operation.
    Done = 0,
    /// Slow start begins with one segment, whose round trip is no sample but initialises the
    /// estimate.
    FirstAck = 1,
    /// The second acknowledgement sets the window to the initial window (`delay_growth_`).
    SecondAck = 2,
}

const GROWS: u32 = 1;
const STARTUP_SHIFT: u32 = 1;
const STARTUP: u32 = 3 << STARTUP_SHIFT;
const ROUNDS_SHIFT: u32 = 3;

impl Progress {
    /// No round is evaluated, and slow start grows.
    pub(super) const fn new(startup: Ns2Startup) -> Self {
        Self(GROWS | (startup as u32) << STARTUP_SHIFT)
    }

    /// Whether slow start grows in this round trip.
    pub(super) const fn grows(self) -> bool {
        self.0 & GROWS != 0
    }

    pub(super) const fn set_grows(&mut self, grows: bool) {
        self.0 = self.0 & !GROWS | grows as u32;
    }

    #[inline]
    pub(super) const fn startup(self) -> Ns2Startup {
        match (self.0 & STARTUP) >> STARTUP_SHIFT {
            1 => Ns2Startup::FirstAck,
            2 => Ns2Startup::SecondAck,
            _ => Ns2Startup::Done,
        }
    }

    pub(super) const fn set_startup(&mut self, startup: Ns2Startup) {
        self.0 = self.0 & !STARTUP | (startup as u32) << STARTUP_SHIFT;
    }

    /// Number of evaluated rounds.
    pub(super) const fn rounds(self) -> u32 {
        self.0 >> ROUNDS_SHIFT
    }

    pub(super) const fn count_round(&mut self) {
        self.0 = self.0.wrapping_add(1 << ROUNDS_SHIFT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_values_are_independent() {
        let mut progress = Progress::new(Ns2Startup::FirstAck);
        for rounds in 0..100 {
            let startup = [Ns2Startup::Done, Ns2Startup::FirstAck, Ns2Startup::SecondAck];
            for (startup, grows) in startup.into_iter().zip([true, false, true]) {
                progress.set_startup(startup);
                progress.set_grows(grows);
                let values = (progress.startup(), progress.grows(), progress.rounds());
                assert_eq!(values, (startup, grows, rounds));
            }
            progress.count_round();
        }
    }

    #[test]
    fn the_number_of_rounds_wraps() {
        let mut progress = Progress::new(Ns2Startup::SecondAck);
        progress.0 |= u32::MAX << ROUNDS_SHIFT;
        progress.count_round();
        let values = (progress.startup(), progress.grows(), progress.rounds());
        assert_eq!(values, (Ns2Startup::SecondAck, true, 0));
    }
}
