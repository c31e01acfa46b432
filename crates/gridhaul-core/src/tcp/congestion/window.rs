//! The congestion window and its arithmetic (RFC 5681), shared by Reno and related algorithms.

use crate::coverage_mark::mark;
use crate::rounding::floor;
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;
use crate::tcp::rules::{AlgorithmRules, HalvingBasis};

/// Congestion window and slow-start threshold.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// In bytes, with the fractions that congestion avoidance accumulates.
    cwnd: f64,
    ssthresh: f64,
    mss: u32,
    whole_ssthresh: bool,
    /// Half of the window keeps its fraction of a byte.
    halves_fraction: bool,
    /// The window is a whole number of segments; its fraction is the progress towards the next.
    whole_segments: bool,
    rules: AlgorithmRules,
}

impl Window {
    /// The window at the start of a connection.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        Self {
            cwnd: f64::from(params.initial_window),
            ssthresh: f64::from(params.initial_ssthresh),
            mss: params.mss,
            whole_ssthresh: params.whole_ssthresh,
            halves_fraction: params.halving == HalvingBasis::Window,
            whole_segments: params.policy.whole_segment_window,
            rules: params.policy.algorithms,
        }
    }

    /// Congestion window in whole bytes.
    #[inline]
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }
    /// Congestion window with its fraction.
    #[inline]
    #[must_use]
    pub const fn cwnd_f64(&self) -> f64 {
        self.cwnd
    }
    /// Slow-start threshold in whole bytes.
    #[inline]
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh as u32
    }
    /// Full segment in bytes.
    #[must_use]
    #[inline]
    pub const fn mss(&self) -> f64 {
        self.mss as f64
    }
    /// Implementation whose rules apply.
    #[inline]
    #[must_use]
    pub const fn rules(&self) -> AlgorithmRules {
        self.rules
    }
    /// Whether the window is below the slow-start threshold.
    #[inline]
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Sets the congestion window, to at least one segment.
    #[inline]
    pub fn set_cwnd(&mut self, bytes: f64) {
        self.cwnd = bytes.max(self.mss());
    }
    /// Sets the slow-start threshold, to at least two segments (RFC 5681, equation 4).
    pub fn set_ssthresh(&mut self, bytes: f64) {
        // An unlimited threshold, as before the first loss, stays unlimited when a reduction is
        // undone.
        let is_none = bytes >= f64::from(u32::MAX);
        let bytes = if self.whole_ssthresh && !is_none { self.rounded_down(bytes) } else { bytes };
        self.ssthresh = bytes.max(2.0 * self.mss());
    }

    /// Segments become smaller. A window in bytes stays the same (RFC 1191, section 6.4: "a
    /// retransmission caused by a Datagram Too Big message should not change the congestion
    /// window"); one that counts segments keeps their number (Linux, `tcp_simple_retransmit`).
    pub fn lower_mss(&mut self, mss: u32) {
        let ratio = f64::from(mss) / self.mss();
        self.mss = mss;
        if self.whole_segments {
            self.cwnd *= ratio;
            if self.ssthresh < f64::from(u32::MAX) {
                self.ssthresh *= ratio;
            }
        }
        self.set_cwnd(self.cwnd);
    }

    /// Slow start or congestion avoidance (RFC 5681, section 3.1).
    #[inline]
    pub fn grow(&mut self, ack: &Ack) {
        if ack.window_limited {
            self.grow_by(ack.slow_start_credit, ack.avoidance_credit);
        }
    }

    /// [`Self::grow`] for a window that limited the sender, by credits as in [`Ack`].
    #[inline]
    pub fn grow_by(&mut self, slow_start_credit: u32, avoidance_credit: u32) {
        if self.in_slow_start() {
            // Equation 2: cwnd += min(N, SMSS), or the credit by the stack's byte counting. An
            // acknowledgement of many segments exceeds the threshold by no more than one segment.
            let credit = f64::from(slow_start_credit);
            self.cwnd += credit.min((self.ssthresh - self.cwnd).max(self.mss()));
        } else {
            // Equation 3: cwnd += SMSS * SMSS / cwnd.
            let cwnd = if self.whole_segments { self.rounded_down(self.cwnd) } else { self.cwnd };
            self.cwnd += f64::from(avoidance_credit) * self.mss() / cwnd;
        }
    }

    /// After a loss: ssthresh to half the window (equation 4) and cwnd to ssthresh.
    pub fn halve(&mut self, loss: &Loss) {
        // ns-2 halves the fractional window: a byte more or less changes the time of later
        // transmissions.
        let exact = self.halves_fraction && loss.window == self.cwnd();
        let half = if exact { self.cwnd } else { f64::from(loss.window) } / 2.0;
        self.set_ssthresh(half);
        self.set_cwnd(if self.whole_segments { self.ssthresh } else { half });
    }

    /// After a congestion mark: ssthresh to half the data in flight and cwnd to ssthresh (RFC 3168,
    /// section 6.1.2).
    pub fn halve_flight(&mut self, flight: u32) {
        self.set_ssthresh(f64::from(flight) / 2.0);
        self.set_cwnd(self.ssthresh);
    }

    /// After a timeout: ssthresh to half the window and cwnd to one segment.
    pub fn collapse(&mut self, loss: &Loss) {
        mark!(repeated_timeout_keeps_threshold if loss.timed_out_before);
        if !loss.timed_out_before {
            self.set_ssthresh(f64::from(loss.window) / 2.0);
        }
        self.cwnd = self.mss();
    }

    /// Rounds down to whole segments, at least one; in bytes.
    #[inline]
    fn rounded_down(&self, bytes: f64) -> f64 {
        (floor(bytes / self.mss()) * self.mss()).max(self.mss())
    }

    /// Deducts bytes, down to one segment.
    pub fn deflate(&mut self, bytes: u32) {
        self.set_cwnd(self.cwnd - f64::from(bytes));
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::super::samples;
    use super::*;
    use crate::coverage_mark::covers;

    /// RFC 5681, section 3.1: "the value of ssthresh is held constant" if the segment has timed out
    /// before.
    #[test]
    fn a_repeated_timeout_keeps_the_threshold() {
        covers!(repeated_timeout_keeps_threshold);
        let params = StackParams::resolve(&Stack::default());
        let mut window = Window::new(&params);
        let (mss, segments) = (params.mss, |count: u32| count * params.mss);
        window.collapse(&samples::loss(mss, 20));
        assert_eq!((window.cwnd(), window.ssthresh()), (mss, segments(10)));
        window.collapse(&Loss { timed_out_before: true, ..samples::loss(mss, 4) });
        assert_eq!((window.cwnd(), window.ssthresh()), (mss, segments(10)));
    }

    #[test]
    fn an_unlimited_threshold_is_not_rounded_to_whole_segments() {
        for profile in [Profile::Rfc, Profile::Linux, Profile::Ns2] {
            let params = StackParams::resolve(&Stack { profile, ..Stack::default() });
            let mut window = Window::new(&params);
            window.set_ssthresh(f64::from(u32::MAX));
            assert_eq!(window.ssthresh(), u32::MAX, "{profile:?}");
            window.set_ssthresh(10.5 * window.mss());
            let segments = if params.whole_ssthresh { 10.0 } else { 10.5 };
            assert_eq!(f64::from(window.ssthresh()), segments * window.mss(), "{profile:?}");
        }
    }

    /// A window of 10 kB and a threshold of 50 kB, with segments of 1,000 bytes.
    fn window(halving: HalvingBasis) -> Window {
        let params = StackParams::resolve(&Stack { profile: Profile::Rfc, ..Stack::default() });
        let mut window = Window::new(&StackParams { mss: 1_000, halving, ..params });
        window.set_ssthresh(50_000.0);
        window.set_cwnd(10_000.0);
        window
    }

    #[test]
    fn an_acknowledgement_of_many_segments_grows_the_window_up_to_the_threshold() {
        let mut window = window(HalvingBasis::Flight);
        window.grow_by(5_000, 0);
        assert_eq!(window.cwnd(), 15_000);
        window.set_cwnd(48_000.0);
        window.grow_by(5_000, 0);
        assert_eq!(window.cwnd(), 50_000);
        window.set_cwnd(49_500.0);
        window.grow_by(5_000, 0);
        assert_eq!(window.cwnd(), 50_500, "beyond the threshold by less than a segment");
    }

    /// RFC 5681, equation 4: `ssthresh = max (FlightSize / 2, 2*SMSS)`.
    #[test]
    fn the_threshold_is_at_least_two_segments_and_the_window_one() {
        let mut window = window(HalvingBasis::Flight);
        window.set_ssthresh(1_999.0);
        assert_eq!(window.ssthresh(), 2_000);
        window.set_ssthresh(2_001.0);
        assert_eq!(window.ssthresh(), 2_001);
        window.set_cwnd(999.0);
        assert_eq!(window.cwnd(), 1_000);
    }

    /// RFC 6582, section 3.2, step 5: "Deflate the congestion window by the amount of new data
    /// acknowledged".
    #[test]
    fn deflation_deducts_bytes_down_to_a_segment() {
        let mut window = window(HalvingBasis::Flight);
        window.deflate(2_000);
        assert_eq!(window.cwnd(), 8_000);
        window.deflate(7_999);
        assert_eq!(window.cwnd(), 1_000);
    }

    #[test]
    fn a_congestion_mark_halves_the_data_in_flight() {
        let mut window = window(HalvingBasis::Flight);
        window.halve_flight(16_000);
        assert_eq!((window.cwnd(), window.ssthresh()), (8_000, 8_000));
    }

    /// ns-2 halves its window of fractions of a segment.
    #[test]
    fn only_half_of_the_own_window_keeps_a_fraction_of_a_byte() {
        let halved = |halving, reduced: u32| {
            let mut window = window(halving);
            window.set_cwnd(10_001.5);
            window.halve(&Loss { window: reduced, ..samples::loss(1_000, 10) });
            window.cwnd_f64()
        };
        assert_eq!(halved(HalvingBasis::Window, 10_001), 5_000.75);
        assert_eq!(halved(HalvingBasis::Window, 8_000), 4_000.0, "the reduced window is another");
        assert_eq!(halved(HalvingBasis::Flight, 10_001), 5_000.5);
    }
}
