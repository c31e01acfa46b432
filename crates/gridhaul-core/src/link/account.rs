//! What is counted of a direction of a link, and what that says.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::scenario::{Direction, Directions};
use gridhaul_scenario::units::{BitRate, Duration, Instant};

use super::{DropReason, LinkDirection, LinkPayload, PacketTransit, TransitOutcome};

/// What is counted of a direction, from the start of the run. [`LinkSet`](super::LinkSet) counts
/// `offered`, `refused` and `queue_max` when a packet is offered; the rest is counted when a packet leaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkAccount {
    /// Packets that were handed in.
    pub offered: u64,
    /// Packets that arrived, damaged ones and second copies included, and their bytes.
    pub arrived: u64,
    /// Bytes of these.
    pub arrived_bytes: u64,
    /// Dropped by the queue, on arrival or later.
    pub dropped_queue: u64,
    /// Of these, those that it did not take.
    pub refused: u64,
    /// Lost on the way.
    pub dropped_loss: u64,
    /// Lost in outages. This and the next two are narrow: there may be millions of directions, and
    /// packets of a microsecond that are all lost take an hour to the end of the type.
    pub dropped_outage: u32,
    /// Lost to attenuation.
    pub dropped_shadowing: u32,
    /// Lost to bursts of noise.
    pub dropped_noise: u32,
    /// Arrived damaged.
    pub damaged: u64,
    /// Second copies that arrived.
    pub copies: u64,
    /// Time that packets waited for the wire, added up.
    pub waited_ns: u64,
    /// Bytes that the transmitter has sent, whether they arrived or not: counted when a packet
    /// leaves, and completed at either end of the measured time by [`at`](Self::at).
    pub wire_bytes: u64,
    /// Time from being handed in to arrival, added up over what arrived, copies left out.
    pub delay_ns: u64,
    /// Most packets that ever waited.
    pub queue_max: u32,
    /// Whether there is attenuation that varies, and noise: only then their losses are told.
    fades: bool,
    is_noisy: bool,
}

impl LinkAccount {
    /// The account of a direction on which nothing has happened yet.
    #[must_use]
    pub fn of(direction: &Direction) -> Self {
        let (fades, is_noisy) = (direction.shadowing.is_some(), !direction.noise.is_empty());
        Self { fades, is_noisy, ..Self::default() }
    }

    /// The account at `now`, together with what the transmitter has sent of packets that have not
    /// left yet. Without these bytes a packet sent before the measured time would count in it when
    /// it arrives, and a saturated link would be used by more than 100 %.
    #[must_use]
    pub fn at<P: LinkPayload>(&self, now: Instant, link: &LinkDirection<P>) -> Self {
        Self { wire_bytes: self.wire_bytes + link.sent_inside(now), ..*self }
    }

    /// The queue has dropped an offered packet.
    #[inline]
    pub(super) const fn on_refused(&mut self) {
        self.dropped_queue += 1;
        self.refused += 1;
    }

    /// A packet leaves the direction.
    #[inline]
    pub fn count<P>(&mut self, transit: &PacketTransit<P>) {
        let PacketTransit { bytes, offered, started, left, outcome, .. } = *transit;
        if !matches!(outcome, TransitOutcome::Arrived) {
            self.count_impaired(transit);
            return;
        }
        // The auditor has seen that these times are in order, or the run is an error.
        let [offered, started, left] = [offered, started, left].map(Instant::as_nanos);
        self.waited_ns += started.wrapping_sub(offered);
        self.wire_bytes += u64::from(bytes);
        self.delay_ns += left.wrapping_sub(offered);
        self.arrived += 1;
        self.arrived_bytes += u64::from(bytes);
    }

    #[cold]
    #[inline(never)]
    fn count_impaired<P>(&mut self, transit: &PacketTransit<P>) {
        let PacketTransit { bytes, offered, started, left, outcome, .. } = *transit;
        if outcome.arrives() {
            self.arrived += 1;
            self.arrived_bytes += u64::from(bytes);
        }
        if outcome.is_duplicate() {
            // A copy never was on the wire: it only arrives.
            self.copies += 1;
            return;
        }
        // What the queue has dropped waited until then, and was never on the wire.
        self.waited_ns += started.since(offered).as_nanos();
        if !matches!(outcome, TransitOutcome::Lost(reason) if reason.is_by_queue()) {
            self.wire_bytes += u64::from(bytes);
        }
        match outcome {
            TransitOutcome::Lost(DropReason::Outage) => add_one(&mut self.dropped_outage),
            TransitOutcome::Lost(DropReason::Shadowing) => add_one(&mut self.dropped_shadowing),
            TransitOutcome::Lost(DropReason::Noise) => add_one(&mut self.dropped_noise),
            TransitOutcome::Lost(reason) if reason.is_by_queue() => self.dropped_queue += 1,
            TransitOutcome::Lost(_) => self.dropped_loss += 1,
            _ => self.delay_ns += left.since(offered).as_nanos(),
        }
        self.damaged += u64::from(outcome.is_corrupted() || outcome.is_corrupted_undetected());
    }

    /// Adds what was counted between `earlier` and `now`.
    pub fn add_difference(&mut self, now: &Self, earlier: &Self) {
        self.offered += now.offered - earlier.offered;
        self.arrived += now.arrived - earlier.arrived;
        self.arrived_bytes += now.arrived_bytes - earlier.arrived_bytes;
        self.dropped_queue += now.dropped_queue - earlier.dropped_queue;
        self.dropped_loss += now.dropped_loss - earlier.dropped_loss;
        self.dropped_outage += now.dropped_outage - earlier.dropped_outage;
        self.dropped_shadowing += now.dropped_shadowing - earlier.dropped_shadowing;
        self.dropped_noise += now.dropped_noise - earlier.dropped_noise;
        self.damaged += now.damaged - earlier.damaged;
        self.copies += now.copies - earlier.copies;
        self.waited_ns += now.waited_ns - earlier.waited_ns;
        self.wire_bytes += now.wire_bytes - earlier.wire_bytes;
        self.delay_ns += now.delay_ns - earlier.delay_ns;
        self.queue_max = self.queue_max.max(now.queue_max);
        self.fades |= now.fades;
        self.is_noisy |= now.is_noisy;
    }

    /// The metrics of all rows: what each direction has counted `now` and at an earlier time, and
    /// the row of each.
    pub fn rows(
        now: impl Iterator<Item = Self>,
        earlier: &[Self],
        directions: &Directions,
        span: Duration,
    ) -> Vec<Metrics> {
        let mut sums = vec![(Self::default(), 0); directions.rows().len()];
        for ((now, earlier), &row) in now.zip(earlier).zip(directions.row_of()) {
            let (sum, members) = &mut sums[row as usize];
            sum.add_difference(&now, earlier);
            *members += 1;
        }
        let rows = sums.into_iter().zip(directions.rates());
        rows.map(|((sum, members), rate)| sum.metrics((members, *rate), span)).collect()
    }

    /// The metrics of a row of so many directions with this rate, of which this is the sum, over the
    /// measured time.
    #[must_use]
    pub fn metrics(&self, (members, rate): (u32, BitRate), span: Duration) -> Metrics {
        let secs = span.as_secs_f64();
        let in_time = [self.dropped_outage, self.dropped_shadowing, self.dropped_noise];
        let lost = self.dropped_queue
            + self.dropped_loss
            + in_time.into_iter().map(u64::from).sum::<u64>();
        let per_link = span.as_nanos() as f64 * f64::from(members.max(1));
        // A standstill in the middle of a packet is no sending: what was sent counts, not from when to when.
        let busy_secs = self.wire_bytes as f64 * 8.0 / rate.as_bits_per_sec().max(1) as f64;
        // Above 1 is rounding: to whole bytes in `at`, and of the emulator's clock to its next look.
        let utilisation = (busy_secs / secs / f64::from(members.max(1))).min(1.0);
        let mut metrics = vec![
            (Metric::LinkThroughput, self.arrived_bytes as f64 * 8.0 / secs),
            (Metric::Utilisation, utilisation),
            (Metric::PacketsIn, self.offered as f64),
            (Metric::PacketsOut, self.arrived as f64),
            (Metric::DropsQueue, self.dropped_queue as f64),
            (Metric::DropsLoss, self.dropped_loss as f64),
            (Metric::DropsOutage, f64::from(self.dropped_outage)),
            (Metric::Corrupted, self.damaged as f64),
            (Metric::Duplicated, self.copies as f64),
            // Little's law: packets waiting on average are packets a second times the time each waits.
            (Metric::QueueMean, self.waited_ns as f64 / per_link),
            (Metric::QueueMax, f64::from(self.queue_max)),
        ];
        if self.fades {
            metrics.push((Metric::DropsShadowing, f64::from(self.dropped_shadowing)));
        }
        if self.is_noisy {
            metrics.push((Metric::DropsNoise, f64::from(self.dropped_noise)));
        }
        if self.offered > 0 {
            metrics.push((Metric::LossRatio, lost as f64 / self.offered as f64));
        }
        let originals = self.arrived - self.copies;
        if originals > 0 {
            metrics.push((Metric::LinkDelayMean, self.delay_ns as f64 / originals as f64 / 1e9));
        }
        metrics
    }
}

/// Counts up to where the type ends.
const fn add_one(count: &mut u32) {
    *count = count.saturating_add(1);
}
