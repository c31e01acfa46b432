//! Bar charts of an answer without a sweep: flows and links side by side.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Metric, Row, Scope};

use super::{CENSORED, NamedChart, Ranked, capital, contrast, slug, weight};
use crate::chart::{Axis, Bar, BarChart, BarSeries};
use crate::text_table::is_goodput_of_part;

/// Maximum number of flows or links in one chart.
const GROUPS_MAX: usize = 24;

/// Metrics that share one chart.
struct Family {
    title: &'static str,
    quantity: &'static str,
    metrics: &'static [Metric],
}

const FAMILIES: &[Family] = &[
    family("Goodput and throughput", "rate", &[Metric::Goodput, Metric::Throughput]),
    family("Completion time", "time", &[Metric::CompletionTime]),
    family(
        "Message delay",
        "delay",
        &[Metric::DelayMean, Metric::DelayMedian, Metric::DelayP98, Metric::DelayMax],
    ),
    family("Message loss", "loss", &[Metric::MessageLoss]),
    family(
        "Messages delivered, by member",
        "share of messages",
        &[Metric::MemberDeliveredMin, Metric::MemberDeliveredP1, Metric::MemberDeliveredMedian],
    ),
    family(
        "Message delay, by member",
        "delay",
        &[Metric::MemberDelayMedian, Metric::MemberDelayP99, Metric::MemberDelayMax],
    ),
    family("Mean round-trip time", "time", &[Metric::RttMean]),
    family(
        "Recovery from loss",
        "events",
        &[Metric::Retransmissions, Metric::FastRetransmits, Metric::Timeouts],
    ),
    family("Throughput of links", "rate", &[Metric::LinkThroughput]),
    family("Utilisation of links", "utilisation", &[Metric::Utilisation]),
    family(
        "Packets lost, by reason",
        "packets",
        &[
            Metric::DropsQueue,
            Metric::DropsLoss,
            Metric::DropsShadowing,
            Metric::DropsNoise,
            Metric::DropsOutage,
            Metric::Corrupted,
        ],
    ),
    family("Queues", "queue", &[Metric::QueueMean, Metric::QueueMax]),
];

const fn family(title: &'static str, quantity: &'static str, metrics: &'static [Metric]) -> Family {
    Family { title, quantity, metrics }
}

/// Charts of all families with values other than zero.
pub(super) fn charts(answers: &[(String, &Answer)]) -> Vec<Ranked> {
    FAMILIES.iter().flat_map(|family| draw(family, answers)).collect()
}

fn draw(family: &Family, answers: &[(String, &Answer)]) -> Vec<Ranked> {
    let scope = family.metrics[0].info().scope;
    let mut groups = groups(answers, family);
    let all = groups.len();
    groups.truncate(GROUPS_MAX);
    let has_nonzero_value = |metric: &Metric| {
        let rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        rows.into_iter().any(|row| row.mean(*metric).is_some_and(|mean| mean != 0.0))
    };
    let metrics: Vec<Metric> = family.metrics.iter().copied().filter(has_nonzero_value).collect();
    let bars = |answer: &Answer, metric: Metric| -> Vec<Bar> {
        let row = |group: &&str| rows(answer, scope).iter().find(|row| row.name == **group);
        let bar = |group| row(group)?.metrics.get(&metric).copied().map(Bar::from);
        groups.iter().map(|group| bar(group).unwrap_or_default()).collect()
    };
    let chart = |title: &str, series: Vec<BarSeries>, metric: Metric| {
        let mut shown = if all > groups.len() {
            format!(" (first {} of {all})", groups.len())
        } else {
            String::new()
        };
        let all_rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        shown += &restrictions(metric, &all_rows.collect::<Vec<_>>());
        let mut y = Axis::new(family.quantity, metric.info().unit);
        if metric == Metric::Utilisation {
            y = y.including(1.0);
        }
        let mut chart = BarChart::new(format!("{title}{shown}"), y, groups.iter().copied());
        chart.series = series;
        let section = if scope == Scope::Flow { "Flows" } else { "Links" };
        let chart =
            NamedChart { name: slug(title), section: section.to_owned(), chart: chart.into() };
        // Equal bars also give information, so that the rank has a lower bound.
        let rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        let contrast = contrast(rows.filter_map(|row| row.metrics.get(&metric)));
        // Link directions usually differ, so that charts of flows are ranked higher.
        let scope_weight = if scope == Scope::Flow { 1.0 } else { 0.5 };
        Ranked { rank: scope_weight * weight(metric) * (0.3 + 0.7 * contrast), chart }
    };
    if answers.len() > 1 {
        let compared = metrics.iter().map(|metric| {
            let series =
                answers.iter().map(|(label, answer)| BarSeries::new(label, bars(answer, *metric)));
            let title = if family.metrics.len() == 1 {
                family.title.to_owned()
            } else {
                capital(metric.info().heading)
            };
            chart(&title, series.collect(), *metric)
        });
        return compared.collect();
    }
    // A chart with a single bar adds nothing to the table.
    let (Some(metric), Some((_, answer))) = (metrics.first(), answers.first()) else {
        return Vec::new();
    };
    if metrics.len() * groups.len() < 2 {
        return Vec::new();
    }
    // A family with one remaining metric has the name of that metric.
    let named = metrics.len() > 1;
    let title = match (named, family.metrics.len()) {
        (false, 2..) => capital(metric.info().heading),
        _ => family.title.to_owned(),
    };
    let series = metrics.iter().map(|metric| {
        BarSeries::new(if named { metric.info().heading } else { "" }, bars(answer, *metric))
    });
    vec![chart(&title, series.collect(), *metric)]
}

/// Restrictions of the values of rows, for a title.
fn restrictions(metric: Metric, rows: &[&Row]) -> String {
    let mut text = String::new();
    let is_censored =
        |row: &&Row| row.metrics.get(&metric).is_some_and(|estimate| estimate.censored);
    if rows.iter().any(is_censored) {
        text += CENSORED;
    }
    if metric == Metric::Goodput && rows.iter().any(|row| is_goodput_of_part(row)) {
        text += " (goodput of transfers and bursts: while in progress)";
    }
    text
}

/// Distinct names of the rows of all answers that have a metric of the family.
fn groups<'a>(answers: &'a [(String, &Answer)], family: &Family) -> Vec<&'a str> {
    let scope = family.metrics[0].info().scope;
    let has_metric = |row: &&Row| family.metrics.iter().any(|metric| row.mean(*metric).is_some());
    let mut groups: Vec<&str> = Vec::new();
    for row in answers.iter().flat_map(|(_, answer)| rows(answer, scope)).filter(has_metric) {
        if !groups.contains(&row.name.as_str()) {
            groups.push(&row.name);
        }
    }
    groups
}

fn rows(answer: &Answer, scope: Scope) -> &[Row] {
    let Some(point) = answer.points.first() else { return &[] };
    match scope {
        Scope::Flow => &point.flows,
        Scope::Link => &point.links,
    }
}
