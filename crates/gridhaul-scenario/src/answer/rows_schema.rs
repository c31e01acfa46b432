//! Schemas of the rows of an answer, which have different columns.

use schemars::{Schema, SchemaGenerator};
use serde_json::json;

use super::{Metric, Row, Scope};

pub(super) fn flow_rows(generator: &mut SchemaGenerator) -> Schema {
    rows_schema(generator, Scope::Flow)
}

pub(super) fn link_rows(generator: &mut SchemaGenerator) -> Schema {
    rows_schema(generator, Scope::Link)
}

/// Schema of rows with the columns of every row of their scope.
fn rows_schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
    let columns: Vec<_> = Metric::of_every_row(scope).map(|metric| metric.info().column).collect();
    let mut row = generator.subschema_for::<Row>();
    row.insert("properties".to_owned(), json!({ "metrics": { "required": columns } }));
    schemars::json_schema!({ "type": "array", "items": row })
}
