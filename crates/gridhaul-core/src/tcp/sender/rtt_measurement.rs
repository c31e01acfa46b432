//! Round-trip measurement by acknowledgements (RFC 6298, section 3; RFC 7323, section 4).

use gridhaul_scenario::units::Instant;

use super::Sender;
use super::ack_event::{AckEvent, SendTimes};
use crate::tcp::params::StackParams;
use crate::tcp::retransmission_queue::OutstandingSegment;
use crate::tcp::rtt::RttSample;
use crate::tcp::segment::{ClockOption, OneWayDelay, Segment};

/// Send times of the acknowledged segments that may measure a round trip.
#[derive(Default)]
pub(super) struct AckedSegments {
    /// The first and the last segment that was sent once and not sacked before (Karn's algorithm):
    /// retransmitted segments are ambiguous, and sacked segments were measured earlier.
    first: Option<Instant>,
    last: Option<Instant>,
    retransmitted: bool,
}

impl AckedSegments {
    #[inline]
    pub(super) fn add(&mut self, sent: &OutstandingSegment) {
        self.last = (sent.transmits == 1 && !sent.sacked).then_some(sent.sent_at);
        self.retransmitted |= sent.transmits > 1;
        self.first = self.first.or(self.last);
    }

    /// Whether one of the segments was retransmitted.
    #[inline]
    pub(super) const fn has_retransmitted(&self) -> bool {
        self.retransmitted
    }

    /// Send time of the last segment, if the acknowledgement measures its round trip: it was sent
    /// once and not sacked before, and no acknowledged segment was retransmitted. Otherwise it has
    /// waited for the repair of a loss; BSD stops timing with a retransmission as well. ns-2, which
    /// times one segment at a time, does so by its own rules, and its Vegas measures each segment
    /// that was sent once.
    #[inline]
    pub(super) fn last_measured(&self, params: &StackParams) -> Option<Instant> {
        self.last.filter(|_| !(self.retransmitted && params.time_every_segment))
    }
}

impl Sender {
    /// Measures round trips by an acknowledgement of new data, for the RTO and for the congestion
    /// control.
    #[inline(always)]
    pub(super) fn measure_acked(
        &mut self,
        acked_segments: &AckedSegments,
        segment: &Segment,
        isn: u32,
        event: &mut AckEvent,
        params: &StackParams,
    ) {
        let rules = self.recovery_rules();
        let timed = if rules.times_first_segment {
            // The delay of a delayed acknowledgement is included; if segments were retransmitted,
            // the first newly sacked segment is used.
            let last = event.sacked_sent_at.map(|sacked| sacked.last).or(acked_segments.last);
            let first = acked_segments.first.filter(|_| !acked_segments.retransmitted);
            let first = first.or(event.sacked_sent_at.map(|sacked| sacked.first));
            first.map(|first| SendTimes { first, last: last.unwrap_or(first) })
        } else {
            acked_segments.last_measured(params).map(SendTimes::of_one)
        };
        let measured = self.measure(event.now, self.una, timed, segment, isn, params);
        // Congestion controls get every round trip, however the RTO is estimated; in Linux also
        // those of timestamps.
        let newest =
            if rules.times_first_segment { measured } else { acked_segments.last_measured(params) };
        if let Some(sent_at) = newest {
            let rtt = event.now.since(sent_at);
            event.rtt = Some(rtt);
            self.congestion.on_rtt_sample(rtt);
        }
    }

    /// Measures the round trip. Returns the send time of the measured segment, if any.
    #[inline]
    pub(super) fn measure(
        &mut self,
        now: Instant,
        ack: u64,
        timed: Option<SendTimes>,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> Option<Instant> {
        let sent = if params.time_every_segment {
            // A retransmitted segment is measured by the timestamp that the peer echoes (RFC 7323,
            // section 4), with its resolution of a millisecond.
            timed.or_else(|| {
                let (value, echo) = segment.timestamps?;
                let sent = if segment.clock == ClockOption::OneWayDelay {
                    OneWayDelay::answered(now, value, echo)
                } else {
                    let echoed = Instant::from_nanos(u64::from(echo) * 1_000_000);
                    // Zero means no echo; but Linux, whose timestamp clock has a random offset,
                    // measures the round trip of SYN in any case.
                    let known =
                        echo > 0 || ack == 1 && self.recovery_rules().times_syn_by_zero_echo;
                    (known && echoed <= now).then_some(echoed)
                };
                sent.map(SendTimes::of_one)
            })
        } else {
            let covered = (ack as u32).wrapping_sub(self.timed_end).cast_signed() >= 0;
            (self.timed_at != Instant::NEVER && covered).then_some(SendTimes::of_one(self.timed_at))
        };
        let sent = sent?;
        self.timed_at = Instant::NEVER;
        // The phase only shifts the ticks of the clock.
        let phase = params.clock_phase(isn);
        let shifted = SendTimes { first: sent.first + phase, last: sent.last + phase };
        self.add_rtt_sample(shifted, now + phase, params);
        Some(sent.last)
    }

    /// The first segment that an acknowledgement measures updates the RTO, so that the delayed-ACK
    /// time is included; the last one updates the minimum RTT.
    #[inline]
    pub(super) fn add_rtt_sample(&mut self, sent: SendTimes, now: Instant, params: &StackParams) {
        self.rtt.reset_backoff();
        self.rtt.update_min_rtt(now.since(sent.last));
        let (una, next) = (self.una, self.next);
        let sample = RttSample { sent: sent.first, acknowledged: now, una, next };
        let rtt = self.rtt.measure(&sample, params);
        self.stats.rtt_sum_ns += rtt.as_nanos();
        self.stats.rtt_count += 1;
    }
}
