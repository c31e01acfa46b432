//! Congestion control algorithms that the kernel does not have by itself.

use std::fs::File;

use gridhaul_cc::{Algorithm, LoadedAlgorithms, MedxSettings, Settings, VegasSettings};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::CongestionControlAlgorithm;

/// Algorithms of gridhaul-cc that are registered in the kernel as long as this lives.
#[derive(Debug)]
pub struct RegisteredAlgorithms {
    _loaded: LoadedAlgorithms,
    /// Released after the algorithms are gone: their names are the machine's, and other processes wait.
    _turn: File,
}

impl RegisteredAlgorithms {
    /// Registers what these stacks need; `None` if they need nothing. Of stacks that set the parameters of one
    /// algorithm differently, the last has its parameters registered.
    ///
    /// # Errors
    /// What this machine lacks, or the kernel rejects.
    pub(super) fn load(stacks: &[StackParams]) -> Result<Option<Self>, String> {
        let mut settings = Settings::default();
        let mut algorithms = Vec::new();
        for stack in stacks {
            match stack.congestion_control {
                CongestionControlAlgorithm::Vegas => {
                    let (alpha, beta, gamma) = *stack.vegas;
                    settings.vegas = VegasSettings::from_segments([alpha, beta, gamma])
                        .map_err(|_| "the thresholds of Vegas must be whole numbers of segments")?;
                }
                CongestionControlAlgorithm::Medx => {
                    let (alpha, beta, buffer) = stack.medx;
                    settings.medx = MedxSettings { alpha, beta, buffer };
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

/// Name of a variant in the kernel, its own or [`RegisteredAlgorithms`]; `None` where no kernel has it.
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
