//! Completion time of a transfer: slow start, first loss, then steady state.
//!
//! Cardwell, Savage, Anderson, "Modeling TCP Latency" (INFOCOM 2000).

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::CongestionControlAlgorithm;

use super::Connection;
use super::timeouts::{back_off, timeout_share};

/// The parameters of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferTime {
    /// Segments to transfer; at least one.
    pub segments: f64,
    /// Initial congestion window, in segments.
    pub initial_window: f64,
    /// Growth of the window from round to round.
    pub growth: WindowGrowth,
    /// Rate of the bottleneck link, in segments per second.
    pub link: f64,
    /// Segments per second that acknowledgements on the slowest link of the reverse path cover.
    pub acknowledged: f64,
    /// Segments per second that arrive in the steady state.
    pub steady: f64,
    /// One-way delay of the last segment, in seconds.
    pub forward_s: f64,
    /// Loss ratio of the acknowledgements; affects the handshake only.
    pub ack_loss: f64,
    /// The handshake; `None` if the connection is already established.
    pub handshake: Option<Handshake>,
}

/// How a window grows while no segment is lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowGrowth {
    /// Slow start threshold in segments; above it, the window grows by a segment in each round
    /// (RFC 5681, section 3.1).
    pub threshold: f64,
    /// Vegas: slow start in every other round only (Brakmo and Peterson 1995, section 3.3). After
    /// the first round, or after the second one.
    pub every_other_round: Option<u32>,
    /// Slow start ends where the round-trip time grows: HyStart of CUBIC, and Vegas.
    pub ends_with_delay: bool,
}

impl WindowGrowth {
    /// That of a stack.
    #[must_use]
    pub fn of(stack: &StackParams) -> Self {
        let is_vegas = stack.congestion_control == CongestionControlAlgorithm::Vegas;
        let is_cubic = stack.congestion_control == CongestionControlAlgorithm::Cubic;
        Self {
            ends_with_delay: is_vegas || is_cubic && stack.hystart,
            threshold: f64::from(stack.initial_ssthresh) / f64::from(stack.mss.max(1)),
            every_other_round: is_vegas.then(|| u32::from(!begins_with_one_segment(stack))),
        }
    }

    /// The window after a round in which all segments of `window` are acknowledged, `b` by each
    /// acknowledgement. `round` is the number of the round, from 0.
    #[must_use]
    pub fn after(self, window: f64, b: f64, round: u32) -> f64 {
        if window >= self.threshold {
            return window + 1.0 / b;
        }
        if self.every_other_round.is_some_and(|first| round % 2 != first) {
            return window;
        }
        // A round of fewer segments than an acknowledgement covers has one acknowledgement.
        let grown = if window < b { window + 1.0 } else { window * (1.0 + 1.0 / b) };
        grown.min(self.threshold)
    }
}

/// ns-2's Vegas begins with one segment, and with its initial window in the second round.
pub(super) fn begins_with_one_segment(stack: &StackParams) -> bool {
    stack.policy.timer_runs_while_idle && !stack.handshake
}

/// The parameters of a handshake, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Handshake {
    /// Round-trip time of its segments, which have no payload: on a link of low rate much shorter
    /// than that of data.
    pub rtt_s: f64,
    /// Initial timeout.
    pub timeout_s: f64,
}

/// Mean seconds from the start to the arrival of the last segment. `None` for a loss of 50 % or
/// more, where the series of the handshake diverges.
#[must_use]
pub fn transfer_time(connection: &Connection, transfer: &TransferTime) -> Option<f64> {
    let Connection { rtt_s, loss: p, window, acked_by_each: b, timeout_s, .. } = *connection;
    let TransferTime { segments: d, initial_window, steady, .. } = *transfer;
    if p >= 0.5 || transfer.ack_loss >= 0.5 {
        return None;
    }
    // Section 2.2: segments until the first loss, which is part of slow start.
    let any_lost = -(d * (-p).ln_1p()).exp_m1();
    let slow = if p > 0.0 { (any_lost * (1.0 - p) / p + 1.0).min(d) } else { d };
    // The window grows by the fraction 1/b in each round.
    let growth = 1.0 + 1.0 / b;
    let in_slow_start = slow_start_time(connection, transfer, slow);
    // Section 2.3: the loss that ends slow start, detected by a timeout or by duplicate
    // acknowledgements.
    let reached = (slow * (growth - 1.0) / growth + initial_window / growth)
        .min(window)
        .min(transfer.growth.threshold.max(initial_window));
    let by_timer = timeout_share(p, reached);
    let at_loss =
        any_lost * (by_timer * timeout_s * back_off(p) / (1.0 - p) + (1.0 - by_timer) * rtt_s);
    let rest = d - slow;
    let in_steady_state = if rest > 0.0 { rest / steady } else { 0.0 };
    let opening = handshake_time(connection, transfer.ack_loss, transfer.handshake);
    Some(opening + in_slow_start + at_loss + in_steady_state)
}

/// Seconds until `segments` segments have arrived in slow start. Section 2.2 sums the rounds by a
/// logarithm; here they are counted, since the last round is never a fraction of a round trip. From
/// the round on that fills a link, or whose acknowledgements do, the link determines the time.
fn slow_start_time(connection: &Connection, transfer: &TransferTime, segments: f64) -> f64 {
    let Connection { rtt_s, window: largest, acked_by_each: b, .. } = *connection;
    let mut round = 0;
    let (mut time, mut sent, mut window) = (0.0, 0.0, transfer.initial_window.min(largest));
    let pipe = transfer.link.min(transfer.acknowledged) * rtt_s;
    while sent + window < segments && window < pipe {
        // At the largest window all rounds are equal.
        let equal_rounds =
            if window < largest { 1.0 } else { ((segments - sent) / window).ceil() - 1.0 };
        sent += equal_rounds * window;
        time += equal_rounds * rtt_s;
        window = transfer.growth.after(window, b, round).min(largest);
        round += 1;
    }
    let by_link = (segments - sent - 1.0).max(0.0) / transfer.link;
    let by_acks = time_of_acks(connection, transfer, window, segments - sent - window);
    time + transfer.forward_s + by_link.max(by_acks)
}

/// Seconds until the acknowledgements of a window have permitted to send `rest` more segments, on a
/// link that transmits acknowledgements one after another. An acknowledged segment permits one, and
/// the fraction 1/b of another one while the window grows (RFC 5681, section 3.1).
fn time_of_acks(connection: &Connection, transfer: &TransferTime, window: f64, rest: f64) -> f64 {
    let Connection { rtt_s, window: largest, acked_by_each: b, .. } = *connection;
    if rest <= 0.0 || transfer.acknowledged.is_infinite() {
        return 0.0;
    }
    // Acknowledgements that wait for each other lengthen the round trip.
    let top = match transfer.growth.ends_with_delay {
        true => window,
        false => largest.min(transfer.growth.threshold.max(window)),
    };
    let growing = (rest / (1.0 + 1.0 / b)).min((top - window) * b);
    let equal = rest - growing * (1.0 + 1.0 / b);
    // The first acknowledgement arrives after a round trip.
    rtt_s + (growing + equal - 1.0).max(0.0) / transfer.acknowledged
}

/// Mean time of the handshake (section 2.1), whose timeout doubles with each loss.
pub(super) fn handshake_time(
    connection: &Connection,
    ack_loss: f64,
    handshake: Option<Handshake>,
) -> f64 {
    let Some(Handshake { rtt_s, timeout_s }) = handshake else { return 0.0 };
    let retransmissions = |p: f64| (1.0 - p) / (1.0 - 2.0 * p) - 1.0;
    rtt_s + timeout_s * (retransmissions(connection.loss) + retransmissions(ack_loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Connection = Connection {
        rtt_s: 0.1,
        loss: 0.0,
        window: 1e6,
        acked_by_each: 1.0,
        timeout_s: 1.0,
        limited_transmit: 0.0,
    };
    /// Slow start without a threshold.
    const SLOW_START: WindowGrowth =
        WindowGrowth { threshold: f64::INFINITY, every_other_round: None, ends_with_delay: false };
    const OPEN: TransferTime = TransferTime {
        segments: 14.0,
        initial_window: 2.0,
        growth: SLOW_START,
        link: 1e6,
        acknowledged: f64::INFINITY,
        steady: 1e6,
        forward_s: 0.05,
        ack_loss: 0.0,
        handshake: None,
    };

    #[test]
    fn without_loss_by_hand() {
        // 2 + 4 + 8 = 14 segments: three rounds; the last one arrives half a round trip earlier.
        assert!((transfer_time(&PATH, &OPEN).unwrap() - 0.25).abs() < 1e-4);
        // With a handshake, one round trip more.
        let handshake = Some(Handshake { rtt_s: 0.1, timeout_s: 1.0 });
        let opened = TransferTime { handshake, ..OPEN };
        assert!((transfer_time(&PATH, &opened).unwrap() - 0.35).abs() < 1e-4);
        // A window of four: 2 + 4, then two rounds of four.
        let narrow = Connection { window: 4.0, ..PATH };
        assert!((transfer_time(&narrow, &OPEN).unwrap() - 0.35).abs() < 1e-4);
        // One segment takes the one-way delay.
        let one = TransferTime { segments: 1.0, initial_window: 10.0, ..OPEN };
        assert_eq!(transfer_time(&PATH, &one), Some(0.05));
    }

    #[test]
    fn acknowledgements_on_a_slow_link_by_hand() {
        // 685 segments, a window of 50, an acknowledgement each 16 ms: 10 segments are sent at
        // once; 40 acknowledgements permit two segments each, and 595 more one each. The last of
        // the 635 arrives after a round trip and 634 · 16 ms.
        let path = Connection { window: 50.0, ..PATH };
        let slow =
            TransferTime { segments: 685.0, initial_window: 10.0, acknowledged: 62.5, ..OPEN };
        assert!((transfer_time(&path, &slow).unwrap() - 10.294).abs() < 1e-9);
        // Acknowledgements of two segments permit three, and the window is not limited: 60 segments
        // follow 40 acknowledged ones, at 48 of them in a second.
        let delayed = Connection { acked_by_each: 2.0, ..PATH };
        let slow =
            TransferTime { segments: 70.0, initial_window: 10.0, acknowledged: 48.0, ..OPEN };
        assert!((transfer_time(&delayed, &slow).unwrap() - (0.15 + 39.0 / 48.0)).abs() < 1e-4);
        // HyStart ends slow start with the first of them: each acknowledged segment permits one.
        let growth = WindowGrowth { ends_with_delay: true, ..SLOW_START };
        let slow = TransferTime { growth, ..slow };
        assert!((transfer_time(&delayed, &slow).unwrap() - (0.15 + 59.0 / 48.0)).abs() < 1e-4);
    }

    #[test]
    fn the_growth_of_other_windows_by_hand() {
        let time = |growth: WindowGrowth, segments: f64| {
            transfer_time(&PATH, &TransferTime { growth, segments, ..OPEN }).unwrap()
        };
        // A threshold of 4: rounds of 2, 4, 5 and 3 segments.
        let threshold = WindowGrowth { threshold: 4.0, ..SLOW_START };
        assert!((time(threshold, 14.0) - 0.35).abs() < 1e-4);
        // Vegas: rounds of 2, 2, 4, 4 and 2 segments.
        let vegas = WindowGrowth { every_other_round: Some(1), ..SLOW_START };
        assert!((time(vegas, 14.0) - 0.45).abs() < 1e-4);
    }

    #[test]
    fn the_handshake_under_loss_by_hand() {
        // p = 0.1 each path: 0.9 / 0.8 - 1 = 0.125 twice, times 3 s, and the round trip.
        let path = Connection { loss: 0.1, ..PATH };
        let handshake = Some(Handshake { rtt_s: 0.1, timeout_s: 3.0 });
        let transfer = TransferTime { handshake, ack_loss: 0.1, ..OPEN };
        assert!((handshake_time(&path, 0.1, handshake) - 0.85).abs() < 1e-12);
        assert_eq!(transfer_time(&Connection { loss: 0.5, ..PATH }, &transfer), None);
    }

    #[test]
    fn long_transfers_run_at_the_steady_rate() {
        let path = Connection { loss: 0.01, ..PATH };
        let transfer = TransferTime { segments: 1e6, steady: 50.0, ..OPEN };
        let time = transfer_time(&path, &transfer).unwrap();
        assert!((time * 50.0 / 1e6 - 1.0).abs() < 0.001, "{time}");
    }
}
