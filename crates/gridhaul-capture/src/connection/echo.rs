//! The round trip between the point of the capture and the sender, from echoed timestamps
//! (RFC 7323, section 3): it shows where a capture was taken if the handshake is missing.

use gridhaul_scenario::units::{Duration, Instant};

/// The smallest time from an acknowledgement to the data that echoes its timestamp.
#[derive(Debug, Default)]
pub(super) struct EchoRoundTrip {
    /// The first acknowledgement with a timestamp that no data has echoed.
    pending: Option<Stamp>,
    smallest: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Stamp {
    value: u32,
    at: Instant,
}

impl EchoRoundTrip {
    /// An acknowledgement passes the point of the capture.
    pub(super) fn handle_acknowledgement(&mut self, at: Instant, value: u32) {
        self.pending.get_or_insert(Stamp { value, at });
    }

    /// Data passes the point of the capture.
    pub(super) fn handle_data(&mut self, at: Instant, echo: u32) {
        let Some(Stamp { value, at: begin }) = self.pending else { return };
        if echo == value {
            let time = at.since(begin);
            self.smallest = Some(self.smallest.map_or(time, |smallest| smallest.min(time)));
        }
        // Serial numbers (RFC 7323, section 5.2): the sender has this timestamp, or a later one.
        if echo.wrapping_sub(value) as i32 >= 0 {
            self.pending = None;
        }
    }

    pub(super) const fn smallest(&self) -> Option<Duration> {
        self.smallest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_time_to_an_echo_counts_and_a_later_echo_is_no_sample() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut echo = EchoRoundTrip::default();
        echo.handle_data(at(1), 5);
        assert_eq!(echo.smallest(), None);
        echo.handle_acknowledgement(at(10), u32::MAX);
        // Data that was sent before the acknowledgement arrived.
        echo.handle_data(at(20), u32::MAX - 1);
        echo.handle_data(at(60), u32::MAX);
        assert_eq!(echo.smallest(), Some(Duration::from_millis(50)));
        echo.handle_acknowledgement(at(70), 3);
        echo.handle_data(at(75), 4);
        echo.handle_acknowledgement(at(80), 5);
        echo.handle_data(at(120), 5);
        assert_eq!(echo.smallest(), Some(Duration::from_millis(40)));
    }
}
