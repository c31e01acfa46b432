//! `gridhaul measure rate`: the highest rate that a protocol sustains.

mod trial;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_emu::Forwarded;
use gridhaul_measure::agent::{RemoteLogs, SILENCE, random_run};
use gridhaul_measure::bench::{Plan, measure};
use gridhaul_measure::method::{RateLimit, RateRange, RateSearch};
use gridhaul_measure::network::Sites;
use gridhaul_report::{TextTable, format};
use serde_json::{Map, Value, json};

use self::trial::{Sent, Trial, TrialLog, trial};
use super::idle_states::IdleStates;
use super::place::{Interrupt, Place};
use super::protocols::{Started, settings, start};
use super::remote::{AgentConnection, AgentRequest};
use super::run::carrier;
use super::{CHECK, INTERRUPTED};
use crate::args::RateArgs;
use crate::terminal::{print, say, text};

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
    let idle_states = IdleStates::new(&args.idle_states);
    let mut search = match args.remote.agent {
        Some(address) => with_agent(args, address, &interrupt)?,
        None => on_this_machine(args, &interrupt)?,
    };
    search.settings.push(idle_states.setting());
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
            let earlier = sites.forwarded();
            let outcome = measure(plan, &*protocol, sites, log, &|_| {}, interrupt.flag())?;
            Ok((outcome, sites.forwarded().since(earlier)))
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
        let measured = agent.measure(&plan, ends, logs, &|_| {}, interrupt.flag());
        Ok((measured.outcome, Forwarded::default()))
    };
    let (found, trials, fault) = trials(args, interrupt, send)?;
    let network = agent.network();
    agent.end();
    Ok(Search { found, trials, protocol, network, settings, fault })
}

/// Makes trials until the search has ended, or has a fault.
fn trials(
    args: &RateArgs,
    interrupt: &Interrupt,
    mut send: impl FnMut(&Plan, &mut TrialLog<'_>) -> anyhow::Result<Sent>,
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
        let done;
        (done, fault) = trial(args, (rate, number), &mut send)?;
        if !args.common.quiet {
            let outcome = done.reason.as_deref().unwrap_or("sustained");
            say(format_args!("{} messages/s: {outcome}", format::number(rate)));
        }
        if let Some(result) = done.result {
            search.handle_trial(rate, result);
        }
        trials.push(done);
    }
    Ok((search, trials, fault))
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
        "disturbed_per_s": search.found.disturbed(),
        "limited_by": match search.found.limit() {
            RateLimit::Network => "network",
            RateLimit::Machine => "machine",
            RateLimit::Range => "range",
        },
        "confirmations": args.confirmations,
        "complete": search.found.next_rate().is_none(),
        "trials": search.trials,
        "fault": search.fault,
    })
}

fn table(search: &Search, args: &RateArgs) -> TextTable {
    let known = |value: Option<f64>| value.map_or_else(|| format::UNKNOWN.into(), format::number);
    let millis = |seconds: Option<f64>| known(seconds.map(|it| (it * 1e6).round() / 1e3));
    let rows = search.trials.iter().map(|trial| {
        vec![
            trial.reason.as_deref().unwrap_or("sustained").to_owned(),
            format::number(trial.rate_per_s.round()),
            trial.messages.to_string(),
            trial.missing.to_string(),
            millis(trial.medians_s[0]),
            millis(trial.medians_s[1]),
            millis(trial.lateness_p98_s),
        ]
    });
    let note = note(search, args);
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

/// The result in words.
fn note(search: &Search, args: &RateArgs) -> String {
    let found = &search.found;
    let known = |value: Option<f64>| {
        value.map_or_else(|| format::UNKNOWN.into(), |rate| format::number(rate.round()))
    };
    let sustained = known(found.sustained());
    if found.next_rate().is_some() {
        return format!(
            "ended early: the highest rate that was sustained until then is {sustained} messages/s, \
             without confirmation; lowest rate that failed: {} messages/s",
            known(found.failed())
        );
    }
    let shown = format!(
        "{sustained} messages/s in {} trials of {} s",
        args.confirmations + 1,
        args.trial.as_secs_f64()
    );
    let disturbed = known(found.disturbed());
    match (found.limit(), found.sustained()) {
        (RateLimit::Network, _) => format!(
            "highest sustained rate: {shown}; lowest rate that failed: {} messages/s",
            known(found.failed())
        ),
        (RateLimit::Machine, Some(_)) => format!(
            "sustained rate: at least {shown}; the limit is this machine, which disturbed all trials \
             at {disturbed} messages/s"
        ),
        (RateLimit::Machine, None) => format!(
            "sustained rate: unknown; the limit is this machine, which disturbed all trials at \
             {disturbed} messages/s"
        ),
        (RateLimit::Range, _) => {
            format!("sustained rate: at least {shown}; --most ends the search")
        }
    }
}
