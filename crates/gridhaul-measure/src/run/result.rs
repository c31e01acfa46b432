//! The result of a run at a constant rate.

use gridhaul_scenario::units::Instant;

use crate::clock::{ClockQuality, Unsupported};
use crate::method::{Distribution, Summary, TimeProfile};
use crate::prediction::Prediction;
use crate::protocol::CrossTrafficCounts;
use crate::settings::Settings;
use crate::transfer::{Outcome, Plan};

/// Results of a run with an agent only.
#[derive(Debug)]
pub struct Remote {
    /// Latencies from the send time to the earliest, and from the schedule to the latest times of
    /// arrival.
    pub bounds: Summary,
    /// Messages that came back.
    pub round_trip: Option<Summary>,
    /// Quality of the times of arrival.
    pub clock: Option<ClockQuality>,
    /// Whether one-way latencies are reported.
    pub one_way: Result<(), Unsupported>,
}

/// Protocol and network of a run.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) protocol: &'static str,
    pub(super) settings: Settings,
    pub(super) network: String,
}

/// A run and its settings.
#[derive(Debug)]
pub struct Run {
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Its settings.
    pub settings: Settings,
    /// The network: `this machine`, or the scenario file and the flow.
    pub network: String,
    /// Settings of the messages.
    pub plan: Plan,
    /// Result.
    pub outcome: Outcome,
    /// Latency of the null protocol.
    pub floor: Option<Distribution>,
    /// Summary of the network alone, if requested.
    pub network_alone: Option<Summary>,
    /// The path of the messages in captures and in the simulator, if requested.
    pub prediction: Option<Prediction>,
    /// The background load.
    pub cross_traffic: Vec<CrossTrafficCounts>,
    /// Latency over time.
    pub profile: TimeProfile,
    /// Outages of the links between the ends, in seconds since the start of the schedule.
    pub outages: Vec<[f64; 2]>,
    /// Times on the clock of the network at which the broker was killed, and accepted connections
    /// again.
    pub broker_outage: Option<[Instant; 2]>,
    /// Whether the user ended the run.
    pub interrupted: bool,
    /// Results of a run with an agent only.
    pub remote: Option<Remote>,
}

impl Run {
    /// A run of a protocol with its settings over a network, without the results that only some
    /// runs have.
    pub(super) fn new(
        subject: Subject,
        plan: Plan,
        outcome: Outcome,
        profile: TimeProfile,
    ) -> Self {
        let Subject { protocol, settings, network } = subject;
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
    pub fn unsupported(&self) -> Option<(&Remote, Unsupported)> {
        let remote = self.remote.as_ref()?;
        remote.one_way.err().map(|reason| (remote, reason))
    }

    /// The distributions that the run supports, with their names.
    pub fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
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

    /// The messages for verdicts: with the clock of another machine, those with the bounds of their
    /// latencies.
    pub fn judged(&self) -> &Summary {
        self.remote.as_ref().map_or(&self.outcome.summary, |remote| &remote.bounds)
    }

    /// The messages whose latency is compared with the lateness of the generator.
    pub fn checked(&self) -> &Summary {
        let returned = self
            .unsupported()
            .map(|(remote, _)| remote.round_trip.as_ref().unwrap_or(&remote.bounds));
        returned.unwrap_or(&self.outcome.summary)
    }
}
