//! Charts of an answer without a sweep: flows and links side by side.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Metric, Row, Scope};

use super::{CENSORED, NamedChart, Ranked, capital, contrast, slug, weight};
use crate::chart::{Axis, Bar, BarChart, BarSeries};

/// How many flows or links one chart shows.
const GROUPS_MAX: usize = 24;

/// Metrics that belong into one pair of axes.
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
    family("Round trip, mean", "time", &[Metric::RttMean]),
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

/// Charts of all families that have something to show.
pub(super) fn charts(answers: &[(String, &Answer)]) -> Vec<Ranked> {
    FAMILIES.iter().flat_map(|family| draw(family, answers)).collect()
}

fn draw(family: &Family, answers: &[(String, &Answer)]) -> Vec<Ranked> {
    let scope = family.metrics[0].info().scope;
    let mut groups = groups(answers, scope);
    let all = groups.len();
    groups.truncate(GROUPS_MAX);
    let says = |metric: &Metric| {
        let rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        rows.into_iter().any(|row| row.mean(*metric).is_some_and(|mean| mean != 0.0))
    };
    let metrics: Vec<Metric> = family.metrics.iter().copied().filter(says).collect();
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
        let mut all_rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        let is_censored = |row: &Row| row.metrics.get(&metric).is_some_and(|it| it.censored);
        if all_rows.any(is_censored) {
            shown += CENSORED;
        }
        let mut y = Axis::new(family.quantity, metric.info().unit);
        if metric == Metric::Utilisation {
            y = y.including(1.0);
        }
        let mut chart = BarChart::new(format!("{title}{shown}"), y, groups.iter().copied());
        chart.series = series;
        let section = if scope == Scope::Flow { "Flows" } else { "Links" };
        let chart =
            NamedChart { name: slug(title), section: section.to_owned(), chart: chart.into() };
        // Beside each other, equal bars still say that flows or answers are equal.
        let rows = answers.iter().flat_map(|(_, answer)| rows(answer, scope));
        let contrast = contrast(rows.filter_map(|row| row.metrics.get(&metric)));
        // Directions of links differ anyway: flows are what was asked for.
        let asked = if scope == Scope::Flow { 1.0 } else { 0.5 };
        Ranked { rank: asked * weight(metric) * (0.3 + 0.7 * contrast), chart }
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
    // One bar alone says no more than the table.
    let (Some(metric), Some((_, answer))) = (metrics.first(), answers.first()) else {
        return Vec::new();
    };
    if metrics.len() * groups.len() < 2 {
        return Vec::new();
    }
    // A family of which one metric is left goes by the name of that.
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

/// Names of the rows of all answers, each once.
fn groups<'a>(answers: &'a [(String, &Answer)], scope: Scope) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for row in answers.iter().flat_map(|(_, answer)| rows(answer, scope)) {
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
