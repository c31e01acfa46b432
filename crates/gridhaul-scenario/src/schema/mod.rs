//! JSON Schemas, for example for completion in editors. They are generated from the types and their
//! doc comments.
//!
//! Compiling the derived code takes long, and no program needs it: the library has the generated
//! texts. A unit test compares them with the types. The code is compiled for that test, and with
//! the feature `schema`.

#[cfg(any(test, feature = "schema"))]
mod generate;

#[cfg(any(test, feature = "schema"))]
pub use generate::{answer_schema, json_schema, of_file, relay_schema};

/// JSON Schema (2020-12) of a scenario file.
pub const SCENARIO: &str = include_str!("../../schemas/scenario.schema.json");

/// JSON Schema (2020-12) of an answer in JSON.
pub const ANSWER: &str = include_str!("../../schemas/answer.schema.json");
