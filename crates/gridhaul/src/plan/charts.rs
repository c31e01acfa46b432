//! Charts of the feasible region.

use gridhaul_report::chart::{
    Axis, Cell, CellState, DataPoint, LineChart, LineSeries, Reference, RegionChart,
};
use gridhaul_report::{NamedChart, format, quantity};
use gridhaul_scenario::scenario::{Choice, PlanSpecification};

use super::candidate::{Candidate, ParameterSet};
use super::evaluate::CandidateError;
use super::limits::{Limit, LimitState};
use super::search::{Search, is_numeric};
use crate::error::Error;

/// Chart around a candidate: a map over two numeric keys, or curves over one.
pub(crate) fn charts(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    anchor: &Candidate,
    wins: bool,
) -> Result<Vec<NamedChart>, Error> {
    let chosen = |key: &usize| {
        let choice = &search.choices[*key];
        anchor.parameters.values[*key].is_some() && choice.values.len() > 1 && is_numeric(choice)
    };
    let mut keys: Vec<usize> = (0..search.choices.len()).filter(chosen).collect();
    // Keys with a cost come first, in the order of the file.
    keys.sort_by_key(|key| !plan.cost.contains_key(&search.choices[*key].key));
    let chart = match keys[..] {
        [] => return Ok(Vec::new()),
        [x] => curves(search, limits, anchor, x)?.into(),
        [x, y, ..] => region(search, limits, plan, anchor, [x, y], wins)?.into(),
    };
    let section = "Feasible region".to_owned();
    Ok(vec![NamedChart { name: "feasible".to_owned(), section, chart }])
}

fn region(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    anchor: &Candidate,
    [x, y]: [usize; 2],
    wins: bool,
) -> Result<RegionChart, Error> {
    let mut reasons: Vec<String> = limits.iter().map(Limit::name).collect();
    let more = ["overload", "no answer of the model", "a limit in simulation"];
    reasons.extend(more.map(str::to_owned));
    let (columns, rows) = (search.choices[x].clone(), search.choices[y].clone());
    let mut cells = Vec::new();
    for row in &rows.values {
        for column in &columns.values {
            let parameters = anchor.parameters.with(x, column).with(y, row);
            let (Some(at), Some(up)) = (quantity(column), quantity(row)) else { continue };
            let cost = search.cost_model.cost(&parameters);
            let (state, tooltip) = cell(search, limits, plan, &parameters, cost)?;
            cells.push(Cell { x: at.0, y: up.0, state, tooltip });
        }
    }
    let place = |key: usize| anchor.parameters.values[key].as_deref().and_then(quantity);
    let mark = place(x).zip(place(y)).map(|(at, up)| {
        let name = if wins { "winner" } else { "nearest" };
        (at.0, up.0, name.to_owned())
    });
    let mut rest = anchor.parameters.clone();
    (rest.values[x], rest.values[y]) = (None, None);
    let rest = rest.describe(search.choices);
    let with = if rest.is_empty() { String::new() } else { format!(" with {rest}") };
    Ok(RegionChart {
        title: format!("Candidates that meet the limits{with}"),
        x: axis(&columns),
        y: axis(&rows),
        value: Axis::new("cost (darker: cheaper)", &plan.currency).log(),
        reasons: reasons.iter().map(|reason| format!("fails: {reason}")).collect(),
        cells,
        mark,
    })
}

/// State of a cell and its tooltip.
fn cell(
    search: &mut Search<'_>,
    limits: &[Limit],
    plan: &PlanSpecification,
    parameters: &ParameterSet,
    cost: f64,
) -> Result<(CellState, String), Error> {
    let meets = search.evaluator.meets_limits(parameters)?;
    let (_, worst) = search.evaluator.worst(parameters)?;
    let evaluation = search.evaluator.evaluate(parameters)?.clone();
    let mut tooltip = format!("{}: {}", parameters.describe(search.choices), money(cost, plan));
    if let Some(meets) = search.evaluator.simulated(parameters) {
        tooltip += if meets { "; simulated: meets every limit" } else { "; simulated: FAILS" };
        let state =
            if meets { CellState::Value(cost) } else { CellState::Reason(limits.len() + 2) };
        return Ok((state, tooltip));
    }
    if let Some(error) = &evaluation.error {
        tooltip += &format!("; {error}");
        let reason = match error {
            CandidateError::Overload(_) => limits.len(),
            CandidateError::NoAnswer(_) => limits.len() + 1,
        };
        return Ok((CellState::Reason(reason), tooltip));
    }
    for (at, limit) in limits.iter().enumerate() {
        let Some(value) = evaluation.measured[at].value else { continue };
        let mark = match search.evaluator.state(&evaluation, at) {
            LimitState::Violated => ", FAILS",
            LimitState::Met | LimitState::Unknown => "",
        };
        let (what, bound) = (limit.name(), limit.bound_words());
        tooltip += &format!("; {what} {} ({bound}{mark})", limit.shown(value));
    }
    let state = match worst {
        _ if meets => CellState::Value(cost),
        Some(limit) => CellState::Reason(limit),
        None => CellState::Reason(limits.len() + 1),
    };
    Ok((state, tooltip))
}

/// Ratio of each quantity to its limit, over the only numeric key.
fn curves(
    search: &mut Search<'_>,
    limits: &[Limit],
    anchor: &Candidate,
    key: usize,
) -> Result<LineChart, Error> {
    let choice = search.choices[key].clone();
    let title = format!("Limits with {}", anchor.parameters.describe(search.choices));
    let mut chart =
        LineChart::new(title, axis(&choice), Axis::new("measured over limit", "").including(0.0))
            .with_reference(Reference::Y(1.0, "limit".into()));
    for (at, limit) in limits.iter().enumerate() {
        let mut points = Vec::new();
        for text in &choice.values {
            let Some((x, _)) = quantity(text) else { continue };
            let evaluation = search.evaluator.evaluate(&anchor.parameters.with(key, text))?;
            let y =
                evaluation.measured[at].value.map_or(f64::NAN, |value| limit.utilisation(value));
            points.push(DataPoint { x, y, ci95: None });
        }
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        chart = chart.with(LineSeries::new(limit.name(), points));
    }
    if let Some((at, _)) = anchor.parameters.values[key].as_deref().and_then(quantity) {
        chart = chart.with_reference(Reference::X(at, "chosen".into()));
    }
    Ok(chart)
}

/// The axis of a choice, logarithmic if all values are positive.
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

/// Formats a cost with its currency.
pub(crate) fn money(cost: f64, plan: &PlanSpecification) -> String {
    // Rounded to cents.
    format::value((cost * 100.0).round() / 100.0, &plan.currency)
}
