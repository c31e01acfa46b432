//! The window of a connection whose receiver delays acknowledgements for less than a round trip.

use std::collections::VecDeque;

/// The parameters of a connection that its window limits, without loss; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AckCycle {
    /// Window, and segments that an acknowledgement covers; the window is not smaller.
    pub window: usize,
    pub ack_every: usize,
    /// Delay of an acknowledgement that covers fewer segments.
    pub timer: AckTimer,
    /// Round-trip time with an immediate acknowledgement.
    pub rtt_s: f64,
    /// Time between the arrivals of segments that are sent together.
    pub spacing_s: f64,
}

/// Delay of an acknowledgement, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AckTimer {
    /// A constant.
    Constant(f64),
    /// Linux (`tcp_event_data_recv`): follows the interval between segments, doubles when it
    /// expires, and is at most this.
    Adaptive { wait_s: f64, largest_s: f64 },
}

/// `TCP_ATO_MIN` of Linux, in seconds.
const ATO_MIN_S: f64 = 0.04;

impl AckTimer {
    /// A segment arrives this time after the one before.
    fn on_data(&mut self, since_s: f64) {
        if let Self::Adaptive { wait_s, .. } = self {
            if since_s <= ATO_MIN_S / 2.0 {
                *wait_s = *wait_s / 2.0 + ATO_MIN_S / 2.0;
            } else if since_s < *wait_s {
                *wait_s = *wait_s / 2.0 + since_s;
            }
        }
    }

    fn on_expired(&mut self) {
        if let Self::Adaptive { wait_s, largest_s } = self {
            // Larger values have no effect.
            *wait_s = (*wait_s * 2.0).min(8.0 * *largest_s);
        }
    }

    fn delay_s(&self) -> f64 {
        match *self {
            Self::Constant(seconds) => seconds,
            Self::Adaptive { wait_s, largest_s } => wait_s.max(ATO_MIN_S).min(largest_s),
        }
    }
}

/// Acknowledgements after which the rate is measured, and up to which.
const MEASURED: [usize; 2] = [1_000, 3_000];

impl AckCycle {
    /// Segments per second. A segment that remains at the end of a round waits for the timer or for
    /// the first segment of the next round, whichever is earlier. Which one it is changes from
    /// round to round, so that the acknowledgements are counted one after another.
    pub(super) fn rate(&self) -> f64 {
        let Self { window, ack_every, mut timer, rtt_s, spacing_s } = *self;
        // Arrivals of the segments that are not acknowledged; a window of them is sent at once.
        let mut arrivals: VecDeque<f64> =
            (0..window).map(|index| index as f64 * spacing_s).collect();
        let mut last_arrival = arrivals.back().copied().unwrap_or(0.0);
        let (mut acknowledged, mut marks) = (0, Vec::new());
        let mut before = -rtt_s;
        for number in 0..=MEASURED[1] {
            timer.on_data(arrivals[0] - before);
            before = arrivals[0];
            let expires = before + timer.delay_s();
            let full = arrivals[ack_every - 1];
            let in_time = arrivals.iter().take(ack_every).skip(1);
            let mut covered = 1;
            for arrival in in_time.take_while(|arrival| **arrival <= expires) {
                timer.on_data(arrival - before);
                before = *arrival;
                covered += 1;
            }
            if covered < ack_every {
                timer.on_expired();
            }
            let acknowledged_at = full.min(expires);
            if MEASURED.contains(&number) {
                marks.push((acknowledged as f64, acknowledged_at));
            }
            acknowledged += covered;
            for _ in 0..covered {
                arrivals.pop_front();
                last_arrival = (acknowledged_at + rtt_s).max(last_arrival + spacing_s);
                arrivals.push_back(last_arrival);
            }
        }
        let [(from, since), (to, until)] = marks[..] else { return window as f64 / rtt_s };
        (to - from) / (until - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: AckCycle = AckCycle {
        window: 3,
        ack_every: 2,
        timer: AckTimer::Constant(0.1),
        rtt_s: 1.0,
        spacing_s: 0.0,
    };

    #[test]
    fn a_timer_far_below_the_round_trip_delays_the_odd_segment() {
        // Acknowledgements at 0 for two segments, at 0.1 s for the third, at 1 s for two, at 1.2 s
        // for the third that arrived at 1.1 s, and so on: the third is later by 0.1 s in each round
        // trip, and after ten of them covers the first of the next two.
        let rate = CYCLE.rate();
        assert!(rate > 2.8 && rate < 3.0, "{rate}");
    }

    #[test]
    fn a_timer_above_the_round_trip_leaves_a_multiple_of_two() {
        let rate = AckCycle { timer: AckTimer::Constant(2.0), ..CYCLE }.rate();
        assert!((rate - 2.0).abs() < 1e-9, "{rate}");
        // Five segments: four in each round trip.
        let rate = AckCycle { window: 5, timer: AckTimer::Constant(2.0), ..CYCLE }.rate();
        assert!((rate - 4.0).abs() < 1e-9, "{rate}");
    }
}
