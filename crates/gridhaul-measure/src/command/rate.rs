//! `gridhaul measure rate`: the highest rate that a protocol sustains.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::method::{Distribution, Message, Phase, RateRange, RateSearch, Schedule};
use gridhaul_measure::network::Sites;
use gridhaul_measure::protocol::Protocol;
use gridhaul_report::{TextTable, format};
use gridhaul_scenario::units::{Duration, counted};
use serde::Serialize;
use serde_json::json;

use super::INTERRUPTED;
use super::place::{Interrupt, Place};
use super::protocols::{Started, start};
use super::run::carrier;
use crate::args::RateArgs;
use crate::terminal::{print, say, text};

/// Lateness up to which the generator produces the intended load.
const LATENESS: Duration = Duration::from_millis(1);

/// Growth of the median latency within a trial that a queue in equilibrium may show. A queue that grows by a few percent of the
/// load must be recognised before its buffer is full.
const GROWTH: (f64, Duration) = (1.1, Duration::from_millis(1));

/// One trial.
#[derive(Debug, Serialize)]
struct Trial {
    rate_per_s: f64,
    messages: u64,
    /// Lost, corrupt or refused.
    missing: u64,
    /// Median latency of the first and of the second half.
    medians_s: [Option<f64>; 2],
    lateness_p98_s: Option<f64>,
    /// Why the rate is not sustained.
    failure: Option<String>,
}

/// Searches the highest rate, and verifies it.
pub(crate) fn run(args: &RateArgs) -> anyhow::Result<ExitCode> {
    ensure!(
        args.least <= args.rate && args.rate <= args.most,
        "expected --least ≤ --rate ≤ --most, found {} ≤ {} ≤ {}",
        args.least,
        args.rate,
        args.most
    );
    let interrupt = Interrupt::new()?;
    let place = Place::new(&args.common.place)?;
    let mut search = RateSearch::new(RateRange {
        start: args.rate,
        least: args.least,
        most: args.most,
        resolution: args.resolution,
        confirmations: args.confirmations,
    });
    let prepare = |sites: &Sites<'_>| start(&args.common, sites);
    let work = |sites: &Sites<'_>, (protocol, _broker): Started| {
        let mut trials = Vec::new();
        while let Some(rate) = search.next_rate().filter(|_| !interrupt.is_set()) {
            let number = trials.len() as u32;
            let trial = trial(args, (rate, number), &*protocol, sites, &interrupt)?;
            if !args.common.quiet {
                let outcome = trial.failure.as_deref().unwrap_or("sustained");
                say(format_args!("{} messages/s: {outcome}", format::number(rate)));
            }
            search.handle_trial(rate, trial.failure.is_none());
            trials.push(trial);
        }
        Ok((trials, protocol.name()))
    };
    let (trials, name) = place.enter(carrier(args.common.protocol), prepare, work)?;
    let table = table(&search, &trials, &format!("{name}, {}", place.name), args);
    if args.common.json {
        let summary = json!({
            "gridhaul": env!("CARGO_PKG_VERSION"),
            "command": "rate",
            "protocol": name,
            "network": place.name,
            "message_bytes": args.common.message_bytes(),
            "sustained_per_s": search.sustained(),
            "failed_per_s": search.failed(),
            "confirmations": args.confirmations,
            "complete": !interrupt.is_set(),
            "trials": trials,
        });
        print(&(serde_json::to_string_pretty(&summary)? + "\n"))?;
    } else {
        print(&text(&table))?;
    }
    Ok(if interrupt.is_set() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Sends at a rate for the time of a trial.
fn trial(
    args: &RateArgs,
    (rate, number): (f64, u32),
    protocol: &dyn Protocol,
    sites: &Sites<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<Trial> {
    let messages = (rate * args.trial.as_secs_f64()).ceil().max(50.0) as u64;
    let plan = Plan {
        schedule: Schedule::new(rate, messages),
        bytes: args.common.message_bytes(),
        horizon: args.common.horizon,
        processor: args.common.pin,
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
    let outcome = measure(&plan, protocol, sites, &mut log, &|_| {}, interrupt.flag())?;
    let medians = halves.into_inner().map(|half| half.quantile(0.5).map(|it| it.value));
    let lateness = outcome.summary.lateness.quantile(0.98).map(|it| it.value);
    let seconds = |it: Option<Duration>| it.map(Duration::as_secs_f64);
    Ok(Trial {
        rate_per_s: rate,
        messages: outcome.summary.counts.messages,
        missing: outcome.summary.missing(),
        medians_s: medians.map(seconds),
        lateness_p98_s: seconds(lateness),
        failure: failure(args, &plan, &outcome, medians, lateness),
    })
}

/// Why a trial shows that the rate is not sustained.
fn failure(
    args: &RateArgs,
    plan: &Plan,
    outcome: &Outcome,
    medians: [Option<Duration>; 2],
    lateness: Option<Duration>,
) -> Option<String> {
    let summary = &outcome.summary;
    let missing = summary.missing();
    let tolerated = args.loss * summary.counts.messages as f64;
    let limit = plan.schedule.interval().mul_f64(0.1).max(LATENESS);
    if let Some(fault) = &outcome.fault {
        return Some(fault.clone());
    }
    if let Some(late) = lateness.filter(|late| *late > limit) {
        return Some(format!(
            "the generator was {:.3} ms late (98th percentile): the limit is that of this machine",
            late.as_secs_f64() * 1e3
        ));
    }
    if missing as f64 > tolerated {
        return Some(format!("{} lost, corrupt or refused", counted(missing, "message")));
    }
    if let [Some(first), Some(second)] = medians {
        let (factor, additional) = GROWTH;
        if second > first.mul_f64(factor) + additional {
            return Some("the latency grows: messages wait in a queue".into());
        }
    }
    None
}

fn table(search: &RateSearch, trials: &[Trial], title: &str, args: &RateArgs) -> TextTable {
    let known = |value: Option<f64>| value.map_or_else(|| format::UNKNOWN.into(), format::number);
    let millis = |seconds: Option<f64>| known(seconds.map(|it| (it * 1e6).round() / 1e3));
    let rows = trials.iter().map(|trial| {
        vec![
            trial.failure.as_deref().unwrap_or("sustained").to_owned(),
            format::number(trial.rate_per_s.round()),
            trial.messages.to_string(),
            trial.missing.to_string(),
            millis(trial.medians_s[0]),
            millis(trial.medians_s[1]),
            millis(trial.lateness_p98_s),
        ]
    });
    let sustained = known(search.sustained().map(f64::round));
    let result = match search.next_rate() {
        None => format!(
            "highest sustained rate: {sustained} messages/s in {} trials of {} s",
            args.confirmations + 1,
            args.trial.as_secs_f64()
        ),
        Some(_) => format!(
            "interrupted: the highest rate that was sustained until then is {sustained} messages/s, without confirmation"
        ),
    };
    let note = format!(
        "{result}; lowest rate that failed: {} messages/s",
        known(search.failed().map(f64::round))
    );
    let headers = [
        "trial",
        "rate (1/s)",
        "messages",
        "missing",
        "median, first half (ms)",
        "second half (ms)",
        "lateness p98 (ms)",
    ];
    TextTable {
        title: title.to_owned(),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: Some(note),
    }
}
