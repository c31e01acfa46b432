//! Schema and reference page of measurement files, generated from the types and their doc comments.

use gridhaul_scenario::reference::SchemaPage;
use gridhaul_scenario::schema;
use serde_json::Value;

use super::Measurement;

/// JSON Schema (2020-12) of a measurement file.
#[must_use]
pub fn json_schema() -> Value {
    schema::of_file::<Measurement>("gridhaul measurement")
}

/// Reference of the measurement file, as Markdown.
#[must_use]
pub fn page() -> String {
    SchemaPage { head: HEAD, schema: &json_schema() }.to_markdown()
}

const HEAD: &str = "\
# The measurement file

<!-- Generated from the types in crates/gridhaul-measure by `GRIDHAUL_UPDATE=1 cargo test`. -->

`gridhaul measure run FILE` reads a TOML file of at most 4 MB; `--save FILE` of the other commands
writes the file that their options mean. Quantities are texts with a unit. Unknown keys and
inconsistent values are errors. Editors can use `measurement.schema.json` for completion. The
[guide](../guides/measuring.md) has examples.
";
