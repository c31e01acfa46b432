//! A run at a constant rate, as the arguments request it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time;

use anyhow::{Context, ensure};
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::log::MessageLog;
use gridhaul_measure::method::{Distribution, Message, Schedule, Summary, TimeProfile};
use gridhaul_measure::network::{Carrier, Sites};
use gridhaul_measure::protocol::{CrossTraffic, CrossTrafficCounts, Null, Protocol, Udp, UdpEcho};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::place::{Interrupt, Place};
use super::protocols::{sampled_values, settings, start};
use crate::args::{ProtocolName, RunArgs, SubscriberEnd};

/// A run and its settings.
#[derive(Debug)]
pub(super) struct Run {
    /// Name of the protocol.
    pub(super) protocol: &'static str,
    /// Its settings.
    pub(super) settings: Vec<(String, String)>,
    /// The network: `this machine`, or the scenario file and the flow.
    pub(super) network: String,
    /// Settings of the messages.
    pub(super) plan: Plan,
    /// Result.
    pub(super) outcome: Outcome,
    /// Latency of the null protocol.
    pub(super) floor: Option<Distribution>,
    /// Summary of the network alone, if requested.
    pub(super) network_alone: Option<Summary>,
    /// The background load.
    pub(super) cross_traffic: Vec<CrossTrafficCounts>,
    /// Latency over time.
    pub(super) profile: TimeProfile,
    /// Outages of the links between the ends, in seconds since the start of the schedule.
    pub(super) outages: Vec<[f64; 2]>,
    /// Whether the user ended the run.
    pub(super) interrupted: bool,
}

/// Rate and number of the messages that measure the floor, in about a second with the warm-up.
const FLOOR: (f64, u64) = (1_000.0, 200);

/// Measures as the arguments request. `change` adapts the scenario, if there is one.
///
/// # Errors
/// Invalid input, a missing feature of the machine, or a protocol that cannot connect.
pub(super) fn execute(args: &RunArgs, change: impl FnOnce(&mut Scenario)) -> anyhow::Result<Run> {
    execute_until(args, &Interrupt::new()?, change)
}

/// As [`execute`], in a program that has a handler of interruptions.
pub(super) fn execute_until(
    args: &RunArgs,
    interrupt: &Interrupt,
    change: impl FnOnce(&mut Scenario),
) -> anyhow::Result<Run> {
    let mut place = Place::new(&args.common.place)?;
    ensure!(
        place.network.is_some() || args.cross_traffic.loads().is_empty(),
        "cross traffic needs an emulated network\n  help: add --scenario FILE or --system NAME"
    );
    if let Some((scenario, _)) = &mut place.network {
        change(scenario);
    }
    let stop = interrupt.flag();
    let floor = if args.no_floor { None } else { Some(floor(stop)?) };
    let mut run = place.enter(carrier(args.common.protocol), |sites| {
        let mut run = at_sites(args, sites, place.name.clone(), stop)?;
        if args.network_share && !interrupt.is_set() {
            run.network_alone = Some(network_alone(args, sites, stop)?);
        }
        Ok(run)
    })?;
    run.floor = floor;
    run.outages = place.outages(run.outcome.start);
    run.interrupted = interrupt.is_set();
    Ok(run)
}

/// What the links must carry for a protocol.
pub(super) const fn carrier(protocol: ProtocolName) -> Carrier {
    match protocol {
        ProtocolName::Sv | ProtocolName::Goose => Carrier::Frames,
        _ => Carrier::Packets,
    }
}

/// The network alone, with messages of the same size, rate and number, along the same path.
fn network_alone(args: &RunArgs, sites: &Sites<'_>, stop: &AtomicBool) -> anyhow::Result<Summary> {
    let passes_twice = args.common.place.subscriber == SubscriberEnd::From;
    let protocol: Box<dyn Protocol> = match args.common.protocol {
        name if name.has_broker() && passes_twice => Box::new(UdpEcho),
        ProtocolName::Sv | ProtocolName::Goose => Box::new(sampled_values(&args.common.frames)),
        _ => Box::new(Udp),
    };
    let plan = plan(args);
    // Datagrams of this run differ from the messages before.
    let plan = Plan { run: !plan.run, ..plan };
    let work = || measure(&plan, &*protocol, sites, &mut |_| Ok(()), &|_| {}, stop);
    let (outcome, _) = CrossTraffic::beside(&args.cross_traffic.loads(), sites, work)?;
    Ok(outcome?.summary)
}

/// The messages as the arguments request them.
fn plan(args: &RunArgs) -> Plan {
    Plan {
        schedule: Schedule::new(args.rate, args.messages),
        bytes: args.common.bytes,
        horizon: args.common.horizon,
        processor: args.common.pin,
        run: run_number(),
    }
}

/// A number that differs between the runs of this program, so that late messages of one do not count in the next, and from
/// those of other programs: a process identifier has at most 22 bits (`proc(5)`, `pid_max`).
fn run_number() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    std::process::id() | RUNS.fetch_add(1, Ordering::Relaxed) << 22
}

/// The latency of the null protocol, which no result can fall below.
fn floor(stop: &AtomicBool) -> anyhow::Result<Distribution> {
    let plan = Plan {
        schedule: Schedule::new(FLOOR.0, FLOOR.1),
        bytes: 0,
        horizon: Duration::from_secs(1),
        processor: None,
        run: run_number(),
    };
    let outcome = measure(&plan, &Null, &Sites::loopback(), &mut |_| Ok(()), &|_| {}, stop)?;
    Ok(outcome.summary.from_send)
}

/// Measures between these ends of a network. A broker is started unless one is given.
pub(super) fn at_sites(
    args: &RunArgs,
    sites: &Sites<'_>,
    network: String,
    stop: &AtomicBool,
) -> anyhow::Result<Run> {
    let (protocol, broker) = start(&args.common, sites)?;
    let plan = plan(args);
    let settings = settings(&args.common, &*protocol, broker.as_deref());
    let mut log = open_log(args, protocol.name(), &settings)?;
    let mut profile = TimeProfile::new(&plan.schedule);
    let mut push = |message: &Message| {
        profile.add(message);
        log.as_mut().map_or(Ok(()), |log| log.push(message))
    };
    let bar = progress(args, plan.schedule.total());
    let observe = |sent| bar.set_position(sent);
    let work = || measure(&plan, &*protocol, sites, &mut push, &observe, stop);
    let measured = CrossTraffic::beside(&args.cross_traffic.loads(), sites, work);
    bar.finish_and_clear();
    if let (Some(folder), Some(broker)) = (&args.out, &broker) {
        write(&folder.join("broker.log"), &broker.log())?;
    }
    let (outcome, cross_traffic) = measured?;
    let mut outcome = outcome?;
    if let Some(Err(error)) = log.as_mut().map(MessageLog::flush) {
        outcome.fault.get_or_insert(error.to_string());
    }
    Ok(Run {
        protocol: protocol.name(),
        settings,
        network,
        plan,
        outcome,
        floor: None,
        network_alone: None,
        cross_traffic,
        profile,
        outages: Vec::new(),
        interrupted: false,
    })
}

fn open_log(
    args: &RunArgs,
    protocol: &str,
    settings: &[(String, String)],
) -> anyhow::Result<Option<MessageLog>> {
    let Some(folder) = &args.out else { return Ok(None) };
    let run = [
        ("protocol", protocol.to_owned()),
        ("rate_per_s", args.rate.to_string()),
        ("message_bytes", args.common.bytes.to_string()),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value));
    let properties = run.into_iter().chain(settings.iter().cloned()).collect();
    Ok(Some(MessageLog::create(&folder.join("messages"), properties)?))
}

/// Writes a file of the results.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn progress(args: &RunArgs, messages: u64) -> ProgressBar {
    let target = if args.common.quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr_with_hz(4)
    };
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} messages, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(messages), target);
    bar.enable_steady_tick(time::Duration::from_millis(500));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
