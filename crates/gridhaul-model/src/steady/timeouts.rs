//! Reno with timeouts and receive window.
//!
//! Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput: A Simple Model and its Empirical
//! Validation" (SIGCOMM 1998), section 2. After a loss, all following segments of the same round
//! are lost; rounds are independent; the round-trip time does not depend on the window.
//!
//! The terms are multiplied by (1 - p) to avoid a division by zero at p = 1.

use super::Connection;

/// Window in segments below which the assumptions of the formula fail: fewer than three segments
/// follow a lost one, so that only a timeout detects the loss.
pub(crate) const WINDOW_MIN: f64 = 4.0;

/// Segments sent per second, retransmissions included: the full formula (section 2.3).
#[must_use]
pub fn send_rate(connection: &Connection) -> f64 {
    rate(connection, Counted::MeterOutput)
}

/// Segments that reach the receiver per second with the paper's loss bursts: the formula `T(p)` of
/// the journal version (IEEE/ACM Transactions on Networking 8, 2000, section V). Each loss event
/// loses half a window, and one segment of each series of timeouts arrives.
#[must_use]
pub fn delivery_rate(connection: &Connection) -> f64 {
    rate(connection, Counted::Delivered)
}

/// Segments sent per second: the approximation (section 2.3, end).
#[must_use]
pub fn approximate_rate(connection: &Connection) -> f64 {
    let Connection { rtt_s, loss: p, window, acked_by_each: b, timeout_s, .. } = *connection;
    let by_duplicate_acks = rtt_s * (2.0 * b * p / 3.0).sqrt();
    let by_timeout =
        timeout_s * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    (window / rtt_s).min(1.0 / (by_duplicate_acks + by_timeout))
}

/// Probability that a loss in a window of this size is detected by a timeout: `Q(p, w)`, section
/// 2.2.
#[must_use]
pub fn timeout_share(loss: f64, window: f64) -> f64 {
    // A window of up to three segments cannot cause three duplicate acknowledgements.
    if window <= 3.0 || loss >= 1.0 {
        return 1.0;
    }
    if loss <= 0.0 {
        // The limit, by L'Hôpital's rule: the last three of w positions of the loss.
        return (3.0 / window).min(1.0);
    }
    // 1 - (1 - p)^n without cancellation.
    let some_lost = |n: f64| -(n * (-loss).ln_1p()).exp_m1();
    let three_arrive = 1.0 - some_lost(3.0);
    let share = some_lost(3.0) * (1.0 + three_arrive * some_lost(window - 3.0)) / some_lost(window);
    share.min(1.0)
}

/// Mean window at a loss if the receive window does not limit it: `E[W]`, section 2.1. Infinite
/// without loss.
pub(crate) fn window_at_loss(loss: f64, b: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let offset = (2.0 + b) / (3.0 * b);
    offset + (8.0 * (1.0 - loss) / (3.0 * b * loss) + offset * offset).sqrt()
}

#[derive(Clone, Copy, PartialEq)]
enum Counted {
    MeterOutput,
    Delivered,
}

fn rate(connection: &Connection, counted: Counted) -> f64 {
    let Connection { rtt_s, loss: p, window, .. } = *connection;
    if p <= 0.0 {
        return window / rtt_s;
    }
    let p = p.min(1.0);
    let Cycle { w, by_timer, sending_s, waiting_s } = Cycle::of(connection);
    let delivered = 1.0 - p;
    // Segments of a cycle, times (1 - p): until the loss, after it, and by timeouts.
    let (after_the_loss, by_the_timer) = match counted {
        Counted::MeterOutput => (w, by_timer),
        Counted::Delivered => (w / 2.0, by_timer * delivered),
    };
    let segments = delivered * (delivered / p + after_the_loss) + by_the_timer;
    segments / (sending_s + waiting_s)
}

/// Share of the time for which the formula waits for timers. Without timeouts, the rate is higher
/// by at most the factor 1 / (1 - share), because timeouts also send segments.
#[must_use]
pub(super) fn waiting_share(connection: &Connection) -> f64 {
    if connection.loss <= 0.0 {
        return 0.0;
    }
    let Cycle { sending_s, waiting_s, .. } = Cycle::of(connection);
    waiting_s / (sending_s + waiting_s)
}

/// A cycle from one loss to the next, at a loss above zero.
struct Cycle {
    /// Window at the loss.
    w: f64,
    /// Probability that the loss is detected by a timeout.
    by_timer: f64,
    /// Time of its rounds, times (1 - p).
    sending_s: f64,
    /// Time of its timeouts, times (1 - p).
    waiting_s: f64,
}

impl Cycle {
    fn of(connection: &Connection) -> Self {
        let Connection { rtt_s, loss, window, acked_by_each: b, timeout_s, .. } = *connection;
        let p = loss.min(1.0);
        let free = window_at_loss(p, b);
        let is_limited = free >= window;
        let w = if is_limited { window } else { free };
        let by_timer = timeout_share(p, w);
        let delivered = 1.0 - p;
        // Rounds of a cycle: section 2.1 without a window limit, else section 2.3.
        let rounds =
            if is_limited { b / 8.0 * w + delivered / (p * w) + 2.0 } else { b / 2.0 * w + 1.0 };
        // Mean length of a series of timeouts, times (1 - p): section 2.2.
        let waiting_s = by_timer * timeout_s * back_off(p);
        Self { w, by_timer, sending_s: delivered * rtt_s * rounds, waiting_s }
    }
}

/// `f(p)`, section 2.2: the timeout doubles up to 64 times its initial value.
pub(crate) fn back_off(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::square_root::square_root_rate;
    use super::*;

    const SLOW: Connection = Connection {
        rtt_s: 0.2,
        loss: 0.02,
        window: 1e6,
        acked_by_each: 2.0,
        timeout_s: 1.0,
        limited_transmit: 0.0,
    };

    #[test]
    fn an_unlimited_window_by_hand() {
        // p = 0.02, b = 2. E[W] = 2/3 + √(8 · 0.98 / 0.12 + 4/9) = 0.6667 + 8.1104 = 8.7770.
        assert!((window_at_loss(0.02, 2.0) - 8.7770).abs() < 1e-4);
        // (1-p)^3 = 0.941192, (1-p)^5.7770 = 0.889830, (1-p)^8.7770 = 0.837501.
        // Q = 0.058808 · (1 + 0.941192 · 0.110170) / 0.162499 = 0.399421.
        assert!((timeout_share(0.02, 8.7770) - 0.39942).abs() < 1e-4);
        // f(0.02) = 1.020833. MeterOutput: 49 + 8.7770 + 0.39942 / 0.98 = 58.1846.
        // Time: 0.2 · (8.7770 + 1) + 0.39942 · 1.020833 / 0.98 = 1.95540 + 0.41606 = 2.37146.
        assert!((send_rate(&SLOW) - 58.1846 / 2.37146).abs() < 0.005);
        assert!((waiting_share(&SLOW) - 0.41606 / 2.37146).abs() < 1e-4);
        // Delivered: 49 + 4.3885 + 0.39942 = 53.7879.
        assert!((delivery_rate(&SLOW) - 53.7879 / 2.37146).abs() < 0.005);
    }

    #[test]
    fn a_limited_window_by_hand() {
        let limited = Connection { window: 6.0, ..SLOW };
        // 1 - 0.98^6 = 0.114158, 0.98^3 = 0.941192: Q = 0.058808 · 1.055350 / 0.114158 = 0.543664.
        // MeterOutput: 49 + 6 + 0.543664 / 0.98 = 55.5548. Rounds: 1.5 + 49 / 6 + 2 = 11.6667.
        // Time: 2.33333 + 0.543664 · 1.020833 / 0.98 = 2.33333 + 0.566316 = 2.89965.
        assert!((send_rate(&limited) - 55.5548 / 2.89965).abs() < 0.005);
    }

    #[test]
    fn the_approximation_by_hand() {
        // 0.2 · √(0.08 / 3) = 0.0326599; 3 √(0.12 / 8) = 0.367423; · 0.02 · 1.0128 = 0.00744253.
        assert!((approximate_rate(&SLOW) - 1.0 / 0.040_102_4).abs() < 0.01);
    }

    #[test]
    fn the_window_limits_without_loss_and_the_timeout_with_total_loss() {
        // Without loss: the window per round-trip time. With 100 % loss: one segment per timeout of
        // 64 times the initial value.
        assert_eq!(send_rate(&Connection { loss: 0.0, window: 10.0, ..SLOW }), 50.0);
        let total_loss = Connection { loss: 1.0, ..SLOW };
        assert!((send_rate(&total_loss) - 1.0 / 64.0).abs() < 1e-12);
        assert_eq!(delivery_rate(&total_loss), 0.0);
    }

    #[test]
    fn rare_losses_give_the_square_root_law() {
        let rare = Connection { loss: 1e-8, window: 1e9, ..SLOW };
        assert!((send_rate(&rare) / square_root_rate(0.2, 1e-8, 2.0) - 1.0).abs() < 1e-3);
        assert!((timeout_share(1e-12, 300.0) - 0.01).abs() < 1e-9);
    }

    fn connections() -> impl Strategy<Value = Connection> {
        let timeout = 1e-3..120.0_f64;
        (0.0..=1.0_f64, -6.0..1.0_f64, 0.0..6.0_f64, 1..=2_u8, timeout).prop_map(
            |(loss, rtt, window, b, timeout_s)| Connection {
                rtt_s: 10_f64.powf(rtt),
                loss,
                window: 10_f64.powf(window),
                acked_by_each: f64::from(b),
                timeout_s,
                limited_transmit: 0.0,
            },
        )
    }

    proptest! {
        #[test]
        fn rates_are_finite_and_delivery_is_below_sending(connection in connections()) {
            let rates =
                [send_rate(&connection), delivery_rate(&connection), approximate_rate(&connection)];
            prop_assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{rates:?}");
            prop_assert!(rates[1] <= rates[0]);
            let share = timeout_share(connection.loss, connection.window);
            prop_assert!((0.0..=1.0).contains(&share));
        }

        #[test]
        fn a_longer_path_or_timeout_never_increases_the_rate(connection in connections(),
            more in 1.0..10.0_f64) {
            let rate = send_rate(&connection);
            let rtt_s = connection.rtt_s * more;
            let timeout_s = connection.timeout_s * more;
            let slack = rate * 1e-9;
            let longer = send_rate(&Connection { rtt_s, ..connection });
            let later = send_rate(&Connection { timeout_s, ..connection });
            prop_assert!(longer <= rate + slack && later <= rate + slack);
        }

        #[test]
        fn more_loss_delivers_less(connection in connections(), more in 1.0..4.0_f64) {
            // Up to a loss of 0.3; above, the first segment after a long timeout dominates. The
            // formulas for limited and unlimited windows differ by a few per cent at their border.
            let loss = connection.loss * 0.3;
            let timeout_s = connection.timeout_s.max(connection.rtt_s);
            let connection = Connection { loss, timeout_s, window: connection.window.max(4.0),
                ..connection };
            let worse = Connection { loss: (loss * more).min(0.3), ..connection };
            prop_assert!(delivery_rate(&worse) <= delivery_rate(&connection) * 1.15);
        }
    }
}
