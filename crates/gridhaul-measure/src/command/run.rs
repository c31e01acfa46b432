//! A run at a constant rate, as the arguments request it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

use anyhow::Context;
use gridhaul_data::trace::load_scenario;
use gridhaul_measure::bench::{Outcome, Plan, measure};
use gridhaul_measure::broker::Mosquitto;
use gridhaul_measure::log::MessageLog;
use gridhaul_measure::method::{Distribution, Message, Schedule};
use gridhaul_measure::network::{Sites, on_network};
use gridhaul_measure::protocol::{Mqtt, Null, Protocol, QualityOfService, ReconnectPolicy, Udp};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::{MqttArgs, Nodelay, ProtocolName, RunArgs};

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
    let stop = Arc::new(AtomicBool::new(false));
    let interrupted = Arc::new(AtomicBool::new(false));
    let flags = [Arc::clone(&stop), Arc::clone(&interrupted)];
    ctrlc::set_handler(move || flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed)))
        .context("installing the handler of Ctrl-C")?;
    let floor = if args.no_floor { None } else { Some(floor(&stop)?) };
    let mut run = match &args.scenario {
        None => at_sites(args, &Sites::loopback(), "this machine".into(), &stop)?,
        Some(file) => {
            let mut scenario = load_scenario(file)?.points()?.swap_remove(0).scenario;
            change(&mut scenario);
            let first = scenario.flow.keys().next().cloned();
            let flow = args.flow.clone().or(first).context("the scenario has no flow")?;
            let network = format!("{}, flow {flow}", file.display());
            on_network(&scenario, &flow, |sites| at_sites(args, sites, network, &stop))??
        }
    };
    run.floor = floor;
    run.interrupted = interrupted.load(Ordering::Relaxed);
    Ok(run)
}

/// The latency of the null protocol, which no result can fall below.
fn floor(stop: &AtomicBool) -> anyhow::Result<Distribution> {
    let plan = Plan {
        schedule: Schedule::new(FLOOR.0, FLOOR.1),
        bytes: 0,
        horizon: Duration::from_secs(1),
        processor: None,
        run: std::process::id(),
    };
    let outcome = measure(&plan, &Null, &Sites::loopback(), &mut |_| Ok(()), &|_| {}, stop)?;
    Ok(outcome.summary.from_send)
}

fn at_sites(
    args: &RunArgs,
    sites: &Sites<'_>,
    network: String,
    stop: &AtomicBool,
) -> anyhow::Result<Run> {
    let (protocol, broker) = protocol(args, sites)?;
    let plan = Plan {
        schedule: Schedule::new(args.rate, args.messages),
        bytes: args.bytes,
        horizon: args.horizon,
        processor: args.processor,
        run: std::process::id(),
    };
    let mut settings: Vec<_> = protocol.settings().into_iter().collect();
    if args.protocol == ProtocolName::Mqtt {
        let own = if broker.is_some() { "mosquitto" } else { "given" };
        settings.extend([
            ("broker_program", own.to_owned()),
            ("broker_nodelay", broker_nodelay(&args.mqtt, broker.is_some())),
        ]);
    }
    let settings: Vec<_> =
        settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut log = open_log(args, protocol.name(), &settings)?;
    let mut push = |message: &Message| log.as_mut().map_or(Ok(()), |log| log.push(message));
    let bar = progress(args, plan.schedule.total());
    let observe = |sent| bar.set_position(sent);
    let measured = measure(&plan, &*protocol, sites, &mut push, &observe, stop);
    bar.finish_and_clear();
    if let (Some(folder), Some(broker)) = (&args.out, &broker) {
        write(&folder.join("broker.log"), &broker.log())?;
    }
    let mut outcome = measured?;
    if let Some(Err(error)) = log.as_mut().map(MessageLog::flush) {
        outcome.fault.get_or_insert(error.to_string());
    }
    let protocol = protocol.name();
    Ok(Run { protocol, settings, network, plan, outcome, floor: None, interrupted: false })
}

/// The protocol, and its broker if this program starts it.
fn protocol(
    args: &RunArgs,
    sites: &Sites<'_>,
) -> anyhow::Result<(Box<dyn Protocol>, Option<Mosquitto>)> {
    Ok(match args.protocol {
        ProtocolName::Null => (Box::new(Null), None),
        ProtocolName::Udp => (Box::new(Udp), None),
        ProtocolName::Mqtt => {
            let at_broker = matches!(args.mqtt.nodelay, Nodelay::Both | Nodelay::Broker);
            let broker = match args.mqtt.broker {
                Some(_) => None,
                None => Some(Mosquitto::start(&sites.to, at_broker)?),
            };
            let own = broker.as_ref().map(Mosquitto::address);
            let address = args.mqtt.broker.or(own).context("a broker is given or started")?;
            (Box::new(mqtt(&args.mqtt, address)), broker)
        }
    })
}

fn mqtt(args: &MqttArgs, broker: SocketAddr) -> Mqtt {
    Mqtt {
        broker,
        nodelay: matches!(args.nodelay, Nodelay::Both | Nodelay::Clients),
        qos: match args.qos {
            0 => QualityOfService::AtMostOnce,
            _ => QualityOfService::AtLeastOnce,
        },
        one_connection: args.connections == 1,
        keep_alive: args.keep_alive,
        reconnect: ReconnectPolicy { after: args.reconnect_after, queue: args.queue },
        topic: format!("gridhaul-{}", std::process::id()),
    }
}

/// The setting of a broker that this program starts; that of another one is unknown.
fn broker_nodelay(args: &MqttArgs, own: bool) -> String {
    match (own, args.nodelay) {
        (false, _) => "unknown".into(),
        (true, nodelay) => matches!(nodelay, Nodelay::Both | Nodelay::Broker).to_string(),
    }
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
        ("message_bytes", args.bytes.to_string()),
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
    let target = if args.quiet {
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
