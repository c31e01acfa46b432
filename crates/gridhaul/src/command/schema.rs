//! `gridhaul schema`: JSON Schemas of what is asked and what is answered.

use gridhaul_scenario::schema;

use super::error::CommandError;
use super::run::json;
use crate::args::{SchemaArgs, SchemaOf};
use crate::terminal::print;

/// Prints a schema.
pub(crate) fn run(args: &SchemaArgs) -> Result<(), CommandError> {
    let schema = match args.of {
        SchemaOf::Scenario => schema::json_schema(),
        SchemaOf::Answer => schema::answer_schema(),
    };
    Ok(print(&json(&schema)?)?)
}
