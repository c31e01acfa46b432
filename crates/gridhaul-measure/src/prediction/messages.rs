//! Messages as input and output of the simulator.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gridhaul::scenario::answer::{Answer, Column, ColumnData};
use gridhaul_scenario::units::{Duration, Instant};

use super::PredictionError;

/// Writes messages as a trace, in the order of time.
pub(super) fn write_trace(
    folder: &Path,
    flow: &str,
    due: &[(Instant, usize)],
    bytes: u64,
) -> Result<(), PredictionError> {
    let mut text = String::from("time_ns,bytes\n");
    for (at, _) in due {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{},{bytes}", at.as_nanos());
    }
    let path = folder.join(format!("{flow}.csv"));
    let failed = |source| PredictionError::Trace { path: path.display().to_string(), source };
    fs::write(&path, text).map_err(failed)
}

/// Times at which the messages of a flow were due, and their delays, in the order of arrival.
pub(super) fn delays(answer: &Answer, flow: &str) -> Vec<(Instant, Duration)> {
    let Some(series) = answer.series.iter().find(|series| series.name == "delays") else {
        return Vec::new();
    };
    let column = |name: &str| series.columns.iter().find(|column| column.name == name);
    let columns = (column("time_s"), column("flow"), column("delay_s"));
    let (
        Some(Column { data: ColumnData::Real(due), .. }),
        Some(Column { data: ColumnData::Text { words, rows }, .. }),
        Some(Column { data: ColumnData::Real(delays), .. }),
    ) = columns
    else {
        return Vec::new();
    };
    let messages = due.iter().zip(rows).zip(delays);
    let of_flow = messages.filter(|((_, row), _)| words[**row as usize] == flow);
    of_flow
        .map(|((due, _), delay)| (Instant::from_secs_f64(*due), Duration::from_secs_f64(*delay)))
        .collect()
}
