//! Tables of the agreement of backends.

use std::collections::BTreeMap;

use gridhaul_report::{TextTable, Verdict, format};

use super::Agreement;
use crate::paper::Paper;
use crate::paper::figure::backend_label;

/// Number of points of each curve that agree, and all points that differ.
pub(crate) fn tables(paper: &Paper, all: &[Agreement]) -> Vec<TextTable> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut groups: BTreeMap<(usize, &str, &[String; 2]), Vec<&Agreement>> = BTreeMap::new();
    for one in all {
        let index = paper.definition.figure.iter().position(|figure| figure.name == one.figure);
        let key = (index.unwrap_or(usize::MAX), one.line.as_str(), &one.backends);
        groups.entry(key).or_default().push(one);
    }
    let summary = groups.values().map(|group| {
        let count = |test: fn(&&&Agreement) -> bool| group.iter().filter(test).count();
        let undecided = count(|one| one.deviation.is_none() && one.verdict == Verdict::Undecided);
        let agree = count(|one| one.deviation.is_none() && one.verdict == Verdict::Agrees);
        let listed = count(|one| one.deviation.is_none() && one.verdict == Verdict::Differs);
        let largest =
            group.iter().map(|one| one.tolerance.limit.difference(one.values)).fold(0.0, f64::max);
        let one = group[0];
        vec![
            one.figure.clone(),
            one.line.clone(),
            between(one),
            one.tolerance.to_string(),
            group.len().to_string(),
            agree.to_string(),
            listed.to_string(),
            undecided.to_string(),
            (group.len() - agree - listed - undecided).to_string(),
            one.tolerance.limit.with(largest).to_string(),
        ]
    });
    let headers = [
        "figure",
        "line",
        "between",
        "tolerance",
        "points",
        "agree",
        "listed",
        "undecided",
        "FAIL",
        "largest",
    ];
    let summary = TextTable {
        title: "Agreement of the backends".into(),
        headers: headers.map(String::from).to_vec(),
        rows: summary.collect(),
        key_columns: 4,
        note: Some(
            "listed: known differences, see differs.csv for their size and reason\n\
             undecided: a measured difference is too close to its limit"
                .into(),
        ),
    };
    let differing =
        all.iter().filter(|one| one.deviation.is_some() || one.verdict != Verdict::Agrees);
    let rows: Vec<_> = differing.map(row).collect();
    let mut tables = vec![summary];
    if !rows.is_empty() {
        let headers =
            ["figure", "line", "between", "x", "first", "second", "difference", "", "reason"];
        tables.push(TextTable {
            title: "Points with differences".into(),
            headers: headers.map(String::from).to_vec(),
            rows,
            key_columns: 2,
            note: None,
        });
    }
    tables
}

fn between(one: &Agreement) -> String {
    format!("{} and {}", backend_label(&one.backends[0]), backend_label(&one.backends[1]))
}

fn row(one: &Agreement) -> Vec<String> {
    let limit = one.tolerance.limit;
    let difference = limit.with(limit.difference(one.values));
    let recorded = if one.verdict == Verdict::Undecided { "undecided" } else { "listed" };
    let deviation =
        one.deviation.as_ref().map_or(recorded.into(), |deviation| format!("FAIL: {deviation}"));
    vec![
        one.figure.clone(),
        one.line.clone(),
        between(one),
        format::number(one.x),
        format::number(one.values[0]),
        format::number(one.values[1]),
        difference.to_string(),
        deviation,
        one.reason.clone().unwrap_or_default(),
    ]
}
