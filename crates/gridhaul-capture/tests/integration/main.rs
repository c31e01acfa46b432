//! Tests of the analysis on captures with a known cause.

mod causes;
mod files;
mod links;
mod support;
