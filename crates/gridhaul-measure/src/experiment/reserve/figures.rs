//! The figures of the report, from measurements in which the generator was on time.

use gridhaul_report::chart::{
    Axis, BarSeries, BoxPlot, BoxStatistics, Chart, GroupedChart, StackedChart,
};

use super::extent::Extent;
use super::plan::{AMQP, Cell, CellKey, PROTOCOLS, SYSTEMS, Variant};
use super::test_8::Measured;
use crate::experiment::reserve::paper::Tables;
use crate::report::box_plot;

/// All figures that have been measured, with the names of their files.
pub(super) fn figures(
    cells: &[Cell],
    series: &[Measured],
    tables: &Tables,
    extent: &Extent,
) -> Vec<(&'static str, Chart)> {
    let latency = Latency { cells, extent };
    let mut charts = Vec::new();
    if !cells.is_empty() {
        charts.extend([
            (
                "figure-6-ethernet",
                latency.by_protocol("Figure 6: Ethernet", "ethernet", &PROTOCOLS),
            ),
            (
                "figure-7-5g-ready",
                latency.by_protocol("Figure 7: 5G-ready, uplink", "5g-ready", &PROTOCOLS),
            ),
            (
                "figure-8-5g-prototype",
                latency.by_protocol("Figure 8: 5G prototype, uplink", "5g-prototype", &PROTOCOLS),
            ),
            (
                "figure-10-amqp",
                latency.by_system("Figure 10: AMQP in the uplink of all systems", AMQP),
            ),
            ("systems-mqtt", latency.by_system("MQTT in the uplink of all systems", "mqtt")),
            ("nagle-mqtt", latency.nagle()),
        ]);
        if extent.encodings {
            charts.extend([
                ("encodings-ethernet", latency.encodings("Ethernet, 100 messages/s", "ethernet")),
                ("encodings-5g-ready", latency.encodings("5G-ready, 100 messages/s", "5g-ready")),
            ]);
        }
    }
    if !series.is_empty() {
        charts.push(("figure-9-bytes", figure_9(tables, series)));
    }
    charts
}

struct Latency<'a> {
    cells: &'a [Cell],
    extent: &'a Extent,
}

impl Latency<'_> {
    fn find(&self, key: CellKey) -> Option<BoxStatistics> {
        self.cells.iter().find(|cell| cell.key == key).and_then(statistics)
    }

    /// The box plot of a figure, with one series for each rate.
    fn with_rates(&self, plot: BoxPlot, keys: &[CellKey]) -> Chart {
        let plot = self.extent.rates.iter().fold(plot, |plot, &rate_per_s| {
            let boxes = keys.iter().map(|key| self.find(CellKey { rate_per_s, ..*key }));
            plot.with(format!("{rate_per_s} messages/s"), boxes)
        });
        plot.into()
    }

    fn by_protocol(&self, title: &str, system: &'static str, protocols: &[&'static str]) -> Chart {
        let keys: Vec<_> =
            protocols.iter().map(|protocol| CellKey::uplink(system, protocol, 0)).collect();
        self.with_rates(plot(title, protocols), &keys)
    }

    fn by_system(&self, title: &str, protocol: &'static str) -> Chart {
        self.with_rates(
            plot(title, &SYSTEMS),
            &SYSTEMS.map(|system| CellKey::uplink(system, protocol, 0)),
        )
    }

    fn nagle(&self) -> Chart {
        let key = CellKey::uplink("5g-ready", "mqtt", 0);
        let keys = [key, key.with(Variant::Nagle)];
        let groups = ["off (TCP_NODELAY)", "on (default of clients)"];
        self.with_rates(plot("MQTT on the 5G-ready system: Nagle's algorithm", &groups), &keys)
    }

    /// JSON against Protobuf, and 10 against 100 values.
    fn encodings(&self, title: &str, system: &'static str) -> Chart {
        let groups = ["MQTT, Protobuf", "MQTT, JSON", "AMQP, Protobuf", "AMQP, JSON"];
        let keys = |values: u32| {
            ["mqtt", AMQP].into_iter().flat_map(move |protocol| {
                ["protobuf", "json"].map(|encoding| CellKey {
                    encoding,
                    values,
                    ..CellKey::uplink(system, protocol, 100)
                })
            })
        };
        let chart = [10, 100].into_iter().fold(plot(title, &groups), |chart, values| {
            chart.with(format!("{values} values"), keys(values).map(|key| self.find(key)))
        });
        chart.into()
    }
}

fn plot(title: &str, groups: &[&str]) -> BoxPlot {
    box_plot(title, Axis::new("latency", "s").log(), groups.iter().copied())
}

/// The box of a cell: each number is the median over its repetitions, the largest value that of
/// all.
fn statistics(cell: &Cell) -> Option<BoxStatistics> {
    let boxes: Vec<_> = cell.valid().map(|repetition| repetition.statistics()).collect();
    let median = |of: &dyn Fn(&BoxStatistics) -> f64| {
        let mut values: Vec<_> = boxes.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        Some(0.5 * (values.get(count.checked_sub(1)? / 2)? + values.get(count / 2)?))
    };
    let has_tail = boxes.iter().all(|numbers| numbers.tail.is_some());
    Some(BoxStatistics {
        whiskers: [
            median(&|numbers| numbers.whiskers[0])?,
            median(&|numbers| numbers.whiskers[1])?,
        ],
        quartiles: [
            median(&|numbers| numbers.quartiles[0])?,
            median(&|numbers| numbers.quartiles[1])?,
        ],
        mean: median(&|numbers| numbers.mean)?,
        tail: if has_tail { median(&|numbers| numbers.tail.unwrap_or(f64::NAN)) } else { None },
        max: boxes.iter().map(|numbers| numbers.max).reduce(f64::max)?,
    })
}

/// Figure 9: bytes of a message by layer, printed and measured. The payload is counted once, as in
/// the report.
fn figure_9(tables: &Tables, series: &[Measured]) -> Chart {
    let mut groups = Vec::new();
    let mut layers: [Vec<f64>; 5] = Default::default();
    let mut add = |name: String, bytes: [f64; 5]| {
        groups.push(name);
        layers.iter_mut().zip(bytes).for_each(|(layer, bytes)| layer.push(bytes));
    };
    for column in &tables.column {
        let bytes = &column.bytes;
        let report = [bytes.ethernet, bytes.ip, bytes.transport, bytes.protocol, bytes.payload];
        add(format!("{}: report", column.name), report);
        for measured in series.iter().filter(|measured| measured.column == column.name) {
            let broker = if measured.broker == "mosquitto" { ", mosquitto" } else { "" };
            add(format!("{}: measured{broker}", column.name), measured_layers(measured));
        }
    }
    let names = ["Ethernet", "IPv4", "TCP", "protocol", "payload"];
    let title = "Figure 9: bytes of a message by layer, report and measurement";
    let chart = StackedChart(GroupedChart::new(title, Axis::new("size", "B"), groups));
    let chart = names
        .into_iter()
        .zip(layers)
        .fold(chart, |chart, (name, bytes)| chart.with(BarSeries::new(name, bytes)));
    chart.into()
}

/// Bytes of a message in Ethernet with VLAN tag, IP, TCP, protocol and payload, the payload counted
/// once.
pub(super) fn measured_layers(measured: &Measured) -> [f64; 5] {
    let found = measured.phases.messages;
    let per_message = |bytes: u64| measured.per_message(bytes);
    let protocol = per_message(found.application) - measured.payload_bytes;
    [
        per_message(found.ethernet + found.vlan),
        per_message(found.ip),
        per_message(found.transport),
        protocol,
        measured.payload_bytes,
    ]
}
