//! CUBIC's mean window (RFC 9438, section 5), and its rate with timeouts and receive window.
//!
//! The response function of the RFC assumes that losses have equal distances, and that duplicate
//! acknowledgements detect every loss. The rate is that of independent losses ([`CubicCycles`]). At
//! a loss above some per cent timeouts dominate, which [`cubic_send_rate`] adds by the cycle of
//! Padhye, Firoiu, Towsley and Kurose (1998, section 2). The rate is at least that of the
//! Reno-friendly region by their section 2.1, for an increase of α and a decrease to β instead of 1
//! and 1/2: it counts whole rounds, which matters for windows of a few segments.

use super::Connection;
use super::cubic_cycles::CubicCycles;
use super::timeouts::back_off;

/// RFC 9438, section 4.6: `β_cubic`.
pub(super) const BETA: f64 = 0.7;
/// RFC 9438, section 5: `C`, in segments per cubed second.
pub(super) const C: f64 = 0.4;

/// Mean window in segments below which the result depends on details of the timers.
pub(crate) const WINDOW_MIN: f64 = 6.0;

/// Mean window in segments without timeouts, and whether it is that of the Reno-friendly region.
/// Infinite without loss.
#[must_use]
pub fn cubic_window(rtt_s: f64, loss: f64) -> (f64, bool) {
    if loss <= 0.0 {
        return (f64::INFINITY, false);
    }
    let cubic = window_of_cubic_region(rtt_s, loss);
    let friendly = friendly_window(loss);
    if friendly > cubic { (friendly, true) } else { (cubic, false) }
}

/// Mean window of the Reno-friendly region in segments: RFC 9438, equation 3, with
/// α = 3 (1 - β) / (1 + β) of section 4.3: √(3 / (2 p)). Window growth counts segments and not
/// acknowledgements, so delayed acknowledgements do not slow it.
pub(super) fn friendly_window(loss: f64) -> f64 {
    (1.5 / loss).sqrt()
}

/// Segments per second without timeouts: the mean window over the round trip.
#[must_use]
pub fn cubic_rate(rtt_s: f64, loss: f64) -> f64 {
    cubic_window(rtt_s, loss).0 / rtt_s
}

/// Largest growth of the window in a round trip, in segments: that of the first one after a loss
/// (RFC 9438, equation 1, at its start), at most up to the window before the loss.
pub(super) fn largest_growth(rtt_s: f64, loss: f64, window: f64) -> f64 {
    let at_loss = (2.0 * window_of_cubic_region(rtt_s, loss) / (1.0 + BETA)).min(window);
    let reduced = (1.0 - BETA) * at_loss;
    let plateau_s = (reduced / C).cbrt();
    let missing = C * (plateau_s - rtt_s).max(0.0).powi(3);
    reduced - missing
}

/// Segments sent per second, retransmissions included, with timeouts and receive window.
#[must_use]
pub fn cubic_send_rate(connection: &Connection) -> f64 {
    let Connection { rtt_s, loss, window, .. } = *connection;
    if loss <= 0.0 {
        return window / rtt_s;
    }
    let p = loss.min(1.0);
    let friendly = friendly_window_at_loss(p);
    let cycles = CubicCycles::new(rtt_s, p, window);
    let at_loss = friendly.max(cycles.at_loss).min(window);
    // RFC 9438, section 4.3: the window is the larger one of both regions.
    let rate = friendly_rate(connection, friendly, p).max(cycles.rate);
    rate_with_timeouts(connection, rate, at_loss).min(window / rtt_s)
}

/// The rate with timeouts, from the rate without them: Padhye et al. (1998), section 2.2, segments
/// of a cycle and of its timeouts, and their time, all of them times (1 - p) to avoid a division by
/// zero at p = 1.
fn rate_with_timeouts(connection: &Connection, without: f64, at_loss: f64) -> f64 {
    let Connection { loss, timeout_s, limited_transmit, .. } = *connection;
    let p = loss.min(1.0);
    let segments = (1.0 - p) * ((1.0 - p) / p + at_loss);
    let by_timer = timeout_share_of_independent_losses(p, at_loss, limited_transmit);
    (segments + by_timer) / (segments / without + by_timer * timeout_s * back_off(p))
}

/// RFC 9438, equation 5: `AVG_W_cubic = (C (3 + β) / (4 (1 - β)))^(1/4) RTT^(3/4) / p^(3/4)`.
pub(super) fn window_of_cubic_region(rtt_s: f64, p: f64) -> f64 {
    (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt_s / p).powf(0.75)
}

/// Mean window at a loss in the Reno-friendly region: `E[W]` of Padhye et al. (1998), section 2.1,
/// for a window that grows by α = 3 (1 - β) / (1 + β) in each round and falls to β at a loss.
///
/// A cycle has (1 - β) W / α = (1 + β) W / 3 rounds and (1 - p) / p + W segments, half a window of
/// them in the last round: (1 + β)² / 6 W² - (1 - β/2) W = (1 - p) / p.
fn friendly_window_at_loss(p: f64) -> f64 {
    let (square, linear) = ((1.0 + BETA) * (1.0 + BETA) / 6.0, 1.0 - BETA / 2.0);
    (linear + (linear * linear + 4.0 * square * (1.0 - p) / p).sqrt()) / (2.0 * square)
}

/// Segments per second in the Reno-friendly region without timeouts, with the receive window as in
/// section 2.3 of Padhye et al. (1998).
fn friendly_rate(connection: &Connection, at_loss: f64, p: f64) -> f64 {
    let Connection { rtt_s, window, .. } = *connection;
    let (arriving, top) = ((1.0 - p) / p, at_loss.min(window));
    let rounds = if at_loss < window {
        (1.0 + BETA) / 3.0 * top + 1.0
    } else {
        (1.0 - BETA * BETA) / 6.0 * top + arriving / top + 2.0
    };
    (arriving + top) / (rtt_s * rounds)
}

/// Probability that independent losses in a window of `window` segments cause a timeout, with
/// NewReno, SACK or RACK: fewer than three segments follow the lost one and arrive (RFC 5681,
/// section 3.2), or the retransmission is lost. `timeout_share` assumes instead that the rest of
/// the round is lost.
fn timeout_share_of_independent_losses(p: f64, window: f64, limited_transmit: f64) -> f64 {
    let n = window - 1.0 + limited_transmit;
    if n <= 2.0 {
        return 1.0;
    }
    let arrives = 1.0 - p;
    let fewer_than_three = p.powf(n)
        + n * arrives * p.powf(n - 1.0)
        + n * (n - 1.0) / 2.0 * arrives * arrives * p.powf(n - 2.0);
    1.0 - (1.0 - fewer_than_three.min(1.0)) * arrives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_agree_with_the_tables_of_the_rfc() {
        // RFC 9438, table 1: mean windows at RTT = 0.1 s for loss 10^-2 to 10^-8; C = 0.4.
        let table = [
            (1e-2, 12.0),
            (1e-3, 38.0),
            (1e-4, 187.0),
            (1e-5, 1054.0),
            (1e-6, 5926.0),
            (1e-7, 33_325.0),
            (1e-8, 187_400.0),
        ];
        for (loss, window) in table {
            let (found, _) = cubic_window(0.1, loss);
            assert!((found / window - 1.0).abs() < 0.025, "{loss}: {found}");
        }
        // Table 2, RTT = 0.01 s: the Reno-friendly region.
        assert!(cubic_window(0.01, 1e-4).1 && !cubic_window(0.1, 1e-5).1);
        assert!((cubic_window(0.01, 1e-8).0 / 33_325.0 - 1.0).abs() < 0.001);
    }

    const SLOW: Connection = Connection {
        rtt_s: 0.1,
        loss: 0.1,
        window: 1e6,
        acked_by_each: 1.0,
        timeout_s: 0.3,
        limited_transmit: 2.0,
    };

    #[test]
    fn the_rate_with_timeouts_agrees_with_a_calculation_by_hand() {
        // β = 0.7: 1.7² / 6 = 0.481667, 1 - 0.35 = 0.65. (1 - p) / p = 9:
        // W = (0.65 + √(0.4225 + 17.34)) / 0.963333 = 5.049714.
        assert!((friendly_window_at_loss(0.1) - 5.049_714).abs() < 1e-6);
        // 1.7 / 3 · 5.049714 + 1 = 3.861505 rounds of 0.1 s for 14.049714 segments: 36.384040 per
        // second.
        assert!((friendly_rate(&SLOW, 5.049_714, 0.1) - 36.384_1).abs() < 1e-3);
        // Three of 6.049714 segments: 10^-6.05 + 6.05 · 0.9 · 10^-5.05 + 15.27 · 0.81 · 10^-4.05 =
        // 0.001153; 1 - 0.998847 · 0.9 = 0.101038.
        let share = timeout_share_of_independent_losses(0.1, 5.049_714, 2.0);
        assert!((share - 0.101_04).abs() < 1e-4, "{share}");
        // f(0.1) = 1.124992. (0.9 · 14.049714 + 0.101038) / (12.644743 / 36.384040 + 0.101038 ·
        // 0.337498).
        let rate = rate_with_timeouts(&SLOW, 36.384_040, 5.049_714);
        assert!((rate - 12.745_781 / 0.381_635).abs() < 0.02, "{rate}");
    }

    #[test]
    fn limits_of_the_rate_with_timeouts() {
        // Without loss: the window per round-trip time. With 100 % loss: one segment for each
        // timeout of 64 times the initial value.
        assert_eq!(cubic_send_rate(&Connection { loss: 0.0, window: 10.0, ..SLOW }), 100.0);
        let total_loss = Connection { loss: 1.0, ..SLOW };
        assert!((cubic_send_rate(&total_loss) - 1.0 / (64.0 * 0.3)).abs() < 1e-12);
        // Rare losses cause no timeouts. Independent ones permit some more than the response
        // function of the RFC, whose losses have equal distances.
        let rare = Connection { loss: 1e-6, ..SLOW };
        let ratio = cubic_send_rate(&rare) / cubic_rate(0.1, 1e-6);
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
        // The receive window limits the rate.
        let narrow = Connection { loss: 1e-4, window: 10.0, ..SLOW };
        assert!((95.0..=100.0).contains(&cubic_send_rate(&narrow)));
        // A window of two segments cannot cause three duplicate acknowledgements.
        assert_eq!(timeout_share_of_independent_losses(0.01, 2.0, 0.0), 1.0);
    }

    #[test]
    fn the_reno_friendly_region_follows_the_square_root_law() {
        let reno = super::super::square_root_rate(0.02, 0.01, 1.0);
        assert!((cubic_rate(0.02, 0.01) / reno - 1.0).abs() < 1e-12);
    }
}
