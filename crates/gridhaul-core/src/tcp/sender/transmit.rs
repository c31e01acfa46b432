//! What goes out: lost segments first, then new data, as far as the windows allow.

use gridhaul_scenario::units::{Duration, Instant};

use super::tail::Tail;
use super::{Sender, SendRange};
use crate::tcp::params::{Rules, StackParams};
use crate::tcp::sent::Sent;

/// Linux: ten segments with data leave unpaced (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// Linux: 64 KiB less the room for headers (`sk_dst_gso_max_size`). Bytes.
const PIECE_MAX: u32 = 65_215;

impl Sender {
    /// What is to be sent now, if anything: `None` until something changes.
    #[inline]
    pub(crate) fn poll_range(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        if self.tail == Tail::Due {
            return self.send_probe(now, params);
        }
        if self.queue.lost_bytes() == 0 && (self.next >= self.end() || self.is_full(now, params)) {
            return None;
        }
        self.poll_something(now, params)
    }

    /// Sends SYN.
    pub(crate) fn send_syn(&mut self, now: Instant, params: &StackParams) {
        if self.next == 0 {
            self.note_sent(now, SendRange { start: 0, len: 1 }, params);
        }
    }

    /// Whether the congestion window holds back a full segment of new data, and nothing else has to
    /// be looked at: what comes of most questions of a sender that always has data.
    #[inline]
    fn is_full(&mut self, now: Instant, params: &StackParams) -> bool {
        let (out, mss) = (self.next - self.una, u64::from(params.mss));
        let full = out > 0
            && out + mss > u64::from(self.window)
            && !(self.recovery_active || self.paced)
            && self.queue.sacked_bytes() == 0
            && self.next + mss <= self.written.min(self.una + u64::from(self.peer_window));
        if full {
            self.note_use(now, true, params);
        }
        full
    }

    fn poll_something(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        if self.queue.lost_bytes() > 0 {
            let range = if self.recovery.prefers_new() {
                self.new_data_first(now, params)
            } else {
                self.retransmission(now, params)
            };
            if range.is_some() {
                return range;
            }
        }
        let range = self.new_data(now, params);
        if self.paced && range.is_none() && self.paced_until() <= now {
            // Nothing waits for the pacer any more.
            self.pace_until(Instant::ZERO);
        }
        range
    }

    /// The next lost segment, if the window lets it go.
    fn retransmission(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let in_flight = self.in_flight();
        let len = self.queue.next_lost()?.1.len;
        if !self.force_retransmit {
            let full = in_flight + u64::from(len) > u64::from(self.window) && in_flight > 0;
            // What is lost and waits for room uses the window as new data does.
            self.window_limited |= full;
            if full || self.recovery_active && !self.recovery.may_send() || self.held_by_pacing(now) {
                return None;
            }
        }
        let (index, sent) = self.queue.next_lost()?;
        sent.lost = false;
        sent.transmits = sent.transmits.saturating_add(1);
        sent.sent_at = now;
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_sent_again(now, index, in_flight == 0);
        }
        let range = SendRange { start: sent.start, len: sent.len };
        self.queue.on_retransmitted(range.len);
        if self.force_retransmit {
            // ns-2 does not count the segment that begins a recovery; see `recovery/sack.rs`.
            self.force_retransmit = false;
        } else {
            self.recovery.on_sent(range.len);
        }
        self.stats.retransmissions += u32::from(self.carries_data(range));
        if index == 0 && self.is_rack() {
            // The first segment out has been sent anew, and its timer begins anew.
            self.arm(now, now, params);
        }
        self.after_sending(now, range, params);
        Some(range)
    }

    /// RFC 5682, section 3.1, step 2b: new data, as much as the window allows; what is lost follows with
    /// the next acknowledgement, or now if there is no new data.
    #[cold]
    fn new_data_first(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let range = self.new_data(now, params);
        if range.is_none() && self.recovery.repeat_after_all(self.next) {
            return self.retransmission(now, params);
        }
        range
    }

    #[inline(always)]
    fn new_data(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let end = self.end();
        if self.next >= end {
            return None;
        }
        let room = self.edge().saturating_sub(self.next);
        let mut len = (end - self.next).min(u64::from(params.mss)) as u32;
        if u64::from(len) > room {
            len = self.len_in_small_window(now, room, params)?;
        }
        if self.una == self.next {
            self.restart_after_idle(now, params);
        } else if len < params.mss && !self.closed && self.small_ones_wait(params) {
            return None;
        }
        let in_flight = self.in_flight();
        if in_flight + u64::from(len) > u64::from(self.window) && in_flight > 0 {
            self.note_use(now, true, params);
            return None;
        }
        if self.duplicates > 0 && self.sack && !params.limited_transmit && !self.in_recovery() {
            // Without limited transmit, duplicates do not release new data before recovery.
            return None;
        }
        if self.recovery_active && !self.recovery.may_send() {
            return None;
        }
        if self.held_by_pacing(now) {
            return None;
        }
        let full = in_flight + 2 * u64::from(params.mss) > u64::from(self.window);
        let range = SendRange { start: self.next, len };
        self.note_sent(now, range, params);
        self.note_use(now, full, params);
        if self.next >= end && self.optional.rate().is_some() {
            let in_flight = self.in_flight();
            if let Some(rate) = self.optional.rate_mut() {
                rate.on_app_limited(in_flight);
            }
        }
        Some(range)
    }

    /// See [`Connection::takes`](crate::tcp::Connection::takes).
    pub(crate) fn takes(&self, bytes: u64, refused: bool, params: &StackParams) -> bool {
        let (unsent, mss) = (self.end() - self.next, u64::from(params.mss));
        if self.closed {
            return false;
        }
        if params.rules == Rules::Linux {
            return unsent < if refused { 1 } else { self.largest_piece(params) };
        }
        if unsent >= mss {
            return false;
        }
        let waits = self.una != self.next && self.small_ones_wait(params);
        if waits && (unsent > 0 || bytes < mss) {
            return true;
        }
        unsent == 0 && self.could_send(bytes.min(mss), params)
    }

    /// With TCP_NOTSENT_LOWAT of 1, Linux begins a piece when nothing waits and fills the one that does
    /// (`tcp_sendmsg_locked`); who was refused hears when nothing waits (`tcp_stream_memory_free`). A
    /// piece is as many segments as a device may get at once, within half of the other end's largest
    /// window (`tcp_xmit_size_goal`). Bytes.
    fn largest_piece(&self, params: &StackParams) -> u64 {
        let most = PIECE_MAX.min(self.peer_window_max / 2);
        u64::from((most / params.mss).max(1) * params.mss)
    }

    /// Whether a segment of new data would leave at once: nothing lost waits to be sent again, and the
    /// windows have room.
    fn could_send(&self, len: u64, params: &StackParams) -> bool {
        if self.queue.lost_bytes() > 0 {
            return false;
        }
        if self.una != self.next {
            let limited_transmit_off =
                self.duplicates > 0 && self.sack && !params.limited_transmit && !self.in_recovery();
            let in_flight = self.in_flight();
            if limited_transmit_off || in_flight + len > u64::from(self.window) && in_flight > 0 {
                return false;
            }
        }
        self.next + len <= self.edge()
    }

    /// Whether a small segment waits, while data is out, for its acknowledgement (RFC 9293, 3.7.4). In
    /// Linux it waits for earlier small segments only (`tcp_minshall_check`).
    fn small_ones_wait(&self, params: &StackParams) -> bool {
        params.nagle && (params.rules == Rules::Rfc || self.queue.has_shorter_than(params.mss))
    }

    /// RFC 5681, section 4.1: slow start again after an idle time longer than the RTO.
    #[inline]
    fn restart_after_idle(&mut self, now: Instant, params: &StackParams) {
        // For ns-2, SYN is a packet like others, whose acknowledgement starts the timer.
        let begun = self.next > 1 || params.ns2_recovery && self.last_sent > Instant::ZERO;
        let idle = params.restart_after_idle && begun;
        if idle && now.since(self.last_sent) > self.rtt.rto(params) {
            if params.ns2_recovery {
                self.restart_as_ns2(now, params);
            } else if params.rules == Rules::Linux {
                self.restart_as_linux(now, params);
            } else {
                self.congestion.on_idle_restart(now, params.initial_window);
            }
            self.refresh_window();
        }
        if params.vegas_timer && idle {
            self.rto_at = self.last_sent + self.rtt.rto(params);
        }
    }

    /// ns-2 (`slow_start_restart_`): the retransmission timer that the last acknowledgement started
    /// runs out although nothing is out, again and again. Here that is made up for when something is
    /// to be sent. Slow start begins with one segment and the old threshold. Vegas takes each for a
    /// timeout: threshold and back-off suffer, and the segment that is sent now does not start the
    /// timer anew, so that it often runs out before the acknowledgement can come
    /// (`VegasTcpAgent::timeout, output`).
    #[cold]
    fn restart_as_ns2(&mut self, now: Instant, params: &StackParams) {
        self.recovery.on_timeout(self.next);
        self.duplicates = 0;
        if !params.vegas_timer {
            self.congestion.on_idle_restart(now, params.mss);
            return;
        }
        while self.last_sent + self.rtt.rto(params) <= now {
            self.last_sent += self.rtt.rto(params);
            self.reduce(self.last_sent, params);
            self.rtt.back_off(params);
        }
    }

    /// The other end's window has no room for what is to be sent. Returns what may go all the
    /// same; with nothing out, the persist timer decides.
    #[cold]
    fn len_in_small_window(
        &mut self,
        now: Instant,
        room: u64,
        params: &StackParams,
    ) -> Option<u32> {
        if self.sack && !self.is_rack() && self.in_recovery() && self.queue.lost_bytes() == 0 {
            // RFC 6675, `NextSeg` rule 3: without new data, a hole that is not yet proven lost.
            let boundary = self.queue.highest_sacked();
            self.queue.mark_lost_until(boundary, self.last_sent);
        }
        if self.una < self.next {
            return None;
        }
        // RFC 9293, 3.8.6.2.1 (3): half of the largest window ever offered is worth a segment.
        let enough = room > 0 && room >= u64::from(self.peer_window_max / 2);
        if enough || self.probe.due && room > 0 {
            self.probe.due = false;
            return Some(room as u32);
        }
        if self.rto_at == Instant::NEVER {
            self.rto_at = now + self.persist_interval(params);
        }
        None
    }

    /// A probe of a closed window, if one is due: a byte beyond it, which does not count as sent
    /// until it is acknowledged.
    #[inline]
    pub(crate) fn poll_probe(&mut self) -> Option<SendRange> {
        if !self.probe.due || self.una < self.next || self.next >= self.end() {
            return None;
        }
        self.probe.due = false;
        self.probe.out = true;
        let range = SendRange { start: self.next, len: 1 };
        self.stats.segments += u64::from(self.carries_data(range));
        Some(range)
    }

    #[inline(always)]
    pub(super) fn note_sent(&mut self, now: Instant, range: SendRange, params: &StackParams) {
        let nothing_out = self.una == self.next;
        if nothing_out && !params.vegas_timer {
            // A timer that still runs is the persist timer of a window that has opened since.
            self.rto_at = Instant::NEVER;
        }
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_sent(now, nothing_out);
        }
        self.queue.push(Sent::new(range.start, range.len, now));
        self.next += u64::from(range.len);
        if !params.time_every_segment && self.timed_at == Instant::NEVER {
            (self.timed_end, self.timed_at) = (self.next as u32, now);
        }
        if self.recovery_active {
            self.recovery.on_sent(range.len);
            if self.duplicates > 0 && !self.recovery.in_recovery() {
                self.limited = self.limited.saturating_add(range.len);
            }
        }
        let in_flight = self.in_flight();
        self.congestion.on_sent(now, self.next, in_flight);
        self.after_sending(now, range, params);
        if self.is_rack() {
            self.postpone_probe(now, params);
        }
    }

    /// Whether a segment with this range of sequence numbers carries data: SYN and FIN alone do not.
    #[inline]
    pub(super) const fn carries_data(&self, range: SendRange) -> bool {
        let first = if range.start == 0 { 1 } else { range.start };
        let end = range.start + range.len as u64;
        let last = if end < self.written { end } else { self.written };
        first < last
    }

    #[inline]
    pub(super) fn after_sending(&mut self, now: Instant, range: SendRange, params: &StackParams) {
        self.stats.segments += u64::from(self.carries_data(range));
        self.last_sent = now;
        if self.rto_at == Instant::NEVER {
            // RFC 6298, 5.1.
            self.arm(now, now, params);
        }
        if self.paced
            && let Some(rate) = self.congestion.pacing_rate()
        {
            let bytes = f64::from(range.len + params.header);
            let gap = Duration::from_secs_f64(bytes / rate.max(1.0));
            let from = self.paced_until().max(now);
            match params.rules {
                Rules::Rfc => self.pace_until(from + gap),
                Rules::Linux => self.pace_burst(now, gap),
            }
        }
    }

    /// Linux hands the segments of a burst to the device together and then waits as long as all of them
    /// take. Of a wait that ran out unused, up to half of the next is forgiven. The first ten segments
    /// of a connection do not wait.
    fn pace_burst(&mut self, now: Instant, gap: Duration) {
        if self.stats.segments <= UNPACED {
            return;
        }
        let burst = self.congestion.burst();
        let Some(rate) = self.optional.rate_mut() else { return };
        let unused = now.since(rate.paced_until);
        if rate.burst_at == now && rate.burst_left > 0 {
            rate.burst_left -= 1;
        } else {
            (rate.burst_at, rate.burst_left) = (now, burst.saturating_sub(1));
        }
        let half = Duration::from_nanos(gap.as_nanos() / 2);
        rate.paced_until = rate.paced_until.max(now) + gap - half.min(unused);
    }

    #[inline]
    fn held_by_pacing(&self, now: Instant) -> bool {
        let Some(rate) = self.optional.rate().filter(|_| self.paced) else { return false };
        let of_a_burst = rate.burst_left > 0 && rate.burst_at == now;
        rate.paced_until > now && !of_a_burst && self.congestion.pacing_rate().is_some()
    }
}
