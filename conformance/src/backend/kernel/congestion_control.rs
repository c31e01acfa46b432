//! Congestion control algorithms that are not part of the Linux kernel.

use std::fs::File;

use gridhaul_cc::{Algorithm, LoadedAlgorithms, MedxSettings, Settings, VegasSettings};
use gridhaul_core::tcp::{MedxParams, StackParams};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;

/// Algorithms of gridhaul-cc, registered in the kernel until this value is dropped.
#[derive(Debug)]
pub struct RegisteredAlgorithms {
    _loaded: LoadedAlgorithms,
    /// The lock is released after the algorithms are unregistered: their names are global, and
    /// other processes wait for them.
    _turn: File,
}

impl RegisteredAlgorithms {
    /// Registers the algorithms that these stacks need; `None` if they need none. If stacks set
    /// different parameters of one algorithm, the parameters of the last stack are registered.
    ///
    /// # Errors
    /// A missing prerequisite of this machine, or an error of the kernel.
    pub(super) fn load(stacks: &[StackParams]) -> Result<Option<Self>, String> {
        let mut settings = Settings::default();
        let mut algorithms = Vec::new();
        for stack in stacks {
            match stack.congestion_control {
                CongestionControlAlgorithm::Vegas => {
                    settings.vegas = VegasSettings::from_segments(stack.vegas.thresholds())
                        .map_err(|_| "the thresholds of Vegas must be whole numbers of segments")?;
                }
                CongestionControlAlgorithm::Medx => {
                    let MedxParams { alpha, beta, buffer, classifier: _ } = stack.medx;
                    settings.medx = MedxSettings { alpha, beta, buffer, ..MedxSettings::default() };
                }
                _ => {}
            }
            algorithms.extend(algorithm(stack.congestion_control));
        }
        if algorithms.is_empty() {
            return Ok(None);
        }
        let turn = gridhaul_cc::acquire_lock()
            .map_err(|error| format!("waiting for another run's algorithms: {error}"))?;
        let loaded =
            LoadedAlgorithms::load(&algorithms, &settings).map_err(|error| error.with_sources())?;
        Ok(Some(Self { _loaded: loaded, _turn: turn }))
    }
}

/// Name of a congestion control algorithm in the kernel or in [`RegisteredAlgorithms`]; `None` if
/// it has none.
pub(super) fn congestion_control_name(
    congestion_control: CongestionControlAlgorithm,
) -> Option<&'static str> {
    match algorithm(congestion_control) {
        Some(algorithm) => Some(algorithm.name()),
        None => gridhaul_linux::congestion_control_name(congestion_control),
    }
}

fn algorithm(congestion_control: CongestionControlAlgorithm) -> Option<Algorithm> {
    match congestion_control {
        CongestionControlAlgorithm::Vegas => Some(Algorithm::Vegas),
        CongestionControlAlgorithm::Medx => Some(Algorithm::Medx),
        _ => None,
    }
}
