//! `gridhaul schema`: JSON Schemas of scenarios and answers.

use gridhaul_cli::print;
use gridhaul_scenario::schema;

use super::error::CommandError;
use crate::args::{SchemaArgs, SchemaFormat};

/// Prints a schema.
pub(crate) fn run(args: &SchemaArgs) -> Result<(), CommandError> {
    Ok(print(match args.of {
        SchemaFormat::Scenario => schema::SCENARIO,
        SchemaFormat::Answer => schema::ANSWER,
    })?)
}
