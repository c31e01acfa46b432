//! A run at a constant rate, as the arguments request it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time;

use anyhow::{Context, bail, ensure};
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::broker::{Broker, BrokerUrl};
use gridhaul_measure::capture::Route;
use gridhaul_measure::clock::Unsupported;
use gridhaul_measure::log::MessageLog;
use gridhaul_measure::method::{Distribution, Message, Schedule, Summary, TimeProfile};
use gridhaul_measure::network::{Carrier, Sites};
use gridhaul_measure::prediction::PathLatencies;
use gridhaul_measure::protocol::{
    CrossTraffic, CrossTrafficCounts, DirectKind, Null, Protocol, Udp, UdpEcho,
};
use gridhaul_scenario::units::{Duration, Instant};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::disturbance::Disturbance;
use super::idle_states::IdleStates;
use super::place::{Interrupt, Place};
use super::prediction::{self, Prediction};
use super::protocols::{Started, sampled_values, settings, start};
use super::remote::Remote;
use crate::args::{FailingPart, ProtocolName, RunArgs, SubscriberEnd};

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
    /// Times on the clock of the network at which the broker was killed, and accepted connections again.
    pub(super) broker_outage: Option<[Instant; 2]>,
    /// Whether the user ended the run.
    pub(super) interrupted: bool,
    /// Results of a run with an agent only.
    pub(super) remote: Option<Remote>,
}

impl Run {
    /// A run of a protocol with its settings over a network, without what only some runs have.
    pub(super) fn new(
        (protocol, settings, network): (&'static str, Vec<(String, String)>, String),
        plan: Plan,
        outcome: Outcome,
        profile: TimeProfile,
    ) -> Self {
        Self {
            protocol,
            settings,
            network,
            plan,
            outcome,
            floor: None,
            network_alone: None,
            prediction: None,
            cross_traffic: Vec::new(),
            profile,
            outages: Vec::new(),
            broker_outage: None,
            interrupted: false,
            remote: None,
        }
    }

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

/// Measures as the arguments request, with an outage if there is one.
///
/// # Errors
/// Invalid input, a missing feature of the machine, or a protocol that cannot connect.
pub(super) fn execute_until(
    args: &RunArgs,
    interrupt: &Interrupt,
    outage: Option<&Disturbance>,
) -> anyhow::Result<Run> {
    let mut place = Place::of_protocol(&args.common)?;
    ensure!(
        place.network.is_some() || args.cross_traffic.loads().is_empty(),
        "cross traffic needs an emulated network\n  help: add --scenario FILE or --system NAME"
    );
    if let (Some((scenario, _)), Some(outage)) = (&mut place.network, outage) {
        outage.change(scenario);
    }
    check_kernel_times(args)?;
    ensure!(
        !args.busy_poll || args.common.protocol == ProtocolName::Udp,
        "--busy-poll: only the receiver of udp can poll its socket"
    );
    // The floor and the network alone are measured with the same idle states.
    let _idle_states = IdleStates::new(&args.idle_states);
    if args.predict {
        prediction::check(args)?;
    }
    let stop = interrupt.flag();
    let floor = if args.no_floor { None } else { Some(floor(stop)?) };
    let prepare = |sites: &Sites<'_>| start(&args.common, sites);
    let work = |sites: &Sites<'_>, started: Started| {
        let sites = if args.kernel_times { sites.with_kernel_times() } else { *sites };
        let sites = &if args.busy_poll { sites.with_busy_poll() } else { sites };
        let (mut run, measured) =
            at_sites(args, (sites, started), place.name.clone(), (outage, stop))?;
        if args.network_share && !interrupt.is_set() {
            let alone = network_alone(args, sites, stop)?;
            if let Some(fault) = alone.fault.filter(|_| !interrupt.is_set()) {
                run.outcome.fault.get_or_insert(format!("measuring the network alone: {fault}"));
            }
            run.network_alone = Some(alone.summary);
        }
        Ok((run, measured))
    };
    let (mut run, measured) = place.enter(carrier(args.common.protocol), prepare, work)?;
    if args.predict && !interrupt.is_set() {
        run.prediction = Some(Prediction::new(args, &place, &run, measured)?);
    }
    run.floor = floor;
    run.outages = place.outages(run.outcome.start);
    let since_start = |at: Instant| at.as_secs_f64() - run.outcome.start.as_secs_f64();
    run.outages.extend(run.broker_outage.map(|outage| outage.map(since_start)));
    run.interrupted = interrupt.is_set();
    Ok(run)
}

/// Packets that the links must carry for a protocol.
pub(super) const fn carrier(protocol: ProtocolName) -> Carrier {
    match protocol {
        ProtocolName::Sv | ProtocolName::Goose => Carrier::Frames,
        _ => Carrier::Packets,
    }
}

/// The network alone, with messages of the same size, rate and number, along the same path.
fn network_alone(args: &RunArgs, sites: &Sites<'_>, stop: &AtomicBool) -> anyhow::Result<Outcome> {
    let passes_twice = args.common.place.subscriber == SubscriberEnd::From;
    let protocol: Box<dyn Protocol> = match args.common.protocol {
        name if name.has_broker() && passes_twice => Box::new(UdpEcho),
        ProtocolName::Sv | ProtocolName::Goose => sampled_values(&args.common.frames).protocol(),
        _ => Box::new(Udp),
    };
    let plan = plan(args);
    // Datagrams of this run differ from the messages before.
    let plan = Plan { run: !plan.run, capture: None, ..plan };
    let work = || measure(&plan, &*protocol, sites, &mut |_| Ok(()), &|_| {}, stop);
    let (outcome, _) = CrossTraffic::beside(&args.cross_traffic.loads(), sites, work)?;
    Ok(outcome?)
}

/// The route of the messages in captured packets.
fn route(args: &RunArgs, broker: Option<&Broker>) -> Route {
    let given = args.common.connection.broker.as_ref().map(BrokerUrl::socket_address);
    let address = given.or_else(|| broker.map(|broker| broker.address().address));
    match (args.common.protocol, address) {
        (name, Some(broker)) if name.has_broker() => Route::Broker(broker),
        (ProtocolName::Iec104, _) => {
            Route::Decoded(DirectKind::Iec104(args.common.connection.iec_104_window()))
        }
        (ProtocolName::Dnp3, _) => {
            Route::Decoded(DirectKind::Dnp3 { poll: args.common.connection.poll })
        }
        _ => Route::Direct,
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
        schedule: schedule(args),
        bytes: args.common.message_bytes(),
        horizon: args.common.horizon,
        processor: args.common.pin,
        run: run_number(),
        capture: None,
    }
}

fn schedule(args: &RunArgs) -> Schedule {
    let schedule = Schedule::new(args.rate, args.messages);
    args.warm_up.map_or(schedule, |messages| schedule.with_warm_up(messages))
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

/// Measures a protocol between these ends of a network. The broker, if this program has started it, fails if that is requested.
pub(super) fn at_sites(
    args: &RunArgs,
    (sites, (protocol, mut broker)): (&Sites<'_>, Started),
    network: String,
    (outage, stop): (Option<&Disturbance>, &AtomicBool),
) -> anyhow::Result<(Run, PathLatencies)> {
    let plan = Plan {
        capture: (args.capture || args.predict).then(|| route(args, broker.as_ref())),
        ..plan(args)
    };
    let idle_states = IdleStates::new(&args.idle_states);
    let mut settings = settings(&args.common, &*protocol, broker.as_ref(), sites)?;
    settings.push(idle_states.setting());
    settings.extend(args.busy_poll.then(|| ("busy_poll".to_owned(), "true".to_owned())));
    let mut log = open_log(args, "messages", protocol.name(), &settings)?;
    let mut profile = TimeProfile::new(&plan.schedule);
    let mut path = PathLatencies::default();
    let mut push = |message: &Message| {
        profile.add(message);
        path.add(message);
        log.as_mut().map_or(Ok(()), |log| log.push(message))
    };
    let bar = progress(args, plan.schedule.total());
    let scheduled = AtomicU64::new(0);
    let observe = |sent| {
        bar.set_position(sent);
        scheduled.store(sent, Ordering::Relaxed);
    };
    let work = || measure(&plan, &*protocol, sites, &mut push, &observe, stop);
    let beside = || CrossTraffic::beside(&args.cross_traffic.loads(), sites, work);
    let failing = outage.filter(|it| it.part == FailingPart::Broker).zip(broker.as_mut());
    let (measured, broker_outage) = match failing {
        Some((outage, broker)) => outage.beside(broker, (&plan, sites), &scheduled, beside)?,
        None => (beside(), None),
    };
    bar.finish_and_clear();
    if let (Some(folder), Some(broker)) = (&args.out, &broker) {
        write(&folder.join("broker.log"), &broker.log())?;
    }
    let (outcome, cross_traffic) = measured?;
    let mut outcome = outcome?;
    if let Some(Err(error)) = log.as_mut().map(MessageLog::flush) {
        outcome.fault.get_or_insert(error.to_string());
    }
    let run = Run::new((protocol.name(), settings, network), plan, outcome, profile);
    Ok((Run { cross_traffic, broker_outage, ..run }, path))
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
        ("message_bytes", args.common.message_bytes().to_string()),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value));
    let properties = run.into_iter().chain(settings.iter().cloned()).collect();
    Ok(Some(MessageLog::create(&folder.join(name), properties)?))
}

/// Writes a file of the results completely, or leaves the old one.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    let moved = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if moved.is_err() {
        let _ = fs::remove_file(&partial);
    }
    moved.with_context(|| format!("cannot write {}", path.display()))
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
