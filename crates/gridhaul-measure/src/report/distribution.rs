//! Distributions and shares of messages in tables, JSON and charts.

use gridhaul_report::chart::{Axis, BoxPlot, BoxStatistics};
use gridhaul_report::format;
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use crate::method::{Distribution, Proportion};

/// Shares of the quantiles: those of a box plot with whiskers at the 2nd and 98th percentile, and
/// the tail.
const SHARES: [f64; 6] = [0.02, 0.25, 0.5, 0.75, 0.98, 0.999];

/// Confidence of each bound.
const CONFIDENCE: f64 = 0.95;

/// Headings of a table of latencies, over rows of [`distribution_row`].
pub(super) const LATENCY_HEADERS: [&str; 11] =
    ["ms", "messages", "p2", "p25", "p50", "p75", "p98", "p98 at most", "p99.9", "max", "mean"];

/// A duration as milliseconds, with three digits after the point.
pub(super) fn millis(duration: Option<Duration>) -> String {
    duration
        .map_or_else(|| format::UNKNOWN.into(), |time| format!("{:.3}", time.as_secs_f64() * 1e3))
}

/// A row of quantiles in milliseconds, under the headings of the table of `latency`.
pub(super) fn distribution_row(name: &str, distribution: &Distribution) -> Vec<String> {
    let mut cells = vec![name.to_owned(), distribution.count().to_string()];
    for share in SHARES {
        let quantile = distribution.quantile(share);
        cells.push(millis(quantile.map(|quantile| quantile.value)));
        if share == 0.98 {
            cells.push(millis(quantile.and_then(|quantile| quantile.high)));
        }
    }
    cells.extend([millis(distribution.max()), millis(distribution.mean())]);
    cells
}

/// The distribution as JSON.
pub(super) fn distribution(distribution: &Distribution) -> Value {
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let quantile = |share| {
        let quantile = distribution.quantile(share)?;
        Some(json!({
            "share": share,
            "value_s": quantile.value.as_secs_f64(),
            "low95_s": seconds(quantile.low),
            "high95_s": seconds(quantile.high),
        }))
    };
    json!({
        "messages": distribution.count(),
        "mean_s": seconds(distribution.mean()),
        "max_s": seconds(distribution.max()),
        "quantiles": SHARES.into_iter().filter_map(quantile).collect::<Vec<_>>(),
    })
}

/// A share of messages with its bounds as JSON.
pub(super) fn proportion(proportion: Proportion) -> Value {
    let [low, high] = proportion.bounds(CONFIDENCE);
    json!({
        "count": proportion.count,
        "of": proportion.of,
        "share": proportion.share(),
        "low95": low,
        "high95": high,
    })
}

/// The numbers of a box as RESERVE D4.6 defines them (annex A.2): quartiles, mean, whiskers at the
/// 2nd and 98th percentile, and the tail. `None` without messages.
pub(crate) fn statistics(distribution: &Distribution) -> Option<BoxStatistics> {
    let at = |share| distribution.quantile(share).map(|quantile| quantile.value.as_secs_f64());
    // With fewer messages the 99.9th percentile is the largest value.
    let has_tail = distribution.count() >= 1_000;
    Some(BoxStatistics {
        whiskers: [at(0.02)?, at(0.98)?],
        quartiles: [at(0.25)?, at(0.75)?],
        mean: distribution.mean()?.as_secs_f64(),
        tail: if has_tail { at(0.999) } else { None },
        max: distribution.max()?.as_secs_f64(),
    })
}

/// A box plot with a note of what its boxes are; the legend has the marks.
pub(crate) fn box_plot<G: Into<String>>(
    title: impl Into<String>,
    axis: Axis,
    groups: impl IntoIterator<Item = G>,
) -> BoxPlot {
    let group_label = "box: quartiles; line: mean; whiskers: 2nd and 98th percentile".into();
    BoxPlot { group_label, ..BoxPlot::new(title, axis, groups) }
}

/// A logarithmic axis for values that span at least a decade. Within a decade it would have labels
/// at its ends only.
pub(super) fn axis_for_range(axis: Axis, values: impl IntoIterator<Item = f64>) -> Axis {
    let (low, high) = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high >= 10.0 * low { axis.log() } else { axis }
}
