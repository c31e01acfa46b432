//! The networks of paper `sa-tcp`, section 5.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// A case of the paper's section 5.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) meters: u64,
    /// Number of aggregators; 0 for one hop.
    pub(crate) aggregators: u64,
    pub(crate) rate: &'static str,
    pub(crate) queue: u64,
    /// Round-trip time of each hop in microseconds.
    pub(crate) rtt_us: u64,
    /// Minimum timeout. The paper gives none: that of RFC 6298.
    pub(crate) rto_min: &'static str,
    pub(crate) vegas: bool,
    /// Whether the connection restarts after a silence as in profile `ns2`.
    pub(crate) restart: bool,
    /// Whether aggregators close receive windows, with one message of buffer space per meter.
    pub(crate) backpressure: bool,
}

pub(crate) const FIGURE_10: Case = Case {
    meters: 400_000,
    aggregators: 0,
    rate: "2 Mbit/s",
    queue: 100,
    rtt_us: 100_000,
    rto_min: "1 s",
    vegas: false,
    restart: false,
    backpressure: false,
};

impl Case {
    pub(crate) fn scenario(&self) -> Scenario {
        let Self { meters, rate, queue, rto_min, restart, .. } = *self;
        let delay = self.rtt_us / 2;
        let (buffer, when_full) = if self.backpressure {
            (meters.div_ceil(self.aggregators.max(1)), "backpressure")
        } else {
            (queue, "drop")
        };
        let congestion_control = if self.vegas { "vegas" } else { "reno" };
        let (from, aggregator) = match self.aggregators {
            0 => ("meter", String::new()),
            count => (
                "aggregator",
                format!(
                    "[node.aggregator]\ncount = {count}\n[node.aggregator.aggregator]\n\
                     buffer = \"{buffer} messages\"\nstack = \"upstream\"\nwhen_full \
                     = \"{when_full}\"\n\
                     [link.access]\nfrom = \"meter\"\nto = \"aggregator\"\nshared = true\n\
                     both = {{ rate = \"1 Gbit/s\", delay = \"{delay} us\" }}\n"
                ),
            ),
        };
        let text = format!(
            "title = \"meters\"\nduration = \"300 s\"\n\
             [node]\nmeter = {{ count = {meters} }}\nhead = {{}}\n{aggregator}\
             [link.wan]\nfrom = \"{from}\"\nto = \"head\"\nshared = true\n\
             both = {{ rate = \"{rate}\", delay = \"{delay} us\", queue = \"{queue} packets\" }}\n\
             [stack.meter]\nprofile = \"ns2\"\ncongestion_control = \"{congestion_control}\"\nmss \
             = \"200 B\"\n\
             receive_window = \"2 segments\"\nrestart_after_idle = {restart}\nrto_min \
             = \"{rto_min}\"\n\
             [stack.upstream]\nprofile = \"ns2\"\ncongestion_control \
             = \"{congestion_control}\"\nmss = \"200 B\"\n\
             receive_window = \"64 segments\"\nrto_min = \"{rto_min}\"\n\
             [flow.reading]\nfrom = \"meter\"\nto = \"head\"\nstack = \"meter\"\n\
             load.on_off = {{ on = \"100 ms\", off = \"1 min\", size = \"200 B\" }}\n"
        );
        Scenario::from_toml(&text, "case.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn answer(&self, backend: &dyn Backend) -> Answer {
        backend
            .run(&self.scenario(), &NoProgress)
            .unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    pub(crate) fn metric(&self, backend: &dyn Backend, metric: Metric) -> f64 {
        let answer = self.answer(backend);
        answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("{self:?}: no {metric}"))
    }

    pub(crate) fn loss(&self, backend: &dyn Backend) -> f64 {
        self.metric(backend, Metric::SegmentLossTotal)
    }

    pub(crate) fn both(self, aggregators: u64) -> [Self; 2] {
        [false, true].map(|vegas| Self { aggregators, vegas, ..self })
    }
}
