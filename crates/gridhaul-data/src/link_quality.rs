//! Distributions of the quality of links, read from a file of quantiles.

use std::path::Path;

use gridhaul_scenario::scenario::{Diagnostic, Direction, LinkQuality, Scenario};
use gridhaul_scenario::units::{BitRate, Duration};

use crate::link_table::{Columns, Quantity, Row, rows, text_of};
use crate::trace::TraceError;
use crate::trace::error::{RowError, of_file};

const HEADER: &str = "the first line lists the columns, separated by commas: \
                      rank_percent,rate_bit_per_s or rank_percent,rate_bit_per_s,loss_percent,\
                      delay_ms";

/// Reads the quantiles of a direction whose quality is in a file; `None` for other directions.
///
/// # Errors
/// A file that cannot be read, has no quantiles, or gives what the direction itself has.
pub fn read(scenario: &Scenario, direction: &Direction) -> Option<Result<LinkQuality, TraceError>> {
    let quality = direction.quality.as_ref()?;
    let folder = Path::new(scenario.folder.as_deref().unwrap_or_default());
    let path = folder.join(quality.file.as_deref()?);
    let content = text_of(&path, "name a text file with quantiles")
        .and_then(|text| parse(&text))
        .and_then(|content| check(direction, content))
        .map(|content| LinkQuality { common_rank: quality.common_rank, ..content });
    Some(content.map_err(|error| TraceError::new(&path.display().to_string(), error)))
}

/// Reads the qualities of all links, and reports those that cannot be read.
pub(crate) fn diagnostics(scenario: &Scenario) -> impl Iterator<Item = Diagnostic> {
    let links = scenario.link.iter();
    let directions = links.flat_map(|(name, link)| {
        link.given().map(move |(side, direction)| (format!("link.{name}.{side}"), direction))
    });
    directions.filter_map(|(key, direction)| {
        let error = read(scenario, direction)?.err()?;
        Some(Diagnostic::new(format!("{key}.quality.file"), error.message(), error.remedy()))
    })
}

fn parse(text: &str) -> Result<LinkQuality, RowError> {
    let known = [Quantity::Rank, Quantity::Rate, Quantity::Delay, Quantity::Loss];
    let (columns, rows) = rows(text, &known, HEADER)?;
    let rank = columns.required(Quantity::Rank, "rank_percent", HEADER)?;
    let mut quality = LinkQuality::default();
    for row in rows {
        let at = row.probability(rank)?;
        if quality.rank.last().is_some_and(|before| before.ratio() >= at.ratio()) {
            return Err(row.refused(rank, "the ranks do not ascend", "sort the rows by rank"));
        }
        quality.rank.push(at);
        add_values(&columns, &row, &mut quality)?;
    }
    let ends = [quality.rank.first(), quality.rank.last()].map(|end| end.map(|end| end.ratio()));
    if ends != [Some(0.0), Some(1.0)] {
        let message = "the ranks do not reach from 0 to the whole group";
        return Err(of_file(message, "begin with the minimum at rank 0, end with the maximum"));
    }
    let lengths = [quality.rate.len(), quality.loss.len(), quality.delay.len()];
    if lengths.iter().all(|length| *length == 0) {
        return Err(of_file("there is no column with quantiles", HEADER));
    }
    Ok(quality)
}

fn add_values(columns: &Columns, row: &Row<'_>, quality: &mut LinkQuality) -> Result<(), RowError> {
    if let Some(column) = columns.find(Quantity::Rate) {
        let rate = row.number(column)?;
        if rate == 0 {
            let remedy = "write the smallest rate of a member that is connected";
            return Err(row.refused(column, "a direction needs a rate above 0", remedy));
        }
        quality.rate.push(BitRate::from_bits_per_sec(rate));
    }
    if let Some(column) = columns.find(Quantity::Loss) {
        quality.loss.push(row.probability(column)?);
    }
    if let Some(column) = columns.find(Quantity::Delay) {
        quality.delay.push(Duration::from_nanos(row.number(column)?));
    }
    Ok(())
}

/// Refuses quantiles of what the direction itself has, and a direction without a rate.
fn check(direction: &Direction, quality: LinkQuality) -> Result<LinkQuality, RowError> {
    let has_rate = direction.rate.as_bits_per_sec() > 0 || direction.trace.is_some();
    match (quality.rate.is_empty(), has_rate) {
        (true, false) => Err(of_file(
            "neither the file nor the direction has a rate",
            "add a column rate_bit_per_s, or `rate` to the direction",
        )),
        (false, true) => Err(of_file(
            "both the file and the direction have a rate",
            "remove `rate` or `trace` from the direction, or the column",
        )),
        _ if !quality.loss.is_empty() && direction.loss.is_some() => Err(of_file(
            "both the file and the direction have a loss",
            "remove `loss` from the direction, or the column",
        )),
        _ => Ok(quality),
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Probability;

    use super::*;

    #[test]
    fn rows_are_quantiles() {
        let text = "loss_percent,rank_percent,rate_kbit_per_s,meters\n12,0,8,1\n1.5,50,60,\n\n\
                    0,100,250.5,4\n";
        let quality = parse(text).expect("quantiles");
        let ratio = |percent: f64| Probability::new(percent / 100.0).expect("a probability");
        assert_eq!(quality.rank, [0.0, 50.0, 100.0].map(ratio));
        assert_eq!(quality.loss, [12.0, 1.5, 0.0].map(ratio));
        assert_eq!(quality.rate, [8_000, 60_000, 250_500].map(BitRate::from_bits_per_sec));
        assert!(quality.delay.is_empty());
    }

    #[test]
    fn an_invalid_file_is_reported_with_line_and_column() {
        let of_rows = |rows: &str| format!("rank_ratio,rate_bit_per_s\n{rows}");
        let cases = [
            (String::new(), "the file is empty"),
            (of_rows(""), "the file has no rows"),
            ("rate_bit_per_s\n1\n".into(), "there is no column `rank_percent`"),
            ("rank_percent,los_percent\n0,1\n100,2\n".into(), "no column with quantiles"),
            ("rank_percent,loss\n0,1\n".into(), "there is no column `loss`"),
            ("time_s,rank_ratio\n0,0\n".into(), "there is no column `time_s`"),
            (of_rows("0,1\n0.5,2\n"), "from 0 to the whole group"),
            (of_rows("0.1,1\n1,2\n"), "from 0 to the whole group"),
            (of_rows("0,1\n0,1\n1,2\n"), ":3:1: column `rank_ratio`: the ranks do not ascend"),
            (of_rows("0,0\n1,2\n"), ":2:3: column `rate_bit_per_s`: a direction needs a rate"),
            (of_rows("0,1\n2,2\n"), ":3:1: column `rank_ratio`: expected a number from 0 to 1"),
        ];
        for (text, expected) in cases {
            let error = TraceError::new("q.csv", parse(&text).expect_err(&text));
            let message = error.to_string();
            assert!(message.contains(expected), "{expected:?} is not in {message:?}");
            assert!(message.contains("help: "), "{message}");
        }
    }
}
