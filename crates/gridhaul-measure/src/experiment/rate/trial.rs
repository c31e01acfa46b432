//! One trial of a rate, and what it shows.

use std::cell::RefCell;

use gridhaul_emu::Forwarded;
use gridhaul_scenario::units::{Duration, counted};
use serde::Serialize;

use crate::log::LogError;
use crate::measurement::{Measurement, RateExperiment};
use crate::method::{Distribution, Message, Phase, Schedule, TrialResult};
use crate::transfer::{Outcome, Plan};

/// Lateness up to which the generator produces the intended load.
const LATENESS: Duration = Duration::from_millis(1);

/// Share of packets that an emulated network may forward late; more of them are a queue of their
/// own.
const FORWARDED_LATE: f64 = 0.02;

/// Growth of the median latency within a trial that a queue in equilibrium may show. A queue that
/// grows by a few percent of the load must be recognised before its buffer is full.
const GROWTH: (f64, Duration) = (1.1, Duration::from_millis(1));

/// One trial.
#[derive(Debug, Serialize)]
pub(crate) struct Trial {
    pub(crate) rate_per_s: f64,
    pub(crate) messages: u64,
    /// Lost, corrupt or refused.
    pub(crate) missing: u64,
    /// Median latency of the first and of the second half.
    pub(crate) medians_s: [Option<f64>; 2],
    pub(crate) lateness_p98_s: Option<f64>,
    /// Outcome of the trial; `None` if it was ended early.
    #[serde(serialize_with = "name")]
    pub(crate) result: Option<TrialResult>,
    /// Why the rate is not shown to be sustained.
    pub(crate) reason: Option<String>,
}

/// The messages of a trial as they are closed.
pub(super) type TrialLog<'a> = dyn FnMut(&Message) -> Result<(), LogError> + 'a;

/// Result of the messages of a trial.
pub(super) struct Sent {
    pub(super) outcome: Outcome,
    /// Packets that an emulated network forwarded meanwhile.
    pub(super) forwarded: Forwarded,
}

/// A trial before its start.
pub(super) struct TrialRequest<'a> {
    pub(super) measurement: &'a Measurement,
    pub(super) search: &'a RateExperiment,
    /// Messages per second.
    pub(super) rate: f64,
    /// Number of the trial, from 0.
    pub(super) number: u32,
}

/// Sends at a rate for the time of a trial. Also returns why no further trial is possible.
pub(super) fn trial(
    request: &TrialRequest<'_>,
    send: &mut impl FnMut(&Plan, &mut TrialLog<'_>) -> anyhow::Result<Sent>,
) -> anyhow::Result<(Trial, Option<String>)> {
    let &TrialRequest { measurement, search, rate, number } = request;
    let messages = (rate * search.trial.as_secs_f64()).ceil().max(50.0) as u64;
    let plan = Plan {
        schedule: Schedule::new(rate, messages),
        bytes: measurement.message_bytes(),
        horizon: measurement.message.horizon,
        processor: measurement.generator.processor,
        // Messages of a trial that arrive in the next one are foreign there.
        run: std::process::id().wrapping_add(number << 22),
        capture: None,
    };
    let middle = plan.schedule.total() - messages / 2;
    let halves = RefCell::new([Distribution::default(), Distribution::default()]);
    let mut log = |message: &Message| {
        if let Some(latency) =
            message.latency_from_send().filter(|_| message.phase == Phase::Measured)
        {
            halves.borrow_mut()[usize::from(message.sequence >= middle)].record(latency);
        }
        Ok(())
    };
    let sent = send(&plan, &mut log)?;
    let outcome = &sent.outcome;
    let medians = halves.into_inner().map(|half| half.quantile(0.5).map(|quantile| quantile.value));
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    // A trial that ended early shows nothing about its rate.
    let (result, reason) = match &outcome.fault {
        Some(fault) => (None, Some(fault.clone())),
        None => {
            let (result, reason) = judge(search.loss, &plan, &sent, medians);
            (Some(result), reason)
        }
    };
    let trial = Trial {
        rate_per_s: rate,
        messages: outcome.summary.counts.messages,
        missing: outcome.summary.missing(),
        medians_s: medians.map(seconds),
        lateness_p98_s: seconds(lateness(outcome)),
        result,
        reason,
    };
    Ok((trial, sent.outcome.fault))
}

fn lateness(outcome: &Outcome) -> Option<Duration> {
    outcome.summary.lateness.quantile(0.98).map(|quantile| quantile.value)
}

/// Outcome of a complete trial, with the reason if the rate is not sustained.
fn judge(
    tolerated_share: f64,
    plan: &Plan,
    sent: &Sent,
    medians: [Option<Duration>; 2],
) -> (TrialResult, Option<String>) {
    let Sent { outcome, forwarded } = sent;
    let limit = plan.schedule.interval().mul_f64(0.1).max(LATENESS);
    if let Some(late) = lateness(outcome).filter(|late| *late > limit) {
        let late = late.as_secs_f64() * 1e3;
        let reason = format!("disturbed: the generator was {late:.3} ms late (98th percentile)");
        return (TrialResult::Disturbed, Some(reason));
    }
    let late = forwarded.late as f64 / forwarded.packets.max(1) as f64;
    let is_late = late > FORWARDED_LATE;
    let Some(reason) = failure(tolerated_share, outcome, medians, is_late) else {
        return (TrialResult::Sustained, None);
    };
    if is_late {
        let percent = late * 1e2;
        let reason = format!(
            "disturbed: the network forwarded {percent:.0} % of its packets late; {reason}"
        );
        return (TrialResult::Disturbed, Some(reason));
    }
    (TrialResult::Failed, Some(reason))
}

/// Why the messages of a trial show that the rate is not sustained.
fn failure(
    tolerated_share: f64,
    outcome: &Outcome,
    medians: [Option<Duration>; 2],
    is_forwarded_late: bool,
) -> Option<String> {
    let missing = outcome.summary.missing();
    if missing as f64 > tolerated_share * outcome.summary.counts.messages as f64 {
        return Some(format!("{} lost, corrupt or refused", counted(missing, "message")));
    }
    latency_grows(medians, is_forwarded_late)
        .then(|| "the latency grows: messages wait in a queue".into())
}

/// Whether the median latency of the second half shows a growing queue.
fn latency_grows(medians: [Option<Duration>; 2], is_forwarded_late: bool) -> bool {
    let [Some(first), Some(second)] = medians else {
        return false;
    };
    let (factor, additional) = GROWTH;
    // A network that pauses leaves a queue, which stays if the link is full. A share of its latency
    // would hide that it grows.
    let factor = if is_forwarded_late { 1.0 } else { factor };
    second > first.mul_f64(factor) + additional
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn name<S: serde::Serializer>(result: &Option<TrialResult>, to: S) -> Result<S::Ok, S::Error> {
    let name = result.map(|result| match result {
        TrialResult::Sustained => "sustained",
        TrialResult::Failed => "failed",
        TrialResult::Disturbed => "disturbed",
    });
    name.serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_a_pause_left_does_not_hide_growth() {
        let grows = |first_us, second_us, is_forwarded_late| {
            let medians = [first_us, second_us].map(|time| Some(Duration::from_micros(time)));
            latency_grows(medians, is_forwarded_late)
        };
        // A load 1.6 % above the capacity for a second: 7.7 ms, of a latency of 28 ms or, after a
        // pause of 50 ms, of 79 ms.
        assert!(grows(28_000, 35_700, false));
        assert!(!grows(79_400, 87_100, false));
        assert!(grows(79_400, 87_100, true));
        // The queue of the pause shrinks or stays.
        assert!(!grows(79_400, 60_000, true));
        assert!(!grows(79_400, 80_000, true));
    }
}
