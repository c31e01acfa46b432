//! Runs on two machines.

use std::sync::atomic::AtomicBool;

use anyhow::{bail, ensure};
use gridhaul_linux::Clock;
use gridhaul_protocols::control_channel::{BrokerChoice, ReceiverProtocol, ReceiverSpec, Started};
use gridhaul_protocols::settings::{BrokerProtocol, ClientSettings, ReconnectPolicy};
use gridhaul_scenario::units::Duration;

use super::idle_states::IdleStates;
use super::local::floor;
use super::observer::Observer;
use super::request::RunRequest;
use super::result::{Remote, Run, Subject};
use crate::agent::{
    AgentAddress, Controller, Ends, ListeningPublisher, RemoteLogs, RemoteOutcome, SILENCE, Token,
    connect_ends, measure_with_agent, random_run,
};
use crate::clock::Unsupported;
use crate::log::MessageLog;
use crate::measurement::{AgentPlace, Measurement, RequestedBroker};
use crate::method::{Message, TimeProfile};
use crate::protocol::{Selection, given_address};
use crate::settings::Settings;
use crate::transfer::Plan;

/// The rows of a run as they are written.
struct Logs {
    messages: Option<MessageLog>,
    round_trips: Option<MessageLog>,
}

/// A connection to an agent, for one run or several.
pub(crate) struct AgentConnection<'a> {
    measurement: &'a Measurement,
    place: &'a AgentPlace,
    /// Whether messages are to come back, where the protocol permits.
    is_returned: bool,
    controller: Controller,
    clock: Clock,
    spec: ReceiverSpec,
}

impl<'a> AgentConnection<'a> {
    /// Connects to the agent. After the time of `silence` without an answer, the agent is gone.
    ///
    /// # Errors
    /// Invalid input, or an agent that cannot be used.
    pub(crate) fn open(
        measurement: &'a Measurement,
        place: &'a AgentPlace,
        is_returned: bool,
        silence: Duration,
    ) -> anyhow::Result<Self> {
        let spec = spec(measurement, place, is_returned, silence)?;
        let AgentPlace { address, fingerprint, .. } = *place;
        let token = Token::read(place.token_file.as_deref())?;
        let controller = Controller::connect(&AgentAddress { address, fingerprint, token })?;
        let clock = Clock::starts_in(Duration::ZERO);
        Ok(Self { measurement, place, is_returned, controller, clock, spec })
    }

    /// Starts the receiver of the run of this number, and connects the ends of this machine.
    /// Returns every setting that influences the result as well.
    ///
    /// # Errors
    /// The agent cannot start the receiver, or an end cannot be connected.
    pub(crate) fn connect(&mut self, run: u32) -> anyhow::Result<(Ends, Settings)> {
        self.spec.run = run;
        if let ReceiverProtocol::Broker { clients, .. } = &mut self.spec.protocol {
            // Late messages of a run have another topic than those of the next one.
            clients.name = format!("gridhaul-{run}");
        }
        let AgentPlace { address, agent_address, interface, .. } = self.place;
        let on_path = agent_address.unwrap_or_else(|| address.ip());
        let listening =
            ListeningPublisher::open(&mut self.spec, on_path, interface.as_deref(), self.clock)?;
        let started = self.controller.start(&self.spec)?;
        let policy = reconnect(self.measurement);
        let ends =
            connect_ends(&self.spec, &started, listening, self.clock, self.is_returned, policy)?;
        let mut settings = settings(self.measurement, self.place, &started, &ends);
        settings.extend(interface.iter().map(|device| ("interface", device.clone())));
        Ok((ends, settings))
    }

    /// Sends the messages of a plan between these ends.
    pub(crate) fn measure(
        &mut self,
        plan: &Plan,
        ends: Ends,
        logs: RemoteLogs<'_>,
        observe: &dyn Fn(u64),
        stop: &AtomicBool,
    ) -> RemoteOutcome {
        measure_with_agent(plan, &mut self.controller, ends, self.clock, logs, observe, stop)
    }

    /// The network in tables.
    pub(crate) fn network(&self) -> String {
        format!("to the agent at {}", self.place.address)
    }

    /// Ends the session, so that the agent is free for others.
    pub(crate) fn end(self) {
        self.controller.end();
    }
}

/// Runs a measurement with an agent.
///
/// # Errors
/// Invalid input, or an agent that cannot be used.
pub(super) fn execute(
    request: &RunRequest<'_>,
    place: &AgentPlace,
    observer: &dyn Observer,
) -> anyhow::Result<Run> {
    let measurement = request.measurement;
    let plan = Plan { run: random_run()?, ..request.plan() };
    // The control channel may be interrupted too, and its TCP waits at most as long again after an
    // outage.
    let outage = request.disturbance.map_or(Duration::ZERO, |disturbance| disturbance.length());
    let is_returned = place.echo && request.disturbance.is_none();
    let silence = SILENCE + outage * 3;
    let mut agent = AgentConnection::open(measurement, place, is_returned, silence)?;
    let stop = observer.stop();
    let floor = request.record.floor.then(|| floor(stop)).transpose()?;
    let (ends, mut settings) = agent.connect(plan.run)?;
    let is_returned = ends.sending.returns.is_some();
    let idle_states = IdleStates::new(measurement.generator.idle_states);
    settings.extend([idle_states.setting()]);
    let protocol = ends.protocol;
    let mut logs = Logs {
        messages: request.open_log("messages", protocol, &settings)?,
        round_trips: if is_returned {
            request.open_log("round_trips", protocol, &settings)?
        } else {
            None
        },
    };
    let mut profiles = Profiles {
        one_way: TimeProfile::new(&plan.schedule),
        round_trip: TimeProfile::new(&plan.schedule),
    };
    observer.on_start(plan.schedule.total());
    let mut measured = {
        let Profiles { one_way, round_trip } = &mut profiles;
        let mut push_one_way = |message: &Message| {
            one_way.add(message);
            logs.messages.as_mut().map_or(Ok(()), |log| log.push(message))
        };
        let mut push_round_trip = |message: &Message| {
            round_trip.add(message);
            logs.round_trips.as_mut().map_or(Ok(()), |log| log.push(message))
        };
        let logs = RemoteLogs { one_way: &mut push_one_way, round_trip: &mut push_round_trip };
        agent.measure(&plan, ends, logs, &|sent| observer.on_sent(sent), stop)
    };
    observer.on_end();
    for log in [&mut logs.messages, &mut logs.round_trips].into_iter().flatten() {
        if let Err(error) = log.flush() {
            measured.outcome.fault.get_or_insert(error.to_string());
        }
    }
    let subject = Subject { protocol, settings, network: agent.network() };
    agent.end();
    let mut run = with_remote(subject, plan, measured, profiles);
    run.floor = floor;
    run.interrupted = stop.load(std::sync::atomic::Ordering::Relaxed);
    Ok(run)
}

/// Latency over time of the messages to the agent, and of those that came back.
struct Profiles {
    one_way: TimeProfile,
    round_trip: TimeProfile,
}

/// The result, whose one-way latencies are reported if the clock error supports them.
fn with_remote(subject: Subject, plan: Plan, measured: RemoteOutcome, profiles: Profiles) -> Run {
    let RemoteOutcome { outcome, bounds, round_trip, clock } = measured;
    let median = outcome.summary.from_send.quantile(0.5).map(|quantile| quantile.value);
    let one_way =
        clock.as_ref().map_or(Err(Unsupported::NoTimes), |clock| clock.supports_one_way(median));
    let profile = if one_way.is_ok() || round_trip.is_none() {
        profiles.one_way
    } else {
        profiles.round_trip
    };
    let remote = Some(Remote { bounds, round_trip, clock, one_way });
    Run { remote, ..Run::new(subject, plan, outcome, profile) }
}

/// The receiver that a measurement requests; the number of its run is not known yet.
fn spec(
    measurement: &Measurement,
    place: &AgentPlace,
    is_returned: bool,
    silence: Duration,
) -> anyhow::Result<ReceiverSpec> {
    let protocol = match Selection::new(measurement) {
        Selection::Null => bail!(
            "--agent: null is not available on two machines\n  help: choose a protocol over UDP, \
             TCP or Ethernet"
        ),
        Selection::Frames(stream) => {
            ensure!(
                place.interface.is_some(),
                "--agent: frames need a network interface\n  help: add --interface DEVICE here, \
                 and start the agent with --interface \
                 DEVICE as well"
            );
            ReceiverProtocol::Frames(stream)
        }
        Selection::Udp => ReceiverProtocol::Udp { echo: is_returned },
        Selection::Modbus(modbus) => ReceiverProtocol::Modbus(modbus),
        Selection::Direct(settings) => ReceiverProtocol::Direct { settings, publisher: None },
        Selection::Broker(clients) => {
            let broker = match measurement.protocol.requested_broker() {
                Some(RequestedBroker::Given(broker)) => BrokerChoice::Given(given_address(broker)?),
                Some(RequestedBroker::Started(_, settings)) => BrokerChoice::Started(settings),
                None => bail!("the protocol has no broker"),
            };
            ReceiverProtocol::Broker { clients: with_echo(clients, is_returned), broker }
        }
    };
    let spec = ReceiverSpec { run: 0, address: place.agent_address, protocol, silence };
    spec.check().map_err(anyhow::Error::msg)?;
    Ok(spec)
}

/// Behaviour of this machine without a connection.
fn reconnect(measurement: &Measurement) -> ReconnectPolicy {
    let connection = measurement.protocol.broker_connection();
    connection.map_or_else(ReconnectPolicy::default, |connection| {
        connection.reconnect.policy(connection.queue)
    })
}

/// The clients, of which two receive every message if messages are to come back.
fn with_echo(mut clients: ClientSettings, is_returned: bool) -> ClientSettings {
    // The publisher and the subscriber are on different machines.
    clients.one_connection = false;
    if let BrokerProtocol::Amqp091(amqp) = &mut clients.protocol {
        amqp.fan_out = is_returned;
    }
    clients
}

/// Every setting that influences the result.
fn settings(
    measurement: &Measurement,
    place: &AgentPlace,
    started: &Started,
    ends: &Ends,
) -> Settings {
    let mut settings = ends.settings.clone();
    if let Some(connection) = measurement.protocol.broker_connection() {
        let nodelay = connection.nodelay.at_broker().to_string();
        let (program, nodelay) = match &started.broker {
            Some(broker) => (broker.program.clone(), nodelay),
            // The setting of a broker that another program has started is unknown.
            None => ("given".into(), "unknown".into()),
        };
        settings.push("broker_program", program);
        settings.push("broker_nodelay", nodelay);
    }
    let processor = measurement.generator.processor;
    settings.extend(processor.map(|number| ("generator_processor", number.to_string())));
    settings.push("agent", place.address.to_string());
    settings.push("receiver", started.address.to_string());
    settings.push("echo", ends.sending.returns.is_some().to_string());
    // Times in the log that the agent has read are converted to the clock of this machine.
    settings.push("received_ns", "estimate");
    settings
}
