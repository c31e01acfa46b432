//! The networks of paper `sa-tcp`, section 5.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// A case of the paper's section 5.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) meters: u64,
    /// 0: one hop.
    pub(crate) collectors: u64,
    pub(crate) rate: &'static str,
    pub(crate) room: u64,
    /// Round trip of each hop in microseconds.
    pub(crate) rtt_us: u64,
    /// Least timeout. The paper names none: that of RFC 6298.
    pub(crate) rto_min: &'static str,
    pub(crate) vegas: bool,
    /// What the profile `ns2` does after a silence.
    pub(crate) restart: bool,
}

pub(crate) const FIGURE_10: Case = Case {
    meters: 400_000,
    collectors: 0,
    rate: "2 Mbit/s",
    room: 100,
    rtt_us: 100_000,
    rto_min: "1 s",
    vegas: false,
    restart: false,
};

impl Case {
    pub(crate) fn scenario(&self) -> Scenario {
        let Self { meters, rate, room, rto_min, restart, .. } = *self;
        let delay = self.rtt_us / 2;
        let congestion_control = if self.vegas { "vegas" } else { "reno" };
        let (from, collector) = match self.collectors {
            0 => ("meter", String::new()),
            count => (
                "collector",
                format!(
                    "[node.collector]\ncount = {count}\n[node.collector.aggregator]\n\
                     buffer = \"{room} messages\"\nstack = \"upstream\"\n\
                     [link.access]\nfrom = \"meter\"\nto = \"collector\"\nshared = true\n\
                     both = {{ rate = \"1 Gbit/s\", delay = \"{delay} us\" }}\n"
                ),
            ),
        };
        let text = format!(
            "title = \"meters\"\nduration = \"300 s\"\n\
             [node]\nmeter = {{ count = {meters} }}\nhead = {{}}\n{collector}\
             [link.wan]\nfrom = \"{from}\"\nto = \"head\"\nshared = true\n\
             both = {{ rate = \"{rate}\", delay = \"{delay} us\", queue = \"{room} packets\" }}\n\
             [stack.meter]\nprofile = \"ns2\"\ncongestion_control = \"{congestion_control}\"\nmss = \"200 B\"\n\
             receive_window = \"2 segments\"\nrestart_after_idle = {restart}\nrto_min = \"{rto_min}\"\n\
             [stack.upstream]\nprofile = \"ns2\"\ncongestion_control = \"{congestion_control}\"\nmss = \"200 B\"\n\
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

    pub(crate) fn both(self, collectors: u64) -> [Self; 2] {
        [false, true].map(|vegas| Self { collectors, vegas, ..self })
    }
}
