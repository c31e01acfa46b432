//! Charts of a run.

use gridhaul_protocols::overhead::tls::RECORD_OVERHEAD;
use gridhaul_report::chart::{
    Axis, BarSeries, BoxPlot, Chart, LineChart, LineSeries, Reference, StackedChart, Stroke,
};
use gridhaul_scenario::units::Duration;

use super::distribution::{axis_for_range, box_plot, statistics};
use super::path::stages;
use super::prediction::chart;
use super::run::title;
use crate::message_sizes::message_of_run;
use crate::method::{Distribution, ProfilePoint};
use crate::protocol::client_name;
use crate::run::Run;

/// All charts of a run, with the names of their files.
pub(super) fn charts(run: &Run) -> Vec<(&'static str, Chart)> {
    if run.outcome.summary.from_send.count() == 0 {
        return Vec::new();
    }
    let mut charts = vec![
        ("latency", cumulative(run).into()),
        ("boxes", boxes(run).into()),
        ("time", over_time(run).into()),
    ];
    charts.extend(legs(run).map(|chart| ("path", chart.into())));
    charts.extend(run.prediction.as_ref().map(|found| ("prediction", chart(found).into())));
    charts.extend(layers(run).map(|chart| ("bytes", chart.into())));
    charts
}

/// Cumulative distribution of the latency.
fn cumulative(run: &Run) -> LineChart {
    let series = |name: &str, distribution: &Distribution| {
        let points = distribution.cumulative().map(|(value, share)| (value.as_secs_f64(), share));
        LineSeries::new(name, points).stroke(Stroke::Step)
    };
    let chart = LineChart::new(
        title(run),
        Axis::new("latency", "s").log(),
        Axis::new("share of the messages", "").including(0.0),
    );
    // The table has the lateness; here it would stretch the axis.
    let latencies = run
        .distributions()
        .into_iter()
        .filter(|(name, latency)| *name != "generator lateness" && latency.count() > 0);
    let mut chart =
        latencies.fold(chart, |chart, (name, latency)| chart.with(series(name, latency)));
    if let Some(floor) = run.floor.as_ref().filter(|floor| floor.count() > 0) {
        chart = chart.with(series("floor (null protocol)", floor));
    }
    chart
}

/// Box plots of the latency. The lateness of the generator and the floor are often smaller by a
/// factor of 1,000, and would leave no space for the boxes on a common axis; the table has both.
fn boxes(run: &Run) -> BoxPlot {
    let mut groups = run.distributions();
    groups.retain(|(name, _)| *name != "generator lateness");
    groups.extend(run.network_alone.as_ref().map(|summary| ("network alone", &summary.from_send)));
    let names = groups.iter().map(|(name, _)| *name);
    let boxes: Vec<_> = groups.iter().map(|(_, distribution)| statistics(distribution)).collect();
    let range = boxes.iter().flatten().flat_map(|numbers| [numbers.whiskers[0], numbers.max]);
    let axis = axis_for_range(Axis::new("latency", "s"), range);
    box_plot("Latency", axis, names).with("", boxes)
}

/// Box plots of the parts of the path, if packets were captured.
fn legs(run: &Run) -> Option<BoxPlot> {
    let path = run.outcome.summary.path.as_deref()?;
    // The table has the names in full; labels are cut off.
    let label = |name: &'static str| name.split_once(':').map_or(name, |(label, _)| label);
    let (names, boxes): (Vec<_>, Vec<_>) =
        stages(path).map(|(name, distribution)| (label(name), statistics(distribution))).unzip();
    let axis = Axis::new("time", "s").log();
    Some(box_plot("Path of the messages, from captured packets", axis, names).with("", boxes))
}

/// Latency over time, with outages shaded.
fn over_time(run: &Run) -> LineChart {
    let series = |name: &str, of: fn(&ProfilePoint) -> Option<Duration>| {
        let points = run.profile.points().map(|point| {
            // A value that is missing leaves a gap.
            (point.at.as_secs_f64(), of(&point).map_or(f64::NAN, Duration::as_secs_f64))
        });
        LineSeries::new(name, points).stroke(Stroke::Curve)
    };
    let (title, latency) = match run.unsupported() {
        Some((remote, _)) if remote.round_trip.is_some() => {
            ("Round-trip time over time: a gap is a time without an arrival", "round-trip time")
        }
        Some(_) => ("Latency over time, with the error of the clock", "estimated latency"),
        None => ("Latency over time: a gap is a time without an arrival", "latency"),
    };
    let values = run.profile.points().flat_map(|point| [point.mean, point.max]);
    let values = values.flatten().map(Duration::as_secs_f64);
    let chart = LineChart::new(
        title,
        Axis::new("time of the schedule", "s"),
        // A linear axis from zero does not enlarge the jitter.
        axis_for_range(Axis::new(latency, "s").including(0.0), values),
    )
    .with(series("mean", |point| point.mean))
    .with(series("largest", |point| point.max));
    run.outages.iter().fold(chart, |chart, [start, end]| {
        chart.with_reference(Reference::Span(*start, *end, "outage".into()))
    })
}

/// Bytes of a message by layer, if a formula for the protocol is known.
fn layers(run: &Run) -> Option<StackedChart> {
    let payload = run.plan.bytes as u64;
    let (name, bytes) = message_of_run(run.protocol, &run.settings, &client_name(), payload)?;
    let is_encrypted = run.settings.get("encryption_overhead").is_some();
    let parts = [
        ("Ethernet", bytes.ethernet),
        ("IP", bytes.ip),
        ("TCP, UDP", bytes.transport),
        ("TLS", if is_encrypted { RECORD_OVERHEAD as f64 } else { 0.0 }),
        ("protocol", bytes.protocol),
        ("payload", bytes.payload),
    ];
    let chart = StackedChart::new("Bytes of a message by layer", Axis::new("size", "B"), [name]);
    Some(
        parts
            .into_iter()
            .filter(|(name, _)| *name != "TLS" || is_encrypted)
            .fold(chart, |chart, (name, size)| chart.with(BarSeries::new(name, [size]))),
    )
}
