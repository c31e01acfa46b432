//! Lateness of events relative to their deadlines.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::units::Duration;
use hdrhistogram::Histogram;

/// Lateness above which a packet counts as forwarded late.
const LATE: Duration = Duration::from_millis(1);

/// Packets that a network has forwarded so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// All packets.
    pub packets: u64,
    /// Packets that left more than 1 ms after they were due, because this machine was busy.
    pub late: u64,
}

impl Forwarded {
    /// Counters of the packets forwarded after `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, late: self.late - earlier.late }
    }
}

/// Counts packets while other threads read the counts.
#[derive(Debug, Default)]
pub(crate) struct ForwardedCounter {
    packets: AtomicU64,
    late: AtomicU64,
}

impl ForwardedCounter {
    pub(crate) fn record(&self, late: Duration) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add(u64::from(late > LATE), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Forwarded {
        // In this order, no more packets are late than were forwarded.
        let late = self.late.load(Ordering::Relaxed);
        Forwarded { packets: self.packets.load(Ordering::Relaxed), late }
    }
}

/// Distribution of the lateness of events.
#[derive(Debug)]
pub(crate) struct Lateness {
    /// In microseconds.
    histogram: Histogram<u64>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new(2).expect("two digits are within hdrhistogram's bounds");
        Self { histogram }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        self.histogram.record(late.as_nanos() / 1_000).expect("the histogram grows");
    }

    /// A quantile of the lateness; `None` without events.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let known = !self.histogram.is_empty();
        known.then(|| Duration::from_micros(self.histogram.value_at_quantile(share)))
    }
}
