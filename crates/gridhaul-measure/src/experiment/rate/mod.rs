//! The highest rate that a protocol sustains.

mod report;
mod trial;

use std::sync::atomic::Ordering;

use gridhaul_emu::Forwarded;
use gridhaul_report::format;

use crate::agent::{RemoteLogs, SILENCE, random_run};
use crate::measurement::{AgentPlace, Measurement, Place, RateExperiment};
use crate::method::{RateRange, RateSearch};
use crate::place::LocalNetwork;
use crate::place::Sites;
use crate::protocol::{Started, settings};
use crate::run::{AgentConnection, IdleStates, Observer, carrier};
use crate::settings::Settings;
use crate::transfer::{Plan, measure as transfer};
use trial::{Sent, Trial, TrialLog, TrialRequest, trial};

pub(super) use report::report;

/// A search that has ended.
#[derive(Debug)]
pub struct Search {
    pub(crate) found: RateSearch,
    pub(crate) trials: Vec<Trial>,
    pub(crate) protocol: &'static str,
    pub(crate) network: String,
    pub(crate) settings: Settings,
    /// Why no further trial was possible.
    pub fault: Option<String>,
}

/// Searches the highest rate, and verifies it.
///
/// # Errors
/// A trial is not possible.
pub(crate) fn measure(
    measurement: &Measurement,
    search: &RateExperiment,
    observer: &dyn Observer,
) -> anyhow::Result<Search> {
    let idle_states = IdleStates::new(measurement.generator.idle_states);
    let mut found = match &measurement.place {
        Place::Agent(place) => with_agent(measurement, search, place, observer)?,
        Place::ThisMachine | Place::Emulated(_) => on_this_machine(measurement, search, observer)?,
    };
    found.settings.extend([idle_states.setting()]);
    Ok(found)
}

/// Searches on this machine or over an emulated network.
fn on_this_machine(
    measurement: &Measurement,
    search: &RateExperiment,
    observer: &dyn Observer,
) -> anyhow::Result<Search> {
    let network = LocalNetwork::of_measurement(measurement)?;
    let prepare = |sites: &Sites<'_>| Started::start(measurement, sites);
    let work = |sites: &Sites<'_>, started: Started<'static>| {
        let polls = measurement.protocol.busy_poll();
        let sites = &if polls { sites.with_busy_poll() } else { *sites };
        let send = |plan: &Plan, log: &mut TrialLog<'_>| {
            let earlier = sites.forwarded();
            let protocol = &*started.protocol;
            let outcome = transfer(plan, protocol, sites, log, &|_| {}, observer.stop())?;
            Ok(Sent { outcome, forwarded: sites.forwarded().since(earlier) })
        };
        let Trials { found, trials, fault } = trials(measurement, search, observer, send)?;
        let settings = settings(measurement, &started, sites)?;
        let (protocol, network) = (started.protocol.name(), network.name.clone());
        Ok(Search { found, trials, protocol, network, settings, fault })
    };
    network.enter(carrier(&measurement.protocol), prepare, work)
}

/// Searches between this machine and an agent. Messages do not come back: they would load the
/// reverse path.
fn with_agent(
    measurement: &Measurement,
    search: &RateExperiment,
    place: &AgentPlace,
    observer: &dyn Observer,
) -> anyhow::Result<Search> {
    let mut agent = AgentConnection::open(measurement, place, false, SILENCE)?;
    // Each trial has ends of its own, which report the same name and settings.
    let (mut protocol, mut settings) = ("", Settings::default());
    let send = |plan: &Plan, log: &mut TrialLog<'_>| {
        // Numbers of runs of this program do not distinguish its messages from those of other
        // machines, which an agent may receive as well.
        let plan = Plan { run: random_run()?, ..*plan };
        let ends;
        (ends, settings) = agent.connect(plan.run)?;
        protocol = ends.protocol;
        let logs = RemoteLogs { one_way: log, round_trip: &mut |_| Ok(()) };
        let measured = agent.measure(&plan, ends, logs, &|_| {}, observer.stop());
        Ok(Sent { outcome: measured.outcome, forwarded: Forwarded::default() })
    };
    let Trials { found, trials, fault } = trials(measurement, search, observer, send)?;
    let network = agent.network();
    agent.end();
    Ok(Search { found, trials, protocol, network, settings, fault })
}

/// Trials of a search.
struct Trials {
    found: RateSearch,
    trials: Vec<Trial>,
    /// Why no further trial was possible.
    fault: Option<String>,
}

/// Makes trials until the search has ended, or has a fault.
fn trials(
    measurement: &Measurement,
    search: &RateExperiment,
    observer: &dyn Observer,
    mut send: impl FnMut(&Plan, &mut TrialLog<'_>) -> anyhow::Result<Sent>,
) -> anyhow::Result<Trials> {
    let mut found = RateSearch::new(RateRange {
        first: search.first,
        min: search.min,
        max: search.max,
        resolution: search.resolution,
        confirmations: search.confirmations,
    });
    let (mut trials, mut fault) = (Vec::new(), None);
    let is_stopped = || observer.stop().load(Ordering::Relaxed);
    while let Some(rate) = found.next_rate().filter(|_| fault.is_none() && !is_stopped()) {
        let number = trials.len() as u32;
        let done;
        (done, fault) = trial(&TrialRequest { measurement, search, rate, number }, &mut send)?;
        let outcome = done.reason.as_deref().unwrap_or("sustained");
        observer.on_note(&format!("{} messages/s: {outcome}", format::number(rate)));
        if let Some(result) = done.result {
            found.handle_trial(rate, result);
        }
        trials.push(done);
    }
    Ok(Trials { found, trials, fault })
}
