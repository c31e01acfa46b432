//! Repetitions of all measurements. A repetition that the machine has disturbed is kept, not
//! evaluated, and made again: the generator was late, or the broker waited for a processor.

use std::time;

use gridhaul_measure::broker::{Broker, BrokerProgram};
use gridhaul_measure::network::Sites;

use super::extent::Extent;
use super::plan::{Cell, Group, groups};
use super::store::Store;
use crate::args::{MqttBroker, ProtocolName, RunArgs};
use crate::command::cells::{CellResult, at_broker, parse};
use crate::command::place::{Interrupt, Place};
use crate::command::protocols::start;
use crate::command::run::{at_sites, carrier};
use crate::terminal::{message, say};

/// The measurements of the latency on these systems, or on all, in the order of the plan.
pub(super) fn measure(
    (extent, systems): (&Extent, &[String]),
    (store, quiet): (&mut Store, bool),
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Cell>> {
    let mut groups = groups(extent);
    if !systems.is_empty() {
        groups.retain(|group| {
            group.cells.iter().all(|cell| systems.iter().any(|system| *system == cell.key.system))
        });
    }
    for cell in groups.iter_mut().flat_map(|group| &mut group.cells) {
        cell.repetitions = store.of(&cell.command);
    }
    let missing =
        |cell: &Cell| (extent.repetitions as usize).saturating_sub(cell.valid().count()) as u32;
    let cells = || groups.iter().flat_map(|group| &group.cells);
    let (left, all) = (cells().map(missing).sum(), cells().count() as u32 * extent.repetitions);
    let time = cells().map(|cell| extent.repetition(cell.key.rate_per_s) * missing(cell)).sum();
    let mut campaign = Campaign { extent, store, quiet, interrupt, left, all, time };
    for group in &mut groups {
        if interrupt.is_set() {
            break;
        }
        campaign.group(group)?;
    }
    Ok(groups.into_iter().flat_map(|group| group.cells).collect())
}

struct Campaign<'a> {
    extent: &'a Extent,
    store: &'a mut Store,
    quiet: bool,
    interrupt: &'a Interrupt,
    /// Repetitions that are left, of all.
    left: u32,
    all: u32,
    /// Least time of those that are left.
    time: time::Duration,
}

impl Campaign<'_> {
    /// Measures the cells of a group in turn, so that a change of the machine affects all of them.
    fn group(&mut self, group: &mut Group) -> anyhow::Result<()> {
        let runs: Vec<_> =
            group.cells.iter().map(|cell| parse(&cell.command)).collect::<anyhow::Result<_>>()?;
        if group.cells.iter().all(|cell| self.is_complete(cell)) {
            return Ok(());
        }
        let measured = self.at_network(group, &runs);
        if let Err(error) = measured {
            let reason = message(&error);
            for cell in group.cells.iter_mut().filter(|cell| cell.repetitions.is_empty()) {
                cell.error = Some(reason.clone());
            }
            say(format_args!("a group of measurements failed: {reason}"));
        }
        Ok(())
    }

    fn at_network(&mut self, group: &mut Group, runs: &[RunArgs]) -> anyhow::Result<()> {
        let Some(first) = runs.first() else { return Ok(()) };
        let place = Place::of_protocol(&first.common)?;
        let with_broker = runs.iter().find(|run| run.common.protocol.has_broker());
        let prepare = |sites: &Sites<'_>| -> anyhow::Result<Option<Broker>> {
            let start = |run: &RunArgs| {
                program(run).start(&sites.to, run.common.connection.broker_settings())
            };
            Ok(with_broker.map(start).transpose()?)
        };
        place.enter(carrier(first.common.protocol), prepare, |sites, broker| {
            // As many repetitions again, if the machine disturbs some.
            for _ in 0..2 * self.extent.repetitions {
                for (cell, run) in group.cells.iter_mut().zip(runs) {
                    if self.interrupt.is_set() {
                        return Ok(());
                    }
                    if !self.is_complete(cell) && cell.error.is_none() {
                        let outcome = self.repetition(run, (sites, broker.as_ref()), &place);
                        self.keep(cell, outcome)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn repetition(
        &self,
        run: &RunArgs,
        (sites, broker): (&Sites<'_>, Option<&Broker>),
        place: &Place,
    ) -> anyhow::Result<Option<CellResult>> {
        let own = broker.filter(|_| run.common.protocol.has_broker());
        let run = own.map_or_else(|| run.clone(), |broker| at_broker(run, broker));
        let started = start(&run.common, sites)?;
        let stop = (None, self.interrupt.flag());
        let waited = || own.and_then(Broker::waited);
        let before = waited();
        let (mut run, _) = at_sites(&run, (sites, started), place.name.clone(), stop)?;
        let waited = before.zip(waited()).map(|(before, after)| after.saturating_sub(before));
        for (key, value) in &mut run.settings {
            // To the run, the broker is one that another program has started.
            if let ("broker_program", Some(broker)) = (key.as_str(), own) {
                broker.name().clone_into(value);
            }
        }
        let messages = run.plan.schedule.total();
        Ok(CellResult::new(&run).map(|mut result| {
            result.invalid.extend(contention(&result, waited, messages));
            result
        }))
    }

    fn keep(
        &mut self,
        cell: &mut Cell,
        outcome: anyhow::Result<Option<CellResult>>,
    ) -> anyhow::Result<()> {
        if self.interrupt.is_set() {
            return Ok(());
        }
        let is_disturbed = match outcome {
            Ok(Some(result)) => {
                let is_disturbed = !result.invalid.is_empty();
                self.store.push(&cell.command, &result)?;
                cell.repetitions.push(result);
                is_disturbed
            }
            Ok(None) => {
                cell.error = Some("no message arrived".into());
                false
            }
            Err(error) => {
                cell.error = Some(message(&error));
                false
            }
        };
        if !is_disturbed && cell.error.is_none() {
            self.left = self.left.saturating_sub(1);
            let time = self.extent.repetition(cell.key.rate_per_s);
            self.time = self.time.saturating_sub(time);
        }
        if !self.quiet {
            let (number, all) = (self.all - self.left, self.all);
            let note = if is_disturbed { ", disturbed: made again" } else { "" };
            let minutes = self.time.as_secs().div_ceil(60);
            say(format_args!("{number} of {all}, {minutes} min left{note}: {}", cell.command));
        }
        Ok(())
    }

    fn is_complete(&self, cell: &Cell) -> bool {
        cell.valid().count() >= self.extent.repetitions as usize
    }
}

/// Largest time for which the broker may wait for a processor, as a share of the mean latency.
const WAIT_SHARE: f64 = 0.2;

/// Why other programs of this machine have changed the latency through the broker, if they have. The
/// wait of all of its threads for each message is at least what a message has waited there.
fn contention(
    result: &CellResult,
    waited: Option<time::Duration>,
    messages: u64,
) -> Option<String> {
    let each = waited?.as_secs_f64() / messages.max(1) as f64;
    let (each_ms, mean_ms) = (each * 1e3, result.mean_s * 1e3);
    (each > WAIT_SHARE * result.mean_s).then(|| {
        format!(
            "the latency is invalid: the broker waited {each_ms:.3} ms for a processor for each \
             message, more than 20 % of the mean latency of {mean_ms:.3} ms"
        )
    })
}

/// The broker of a run.
const fn program(run: &RunArgs) -> BrokerProgram {
    match (run.common.protocol, run.common.connection.broker_program) {
        (ProtocolName::Mqtt, MqttBroker::Mosquitto) => BrokerProgram::Mosquitto,
        _ => BrokerProgram::RabbitMq,
    }
}
