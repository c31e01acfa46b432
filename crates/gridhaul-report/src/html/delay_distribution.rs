//! Charts of the cumulative distributions of message delays.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{DelayDistribution, Metric, Point};
use indexmap::IndexSet;

use super::{NamedChart, Ranked, contrast, slug};
use crate::chart::{Axis, LineChart, LineSeries, Reference, Stroke};
use crate::format;
use crate::parameter_label::PointLabels;
use crate::swept_keys::numeric_axis;

/// Maximum number of curves in a chart, and of charts.
const CURVES_MAX: usize = 8;
const CHARTS_MAX: usize = 6;

/// The share of messages that a deadline requires.
const DEADLINE_SHARE: f64 = gridhaul_scenario::answer::DeadlineCheck::SHARE;

/// A curve: answer, point, flow, and its distribution.
struct Curve<'a> {
    answer: &'a str,
    point: String,
    flow: &'a str,
    /// Message loss ratio, if known.
    loss: Option<f64>,
    distribution: &'a DelayDistribution,
}

/// The distributions of all flows, points and answers: one chart, or one for each flow if there are
/// too many curves.
pub(super) fn charts(answers: &[(String, &Answer)], keys: &[String]) -> Vec<Ranked> {
    let curves: Vec<Curve<'_>> =
        answers.iter().flat_map(|(label, answer)| curves(label, answer)).collect();
    let flows: IndexSet<&str> = curves.iter().map(|curve| curve.flow).collect();
    // For a numeric swept key, the chart of the percentile over that key is easier to read.
    let over_number = keys
        .first()
        .is_some_and(|key| answers.iter().any(|(_, answer)| numeric_axis(answer, key).is_some()));
    let ranked = |curves: &[&Curve<'_>]| {
        let weight = if over_number { 0.5 } else { 0.93 };
        // Without a sweep, the distribution itself is the result.
        let minimum = if keys.is_empty() { 0.6 } else { 0.3 };
        let rank = weight * (minimum + (1.0 - minimum) * differences(answers));
        Ranked { rank, chart: draw(curves) }
    };
    if curves.is_empty() {
        return Vec::new();
    }
    if curves.len() <= CURVES_MAX || flows.len() == 1 {
        return vec![ranked(&curves.iter().collect::<Vec<_>>())];
    }
    let curves_of =
        |flow: &&str| curves.iter().filter(|curve| curve.flow == *flow).collect::<Vec<_>>();
    flows.iter().take(CHARTS_MAX).map(|flow| ranked(&curves_of(flow))).collect()
}

fn curves<'a>(label: &'a str, answer: &'a Answer) -> Vec<Curve<'a>> {
    let labels = PointLabels::new(&answer.points);
    let of_point = |(index, point): (usize, &'a Point)| {
        let name = if answer.points.len() > 1 { labels.of(index) } else { String::new() };
        point.delays.iter().filter_map(move |(flow, distribution)| {
            let row = point.flows.iter().find(|row| row.name == *flow);
            Some(Curve {
                answer: label,
                point: name.clone(),
                flow,
                loss: row.and_then(|row| row.mean(Metric::MessageLoss)),
                distribution: distribution.as_ref()?,
            })
        })
    };
    answer.points.iter().enumerate().flat_map(of_point).collect()
}

/// Contrast of the 98th percentiles.
fn differences(answers: &[(String, &Answer)]) -> f64 {
    let points = answers.iter().flat_map(|(_, answer)| &answer.points);
    let rows = points.flat_map(|point| &point.flows);
    contrast(rows.filter_map(|row| row.metrics.get(&Metric::DelayP98)))
}

fn draw(curves: &[&Curve<'_>]) -> NamedChart {
    let shown = select_evenly(curves);
    let differs =
        |part: fn(&Curve<'_>) -> String| curves.iter().any(|curve| part(curve) != part(curves[0]));
    let parts: Vec<fn(&Curve<'_>) -> String> =
        vec![|curve| curve.flow.to_owned(), |curve| curve.point.clone(), |curve| {
            curve.answer.to_owned()
        }];
    let name = |curve: &Curve<'_>| {
        let own = parts.iter().filter(|part| differs(**part)).map(|part| part(curve));
        let mut name = own.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
        if let Some(loss) = curve.loss.filter(|loss| *loss >= 0.001) {
            name += &format!(" ({} lost)", format::rough(loss, format::Unit::Share));
        }
        name.trim_start().to_owned()
    };
    let mut title = "Distribution of message delays".to_owned();
    if !differs(parts[0]) {
        title += &format!(", {}", curves[0].flow);
    }
    if shown.len() < curves.len() {
        title += &format!(" ({} of {} curves)", shown.len(), curves.len());
    }
    let x = Axis::new("message delay", "s").log();
    let y = Axis::new("messages within the delay", "%").including(0.0).including(100.0);
    let mut chart = LineChart::new(title, x, y)
        .with_reference(Reference::Y(DEADLINE_SHARE * 100.0, "98 %".to_owned()));
    for curve in shown {
        let pairs = curve.distribution.delay_s.iter().zip(&curve.distribution.share);
        let points = pairs.map(|(delay, share)| (*delay, share * 100.0));
        chart = chart.with(LineSeries::new(name(curve), points).stroke(Stroke::Curve));
    }
    let name = if differs(parts[0]) { "all" } else { curves[0].flow };
    let name = slug(&format!("delay-distribution-{name}"));
    NamedChart { name, section: "Flows".to_owned(), chart: chart.into() }
}

/// At most `CURVES_MAX` of the curves, evenly selected from the first to the last.
fn select_evenly<'a, 'b>(curves: &[&'b Curve<'a>]) -> Vec<&'b Curve<'a>> {
    let count = curves.len().min(CURVES_MAX);
    let place = |index: usize| index * (curves.len() - 1) / (count - 1).max(1);
    (0..count).map(|index| curves[place(index)]).collect()
}
