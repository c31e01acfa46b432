//! Data files of scenarios and answers: recorded traces, traces of links and
//! distributions of their quality, series in Parquet and
//! captures in pcapng. Parsing a scenario opens none of them; [`trace::load_scenario`] and
//! [`trace::check`] do.

#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
mod column_values;
pub mod link_quality;
mod link_table;
pub mod link_trace;
pub mod pcapng;
#[cfg(feature = "parquet")]
mod repeated_pages;
#[cfg(feature = "parquet")]
pub mod series;
#[cfg(feature = "parquet")]
pub mod table;
pub mod trace;
