//! Reports of answers: charts as SVG, tables, and a single HTML file without scripts or external
//! resources.
//!
//! All charts are rendered by this crate: the report inlines them, the command line writes them as
//! files. The output is deterministic: the same input gives the same bytes.

#![forbid(unsafe_code)]

pub mod chart;
mod deadline_checks;
pub mod format;
pub mod html;
mod parameter_label;
mod point_index;
mod quantity;
mod result;
mod similar_warnings;
mod swept_keys;
pub mod text_table;
pub mod verdict;

pub use chart::{BarChart, BoxPlot, Chart, LineChart, Panels, RegionChart, StackedChart};
pub use deadline_checks::deadline_checks;
pub use html::{NamedChart, Report, Summary, chart_over_time, charts, charts_over_time, html};
pub use point_index::{PointIndex, swept_values};
pub use quantity::quantity;
pub use result::result;
pub use similar_warnings::{ShownWarning, shown_warnings};
pub use text_table::{Detail, HEADLINE, TextTable, table, tables, tables_of};
pub use verdict::{Comparison, Reference, ValueRange, Verdict};
