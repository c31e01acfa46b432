//! The square-root law: throughput of Reno when all losses are detected by duplicate
//! acknowledgements.
//!
//! Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
//! Algorithm" (1997), equation 3; paper `plc`, equations 1 and 2.

use super::Connection;

/// Segments per second: `1 / (RTT √(2 b p / 3))`; infinite without loss.
///
/// Paper `plc`, equation 2, is the case of one acknowledgement per segment (b = 1), with the
/// segment size as numerator.
#[must_use]
pub fn square_root_rate(rtt_s: f64, loss: f64, acked_by_each: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    1.0 / (rtt_s * (2.0 * acked_by_each * loss / 3.0).sqrt())
}

/// The same, limited by the receive window: paper `plc`, equation 1.
#[must_use]
pub fn limited_square_root_rate(connection: &Connection) -> f64 {
    let Connection { rtt_s, loss, window, acked_by_each, .. } = *connection;
    square_root_rate(rtt_s, loss, acked_by_each).min(window / rtt_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_root_law_agrees_with_a_calculation_by_hand() {
        // p = 0.015: √(2 · 0.015 / 3) = √0.01 = 0.1. RTT 0.1 s: 1 / (0.1 · 0.1) = 100.
        assert!((square_root_rate(0.1, 0.015, 1.0) - 100.0).abs() < 1e-9);
        // Two segments for each acknowledgement: √2 less.
        assert!((square_root_rate(0.1, 0.015, 2.0) - 70.710_678).abs() < 1e-5);
    }

    #[test]
    fn the_smaller_term_wins() {
        let mut connection = Connection {
            rtt_s: 0.1,
            loss: 0.015,
            window: 5.0,
            acked_by_each: 1.0,
            timeout_s: 1.0,
            limited_transmit: 0.0,
        };
        assert_eq!(limited_square_root_rate(&connection), 50.0);
        connection.window = 20.0;
        assert!((limited_square_root_rate(&connection) - 100.0).abs() < 1e-9);
        connection.loss = 0.0;
        assert_eq!(limited_square_root_rate(&connection), 200.0);
    }
}
