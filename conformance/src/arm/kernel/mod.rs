//! The kernel arm: the TCP of the Linux that this runs on, in real time.
//!
//! Each end of a case is a network namespace with a TUN device. Where the other end is a script, its
//! segments are written to the device at their times; where there are two ends, the links of the case lie
//! between the devices. A case that begins with an open connection begins so: its state is given to the
//! kernel as to a connection that was moved from another machine (`TCP_REPAIR`), and so a window begins
//! where the case says.
//!
//! Everything hangs on files of this process; nothing is left when it ends.

mod algorithm;
mod bytes;
mod host;
mod world;

use gridhaul_core::tcp::StackParams;
use gridhaul_linux::check_tun_in_namespace;
use gridhaul_scenario::units::Duration;

pub use self::algorithm::RegisteredAlgorithms;
use self::world::World;
use super::Arm;
use crate::case::Case;
use crate::judge::{Allowance, judge};
use crate::observe::Observation;

/// Runs of a case until one is as expected.
const ATTEMPTS: u32 = 3;

/// What is written later than this after its time makes a run untrustworthy.
const PUNCTUAL: Duration = Duration::from_millis(2);

/// Runs the kernel's TCP.
pub struct KernelArm;

impl Arm for KernelArm {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn allowance(&self) -> Allowance {
        Allowance::KERNEL
    }

    fn own(&self, case: &Case) -> Case {
        case.on_kernel()
    }

    /// The kernel does the same each time; what differs once and not again is the machine that was busy, which
    /// [`Observation::late`] shows where this process was waited for, and nothing where the kernel's timers were.
    fn check(&self, case: &Case) -> Result<(), String> {
        let case = self.own(case);
        let mut differed = 0;
        loop {
            let seen = self.run(&case)?;
            let Err(verdict) = judge(&case, &seen, &self.allowance()) else { return Ok(()) };
            differed += 1;
            if differed < ATTEMPTS {
                eprintln!(
                    "{}: run {differed}, late by {}, differs: {verdict}",
                    case.name, seen.late
                );
            } else if seen.late > PUNCTUAL {
                return Err(format!(
                    "not trustworthy: this machine was late, by {} in the last of {ATTEMPTS} runs\n{verdict}",
                    seen.late
                ));
            } else {
                return Err(format!(
                    "in {ATTEMPTS} runs of {ATTEMPTS}, the last of them:\n{verdict}"
                ));
            }
        }
    }

    fn run(&self, case: &Case) -> Result<Observation, String> {
        let mut world = World::new(case)?;
        world.run(case)?;
        Ok(world.finish(case))
    }
}

impl KernelArm {
    /// Whether this machine lets us run anything.
    ///
    /// # Errors
    /// What is missing.
    pub fn available() -> Result<(), String> {
        check_tun_in_namespace().map_err(|error| error.to_string())
    }

    /// Registers the congestion control algorithms that the cases need and this kernel does not have, for as
    /// long as the result lives; `None` if there are none.
    ///
    /// # Errors
    /// What this machine lacks, or the kernel rejects.
    pub fn load<'a>(
        cases: impl IntoIterator<Item = &'a Case>,
    ) -> Result<Option<RegisteredAlgorithms>, String> {
        let stacks: Vec<_> =
            cases.into_iter().map(|case| StackParams::resolve(&case.stack)).collect();
        RegisteredAlgorithms::load(&stacks)
    }
}
