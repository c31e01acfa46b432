//! Prediction compared with measurement: how much of the latency the network explains.

use gridhaul_report::TextTable;
use gridhaul_report::chart::{Axis, LineChart, LineSeries, Stroke};
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use super::distribution::{
    LATENCY_HEADERS, axis_for_range, distribution, distribution_row, millis,
};
use crate::method::Distribution;
use crate::prediction::{PathLatencies, Prediction};

/// The table.
pub(super) fn table(prediction: &Prediction) -> TextTable {
    let rows = parts(prediction).into_iter().flat_map(|(part, measured, predicted)| {
        [("measured", measured), ("predicted", predicted)].map(|(source, distribution)| {
            distribution_row(&format!("{part}, {source}"), distribution)
        })
    });
    TextTable {
        title: "Prediction compared with measurement".into(),
        headers: LATENCY_HEADERS.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: Some(note(prediction)),
    }
}

/// Both as JSON.
pub(super) fn json(prediction: &Prediction) -> Value {
    let path = |path: &PathLatencies| {
        json!({
            "to_broker": prediction.service.map(|_| distribution(&path.to_broker)),
            "from_broker": prediction.service.map(|_| distribution(&path.from_broker)),
            "whole": distribution(&path.whole),
            "lost": path.lost,
        })
    };
    json!({
        "service_s": prediction.service.map(Duration::as_secs_f64),
        "measured": path(&prediction.measured),
        "predicted": path(&prediction.predicted),
    })
}

/// Cumulative distributions of both.
pub(super) fn chart(prediction: &Prediction) -> LineChart {
    let both = [&prediction.measured.whole, &prediction.predicted.whole];
    let values = both.into_iter().flat_map(Distribution::cumulative);
    let values = values.map(|(value, _)| value.as_secs_f64());
    let chart = LineChart::new(
        "Publisher to subscriber: prediction compared with measurement",
        axis_for_range(Axis::new("latency", "s"), values),
        Axis::new("share of the messages", "").including(0.0),
    );
    let series = |name: &str, distribution: &Distribution| {
        let points =
            distribution.cumulative().map(|(latency, share)| (latency.as_secs_f64(), share));
        LineSeries::new(name, points).stroke(Stroke::Step)
    };
    [("measured", &prediction.measured.whole), ("predicted", &prediction.predicted.whole)]
        .into_iter()
        .filter(|(_, distribution)| distribution.count() > 0)
        .fold(chart, |chart, (name, distribution)| chart.with(series(name, distribution)))
}

/// The parts that both know.
fn parts(prediction: &Prediction) -> Vec<(&'static str, &Distribution, &Distribution)> {
    let Prediction { measured, predicted, service, .. } = prediction;
    let mut parts = Vec::new();
    if service.is_some() {
        parts.push(("publisher to broker", &measured.to_broker, &predicted.to_broker));
        parts.push(("broker to subscriber", &measured.from_broker, &predicted.from_broker));
    }
    parts.push(("publisher to subscriber", &measured.whole, &predicted.whole));
    parts
}

/// How much of the latency the network explains.
fn note(prediction: &Prediction) -> String {
    let mut note = String::from(
        "from the hand-over to the protocol to the arrival at the subscriber; predicted by the \
         simulator with TCP of profile linux",
    );
    if let Some(service) = prediction.service {
        note += &format!(
            "\nthe simulated broker takes {} ms for each message, the {} of the measurement",
            millis(Some(service)),
            prediction.basis
        );
    }
    let service = prediction.service.unwrap_or(Duration::ZERO);
    for (share, name) in [(0.5, "median"), (0.98, "98th percentile")] {
        let at = |distribution: &Distribution| {
            distribution.quantile(share).map(|quantile| quantile.value.as_secs_f64() * 1e3)
        };
        let both = at(&prediction.measured.whole).zip(at(&prediction.predicted.whole));
        let Some((measured, predicted)) = both else { continue };
        let broker = service.as_secs_f64() * 1e3;
        note += &format!(
            "\n{name} of {measured:.3} ms: the network explains {:.3} ms, the service of the \
             broker {broker:.3} ms; {:+.3} ms remain",
            predicted - broker,
            measured - predicted
        );
    }
    if prediction.measured.lost + prediction.predicted.lost > 0 {
        note += &format!(
            "\nmessages without an arrival: {} measured, {} predicted",
            prediction.measured.lost, prediction.predicted.lost
        );
    }
    note
}
