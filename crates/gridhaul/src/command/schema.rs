//! `gridhaul schema`: JSON Schemas of scenarios and answers.

use gridhaul_scenario::schema;

use super::error::CommandError;
use super::run::json;
use crate::args::{SchemaArgs, SchemaFormat};
use crate::terminal::print;

/// Prints a schema.
pub(crate) fn run(args: &SchemaArgs) -> Result<(), CommandError> {
    let schema = match args.of {
        SchemaFormat::Scenario => schema::json_schema(),
        SchemaFormat::Answer => schema::answer_schema(),
    };
    Ok(print(&json(&schema)?)?)
}
