//! Acknowledgement processing: removal of acknowledged segments, round-trip measurement, loss
//! detection and window growth. `common_path.rs` handles most acknowledgements first.

use gridhaul_scenario::units::Instant;

use super::ack_event::{AckEvent, SendTimes};
use super::congestion_echo::CongestionEcho;
use super::rack_timers::TimerPurpose;
use super::retransmission_timer::WindowProbe;
use super::rtt_measurement::AckedSegments;
use super::{Sender, loss_recovery_context};
use crate::tcp::event::{Ack, DelayReport};
use crate::tcp::params::StackParams;
use crate::tcp::recovery::{CwndGrowth, Delivery, SenderRequests};
use crate::tcp::retransmission_queue::OutstandingSegment;
use crate::tcp::segment::{ClockOption, OneWayDelay, Segment, expand};

/// The response to an acknowledgement of new data.
pub(super) struct Response {
    pub growth: CwndGrowth,
    /// The retransmission timer restarts.
    pub restart_timer: bool,
    /// When the RACK reordering timer expires.
    reorder_at: Option<Instant>,
}

impl Default for Response {
    fn default() -> Self {
        Self { growth: CwndGrowth::Grow, restart_timer: true, reorder_at: None }
    }
}

impl Sender {
    /// See [`Self::handle_ack`].
    #[inline(never)]
    pub(super) fn handle_ack_general(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> bool {
        self.complete_restart(now, params);
        let Some(ack) = expand(segment.ack, isn, self.una) else { return true };
        if ack > self.next && !self.accept_window_probe_ack(now, ack) {
            return false;
        }
        if segment.clock == ClockOption::OneWayDelay
            && let Some((stamp, delay)) = segment.timestamps
            && let Some(one_way_us) = OneWayDelay::known(delay)
        {
            let sent_at = OneWayDelay::answered(now, stamp, delay);
            self.congestion.on_delay_report(&DelayReport { now, one_way_us, sent_at });
        }
        let old_window = self.peer_window;
        self.update_window(ack, segment);
        if self.sack && !segment.sack.is_empty() && self.una > 0 {
            self.process_duplicate_sack(now, ack, segment, isn, params);
        }
        if self.una == self.next {
            // Nothing is outstanding: only the window can have changed.
            if segment.sequence_len() == 0 && segment.window == old_window {
                self.end_tail_loss_probe();
            }
            if self.edge() > self.next {
                self.window_probe = WindowProbe::default();
            }
            return true;
        }
        let mut event = AckEvent {
            now,
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight: self.in_flight(),
            highest: self.queue.highest_sacked(),
            congestion_echo: self.optional.congestion_echo_mut().is_some_and(CongestionEcho::take),
            ..AckEvent::default()
        };
        if self.sack && !segment.sack.is_empty() {
            self.process_sack_blocks(now, ack, segment, isn, params, &mut event);
        }
        if self.recovery_rules().tracks_send_times && segment.clock == ClockOption::Timestamps {
            event.echo = segment.timestamps.map(|(_, echo)| echo);
        }
        if ack > self.una {
            self.on_new_ack(ack, segment, isn, event, params);
        } else if ack == self.una && self.is_duplicate(segment, old_window, &event, params) {
            self.on_duplicate(event, params);
        }
        self.check_invariants();
        true
    }

    /// Accepts the acknowledgement of a window probe: its byte now counts as sent.
    #[cold]
    fn accept_window_probe_ack(&mut self, now: Instant, ack: u64) -> bool {
        if !self.window_probe.outstanding || ack != self.next + 1 {
            return false;
        }
        self.queue.push(OutstandingSegment::window_probe(self.next, now));
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_probe();
        }
        self.next += 1;
        true
    }

    /// Updates the send window (RFC 9293, 3.10.7.4). SND.UNA takes the place of SND.WL2, and an
    /// acknowledgement of new data updates the window also if its sequence number is older than
    /// SND.WL1, as in Linux (`tcp_may_update_window`).
    #[inline]
    pub(super) fn update_window(&mut self, ack: u64, segment: &Segment) {
        let newer = segment.seq.wrapping_sub(self.window_update_seq).cast_signed() >= 0;
        if ack >= self.una && (newer || ack > self.una) {
            self.window_update_seq = segment.seq;
            self.peer_window = segment.window;
            self.peer_window_max = self.peer_window_max.max(segment.window);
        }
    }

    fn on_new_ack(
        &mut self,
        ack: u64,
        segment: &Segment,
        isn: u32,
        mut event: AckEvent,
        params: &StackParams,
    ) {
        let now = event.now;
        event.acked = ack - self.una;
        let opened = self.una == 0;
        self.recovery_active |= event.newest.is_some();
        let probe_repaired_loss = self.probe_repaired_loss(ack);
        let acked_segments = self.remove_acknowledged(ack, &mut event);
        self.una = ack;
        self.sack_ignored = false;
        self.measure_acked(&acked_segments, segment, isn, &mut event, params);
        let mut response = Response::default();
        if self.recovery_active {
            response = self.notify_recovery(now, &mut event, params);
        }
        if event.congestion_echo && self.react_to_congestion_echo(&event, params) {
            response.growth = CwndGrowth::Hold;
        }
        if probe_repaired_loss {
            let loss = loss_recovery_context!(self, now, params).loss();
            self.congestion.on_loss(&loss);
            self.congestion.on_recovered(now);
            self.note_reduction(false);
        }
        if opened {
            // RFC 5681, section 3.1: the acknowledgement of SYN does not increase the window.
            response.growth = CwndGrowth::Hold;
            self.on_opened(params);
        }
        if !self.stop_timer_if_all_acknowledged(now, params) && response.restart_timer {
            // RFC 6298, 5.3: an acknowledgement of new data restarts the timer.
            self.arm(now, now, params);
        }
        self.set_reordering_timer(now, response.reorder_at, params);
        self.window_probe = WindowProbe::default();
        self.notify_controller(&event, response.growth, params);
    }

    /// Stops the timer if all data is acknowledged (RFC 6298, 5.2), and frees the memory of a long
    /// queue. Returns whether it is.
    #[inline]
    pub(super) fn stop_timer_if_all_acknowledged(
        &mut self,
        now: Instant,
        params: &StackParams,
    ) -> bool {
        if self.una < self.next {
            return false;
        }
        (self.rto_at, self.timer_purpose) = (Instant::NEVER, TimerPurpose::Retransmission);
        if self.queue.release_spare(self.una < self.written)
            && let Some(rate) = self.optional.rate_mut()
        {
            rate.release_spare();
        }
        if params.policy.idle_since_last_ack {
            // ns-2 starts the idle time here: see `Sender::restart_after_idle`.
            self.last_sent = now;
        }
        true
    }

    /// Removes acknowledged segments from the retransmission queue.
    #[inline]
    fn remove_acknowledged(&mut self, ack: u64, event: &mut AckEvent) -> AckedSegments {
        let tracked = self.recovery_active && self.recovery_rules().tracks_send_times;
        let mut acked_segments = AckedSegments::default();
        let mut rate = self.optional.rate_mut();
        self.queue.acknowledge(ack, |sent| {
            if !sent.sacked {
                event.delivered += sent.len;
            }
            if let Some(rate) = &mut rate {
                rate.on_acknowledged(event.now, sent);
            }
            acked_segments.add(sent);
            event.retransmitted |= sent.transmits > 1;
            if tracked && !sent.sacked {
                event.on_delivered(sent, event.echo);
            }
        });
        acked_segments
    }

    /// Passes an acknowledgement of new data to the loss recovery.
    #[inline(never)]
    pub(super) fn notify_recovery(
        &mut self,
        now: Instant,
        event: &mut AckEvent,
        params: &StackParams,
    ) -> Response {
        let was_recovering = self.recovery.in_recovery();
        let lost_before = self.queue.lost_bytes();
        let mut context = loss_recovery_context!(self, now, params);
        context.duplicates = 0;
        context.ack = event.delivery();
        let growth = self.recovery.on_new_ack(&mut context, event.acked);
        let (duplicates, requests) = (context.duplicates, context.requests);
        self.duplicates = duplicates;
        if requests.reduced_for_mark {
            self.note_reduction(true);
        }
        if let Some(delivered) = requests.delivered {
            if let Some(rate) = self.optional.rate_mut() {
                rate.count_estimated(now, event.delivered, delivered);
            }
            event.delivered = delivered;
        }
        self.limited = 0;
        self.force_retransmit = requests.retransmit_now && !self.queue.is_empty();
        if requests.stop_timing {
            self.timed_at = Instant::NEVER;
        }
        event.lost = self.note_lost(lost_before);
        let recovering = self.recovery.in_recovery();
        self.recovery_active = recovering || self.recovery.is_watching() || self.duplicates > 0;
        let mut restart_timer = !was_recovering || requests.restart_timer || !recovering;
        if requests.end_backoff {
            self.arm(now, now, params);
            self.rtt.reset_backoff();
            restart_timer = false;
        }
        Response { growth, restart_timer, reorder_at: requests.reorder_at }
    }

    fn on_duplicate(&mut self, mut event: AckEvent, params: &StackParams) {
        let (now, rules) = (event.now, self.recovery_rules());
        self.duplicates += 1;
        self.recovery_active = true;
        if rules.times_sacked_segments
            && let Some(sent) = event.sacked_sent_at
        {
            // Linux measures before the loss recovery handles the acknowledgement.
            self.add_rtt_sample(sent, now, params);
            event.rtt = Some(now.since(sent.last));
        }
        let lost_before = self.queue.lost_bytes();
        let requests = self.notify_recovery_of_duplicate(now, event.delivery(), params);
        if let (Some(delivered), Some(rate)) = (requests.delivered, self.optional.rate_mut()) {
            rate.count_estimated(now, 0, delivered);
        }
        event.lost = self.note_lost(lost_before);
        if rules.times_sacked_segments {
            self.restart_timer_by_sacked(now, &event, params);
            self.set_reordering_timer(now, requests.reorder_at, params);
        }
        if event.congestion_echo {
            self.react_to_congestion_echo(&event, params);
        }
        if event.delivered > 0 {
            let grows = self.recovery.grows_by_sacked(params.dupthresh);
            let growth = if grows { CwndGrowth::Grow } else { CwndGrowth::Hold };
            self.notify_controller(&event, growth, params);
        } else {
            self.refresh_window();
        }
    }

    /// Passes a duplicate acknowledgement to the loss recovery. Returns its requests, of which
    /// those for retransmissions, timing and timer are fulfilled.
    #[inline]
    pub(super) fn notify_recovery_of_duplicate(
        &mut self,
        now: Instant,
        ack: Delivery,
        params: &StackParams,
    ) -> SenderRequests {
        let mut context = loss_recovery_context!(self, now, params);
        context.ack = ack;
        let entered = self.recovery.on_duplicate(&mut context);
        let requests = context.requests;
        self.force_retransmit = requests.retransmit_now;
        if requests.stop_timing {
            self.timed_at = Instant::NEVER;
        }
        if entered && params.policy.fast_retransmit_backs_off {
            self.rtt.back_off(params);
        }
        if requests.restart_timer {
            self.set_timer(now, now + self.rtt.rto(params), params);
        }
        self.stats.fast_retransmits += u32::from(entered);
        if entered && !requests.already_reduced || requests.reduced_for_mark {
            self.note_reduction(requests.reduced_for_mark);
        }
        requests
    }

    /// Restarts the timer if the newly sacked segments were sent before the first outstanding
    /// segment, which has been retransmitted since.
    fn restart_timer_by_sacked(&mut self, now: Instant, event: &AckEvent, params: &StackParams) {
        if let (Some(SendTimes { first, .. }), Some(rtt)) = (event.sacked_sent_at, event.rtt) {
            self.congestion.on_rtt_sample(rtt);
            if self.queue.front().is_some_and(|head| first < head.sent_at) {
                self.arm(now, now, params);
            }
        }
        if self.timer_purpose == TimerPurpose::TailLossProbe {
            // SACK reveals the loss, so no tail loss probe is needed.
            self.arm_from_first(now, params);
        }
    }

    /// Accounts newly marked losses; returns their bytes.
    pub(super) fn note_lost(&mut self, before: u64) -> u64 {
        let lost = self.queue.lost_bytes().saturating_sub(before);
        if let Some(rate) = self.optional.rate_mut() {
            rate.lost += lost;
        }
        lost
    }

    /// Notifies the controller of an acknowledgement that delivered data.
    #[inline(always)]
    pub(super) fn notify_controller(
        &mut self,
        event: &AckEvent,
        growth: CwndGrowth,
        params: &StackParams,
    ) {
        let grow = growth == CwndGrowth::Grow;
        let ack = Ack {
            in_recovery: self.in_recovery(),
            lost: event.lost,
            delivered_total: self.optional.rate().map_or(0, |rate| rate.delivered()),
            lost_total: self.optional.rate().map_or(0, |rate| rate.lost),
            rate: self.optional.rate_mut().and_then(|rate| rate.take_sample()),
            paced_until: self.paced_until(),
            ..self.ack_without_loss(event, params)
        };
        self.congestion.on_acknowledged(&ack, grow);
        self.window_limited = false;
        self.refresh_window();
    }

    /// An acknowledgement for the controller, outside recovery, without losses and delivery rates.
    #[inline(always)]
    pub(super) fn ack_without_loss(&self, event: &AckEvent, params: &StackParams) -> Ack {
        let acked = u32::try_from(event.acked).unwrap_or(u32::MAX);
        let (slow_start_credit, avoidance_credit) =
            params.byte_counting.credits(acked, event.delivered, params.mss);
        Ack {
            now: event.now,
            delivered: event.delivered,
            slow_start_credit,
            avoidance_credit,
            rtt: event.rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
            prior_in_flight: event.prior_in_flight,
            in_flight: self.in_flight(),
            una: self.una,
            next: self.next,
            window_limited: !params.grow_only_when_limited || self.window_was_limit(),
            in_recovery: false,
            lost: 0,
            delivered_total: 0,
            lost_total: 0,
            rate: None,
            paced_until: Instant::ZERO,
            mss: params.mss,
        }
    }

    /// RFC 5681, section 2, and with SACK RFC 6675, section 2: data is newly sacked and no data is
    /// acknowledged.
    fn is_duplicate(
        &self,
        segment: &Segment,
        old_window: u32,
        event: &AckEvent,
        params: &StackParams,
    ) -> bool {
        if self.sack {
            // ns-2's Sack1 counts every acknowledgement in recovery as one packet that has left the
            // pipe.
            event.delivered > 0 || params.policy.every_ack_leaves_pipe && self.in_recovery()
        } else {
            segment.sequence_len() == 0 && segment.window == old_window
        }
    }
}
