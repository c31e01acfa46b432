//! The common path: full segments, and acknowledgements of new data, while the loss recovery does
//! not process acknowledgements and no segment is sacked or a probe. One predicate replaces the
//! checks of the general path (`ack_processing.rs`, `transmit.rs`), whose result it must equal.
//!
//! It is shorter still where the congestion control only grows the window and nothing else observes
//! acknowledgements ([`Flag::GrowthOnly`]).

use gridhaul_scenario::units::Instant;

use super::ack_event::{AckEvent, SendTimes};
use super::ack_processing::Response;
use super::rack_timers::{TailLossProbe, TimerPurpose};
use super::retransmission_timer::WindowProbe;
use super::rtt_measurement::AckedSegments;
use super::{Flag, SendRange, Sender};
use crate::tcp::congestion::Controller;
use crate::tcp::params::StackParams;
use crate::tcp::recovery::{CwndGrowth, Delivery, Recovery};
use crate::tcp::retransmission_queue::OutstandingSegment;
use crate::tcp::segment::Segment;

/// Whether a stack uses the common path: it has no delivery rates, pacing or one-way delays.
pub(super) const fn applies(controller: &Controller, params: &StackParams) -> bool {
    !controller.samples_rate() && !controller.is_paced() && !params.one_way_delay
}

/// Whether the congestion control only grows the window, and no other component observes
/// acknowledgements (window validation, RACK).
pub(super) fn only_grows(
    controller: &mut Controller,
    recovery: &Recovery,
    params: &StackParams,
) -> bool {
    controller.growing_window().is_some()
        && !params.policy.validates_window
        && !matches!(recovery, Recovery::Rack(_))
}

/// Segments that an acknowledgement has removed from the retransmission queue.
#[derive(Default)]
struct Removed {
    segments: AckedSegments,
    /// Their bytes; a part of a segment does not count.
    delivered: u32,
}

impl Removed {
    #[inline]
    fn add(&mut self, sent: &OutstandingSegment) {
        self.segments.add(sent);
        self.delivered += sent.len;
    }
}

impl Sender {
    /// Handles the acknowledgement in a segment from the peer. Returns whether it is acceptable: an
    /// acknowledgement of data that was never sent is not (RFC 9293, 3.10.7.4).
    #[inline(always)]
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> bool {
        if self.flags.has(Flag::CommonPath) && self.una > 0 && segment.sack.is_empty() {
            let acked = u64::from(segment.ack.wrapping_sub(isn.wrapping_add(self.una as u32)));
            let outstanding = self.next - self.una;
            if acked == 0 {
                if self.is_common_duplicate(segment) {
                    self.handle_common_duplicate(now, segment, params);
                    return true;
                }
            } else if (!self.recovery_active || self.is_common_for_recovery())
                && acked <= outstanding
                && self.handle_common_ack(now, self.una + acked, segment, isn, params)
            {
                return true;
            }
        }
        self.handle_ack_general(now, segment, isn, params)
    }

    /// Whether the recovery counts the acknowledgement as a duplicate (RFC 5681, section 2), and
    /// nothing else observes it.
    #[inline]
    fn is_common_duplicate(&self, segment: &Segment) -> bool {
        self.is_common_for_recovery()
            && self.una < self.next
            && segment.sequence_len() == 0
            && segment.window == self.peer_window
    }

    /// Whether nothing but a loss recovery that counts duplicates and a window that only grows
    /// observes acknowledgements.
    #[inline]
    fn is_common_for_recovery(&self) -> bool {
        self.counts_duplicates_only() && self.optional.congestion_echo().is_none()
    }

    /// Whether acknowledgements have no effect but that they let the window grow or are counted as
    /// duplicates: all data is in flight that is neither acknowledged nor marked lost.
    #[inline]
    pub(super) fn counts_duplicates_only(&self) -> bool {
        self.flags.has(Flag::CommonPath) && self.flags.has(Flag::GrowthOnly) && !self.sack
    }

    /// Handles a common duplicate acknowledgement.
    #[inline(never)]
    fn handle_common_duplicate(&mut self, now: Instant, segment: &Segment, params: &StackParams) {
        self.update_window(self.una, segment);
        self.duplicates += 1;
        self.recovery_active = true;
        self.notify_recovery_of_duplicate(now, Delivery::default(), params);
        self.refresh_window();
    }

    /// See [`Connection::leave_common_path`](crate::tcp::Connection::leave_common_path).
    pub(crate) fn leave_common_path(&mut self) {
        self.flags.set(Flag::CommonPath, false);
    }

    /// The connection is open, and no loss recovery processes acknowledgements.
    #[inline]
    fn is_in_common_state(&self) -> bool {
        self.flags.has(Flag::CommonPath) && !self.recovery_active && self.una > 0
    }

    /// Handles an acknowledgement of new data, if it is a common one.
    #[inline(always)]
    fn handle_common_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> bool {
        if self.queue.sacked_bytes() > 0 {
            return false;
        }
        if self.flags.has(Flag::GrowthOnly) {
            self.on_growth_only_ack(now, ack, segment, isn, params);
            return true;
        }
        if self.tail_loss_probe != TailLossProbe::None {
            return false;
        }
        self.on_observed_ack(now, ack, segment, isn, params);
        true
    }

    /// Without [`Flag::GrowthOnly`].
    fn on_observed_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) {
        let prior_in_flight = self.in_flight();
        let removed = self.remove_unsacked(ack);
        self.update_window(ack, segment);
        let mut event = AckEvent {
            now,
            acked: ack - self.una,
            delivered: removed.delivered,
            prior_in_flight,
            ..AckEvent::default()
        };
        self.una = ack;
        self.sack_ignored = false;
        self.measure_acked(&removed.segments, segment, isn, &mut event, params);
        if !self.stop_timer_if_all_acknowledged(now, params) {
            self.restart_timer(now, params);
        }
        self.window_probe = WindowProbe::default();
        let ack = self.ack_without_loss(&event, params);
        self.congestion.on_acknowledged(&ack, true);
        self.window_limited = false;
        self.window = self.congestion.cwnd();
    }

    /// With [`Flag::GrowthOnly`]; a loss recovery under way counts duplicates.
    #[inline]
    fn on_growth_only_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) {
        let removed = self.remove_unsacked(ack);
        self.update_window(ack, segment);
        let acked = (ack - self.una) as u32;
        self.una = ack;
        self.sack_ignored = false;
        let timed = removed.segments.last_measured(params).map(SendTimes::of_one);
        self.measure(now, ack, timed, segment, isn, params);
        let response = if self.recovery_active {
            self.notify_counting_recovery(now, acked, &removed, params)
        } else {
            Response::default()
        };
        if !self.stop_timer_if_all_acknowledged(now, params) && response.restart_timer {
            // RFC 6298, 5.3.
            self.timer_purpose = TimerPurpose::Retransmission;
            self.set_timer(now, now + self.rtt.rto(params), params);
        }
        self.window_probe = WindowProbe::default();
        if let Some(window) = self.congestion.growing_window() {
            let may_grow = self.window_limited || !params.grow_only_when_limited;
            if may_grow && response.growth == CwndGrowth::Grow {
                let (slow_start, avoidance) =
                    params.byte_counting.credits(acked, removed.delivered, params.mss);
                window.grow_by(slow_start, avoidance);
            }
            self.window = window.cwnd();
        }
        self.window_limited = false;
        if self.recovery_active {
            self.refresh_window();
        }
    }

    /// Passes an acknowledgement of `acked` bytes to a loss recovery that counts duplicates.
    #[inline(never)]
    fn notify_counting_recovery(
        &mut self,
        now: Instant,
        acked: u32,
        removed: &Removed,
        params: &StackParams,
    ) -> Response {
        let mut event = AckEvent {
            now,
            acked: u64::from(acked),
            delivered: removed.delivered,
            retransmitted: removed.segments.has_retransmitted(),
            ..AckEvent::default()
        };
        self.notify_recovery(now, &mut event, params)
    }

    /// Removes acknowledged segments from the retransmission queue, where none is sacked.
    #[inline]
    fn remove_unsacked(&mut self, ack: u64) -> Removed {
        assert!(ack <= self.next, "only sent data is acknowledged");
        let Some(sent) = self.queue.acknowledge_first(ack) else {
            return self.remove_several(ack);
        };
        let mut removed = Removed::default();
        removed.add(&sent);
        removed
    }

    /// [`Self::remove_unsacked`] for several segments, or a part of one.
    #[inline(never)]
    fn remove_several(&mut self, ack: u64) -> Removed {
        let mut removed = Removed::default();
        self.queue.acknowledge(ack, |sent| removed.add(sent));
        removed
    }

    /// Whether a full segment of new data is sent next: the windows allow it, and it is not the
    /// last before FIN. Otherwise the general path decides.
    #[inline]
    pub(super) fn may_send_common_segment(&self, params: &StackParams) -> bool {
        let (out, mss) = (self.next - self.una, u64::from(params.mss));
        self.next + mss <= self.written - u64::from(self.closed)
            && self.is_in_common_state()
            && (out == 0 || out + mss <= u64::from(self.window))
            && self.duplicates == 0
            && self.queue.has_no_sacked_or_lost()
            && self.next + mss <= self.edge()
    }

    /// Sends the segment that [`Self::may_send_common_segment`] allows.
    #[inline]
    pub(super) fn send_common_segment(&mut self, now: Instant, params: &StackParams) -> SendRange {
        let (out, mss) = (self.next - self.una, u64::from(params.mss));
        if out == 0 {
            self.begin_flight(now, params);
        }
        let range = SendRange { start: self.next, len: params.mss };
        self.queue.push_sent(range.start, range.len, now);
        self.next += mss;
        self.start_timing(now, params);
        self.stats.segments += 1;
        self.last_sent = now;
        let full = out + 2 * mss > u64::from(self.window);
        if self.flags.has(Flag::GrowthOnly) {
            self.window_limited |= full;
        } else {
            self.congestion.on_sent(now, self.next, out + mss);
        }
        if self.rto_at == Instant::NEVER {
            // RFC 6298, 5.1.
            self.arm(now, now, params);
        }
        if !self.flags.has(Flag::GrowthOnly) {
            self.postpone_tail_loss_probe(now, params);
            self.note_cwnd_usage(now, full, params);
        }
        let filled = full && self.has_full_segment(params) || self.next >= self.end();
        self.flags.set(Flag::WindowFilled, filled);
        range
    }

    /// Whether another full segment is written and within the peer's window.
    #[inline]
    pub(super) fn has_full_segment(&self, params: &StackParams) -> bool {
        let end = self.next + u64::from(params.mss);
        end <= self.written.min(self.una + u64::from(self.peer_window))
    }

    /// Whether the last segment has filled the congestion window or was the last one of the data,
    /// so that no segment can be sent now. False where that is not known.
    #[inline]
    pub(crate) fn has_filled_window(&self) -> bool {
        self.flags.has(Flag::WindowFilled) && !self.flags.has(Flag::Closing)
    }
}
