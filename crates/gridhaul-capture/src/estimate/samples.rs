//! Samples of the link that a connection collects in a fixed amount of memory.

use gridhaul_scenario::units::{Duration, Instant};

use super::DelayHistogram;

/// Samples of the link.
#[derive(Debug, Default)]
pub(crate) struct LinkSamples {
    /// Rates of busy periods, by acknowledgements.
    acknowledged: RateSamples,
    /// Rates of consecutive packets, by their arrival.
    arrivals: RateSamples,
    /// Rates between two acknowledgements.
    single: RateSamples,
    busy: Option<BusyPeriod>,
    last_acknowledged: Option<(Instant, Delivered)>,
    last_arrival: Option<Instant>,
    queueing: DelayHistogram,
    /// Sums of all busy periods.
    busy_bytes: u64,
    busy_time: Duration,
}

/// Rates, of which every second one is dropped when they are too many.
#[derive(Debug, Clone, Default)]
pub(crate) struct RateSamples {
    rates: Vec<f64>,
    /// Number of samples for each one that is kept, less one.
    skipped_each: u64,
    skipped: u64,
    /// Sum of the times of all samples, and their number.
    time_s: f64,
    count: u64,
}

/// Acknowledgements during which the bottleneck transmits without a pause.
#[derive(Debug, Clone, Copy)]
struct BusyPeriod {
    start: Instant,
    end: Instant,
    /// Bytes of its first packet, and of its last one.
    size: u32,
    bytes: u64,
    /// Bytes since the end, of packets of other sizes.
    pending: u64,
    acknowledgements: u32,
}

/// Data that an acknowledgement reports as delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    /// Bytes on the link.
    pub(crate) bytes: u64,
    /// Of these, the bytes of the newest packet.
    pub(crate) newest_bytes: u32,
    /// Time at which the newest segment was sent.
    pub(crate) newest_sent: Instant,
    /// Its time above the smallest round trip.
    pub(crate) excess: Duration,
}

/// Acknowledgements of a sample of a busy period: at its ends, an acknowledgement that the receiver
/// delays changes the rate by less than a thirtieth.
const ACKNOWLEDGEMENTS: u32 = 32;

/// Time after which the acknowledgement of a single segment may have been delayed.
const DELAYED: Duration = Duration::from_millis(20);

/// A shorter busy period is no sample.
const ACKNOWLEDGEMENTS_MIN: u32 = 4;

/// Longest gap between two packets of a pair, in round trips.
const GAP_MAX: f64 = 0.6;

const RATES_MAX: usize = 2_048;

impl LinkSamples {
    /// Adds an acknowledgement.
    ///
    /// The bottleneck is busy between two acknowledgements if it stretches a burst, whose segments
    /// were sent in less than half of the time in which they are acknowledged, or if the queue is
    /// longer than that time before and after. `single`: the receiver may have delayed the
    /// acknowledgement. Times count between packets of one size: links after the bottleneck, which
    /// receive a packet before they forward it, are slower for a larger one.
    pub(crate) fn add_acknowledged(&mut self, at: Instant, delivered: &Delivered, single: bool) {
        let previous = self.last_acknowledged.replace((at, *delivered));
        let busy_since = previous.filter(|(previous, before)| {
            let time = at.since(*previous);
            let sent = delivered.newest_sent.since(before.newest_sent);
            let is_burst = sent.mul_f64(2.0) <= time && !(single && time >= DELAYED);
            let is_queued = delivered.excess.min(before.excess) >= time.mul_f64(1.5);
            !time.is_zero() && (is_burst || is_queued)
        });
        let Some((previous, before)) = busy_since else {
            self.finish_busy_period();
            return;
        };
        let time = at.since(previous);
        self.busy_bytes += delivered.bytes;
        self.busy_time += time;
        let is_of_one_size = delivered.newest_bytes == before.newest_bytes;
        if is_of_one_size {
            self.single.add(delivered.bytes, time);
        }
        let busy = self.busy.get_or_insert(BusyPeriod::new(previous, before.newest_bytes));
        busy.pending += delivered.bytes;
        if delivered.newest_bytes == busy.size {
            busy.end = at;
            busy.bytes += std::mem::take(&mut busy.pending);
            busy.acknowledgements += 1;
        } else if busy.acknowledgements == 0 {
            *busy = BusyPeriod::new(at, delivered.newest_bytes);
        }
        if busy.acknowledgements == ACKNOWLEDGEMENTS {
            self.finish_busy_period();
        }
    }

    /// The bottleneck may have been idle, or an acknowledgement says nothing about it.
    pub(crate) fn interrupt(&mut self) {
        self.last_acknowledged = None;
        self.finish_busy_period();
    }

    fn finish_busy_period(&mut self) {
        if let Some(busy) = self.busy.take()
            && busy.acknowledgements >= ACKNOWLEDGEMENTS_MIN
        {
            self.acknowledged.add(busy.bytes, busy.end.since(busy.start));
        }
    }

    /// Adds the arrival of a data packet. `interrupts`: it is not full-sized, or not in order. A
    /// packet that arrives most of a round trip after the one before may have waited for its
    /// acknowledgement, or for the application.
    pub(crate) fn add_arrival(
        &mut self,
        at: Instant,
        bytes: u32,
        interrupts: bool,
        round_trip: Duration,
    ) {
        let previous = self.last_arrival.replace(at);
        if let Some(previous) = previous.filter(|_| !interrupts)
            && previous < at
            && at.since(previous) <= round_trip.mul_f64(GAP_MAX)
        {
            self.arrivals.add(u64::from(bytes), at.since(previous));
        }
    }

    /// Adds the queueing delay of an acknowledged segment.
    pub(crate) fn add_queueing(&mut self, delay: Duration) {
        self.queueing.add(delay, 1);
    }

    /// Time that the bottleneck needs for a packet, if its rate is known.
    pub(crate) fn transmission_time(&self, bytes: u32) -> Option<Duration> {
        let known = self.busy_bytes > 0 && !self.busy_time.is_zero();
        known.then(|| self.busy_time.mul_f64(f64::from(bytes) / self.busy_bytes as f64))
    }

    /// Rates of busy periods, with the one that has not ended.
    pub(crate) fn acknowledged(&self) -> RateSamples {
        let mut copy = Self { busy: self.busy, ..Self::default() };
        copy.acknowledged = self.acknowledged.clone();
        copy.finish_busy_period();
        copy.acknowledged
    }

    /// Rates between two acknowledgements, for connections without longer busy periods.
    pub(crate) const fn single(&self) -> &RateSamples {
        &self.single
    }
    pub(crate) const fn arrivals(&self) -> &RateSamples {
        &self.arrivals
    }
    pub(crate) const fn queueing(&self) -> &DelayHistogram {
        &self.queueing
    }
}

impl BusyPeriod {
    const fn new(start: Instant, size: u32) -> Self {
        Self { start, end: start, size, bytes: 0, pending: 0, acknowledgements: 0 }
    }
}

impl RateSamples {
    fn add(&mut self, bytes: u64, time: Duration) {
        self.time_s += time.as_secs_f64();
        self.count += 1;
        if self.skipped < self.skipped_each {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        if self.rates.len() == RATES_MAX {
            let mut index = 0;
            self.rates.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.skipped_each = 2 * self.skipped_each + 1;
        }
        self.rates.push(bytes as f64 * 8.0 / time.as_secs_f64());
    }

    /// The samples in ascending order.
    pub(crate) fn sorted(&self) -> Vec<f64> {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates
    }

    /// Mean time of a sample.
    pub(crate) fn time_mean_s(&self) -> f64 {
        self.time_s / self.count.max(1) as f64
    }
}
