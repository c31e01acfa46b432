//! A run on two machines, as the arguments request it.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail, ensure};
use gridhaul_linux::Clock;
use gridhaul_measure::agent::message::{BrokerChoice, ReceiverProtocol, ReceiverSpec, Started};
use gridhaul_measure::agent::{
    AgentAddress, Controller, Ends, ListeningPublisher, RemoteLogs, RemoteOutcome, Token,
    connect_ends, measure_with_agent, random_run,
};
use gridhaul_measure::bench::Plan;
use gridhaul_measure::clock::{ClockQuality, Unsupported};
use gridhaul_measure::log::MessageLog;
use gridhaul_measure::method::{Message, Summary, TimeProfile};
use gridhaul_measure::protocol::{BrokerProtocol, ClientSettings};
use gridhaul_scenario::units::Duration;

use super::idle_states::IdleStates;
use super::place::Interrupt;
use super::protocols::Selection;
use super::run::{Run, floor, open_log, plan, progress};
use crate::args::{ProtocolArgs, RemoteArgs, RunArgs};

/// Results of a run with an agent only.
#[derive(Debug)]
pub(super) struct Remote {
    /// Latencies from the send time to the earliest, and from the schedule to the latest times of arrival.
    pub(super) bounds: Summary,
    /// Messages that came back.
    pub(super) round_trip: Option<Summary>,
    /// Quality of the times of arrival.
    pub(super) clock: Option<ClockQuality>,
    /// Whether one-way latencies are reported.
    pub(super) one_way: Result<(), Unsupported>,
}

/// The rows of a run as they are written.
struct Logs {
    messages: Option<MessageLog>,
    round_trips: Option<MessageLog>,
}

/// An agent as the arguments of a command request it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentRequest<'a> {
    pub(super) remote: &'a RemoteArgs,
    pub(super) address: SocketAddr,
    /// Whether messages are to come back, where the protocol permits.
    pub(super) is_returned: bool,
    /// Time without an answer after which the agent is gone.
    pub(super) silence: Duration,
}

/// A connection to an agent, for one run or several.
pub(super) struct AgentConnection<'a> {
    args: &'a ProtocolArgs,
    request: AgentRequest<'a>,
    controller: Controller,
    clock: Clock,
    spec: ReceiverSpec,
}

impl<'a> AgentConnection<'a> {
    /// Connects to the agent.
    ///
    /// # Errors
    /// Invalid input, or an agent that cannot be used.
    pub(super) fn open(args: &'a ProtocolArgs, request: AgentRequest<'a>) -> anyhow::Result<Self> {
        let spec = spec(args, &request)?;
        let AgentRequest { remote, address, .. } = request;
        let fingerprint = remote.fingerprint.context("--agent needs --fingerprint")?;
        let token = Token::read(remote.token_file.as_deref())?;
        let controller = Controller::connect(&AgentAddress { address, fingerprint, token })?;
        Ok(Self { args, request, controller, clock: Clock::starts_in(Duration::ZERO), spec })
    }

    /// Starts the receiver of the run of this number, and connects the ends of this machine. Returns every setting that influences the
    /// result as well.
    ///
    /// # Errors
    /// The agent cannot start the receiver, or an end cannot be connected.
    pub(super) fn connect(&mut self, run: u32) -> anyhow::Result<(Ends, Vec<(String, String)>)> {
        self.spec.run = run;
        if let ReceiverProtocol::Broker { clients, .. } = &mut self.spec.protocol {
            // Late messages of a run have another topic than those of the next one.
            clients.name = format!("gridhaul-{run}");
        }
        let AgentRequest { remote, address, is_returned, .. } = self.request;
        let on_path = remote.agent_address.unwrap_or_else(|| address.ip());
        let listening = {
            let place = (on_path, remote.interface.as_deref());
            ListeningPublisher::open(&mut self.spec, place, self.clock)?
        };
        let started = self.controller.start(&self.spec)?;
        let policy = (is_returned, self.args.connection.reconnect());
        let ends = connect_ends(&self.spec, (&started, listening), self.clock, policy)?;
        let mut settings = settings(self.args, (address, &started), &ends);
        settings.extend(remote.interface.iter().map(|it| ("interface".to_owned(), it.clone())));
        Ok((ends, settings))
    }

    /// Sends the messages of a plan between these ends.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        ends: Ends,
        logs: RemoteLogs<'_>,
        observe: &dyn Fn(u64),
        stop: &AtomicBool,
    ) -> RemoteOutcome {
        measure_with_agent(plan, (&mut self.controller, ends), self.clock, logs, observe, stop)
    }

    /// The network in tables.
    pub(super) fn network(&self) -> String {
        format!("to the agent at {}", self.request.address)
    }

    /// Ends the session, so that the agent is free for others.
    pub(super) fn end(self) {
        self.controller.end();
    }
}

/// Measures with an agent.
///
/// # Errors
/// Invalid input, or an agent that cannot be used.
pub(super) fn execute(
    args: &RunArgs,
    request: AgentRequest<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<Run> {
    let plan = Plan { run: random_run()?, ..plan(args) };
    let mut agent = AgentConnection::open(&args.common, request)?;
    let floor = if args.no_floor { None } else { Some(floor(interrupt.flag())?) };
    let (ends, mut settings) = agent.connect(plan.run)?;
    let is_returned = ends.sending.returns.is_some();
    let idle_states = IdleStates::new(&args.idle_states);
    settings.push(idle_states.setting());
    let protocol = ends.protocol;
    let mut logs = Logs {
        messages: open_log(args, "messages", protocol, &settings)?,
        round_trips: if is_returned {
            open_log(args, "round_trips", protocol, &settings)?
        } else {
            None
        },
    };
    let mut profiles = [0; 2].map(|_| TimeProfile::new(&plan.schedule));
    let bar = progress(args, plan.schedule.total());
    let mut measured = {
        let [one_way, round_trip] = &mut profiles;
        let mut push_one_way = |message: &Message| {
            one_way.add(message);
            logs.messages.as_mut().map_or(Ok(()), |log| log.push(message))
        };
        let mut push_round_trip = |message: &Message| {
            round_trip.add(message);
            logs.round_trips.as_mut().map_or(Ok(()), |log| log.push(message))
        };
        let logs = RemoteLogs { one_way: &mut push_one_way, round_trip: &mut push_round_trip };
        agent.measure(&plan, ends, logs, &|sent| bar.set_position(sent), interrupt.flag())
    };
    bar.finish_and_clear();
    for log in [&mut logs.messages, &mut logs.round_trips].into_iter().flatten() {
        if let Err(error) = log.flush() {
            measured.outcome.fault.get_or_insert(error.to_string());
        }
    }
    let run = (protocol, settings, agent.network(), plan);
    agent.end();
    let mut run = with_remote(run, measured, profiles);
    run.floor = floor;
    run.interrupted = interrupt.is_set();
    Ok(run)
}

/// The result, whose one-way latencies are reported if the clock error supports them.
fn with_remote(
    (protocol, settings, network, plan): (&'static str, Vec<(String, String)>, String, Plan),
    measured: RemoteOutcome,
    [one_way_profile, round_trip_profile]: [TimeProfile; 2],
) -> Run {
    let RemoteOutcome { outcome, bounds, round_trip, clock } = measured;
    let median = outcome.summary.from_send.quantile(0.5).map(|it| it.value);
    let one_way =
        clock.as_ref().map_or(Err(Unsupported::NoTimes), |clock| clock.supports_one_way(median));
    let is_returned = round_trip.is_some();
    let profile =
        if one_way.is_ok() || !is_returned { one_way_profile } else { round_trip_profile };
    let remote = Some(Remote { bounds, round_trip, clock, one_way });
    Run { remote, ..Run::new((protocol, settings, network), plan, outcome, profile) }
}

/// The receiver that the arguments request; the number of its run is not known yet.
fn spec(args: &ProtocolArgs, request: &AgentRequest<'_>) -> anyhow::Result<ReceiverSpec> {
    let &AgentRequest { remote, is_returned, silence, .. } = request;
    let connection = &args.connection;
    let protocol = match Selection::new(args) {
        Selection::Null => bail!(
            "--agent: null is not available on two machines\n  help: choose a protocol over UDP, TCP or Ethernet"
        ),
        Selection::Frames(stream) => {
            ensure!(
                remote.interface.is_some(),
                "--agent: frames need a network interface\n  help: add --interface DEVICE here, and start the agent with --interface \
                 DEVICE as well"
            );
            ReceiverProtocol::Frames(stream)
        }
        Selection::Udp => ReceiverProtocol::Udp { echo: is_returned },
        Selection::Modbus(modbus) => ReceiverProtocol::Modbus(modbus),
        Selection::Direct(settings) => ReceiverProtocol::Direct { settings, publisher: None },
        Selection::Broker(clients) => {
            let broker = match connection.given_broker()? {
                Some(broker) => BrokerChoice::Given(broker),
                None => BrokerChoice::Started(connection.broker_settings()),
            };
            ReceiverProtocol::Broker { clients: with_echo(clients, is_returned), broker }
        }
    };
    let spec = ReceiverSpec { run: 0, address: remote.agent_address, protocol, silence };
    spec.check().map_err(anyhow::Error::msg)?;
    Ok(spec)
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
    args: &ProtocolArgs,
    (agent, started): (SocketAddr, &Started),
    ends: &Ends,
) -> Vec<(String, String)> {
    let mut settings = ends.settings.clone();
    if args.protocol.has_broker() {
        let nodelay = args.connection.broker_nodelay().to_string();
        let (program, nodelay) = match &started.broker {
            Some(broker) => (broker.program.clone(), nodelay),
            // The setting of a broker that another program has started is unknown.
            None => ("given".into(), "unknown".into()),
        };
        settings.extend([("broker_program", program), ("broker_nodelay", nodelay)]);
    }
    settings.extend(args.pin.map(|number| ("generator_processor", number.to_string())));
    settings.extend([
        ("agent", agent.to_string()),
        ("receiver", started.address.to_string()),
        ("echo", ends.sending.returns.is_some().to_string()),
        // Times in the log that the agent has read are converted to the clock of this machine.
        ("received_ns", "estimate".into()),
    ]);
    settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
