//! Inconsistent values of experiments.

use gridhaul_scenario::units::Duration;

use super::Findings;
use crate::measurement::{
    Capture, CrossTrafficSettings, Disturbance, Experiment, Measurement, Place, ProtocolUnderTest,
    RateExperiment, Record, ScheduleSettings, limits,
};
use crate::verdict::ApplicationClass;

/// Remedy for a value that needs an emulated network.
const ADD_NETWORK: &str = "add an emulated network: --scenario FILE or --system NAME, or the \
    table [place.emulated] of a file";

/// Longest outage with an agent: its session waits for three times as long.
const AGENT_OUTAGE_MAX: Duration = Duration::from_secs(900);

pub(super) fn check(measurement: &Measurement, found: &mut Findings) {
    match &measurement.experiment {
        Experiment::Latency(run) | Experiment::Reliability(run) => {
            let key = format!("experiment.{}", measurement.experiment.name());
            let repetitions = 1..=limits::REPETITIONS_MAX;
            found.within(format!("{key}.repetitions"), run.repetitions, &repetitions);
            if let Some(name) = &run.class
                && ApplicationClass::named(name).is_none()
            {
                let names: Vec<_> =
                    ApplicationClass::all().into_iter().map(|class| class.name).collect();
                found.add(
                    format!("{key}.class"),
                    format!("there is no application class \"{name}\""),
                    format!("choose from: {}", names.join("; ")),
                );
            }
            check_schedule(&key, &run.schedule, found);
            check_cross_traffic(measurement, &key, &run.cross_traffic, found);
            check_record(measurement, &key, &run.record, found);
        }
        Experiment::Outage(run) => {
            let key = "experiment.outage";
            check_schedule(key, &run.schedule, found);
            check_cross_traffic(measurement, key, &run.cross_traffic, found);
            check_record(measurement, key, &run.record, found);
            check_disturbance(measurement, &run.disturbance, found);
        }
        Experiment::Rate(search) => check_search(search, found),
    }
}

fn check_schedule(key: &str, schedule: &ScheduleSettings, found: &mut Findings) {
    found.range(format!("{key}.schedule.rate"), limits::rate(schedule.rate));
    let messages = 1..=limits::MESSAGES_MAX;
    found.within(format!("{key}.schedule.messages"), schedule.messages, &messages);
    if let Some(warm_up) = schedule.warm_up {
        found.within(format!("{key}.schedule.warm_up"), warm_up, &(0..=limits::MESSAGES_MAX));
    }
}

fn check_cross_traffic(
    measurement: &Measurement,
    key: &str,
    traffic: &CrossTrafficSettings,
    found: &mut Findings,
) {
    for (name, rate) in [("forward", traffic.forward), ("reverse", traffic.reverse)] {
        let Some(rate) = rate else { continue };
        found.range(format!("{key}.cross_traffic.{name}"), limits::bit_rate(rate));
    }
    let [min, max] = limits::CROSS_TRAFFIC_BYTES;
    found.within(format!("{key}.cross_traffic.packet_bytes"), traffic.packet_bytes, &(min..=max));
    if !traffic.is_empty() && measurement.place.emulated().is_none() {
        let key = format!("{key}.cross_traffic");
        found.add(key, "cross traffic needs an emulated network", ADD_NETWORK);
    }
}

fn check_record(measurement: &Measurement, key: &str, record: &Record, found: &mut Findings) {
    let protocol = &measurement.protocol;
    if record.kernel_times
        && !matches!(protocol, ProtocolUnderTest::Udp(_))
        && !protocol.has_frames()
    {
        found.add(
            format!("{key}.record.kernel_times"),
            "the kernel records receive times of datagrams and frames only",
            "choose udp, sv or goose; captured packets show when those of the other protocols \
             arrive",
        );
    }
    if record.capture == Capture::Prediction {
        let key = format!("{key}.record.capture");
        if measurement.place.emulated().is_none() {
            // The simulator does not know the delays of the loopback device.
            found.add(key, "a prediction needs a network that is known", ADD_NETWORK);
        } else if !protocol.can_be_simulated() {
            found.add(
                key,
                "messages of this protocol cannot be simulated",
                "choose udp, mqtt, mqtt5, amqp-0-9-1, zeromq, zeromq-pub-sub, nanomsg or c37.118",
            );
        } else if protocol.is_encrypted() {
            found.add(
                key,
                "encrypted messages cannot be simulated, and captures do not recognise them",
                "choose a broker without TLS, or leave the prediction out",
            );
        } else if let Experiment::Outage(run) = &measurement.experiment
            && !matches!(run.disturbance, Disturbance::Links(_))
        {
            let message =
                format!("an outage of kind `{}` is not simulated", run.disturbance.name());
            found.add(key, message, "choose an outage of the links, or leave the prediction out");
        }
    }
}

fn check_disturbance(measurement: &Measurement, disturbance: &Disturbance, found: &mut Findings) {
    let key = format!("experiment.outage.disturbance.{}", disturbance.name());
    if let Place::Agent(_) = measurement.place {
        if !disturbance.is_observed() {
            found.add(
                key,
                "with an agent, this program interrupts nothing",
                "choose `observed`, and interrupt the network yourself",
            );
        } else if disturbance.length() > AGENT_OUTAGE_MAX {
            let message = format!("expected at most {AGENT_OUTAGE_MAX} with an agent");
            found.add(format!("{key}.length"), message, "");
        }
        return;
    }
    match disturbance {
        Disturbance::Links(_) if measurement.place.emulated().is_none() => {
            found.add(key, "an outage of the links needs an emulated network", ADD_NETWORK);
        }
        Disturbance::Broker(_) => {
            let protocol = &measurement.protocol;
            if !protocol.has_broker() || protocol.given_broker().is_some() {
                found.add(
                    key,
                    "this program kills only a broker that it has started",
                    "choose mqtt, mqtt5, amqp-0-9-1, amqp-1.0 or xmpp, without a running broker",
                );
            }
        }
        Disturbance::Links(_) | Disturbance::Observed(_) => {}
    }
}

fn check_search(search: &RateExperiment, found: &mut Findings) {
    let key = |name: &str| format!("experiment.rate.{name}");
    for (name, rate) in [("first", search.first), ("min", search.min), ("max", search.max)] {
        found.range(key(name), limits::rate(rate));
    }
    if !(search.min <= search.first && search.first <= search.max) {
        let RateExperiment { min, first, max, .. } = search;
        let message =
            format!("expected lowest ≤ first ≤ highest rate, found {min} ≤ {first} ≤ {max}");
        found.add(key("first"), message, "");
    }
    found.range(key("resolution"), limits::resolution(search.resolution));
    found.range(key("loss"), limits::share(search.loss));
    found.range(key("trial"), limits::positive(search.trial));
}

impl Experiment {
    /// Name in files, of its command, and in results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Latency(_) => "latency",
            Self::Reliability(_) => "reliability",
            Self::Outage(_) => "outage",
            Self::Rate(_) => "rate",
        }
    }

    /// Application class that decides about the exit code.
    #[must_use]
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Latency(run) | Self::Reliability(run) => run.class.as_deref(),
            Self::Outage(_) | Self::Rate(_) => None,
        }
    }

    /// Number of runs.
    pub(crate) const fn repetitions(&self) -> u32 {
        match self {
            Self::Latency(run) | Self::Reliability(run) => run.repetitions,
            Self::Outage(_) | Self::Rate(_) => 1,
        }
    }

    /// Additional quantities; a search of a rate has none.
    pub(super) const fn record(&self) -> Option<&Record> {
        match self {
            Self::Latency(run) | Self::Reliability(run) => Some(&run.record),
            Self::Outage(run) => Some(&run.record),
            Self::Rate(_) => None,
        }
    }
}
