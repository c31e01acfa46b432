//! The result of a run as JSON, chart, notes and files.

use std::path::Path;
use std::process::ExitCode;

use gridhaul_measure::method::{Distribution, Interruption, Proportion, findings, messages_needed};
use gridhaul_measure::protocol::CrossTrafficCounts;
use gridhaul_report::{TextTable, format};
use gridhaul_scenario::units::{Duration, counted, was_or_were};
use serde_json::{Map, Value, json};

use super::charts::charts;
use super::page::{Section, page};
use super::path;
use super::prediction::Prediction;
use super::remote_report::{remote_notes, two_machines};
use super::run::{Run, write};
use super::verdicts::Verdicts;
use super::{CHECK, INTERRUPTED};
use crate::args::RunArgs;
use crate::terminal::{print, say, text};

/// Shares of the quantiles: those of a box plot with whiskers at the 2nd and 98th percentile, and the tail.
pub(super) const SHARES: [f64; 6] = [0.02, 0.25, 0.5, 0.75, 0.98, 0.999];

/// Headings of a table of latencies, over rows of [`distribution_row`].
pub(super) const LATENCY_HEADERS: [&str; 11] =
    ["ms", "messages", "p2", "p25", "p50", "p75", "p98", "p98 at most", "p99.9", "max", "mean"];

/// Confidence of each bound.
const CONFIDENCE: f64 = 0.95;

/// Prints and writes the result of a run, with `additional` keys of the command. The exit code tells whether it is complete.
pub(super) fn publish(
    args: &RunArgs,
    command: &str,
    run: &Run,
    mut tables: Vec<TextTable>,
    additional: impl IntoIterator<Item = (&'static str, Value)>,
) -> anyhow::Result<ExitCode> {
    let summary = document(command, run, &mut tables, additional);
    let pretty = serde_json::to_string_pretty(&summary)? + "\n";
    let texts = || tables.iter().map(text).collect::<Vec<_>>().join("\n");
    // A result is printed also if its files cannot be written.
    print(&if args.common.json { pretty } else { texts() })?;
    if let Some(fault) = run.outcome.fault.as_ref().filter(|_| !run.interrupted) {
        say(format_args!("the run ended early: {fault}"));
    }
    if let Some(folder) = &args.out {
        write_files(folder, command, run, (&tables, &summary))?;
        say(format_args!("results in {}", folder.display()));
    }
    Ok(match &run.outcome.fault {
        _ if run.interrupted => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::from(CHECK),
        None => ExitCode::SUCCESS,
    })
}

/// Adds what limits the result to the first table, writes the files of a run, and returns its JSON document.
pub(super) fn keep(
    folder: Option<&Path>,
    command: &str,
    run: &Run,
    tables: &mut [TextTable],
    additional: impl IntoIterator<Item = (&'static str, Value)>,
) -> anyhow::Result<Value> {
    let summary = document(command, run, tables, additional);
    if let Some(folder) = folder {
        write_files(folder, command, run, (tables, &summary))?;
    }
    Ok(summary)
}

/// Adds what limits the result to the first table, and returns the JSON document.
fn document(
    command: &str,
    run: &Run,
    tables: &mut [TextTable],
    additional: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut summary = json(command, run);
    for (key, value) in additional {
        summary[key] = value;
    }
    if let Some(table) = tables.first_mut() {
        notes(run).iter().for_each(|note| table.add_note(note));
    }
    summary
}

/// Writes the files of a run.
fn write_files(
    folder: &Path,
    command: &str,
    run: &Run,
    (tables, summary): (&[TextTable], &Value),
) -> anyhow::Result<()> {
    let pretty = serde_json::to_string_pretty(summary)? + "\n";
    write(&folder.join("summary.json"), &pretty)?;
    let charts = charts(run);
    for (name, chart) in &charts {
        write(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
    }
    let charts = charts.into_iter().map(|(_, chart)| chart).collect();
    let mut sections: Vec<_> = tables.iter().map(Section::Table).collect();
    sections.insert(1.min(sections.len()), Section::Charts("Charts", charts));
    let meta = format!("gridhaul {}, measure {command}", env!("CARGO_PKG_VERSION"));
    write(&folder.join("report.html"), &page(&title(run), &meta, &sections))
}

/// Judges a run for the application classes, and publishes both.
///
/// # Errors
/// There is no such class, or the results cannot be written.
pub(super) fn judge_and_publish(
    args: &RunArgs,
    command: &str,
    run: &Run,
    table: TextTable,
) -> anyhow::Result<ExitCode> {
    let verdicts = Verdicts::new(run, args.class.as_deref())?;
    let mut tables = vec![table];
    tables.extend(run.prediction.as_ref().map(Prediction::table));
    tables.extend(path::table(run));
    tables.push(verdicts.table());
    let code = publish(args, command, run, tables, [("classes", verdicts.json())])?;
    let is_complete = run.outcome.fault.is_none() && !run.interrupted;
    let not_met = is_complete && verdicts.is_chosen_class_not_met();
    Ok(if not_met { ExitCode::from(CHECK) } else { code })
}

/// The title of a table.
pub(super) fn title(run: &Run) -> String {
    let schedule = run.plan.schedule;
    format!(
        "{}, {} messages/s of {} B, {}",
        run.protocol,
        format::number(schedule.rate()),
        run.plan.bytes,
        run.network
    )
}

/// A duration as milliseconds, with three digits after the point.
pub(super) fn millis(duration: Option<Duration>) -> String {
    duration.map_or_else(|| format::UNKNOWN.into(), |it| format!("{:.3}", it.as_secs_f64() * 1e3))
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

/// Limits of the result.
fn notes(run: &Run) -> Vec<String> {
    let outcome = &run.outcome;
    let mut notes: Vec<_> = findings(run.checked()).iter().map(ToString::to_string).collect();
    notes.extend(remote_notes(run));
    let measured = outcome.summary.from_send.count();
    for share in [0.98, 0.999] {
        let needed = messages_needed(share);
        if measured < needed {
            notes.push(format!(
                "too few messages ({measured}) for an upper bound of the {} percentile: {needed} are needed",
                if share < 0.99 { "98th" } else { "99.9th" }
            ));
        }
    }
    notes.extend(run.cross_traffic.iter().map(cross_traffic_note));
    if let Some(refusal) = &outcome.refusal {
        let refused = outcome.summary.counts.refused;
        let messages = counted(refused, "message");
        notes.push(format!("{messages} {} refused: {refusal}", was_or_were(refused)));
    }
    if let Some(fault) = &outcome.fault {
        notes.push(format!("incomplete: {fault}"));
    }
    if outcome.unknown_fate > 0 {
        notes.push(format!(
            "{} sent and not counted: after the fault it is unknown whether they arrive",
            counted(outcome.unknown_fate, "message")
        ));
    }
    let settings: Vec<_> =
        run.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if !settings.is_empty() {
        notes.push(settings.join(", "));
    }
    notes
}

fn cross_traffic_note(counts: &CrossTrafficCounts) -> String {
    let CrossTrafficCounts { load, sent, delivered, .. } = counts;
    let lost = Proportion { count: sent.saturating_sub(*delivered), of: *sent };
    format!(
        "cross traffic, {}: {:.3} Mbit/s of packets of {} B, of which {:.2} % were lost",
        load.direction,
        counts.offered() / 1e6,
        load.packet,
        lost.share().unwrap_or(0.0) * 100.0
    )
}

fn cross_traffic(counts: &CrossTrafficCounts) -> Value {
    json!({
        "direction": counts.load.direction.to_string(),
        "intended_bit_per_s": counts.load.rate.as_bits_per_sec(),
        "offered_bit_per_s": counts.offered(),
        "packet_bytes": counts.load.packet,
        "sent": counts.sent,
        "delivered": counts.delivered,
    })
}

fn json(command: &str, run: &Run) -> Value {
    let (outcome, summary) = (&run.outcome, &run.outcome.summary);
    let settings: Map<_, _> =
        run.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    let counts = summary.counts;
    let reconnections: Vec<_> = outcome.reconnections.iter().map(|at| at.as_secs_f64()).collect();
    // An unknown value is null.
    let is_one_way = run.unsupported().is_none();
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": command,
        "protocol": run.protocol,
        "settings": settings,
        "network": run.network,
        "rate_per_s": run.plan.schedule.rate(),
        "message_bytes": run.plan.bytes,
        "cross_traffic": run.cross_traffic.iter().map(cross_traffic).collect::<Vec<_>>(),
        "horizon_s": run.plan.horizon.as_secs_f64(),
        "warm_up_messages": run.plan.schedule.warm_up_messages(),
        "messages": counts.messages,
        "refused": counts.refused,
        "lost": counts.lost,
        "corrupt": counts.corrupt,
        "duplicates": counts.duplicates,
        "reordered": counts.reordered,
        "after_reconnection": counts.after_reconnection,
        "arrived_after_horizon": outcome.arrivals.after_horizon,
        "unidentified": outcome.arrivals.unidentified,
        "foreign": outcome.arrivals.foreign,
        "loss": proportion(summary.loss()),
        "latency_from_send": is_one_way.then(|| distribution(&summary.from_send)),
        "latency_from_schedule": is_one_way.then(|| distribution(&summary.from_schedule)),
        "lateness": distribution(&summary.lateness),
        "kernel": summary.kernel.as_deref().map(path::kernel_json),
        "path": path::json(run),
        "prediction": run.prediction.as_ref().map(Prediction::json),
        "floor": run.floor.as_ref().map(distribution),
        "reconnections_s": reconnections,
        "interruption": summary.interruption().map(|it| interruption(&it, summary.interval)),
        "two_machines": run.remote.as_ref().map(two_machines),
        "invalid": findings(run.checked()).iter().map(ToString::to_string).collect::<Vec<_>>(),
        "fault": outcome.fault,
        "unknown_fate": outcome.unknown_fate,
    })
}

/// The longest time without an arrival, and the recovery.
fn interruption(found: &Interruption, interval: Duration) -> Value {
    json!({
        "start_s": found.start.as_secs_f64(),
        "duration_s": found.length().as_secs_f64(),
        "survival_time_s": found.survival_time(interval).as_secs_f64(),
        "lost": found.lost,
        "backlog": found.backlog,
        "drain_s": found.drain().map(Duration::as_secs_f64),
    })
}

pub(super) fn proportion(proportion: Proportion) -> Value {
    let [low, high] = proportion.bounds(CONFIDENCE);
    json!({ "count": proportion.count, "of": proportion.of, "share": proportion.share(), "low95": low, "high95": high })
}

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

/// Creates the folder of the results before the run, so that a run whose results cannot be kept does not start.
pub(super) fn create(folder: &Path) -> anyhow::Result<()> {
    use anyhow::Context;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}
