//! The tables of the report.

use gridhaul_report::TextTable;
use gridhaul_report::verdict::Verdict;

use super::claims::Claim;
use super::figures::measured_layers;
use super::outages::OutageCell;
use super::plan::Cell;
use super::test_8::Measured;
use crate::experiment::cells::CellResult;
use crate::experiment::reserve::paper::{Column, Tables};

/// Text of a cell of a table that has not been measured.
const NOT_MEASURED: &str = "not measured";

/// Tables 1 to 3: test, simulation scenarios, network codes, and the verdicts of its claims.
pub(super) fn test_table(tables: &Tables, claims: &[Claim]) -> TextTable {
    let rows = tables.test.iter().map(|test| {
        let own = || claims.iter().filter(|claim| claim.recorded.test == test.number);
        let count = |verdict| own().filter(|claim| claim.measured_verdict == verdict).count();
        let counts = [
            (count(Verdict::Agrees), "hold"),
            (count(Verdict::Differs), "do not hold"),
            (count(Verdict::Undecided), "undecided"),
            (count(Verdict::Unknown), "not measured"),
        ];
        let verdict: Vec<_> = counts
            .iter()
            .filter(|count| count.0 > 0)
            .map(|(count, text)| format!("{count} {text}"))
            .collect();
        let verdict =
            if verdict.is_empty() { "a command of its own".into() } else { verdict.join(", ") };
        let list =
            |names: &[String]| if names.is_empty() { "–".into() } else { names.join(", ") };
        let report = test.not_conducted.clone().unwrap_or_else(|| "conducted".into());
        let command = command(&test.number).to_owned();
        let (scenarios, codes) = (list(&test.scenarios), list(&test.network_codes));
        vec![test.number.clone(), test.name.clone(), scenarios, codes, report, verdict, command]
    });
    table(
        "Tables 1 to 3: tests, simulation scenarios, network codes",
        &[
            "test",
            "name",
            "simulation scenarios",
            "network codes",
            "report",
            "statements here",
            "gridhaul measure",
        ],
        rows.collect(),
        7,
        "",
    )
}

/// The command of a test.
fn command(number: &str) -> &'static str {
    match number {
        "1a" => "latency PROTOCOL --system NAME",
        "1b" => "latency PROTOCOL --system NAME --cross-traffic RATE",
        "2a" => "reliability PROTOCOL --system NAME",
        "2b" => "reliability PROTOCOL --system NAME --cross-traffic RATE",
        "3" => "rate PROTOCOL --system NAME",
        "4" => "outage PROTOCOL --of links, broker",
        "5" => "outage PROTOCOL --length 1s, 10s, 30s",
        "6" => "corruption; reliability with `corrupt_undetected` in the scenario",
        "7" => "sync --offset --drift --step",
        _ => "reserve --part efficiency",
    }
}

/// The latencies.
pub(super) fn cell_table(cells: &[Cell]) -> TextTable {
    let rows = cells.iter().map(|cell| {
        let key = &cell.key;
        let keys = [
            key.system.to_owned(),
            key.protocol.to_owned(),
            key.encoding.to_owned(),
            key.values.to_string(),
            key.rate_per_s.to_string(),
            key.note().to_owned(),
        ];
        keys.into_iter().chain(numbers(cell)).collect()
    });
    table(
        "Latency from the send time",
        &[
            "system",
            "protocol",
            "encoding",
            "values",
            "rate (1/s)",
            "",
            "valid",
            "disturbed",
            "messages",
            "missing",
            "p2 (ms)",
            "mean",
            "least mean",
            "largest mean",
            "p98",
            "max",
        ],
        rows.collect(),
        6,
        "valid, disturbed: repetitions. Those in which the generator was late, or the broker \
         waited for a processor, are not evaluated. p2, mean and p98: median over the repetitions; \
         max: of all messages. Each row is a command `gridhaul measure latency`, which the JSON \
         contains.",
    )
}

fn numbers(cell: &Cell) -> Vec<String> {
    let valid: Vec<_> = cell.valid().collect();
    let late = cell.disturbed().to_string();
    if valid.is_empty() {
        let reason = match (&cell.error, cell.disturbed()) {
            (Some(error), _) => error.clone(),
            (None, 0) => NOT_MEASURED.into(),
            (None, _) => "always disturbed".into(),
        };
        let rest = std::iter::repeat_n(String::new(), 7);
        return ["0".into(), late, reason].into_iter().chain(rest).collect();
    }
    let sorted = |of: fn(&CellResult) -> f64| {
        let mut values: Vec<_> = valid.iter().map(|repetition| of(repetition)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |of: fn(&CellResult) -> f64| {
        let values = sorted(of);
        0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2])
    };
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let means = sorted(|repetition| repetition.mean_s);
    let max = sorted(|repetition| repetition.max_s);
    let sum = |of: fn(&CellResult) -> u64| {
        valid.iter().map(|repetition| of(repetition)).sum::<u64>().to_string()
    };
    vec![
        valid.len().to_string(),
        late,
        sum(|repetition| repetition.messages),
        sum(|repetition| repetition.missing),
        ms(median(|repetition| repetition.p2_s)),
        ms(median(|repetition| repetition.mean_s)),
        ms(means[0]),
        ms(means[means.len() - 1]),
        ms(median(|repetition| repetition.p98_s)),
        ms(max[max.len() - 1]),
    ]
}

/// Table 4, printed and measured.
pub(super) fn table_4(tables: &Tables, series: &[Measured]) -> TextTable {
    let mut rows = Vec::new();
    for column in &tables.column {
        let Column { packets, bandwidth_kbit_s, traffic_mib, .. } = column;
        let report = [packets.to_string(), String::new(), String::new(), String::new()];
        let report = report
            .into_iter()
            .chain([bandwidth_kbit_s, traffic_mib].map(|number| format!("{number:.2}")));
        rows.push([vec![column.name.clone(), "report".into()], report.collect()].concat());
        let own: Vec<_> = series.iter().filter(|measured| measured.column == column.name).collect();
        if own.is_empty() {
            rows.push(vec![
                column.name.clone(),
                NOT_MEASURED.into(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        for measured in own {
            let total = measured.phases.total();
            let seconds = measured.messages as f64 / 100.0;
            let edges = measured.phases.opening.packets + measured.phases.closing.packets;
            let cells = [
                format!("measured, {}", source(measured)),
                total.packets.to_string(),
                measured.phases.messages.acknowledgements.to_string(),
                edges.to_string(),
                format!("{} of {}", measured.delivered, measured.messages),
                format!("{:.2}", total.bytes() as f64 * 8.0 / 1_024.0 / seconds),
                format!("{:.2}", total.bytes() as f64 / 1_048_576.0),
            ];
            rows.push([vec![column.name.clone()], cells.to_vec()].concat());
        }
    }
    table(
        "Table 4: traffic of the messages at 100/s, printed and measured",
        &[
            "column",
            "source",
            "packets",
            "of them acknowledgements alone",
            "before and after the messages",
            "delivered",
            "bandwidth (1,024 bit/s)",
            "traffic (MiB)",
        ],
        rows,
        2,
        "Captured at the end of publisher and subscriber. The report has 10,000 messages.",
    )
}

fn source(measured: &Measured) -> &str {
    if measured.broker.is_empty() { "no broker" } else { &measured.broker }
}

/// Table 5, printed and measured.
pub(super) fn measured_table_5(tables: &Tables, series: &[Measured]) -> TextTable {
    let mut rows = Vec::new();
    for column in &tables.column {
        let bytes = &column.bytes;
        let report =
            [bytes.ethernet, bytes.ip, bytes.transport, bytes.protocol, bytes.payload, bytes.total];
        let row = |source: String, bytes: [String; 6]| {
            [vec![column.name.clone(), source], bytes.to_vec()].concat()
        };
        rows.push(row("report".into(), report.map(|bytes| format!("{bytes}"))));
        for measured in series.iter().filter(|measured| measured.column == column.name) {
            let [ethernet, ip, transport, protocol, payload] = measured_layers(measured);
            let total = ethernet + ip + transport + protocol + payload;
            let bytes = [ethernet, ip, transport, protocol, payload, total];
            let source = format!("measured, {}", source(measured));
            rows.push(row(source, bytes.map(|bytes| format!("{bytes:.1}"))));
        }
    }
    table(
        "Table 5: mean bytes of a message by layer, printed and measured",
        &["column", "source", "Ethernet", "IPv4", "TCP", "protocol", "payload", "total"],
        rows,
        2,
        "Measured: packets while messages pass, both legs; the payload is counted once, as in \
         the report, and its second copy is in `protocol`. Ethernet: 14 B for each captured \
         packet, and 4 B for the VLAN tag of Sampled Values, which the report's table does not \
         list. Payload: mean of the messages; the report's row is that of an early message.",
    )
}

/// The outages.
pub(super) fn outage_table(outages: &[OutageCell]) -> TextTable {
    let seconds =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.3}"));
    let rows = outages.iter().map(|cell| {
        let case = &cell.case;
        let broker = if case.mosquitto { ", mosquitto" } else { "" };
        let recovers = match cell.recovers() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "undecided",
        };
        vec![
            format!("{}{broker}", case.protocol),
            case.client.text().to_owned(),
            match case.fault {
                super::outages::Fault::Link => "link".into(),
                super::outages::Fault::Broker => "broker".into(),
            },
            seconds(cell.unavailable_s),
            recovers.to_owned(),
            seconds(cell.first_arrival_after_end_s),
            cell.lost.to_string(),
            cell.refused.to_string(),
            cell.reconnections.to_string(),
        ]
    });
    let errors: Vec<_> = outages.iter().filter_map(|cell| cell.error.as_deref()).collect();
    table(
        "Outages: 100 messages/s, links of the 5G-ready system or the broker",
        &[
            "protocol",
            "client",
            "fault",
            "outage (s)",
            "recovers",
            "first arrival after the end (s)",
            "lost",
            "refused",
            "reconnections",
        ],
        rows.collect(),
        3,
        &errors.join("\n"),
    )
}

fn table(
    title: &str,
    headers: &[&str],
    rows: Vec<Vec<String>>,
    key_columns: usize,
    note: &str,
) -> TextTable {
    TextTable {
        title: title.into(),
        headers: headers.iter().map(|header| (*header).to_owned()).collect(),
        rows,
        key_columns,
        note: Some(note.to_owned()).filter(|note| !note.is_empty()),
    }
}

/// Number of cells with too few repetitions because the machine disturbed them, of all.
pub(super) fn late_cells(cells: &[Cell], repetitions: u32) -> [usize; 2] {
    let is_late =
        |cell: &&Cell| cell.disturbed() > 0 && cell.valid().count() < repetitions as usize;
    [cells.iter().filter(is_late).count(), cells.len()]
}
