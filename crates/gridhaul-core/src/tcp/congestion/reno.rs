//! Reno (RFC 5681): slow start, congestion avoidance, and half the window after a loss, all by the
//! default methods of the trait.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// Reno.
#[derive(Debug, Clone)]
pub struct Reno {
    window: Window,
}

impl CongestionControl for Reno {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::Reno;
    const ONLY_GROWS: bool = true;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    own_window!();
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Instant;

    use super::*;

    const MSS: u32 = 1_000;

    /// A window and a threshold in segments.
    fn reno(cwnd: u32, ssthresh: u32) -> Reno {
        let stack = Stack { profile: Profile::Rfc, ..Stack::default() };
        let mut reno = Reno::new(&StackParams { mss: MSS, ..StackParams::resolve(&stack) });
        reno.window.set_ssthresh(f64::from(ssthresh * MSS));
        reno.window.set_cwnd(f64::from(cwnd * MSS));
        reno
    }

    fn segments(reno: &Reno) -> (u32, u32) {
        assert_eq!(reno.window.cwnd() % MSS, 0, "whole segments");
        (reno.window.cwnd() / MSS, reno.window.ssthresh() / MSS)
    }

    /// RFC 5681, section 4.1: "cwnd is reduced to the value of the restart window", min(IW, cwnd).
    #[test]
    fn an_idle_time_reduces_a_window_to_the_initial_one_but_does_not_raise_it() {
        for (before, after) in [(20, 10), (10, 10), (4, 4)] {
            let mut reno = reno(before, 8);
            reno.on_idle_restart(Instant::ZERO, 10 * MSS);
            assert_eq!(segments(&reno), (after, 8));
        }
    }

    /// RFC 2861, section 3.2: ssthresh = max(ssthresh, 3 * cwnd / 4). Linux computes half and a
    /// quarter of the whole segments: of 11, 5 + 2.
    #[test]
    fn three_quarters_of_an_unused_window_become_the_threshold_unless_it_is_higher() {
        for (ssthresh, kept) in [(4, 7), (7, 7), (9, 9)] {
            let mut reno = reno(11, ssthresh);
            reno.on_cwnd_unused(8 * MSS + MSS / 2);
            assert_eq!(segments(&reno), (8, kept));
        }
    }
}
