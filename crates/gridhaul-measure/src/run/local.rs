//! Runs on this machine, over an emulated network or the loopback device.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gridhaul_protocols::capture::Route;
use gridhaul_protocols::settings::{DirectKind, FrameContent, FrameStream};
use gridhaul_scenario::units::{Duration, Instant};

use super::idle_states::IdleStates;
use super::observer::Observer;
use super::outage::BrokerFailure;
use super::request::{RunRequest, run_number};
use super::result::{Run, Subject};
use crate::log::MessageLog;
use crate::measurement::{Capture, Disturbance, Measurement, ProtocolUnderTest, SubscriberEnd};
use crate::method::{Distribution, Message, Schedule, TimeProfile};
use crate::place::LocalNetwork;
use crate::place::{Carrier, Sites};
use crate::prediction::{PathLatencies, Prediction};
use crate::protocol::{
    BrokerInUse, CrossTraffic, Null, Protocol, Started, Udp, UdpEcho, frame_stream, frames,
    settings,
};
use crate::results_folder::write;
use crate::transfer::{Outcome, Plan, measure};

/// Rate and number of the messages that measure the floor, in about a second with the warm-up.
const FLOOR: (f64, u64) = (1_000.0, 200);

/// Runs a measurement on this machine.
///
/// # Errors
/// A missing feature of the machine, or a protocol that cannot connect.
pub(super) fn execute(request: &RunRequest<'_>, observer: &dyn Observer) -> anyhow::Result<Run> {
    let RunRequest { measurement, record, .. } = *request;
    let mut network = LocalNetwork::of_measurement(measurement)?;
    if let (Some(flow), Some(Disturbance::Links(outage))) = (&mut network.flow, request.disturbance)
    {
        outage.add_to(&mut flow.scenario);
    }
    // The floor and the network alone are measured with the same idle states.
    let _idle_states = IdleStates::new(measurement.generator.idle_states);
    let stop = observer.stop();
    let is_stopped = || stop.load(Ordering::Relaxed);
    let floor = record.floor.then(|| floor(stop)).transpose()?;
    let prepare = |sites: &Sites<'_>| Started::start(measurement, sites);
    let work = |sites: &Sites<'_>, started: Started<'static>| {
        let sites = if record.kernel_times { sites.with_kernel_times() } else { *sites };
        let polls = measurement.protocol.busy_poll();
        let sites = &if polls { sites.with_busy_poll() } else { sites };
        let (mut run, measured) = at_sites(request, sites, started, &network.name, observer)?;
        if record.network_share && !is_stopped() {
            let alone = network_alone(request, sites, stop)?;
            if let Some(fault) = alone.fault.filter(|_| !is_stopped()) {
                run.outcome.fault.get_or_insert(format!("measuring the network alone: {fault}"));
            }
            run.network_alone = Some(alone.summary);
        }
        Ok((run, measured))
    };
    let (mut run, measured) = network.enter(carrier(&measurement.protocol), prepare, work)?;
    if record.capture == Capture::Prediction && !is_stopped() {
        let (loads, plan, outcome) = (request.cross_traffic, &run.plan, &run.outcome);
        match Prediction::new(measurement, &network, loads, plan, outcome, measured) {
            Ok(prediction) => run.prediction = Some(prediction),
            // What was measured remains.
            Err(error) => {
                run.outcome.fault.get_or_insert(format!("{error:#}"));
            }
        }
    }
    run.floor = floor;
    run.outages = network.outages(run.outcome.start);
    let since_start = |at: Instant| at.as_secs_f64() - run.outcome.start.as_secs_f64();
    run.outages.extend(run.broker_outage.map(|outage| outage.map(since_start)));
    run.interrupted = is_stopped();
    Ok(run)
}

/// Packets that the links must carry for a protocol.
pub(crate) const fn carrier(protocol: &ProtocolUnderTest) -> Carrier {
    if protocol.has_frames() { Carrier::Frames } else { Carrier::Packets }
}

/// Measures a protocol between these ends of a network. The broker, if it is that of the run, fails
/// if that is requested.
///
/// # Errors
/// As [`execute`].
pub(crate) fn at_sites(
    request: &RunRequest<'_>,
    sites: &Sites<'_>,
    mut started: Started<'_>,
    network: &str,
    observer: &dyn Observer,
) -> anyhow::Result<(Run, PathLatencies)> {
    let measurement = request.measurement;
    let is_captured = request.record.capture != Capture::None;
    let capture = is_captured.then(|| route(measurement, &started.broker));
    let plan = Plan { capture, ..request.plan() };
    let idle_states = IdleStates::new(measurement.generator.idle_states);
    let mut settings = settings(measurement, &started, sites)?;
    settings.extend([idle_states.setting()]);
    if measurement.protocol.busy_poll() {
        settings.push("busy_poll", "true");
    }
    let protocol = &*started.protocol;
    let mut log = request.open_log("messages", protocol.name(), &settings)?;
    let mut profile = TimeProfile::new(&plan.schedule);
    let mut path = PathLatencies::default();
    let mut push = |message: &Message| {
        profile.add(message);
        path.add(message);
        log.as_mut().map_or(Ok(()), |log| log.push(message))
    };
    observer.on_start(plan.schedule.total());
    let scheduled = AtomicU64::new(0);
    let observe = |sent| {
        observer.on_sent(sent);
        scheduled.store(sent, Ordering::Relaxed);
    };
    let work = || measure(&plan, protocol, sites, &mut push, &observe, observer.stop());
    let run_with_load =
        || CrossTraffic::run_during(&CrossTraffic::requested(request.cross_traffic), sites, work);
    let (measured, broker_outage) = match (request.disturbance, started.broker.own()) {
        (Some(Disturbance::Broker(outage)), Some(broker)) => {
            let failure = BrokerFailure { outage, plan: &plan, sites, scheduled: &scheduled };
            failure.run_during(broker, run_with_load)?
        }
        _ => (run_with_load(), None),
    };
    observer.on_end();
    if let (Some(folder), Some(broker)) = (request.folder, started.broker.own()) {
        write(&folder.join("broker.log"), &broker.log())?;
    }
    let (outcome, cross_traffic) = measured?;
    let mut outcome = outcome?;
    if let Some(Err(error)) = log.as_mut().map(MessageLog::flush) {
        outcome.fault.get_or_insert(error.to_string());
    }
    let network = network.to_owned();
    let subject = Subject { protocol: started.protocol.name(), settings, network };
    let run = Run::new(subject, plan, outcome, profile);
    Ok((Run { cross_traffic, broker_outage, ..run }, path))
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

/// The network alone, with messages of the same size, rate and number, along the same path.
fn network_alone(
    request: &RunRequest<'_>,
    sites: &Sites<'_>,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let tested = &request.measurement.protocol;
    let connection = tested.broker_connection();
    let passes_twice =
        connection.is_some_and(|connection| connection.subscriber == SubscriberEnd::From);
    let protocol: Box<dyn Protocol> = match tested {
        _ if passes_twice => Box::new(UdpEcho),
        ProtocolUnderTest::SampledValues(_) => frame_stream::protocol(&frames(tested)),
        // Events of GOOSE are retransmitted: Sampled Values with the same tag show the network.
        ProtocolUnderTest::Goose(_) => {
            let content = FrameContent::SampledValues { light_edition: None };
            frame_stream::protocol(&FrameStream { content, ..frames(tested) })
        }
        _ => Box::new(Udp),
    };
    let plan = request.plan();
    // Datagrams of this run differ from the messages before.
    let plan = Plan { run: !plan.run, capture: None, ..plan };
    let work = || measure(&plan, &*protocol, sites, &mut |_| Ok(()), &|_| {}, stop);
    let (outcome, _) =
        CrossTraffic::run_during(&CrossTraffic::requested(request.cross_traffic), sites, work)?;
    Ok(outcome?)
}

/// The route of the messages in captured packets.
fn route(measurement: &Measurement, broker: &BrokerInUse<'_>) -> Route {
    match (&measurement.protocol, broker.address()) {
        (_, Some(broker)) => Route::Broker(broker.address),
        (ProtocolUnderTest::Iec104(settings), _) => {
            Route::Decoded(DirectKind::Iec104(settings.window()))
        }
        (ProtocolUnderTest::Dnp3(settings), _) => {
            Route::Decoded(DirectKind::Dnp3 { poll: settings.poll })
        }
        _ => Route::Direct,
    }
}
