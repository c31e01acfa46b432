//! Data of the sender: new data, retransmissions, and the waits between them.

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Direction, Pause, Previous};
use crate::CapturedSegment;
use crate::connection::outstanding::{Retransmitted, Transmission};
use crate::limit::{Next, Wait};

/// A common unit of the window field: a shift count of 8.
const WINDOW_UNIT: u64 = 256;

impl Direction {
    pub(in crate::connection) fn handle_data(&mut self, segment: &CapturedSegment) {
        self.traffic.hop_limits[1].add(segment.hop_limit);
        // SYN occupies the first sequence number, and may have data (RFC 7413).
        let first = segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
        if !self.started {
            self.start(first);
        }
        let Some(start) = self.offset(first) else { return };
        let end = start + u64::from(segment.payload);
        self.has_timestamps |= segment.timestamps.is_some();
        let echo = segment.timestamps.map(|(_, echo)| echo);
        if let Some(echo) = echo {
            self.echo.handle_data(segment.at, echo, segment.packet);
        }
        let mss = self.mss();
        self.sender.advance(segment.at, echo, mss);
        // A probe of a closed window (RFC 9293, section 3.8.6.1) or a keep-alive, whose byte has
        // been acknowledged, has no new data.
        let is_outstanding = self.outstanding.at(start).is_some_and(|sent| sent.start <= start);
        let is_keep_alive = end <= self.sender.next && !is_outstanding;
        if segment.payload == 1 && (is_keep_alive || self.sender.is_closed(1)) {
            return;
        }
        let payload = u64::from(segment.payload);
        // More than a packet of Ethernet: segmentation or receive offload.
        if payload <= 9_000 {
            self.payload_max = self.payload_max.max(payload);
        }
        if let Some(last) = self.last_data.replace((segment.at, payload))
            && last.1 <= 9_000
        {
            let gap = segment.at.since(last.0);
            if gap < Duration::from_millis(1) {
                self.followed_max = self.followed_max.max(last.1);
            }
            if gap < self.longest_gap_of_a_burst() {
                self.followed.add(last.1);
            }
        }
        let packets = self.packets(segment);
        let headers = u64::from(segment.packet - segment.payload.min(segment.packet));
        let bytes = u64::from(segment.packet) + (packets - 1) * headers;
        self.traffic.packets += packets;
        self.traffic.bytes += bytes;
        if self.traffic.first.is_none() {
            self.traffic.first = Some(segment.at);
            if let Some(history) = &mut self.history {
                history.begin(segment.at, start);
            }
        }
        self.traffic.last = Some(segment.at);
        let sent =
            Sent { start, end, at: segment.at, bytes: bytes as u32, packets: packets as u32 };
        if start >= self.sender.next {
            self.handle_new_data(sent);
        } else {
            self.handle_old_data(sent);
        }
    }

    /// Packets into which a captured segment is divided: several, if it is one of segmentation
    /// offload. Without the handshake's options, one of the size of a packet of Ethernet is none.
    fn packets(&self, segment: &CapturedSegment) -> u64 {
        if self.mss_options == [None; 2] && segment.packet <= 1_500 {
            return 1;
        }
        u64::from(segment.payload).div_ceil(self.mss()).max(1)
    }

    /// Time within which a segment of a burst follows another one. At the receiver, the slowest
    /// link needs this time for each.
    fn longest_gap_of_a_burst(&self) -> Duration {
        let round_trip = self.round_trip();
        round_trip.mul_f64(0.1).clamp(Duration::from_millis(1), Duration::from_millis(20))
    }

    fn handle_new_data(&mut self, sent: Sent) {
        let Sent { start, end, at, bytes, packets } = sent;
        let mss = self.mss();
        let next = self.sender.next;
        if start > next && self.traffic.payload > 0 {
            // Lost before the point of the capture, reordered, or missed by it.
            let missing = (start - next).div_ceil(mss) as u32;
            self.outstanding.push(Transmission {
                start: next,
                end: start,
                at,
                packets: missing,
                ..Transmission::default()
            });
        }
        if start > next {
            self.round_trips.first.end_at(next);
        }
        self.round_trips.first.add(at, bytes, end);
        let is_short = !(end - start).is_multiple_of(mss) && !self.is_cut_by_window(end, mss);
        let begins = self.finish_wait(at, Next::New { is_short }, end);
        self.messages.add(at, end - start, begins);
        let alone = self.sender.unacknowledged >= next;
        self.link.add_arrival(at, bytes, is_short || start > next, self.round_trip());
        self.outstanding.push(Transmission {
            start,
            end,
            at,
            bytes,
            packets,
            alone,
            captured: true,
            ..Transmission::default()
        });
        self.sender.next = end;
        self.traffic.payload += end - start;
        self.traffic.in_flight_max =
            self.traffic.in_flight_max.max(end - self.sender.unacknowledged.min(end));
        self.begin_wait(at, is_short);
    }

    /// Whether the receive window ends after this byte, apart from the unit of the window field
    /// (RFC 7323, section 2.2): the segment is short because the window has no space.
    fn is_cut_by_window(&self, end: u64, mss: u64) -> bool {
        self.sender.edge.is_some_and(|edge| edge < end + mss.min(WINDOW_UNIT))
    }

    fn handle_old_data(&mut self, sent: Sent) {
        let Sent { start, end, at, bytes, .. } = sent;
        self.round_trips.first.end_at(start);
        self.link.add_arrival(at, bytes, true, self.round_trip());
        let uncaptured = self.outstanding.uncaptured(start, end);
        if uncaptured > 0 {
            self.traffic.payload += uncaptured;
            self.messages.add(at, uncaptured, false);
        }
        let known = self.outstanding.at(start).copied();
        if let Some(gap) = known.filter(|gap| !gap.captured && start >= gap.start) {
            // A retransmission arrives a round trip after the gap, and a reordered packet sooner.
            let round_trip = self.round_trip();
            if at.since(gap.at) < round_trip.mul_f64(0.5) && self.duplicate_acks < 3 {
                self.outstanding.reorder(start, end, at);
                self.traffic.reordered += 1;
                return;
            }
        }
        self.traffic.retransmissions += 1;
        if known.is_none_or(|sent| sent.captured) {
            self.doubt_pause(at);
        }
        let retransmitted = self.outstanding.retransmit(start, end, at);
        let is_refused = retransmitted.is_some_and(|retransmitted| retransmitted.is_refused);
        let is_timer = retransmitted.is_none_or(|retransmitted| self.is_timer(at, retransmitted));
        self.traffic.timeouts += u64::from(is_timer && !is_refused);
        let next = match (is_refused, is_timer) {
            (true, _) => Next::Refused,
            (false, true) => Next::TimerRetransmission,
            (false, false) => Next::FastRetransmission,
        };
        self.finish_wait(at, next, end);
        if !is_refused {
            self.recovery_end = Some(self.sender.next);
        }
        self.begin_wait(at, false);
        let next = self.sender.next;
        if end > next {
            // New data in the same segment. It counts as retransmitted and delivered, so that
            // neither a round trip nor a loss is sampled: the segment has old data as well.
            self.outstanding.push(Transmission {
                start: next,
                end,
                at,
                bytes: (end - next) as u32,
                packets: 1,
                retransmissions: 1,
                is_delivered: true,
                captured: true,
                ..Transmission::default()
            });
            self.traffic.payload += end - next;
            self.messages.add(at, end - next, false);
            self.sender.next = end;
        }
    }

    /// Data that has been captured before is captured again. At the receiver, packets that were
    /// held back look like a pause of the application, and their retransmissions follow them.
    fn doubt_pause(&mut self, at: Instant) {
        if let Some(pause) = self.pause.take_if(|pause| at.since(pause.end) <= pause.length) {
            self.account.doubtful_pauses += pause.length;
        }
    }

    /// Whether a timer caused a retransmission: no acknowledgement arrived shortly before, and the
    /// segment was sent longer ago than acknowledgements need. The minimum of the timer is 200 ms
    /// in Linux (`TCP_RTO_MIN`) and 1 s in RFC 6298, section 2.4; a tail loss probe follows after
    /// two round trips (RFC 8985, section 7.2).
    fn is_timer(&self, at: Instant, retransmitted: Retransmitted) -> bool {
        let round_trip = self.round_trip();
        let recent = round_trip.mul_f64(0.5).max(Duration::from_millis(5));
        let since_ack = self.sender.last_ack_at.map_or(Duration::MAX, |ack| at.since(ack));
        let since_sent = at.since(retransmitted.previous);
        let since_other = self.previous.map_or(Duration::MAX, |previous| at.since(previous.at));
        since_ack > recent && since_sent > round_trip && since_other > recent
    }

    /// Accounts for the wait that a transmission ends, and returns whether the application was its
    /// cause. The first transmission ends the wait for the application.
    fn finish_wait(&mut self, at: Instant, next: Next, end: u64) -> bool {
        let Some(previous) = self.previous else { return true };
        // Consumed by each wait, also if the edges are known: the next wait has another window.
        let reopened_at = self.reopened_at.take();
        let permitted_at = self.edges.permitted_at(end).or(reopened_at);
        let sender = &self.sender;
        let base = self.round_trips.base();
        let round_trip = base.unwrap_or_default() + sender.delay;
        let is_at_sender = sender.delay.is_zero();
        // Reaction time of a sender to an acknowledgement; the delay of acknowledgements to a
        // sender that is far away is less certain.
        let reaction = if is_at_sender {
            round_trip.mul_f64(0.1).clamp(Duration::from_micros(300), Duration::from_millis(5))
        } else {
            round_trip.mul_f64(0.2).clamp(Duration::from_millis(1), Duration::from_millis(50))
        };
        let length = at.since(previous.at);
        let since_ack = sender.last_ack_at.map_or(Duration::MAX, |ack| at.since(ack));
        let all_acked = sender.unacknowledged >= sender.next;
        let idle = match sender.all_acked_at.filter(|_| all_acked) {
            Some(since) => at.since(since.max(previous.at)),
            None => Duration::ZERO,
        };
        let idle = if idle > reaction { idle } else { Duration::ZERO };
        let is_new = matches!(next, Next::New { .. });
        let is_application = self.account.add(&Wait {
            length,
            idle,
            is_permitted_by_window: is_new
                && permitted_at.is_some_and(|permitted| {
                    permitted > previous.at - sender.delay
                        && at.since(permitted) <= sender.delay + reaction
                }),
            after_short: previous.is_short,
            next,
            is_prompt: since_ack <= reaction,
            all_acked,
            received_data: sender.received_data,
            delayed_ack: sender.delayed,
            is_recovering: self.recovery_end.is_some_and(|end| sender.unacknowledged < end),
            is_after_loss: self.recovery_end.is_some(),
            queueing: sender.queueing,
            is_unprompted: is_at_sender
                && since_ack > reaction
                && length > round_trip.mul_f64(0.25).max(Duration::from_millis(1)),
        });
        if is_application && !previous.is_short {
            self.pause = Some(Pause { end: at, length });
        }
        is_application
    }

    fn begin_wait(&mut self, at: Instant, is_short: bool) {
        self.previous = Some(Previous { at, is_short });
        self.sender.begin_wait();
    }
}

/// A captured transmission.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
    bytes: u32,
    packets: u32,
}
