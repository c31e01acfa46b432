//! The reordering window (RFC 8985, section 6.2, step 4): the time by which a segment may arrive
//! later than a segment that was sent after it, before it counts as lost.

use gridhaul_scenario::units::{Duration, Instant};

use crate::coverage_mark::mark;
use crate::tcp::retransmission_queue::DeliveredSegment;

/// The window as a multiple of a quarter of the minimum RTT.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReorderingWindow {
    /// `RACK.reordering_seen`.
    pub reordering_seen: bool,
    /// Largest number of segments by which one was late (Linux, `reordering`).
    degree: u32,
    /// `RACK.reo_wnd_mult`.
    multiplier: u8,
    /// `RACK.reo_wnd_persist`: recoveries after which the multiplier is one again.
    persists: u8,
    /// The peer has reported a duplicate since the window was adapted.
    duplicate_reported: bool,
    /// When the window was widened last. Where Linux compares numbers of delivered segments
    /// (`rack.last_delivered`), the send time of the newest delivered segment shows as well
    /// whether a round trip has passed since.
    widened_at: Instant,
}

/// Recoveries without an undo for which a widened window is kept: RFC 8985, section 6.2, step 4:
/// "RACK.reo_wnd_persist = 16" (Linux, `TCP_RACK_RECOVERY_THRESH`).
const PERSISTENCE: u8 = 16;

/// Linux, the default of `tcp_max_reordering`.
const DEGREE_MAX: u64 = 300;

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self {
            reordering_seen: false,
            degree: 0,
            multiplier: 1,
            persists: 0,
            duplicate_reported: false,
            widened_at: Instant::ZERO,
        }
    }
}

impl ReorderingWindow {
    /// The window for these estimates of the round trip.
    pub(super) fn duration(&self, min_rtt: Duration, srtt: Option<Duration>) -> Duration {
        let quarter = Duration::from_nanos(min_rtt.as_nanos() / 4);
        (quarter * u64::from(self.multiplier)).min(srtt.unwrap_or_default())
    }

    /// The network has reordered by so many bytes (Linux, `tcp_check_sack_reordering`).
    pub(super) fn on_reordered(&mut self, bytes: u64, mss: u32) {
        self.reordering_seen = true;
        let segments = bytes.div_ceil(u64::from(mss.max(1))).min(DEGREE_MAX);
        self.degree = self.degree.max(segments as u32);
    }

    /// Whether the network reorders by more than `dupthresh` segments.
    pub(super) const fn exceeds(&self, dupthresh: u32) -> bool {
        self.degree > dupthresh
    }

    /// The peer has received a segment twice: it was probably retransmitted too early.
    pub(super) fn on_duplicate(&mut self) {
        self.duplicate_reported = true;
    }

    /// Whether the next acknowledgement of data may change the window.
    pub(super) const fn awaits_delivery(&self) -> bool {
        self.duplicate_reported
    }

    /// Widens the window after a duplicate, at most once per round trip, and narrows it when it was
    /// wide for sixteen recoveries (Linux, `tcp_rack_update_reo_wnd`).
    pub(super) fn on_delivered(&mut self, newest: &DeliveredSegment, now: Instant) {
        // A duplicate within the round trip of the last change may be an effect of the window
        // before it.
        if newest.sent_at < self.widened_at {
            self.duplicate_reported = false;
        }
        if self.duplicate_reported {
            mark!(rack_widens_reordering_window);
            self.multiplier = self.multiplier.saturating_add(1);
            self.duplicate_reported = false;
            self.widened_at = now;
            self.persists = PERSISTENCE;
        } else if self.persists == 0 {
            self.multiplier = 1;
        }
    }

    /// A recovery has ended, and its reduction was not undone.
    pub(super) fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
    }
}
