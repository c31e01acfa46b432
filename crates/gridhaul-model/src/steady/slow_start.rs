//! Completion time of a transfer: slow start, first loss, then steady state.
//!
//! Cardwell, Savage, Anderson, "Modeling TCP Latency" (INFOCOM 2000).

use super::Connection;
use super::timeouts::{back_off, timeout_share};

/// The parameters of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferTime {
    /// Segments to transfer; at least one.
    pub segments: f64,
    /// Initial congestion window, in segments.
    pub initial_window: f64,
    /// Rate of the bottleneck link, in segments per second.
    pub link: f64,
    /// Segments per second that arrive in the steady state.
    pub steady: f64,
    /// One-way delay of the last segment, in seconds.
    pub forward_s: f64,
    /// Loss ratio of the acknowledgements; affects the handshake only.
    pub ack_loss: f64,
    /// The handshake; `None` if the connection is already established.
    pub handshake: Option<Handshake>,
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
    let in_slow_start = slow_start_time(connection, transfer, slow, growth);
    // Section 2.3: the loss that ends slow start, detected by a timeout or by duplicate
    // acknowledgements.
    let reached = (slow * (growth - 1.0) / growth + initial_window / growth).min(window);
    let by_timer = timeout_share(p, reached);
    let at_loss =
        any_lost * (by_timer * timeout_s * back_off(p) / (1.0 - p) + (1.0 - by_timer) * rtt_s);
    let rest = d - slow;
    let in_steady_state = if rest > 0.0 { rest / steady } else { 0.0 };
    Some(handshake_time(connection, transfer) + in_slow_start + at_loss + in_steady_state)
}

/// Seconds until `segments` segments have arrived in slow start. Section 2.2 sums the rounds by a
/// logarithm; here they are counted, since the last round is never a fraction of a round trip.
fn slow_start_time(
    connection: &Connection,
    transfer: &TransferTime,
    segments: f64,
    growth: f64,
) -> f64 {
    let Connection { rtt_s, window: largest, .. } = *connection;
    let (mut time, mut sent, mut window) = (0.0, 0.0, transfer.initial_window.min(largest));
    while sent + window < segments && window < transfer.link * rtt_s {
        // At the largest window all rounds are equal.
        let equal_rounds =
            if window < largest { 1.0 } else { ((segments - sent) / window).ceil() - 1.0 };
        sent += equal_rounds * window;
        time += equal_rounds * rtt_s;
        window = (window * growth).min(largest);
    }
    time + transfer.forward_s + (segments - sent - 1.0).max(0.0) / transfer.link
}

/// Mean time of the handshake (section 2.1), whose timeout doubles with each loss.
fn handshake_time(connection: &Connection, transfer: &TransferTime) -> f64 {
    let Some(Handshake { rtt_s, timeout_s }) = transfer.handshake else { return 0.0 };
    let retransmissions = |p: f64| (1.0 - p) / (1.0 - 2.0 * p) - 1.0;
    rtt_s + timeout_s * (retransmissions(connection.loss) + retransmissions(transfer.ack_loss))
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
    const OPEN: TransferTime = TransferTime {
        segments: 14.0,
        initial_window: 2.0,
        link: 1e6,
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
    fn the_handshake_under_loss_by_hand() {
        // p = 0.1 each path: 0.9 / 0.8 - 1 = 0.125 twice, times 3 s, and the round trip.
        let path = Connection { loss: 0.1, ..PATH };
        let handshake = Some(Handshake { rtt_s: 0.1, timeout_s: 3.0 });
        let transfer = TransferTime { handshake, ack_loss: 0.1, ..OPEN };
        assert!((handshake_time(&path, &transfer) - 0.85).abs() < 1e-12);
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
