//! The table of deadline checks.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{DeadlineCheck, Point};

use crate::format::{self, UNKNOWN};
use crate::parameter_label;
use crate::text_table::TextTable;

/// The deadline checks of several answers to the same scenario, each with its label; `None` if no
/// flow has a deadline.
#[must_use]
pub fn deadline_checks(answers: &[(String, &Answer)]) -> Option<TextTable> {
    let points: Vec<(&String, &Point)> = answers
        .iter()
        .flat_map(|(label, answer)| answer.points.iter().map(move |point| (label, point)))
        .filter(|(_, point)| !point.deadline_checks.is_empty())
        .collect();
    let all: Vec<&Point> = points.iter().map(|(_, point)| *point).collect();
    let (parameters, mut headers): (Vec<&String>, Vec<String>) =
        parameter_label::columns(&all).into_iter().unzip();
    let compared = answers.len() > 1;
    headers.push("flow".to_owned());
    if compared {
        headers.push("answer".to_owned());
    }
    headers.extend(["required", "deadline met", "check"].map(str::to_owned));
    let mut rows = Vec::new();
    for (label, point) in &points {
        for check in &point.deadline_checks {
            let value = |key: &&String| {
                parameter_label::value(point, key).unwrap_or_else(|| UNKNOWN.to_owned())
            };
            let mut row: Vec<String> = parameters.iter().map(value).collect();
            row.push(check.flow.clone());
            if compared {
                row.push((*label).clone());
            }
            row.extend([check.limit.clone(), measured(check), result(check).to_owned()]);
            rows.push(row);
        }
    }
    let key_columns = headers.len();
    let title = "Deadlines".to_owned();
    (!rows.is_empty()).then_some(TextTable { title, headers, rows, key_columns, note: None })
}

fn measured(check: &DeadlineCheck) -> String {
    match check.measured {
        None => UNKNOWN.to_owned(),
        // Rounded down, so that a deadline that is just missed does not look met.
        Some(share) if check.unit.is_empty() => {
            format!("{} %", format::fixed((share * 1_000.0).floor() / 10.0, 1))
        }
        Some(value) => format!("{} {}", format::fixed(value, 3), check.unit),
    }
}

const fn result(check: &DeadlineCheck) -> &'static str {
    match check.met {
        Some(true) => "met",
        Some(false) => "NOT met",
        None => "not known",
    }
}
