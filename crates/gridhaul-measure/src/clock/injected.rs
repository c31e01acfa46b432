//! A clock with known errors.

#[cfg(test)]
use super::Exchange;

/// Reads a time as a clock with an offset, a drift and one step would show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InjectedClock {
    /// Offset at time zero in nanoseconds.
    pub offset: i64,
    /// Excess rate: 50e-6 gains 50 µs in a second.
    pub drift: f64,
    /// A step: the time at which it occurs, and its size, in nanoseconds.
    pub step: Option<(i64, i64)>,
}

impl InjectedClock {
    /// Reading of this clock at a true time in nanoseconds.
    #[must_use]
    pub fn read(&self, time: i64) -> i64 {
        time + self.error(time)
    }

    /// Difference between this clock and the true time, at a true time in nanoseconds.
    #[must_use]
    pub fn error(&self, time: i64) -> i64 {
        let step = self.step.filter(|(at, _)| time >= *at).map_or(0, |(_, size)| size);
        self.offset + (self.drift * time as f64).round() as i64 + step
    }

    /// An exchange with this clock, whose request is sent at a true time. Request and answer take
    /// these delays, and the answer is sent `processing` after the arrival of the request.
    #[cfg(test)]
    pub(super) fn exchange(
        &self,
        sent: i64,
        [forward, reverse]: [i64; 2],
        processing: i64,
    ) -> Exchange {
        let arrived = sent + forward;
        let answered = arrived + processing;
        Exchange {
            sent,
            remote_received: self.read(arrived),
            remote_sent: self.read(answered),
            received: answered + reverse,
        }
    }
}
