//! Counters of a direction of a link, and the metrics computed from them.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::scenario::{Direction, Directions};
use gridhaul_scenario::units::{BitRate, Duration, Instant};

use super::{DropReason, LinkDirection, LinkPayload, PacketTransit, TransitOutcome};

/// Counters of a direction since the start of the run. [`LinkSet`](super::LinkSet) updates
/// `offered`, `refused` and `queue_max` when a packet is offered; the others are updated when a
/// packet departs.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkAccount {
    /// Packets offered.
    pub offered: u64,
    /// Packets that arrived, corrupted packets and duplicates included. The compiler would add to
    /// this and to the bytes with one vector addition, which takes longer, if they were neighbours.
    pub arrived: u64,
    /// Packets dropped by the queue, on arrival or later.
    pub dropped_queue: u64,
    /// Bytes that arrived.
    pub arrived_bytes: u64,
    /// Packets dropped by the queue on arrival.
    pub refused: u64,
    /// Packets lost at random, by list or in collisions.
    pub dropped_loss: u64,
    /// Packets lost in outages. This counter and the next two have 32 bits, because there may be
    /// millions of directions; a loss every microsecond would saturate them after more than an
    /// hour.
    pub dropped_outage: u32,
    /// Packets lost to attenuation.
    pub dropped_shadowing: u32,
    /// Packets lost to noise bursts.
    pub dropped_noise: u32,
    /// Packets that arrived corrupted.
    pub corrupted: u64,
    /// Duplicates that arrived.
    pub duplicates: u64,
    /// Sum of the waits in the queue of all packets: counted when a packet departs, and completed
    /// at both ends of the measured time by [`at`](Self::at).
    pub waited_ns: u64,
    /// Bytes transmitted, whether they arrived or not: counted when a packet departs, and completed
    /// at both ends of the measured time by [`at`](Self::at).
    pub wire_bytes: u64,
    /// Sum of the delays from offer to arrival, without duplicates.
    pub delay_ns: u64,
    /// Maximum queue length in packets, in the measured time if it has begun.
    pub queue_max: u32,
    /// Transmissions that collided on a shared medium, whether the packet was lost or not; 32 bits
    /// as above.
    pub collisions: u32,
    /// Packets that attackers dropped; 32 bits as above.
    pub dropped_attack: u32,
    /// Packets that attackers have delayed and altered: determined by [`at`](Self::at).
    delayed_attack: u32,
    altered_attack: u32,
    /// Packets that active queue management marked and that arrived; 32 bits as above.
    pub marked: u32,
    /// Whether the direction has shadowing, noise or marks, contends for its medium, or is under
    /// attack: only then the metrics include their losses, collisions and attacked packets.
    has_shadowing: bool,
    has_noise: bool,
    has_marks: bool,
    pub(super) has_contention: bool,
    pub(super) has_attacks: bool,
}

impl LinkAccount {
    /// The zero counters of a direction.
    #[must_use]
    pub fn of(direction: &Direction) -> Self {
        let (has_shadowing, has_noise) =
            (direction.shadowing.is_some(), !direction.noise.is_empty());
        let has_marks = direction.marks_packets();
        Self { has_shadowing, has_noise, has_marks, ..Self::default() }
    }

    /// The counters at `now`, including the bytes transmitted of packets that have not departed
    /// yet, and their waits so far. Without these bytes a packet transmitted before the measured
    /// time would be counted within it, and the utilisation of a saturated link would exceed 100 %.
    /// Without these waits the mean queue length would contain those of packets that wait before
    /// the measured time, and lack those of packets that still wait at its end.
    #[must_use]
    pub fn at<P: LinkPayload>(&self, now: Instant, link: &LinkDirection<P>) -> Self {
        let [delayed_attack, altered_attack] = link.attacked();
        let wire_bytes = self.wire_bytes + link.sent_inside(now);
        let waited_ns = self.waited_ns + link.waited_inside(now);
        Self { wire_bytes, waited_ns, delayed_attack, altered_attack, ..*self }
    }

    /// The queue has dropped an offered packet on arrival.
    #[inline]
    pub(super) const fn on_refused(&mut self) {
        self.dropped_queue += 1;
        self.refused += 1;
    }

    /// A transmission of the direction has collided.
    #[inline]
    pub(super) const fn on_collision(&mut self) {
        self.collisions = self.collisions.saturating_add(1);
    }

    /// A packet departs.
    #[inline]
    pub(super) fn count<P>(&mut self, transit: &PacketTransit<P>) {
        if matches!(transit.outcome, TransitOutcome::Arrived) {
            self.count_arrived(transit);
        } else {
            self.count_impaired(transit);
        }
    }

    /// A packet arrives unimpaired.
    #[inline]
    pub(super) fn count_arrived<P>(&mut self, transit: &PacketTransit<P>) {
        let PacketTransit { bytes, offered, started, left, .. } = *transit;
        // The audit verifies the order of these times, so the subtractions cannot wrap.
        let [offered, started, left] = [offered, started, left].map(Instant::as_nanos);
        self.waited_ns += started.wrapping_sub(offered);
        self.wire_bytes += u64::from(bytes);
        self.delay_ns += left.wrapping_sub(offered);
        self.arrived += 1;
        self.arrived_bytes += u64::from(bytes);
    }

    /// A packet departs that is lost or impaired.
    #[cold]
    #[inline(never)]
    pub(super) fn count_impaired<P>(&mut self, transit: &PacketTransit<P>) {
        let PacketTransit { bytes, offered, started, left, outcome, .. } = *transit;
        if outcome.arrives() {
            self.arrived += 1;
            self.arrived_bytes += u64::from(bytes);
        }
        if outcome.is_duplicate() {
            // A duplicate was not transmitted: it only arrives.
            self.duplicates += 1;
            return;
        }
        // A packet dropped by AQM waited until the drop and was not transmitted.
        self.waited_ns += started.since(offered).as_nanos();
        if !matches!(outcome, TransitOutcome::Lost(reason) if reason.is_by_queue()) {
            self.wire_bytes += u64::from(bytes);
        }
        match outcome {
            TransitOutcome::Lost(DropReason::Outage) => add_one(&mut self.dropped_outage),
            TransitOutcome::Lost(DropReason::Shadowing) => add_one(&mut self.dropped_shadowing),
            TransitOutcome::Lost(DropReason::Noise) => add_one(&mut self.dropped_noise),
            TransitOutcome::Lost(DropReason::Attack) => add_one(&mut self.dropped_attack),
            TransitOutcome::Lost(reason) if reason.is_by_queue() => self.dropped_queue += 1,
            TransitOutcome::Lost(_) => self.dropped_loss += 1,
            _ => {
                self.delay_ns += left.since(offered).as_nanos();
                self.marked =
                    self.marked.saturating_add(u32::from(outcome == TransitOutcome::Marked));
            }
        }
        self.corrupted += u64::from(outcome.is_corrupted() || outcome.is_corrupted_undetected());
    }

    /// Adds the difference between `now` and `earlier`.
    pub fn add_difference(&mut self, now: &Self, earlier: &Self) {
        self.offered += now.offered - earlier.offered;
        self.arrived += now.arrived - earlier.arrived;
        self.arrived_bytes += now.arrived_bytes - earlier.arrived_bytes;
        self.dropped_queue += now.dropped_queue - earlier.dropped_queue;
        self.dropped_loss += now.dropped_loss - earlier.dropped_loss;
        self.dropped_outage += now.dropped_outage - earlier.dropped_outage;
        self.dropped_shadowing += now.dropped_shadowing - earlier.dropped_shadowing;
        self.dropped_noise += now.dropped_noise - earlier.dropped_noise;
        self.corrupted += now.corrupted - earlier.corrupted;
        self.duplicates += now.duplicates - earlier.duplicates;
        self.waited_ns += now.waited_ns - earlier.waited_ns;
        self.wire_bytes += now.wire_bytes - earlier.wire_bytes;
        self.delay_ns += now.delay_ns - earlier.delay_ns;
        self.queue_max = self.queue_max.max(now.queue_max);
        self.has_shadowing |= now.has_shadowing;
        self.has_noise |= now.has_noise;
        self.marked += now.marked - earlier.marked;
        self.has_marks |= now.has_marks;
        self.collisions += now.collisions - earlier.collisions;
        self.has_contention |= now.has_contention;
        self.dropped_attack += now.dropped_attack - earlier.dropped_attack;
        self.delayed_attack += now.delayed_attack - earlier.delayed_attack;
        self.altered_attack += now.altered_attack - earlier.altered_attack;
        self.has_attacks |= now.has_attacks;
    }

    /// The metrics of all rows, directions and then their classes, from the counters `now` and
    /// `earlier` of each direction and each class.
    pub fn rows(
        now: impl Iterator<Item = Self>,
        earlier: &[Self],
        directions: &Directions,
        span: Duration,
    ) -> Vec<Metrics> {
        let mut sums = vec![(Self::default(), 0); directions.answer_rows().len()];
        let rows = directions.row_of().iter().chain(directions.row_of_class());
        for ((now, earlier), &row) in now.zip(earlier).zip(rows) {
            let (sum, members) = &mut sums[row as usize];
            sum.add_difference(&now, earlier);
            *members += 1;
        }
        let rates = directions.rates().iter().chain(directions.class_rates());
        let rows = sums.into_iter().zip(rates);
        rows.map(|((sum, members), rate)| sum.metrics((members, *rate), span)).collect()
    }

    /// The metrics of a row over the measured time, from the summed counters of its `members`
    /// directions of this rate.
    #[must_use]
    pub fn metrics(&self, (members, rate): (u32, BitRate), span: Duration) -> Metrics {
        let secs = span.as_secs_f64();
        let others =
            [self.dropped_outage, self.dropped_shadowing, self.dropped_noise, self.dropped_attack];
        let lost =
            self.dropped_queue + self.dropped_loss + others.into_iter().map(u64::from).sum::<u64>();
        let per_link = span.as_nanos() as f64 * f64::from(members.max(1));
        // Utilisation counts bytes, because an outage within a packet lengthens the time of its
        // transmission.
        let busy_secs = self.wire_bytes as f64 * 8.0 / rate.as_bits_per_sec().max(1) as f64;
        // A value above 1 is rounding: to whole bytes in `at`, and to the polling interval of the
        // emulator.
        let utilisation = (busy_secs / secs / f64::from(members.max(1))).min(1.0);
        let mut metrics = vec![
            (Metric::LinkThroughput, self.arrived_bytes as f64 * 8.0 / secs),
            (Metric::Utilisation, utilisation),
            (Metric::PacketsIn, self.offered as f64),
            (Metric::PacketsOut, self.arrived as f64),
            (Metric::DropsQueue, self.dropped_queue as f64),
            (Metric::DropsLoss, self.dropped_loss as f64),
            (Metric::DropsOutage, f64::from(self.dropped_outage)),
            (Metric::Corrupted, self.corrupted as f64),
            (Metric::Duplicated, self.duplicates as f64),
            // The waits within the measured time are the integral of the queue length over it.
            (Metric::QueueMean, self.waited_ns as f64 / per_link),
            (Metric::QueueMax, f64::from(self.queue_max)),
        ];
        if self.has_shadowing {
            metrics.push((Metric::DropsShadowing, f64::from(self.dropped_shadowing)));
        }
        if self.has_noise {
            metrics.push((Metric::DropsNoise, f64::from(self.dropped_noise)));
        }
        if self.has_marks {
            metrics.push((Metric::Marked, f64::from(self.marked)));
        }
        if self.has_contention {
            metrics.push((Metric::Collisions, f64::from(self.collisions)));
        }
        if self.has_attacks {
            metrics.push((Metric::DropsAttack, f64::from(self.dropped_attack)));
            metrics.push((Metric::DelayedAttack, f64::from(self.delayed_attack)));
            metrics.push((Metric::AlteredAttack, f64::from(self.altered_attack)));
        }
        // Packets that were offered before the measured time may be lost within it, and be more
        // than those offered within it.
        let offered = self.offered.max(lost);
        if offered > 0 {
            metrics.push((Metric::LossRatio, lost as f64 / offered as f64));
        }
        let originals = self.arrived - self.duplicates;
        if originals > 0 {
            metrics.push((Metric::LinkDelayMean, self.delay_ns as f64 / originals as f64 / 1e9));
        }
        metrics
    }
}

/// Increments a counter, saturating.
const fn add_one(count: &mut u32) {
    *count = count.saturating_add(1);
}
