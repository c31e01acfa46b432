//! Repetitions of all measurements. A repetition that the machine has disturbed is kept, not
//! evaluated, and made again: the generator was late, or the broker waited for a processor.

use std::sync::atomic::Ordering;
use std::time;

use crate::broker::Broker;
use crate::place::Sites;

use super::extent::Extent;
use super::plan::{Cell, Group, groups};
use super::store::Store;
use crate::experiment::cells::CellResult;
use crate::measurement::{Measurement, RequestedBroker};
use crate::place::LocalNetwork;
use crate::protocol::Started;
use crate::run::{Observer, RunRequest, at_sites, carrier, message};

/// The measurements of the latency on these systems, or on all, in the order of the plan.
pub(super) fn measure(
    extent: &Extent,
    systems: &[String],
    store: &mut Store,
    observer: &dyn Observer,
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
    let mut campaign = Campaign { extent, store, observer, left, all, time };
    for group in &mut groups {
        if campaign.is_stopped() {
            break;
        }
        campaign.group(group)?;
    }
    Ok(groups.into_iter().flat_map(|group| group.cells).collect())
}

/// A network with the broker that its cells share.
struct AtNetwork<'a> {
    sites: &'a Sites<'a>,
    broker: Option<&'a Broker>,
    name: &'a str,
}

struct Campaign<'a> {
    extent: &'a Extent,
    store: &'a mut Store,
    observer: &'a dyn Observer,
    /// Repetitions that are left, of all.
    left: u32,
    all: u32,
    /// Least time of those that are left.
    time: time::Duration,
}

impl Campaign<'_> {
    fn is_stopped(&self) -> bool {
        self.observer.stop().load(Ordering::Relaxed)
    }

    /// Measures the cells of a group in turn, so that a change of the machine affects all of them.
    fn group(&mut self, group: &mut Group) -> anyhow::Result<()> {
        if group.cells.iter().all(|cell| self.is_complete(cell)) {
            return Ok(());
        }
        let measured = self.at_network(group);
        if let Err(error) = measured {
            let reason = message(&error);
            for cell in group.cells.iter_mut().filter(|cell| cell.repetitions.is_empty()) {
                cell.error = Some(reason.clone());
            }
            self.observer.on_failure(&format!("a group of measurements failed: {reason}"));
        }
        Ok(())
    }

    fn at_network(&mut self, group: &mut Group) -> anyhow::Result<()> {
        let Some(first) = group.cells.first() else { return Ok(()) };
        let first = first.measurement.clone();
        let network = LocalNetwork::of_measurement(&first)?;
        let requested =
            group.cells.iter().find_map(|cell| cell.measurement.protocol.requested_broker());
        let program = match requested {
            Some(RequestedBroker::Started(program, settings)) => Some((program, settings)),
            Some(RequestedBroker::Given(_)) | None => None,
        };
        let prepare = |sites: &Sites<'_>| -> anyhow::Result<Option<Broker>> {
            let start =
                program.map(|(program, settings)| Broker::start(program, &sites.to, settings));
            Ok(start.transpose()?)
        };
        network.enter(carrier(&first.protocol), prepare, |sites, broker| {
            // As many repetitions again, if the machine disturbs some.
            for _ in 0..2 * self.extent.repetitions {
                for cell in &mut group.cells {
                    if self.is_stopped() {
                        return Ok(());
                    }
                    if !self.is_complete(cell) && cell.error.is_none() {
                        let at = AtNetwork { sites, broker: broker.as_ref(), name: &network.name };
                        let outcome = self.repetition(&cell.measurement, &at);
                        self.keep(cell, outcome)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn repetition(
        &self,
        measurement: &Measurement,
        at: &AtNetwork<'_>,
    ) -> anyhow::Result<Option<CellResult>> {
        let own = at.broker.filter(|_| measurement.protocol.has_broker());
        let started = match own {
            // Earlier results do not have the setting of the broker.
            Some(broker) => Started::at_broker(measurement, at.sites, broker, None)?,
            None => Started::start(measurement, at.sites)?,
        };
        let request = RunRequest::new(measurement, None)?;
        let waited = || own.and_then(Broker::waited);
        let before = waited();
        let (run, _) = at_sites(&request, at.sites, started, at.name, self.observer)?;
        let waited = before.zip(waited()).map(|(before, after)| after.saturating_sub(before));
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
        if self.is_stopped() {
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
        let (number, all) = (self.all - self.left, self.all);
        let note = if is_disturbed { ", disturbed: made again" } else { "" };
        let minutes = self.time.as_secs().div_ceil(60);
        let progress = format!("{number} of {all}, {minutes} min left{note}: {}", cell.command);
        self.observer.on_note(&progress);
        Ok(())
    }

    fn is_complete(&self, cell: &Cell) -> bool {
        cell.valid().count() >= self.extent.repetitions as usize
    }
}

/// Largest time for which the broker may wait for a processor, as a share of the mean latency.
const WAIT_SHARE: f64 = 0.2;

/// Why other programs of this machine have changed the latency through the broker, if they have.
/// The wait of all of its threads for each message is at least what a message has waited there.
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
