//! The result of a run as JSON, rows and notes.

use gridhaul_report::format;
use gridhaul_scenario::units::{Duration, counted, was_or_were};
use serde_json::{Value, json};

use super::agent::{remote_notes, two_machines};
use super::distribution::{distribution, proportion};
use super::{path, prediction};
use crate::method::{Interruption, Proportion, findings, messages_needed};
use crate::protocol::CrossTrafficCounts;
use crate::run::Run;

/// The title of a table.
pub(crate) fn title(run: &Run) -> String {
    let schedule = run.plan.schedule;
    format!(
        "{}, {} messages/s of {} B, {}",
        run.protocol,
        format::number(schedule.rate()),
        run.plan.bytes,
        run.network
    )
}

/// Limits of the result.
pub(super) fn notes(run: &Run) -> Vec<String> {
    let outcome = &run.outcome;
    let mut notes: Vec<_> = findings(run.checked()).iter().map(ToString::to_string).collect();
    notes.extend(remote_notes(run));
    let measured = outcome.summary.from_send.count();
    for share in [0.98, 0.999] {
        let needed = messages_needed(share);
        if measured < needed {
            notes.push(format!(
                "too few messages ({measured}) for an upper bound of the {} percentile: {needed} \
                 are needed",
                if share < 0.99 { "98th" } else { "99.9th" }
            ));
        }
    }
    notes.extend(run.cross_traffic.iter().map(cross_traffic_note));
    notes.extend(sample_rate_note(run));
    if let Some(refusal) = &outcome.refusal {
        let refused = outcome.summary.counts.refused;
        let messages = counted(refused, "message");
        notes.push(format!("{messages} {} refused: {refusal}", was_or_were(refused)));
    }
    if let Some(fault) = &outcome.fault {
        notes.push(format!("incomplete: {fault}"));
    }
    if outcome.messages_not_counted > 0 {
        notes.push(format!(
            "{} not counted: their horizon had not passed at the fault",
            counted(outcome.messages_not_counted, "message")
        ));
    }
    if !run.settings.is_empty() {
        notes.push(run.settings.to_string());
    }
    notes
}

/// The samples of 9-2LE have a rate of their own.
fn sample_rate_note(run: &Run) -> Option<String> {
    let data_set = run.settings.get("data_set")?.strip_prefix("9-2LE, ")?;
    let stated: f64 = data_set.strip_suffix(" samples/s")?.parse().ok()?;
    let rate = run.plan.schedule.rate();
    (rate != stated).then(|| {
        format!(
            "the data set has {} samples/s, and the messages were {}/s: add --rate {stated} for \
             its load",
            format::number(stated),
            format::number(rate)
        )
    })
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

/// The JSON document of a run.
pub(super) fn json(command: &str, run: &Run) -> Value {
    let (outcome, summary) = (&run.outcome, &run.outcome.summary);
    let counts = summary.counts;
    let reconnections: Vec<_> = outcome.reconnections.iter().map(|at| at.as_secs_f64()).collect();
    // An unknown value is null.
    let is_one_way = run.unsupported().is_none();
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": command,
        "protocol": run.protocol,
        "settings": run.settings.to_json(),
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
        "prediction": run.prediction.as_ref().map(prediction::json),
        "floor": run.floor.as_ref().map(distribution),
        "reconnections_s": reconnections,
        "interruption": summary.interruption().map(|found| interruption(&found, summary.interval)),
        "two_machines": run.remote.as_ref().map(two_machines),
        "invalid": findings(run.checked()).iter().map(ToString::to_string).collect::<Vec<_>>(),
        "fault": outcome.fault,
        "messages_not_counted": outcome.messages_not_counted,
    })
}

/// The longest time without an arrival, and the recovery.
fn interruption(found: &Interruption, interval: Duration) -> Value {
    json!({
        "start_s": found.start.as_secs_f64(),
        "duration_s": found.length().as_secs_f64(),
        "survival_time_s": found.survival_time(interval).as_secs_f64(),
        "is_lower_bound": found.is_lower_bound(),
        "lost": found.lost,
        "backlog": found.backlog,
        "drain_s": found.drain().map(Duration::as_secs_f64),
    })
}
