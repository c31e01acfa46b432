//! The sending half: what may be sent, when, and what is sent again.

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use super::congestion::{Ack, Controller, Loss};
use super::params::{Growth, StackParams};
use super::rate::RateAccount;
use super::recovery::{Recovery, Scene, Verdict, halving_window};
use super::rtt::RttEstimator;
use super::segment::{Segment, expand};
use super::sent::{Sent, SentQueue};

/// Counters of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderStats {
    /// Segments with data, repeats included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Losses found by acknowledgements.
    pub fast_retransmits: u64,
    /// Times the retransmission timer fired.
    pub timeouts: u64,
    /// Sum of measured round trips in nanoseconds, and their number.
    pub rtt_sum_ns: u64,
    /// Number of measured round trips.
    pub rtt_count: u64,
}

/// A stretch of the stream to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub start: u64,
    /// Sequence space, SYN and FIN included.
    pub len: u32,
}

/// The sending half of a connection. Positions are 64-bit stream positions: 0 is SYN, data begins
/// at 1, FIN follows the last byte.
#[derive(Debug, Clone)]
pub struct Sender {
    una: u64,
    next: u64,
    /// Right edge of the window that the other end offers.
    edge: u64,
    peer_window: u32,
    /// Position after the last byte that the application has written.
    written: u64,
    /// Position of FIN, once the application has closed.
    fin: Option<u64>,
    duplicates: u32,
    queue: SentQueue,
    rtt: RttEstimator,
    rate: RateAccount,
    congestion: Controller,
    recovery: Recovery,
    force_retransmit: bool,
    /// End of the segment that is being timed and when it was sent, where one at a time is.
    timed: Option<(u64, Instant)>,
    rto_at: Instant,
    persist: u32,
    probe_due: bool,
    paced_until: Instant,
    last_sent: Instant,
    /// Whether the other end sends selective acknowledgements and the recovery uses them.
    sack: bool,
    /// Whether the window held data back since the last acknowledgement.
    window_limited: bool,
    stats: SenderStats,
}

impl Sender {
    /// A sender that has sent nothing, not even SYN.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        Self {
            una: 0,
            next: 0,
            edge: 1,
            peer_window: params.mss,
            written: 1,
            fin: None,
            duplicates: 0,
            queue: SentQueue::default(),
            rtt: RttEstimator::new(),
            rate: RateAccount::default(),
            congestion: Controller::new(params),
            recovery: Recovery::new(params),
            force_retransmit: false,
            timed: None,
            rto_at: Instant::NEVER,
            persist: 0,
            probe_due: false,
            paced_until: Instant::ZERO,
            last_sent: Instant::ZERO,
            sack: params.sack && params.recovery == Kind::Sack,
            window_limited: false,
            stats: SenderStats::default(),
        }
    }

    /// The other end does not send selective acknowledgements: recovery must do without.
    pub(crate) fn without_sack(&mut self, params: &StackParams) {
        self.sack = false;
        if params.recovery == Kind::Sack {
            self.recovery =
                Recovery::new(&StackParams { recovery: Kind::NewReno, ..params.clone() });
        }
    }

    /// Starts without SYN, with the other end's window known.
    pub(crate) fn skip_handshake(&mut self, peer_window: u32) {
        self.una = 1;
        self.next = 1;
        self.set_window(peer_window);
    }

    /// The application writes `bytes` more; [`u64::MAX`] for ever.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(self.fin.is_none(), "nothing may be written after close");
        self.written = self.written.saturating_add(bytes);
    }
    /// The application will write no more.
    pub fn close(&mut self) {
        self.fin.get_or_insert(self.written);
    }

    /// First unacknowledged position.
    #[inline]
    #[must_use]
    pub const fn una(&self) -> u64 {
        self.una
    }
    /// Position that is sent next.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Whether FIN has been sent and acknowledged.
    #[must_use]
    pub fn fin_acknowledged(&self) -> bool {
        self.fin.is_some_and(|fin| self.una > fin)
    }
    /// Position of FIN, once the application has closed.
    #[must_use]
    pub const fn fin_position(&self) -> Option<u64> {
        self.fin
    }
    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }
    /// Round-trip estimate.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Congestion window in bytes.
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.congestion.cwnd()
    }
    /// Slow-start threshold in bytes.
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.congestion.ssthresh()
    }
    /// The congestion controller.
    #[must_use]
    pub const fn congestion(&self) -> &Controller {
        &self.congestion
    }
    /// Whether fast recovery is under way.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.recovery.in_recovery()
    }
    /// Payload acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.una.saturating_sub(1)
    }

    /// Data believed to be in the network (RFC 6675, `pipe`).
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.recovery.counted_pipe().unwrap_or_else(|| {
            (self.next - self.una) - self.queue.sacked_bytes() - self.queue.lost_bytes()
        })
    }

    /// When [`Self::handle_timeout`] or another poll is wanted.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        // A pacing time in the past has been served: it only counts while something waits for it.
        if self.paced_until > self.last_sent && self.window_open() {
            self.rto_at.min(self.paced_until)
        } else {
            self.rto_at
        }
    }

    /// Handles the acknowledgement of a segment from the other end.
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) {
        let Some(ack) = expand(segment.ack, isn, self.una) else { return };
        if ack > self.next {
            // RFC 9293, 3.10.7.4: an acknowledgement of something not yet sent is ignored.
            return;
        }
        let old_window = self.peer_window;
        if ack >= self.una {
            self.peer_window = segment.window;
            // The window never moves left (RFC 9293, 3.8.6: shrinking is discouraged).
            self.edge = self.edge.max(ack + u64::from(segment.window));
        }
        let prior_in_flight = self.in_flight();
        let mut delivered = 0;
        if self.sack && !segment.sack.is_empty() {
            delivered += self.mark_sacked(now, segment, isn);
        }
        if ack > self.una {
            self.on_new_ack(now, ack, segment, prior_in_flight, delivered, params);
        } else if ack == self.una && self.is_duplicate(segment, old_window, delivered, params) {
            self.on_duplicate(now, prior_in_flight, delivered, params);
        } else if self.una == self.next || self.edge > self.next {
            self.persist = 0;
        }
    }

    /// What is to be sent now, if anything: `None` until something changes.
    pub(crate) fn poll_stretch(&mut self, now: Instant, params: &StackParams) -> Option<Stretch> {
        if self.queue.lost_bytes() > 0
            && let Some(stretch) = self.retransmission(now, params)
        {
            return Some(stretch);
        }
        let stretch = self.new_data(now, params);
        if stretch.is_none() && self.paced_until <= now {
            // Nothing waits for the pacer any more.
            self.paced_until = Instant::ZERO;
        }
        stretch
    }

    /// Sends SYN, or sends it again.
    pub(crate) fn send_syn(&mut self, now: Instant, params: &StackParams) {
        if self.next == 0 {
            self.note_sent(now, Stretch { start: 0, len: 1 }, params);
        }
    }

    /// The other end has sent its first window.
    pub(crate) fn set_window(&mut self, window: u32) {
        self.peer_window = window;
        self.edge = self.una + u64::from(window);
    }

    /// A deadline has passed. Returns whether the retransmission timer fired.
    pub(crate) fn handle_timeout(&mut self, now: Instant, params: &StackParams) -> bool {
        if self.rto_at > now {
            return false;
        }
        if self.queue.is_empty() {
            // Nothing is out: the timer is the persist timer (RFC 9293, 3.8.6.1).
            self.persist = (self.persist + 1).min(16);
            self.probe_due = true;
            self.rto_at = now + self.persist_interval(params);
            return false;
        }
        self.stats.timeouts += 1;
        let first = self.queue.front().copied();
        let flight = self.next - self.una;
        let loss = Loss {
            now,
            window: halving_window(params, flight, self.congestion.cwnd(), self.peer_window),
            in_flight: flight,
            sent_at: first.map_or(now, |sent| sent.sent_at),
            transmits: first.map_or(1, |sent| sent.transmits),
            next: self.next,
            mss: params.mss,
        };
        self.congestion.on_timeout(&loss);
        // RFC 6298, 5.4 to 5.6: send the first segment again, double the timeout, start it anew.
        self.queue.mark_all_lost(params.forget_sack_on_timeout);
        self.recovery.on_timeout(self.next);
        self.rtt.back_off();
        self.timed = None;
        self.duplicates = 0;
        self.paced_until = now;
        self.rto_at = now + self.rtt.rto(params);
        true
    }

    fn mark_sacked(&mut self, now: Instant, segment: &Segment, isn: u32) -> u32 {
        let mut covered = 0;
        for &(left, right) in segment.sack.as_slice() {
            let bounds = (expand(left, isn, self.una), expand(right, isn, self.una));
            let (Some(left), Some(right)) = bounds else { continue };
            // Blocks below the cumulative point (RFC 2883) or above what was sent say nothing new.
            if left < right && right > self.una && right <= self.next {
                let rate = &mut self.rate;
                covered += self.queue.sack(left.max(self.una), right, |sent| {
                    rate.on_delivered(now, sent.len, sent.sent_at, sent.stamp);
                });
            }
        }
        u32::try_from(covered).unwrap_or(u32::MAX)
    }

    fn on_new_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        prior_in_flight: u64,
        sacked: u32,
        params: &StackParams,
    ) {
        let acked = ack - self.una;
        let opened = self.una == 0;
        let mut fresh: Option<Instant> = None;
        let mut delivered = sacked;
        let rate = &mut self.rate;
        self.queue.acknowledge(ack, |sent| {
            if !sent.sacked {
                delivered += sent.len;
                rate.on_delivered(now, sent.len, sent.sent_at, sent.stamp);
            }
            // Karn: what was sent twice measures nothing; what was sacked was measured too late.
            fresh = (sent.transmits == 1 && !sent.sacked).then_some(sent.sent_at);
        });
        self.una = ack;
        self.measure(now, ack, fresh, segment, params);
        // Controllers that measure get every round trip, however the timeout is estimated.
        let rtt = fresh.map(|sent_at| now.since(sent_at));
        if let Some(rtt) = rtt {
            self.congestion.on_measured(rtt);
        }
        let mut scene = Scene {
            now,
            params,
            queue: &mut self.queue,
            congestion: &mut self.congestion,
            una: ack,
            next: self.next,
            peer_window: self.peer_window,
            duplicates: 0,
            force_retransmit: self.force_retransmit,
            restart_timer: false,
            stop_timing: false,
        };
        let was_recovering = self.recovery.in_recovery();
        let lost_before = scene.queue.lost_bytes();
        let mut verdict = self.recovery.on_new_ack(&mut scene, acked);
        if opened {
            // RFC 5681, section 3.1: the acknowledgement of SYN does not open the window.
            verdict = Verdict::Hold;
        }
        let lost = scene.queue.lost_bytes().saturating_sub(lost_before);
        let (force, restart, stop) =
            (scene.force_retransmit, scene.restart_timer, scene.stop_timing);
        self.duplicates = scene.duplicates;
        self.force_retransmit = force && !self.queue.is_empty();
        if stop {
            self.timed = None;
        }
        if self.una == self.next {
            self.rto_at = Instant::NEVER;
        } else if !was_recovering || restart || !self.recovery.in_recovery() {
            // RFC 6298, 5.3: an acknowledgement of new data restarts the timer.
            self.rto_at = now + self.rtt.rto(params);
        }
        self.persist = 0;
        self.tell(now, rtt, acked, delivered, prior_in_flight, lost, verdict, params);
    }

    /// Tells the controller about an acknowledgement that delivered data.
    #[expect(clippy::too_many_arguments, reason = "one call, all different quantities")]
    #[inline]
    fn tell(
        &mut self,
        now: Instant,
        rtt: Option<Duration>,
        acked: u64,
        delivered: u32,
        prior_in_flight: u64,
        lost: u64,
        verdict: Verdict,
        params: &StackParams,
    ) {
        let acked = u32::try_from(acked).unwrap_or(u32::MAX);
        let (slow_start_credit, avoidance_credit) = match params.growth {
            Growth::PerAck => (params.mss, params.mss),
            Growth::PerAckedUpToOne => (acked.min(params.mss), params.mss),
            Growth::PerAcked => (acked, acked),
        };
        let ack = Ack {
            now,
            delivered,
            slow_start_credit,
            avoidance_credit,
            rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
            prior_in_flight,
            in_flight: self.in_flight(),
            una: self.una,
            next: self.next,
            window_limited: self.window_limited || !params.grow_only_when_limited,
            in_recovery: self.recovery.in_recovery(),
            lost,
            delivered_total: self.rate.delivered(),
            rate: self.rate.take_sample(),
            mss: params.mss,
        };
        self.congestion.on_delivered(&ack);
        if verdict == Verdict::Grow && acked > 0 {
            self.congestion.on_ack(&ack);
        }
        self.window_limited = false;
    }

    #[inline]
    fn measure(
        &mut self,
        now: Instant,
        ack: u64,
        fresh: Option<Instant>,
        segment: &Segment,
        params: &StackParams,
    ) {
        let sent = if params.time_every_segment {
            // A segment sent twice is measured by the timestamp that the other end echoes
            // (RFC 7323, section 4), with its resolution of a millisecond.
            fresh.or_else(|| {
                let (_, echo) = segment.timestamps?;
                let echoed = Instant::from_nanos(u64::from(echo) * 1_000_000);
                (echo > 0 && echoed <= now).then_some(echoed)
            })
        } else {
            self.timed.filter(|&(end, _)| ack >= end).map(|(_, sent)| sent)
        };
        let Some(sent) = sent else { return };
        self.timed = None;
        self.rtt.reset_backoff();
        let rtt = self.rtt.measure(sent, now, params);
        self.stats.rtt_sum_ns += rtt.as_nanos();
        self.stats.rtt_count += 1;
    }

    /// RFC 5681, section 2, and with SACK RFC 6675, section 2.
    fn is_duplicate(
        &self,
        segment: &Segment,
        old_window: u32,
        delivered: u32,
        params: &StackParams,
    ) -> bool {
        let plain = self.una < self.next && segment.sequence_len() == 0;
        if self.sack {
            // ns-2's Sack1 takes every acknowledgement in recovery as one packet out of the pipe.
            plain && (delivered > 0 || params.count_pipe && self.in_recovery())
        } else {
            plain && segment.window == old_window
        }
    }

    fn on_duplicate(
        &mut self,
        now: Instant,
        prior_in_flight: u64,
        delivered: u32,
        params: &StackParams,
    ) {
        self.duplicates += 1;
        let mut scene = Scene {
            now,
            params,
            queue: &mut self.queue,
            congestion: &mut self.congestion,
            una: self.una,
            next: self.next,
            peer_window: self.peer_window,
            duplicates: self.duplicates,
            force_retransmit: self.force_retransmit,
            restart_timer: false,
            stop_timing: false,
        };
        let lost_before = scene.queue.lost_bytes();
        let entered = self.recovery.on_duplicate(&mut scene);
        let lost = scene.queue.lost_bytes().saturating_sub(lost_before);
        let (force, restart, stop) =
            (scene.force_retransmit, scene.restart_timer, scene.stop_timing);
        self.force_retransmit = force;
        if stop {
            self.timed = None;
        }
        if entered && params.back_off_on_loss {
            self.rtt.back_off();
        }
        if restart {
            self.rto_at = now + self.rtt.rto(params);
        }
        self.stats.fast_retransmits += u64::from(entered);
        if delivered > 0 {
            self.tell(now, None, 0, delivered, prior_in_flight, lost, Verdict::Hold, params);
        }
    }

    /// The next lost segment, if the window lets it go.
    fn retransmission(&mut self, now: Instant, params: &StackParams) -> Option<Stretch> {
        if !self.force_retransmit {
            let window = u64::from(self.congestion.cwnd()) + u64::from(self.recovery.inflation());
            let in_flight = self.in_flight();
            if in_flight + u64::from(params.mss) > window && in_flight > 0 {
                return None;
            }
            if self.held_by_pacing(now) {
                return None;
            }
        }
        let nothing_out = self.in_flight() == 0;
        let stamp = self.rate.stamp(now, nothing_out);
        let sent = self.queue.next_lost()?;
        sent.lost = false;
        sent.transmits = sent.transmits.saturating_add(1);
        sent.sent_at = now;
        sent.stamp = stamp;
        let stretch = Stretch { start: sent.start, len: sent.len };
        self.queue.on_retransmitted(stretch.len);
        if self.force_retransmit {
            // ns-2 does not count the segment that begins a recovery; see `recovery/sack.rs`.
            self.force_retransmit = false;
        } else {
            self.recovery.on_sent(stretch.len);
        }
        self.stats.retransmissions += 1;
        self.after_sending(now, stretch.len, params);
        Some(stretch)
    }

    fn new_data(&mut self, now: Instant, params: &StackParams) -> Option<Stretch> {
        let end = self.fin.map_or(self.written, |fin| fin + 1);
        if self.next >= end {
            if self.next > self.una {
                self.rate.on_app_limited(self.in_flight());
            }
            return None;
        }
        let room = self.edge.saturating_sub(self.next);
        let len = (end - self.next).min(u64::from(params.mss)) as u32;
        if u64::from(len) > room {
            return self.blocked_by_window(now, params);
        }
        if self.sack && self.duplicates > 0 && !params.limited_transmit && !self.in_recovery() {
            // Without limited transmit, duplicates do not release new data before recovery.
            return None;
        }
        let restart = params.restart_after_idle && self.una == self.next;
        if restart && now.since(self.last_sent) > self.rtt.rto(params) && self.next > 1 {
            self.congestion.on_idle_restart(now, params.initial_window);
        }
        let window = u64::from(self.congestion.cwnd()) + u64::from(self.recovery.inflation());
        let in_flight = self.in_flight();
        if in_flight + u64::from(len) > window && in_flight > 0 {
            self.window_limited = true;
            return None;
        }
        let fin_next = self.fin.is_some();
        if len < params.mss && params.nagle && self.next > self.una && !fin_next {
            // RFC 9293, 3.7.4: a small segment waits for the acknowledgement of what is out.
            return None;
        }
        if self.held_by_pacing(now) {
            return None;
        }
        if in_flight + 2 * u64::from(params.mss) > window {
            self.window_limited = true;
        }
        let stretch = Stretch { start: self.next, len };
        self.note_sent(now, stretch, params);
        Some(stretch)
    }

    /// The other end's window is closed. With nothing out, the persist timer probes it.
    fn blocked_by_window(&mut self, now: Instant, params: &StackParams) -> Option<Stretch> {
        if self.recovery.in_recovery() && self.queue.lost_bytes() == 0 {
            // RFC 6675, `NextSeg` rule 3: without new data, a hole that is not yet proven lost.
            let boundary = self.queue.highest_sacked();
            if self.sack && self.queue.mark_lost_until(boundary, self.last_sent) > 0 {
                return self.retransmission(now, params);
            }
        }
        if self.una < self.next {
            return None;
        }
        if self.probe_due {
            self.probe_due = false;
            let stretch = Stretch { start: self.next, len: 1 };
            self.edge = self.edge.max(self.next + 1);
            self.note_sent(now, stretch, params);
            return Some(stretch);
        }
        // RFC 9293, 3.8.6.2.1: a small window is used only when the timer has run out.
        if self.rto_at == Instant::NEVER {
            self.rto_at = now + self.persist_interval(params);
        }
        None
    }

    fn persist_interval(&self, params: &StackParams) -> Duration {
        (self.rtt.rto(params) * (1 << self.persist)).min(params.rto_max)
    }

    #[inline]
    fn note_sent(&mut self, now: Instant, stretch: Stretch, params: &StackParams) {
        let nothing_out = self.una == self.next;
        if nothing_out {
            // A timer that still runs is the persist timer of a window that has opened since.
            self.rto_at = Instant::NEVER;
        }
        let stamp = self.rate.stamp(now, nothing_out);
        self.queue.push(Sent {
            start: stretch.start,
            len: stretch.len,
            transmits: 1,
            sacked: false,
            lost: false,
            sent_at: now,
            stamp,
        });
        self.next += u64::from(stretch.len);
        if !params.time_every_segment && self.timed.is_none() {
            self.timed = Some((self.next, now));
        }
        self.recovery.on_sent(stretch.len);
        let in_flight = self.in_flight();
        self.congestion.on_sent(now, self.next, in_flight);
        self.after_sending(now, stretch.len, params);
    }

    #[inline]
    fn after_sending(&mut self, now: Instant, len: u32, params: &StackParams) {
        self.stats.segments += 1;
        self.last_sent = now;
        if self.rto_at == Instant::NEVER {
            // RFC 6298, 5.1.
            self.rto_at = now + self.rtt.rto(params);
        }
        if let Some(rate) = self.congestion.pacing_rate() {
            let bytes = f64::from(len + params.header);
            let gap = Duration::from_secs_f64(bytes / rate.max(1.0));
            self.paced_until = self.paced_until.max(now) + gap;
        }
    }

    #[inline]
    fn held_by_pacing(&self, now: Instant) -> bool {
        self.paced_until > now && self.congestion.pacing_rate().is_some()
    }

    /// Whether something could be sent if pacing allowed it.
    fn window_open(&self) -> bool {
        if self.congestion.pacing_rate().is_none() {
            return false;
        }
        let end = self.fin.map_or(self.written, |fin| fin + 1);
        let window = u64::from(self.congestion.cwnd()) + u64::from(self.recovery.inflation());
        let waiting = self.queue.lost_bytes() > 0 || (self.next < end && self.next < self.edge);
        waiting && self.in_flight() < window
    }
}
