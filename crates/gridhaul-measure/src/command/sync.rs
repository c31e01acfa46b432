//! `gridhaul measure sync`: offset, drift and a step of an injected clock, and whether exchanges
//! over a network show them.

use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use anyhow::{Context, ensure};
use gridhaul_cli::exit_code::INTERRUPTED;
use gridhaul_cli::print;
use gridhaul_linux::{Clock, SleepBudget, request_realtime_priority};
use gridhaul_measure::clock::{Bounds, Exchange, InjectedClock, Synchronisation, segments};
use gridhaul_measure::measurement;
use gridhaul_measure::method::sleep_until;
use gridhaul_measure::place::LocalNetwork;
use gridhaul_measure::place::{Carrier, Site, Sites};
use gridhaul_measure::protocol::has_nothing_arrived;
use gridhaul_measure::run::IdleStates;
use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::{Value, json};

use super::observer::TerminalObserver;
use crate::args::{SubscriberEnd, SyncArgs};
use crate::terminal::text;

/// Bytes of a request: number and local time; an answer adds two remote times.
const REQUEST: usize = 16;
const ANSWER: usize = 32;

/// Time to wait for answers to the last request.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// One quantity: what was injected and what was found.
struct Row {
    name: String,
    unit: &'static str,
    injected: f64,
    estimate: Option<f64>,
    bounds: Option<Bounds>,
}

/// Exchanges messages with a clock with known errors, and compares the estimates with them.
pub(crate) fn run(args: &SyncArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let interrupt = TerminalObserver::new(true)?;
    let place = LocalNetwork::new(&args.place.place(), measurement::SubscriberEnd::From)?;
    let idle_states = IdleStates::new(args.idle_states.allow_idle_states);
    let exchanges =
        place.enter(Carrier::Packets, |_| Ok(()), |sites, ()| exchange(args, sites, &interrupt))?;
    let found = segments(&exchanges.all);
    let found = found.context("no answer arrived\n  help: --exchanges asks for more of them")?;
    let comparison = Comparison::new(&exchanges, &found);
    if args.json {
        let mut document = document(&exchanges, &found, &comparison, &place.name);
        let (key, value) = idle_states.setting();
        document[key] = value.into();
        print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let mut table = table(&exchanges, &found, &comparison, &place.name);
        let (key, value) = idle_states.setting();
        table.add_note(&format!("{key} = {value}"));
        print(&text(&table))?;
    }
    Ok(if interrupt.is_interrupted() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Refuses options without an effect.
fn check(args: &SyncArgs) -> anyhow::Result<()> {
    let place = &args.place;
    ensure!(
        !place.reverse || place.is_emulated(),
        "--reverse needs an emulated network\n  help: add --scenario FILE or --system NAME"
    );
    ensure!(
        place.subscriber == SubscriberEnd::From,
        "--subscriber has no effect with sync\n  help: leave it out; it is an option of protocols \
         with a broker"
    );
    let last = args.every.mul_f64(f64::from(args.exchanges - 1));
    ensure!(
        args.step == 0 || args.step_at < last,
        "--step-at: the last exchange begins after {last}, and the step would be after {}\n  \
         help: choose an earlier time, or more exchanges",
        args.step_at
    );
    Ok(())
}

/// The injected clock compared with its estimates.
struct Comparison {
    rows: Vec<Row>,
    /// Whether the steps are those that were injected; `None` if this is not decidable.
    detected: Option<bool>,
    /// Whether the bounds contain all injected values.
    bounded: bool,
}

impl Comparison {
    fn new(exchanges: &Exchanges, found: &Synchronisation) -> Self {
        let rows = rows(exchanges, found);
        let bounded =
            rows.iter().all(|row| row.bounds.is_some_and(|bounds| bounds.contains(row.injected)));
        Self { rows, detected: is_detected(exchanges, found), bounded }
    }
}

/// All exchanges, and the clock at the remote end.
struct Exchanges {
    all: Vec<Exchange>,
    sent: u32,
    clock: InjectedClock,
}

/// Exchanges messages on schedule, between the local clock at the `from` end and the injected one
/// at the `to` end.
fn exchange(
    args: &SyncArgs,
    sites: &Sites<'_>,
    interrupt: &TerminalObserver,
) -> anyhow::Result<Exchanges> {
    let (near, far) = (open(&sites.from)?, open(&sites.to)?);
    let to = far.local_addr().context("reading an address")?;
    let start = sites.clock.now() + Duration::from_millis(50);
    let injected = InjectedClock {
        offset: args.offset,
        drift: args.drift * 1e-6,
        step: (args.step != 0).then(|| (nanos(start + args.step_at), args.step)),
    };
    let stop = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        scope.spawn(|| answer(&far, sites.clock, injected, &stop));
        let all = request(args, &near, to, sites.clock, start, interrupt);
        stop.store(true, Ordering::Relaxed);
        all
    })?;
    Ok(Exchanges { all, sent: args.exchanges, clock: injected })
}

/// A socket at an end, whose reads end after a millisecond.
fn open(site: &Site<'_>) -> anyhow::Result<UdpSocket> {
    let address = SocketAddr::new(site.address, 0);
    let socket = site.enter(|| UdpSocket::bind(address))?;
    let socket = socket.with_context(|| format!("opening a UDP socket at {address}"))?;
    socket.set_read_timeout(Some(time::Duration::from_millis(1))).context("setting a timeout")?;
    Ok(socket)
}

/// Answers requests with the times of the injected clock.
fn answer(socket: &UdpSocket, clock: Clock, injected: InjectedClock, stop: &AtomicBool) {
    request_realtime_priority();
    let mut message = [0; ANSWER];
    while !stop.load(Ordering::Relaxed) {
        let Ok((REQUEST, sender)) = socket.recv_from(&mut message) else { continue };
        let received = injected.read(nanos(clock.now()));
        message[REQUEST..24].copy_from_slice(&received.to_be_bytes());
        let sent = injected.read(nanos(clock.now()));
        message[24..].copy_from_slice(&sent.to_be_bytes());
        // An answer that cannot be sent is lost, as on the network.
        let _ = socket.send_to(&message, sender);
    }
}

/// Sends requests on schedule and collects the answers, in the order of the requests.
fn request(
    args: &SyncArgs,
    socket: &UdpSocket,
    to: SocketAddr,
    clock: Clock,
    start: Instant,
    interrupt: &TerminalObserver,
) -> anyhow::Result<Vec<Exchange>> {
    request_realtime_priority();
    let mut answers: Vec<Option<Exchange>> = vec![None; args.exchanges as usize];
    let mut budget = SleepBudget::default();
    for number in 0..args.exchanges {
        let due = start + args.every.mul_f64(f64::from(number));
        // Answers are read until shortly before the next request.
        while clock.now() + Duration::from_millis(2) < due && !interrupt.is_interrupted() {
            read_answer(socket, clock, &mut answers)?;
        }
        sleep_until(due, clock, &mut budget, || interrupt.is_interrupted());
        if interrupt.is_interrupted() {
            break;
        }
        let mut message = [0; REQUEST];
        message[..8].copy_from_slice(&u64::from(number).to_be_bytes());
        message[8..].copy_from_slice(&nanos(clock.now()).to_be_bytes());
        socket.send_to(&message, to).with_context(|| format!("sending a datagram to {to}"))?;
    }
    let end = clock.now() + LAST_ANSWER;
    while clock.now() < end
        && !interrupt.is_interrupted()
        && answers.last().is_some_and(Option::is_none)
    {
        read_answer(socket, clock, &mut answers)?;
    }
    Ok(answers.into_iter().flatten().collect())
}

fn read_answer(
    socket: &UdpSocket,
    clock: Clock,
    answers: &mut [Option<Exchange>],
) -> anyhow::Result<()> {
    let mut message = [0; ANSWER];
    match socket.recv(&mut message) {
        Ok(ANSWER) => {
            let received = nanos(clock.now());
            let (words, _) = message.as_chunks::<8>();
            let [number, sent, remote_received, remote_sent] =
                [0, 1, 2, 3].map(|at| i64::from_be_bytes(words[at]));
            let exchange = Exchange { sent, remote_received, remote_sent, received };
            let place = usize::try_from(number).ok().and_then(|number| answers.get_mut(number));
            // The first of several copies has the least delay.
            place.into_iter().for_each(|place| *place = place.or(Some(exchange)));
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if has_nothing_arrived(&error) => Ok(()),
        Err(error) => Err(error).context("receiving a datagram"),
    }
}

fn nanos(at: Instant) -> i64 {
    at.as_nanos() as i64
}

/// Offset and drift at the end, and the step.
fn rows(exchanges: &Exchanges, found: &Synchronisation) -> Vec<Row> {
    let clock = &exchanges.clock;
    let Some((last, end)) = found.segments.last().zip(exchanges.all.last()) else {
        return Vec::new();
    };
    let at = end.remote_received;
    // The true time at which the remote clock reads `at`, after its step.
    let (_, size) = clock.step.filter(|(from, _)| end.sent >= *from).unwrap_or_default();
    let time = ((at - clock.offset - size) as f64 / (1.0 + clock.drift)) as i64;
    let mut rows = vec![
        Row {
            name: "offset at the end".into(),
            unit: "ms",
            injected: clock.error(time) as f64,
            estimate: Some(last.line.offset(at)),
            bounds: last.line.offset_bounds(at),
        },
        Row {
            name: "drift".into(),
            unit: "ppm",
            injected: clock.drift / (1.0 + clock.drift),
            estimate: last.line.drift(),
            bounds: last.line.drift_bounds(),
        },
    ];
    if let [before, after] = &found.segments[..] {
        let at = exchanges.all[after.exchanges.start].remote_received;
        let bounds = before.line.offset_bounds(at).zip(after.line.offset_bounds(at));
        rows.push(Row {
            name: "step".into(),
            unit: "ms",
            injected: size as f64,
            estimate: Some(after.line.offset(at) - before.line.offset(at)),
            bounds: bounds.map(|(before, after)| Bounds {
                min: after.min - before.max,
                max: after.max - before.min,
            }),
        });
    }
    rows
}

/// Whether the exchanges show as many steps as were injected; `None` if the step is smaller than
/// what they can show.
fn is_detected(exchanges: &Exchanges, found: &Synchronisation) -> Option<bool> {
    let Some((_, size)) = exchanges.clock.step else { return Some(found.segments.len() == 1) };
    let visible = size.unsigned_abs() as f64 > found.detectable_step;
    visible.then_some(found.segments.len() == 2)
}

/// A value in the unit of its row.
fn scaled(row: &Row, value: f64) -> f64 {
    if row.unit == "ppm" { value * 1e6 } else { value / 1e6 }
}

fn table(
    exchanges: &Exchanges,
    found: &Synchronisation,
    comparison: &Comparison,
    place: &str,
) -> TextTable {
    let Comparison { rows, detected, bounded } = comparison;
    let cells = rows.iter().map(|row| {
        let shown = |value: Option<f64>| {
            let known = value.filter(|value| value.is_finite());
            known.map_or_else(|| UNKNOWN.into(), |value| format!("{:.3}", scaled(row, value)))
        };
        vec![
            format!("{} ({})", row.name, row.unit),
            shown(Some(row.injected)),
            shown(row.estimate),
            shown(row.bounds.map(|bounds| bounds.min)),
            shown(row.bounds.map(|bounds| bounds.max)),
        ]
    });
    let steps = match detected {
        Some(true) => "as injected",
        Some(false) => "not as injected",
        None => "not decidable: the injected step is smaller than the variation of the delays",
    };
    let is_drift_known = rows.iter().all(|row| row.estimate.is_some());
    let drift = if is_drift_known {
        ""
    } else {
        "\nthe drift is unknown: more exchanges, or more time between them, would show it"
    };
    let note = format!(
        "{} of {} exchanges, min round-trip time {:.3} ms\nsteps found: {} ({steps}); steps from \
         {:.3} ms are detectable\n\
         the bounds hold for any asymmetry of the path and {} all injected values; the estimate \
         assumes equal min delays{drift}",
        exchanges.all.len(),
        exchanges.sent,
        found.min_round_trip as f64 / 1e6,
        found.segments.len() - 1,
        found.detectable_step / 1e6,
        if *bounded { "contain" } else { "do not contain" },
    );
    TextTable {
        title: format!("Clock at the other end of {place}"),
        headers: ["", "injected", "estimate", "at least", "at most"].map(String::from).to_vec(),
        rows: cells.collect(),
        key_columns: 1,
        note: Some(note),
    }
}

fn document(
    exchanges: &Exchanges,
    found: &Synchronisation,
    comparison: &Comparison,
    place: &str,
) -> Value {
    let Comparison { rows, detected, bounded } = comparison;
    let row = |row: &Row| {
        let base = |value: f64| if row.unit == "ppm" { value } else { value / 1e9 };
        json!({
            "quantity": row.name,
            "unit": if row.unit == "ppm" { "1" } else { "s" },
            "injected": base(row.injected),
            "estimate": row.estimate.map(base),
            "at_least": row.bounds.map(|bounds| base(bounds.min)),
            "at_most": row.bounds.map(|bounds| base(bounds.max)),
        })
    };
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": "sync",
        "network": place,
        "exchanges": exchanges.all.len(),
        "sent": exchanges.sent,
        "least_round_trip_s": found.min_round_trip as f64 / 1e9,
        "detectable_step_s": found.detectable_step / 1e9,
        "steps_found": found.segments.len() - 1,
        "detected": detected,
        "bounded": bounded,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
