//! Messages as input and output of the simulator.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gridhaul::scenario::answer::{Answer, ColumnData};
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
///
/// # Errors
/// The recorded series cannot be read.
pub(super) fn delays(
    answer: &Answer,
    flow: &str,
) -> Result<Vec<(Instant, Duration)>, PredictionError> {
    let Some(series) = answer.series.iter().find(|series| series.name == "delays") else {
        return Ok(Vec::new());
    };
    let column = |name: &str| {
        let index = series.columns.iter().position(|column| column.name == name);
        index.map(|index| series.values(index, 0..series.row_count())).transpose()
    };
    let read = || Ok((column("time_s")?, column("flow")?, column("delay_s")?));
    let columns = read().map_err(PredictionError::Series)?;
    let (
        Some(ColumnData::Real(due)),
        Some(ColumnData::Text { words, rows }),
        Some(ColumnData::Real(delays)),
    ) = columns
    else {
        return Ok(Vec::new());
    };
    let messages = due.iter().zip(&rows).zip(&delays);
    let of_flow = messages.filter(|((_, row), _)| words[**row as usize] == flow);
    let times = of_flow
        .map(|((due, _), delay)| (Instant::from_secs_f64(*due), Duration::from_secs_f64(*delay)));
    Ok(times.collect())
}
