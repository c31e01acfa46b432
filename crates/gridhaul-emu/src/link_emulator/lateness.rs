//! Lateness of events relative to their deadlines.

use gridhaul_scenario::units::Duration;
use hdrhistogram::Histogram;

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
