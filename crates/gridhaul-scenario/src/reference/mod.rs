//! The reference pages: Markdown generated from the types, their doc comments and the list of
//! metrics.

mod section;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::answer::{ColumnInfo, EventInfo, Metric, NAMES, Scope, SeriesInfo};
use crate::schema;
use crate::table::TableName;
use crate::units::{BaseUnit, BitRate, Bytes, Distance, Duration, Quantity};

/// Reference of the scenario file, as Markdown.
#[must_use]
pub fn scenario_reference() -> String {
    let mut page = String::from(SCENARIO_HEAD);
    section::write_all(&mut page, &schema::json_schema(), "Top level");
    page += UNITS_HEAD;
    unit_row::<Duration>(&mut page, "time");
    unit_row::<BitRate>(&mut page, "rate");
    unit_row::<Bytes>(&mut page, "size");
    unit_row::<Distance>(&mut page, "distance");
    page += QUEUE_ROW;
    page += UNITS_TAIL;
    page
}

/// Reference of the configuration of a relay, as Markdown.
#[must_use]
pub fn relay_reference() -> String {
    let mut page = String::from(RELAY_HEAD);
    section::write_all(&mut page, &schema::relay_schema(), "Top level");
    page += UNITS_HEAD;
    unit_row::<Duration>(&mut page, "time");
    unit_row::<BitRate>(&mut page, "rate");
    unit_row::<Bytes>(&mut page, "size");
    page += QUEUE_ROW;
    page += "\n`kB` is 1000 B and `KiB` 1024 B.\n";
    page
}

/// Reference of a file with times, rates and sizes, as Markdown.
#[derive(Debug, Clone, Copy)]
pub struct SchemaPage<'a> {
    /// Heading and introduction.
    pub head: &'a str,
    /// JSON Schema of the file.
    pub schema: &'a Value,
}

impl SchemaPage<'_> {
    /// The page: a section for each table or choice, and the units.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = self.head.to_owned();
        section::write_all(&mut page, self.schema, "Top level");
        page += UNITS_HEAD;
        unit_row::<Duration>(&mut page, "time");
        unit_row::<BitRate>(&mut page, "rate");
        unit_row::<Bytes>(&mut page, "size");
        page += "| window | `\"50 segments\"` | `segments`, the units of size |\n";
        page += "\n`kB` is 1000 B and `KiB` 1024 B.\n";
        page
    }
}

/// Reference of the answer, as Markdown: its structure and all columns.
#[must_use]
pub fn answer_reference() -> String {
    let mut page = String::from(ANSWER_HEAD);
    section::write_all(&mut page, &schema::answer_schema(), "Top level");
    for (scope, heading) in
        [(Scope::Flow, "Columns of a flow"), (Scope::Link, "Columns of a direction of a link")]
    {
        page += &format!(
            "\n## {heading}\n\n| column | heading | unit | meaning |\n|---|---|---|---|\n"
        );
        let infos = Metric::ALL.iter().map(|metric| metric.info());
        for info in infos.filter(|info| info.scope == scope) {
            page += &format!(
                "| `{}` | {} | {} | {} |\n",
                info.column, info.heading, info.unit, info.doc
            );
        }
    }
    page += CSV_TAIL;
    page
}

/// Reference of the tables of answers, as Markdown: the tables and their columns.
#[must_use]
pub fn tables_reference() -> String {
    let mut page = String::from(TABLES_HEAD);
    for (unit, example) in BaseUnit::ALL {
        let symbol = if unit.symbol().is_empty() { "none" } else { unit.symbol() };
        page += &format!("| `_{}` | {symbol} | `{example}` |\n", unit.suffix());
    }
    for name in TableName::ALL {
        let info = name.info();
        page += &format!("\n## `{name}`\n\n{}\n", info.doc);
        columns(&mut page, info.columns);
        if !info.metrics.is_empty() {
            page += &format!("\n{}\n", info.metrics);
        }
    }
    page
}

/// Reference of the recorded series, as Markdown: the tables and their columns.
#[must_use]
pub fn series_reference() -> String {
    let mut page = String::from(SERIES_HEAD);
    for info in SeriesInfo::ALL {
        page += &format!("\n## `{}.parquet`\n\n{}\n", info.name, info.doc);
        columns(&mut page, info.columns);
    }
    page += "\n## Columns of every file\n\nThese columns follow those of the table.\n";
    columns(&mut page, SeriesInfo::COMMON);
    page += SERIES_TAIL;
    page
}

/// Reference of the event logs, as Markdown: the events, their fields and the names in them.
#[must_use]
pub fn events_reference() -> String {
    let mut page = String::from(EVENTS_HEAD);
    table(&mut page, "field", EventInfo::COMMON);
    for (heading, events) in [("ends", EventInfo::ALL), ("nodes", EventInfo::OF_NODES)] {
        page += &format!("\n## Events of {heading}\n");
        for info in events {
            page += &format!("\n### `{}`\n\n{}\n", info.name, info.doc);
            table(&mut page, "field", info.fields);
        }
    }
    page += "\n## Names\n";
    for names in NAMES {
        page += &format!("\n### {}\n\n| name | meaning |\n|---|---|\n", names.field);
        for (name, doc) in names.names {
            page += &format!("| `{name}` | {doc} |\n");
        }
    }
    page
}

fn columns(page: &mut String, columns: &[ColumnInfo]) {
    table(page, "column", columns);
}

fn table(page: &mut String, kind: &str, columns: &[ColumnInfo]) {
    *page += &format!("\n| {kind} | type | unit | meaning |\n|---|---|---|---|\n");
    for ColumnInfo { name, kind, unit, doc } in columns {
        *page += &format!("| `{name}` | {kind} | {unit} | {doc} |\n");
    }
}

const SERIES_HEAD: &str = "\
# Recorded series

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

`record.interval` in the scenario, or `--series '100 ms'`, records series over time. Each series is
a Parquet file (Snappy compression) in the results folder; pandas, pyarrow, Polars and DuckDB read
such files. One replication is recorded: the first, or that of `record.replication`. A sweep has one
file per point: `windows-0.parquet` belongs to the first point. Files of a second backend have its
name appended: `windows-emu.parquet`. The [glossary](../glossary.md) explains terms.
";

const SERIES_TAIL: &str = "\
| *a swept key* | string | | Value of the key at this point, as in the answer: `\"2 Mbit/s\"`. |
| *a swept key*`_`*unit* | double | | The value as a [number](tables.md#swept-keys): 2000000. |

The files of many points can therefore be read as one table, for example in DuckDB:

```sql
SELECT point, flow, avg(cwnd_byte) FROM 'results/queues/windows-*.parquet' GROUP BY ALL;
```

## Metadata

The key-value metadata of a file identify the run.

| key | value |
|---|---|
| `gridhaul.version` | Version of gridhaul. |
| `gridhaul.series` | Name of the table. |
| `gridhaul.backend` | `sim` or `emu`. |
| `gridhaul.title` | Title of the scenario. |
| `gridhaul.scenario_sha256` | SHA-256 of the merged scenario, as in `answer.json`. |
| `gridhaul.seed` | Seed of the scenario. |
| `gridhaul.replication` | Number of the recorded replication, from 0. |
| `gridhaul.point` | Point of the sweep, counted from 0. |
| `gridhaul.parameters` | Swept keys and their values at this point, as JSON. |
| `gridhaul.units` | Units of the columns, as JSON. |
";

const TABLES_HEAD: &str = "\
# Tables

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

`gridhaul export RESULTS --table NAME` writes answers as a table in CSV (`--csv`), JSON (`--json`)
or Parquet (`--parquet FILE`). Names, types and values of the columns are the same in all three.
Unknown values are empty in CSV and null in JSON and Parquet, never 0. Columns of numbers are named
`<quantity>_<unit>`; the metrics are those of the [answer](answer.md). [Recorded
series](series.md) have tables of their own.

## Swept keys

After `point`, each table has two columns for a swept key: first a column of text with the name of
the key and the value as in the scenario, such as `link.feeder.both.delay` and `40 ms`, and after
all texts a column of numbers (double) with the name of the key, `_` and the unit, such as 0.04 in
the column that ends in `delay_s`. Truth values, names, words such as `unlimited` and whole tables
of a scenario have no number. A key whose values have different units, such as `50 packets` and
`64 kB`, has a column for each unit. Whole numbers above 2^53 are exact only in the text.

| end of the name | unit | example of a value |
|---|---|---|
";

const EVENTS_HEAD: &str = "\
# Event logs

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

`record.events` in the scenario, or `--events FLOW`, logs the events of the connection of a flow in
the simulator and the emulator: a line of JSON for each change, in the order of time. The log of
flow `up` is `events/up.jsonl` in the results folder. One replication is logged: the first, or that
of `record.replication`. A sweep has one file per point: `up-0.jsonl`; that of a second backend is
`up-emu.jsonl`. The events have the form of qlog (draft-ietf-quic-qlog-main-schema) and the terms of
TCP. Sequence numbers are relative, as Wireshark shows them: SYN has 0, data begins at 1. [Debugging
a connection](../guides/debugging.md) has an example.

The simulator logs every change with its cause, also at the proxies and aggregators on the path of
the flow. Of a kernel, the log contains the changes between two samples of `TCP_INFO`, in order,
with the cause `sample`, and nothing of the nodes on the path.

## Fields of every line
";

const SCENARIO_HEAD: &str = "\
# The scenario file

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

A scenario is a TOML file of at most 4 MB. Quantities are texts with a unit. Unknown keys and
inconsistent values are errors. Editors can use `scenario.schema.json` for completion. The
[glossary](../glossary.md) explains terms.
";

const RELAY_HEAD: &str = "\
# The relay configuration

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

`gridhaul-relay` reads a TOML file of at most 4 MB. Quantities are texts with a unit. Unknown keys
and inconsistent values are errors: `gridhaul-relay check FILE` reports them with their lines.
Editors can use `relay.schema.json` for completion. The [guide](../guides/relay.md) has examples.
";

const ANSWER_HEAD: &str = "\
# The answer

<!-- Generated from the types in crates/gridhaul-scenario by `GRIDHAUL_UPDATE=1 cargo test`. -->

The answers of all backends have the same structure in JSON. Values that a backend cannot determine
are null, never 0. Columns are named `<quantity>_<unit>`. The [glossary](../glossary.md) explains
terms.
";

const CSV_TAIL: &str = "
## CSV

`--csv` prints answers as CSV (RFC 4180), `--csv=FILE` writes them to a file. There is one line per
answer, point, and flow or direction of a link: the [table](tables.md) `answers`. Unknown values are
empty cells.

| column | meaning |
|---|---|
| `answer` | Name of the scenario or results folder. |
| `backend` | Backend that computed the answer. |
| `point` | Point of the sweep, counted from 0. |
| *a swept key* | Value of the key at this point. |
| *a swept key*`_`*unit* | The value as a number. |
| `kind` | `flow` or `link`. |
| `name`, `count` | Name and count of the row. |
| *a column above* | Mean over the replications. |
| *a column above*`_ci95` | Half width of the 95 % confidence interval of the mean. |
| *a column above*`_n` | Number of replications in which the quantity exists. |
";

const UNITS_HEAD: &str = "
## Units

A quantity is a number, a space and a unit, in quotes: `\"1.5 s\"`, `\"1e3 B\"`,
`\"10_000 B\"`. Only quantities in dB may be negative. Values are rounded to a whole number of the
smallest unit.

| quantity | example | units |
|---|---|---|
";

const QUEUE_ROW: &str = "\
| queue limit | `\"50 packets\"` | `packets`, the units of size, or the word `unlimited` |
";

const UNITS_TAIL: &str = "\
| probability | `\"0.3 %\"` | `%`, from 0 to 100 |
| ratio of powers | `\"20 dB\"` | `dB`; may be negative |
| window | `\"50 segments\"` | `segments`, the units of size |

Rates are in bits and sizes in bytes: 1 MB/s is `\"8 Mbit/s\"`. `kB` is 1000 B and `KiB` 1024 B.
";

fn unit_row<Q: Quantity>(page: &mut String, name: &str) {
    let example = Q::EXPECTED.split('"').nth(1).unwrap_or_default();
    // The list begins with the largest unit, the page with the smallest.
    let units: Vec<_> = Q::UNITS.iter().rev().map(|(unit, _)| format!("`{unit}`")).collect();
    *page += &format!("| {name} | `\"{example}\"` | {} |\n", units.join(", "));
}
