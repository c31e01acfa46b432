//! Options as a measurement. Each option is read where the measurement has a place for its value:
//! an option that is given and not read has no effect.

/// Reads an option: the identifier of its field is that of the argument.
macro_rules! read {
    ($read:ident, $args:ident.$field:ident) => {{
        $read.add(stringify!($field));
        ToOwned::to_owned(&$args.$field)
    }};
}

mod protocol;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use gridhaul_measure::measurement::{
    AgentPlace, BrokerOutage, Capture, ConstantRate, CrossTrafficSettings, Disturbance,
    EmulatedNetwork, Experiment, GeneratorSettings, LinkOutage, Measurement, MessageSettings,
    NetworkSource, ObservedOutage, OutageExperiment, Place, RateExperiment, Record,
    ScenarioNetwork, ScheduleSettings,
};

use super::{
    Command, FailingPart, IdleStateArgs, OutageArgs, OutputArgs, PathArgs, ProtocolArgs,
    ProtocolName, RateArgs, RemoteArgs, RunArgs,
};
use protocol::protocol;

/// A measurement, and where its result goes.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) measurement: Measurement,
    pub(crate) output: OutputArgs,
    /// File for the measurement, which is then not run.
    pub(crate) save: Option<PathBuf>,
}

/// The options that a measurement has read, by their identifiers.
#[derive(Debug, Default)]
pub(super) struct ReadOptions(RefCell<BTreeSet<&'static str>>);

impl ReadOptions {
    pub(super) fn contains(&self, option: &str) -> bool {
        self.0.borrow().contains(option)
    }

    fn add(&self, option: &'static str) {
        self.0.borrow_mut().insert(option);
    }
}

/// The measurement and the destination of its result; `None` for a command that measures no
/// protocol.
pub(super) fn options(command: &Command, options: &ReadOptions) -> Option<Options> {
    let (measurement, run, common) = match command {
        Command::Latency(args) => {
            (path(args, options, Experiment::Latency), Some(&args.run), &args.run.common)
        }
        Command::Reliability(args) => {
            (path(args, options, Experiment::Reliability), Some(&args.run), &args.run.common)
        }
        Command::Outage(args) => (outage(args, options), Some(&args.run), &args.run.common),
        Command::Rate(args) => (rate(args, options), None, &args.common),
        Command::Agent(_)
        | Command::Corruption(_)
        | Command::Efficiency(_)
        | Command::Matrix(_)
        | Command::Reserve(_)
        | Command::PackageFiles(_)
        | Command::Run(_)
        | Command::Sync(_) => return None,
    };
    let output = OutputArgs {
        out: run.and_then(|run| read!(options, run.out)),
        json: read!(options, common.json),
        quiet: read!(options, common.quiet),
    };
    let save = read!(options, common.save);
    Some(Options { measurement, output, save })
}

fn path(
    args: &PathArgs,
    options: &ReadOptions,
    experiment: fn(ConstantRate) -> Experiment,
) -> Measurement {
    let run = &args.run;
    let remote = &args.remote;
    let has_agent = remote.agent.is_some();
    let echo = has_agent && !read!(options, args.no_echo);
    let runs = ConstantRate {
        repetitions: read!(options, args.repetitions),
        class: read!(options, run.class),
        schedule: schedule(run, options),
        cross_traffic: cross_traffic(run, has_agent, options),
        record: record(run, has_agent, options),
    };
    let place = place(&run.common, remote, echo, options);
    measurement(
        experiment(runs),
        &run.common,
        run.idle_states,
        place,
        busy_poll(run, has_agent, options),
        options,
    )
}

fn outage(args: &OutageArgs, options: &ReadOptions) -> Measurement {
    let run = &args.run;
    let has_agent = args.remote.agent.is_some();
    let _ = read!(options, args.part);
    let length = read!(options, args.length);
    let disturbance = match args.part() {
        FailingPart::Links => {
            Disturbance::Links(LinkOutage { start: read!(options, args.start), length })
        }
        FailingPart::Broker => {
            Disturbance::Broker(BrokerOutage { start: read!(options, args.start), length })
        }
        FailingPart::Observed => Disturbance::Observed(ObservedOutage { length }),
    };
    let experiment = Experiment::Outage(OutageExperiment {
        disturbance,
        schedule: schedule(run, options),
        cross_traffic: cross_traffic(run, has_agent, options),
        record: record(run, has_agent, options),
    });
    let place = place(&run.common, &args.remote, false, options);
    measurement(
        experiment,
        &run.common,
        run.idle_states,
        place,
        busy_poll(run, has_agent, options),
        options,
    )
}

fn rate(args: &RateArgs, options: &ReadOptions) -> Measurement {
    let experiment = Experiment::Rate(RateExperiment {
        first: read!(options, args.rate),
        min: read!(options, args.rate_min),
        max: read!(options, args.rate_max),
        resolution: read!(options, args.resolution),
        loss: read!(options, args.loss),
        trial: read!(options, args.trial),
        confirmations: read!(options, args.confirmations),
    });
    let place = place(&args.common, &args.remote, false, options);
    measurement(experiment, &args.common, args.idle_states, place, false, options)
}

fn measurement(
    experiment: Experiment,
    args: &ProtocolArgs,
    idle_states: IdleStateArgs,
    place: Place,
    busy_poll: bool,
    options: &ReadOptions,
) -> Measurement {
    let has_agent = place.agent().is_some();
    Measurement {
        experiment,
        protocol: protocol(args, busy_poll, has_agent, options),
        place,
        message: MessageSettings {
            bytes: read!(options, args.bytes),
            horizon: read!(options, args.horizon),
        },
        generator: GeneratorSettings {
            processor: read!(options, args.pin),
            idle_states: read!(options, idle_states.allow_idle_states),
        },
    }
}

fn schedule(args: &RunArgs, options: &ReadOptions) -> ScheduleSettings {
    ScheduleSettings {
        rate: read!(options, args.rate),
        messages: read!(options, args.messages),
        warm_up: read!(options, args.warm_up),
    }
}

fn cross_traffic(args: &RunArgs, has_agent: bool, options: &ReadOptions) -> CrossTrafficSettings {
    if has_agent {
        return CrossTrafficSettings::default();
    }
    let traffic = &args.cross_traffic;
    CrossTrafficSettings {
        forward: read!(options, traffic.cross_traffic),
        reverse: read!(options, traffic.cross_traffic_reverse),
        packet_bytes: read!(options, traffic.cross_traffic_bytes),
    }
}

fn record(args: &RunArgs, has_agent: bool, options: &ReadOptions) -> Record {
    let floor = !read!(options, args.no_floor);
    if has_agent {
        return Record { floor, ..Record::default() };
    }
    let (capture, predict) = (read!(options, args.capture), read!(options, args.predict));
    Record {
        floor,
        network_share: read!(options, args.network_share),
        capture: match (capture, predict) {
            (_, true) => Capture::Prediction,
            (true, false) => Capture::Packets,
            (false, false) => Capture::None,
        },
        kernel_times: read!(options, args.kernel_times),
    }
}

fn busy_poll(args: &RunArgs, has_agent: bool, options: &ReadOptions) -> bool {
    let is_possible = args.common.protocol == ProtocolName::Udp && !has_agent;
    is_possible && read!(options, args.busy_poll)
}

fn place(args: &ProtocolArgs, remote: &RemoteArgs, echo: bool, options: &ReadOptions) -> Place {
    let _ = (read!(options, args.protocol), read!(options, remote.agent));
    if let (Some(address), Some(fingerprint)) = (remote.agent, read!(options, remote.fingerprint)) {
        let has_frames = matches!(args.protocol, ProtocolName::Sv | ProtocolName::Goose);
        return Place::Agent(AgentPlace {
            address,
            fingerprint,
            token_file: read!(options, remote.token_file),
            agent_address: read!(options, remote.agent_address),
            interface: if has_frames { read!(options, remote.interface) } else { None },
            echo,
        });
    }
    let (connection, network) = (&args.connection, &args.place);
    let source = match (read!(options, network.scenario), read!(options, network.system)) {
        (Some(file), _) => {
            let flow = read!(options, network.flow);
            NetworkSource::Scenario(ScenarioNetwork { file, flow })
        }
        (None, Some(name)) => NetworkSource::System(name),
        (None, None) => return Place::ThisMachine,
    };
    // Without an emulated network both ends are at the same place. Commands of papers state the end
    // of the subscriber for protocols without a broker as well.
    let _ = read!(options, network.subscriber);
    let mut network = EmulatedNetwork {
        network: source,
        reverse: read!(options, network.reverse),
        congestion_control: None,
        receive_window: None,
    };
    if args.protocol.is_stream() {
        network.congestion_control = read!(options, connection.congestion_control);
        network.receive_window = read!(options, connection.receive_window);
    }
    Place::Emulated(network)
}
