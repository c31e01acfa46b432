//! The feasible region as a picture.

use gridhaul_report::chart::{
    Axis, Cell, CellState, DataPoint, LineChart, LineSeries, Reference, RegionChart,
};
use gridhaul_report::{NamedChart, format, quantity};
use gridhaul_scenario::scenario::{Choice, PlanSpecification};

use super::judge::CandidateError;
use super::limits::{Limit, State};
use super::search::{Search, is_numeric};
use super::trial::{Candidate, Trial};
use crate::error::Error;

/// What there is to see around a candidate: a map over two numbers, or curves over one.
pub(crate) fn pictures(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    anchor: &Candidate,
    wins: bool,
) -> Result<Vec<NamedChart>, Error> {
    let chosen = |key: &usize| {
        let choice = &search.choices[*key];
        anchor.trial.values[*key].is_some() && choice.values.len() > 1 && is_numeric(choice)
    };
    let mut keys: Vec<usize> = (0..search.choices.len()).filter(chosen).collect();
    // What costs most comes first, as it stands in the file.
    keys.sort_by_key(|key| !plan.cost.contains_key(&search.choices[*key].key));
    let chart = match keys[..] {
        [] => return Ok(Vec::new()),
        [x] => curves(search, limits, anchor, x)?.into(),
        [x, y, ..] => region(search, limits, plan, anchor, (x, y), wins)?.into(),
    };
    let section = "What is feasible".to_owned();
    Ok(vec![NamedChart { name: "feasible".to_owned(), section, chart }])
}

fn region(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    anchor: &Candidate,
    (x, y): (usize, usize),
    wins: bool,
) -> Result<RegionChart, Error> {
    let mut reasons: Vec<String> = limits.iter().map(Limit::what).collect();
    let more = ["more sent than carried", "no answer by equations", "a limit, when simulated"];
    reasons.extend(more.map(str::to_owned));
    let (columns, rows) = (search.choices[x].clone(), search.choices[y].clone());
    let mut cells = Vec::new();
    for row in &rows.values {
        for column in &columns.values {
            let trial = anchor.trial.with(x, column).with(y, row);
            let (Some(at), Some(up)) = (quantity(column), quantity(row)) else { continue };
            let cost = search.prices.cost(&trial);
            let (state, told) = cell(search, limits, plan, &trial, cost)?;
            cells.push(Cell { x: at.0, y: up.0, state, told });
        }
    }
    let place = |key: usize| anchor.trial.values[key].as_deref().and_then(quantity);
    let mark = place(x).zip(place(y)).map(|(at, up)| {
        let name = if wins { "winner" } else { "nearest" };
        (at.0, up.0, name.to_owned())
    });
    let mut rest = anchor.trial.clone();
    (rest.values[x], rest.values[y]) = (None, None);
    let rest = rest.words(search.choices);
    let with = if rest.is_empty() { String::new() } else { format!(" with {rest}") };
    Ok(RegionChart {
        title: format!("What keeps the limits{with}"),
        x: axis(&columns),
        y: axis(&rows),
        value: Axis::new("cost, cheap is strong", &plan.currency).log(),
        reasons: reasons.iter().map(|reason| format!("fails: {reason}")).collect(),
        cells,
        mark,
    })
}

/// State of a cell, and what is told of it.
fn cell(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    trial: &Trial,
    cost: f64,
) -> Result<(CellState, String), Error> {
    let keeps = search.judge.keeps(trial)?;
    let (_, worst) = search.judge.worst(trial)?;
    let judgement = search.judge.ask(trial)?.clone();
    let mut told = format!("{}: {}", trial.words(search.choices), money(cost, plan));
    if let Some(keeps) = search.judge.simulated(trial) {
        told += if keeps { "; simulated: keeps every limit" } else { "; simulated: FAILS" };
        let state =
            if keeps { CellState::Value(cost) } else { CellState::Reason(limits.len() + 2) };
        return Ok((state, told));
    }
    if let Some(error) = &judgement.error {
        told += &format!("; {error}");
        let reason = match error {
            CandidateError::Overload(_) => limits.len(),
            CandidateError::NoAnswer(_) => limits.len() + 1,
        };
        return Ok((CellState::Reason(reason), told));
    }
    for (at, limit) in limits.iter().enumerate() {
        let Some(value) = judgement.measured[at].value else { continue };
        let mark = match search.judge.state(&judgement, at) {
            State::Broken => ", FAILS",
            State::Kept | State::Unknown => "",
        };
        let (what, bound) = (limit.what(), limit.bound_words());
        told += &format!("; {what} {} ({bound}{mark})", limit.shown(value));
    }
    let state = match worst {
        _ if keeps => CellState::Value(cost),
        Some(limit) => CellState::Reason(limit),
        None => CellState::Reason(limits.len() + 1),
    };
    Ok((state, told))
}

/// How much of each limit is used, over the one number that is chosen.
fn curves(
    search: &mut Search<'_>,
    limits: &[Limit],
    anchor: &Candidate,
    key: usize,
) -> Result<LineChart, Error> {
    let choice = search.choices[key].clone();
    let title = format!("How much of each limit is used: {}", anchor.trial.words(search.choices));
    let mut chart =
        LineChart::new(title, axis(&choice), Axis::new("measured over limit", "").including(0.0))
            .with_reference(Reference::Y(1.0, "limit".into()));
    for (at, limit) in limits.iter().enumerate() {
        let mut points = Vec::new();
        for text in &choice.values {
            let Some((x, _)) = quantity(text) else { continue };
            let judgement = search.judge.ask(&anchor.trial.with(key, text))?;
            let y = judgement.measured[at].value.map_or(f64::NAN, |value| limit.used(value));
            points.push(DataPoint { x, y, ci95: None });
        }
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        chart = chart.with(LineSeries::new(limit.what(), points));
    }
    if let Some((at, _)) = anchor.trial.values[key].as_deref().and_then(quantity) {
        chart = chart.with_reference(Reference::X(at, "chosen".into()));
    }
    Ok(chart)
}

/// The axis of a choice, logarithmic where that can be.
fn axis(choice: &Choice) -> Axis {
    let steps: Vec<_> = choice.key.split('.').collect();
    let label = match steps[..] {
        ["node", name, "count"] => format!("{name}s"),
        [_, name, .., last] => format!("{last} of {name}"),
        _ => choice.key.clone(),
    };
    let numbers: Vec<_> = choice.values.iter().filter_map(|text| quantity(text)).collect();
    let unit = numbers.first().map_or("", |(_, unit)| *unit);
    let axis = Axis::new(label, unit);
    if numbers.iter().all(|(number, _)| *number > 0.0) { axis.log() } else { axis }
}

/// An amount of money.
pub(crate) fn money(cost: f64, plan: &PlanSpecification) -> String {
    // Cents are never wrong, and digits below them never wanted.
    format::value((cost * 100.0).round() / 100.0, &plan.currency)
}
