//! The reference pages: Markdown made from the types, their doc comments and the metric list.

mod section;

use crate::answer::{Metric, Scope};
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
    page
}

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
