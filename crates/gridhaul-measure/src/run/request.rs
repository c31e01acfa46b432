//! A run at a constant rate, as an experiment requests it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::bail;
use gridhaul_scenario::units::Duration;

use crate::log::MessageLog;
use crate::measurement::{
    CrossTrafficSettings, Disturbance, Experiment, Measurement, Record, ScheduleSettings,
};
use crate::settings::Settings;
use crate::transfer::Plan;

/// One run of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunRequest<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) schedule: &'a ScheduleSettings,
    pub(crate) cross_traffic: &'a CrossTrafficSettings,
    pub(crate) record: &'a Record,
    pub(crate) disturbance: Option<&'a Disturbance>,
    /// Folder of the log of the messages and of that of the broker.
    pub(crate) folder: Option<&'a Path>,
}

impl<'a> RunRequest<'a> {
    /// One run of a measurement.
    ///
    /// # Errors
    /// The experiment is a search of a rate.
    pub(crate) fn new(
        measurement: &'a Measurement,
        folder: Option<&'a Path>,
    ) -> anyhow::Result<Self> {
        let (schedule, cross_traffic, record, disturbance) = match &measurement.experiment {
            Experiment::Latency(run) | Experiment::Reliability(run) => {
                (&run.schedule, &run.cross_traffic, &run.record, None)
            }
            Experiment::Outage(run) => {
                (&run.schedule, &run.cross_traffic, &run.record, Some(&run.disturbance))
            }
            Experiment::Rate(_) => bail!("a search of a rate is no run at a constant rate"),
        };
        Ok(Self { measurement, schedule, cross_traffic, record, disturbance, folder })
    }

    /// The messages.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            schedule: self.schedule.schedule(),
            bytes: self.measurement.message_bytes(),
            horizon: self.horizon(),
            processor: self.measurement.generator.processor,
            run: run_number(),
            capture: None,
        }
    }

    /// Time after which a message is lost. A message may wait for the end of an outage, and then
    /// for a retransmission whose timeout has doubled during the outage (RFC 6298, rule 5.5) and so
    /// lasts no longer than the outage did.
    fn horizon(&self) -> Duration {
        let outage = self.disturbance.map_or(Duration::ZERO, Disturbance::length);
        self.measurement.message.horizon + outage * 2
    }

    /// Creates the log of the messages in the folder of the results, if results are kept.
    pub(crate) fn open_log(
        &self,
        name: &str,
        protocol: &str,
        settings: &Settings,
    ) -> anyhow::Result<Option<MessageLog>> {
        let Some(folder) = self.folder else { return Ok(None) };
        let mut properties = Settings::default();
        properties.push("protocol", protocol);
        properties.push("rate_per_s", self.schedule.rate.to_string());
        properties.push("message_bytes", self.measurement.message_bytes().to_string());
        properties.append(settings.clone());
        Ok(Some(MessageLog::create(&folder.join(name), properties)?))
    }
}

/// A number that differs between the runs of this program, so that late messages of one do not
/// count in the next, and from those of other programs: a process identifier has at most 22 bits
/// (`proc(5)`, `pid_max`).
pub(super) fn run_number() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    std::process::id() | RUNS.fetch_add(1, Ordering::Relaxed) << 22
}
