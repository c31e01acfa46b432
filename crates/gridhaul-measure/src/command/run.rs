//! A run at a constant rate, as the arguments request it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time;

use anyhow::{Context, bail, ensure};
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::broker::Broker;
use gridhaul_measure::capture::Route;
use gridhaul_measure::clock::Unsupported;
use gridhaul_measure::log::MessageLog;
use gridhaul_measure::method::{Distribution, Message, Schedule, Summary, TimeProfile};
use gridhaul_measure::network::{Carrier, Sites};
use gridhaul_measure::prediction::PathLatencies;
use gridhaul_measure::protocol::{CrossTraffic, CrossTrafficCounts, Null, Protocol, Udp, UdpEcho};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::place::{Interrupt, Place};
use super::prediction::{self, Prediction};
use super::protocols::{sampled_values, settings, start};
use super::remote::Remote;
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
    /// The path of the messages in captures and in the simulator, if requested.
    pub(super) prediction: Option<Prediction>,
    /// The background load.
    pub(super) cross_traffic: Vec<CrossTrafficCounts>,
    /// Latency over time.
    pub(super) profile: TimeProfile,
    /// Outages of the links between the ends, in seconds since the start of the schedule.
    pub(super) outages: Vec<[f64; 2]>,
    /// Whether the user ended the run.
    pub(super) interrupted: bool,
    /// What a run on two machines has in addition.
    pub(super) remote: Option<Remote>,
}

impl Run {
    /// Why latencies are not reported as one-way latencies, if this is so.
    pub(super) fn unsupported(&self) -> Option<(&Remote, Unsupported)> {
        let remote = self.remote.as_ref()?;
        remote.one_way.err().map(|reason| (remote, reason))
    }

    /// The distributions that the run supports, with their names.
    pub(super) fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        let summary = &self.outcome.summary;
        let mut rows = match self.unsupported() {
            None => vec![
                ("from the schedule", &summary.from_schedule),
                ("from the send time", &summary.from_send),
            ],
            Some((remote, _)) => vec![
                ("one way, at least", &remote.bounds.from_send),
                ("one way, at most", &remote.bounds.from_schedule),
            ],
        };
        let returned = self.remote.as_ref().and_then(|remote| remote.round_trip.as_ref());
        rows.extend(returned.map(|returned| ("round trip", &returned.from_send)));
        rows.push(("generator lateness", &summary.lateness));
        rows
    }

    /// The messages for verdicts: with the clock of another machine, those with the bounds of their latencies.
    pub(super) fn judged(&self) -> &Summary {
        self.remote.as_ref().map_or(&self.outcome.summary, |remote| &remote.bounds)
    }

    /// The messages whose latency is compared with the lateness of the generator.
    pub(super) fn checked(&self) -> &Summary {
        let returned = self
            .unsupported()
            .map(|(remote, _)| remote.round_trip.as_ref().unwrap_or(&remote.bounds));
        returned.unwrap_or(&self.outcome.summary)
    }
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
    check_kernel_times(args)?;
    if args.predict {
        prediction::check(args)?;
    }
    let stop = interrupt.flag();
    let floor = if args.no_floor { None } else { Some(floor(stop)?) };
    let (mut run, measured) = place.enter(carrier(args.common.protocol), |sites| {
        let sites = &if args.kernel_times { sites.with_kernel_times() } else { *sites };
        let (mut run, measured) = at_sites(args, sites, place.name.clone(), stop)?;
        if args.network_share && !interrupt.is_set() {
            run.network_alone = Some(network_alone(args, sites, stop)?);
        }
        Ok((run, measured))
    })?;
    if args.predict && !interrupt.is_set() {
        run.prediction = Some(Prediction::new(args, &place, &run, measured)?);
    }
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
    let plan = Plan { run: !plan.run, capture: None, ..plan };
    let work = || measure(&plan, &*protocol, sites, &mut |_| Ok(()), &|_| {}, stop);
    let (outcome, _) = CrossTraffic::beside(&args.cross_traffic.loads(), sites, work)?;
    Ok(outcome?.summary)
}

/// The route of the messages in captured packets.
fn route(args: &RunArgs, broker: Option<&dyn Broker>) -> Route {
    let own = || broker.map(Broker::address);
    let address = args.common.connection.broker.clone().or_else(own);
    match address.filter(|_| args.common.protocol.has_broker()) {
        Some(broker) => Route::Broker(broker.address),
        None => Route::Direct,
    }
}

/// Whether the kernel can record the receive times of messages.
fn check_kernel_times(args: &RunArgs) -> anyhow::Result<()> {
    let is_possible =
        matches!(args.common.protocol, ProtocolName::Udp | ProtocolName::Sv | ProtocolName::Goose);
    if args.kernel_times && !is_possible {
        bail!(
            "--kernel-times: the kernel records receive times of datagrams and frames only\n  help: choose udp, sv or goose; --capture \
             shows when the packets of the other protocols arrive"
        );
    }
    Ok(())
}

/// The messages as the arguments request them.
pub(super) fn plan(args: &RunArgs) -> Plan {
    Plan {
        schedule: Schedule::new(args.rate, args.messages),
        bytes: args.common.bytes,
        horizon: args.common.horizon,
        processor: args.common.pin,
        run: run_number(),
        capture: None,
    }
}

/// A number that differs between the runs of this program, so that late messages of one do not count in the next, and from
/// those of other programs: a process identifier has at most 22 bits (`proc(5)`, `pid_max`).
fn run_number() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    std::process::id() | RUNS.fetch_add(1, Ordering::Relaxed) << 22
}

/// The latency of the null protocol, which no result can fall below.
pub(super) fn floor(stop: &AtomicBool) -> anyhow::Result<Distribution> {
    let plan = Plan {
        schedule: Schedule::new(FLOOR.0, FLOOR.1),
        bytes: 0,
        horizon: Duration::from_secs(1),
        processor: None,
        run: run_number(),
        capture: None,
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
) -> anyhow::Result<(Run, PathLatencies)> {
    let (protocol, broker) = start(&args.common, sites)?;
    let plan = Plan {
        capture: (args.capture || args.predict).then(|| route(args, broker.as_deref())),
        ..plan(args)
    };
    let settings = settings(&args.common, &*protocol, broker.as_deref());
    let mut log = open_log(args, "messages", protocol.name(), &settings)?;
    let mut profile = TimeProfile::new(&plan.schedule);
    let mut path = PathLatencies::default();
    let mut push = |message: &Message| {
        profile.add(message);
        path.add(message);
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
    let run = Run {
        protocol: protocol.name(),
        settings,
        network,
        plan,
        outcome,
        floor: None,
        network_alone: None,
        prediction: None,
        cross_traffic,
        profile,
        outages: Vec::new(),
        interrupted: false,
        remote: None,
    };
    Ok((run, path))
}

/// Creates the log of the messages in a folder of the results, if results are kept.
pub(super) fn open_log(
    args: &RunArgs,
    name: &str,
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
    Ok(Some(MessageLog::create(&folder.join(name), properties)?))
}

/// Writes a file of the results.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn progress(args: &RunArgs, messages: u64) -> ProgressBar {
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
