//! Results of a run with an agent in tables and JSON.

use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::{Duration, counted};
use serde_json::{Value, json};

use super::distribution::{distribution, millis, proportion};
use crate::run::{Remote, Run};

/// Notes about clock and agent.
pub(super) fn remote_notes(run: &Run) -> Vec<String> {
    let Some(remote) = &run.remote else { return Vec::new() };
    let mut notes = Vec::new();
    if let Some(clock) = &remote.clock {
        let steps = match clock.steps.len() {
            0 => "no step".into(),
            steps => counted(steps as u64, "step"),
        };
        let ppm = |drift: f64| format!("{:.1}", drift * 1e6);
        let [low, high] = [0, 1].map(|end| {
            let bounds = clock.drift_bounds.map(|bounds| [bounds.min, bounds.max][end]);
            bounds.filter(|bound| bound.is_finite()).map_or_else(|| UNKNOWN.into(), ppm)
        });
        notes.push(format!(
            "clock of the agent: {}, least round-trip time {} ms, drift {} ppm (between {low} and \
             {high}), {steps}; steps from {} ms are detectable",
            counted(clock.exchanges as u64, "exchange"),
            millis(Some(clock.min_round_trip)),
            clock.drift.map_or_else(|| UNKNOWN.into(), ppm),
            millis(Some(clock.detectable_step)),
        ));
        if clock.unknown > 0 {
            notes.push(format!(
                "{} arrived next to a step of the clock, with unknown latency",
                counted(clock.unknown, "message")
            ));
        }
    }
    notes.push(match remote.one_way {
        Ok(()) => {
            let error = remote.clock.as_ref().and_then(|clock| clock.error);
            format!(
                "one-way latencies have an error of up to {} ms, for any asymmetry of the path",
                millis(error)
            )
        }
        Err(reason) => format!("one-way latencies are not reported: {reason}"),
    });
    if let Some(returned) = &remote.round_trip {
        let counts = returned.counts;
        notes.push(format!(
            "{} of {} did not come back",
            returned.missing(),
            counted(counts.messages, "message")
        ));
    }
    notes
}

/// Clock, bounds and returned messages as JSON.
pub(super) fn two_machines(remote: &Remote) -> Value {
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let clock = remote.clock.as_ref().map(|clock| {
        let steps: Vec<_> = clock
            .steps
            .iter()
            .map(|(at, size)| json!({ "at_s": *at as f64 / 1e9, "size_s": size / 1e9 }))
            .collect();
        json!({
            "exchanges": clock.exchanges,
            "least_round_trip_s": clock.min_round_trip.as_secs_f64(),
            "error_s": seconds(clock.error),
            "drift": clock.drift,
            "drift_at_least": clock.drift_bounds.map(|bounds| bounds.min),
            "drift_at_most": clock.drift_bounds.map(|bounds| bounds.max),
            "steps": steps,
            "detectable_step_s": clock.detectable_step.as_secs_f64(),
            "unknown_times": clock.unknown,
            "arrived_before_sent": clock.impossible,
        })
    });
    json!({
        "one_way": remote.one_way.is_ok(),
        "reason": remote.one_way.err().map(|reason| reason.to_string()),
        "clock": clock,
        "latency_from_send_at_least": distribution(&remote.bounds.from_send),
        "latency_from_schedule_at_most": distribution(&remote.bounds.from_schedule),
        "round_trip": remote.round_trip.as_ref().map(|summary| distribution(&summary.from_send)),
        "round_trip_loss": remote.round_trip.as_ref().map(|summary| proportion(summary.loss())),
    })
}
