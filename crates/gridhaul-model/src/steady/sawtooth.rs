//! Reno alone on a link whose queue overflows: the sawtooth between half the full pipe and the
//! full pipe.
//!
//! Lakshman and Madhow, "The Performance of TCP/IP for Networks with High Bandwidth-Delay Products
//! and Random Loss" (1997), section III, congestion avoidance without random loss.

/// Share of the link that one Reno flow uses. `pipe` is what the empty path holds, `queue` what may
/// wait in front of the link, both in segments.
///
/// The window runs from half of `pipe + queue` up to it. While it is below the pipe, a round takes
/// the bare round trip and the link is not full; above, the link is full. A queue as large as the
/// pipe keeps the link busy.
#[must_use]
pub fn sawtooth_utilisation(pipe: f64, queue: f64) -> f64 {
    let top = pipe + queue;
    let bottom = top / 2.0;
    if bottom >= pipe {
        return 1.0;
    }
    // In round trips of the empty path; one segment more for each round.
    let filling = pipe - bottom;
    let sent_filling = (pipe * pipe - bottom * bottom) / 2.0;
    // Full link: the time is what is sent over the rate, pipe segments for each round trip.
    let sent_full = (top * top - pipe * pipe) / 2.0;
    let time = filling + sent_full / pipe;
    (sent_filling + sent_full) / pipe / time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        // No queue: the mean of a sawtooth from one half to one.
        assert!((sawtooth_utilisation(40.0, 0.0) - 0.75).abs() < 1e-12);
        // As much queue as pipe: always full.
        assert_eq!(sawtooth_utilisation(40.0, 40.0), 1.0);
        // Half of it, x = 1.5: 3/4 x² / (1 + (x - 1) x) = 1.6875 / 1.75.
        assert!((sawtooth_utilisation(40.0, 20.0) - 1.6875 / 1.75).abs() < 1e-12);
    }
}
