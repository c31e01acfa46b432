//! The reference pages: Markdown made from the types, their doc comments and the metric list.

mod section;

use crate::answer::{ColumnInfo, Metric, Scope, SeriesInfo};
use crate::schema;
use crate::units::{BitRate, Bytes, Distance, Duration, Quantity};

/// Reference of the scenario file, as Markdown.
#[must_use]
pub fn scenario_reference() -> String {
    let mut page = String::from(SCENARIO_HEAD);
    section::write_all(&mut page, &schema::json_schema(), "The whole file");
    page += UNITS_HEAD;
    unit_row::<Duration>(&mut page, "time");
    unit_row::<BitRate>(&mut page, "rate");
    unit_row::<Bytes>(&mut page, "size");
    unit_row::<Distance>(&mut page, "distance");
    page += UNITS_TAIL;
    page
}

/// Reference of the answer, as Markdown: its structure and all columns.
#[must_use]
pub fn answer_reference() -> String {
    let mut page = String::from(ANSWER_HEAD);
    section::write_all(&mut page, &schema::answer_schema(), "The whole answer");
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

/// Reference of the recorded series, as Markdown: the tables and their columns.
#[must_use]
pub fn series_reference() -> String {
    let mut page = String::from(SERIES_HEAD);
    for info in SeriesInfo::ALL {
        page += &format!("\n## `{}.parquet`\n\n{}\n", info.name, info.doc);
        columns(&mut page, info.columns);
    }
    page += "\n## Columns of every file\n\nThey follow those of the table.\n";
    columns(&mut page, SeriesInfo::COMMON);
    page += SERIES_TAIL;
    page
}

fn columns(page: &mut String, columns: &[ColumnInfo]) {
    *page += "\n| column | type | unit | meaning |\n|---|---|---|---|\n";
    for ColumnInfo { name, kind, unit, doc } in columns {
        *page += &format!("| `{name}` | {kind} | {unit} | {doc} |\n");
    }
}

const SERIES_HEAD: &str = "\
# Recorded series

<!-- Made from the types in crates/gridhaul-scenario; GRIDHAUL_UPDATE=1 cargo test rewrites it. -->

`record.interval` in the scenario, or `--series '100 ms'`, records series over time. The results folder holds each as
a Parquet file (Snappy compression), which pandas, pyarrow, Polars and DuckDB read. Of several replications, the first is
recorded. In a sweep there is a file for each point: `windows-0.parquet` belongs to the first one. A second backend has its
name at the end: `windows-emu.parquet`.
";

const SERIES_TAIL: &str = "\
| *a swept key* | string | | Value of the key at this point, as in the answer: `\"2 Mbit/s\"`. |

So files of many points can be read as one table, for example in DuckDB:

```sql
SELECT point, flow, avg(cwnd_byte) FROM 'results/queues/windows-*.parquet' GROUP BY ALL;
```

## Metadata

The key-value metadata of a file say of which run it is.

| key | value |
|---|---|
| `gridhaul.version` | Version of gridhaul. |
| `gridhaul.series` | Name of the table. |
| `gridhaul.backend` | `sim` or `emu`. |
| `gridhaul.title` | Title of the scenario. |
| `gridhaul.scenario_sha256` | SHA-256 of the merged scenario, as in `answer.json`. |
| `gridhaul.seed` | Seed of the scenario. |
| `gridhaul.replication` | Which replication was recorded, counted from 0. |
| `gridhaul.point` | Point of the sweep, counted from 0. |
| `gridhaul.parameters` | Swept keys and their values at this point, as JSON. |
| `gridhaul.units` | Units of the columns, as JSON. |
";

const SCENARIO_HEAD: &str = "\
# The scenario file

<!-- Made from the types in crates/gridhaul-scenario; GRIDHAUL_UPDATE=1 cargo test rewrites it. -->

A scenario is a TOML file of at most 4 MB. Quantities are texts with a unit. Unknown keys are
refused, and so is whatever contradicts itself. `scenario.schema.json` lets editors complete keys.
";

const ANSWER_HEAD: &str = "\
# The answer

<!-- Made from the types in crates/gridhaul-scenario; GRIDHAUL_UPDATE=1 cargo test rewrites it. -->

All backends answer with the same structure in JSON. What a backend cannot know is null, never 0.
Columns are named `<quantity>_<unit>`.
";

const CSV_TAIL: &str = "
## CSV

`--csv` prints answers as CSV (RFC 4180), `--csv=FILE` writes them into a file. There is a line for each point, each flow and
direction of a link, and each answer. What is not known is an empty cell.

| column | meaning |
|---|---|
| `answer` | Name of the scenario or results folder. |
| `backend` | Backend that answered. |
| `point` | Point of the sweep, counted from 0. |
| *a swept key* | Value of the key at this point. |
| `kind` | `flow` or `link`. |
| `name`, `count` | As in the rows above. |
| *a column above* | Mean over the replications. |
| *a column above*`_ci95` | Half width of the 95 % confidence interval of the mean. |
| *a column above*`_n` | Replications in which the quantity existed. |
";

const UNITS_HEAD: &str = "
## Units

A quantity is a number, a space and a unit, in quotes: `\"1.5 s\"`, `\"1e3 B\"`, `\"10_000 B\"`. It is
not negative (but for dB) and kept as a whole number of the smallest unit.

| quantity | example | units |
|---|---|---|
";

const UNITS_TAIL: &str = "\
| probability | `\"0.3 %\"` | `%`, from 0 to 100 |
| ratio of powers | `\"20 dB\"` | `dB`; may be negative |
| queue limit | `\"50 packets\"` | `packets`, the units of size, or the word `unlimited` |
| window | `\"50 segments\"` | `segments`, the units of size |

Rates are in bits and sizes in bytes: 1 MB/s is `\"8 Mbit/s\"`. `kB` is 1000 B and `KiB` 1024 B.
";

fn unit_row<Q: Quantity>(page: &mut String, name: &str) {
    let example = Q::EXPECTED.split('"').nth(1).unwrap_or_default();
    let units: Vec<_> = Q::UNITS.iter().rev().map(|(unit, _)| format!("`{unit}`")).collect();
    *page += &format!("| {name} | `\"{example}\"` | {} |\n", units.join(", "));
}
