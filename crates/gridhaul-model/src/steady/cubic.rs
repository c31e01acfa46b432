//! CUBIC's response function (RFC 9438, section 5).
//!
//! It assumes that every loss is detected by duplicate acknowledgements and that nothing limits the
//! window. It ignores timeouts and fast convergence.

/// RFC 9438, section 4.6: `β_cubic`.
const BETA: f64 = 0.7;
/// RFC 9438, section 5: `C`, in segments per cubed second.
const C: f64 = 0.4;

/// Mean window in segments, and whether it is that of the Reno-friendly region. Infinite without
/// loss.
#[must_use]
pub fn cubic_window(rtt_s: f64, loss: f64) -> (f64, bool) {
    if loss <= 0.0 {
        return (f64::INFINITY, false);
    }
    // RFC 9438, equation 5: AVG_W_cubic = (C (3 + β) / (4 (1 - β)))^(1/4) RTT^(3/4) / p^(3/4).
    let cubic = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt_s / loss).powf(0.75);
    // RFC 9438, equation 3, with α = 3 (1 - β) / (1 + β) of section 4.3: √(3 / (2 p)). Window
    // growth counts segments and not acknowledgements, so delayed acknowledgements do not slow it.
    let friendly = (1.5 / loss).sqrt();
    if friendly > cubic { (friendly, true) } else { (cubic, false) }
}

/// Segments per second: the mean window over the round trip.
#[must_use]
pub fn cubic_rate(rtt_s: f64, loss: f64) -> f64 {
    cubic_window(rtt_s, loss).0 / rtt_s
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

    #[test]
    fn the_reno_friendly_region_follows_the_square_root_law() {
        let reno = super::super::square_root_rate(0.02, 0.01, 1.0);
        assert!((cubic_rate(0.02, 0.01) / reno - 1.0).abs() < 1e-12);
    }
}
