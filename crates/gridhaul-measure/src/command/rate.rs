//! `gridhaul measure rate`: the highest rate that a protocol sustains.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::agent::{RemoteLogs, SILENCE, random_run};
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::log::LogError;
use gridhaul_measure::method::{Distribution, Message, Phase, RateRange, RateSearch, Schedule};
use gridhaul_measure::network::Sites;
use gridhaul_report::{TextTable, format};
use gridhaul_scenario::units::{Duration, counted};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::place::{Interrupt, Place};
use super::protocols::{Started, settings, start};
use super::remote::{AgentConnection, AgentRequest};
use super::run::carrier;
use super::{CHECK, INTERRUPTED};
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

/// A search that has ended.
struct Search {
    found: RateSearch,
    trials: Vec<Trial>,
    protocol: &'static str,
    network: String,
    settings: Vec<(String, String)>,
    /// Why no further trial was possible.
    fault: Option<String>,
}

/// The messages of a trial as they are closed.
type TrialLog<'a> = dyn FnMut(&Message) -> Result<(), LogError> + 'a;

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
    let search = match args.remote.agent {
        Some(address) => with_agent(args, address, &interrupt)?,
        None => on_this_machine(args, &interrupt)?,
    };
    if args.common.json {
        print(&(serde_json::to_string_pretty(&document(&search, args))? + "\n"))?;
    } else {
        print(&text(&table(&search, args)))?;
    }
    Ok(match &search.fault {
        _ if interrupt.is_set() => ExitCode::from(INTERRUPTED),
        Some(fault) => {
            say(format_args!("the search ended early: {fault}"));
            ExitCode::from(CHECK)
        }
        None => ExitCode::SUCCESS,
    })
}

/// Searches on this machine or over an emulated network.
fn on_this_machine(args: &RateArgs, interrupt: &Interrupt) -> anyhow::Result<Search> {
    let place = Place::of_protocol(&args.common)?;
    let prepare = |sites: &Sites<'_>| start(&args.common, sites);
    let work = |sites: &Sites<'_>, (protocol, broker): Started| {
        let send = |plan: &Plan, log: &mut TrialLog<'_>| {
            let stop = interrupt.flag();
            let outcome = measure(plan, &*protocol, sites, log, &|_| {}, stop)?;
            Ok((outcome, None))
        };
        let (found, trials, fault) = trials(args, interrupt, send)?;
        let settings = settings(&args.common, &*protocol, broker.as_ref(), sites)?;
        let (protocol, network) = (protocol.name(), place.name.clone());
        Ok(Search { found, trials, protocol, network, settings, fault })
    };
    place.enter(carrier(args.common.protocol), prepare, work)
}

/// Searches between this machine and an agent. Messages do not come back: they would load the reverse path.
fn with_agent(
    args: &RateArgs,
    address: SocketAddr,
    interrupt: &Interrupt,
) -> anyhow::Result<Search> {
    let remote = &args.remote;
    let request = AgentRequest { remote, address, is_returned: false, silence: SILENCE };
    let mut agent = AgentConnection::open(&args.common, request)?;
    let (mut protocol, mut settings) = ("", Vec::new());
    let send = |plan: &Plan, log: &mut TrialLog<'_>| {
        let plan = Plan { run: random_run()?, ..*plan };
        let ends;
        (ends, settings) = agent.connect(plan.run)?;
        protocol = ends.protocol;
        let logs = RemoteLogs { one_way: log, round_trip: &mut |_| Ok(()) };
        let outcome = agent.measure(&plan, ends, logs, &|_| {}, interrupt.flag()).outcome;
        // A session does not survive a fault.
        let fault = outcome.fault.clone();
        Ok((outcome, fault))
    };
    let (found, trials, fault) = trials(args, interrupt, send)?;
    let network = agent.network();
    agent.end();
    Ok(Search { found, trials, protocol, network, settings, fault })
}

/// Makes trials until the search has ended. `send` sends the messages of a plan, and returns why no further trial is possible after
/// this one.
fn trials(
    args: &RateArgs,
    interrupt: &Interrupt,
    mut send: impl FnMut(&Plan, &mut TrialLog<'_>) -> anyhow::Result<(Outcome, Option<String>)>,
) -> anyhow::Result<(RateSearch, Vec<Trial>, Option<String>)> {
    let mut search = RateSearch::new(RateRange {
        start: args.rate,
        least: args.least,
        most: args.most,
        resolution: args.resolution,
        confirmations: args.confirmations,
    });
    let (mut trials, mut fault) = (Vec::new(), None);
    while let Some(rate) = search.next_rate().filter(|_| fault.is_none() && !interrupt.is_set()) {
        let number = trials.len() as u32;
        let trial;
        (trial, fault) = self::trial(args, (rate, number), &mut send)?;
        if !args.common.quiet {
            let outcome = trial.failure.as_deref().unwrap_or("sustained");
            say(format_args!("{} messages/s: {outcome}", format::number(rate)));
        }
        // A trial that ended early shows nothing about its rate.
        if fault.is_none() && !interrupt.is_set() {
            search.handle_trial(rate, trial.failure.is_none());
        }
        trials.push(trial);
    }
    Ok((search, trials, fault))
}

/// Sends at a rate for the time of a trial.
fn trial(
    args: &RateArgs,
    (rate, number): (f64, u32),
    send: &mut impl FnMut(&Plan, &mut TrialLog<'_>) -> anyhow::Result<(Outcome, Option<String>)>,
) -> anyhow::Result<(Trial, Option<String>)> {
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
    let (outcome, fault) = send(&plan, &mut log)?;
    let medians = halves.into_inner().map(|half| half.quantile(0.5).map(|it| it.value));
    let lateness = outcome.summary.lateness.quantile(0.98).map(|it| it.value);
    let seconds = |it: Option<Duration>| it.map(Duration::as_secs_f64);
    let trial = Trial {
        rate_per_s: rate,
        messages: outcome.summary.counts.messages,
        missing: outcome.summary.missing(),
        medians_s: medians.map(seconds),
        lateness_p98_s: seconds(lateness),
        failure: failure(args, &plan, &outcome, medians, lateness),
    };
    Ok((trial, fault))
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

fn document(search: &Search, args: &RateArgs) -> Value {
    let settings: Map<_, _> =
        search.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": "rate",
        "protocol": search.protocol,
        "settings": settings,
        "network": search.network,
        "message_bytes": args.common.message_bytes(),
        "sustained_per_s": search.found.sustained(),
        "failed_per_s": search.found.failed(),
        "confirmations": args.confirmations,
        "complete": search.found.next_rate().is_none(),
        "trials": search.trials,
        "fault": search.fault,
    })
}

fn table(search: &Search, args: &RateArgs) -> TextTable {
    let found = &search.found;
    let known = |value: Option<f64>| value.map_or_else(|| format::UNKNOWN.into(), format::number);
    let millis = |seconds: Option<f64>| known(seconds.map(|it| (it * 1e6).round() / 1e3));
    let rows = search.trials.iter().map(|trial| {
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
    let sustained = known(found.sustained().map(f64::round));
    let result = match found.next_rate() {
        None => format!(
            "highest sustained rate: {sustained} messages/s in {} trials of {} s",
            args.confirmations + 1,
            args.trial.as_secs_f64()
        ),
        Some(_) => format!(
            "ended early: the highest rate that was sustained until then is {sustained} messages/s, without confirmation"
        ),
    };
    let note = format!(
        "{result}; lowest rate that failed: {} messages/s",
        known(found.failed().map(f64::round))
    );
    let settings: Vec<_> =
        search.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
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
        title: format!("{}, {}", search.protocol, search.network),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: Some([note, settings.join(", ")].join("\n").trim_end().to_owned()),
    }
}
