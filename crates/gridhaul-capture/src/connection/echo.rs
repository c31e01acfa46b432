//! The round trip between the point of the capture and the sender, from echoed timestamps
//! (RFC 7323, section 3): it shows where a capture was taken if the handshake is missing.

use gridhaul_scenario::units::Instant;

use crate::estimate::Smallest;

/// The smallest time from an acknowledgement to the data that echoes its timestamp.
#[derive(Debug, Default)]
pub(super) struct EchoRoundTrip {
    /// The first acknowledgement with a timestamp that no data has echoed.
    pending: Option<Stamp>,
    /// The last timestamp. A clock with long ticks has the same one in several acknowledgements,
    /// of which the first counts.
    last: Option<u32>,
    smallest: Smallest,
}

#[derive(Debug, Clone, Copy)]
struct Stamp {
    value: u32,
    at: Instant,
}

impl EchoRoundTrip {
    /// An acknowledgement passes the point of the capture.
    pub(super) fn handle_acknowledgement(&mut self, at: Instant, value: u32) {
        if self.last.replace(value) != Some(value) {
            self.pending.get_or_insert(Stamp { value, at });
        }
    }

    /// A packet of this size with data passes the point of the capture.
    pub(super) fn handle_data(&mut self, at: Instant, echo: u32, bytes: u32) {
        let Some(Stamp { value, at: begin }) = self.pending else { return };
        if echo == value {
            self.smallest.add(at.since(begin), bytes);
        }
        // Serial numbers (RFC 7323, section 5.2): the sender has this timestamp, or a later one.
        if echo.wrapping_sub(value) as i32 >= 0 {
            self.pending = None;
        }
    }

    pub(super) const fn smallest(&self) -> &Smallest {
        &self.smallest
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// The smallest time, and the second one.
    fn times(echo: &EchoRoundTrip) -> [Option<Duration>; 2] {
        echo.smallest().times
    }

    #[test]
    fn the_smallest_time_to_an_echo_counts_and_a_later_echo_is_no_sample() {
        let mut echo = EchoRoundTrip::default();
        echo.handle_data(at(1), 5, 1_500);
        assert_eq!(times(&echo), [None; 2]);
        echo.handle_acknowledgement(at(10), u32::MAX);
        // Data that was sent before the acknowledgement arrived.
        echo.handle_data(at(20), u32::MAX - 1, 1_500);
        echo.handle_data(at(60), u32::MAX, 1_500);
        assert_eq!(times(&echo), [Some(Duration::from_millis(50)), None]);
        echo.handle_acknowledgement(at(70), 3);
        echo.handle_data(at(75), 4, 1_500);
        echo.handle_acknowledgement(at(80), 5);
        echo.handle_data(at(120), 5, 100);
        assert_eq!(times(&echo), [40, 50].map(|time| Some(Duration::from_millis(time))));
        assert_eq!(echo.smallest().bytes, 100);
    }

    #[test]
    fn a_timestamp_that_a_clock_with_long_ticks_repeats_is_no_sample() {
        let mut echo = EchoRoundTrip::default();
        echo.handle_acknowledgement(at(10), 7);
        echo.handle_data(at(60), 7, 1_500);
        echo.handle_acknowledgement(at(61), 7);
        echo.handle_data(at(62), 7, 1_500);
        assert_eq!(times(&echo), [Some(Duration::from_millis(50)), None]);
    }
}
