//! The emulator, if gridhaul was built with the feature `emulation`.

use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;
use thiserror::Error;

/// The emulator was chosen, and gridhaul was built without it.
#[derive(Debug, Clone, Copy, Error)]
#[error(
    "this gridhaul was built without the emulator, which needs Linux\n  \
     help: build it with `cargo build --release --features emulation`, or use backend `sim` or \
     `model`"
)]
pub struct NotBuilt;

#[cfg(feature = "emulation")]
mod built {
    use gridhaul_emu::Emu;

    use super::{Backend, NotBuilt, Scenario};

    /// The emulator with this number of concurrent runs.
    pub(crate) fn backend(
        concurrent_runs: usize,
        repetitions: u32,
    ) -> Result<Box<dyn Backend>, NotBuilt> {
        Ok(Box::new(Emu { concurrent_runs, repetitions, ..Emu::default() }))
    }

    /// Prerequisite for emulation that this machine lacks, if any.
    pub(crate) fn lacking(scenario: &Scenario) -> Option<String> {
        Emu::lacking(scenario)
    }
}

#[cfg(not(feature = "emulation"))]
mod built {
    use super::{Backend, NotBuilt, Scenario};

    /// There is no emulator.
    pub(crate) const fn backend(
        _concurrent_runs: usize,
        _repetitions: u32,
    ) -> Result<Box<dyn Backend>, NotBuilt> {
        Err(NotBuilt)
    }

    /// The emulator itself is missing.
    pub(crate) fn lacking(_scenario: &Scenario) -> Option<String> {
        Some(NotBuilt.to_string())
    }
}

pub(crate) use built::{backend, lacking};

#[cfg(test)]
mod tests {
    use crate::{BackendName, Engine};

    fn emulator() -> Engine {
        Engine { backends: vec![BackendName::Emu], ..Engine::default() }
    }

    #[cfg(feature = "emulation")]
    #[test]
    fn the_emulator_is_available() {
        assert_eq!(emulator().backends().unwrap()[0].name(), "emu");
    }

    #[cfg(not(feature = "emulation"))]
    #[test]
    fn without_the_emulator_the_error_names_the_build_command() {
        let error = emulator().backends().err().unwrap().to_string();
        assert!(error.contains("cargo build --release --features emulation"), "{error}");
    }
}
