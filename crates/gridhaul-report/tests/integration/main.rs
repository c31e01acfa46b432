//! Tests of charts and reports.

#[path = "../../examples/gallery/answers.rs"]
mod answers;
mod charts;
mod report;
mod result;
