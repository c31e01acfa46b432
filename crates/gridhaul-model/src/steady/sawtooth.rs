//! A single Reno flow on a link whose queue overflows: the window sawtooth between half of the path
//! capacity and the path capacity (bandwidth-delay product plus queue).
//!
//! Lakshman and Madhow, "The Performance of TCP/IP for Networks with High Bandwidth-Delay Products
//! and Random Loss" (1997), section III, congestion avoidance without random loss.

/// Utilisation of the link by one Reno flow. `pipe` is the bandwidth-delay product, `queue` the
/// queue limit, both in segments.
///
/// The window grows from half of `pipe + queue` to all of it. Below the bandwidth-delay product, a
/// round takes the base round-trip time and the link is not saturated; above, it is. A queue as
/// large as the bandwidth-delay product keeps the link saturated.
#[must_use]
pub fn sawtooth_utilisation(pipe: f64, queue: f64) -> f64 {
    let top = pipe + queue;
    let bottom = top / 2.0;
    if bottom >= pipe {
        return 1.0;
    }
    // In base round-trip times; the window grows by one segment per round.
    let filling = pipe - bottom;
    let sent_filling = (pipe * pipe - bottom * bottom) / 2.0;
    // Saturated link: the time is the data sent over the rate of `pipe` segments per round-trip
    // time.
    let sent_full = (top * top - pipe * pipe) / 2.0;
    let time = filling + sent_full / pipe;
    (sent_filling + sent_full) / pipe / time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisation_grows_with_the_queue_from_three_quarters_to_one() {
        // No queue: the mean of a sawtooth from one half to one.
        assert!((sawtooth_utilisation(40.0, 0.0) - 0.75).abs() < 1e-12);
        // A queue of one bandwidth-delay product: always saturated.
        assert_eq!(sawtooth_utilisation(40.0, 40.0), 1.0);
        // Half of that, x = 1.5: 3/4 x² / (1 + (x - 1) x) = 1.6875 / 1.75.
        assert!((sawtooth_utilisation(40.0, 20.0) - 1.6875 / 1.75).abs() < 1e-12);
    }
}
