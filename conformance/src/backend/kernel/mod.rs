//! The `kernel` backend: the TCP of the running Linux kernel, in real time.
//!
//! Each host of a case is a network namespace with a TUN device. If the peer is a script, its
//! segments are written to the device at their times; otherwise the links of the case connect the
//! two devices. A connection that is established at the start is restored with `TCP_REPAIR`, with
//! the sequence numbers and windows of the case.
//!
//! Namespaces and devices belong to file descriptors of this process and disappear when it ends.

mod congestion_control;
mod host;
mod packets;
mod real_time_run;

use std::sync::{PoisonError, RwLock};

use gridhaul_core::tcp::StackParams;
use gridhaul_linux::check_tun_in_namespace;
use gridhaul_scenario::units::Duration;

pub use self::congestion_control::RegisteredAlgorithms;
use self::real_time_run::RealTimeRun;
use super::CaseBackend;
use crate::case::Case;
use crate::compare::{BackendTolerance, compare};
use crate::observation::Observation;

/// Largest number of trustworthy runs of a case until one agrees with the expectation.
const ATTEMPTS: u32 = 4;

/// Largest number of runs that are not trustworthy, besides [`ATTEMPTS`].
const LATE_ATTEMPTS: u32 = 12;

/// A run in which a packet was delivered later than this after its time is not trustworthy.
const MAX_LATENESS: Duration = Duration::from_millis(2);

/// First runs of cases share this lock; a repetition has it alone, because cases that run at the
/// same time delay each other.
static TURN: RwLock<()> = RwLock::new(());

/// Runs the TCP of the Linux kernel.
pub struct KernelBackend;

impl CaseBackend for KernelBackend {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn tolerance(&self) -> BackendTolerance {
        BackendTolerance::KERNEL
    }

    fn adapt_case(&self, case: &Case) -> Case {
        case.on_kernel()
    }

    /// The behaviour of the kernel is deterministic. A difference that does not recur is caused by
    /// a busy machine: [`Observation::late`] shows lateness of this process, but not of the
    /// kernel's timers. A run in which this process was late says nothing about the kernel, and is
    /// repeated more often. Repetitions run alone.
    fn check(&self, case: &Case) -> Result<(), String> {
        let case = self.adapt_case(case);
        let (mut differed, mut late) = (0, 0);
        loop {
            let observation = if differed + late == 0 {
                let _shared = TURN.read().unwrap_or_else(PoisonError::into_inner);
                self.run(&case)?
            } else {
                let _alone = TURN.write().unwrap_or_else(PoisonError::into_inner);
                self.run(&case)?
            };
            let Err(difference) = compare(&case, &observation, &self.tolerance()) else {
                return Ok(());
            };
            let counter = if observation.late > MAX_LATENESS { &mut late } else { &mut differed };
            *counter += 1;
            if differed == ATTEMPTS {
                return Err(format!("all {ATTEMPTS} runs differ; the last of them:\n{difference}"));
            }
            if late == LATE_ATTEMPTS {
                return Err(format!(
                    "not trustworthy: this machine was too busy; the last of {LATE_ATTEMPTS} late \
                     runs was late by {}\n{difference}",
                    observation.late
                ));
            }
            eprintln!(
                "{}: run {}, late by {}, differs: {difference}",
                case.name,
                differed + late,
                observation.late
            );
        }
    }

    fn run(&self, case: &Case) -> Result<Observation, String> {
        let mut run = RealTimeRun::new(case)?;
        run.run(case)?;
        Ok(run.finish(case))
    }
}

impl KernelBackend {
    /// Checks whether this machine can run cases.
    ///
    /// # Errors
    /// The missing prerequisite.
    pub fn available() -> Result<(), String> {
        check_tun_in_namespace().map_err(|error| error.to_string())
    }

    /// Registers the congestion control algorithms that the cases need and the Linux kernel does
    /// not contain, until the result is dropped; `None` if there are none.
    ///
    /// # Errors
    /// A missing prerequisite of this machine, or an error of the kernel.
    pub fn load<'a>(
        cases: impl IntoIterator<Item = &'a Case>,
    ) -> Result<Option<RegisteredAlgorithms>, String> {
        let stacks: Vec<_> =
            cases.into_iter().map(|case| StackParams::resolve(&case.stack)).collect();
        RegisteredAlgorithms::load(&stacks)
    }
}
