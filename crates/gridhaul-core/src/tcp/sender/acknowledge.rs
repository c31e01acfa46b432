//! Acknowledgements: what they free, measure, reveal and allow.

use gridhaul_scenario::units::{Duration, Instant};

use super::tail::Purpose;
use super::timer::Probe;
use super::{Sender, loss_recovery_context};
use crate::tcp::congestion::Ack;
use crate::tcp::params::{Growth, StackParams};
use crate::tcp::recovery::{Delivered, LossRecoveryContext, CwndGrowth};
use crate::tcp::segment::{ClockOption, OneWayDelay, Segment, expand};
use crate::tcp::sent::{Sent, StillLost};

/// What one acknowledgement has delivered and found.
#[derive(Default)]
struct AckEvent {
    now: Instant,
    /// The least round trip before it.
    least: Duration,
    /// Bytes acknowledged in order.
    acked: u64,
    /// Bytes delivered, selectively acknowledged ones included.
    delivered: u32,
    /// Bytes newly found lost.
    lost: u64,
    prior_in_flight: u64,
    rtt: Option<Duration>,
    /// For RACK: of the segments delivered, the one that was sent last; when the first and the last
    /// newly sacked ones were sent that measure a round trip; the time that is echoed.
    newest: Option<Delivered>,
    /// End of the highest range that was sacked before.
    highest: u64,
    sacked: Option<(Instant, Instant)>,
    echo: Option<u32>,
}

impl AckEvent {
    fn on_sacked(&mut self, sent: &Sent) {
        // What arrives out of order echoes an older time (RFC 7323, section 4.3).
        self.on_delivered(sent, None);
        if sent.transmits == 1 {
            let first = self.sacked.map_or(sent.sent_at, |(first, _)| first);
            self.sacked = Some((first, sent.sent_at));
        }
    }

    /// RFC 8985, section 6.2, step 2: a repetition that was sent after the time that is echoed, or less
    /// than the least round trip ago, tells nothing: it was the first copy that has arrived.
    fn on_delivered(&mut self, sent: &Sent, echo: Option<u32>) {
        let sent_ms = sent.sent_at.as_nanos() / 1_000_000;
        let first_copy = echo.is_some_and(|echo| u64::from(echo) < sent_ms)
            || self.now.since(sent.sent_at) < self.least;
        if sent.transmits == 1 || !first_copy {
            self.newest = Some(Delivered::of(sent, self.highest).later(self.newest));
        }
    }
}

impl Sender {
    /// Handles the acknowledgement of a segment from the other end. Returns whether it is
    /// acceptable: one of something that was never sent is not (RFC 9293, 3.10.7.4).
    #[inline]
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> bool {
        let Some(ack) = expand(segment.ack, isn, self.una) else { return true };
        if ack > self.next && !self.accept_probe(now, ack) {
            return false;
        }
        if segment.clock == ClockOption::OneWayDelay
            && let Some((_, delay)) = segment.timestamps
            && let Some(delay) = OneWayDelay::known(delay)
        {
            self.congestion.on_one_way_delay(delay);
        }
        let old_window = self.peer_window;
        self.update_window(ack, segment);
        if self.una == self.next {
            // Nothing is out: only the window can have changed.
            if self.is_rack() && segment.sequence_len() == 0 && segment.window == old_window {
                self.forgive_probe();
            }
            if self.edge() > self.next {
                self.probe = Probe::default();
            }
            return true;
        }
        let mut event = AckEvent {
            now,
            least: self.rtt.least(),
            prior_in_flight: self.in_flight(),
            highest: self.queue.highest_sacked(),
            ..AckEvent::default()
        };
        if self.sack && !segment.sack.is_empty() {
            self.take_sacks(now, ack, segment, isn, params, &mut event);
        }
        if self.is_rack() && segment.clock == ClockOption::Timestamps {
            event.echo = segment.timestamps.map(|(_, echo)| echo);
        }
        if ack > self.una {
            self.on_new_ack(now, ack, segment, isn, event, params);
        } else if ack == self.una && self.is_duplicate(segment, old_window, &event, params) {
            self.on_duplicate(now, event, params);
        }
        true
    }

    /// An acknowledgement of the probe of a closed window: the byte counts as sent after all.
    #[cold]
    fn accept_probe(&mut self, now: Instant, ack: u64) -> bool {
        if !self.probe.out || ack != self.next + 1 {
            return false;
        }
        self.queue.push(Sent::probe(self.next, now));
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_probe();
        }
        self.next += 1;
        true
    }

    /// RFC 9293, 3.10.7.4: the window of the segment that is newest by SND.WL1 and SND.WL2.
    #[inline]
    fn update_window(&mut self, ack: u64, segment: &Segment) {
        let newer = segment.seq.wrapping_sub(self.window_from).cast_signed() >= 0;
        if ack >= self.una && (newer || ack > self.una) {
            self.window_from = segment.seq;
            self.peer_window = segment.window;
            self.peer_window_max = self.peer_window_max.max(segment.window);
        }
    }

    /// ns-2 empties its scoreboard with every acknowledgement of new data outside of recovery, ignoring
    /// what that reports, and after a timeout uses reports again from the next one on.
    #[cold]
    fn take_sacks(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
        event: &mut AckEvent,
    ) {
        if params.forget_sack_on_timeout && !self.in_recovery() {
            if ack > self.una || self.sack_ignored {
                return;
            }
            // ns-2 goes back all the way after a timeout: over what has arrived, too.
            self.mark_sacked(now, segment, isn, event, StillLost::Keep);
            return;
        }
        self.mark_sacked(now, segment, isn, event, StillLost::Clear);
    }

    fn mark_sacked(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        event: &mut AckEvent,
        lost: StillLost,
    ) {
        let mut covered = 0;
        for &(left, right) in segment.sack.as_slice() {
            let bounds = (expand(left, isn, self.una), expand(right, isn, self.una));
            let (Some(left), Some(right)) = bounds else { continue };
            // Blocks below the cumulative point (RFC 2883) or above what was sent say nothing new.
            if left < right && right > self.una && right <= self.next {
                let mut rate = self.optional.rate_mut();
                covered += self.queue.sack(left.max(self.una), right, lost, |index, sent| {
                    if let Some(rate) = &mut rate {
                        rate.on_sacked(now, index, sent);
                    }
                    event.on_sacked(sent);
                });
            }
        }
        event.delivered = u32::try_from(covered).unwrap_or(u32::MAX);
    }

    fn on_new_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        mut event: AckEvent,
        params: &StackParams,
    ) {
        event.acked = ack - self.una;
        let opened = self.una == 0;
        let (mut fresh, mut oldest): (Option<Instant>, Option<Instant>) = (None, None);
        let mut repeated = false;
        self.recovery_active |= event.newest.is_some();
        let watched = self.is_rack() && self.recovery_active;
        let probe_repaired = self.is_rack() && self.probe_repaired(ack);
        let mut rate = self.optional.rate_mut();
        let mut delivered = event.delivered;
        self.queue.acknowledge(ack, |sent| {
            if !sent.sacked {
                delivered += sent.len;
            }
            if let Some(rate) = &mut rate {
                rate.on_acknowledged(now, sent);
            }
            // Karn: what was sent twice measures nothing; what was sacked was measured too late.
            fresh = (sent.transmits == 1 && !sent.sacked).then_some(sent.sent_at);
            repeated |= sent.transmits > 1;
            oldest = oldest.or(fresh);
            if watched && !sent.sacked {
                event.on_delivered(sent, event.echo);
            }
        });
        event.delivered = delivered;
        self.una = ack;
        self.sack_ignored = false;
        let timed = if self.is_rack() {
            // Linux times the first segment that is acknowledged, so that a delayed acknowledgement
            // counts in full; if some were sent twice, the first that is sacked.
            let last = event.sacked.map(|(_, last)| last).or(fresh);
            let first = oldest.filter(|_| !repeated).or(event.sacked.map(|(first, _)| first));
            first.map(|first| (first, last.unwrap_or(first)))
        } else {
            fresh.map(|sent_at| (sent_at, sent_at))
        };
        let measured = self.measure(now, ack, timed, segment, isn, params);
        // Controllers that measure get every round trip, however the timeout is estimated; in Linux those
        // that timestamps tell, too.
        let newest = if self.is_rack() { measured } else { fresh };
        if let Some(sent_at) = newest {
            let rtt = now.since(sent_at);
            event.rtt = Some(rtt);
            self.congestion.on_measured(rtt);
        }
        let mut growth = CwndGrowth::Grow;
        let (mut restart, mut reorder_at) = (true, None);
        if self.recovery_active {
            (growth, restart, reorder_at) = self.consult(now, &mut event, params);
        }
        if probe_repaired {
            let loss = loss_recovery_context!(self, now, params).loss();
            self.congestion.on_loss(&loss);
            self.congestion.on_recovered(now);
        }
        if opened {
            // RFC 5681, section 3.1: the acknowledgement of SYN does not open the window.
            growth = CwndGrowth::Hold;
            self.on_opened(params);
        }
        if self.una == self.next {
            (self.rto_at, self.purpose) = (Instant::NEVER, Purpose::Timeout);
            if params.ns2_recovery {
                // ns-2's timer runs on from here: see `Sender::restart_after_idle`.
                self.last_sent = now;
            }
        } else if restart {
            // RFC 6298, 5.3: an acknowledgement of new data restarts the timer.
            self.arm(now, now, params);
        }
        self.watch_reordering(now, reorder_at, params);
        self.probe = Probe::default();
        self.tell(now, &event, growth, params);
    }

    /// Lets the recovery look at an acknowledgement of new data. Returns whether the window may
    /// grow, and whether the retransmission timer starts anew.
    fn consult(
        &mut self,
        now: Instant,
        event: &mut AckEvent,
        params: &StackParams,
    ) -> (CwndGrowth, bool, Option<Instant>) {
        let was_recovering = self.recovery.in_recovery();
        let lost_before = self.queue.lost_bytes();
        let mut context = loss_recovery_context!(self, now, params);
        context.duplicates = 0;
        (context.delivered, context.newest, context.echo) = (event.delivered, event.newest, event.echo);
        let growth = self.recovery.on_new_ack(&mut context, event.acked);
        let LossRecoveryContext { duplicates, force_retransmit, restart_timer, .. } = context;
        let LossRecoveryContext { end_backoff, stop_timing, reorder_at, .. } = context;
        self.duplicates = duplicates;
        self.limited = 0;
        self.force_retransmit = force_retransmit && !self.queue.is_empty();
        if stop_timing {
            self.timed_at = Instant::NEVER;
        }
        event.lost = self.note_lost(lost_before);
        let recovering = self.recovery.in_recovery();
        self.recovery_active = recovering || self.recovery.is_watching() || self.duplicates > 0;
        if end_backoff {
            self.arm(now, now, params);
            self.rtt.reset_backoff();
            return (growth, false, reorder_at);
        }
        (growth, !was_recovering || restart_timer || !recovering, reorder_at)
    }

    fn on_duplicate(&mut self, now: Instant, mut event: AckEvent, params: &StackParams) {
        self.duplicates += 1;
        self.recovery_active = true;
        if self.is_rack()
            && let Some((first, last)) = event.sacked
        {
            // What was sacked measures round trips as well, before the recovery looks (Linux).
            self.take_round_trip((first, last), now, params);
            event.rtt = Some(now.since(last));
        }
        let lost_before = self.queue.lost_bytes();
        let mut context = loss_recovery_context!(self, now, params);
        (context.delivered, context.newest, context.echo) = (event.delivered, event.newest, event.echo);
        let entered = self.recovery.on_duplicate(&mut context);
        let LossRecoveryContext { force_retransmit, restart_timer, stop_timing, reorder_at, .. } = context;
        self.force_retransmit = force_retransmit;
        event.lost = self.note_lost(lost_before);
        if stop_timing {
            self.timed_at = Instant::NEVER;
        }
        if entered && params.vegas_timer {
            self.rtt.back_off(params);
        }
        if restart_timer {
            self.rto_at = now + self.rtt.rto(params);
        }
        if self.is_rack() {
            self.time_duplicate(now, &event, params);
            self.watch_reordering(now, reorder_at, params);
        }
        self.stats.fast_retransmits += u32::from(entered);
        if event.delivered > 0 {
            self.tell(now, &event, CwndGrowth::Hold, params);
        } else {
            self.refresh_window();
        }
    }

    /// For RACK: the timer starts anew if what was sacked was sent before the first segment that is out,
    /// which has been repeated since.
    fn time_duplicate(&mut self, now: Instant, event: &AckEvent, params: &StackParams) {
        if let (Some((first, _)), Some(rtt)) = (event.sacked, event.rtt) {
            self.congestion.on_measured(rtt);
            if self.queue.front().is_some_and(|head| first < head.sent_at) {
                self.arm(now, now, params);
            }
        }
        if self.purpose == Purpose::Probe {
            // What is missing shows by itself now.
            self.arm_from_first(now, params);
        }
    }

    /// What counts as lost is more than it was. Returns by how much.
    pub(super) fn note_lost(&mut self, before: u64) -> u64 {
        let lost = self.queue.lost_bytes().saturating_sub(before);
        if let Some(rate) = self.optional.rate_mut() {
            rate.lost += lost;
        }
        lost
    }

    /// Tells the controller about an acknowledgement that delivered data.
    #[inline(always)]
    fn tell(&mut self, now: Instant, event: &AckEvent, growth: CwndGrowth, params: &StackParams) {
        let grow = growth == CwndGrowth::Grow && event.acked > 0;
        let acked = u32::try_from(event.acked).unwrap_or(u32::MAX);
        let (slow_start_credit, avoidance_credit) = match params.growth {
            Growth::PerAck => (params.mss, params.mss),
            Growth::PerAckedUpToOne => (acked.min(params.mss), params.mss),
            Growth::PerAcked => (event.delivered, event.delivered),
        };
        let ack = Ack {
            now,
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
            in_recovery: self.in_recovery(),
            lost: event.lost,
            delivered_total: self.optional.rate().map_or(0, |rate| rate.delivered()),
            lost_total: self.optional.rate().map_or(0, |rate| rate.lost),
            rate: self.optional.rate_mut().and_then(|rate| rate.take_sample()),
            paced_until: self.paced_until(),
            mss: params.mss,
        };
        self.congestion.on_acknowledged(&ack, grow);
        self.window_limited = false;
        self.refresh_window();
    }

    #[inline]
    fn window_was_limit(&self) -> bool {
        self.optional.usage().map_or(self.window_limited, |usage| {
            usage.allows_growth(self.congestion.cwnd(), self.congestion.ssthresh())
        })
    }

    /// Returns when the segment was sent that measures the way, if one does.
    #[inline]
    fn measure(
        &mut self,
        now: Instant,
        ack: u64,
        timed: Option<(Instant, Instant)>,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> Option<Instant> {
        let sent = if params.time_every_segment {
            // A segment sent twice is measured by the timestamp that the other end echoes
            // (RFC 7323, section 4), with its resolution of a millisecond.
            timed.or_else(|| {
                let (value, echo) = segment.timestamps?;
                let sent = if segment.clock == ClockOption::OneWayDelay {
                    OneWayDelay::answered(now, (value, echo))
                } else {
                    let echoed = Instant::from_nanos(u64::from(echo) * 1_000_000);
                    // Zero stands for no echo; but Linux, whose clock begins anywhere, has the round
                    // trip of SYN in any case.
                    let known = echo > 0 || self.is_rack() && ack == 1;
                    (known && echoed <= now).then_some(echoed)
                };
                sent.map(|sent| (sent, sent))
            })
        } else {
            let covered = (ack as u32).wrapping_sub(self.timed_end).cast_signed() >= 0;
            (self.timed_at != Instant::NEVER && covered).then_some((self.timed_at, self.timed_at))
        };
        let sent = sent?;
        self.timed_at = Instant::NEVER;
        // Only the position of the clock's ticks depends on the phase.
        let phase = params.clock_phase(isn);
        self.take_round_trip((sent.0 + phase, sent.1 + phase), now + phase, params);
        Some(sent.1)
    }

    /// The first segment that an acknowledgement measures makes the timeout, so that the delay of the
    /// acknowledgement counts; the last one tells the way.
    #[inline]
    fn take_round_trip(
        &mut self,
        (first, last): (Instant, Instant),
        now: Instant,
        params: &StackParams,
    ) {
        self.rtt.reset_backoff();
        self.rtt.note_least(now.since(last));
        let rtt = self.rtt.measure((first, now), (self.una, self.next), params);
        self.stats.rtt_sum_ns += rtt.as_nanos();
        self.stats.rtt_count += 1;
    }

    /// RFC 5681, section 2, and with SACK RFC 6675, section 2: data newly sacked and nothing acknowledged.
    fn is_duplicate(
        &self,
        segment: &Segment,
        old_window: u32,
        event: &AckEvent,
        params: &StackParams,
    ) -> bool {
        if self.sack {
            // ns-2's Sack1 takes every acknowledgement in recovery as one packet out of the pipe.
            event.delivered > 0 || params.ns2_recovery && self.in_recovery()
        } else {
            segment.sequence_len() == 0 && segment.window == old_window
        }
    }
}
