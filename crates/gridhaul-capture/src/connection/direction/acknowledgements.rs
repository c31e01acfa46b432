//! Acknowledgements of the receiver: round trips, the rate of the link, and the receive window.

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};

use super::Direction;
use crate::CapturedSegment;
use crate::Limit;
use crate::connection::acknowledgement::{Acknowledgement, Sample};
use crate::connection::history::Checkpoint;
use crate::connection::outstanding::Cumulative;
use crate::estimate::Delivered;

impl Direction {
    pub(in crate::connection) fn handle_acknowledgement(
        &mut self,
        segment: &CapturedSegment,
        scale: Option<u8>,
    ) {
        self.traffic.acknowledgements += 1;
        let is_pure = segment.is_pure_ack();
        if is_pure {
            self.traffic.hop_limits[0].add(segment.hop_limit);
            self.round_trips.add_acknowledgement(segment.packet);
        }
        let is_syn = segment.flags.has(Flags::SYN);
        // The round trip of the handshake is known from its own times.
        if let Some((value, _)) = segment.timestamps.filter(|_| !is_syn) {
            self.echo.handle_acknowledgement(segment.at, value);
        }
        if !self.started {
            self.start(segment.ack);
        }
        let Some(ack) = self.offset(segment.ack) else { return };
        if ack > self.sender.next {
            // The sequence number of a FIN, or data that the capture has missed.
            let missing = ack - self.sender.next;
            if missing > 1 && self.traffic.payload > 0 {
                self.traffic.missing += missing;
            }
            if missing > 1 {
                self.sender.next = ack;
                self.previous = None;
            }
        }
        // The window of a SYN is not scaled (RFC 7323, section 2.2).
        let shift = if is_syn { Some(0) } else { scale };
        let window = shift.map(|shift| u64::from(segment.window) << shift);
        self.traffic.window_max = self.traffic.window_max.max(window);
        // A window of zero is zero with any scale.
        let is_zero = segment.window == 0 && !is_syn;
        self.traffic.zero_windows += u64::from(is_zero);
        self.note_zero_window(segment.at, is_zero, window.is_some());
        self.count_unnecessary(segment);
        self.note_delivered(segment);
        let sample = self.sample(segment.at, ack, is_pure);
        let acknowledgement = Acknowledgement {
            at: segment.at,
            timestamp: segment.timestamps.map(|(value, _)| value),
            ack,
            edge: window.or(is_zero.then_some(0)).map(|window| ack + window),
            has_data: segment.has_data(),
            queueing: sample.map(|sample| match sample.delayed() {
                Some(_) => Duration::ZERO,
                None => sample.excess,
            }),
            delayed: sample.and_then(|sample| sample.delayed()),
        };
        let mss = self.mss();
        if is_zero && ack >= self.sender.unacknowledged {
            self.edges.close(ack);
            self.outstanding.refuse(ack);
        }
        if let Some(edge) = acknowledgement.edge {
            self.edges.advertise(segment.at, edge);
        }
        self.sender.receive(acknowledgement, mss);
        if self.sender.delay.is_zero() && is_pure {
            let outstanding = !self.outstanding.is_empty();
            let duplicate = sample.is_none() && outstanding;
            self.duplicate_acks = if duplicate { self.duplicate_acks + 1 } else { 0 };
        }
    }

    /// Without the scale, the bytes that a window permits are unknown, but not the time at which a
    /// window of zero ends.
    const fn note_zero_window(&mut self, at: Instant, is_zero: bool, has_scale: bool) {
        if self.is_zero_window && !is_zero && !has_scale {
            self.reopened_at = Some(at);
        }
        self.is_zero_window = is_zero;
    }

    /// Duplicate selective acknowledgements (RFC 2883, section 4): the first range is before the
    /// acknowledgement number, or within the second range.
    fn count_unnecessary(&mut self, segment: &CapturedSegment) {
        if let [first, rest @ ..] = segment.sack.as_slice() {
            let at_or_before = |a: u32, b: u32| b.wrapping_sub(a) as i32 >= 0;
            let below = at_or_before(first.1, segment.ack);
            let within = rest.first().is_some_and(|second| {
                at_or_before(second.0, first.0) && at_or_before(first.1, second.1)
            });
            self.traffic.unnecessary += u64::from(below || within);
            // The sender notices that no packet was lost, and undoes the reduction of its window.
            if (below || within) && self.retransmitted() <= self.traffic.unnecessary {
                self.recovery_end = None;
            }
        }
    }

    /// Notes data that the receiver reports as received out of order, and its queueing delay: the
    /// first range has the segment that has just arrived (RFC 2018, section 4), whose
    /// acknowledgement is not delayed (RFC 5681, section 4.2).
    fn note_delivered(&mut self, segment: &CapturedSegment) {
        let [first, ..] = segment.sack.as_slice() else { return };
        let range = self.offset(first.0).zip(self.offset(first.1));
        let Some((start, end)) = range.filter(|(_, end)| *end <= self.sender.next) else { return };
        let Some(newest) = self.outstanding.deliver(start, end) else { return };
        let is_full = (newest.end - newest.start).is_multiple_of(self.mss());
        if let Some(shortest) = self.round_trips.full.times[0].filter(|_| is_full) {
            let queueing = segment.at.since(newest.at).saturating_sub(shortest);
            self.outstanding.set_queueing(newest.start, queueing);
        }
    }

    /// Removes what is acknowledged, and samples round trip and rate.
    fn sample(&mut self, at: Instant, ack: u64, is_pure: bool) -> Option<Sample> {
        let mss = self.mss();
        let round_trip_min = self.round_trips.base().unwrap_or_default();
        let cumulative = Cumulative { ack, at, round_trip_min };
        let Some(acknowledged) = self.outstanding.acknowledge(&cumulative) else {
            // Duplicate acknowledgements and window updates interrupt the measurement of the rate
            // only if something is outstanding.
            if !self.outstanding.is_empty() && is_pure {
                self.link.interrupt();
            }
            return None;
        };
        self.traffic.last_acked = Some(at);
        self.traffic.acknowledged += acknowledged.payload;
        self.traffic.missing += acknowledged.missing;
        self.add_progress(at, ack);
        let newest = acknowledged.newest;
        if !acknowledged.clean {
            self.link.interrupt();
            return None;
        }
        let time = at.since(newest.at);
        let is_full = (newest.end - newest.start).is_multiple_of(mss);
        let single = acknowledged.payload <= mss;
        let bytes = newest.bytes / newest.packets;
        let mut excess = self.round_trips.add(time, bytes, is_full);
        let is_prompt = self.is_prompt(single);
        let delivered = Delivered {
            bytes: acknowledged.bytes,
            newest_bytes: bytes,
            newest_sent: newest.at,
            excess,
        };
        if is_prompt {
            self.round_trips.first.add_round_trip(newest.end, time);
            self.link.add_acknowledged(at, &delivered, single);
        } else {
            self.link.interrupt();
        }
        if newest.alone {
            // The acknowledgement of the first segment may be delayed already.
            excess = excess.max(time.saturating_sub(self.undelayed(bytes)));
        }
        if is_prompt {
            self.outstanding.set_acknowledged_queueing(excess);
        }
        let previous_excess = std::mem::replace(&mut self.previous_excess, excess);
        let sample = Sample { excess, previous_excess, alone: newest.alone, single, pure: is_pure };
        if sample.delayed().is_none() {
            self.link.add_queueing(excess);
        } else {
            self.previous_excess = previous_excess;
        }
        Some(sample)
    }

    /// Whether the receiver has not delayed an acknowledgement of one or several segments. One that
    /// acknowledges every second segment delays that of a single one until its timer expires, or
    /// until a segment arrives after a lost one: this delay would look like a queue before losses,
    /// and like a lower rate.
    const fn is_prompt(&mut self, single: bool) -> bool {
        if single {
            self.single_acks += 1;
        } else {
            self.multiple_acks += 1;
        }
        !single || self.single_acks > 2 * self.multiple_acks
    }

    fn add_progress(&mut self, at: Instant, ack: u64) {
        let Some(history) = &mut self.history else { return };
        let checkpoint = Checkpoint {
            at,
            bytes: 0,
            retransmissions: self.traffic.retransmissions,
            limits: Limit::ALL.map(|limit| self.account.part(limit).time),
        };
        // The acknowledgement of a FIN counts one more.
        history.add(ack.min(self.sender.next), checkpoint);
    }

    /// The round trip of a packet with this number of bytes, if neither a queue nor the receiver
    /// delays it.
    fn undelayed(&self, bytes: u32) -> Duration {
        let Some(handshake) = self.round_trips.handshake else { return Duration::MAX };
        let own = self.link.transmission_time(bytes).unwrap_or_else(|| {
            // The handshake's round trip includes the transmission of its packets, which limits the
            // transmission time of a byte.
            handshake.time.mul_f64(f64::from(bytes) / (2.0 * f64::from(handshake.bytes.max(1))))
        });
        handshake.time + own
    }
}
