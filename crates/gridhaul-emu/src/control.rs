//! Congestion control that a run brings into the kernel: our own Vegas and MEDX, for as long as the
//! run takes.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridhaul_cc::{
    Algorithm, ConnectionCounters, LoadedAlgorithms, MedxSettings, Settings, VegasSettings,
};
use gridhaul_core::tcp::StackParams;
use gridhaul_linux::{Namespace, require_congestion_control};
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, IpVersion, Scenario, Transport};
use socket2::Socket;

use crate::error::EmulationError;
use crate::network::Plan;
use crate::traffic::congestion_name;

/// What was loaded, and goes when this does.
#[derive(Debug)]
pub(crate) struct Controls {
    vegas: Option<LoadedAlgorithms>,
    medx: Option<Arc<Medx>>,
}

/// MEDX in the kernel, for runs of this process that want the same of it: its option is for all
/// connections of the machine.
#[derive(Debug)]
struct Medx {
    settings: MedxSettings,
    /// Goes before the turn ends.
    loaded: LoadedAlgorithms,
    _turn: File,
}

/// Whether this machine has the congestion control of every TCP flow, or lets us load it.
///
/// # Errors
/// What is missing.
pub(crate) fn require(scenario: &Scenario) -> Result<(), EmulationError> {
    let tcp = scenario.flow.values().filter(|flow| flow.transport == Transport::Tcp);
    let stacks = tcp.flat_map(|flow| [flow.stack.as_ref(), flow.to_stack.as_ref()]);
    let names: BTreeSet<_> = stacks.collect();
    for name in names {
        let stack = StackParams::named(scenario, name, IpVersion::V4);
        match (stack.congestion_control, congestion_name(&stack)) {
            (CongestionControlAlgorithm::Vegas, _) => require_own(Algorithm::Vegas)?,
            (CongestionControlAlgorithm::Medx, _) => require_own(Algorithm::Medx)?,
            // What no kernel has is refused as a key.
            (_, None) => {}
            (_, Some(name)) => Namespace::new()?.enter(|| require_congestion_control(name))??,
        }
    }
    Ok(())
}

fn require_own(algorithm: Algorithm) -> Result<(), EmulationError> {
    match missing_text(algorithm) {
        None => Ok(()),
        Some(missing) => Err(EmulationError::ControlMissing { name: algorithm.name(), missing }),
    }
}

/// What this machine and this build lack to load an algorithm, if anything.
pub(crate) fn missing_text(algorithm: Algorithm) -> Option<String> {
    let missing = gridhaul_cc::missing_requirements_for(&[algorithm], None);
    let missing: Vec<_> =
        missing.iter().map(|missing| format!("{}: {}", missing.what, missing.remedy)).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// What this process holds now.
static MEDX: Mutex<Weak<Medx>> = Mutex::new(Weak::new());

impl Controls {
    /// Loads what the flows of a plan need and this kernel does not have; Vegas under a name of its own,
    /// so that other runs may have theirs.
    pub(crate) fn load(plan: &Plan) -> Result<Self, EmulationError> {
        let tcp = plan.flows.iter().filter(|flow| flow.transport == Transport::Tcp);
        let stacks = tcp.flat_map(|flow| &flow.stacks);
        let mut settings = Settings { suffix: own_suffix(), ..Settings::default() };
        let (mut with_vegas, mut with_medx) = (false, false);
        for stack in stacks {
            match stack.congestion_control {
                CongestionControlAlgorithm::Vegas => {
                    settings.vegas = vegas(stack).expect("others were refused");
                    with_vegas = true;
                }
                CongestionControlAlgorithm::Medx => {
                    settings.medx = medx(stack);
                    with_medx = true;
                }
                _ => {}
            }
        }
        let medx = with_medx.then(|| Medx::shared(settings.medx)).transpose()?;
        let vegas =
            with_vegas.then(|| LoadedAlgorithms::load(&[Algorithm::Vegas], &settings)).transpose();
        let vegas = vegas.map_err(EmulationError::Control)?;
        Ok(Self { vegas, medx })
    }

    /// What the kernel calls the congestion control of a stack; `None` where it is left as it is.
    pub(crate) fn name(&self, stack: &StackParams) -> Option<&str> {
        match stack.congestion_control {
            CongestionControlAlgorithm::Vegas => self.vegas.as_ref()?.name(Algorithm::Vegas),
            _ => congestion_name(stack),
        }
    }

    /// How often our algorithms have put right what the kernel had made up, in this run and in those of
    /// this process that share MEDX with it.
    pub(crate) fn mended(&self) -> u64 {
        let vegas = self.vegas.as_ref().map(|loaded| (loaded, Algorithm::Vegas));
        let medx = self.medx.as_ref().map(|medx| (&medx.loaded, Algorithm::Medx));
        let counters = vegas.into_iter().chain(medx).filter_map(|(loaded, algorithm)| {
            // What a run has measured is not given up for a counter that cannot be read.
            loaded.counters(algorithm).ok().flatten()
        });
        counters.map(|counters| counters.corrected()).sum()
    }

    /// What MEDX has judged on the connection of this socket.
    pub(crate) fn judgements(&self, socket: &Socket) -> Option<ConnectionCounters> {
        self.medx.as_ref()?.loaded.connection(socket.as_fd()).ok()?
    }
}

impl Medx {
    /// That of another run, if it is the same; or loads it when nobody else has one.
    fn shared(settings: MedxSettings) -> Result<Arc<Self>, EmulationError> {
        let mut known = MEDX.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(medx) = known.upgrade().filter(|medx| medx.settings == settings) {
            return Ok(medx);
        }
        let turn = gridhaul_cc::acquire_lock()
            .map_err(EmulationError::call("waiting for another run's algorithms"))?;
        let all = Settings { medx: settings, ..Settings::default() };
        let loaded =
            LoadedAlgorithms::load(&[Algorithm::Medx], &all).map_err(EmulationError::Control)?;
        let medx = Arc::new(Self { settings, loaded, _turn: turn });
        *known = Arc::downgrade(&medx);
        Ok(medx)
    }
}

/// What tells the algorithms of this run from those of others.
fn own_suffix() -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    suffix(std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed))
}

/// Process and run in seven letters and digits: 22 bits of one, the last nine of the other.
fn suffix(process: u32, run: u32) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = u64::from(process) << 9 | u64::from(run & 511);
    let mut suffix = String::from("_");
    for _ in 0..6 {
        suffix.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    suffix
}

/// Parameters for the kernel.
///
/// # Errors
/// The parameter of Vegas that is no whole number of segments: 0 for α, 1 for β, 2 for γ.
pub(crate) fn settings(stack: &StackParams) -> Result<Settings, usize> {
    Ok(Settings { vegas: vegas(stack)?, medx: medx(stack), ..Settings::default() })
}

/// Parameters of Vegas for the kernel, which counts in whole segments; see [`settings`].
pub(crate) fn vegas(stack: &StackParams) -> Result<VegasSettings, usize> {
    let (alpha, beta, gamma) = *stack.vegas;
    VegasSettings::from_segments([alpha, beta, gamma])
}

/// Parameters of MEDX.
pub(crate) fn medx(stack: &StackParams) -> MedxSettings {
    let (alpha, beta, buffer) = stack.medx;
    MedxSettings { alpha, beta, buffer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_have_the_same_name() {
        let names = [(1, 0), (1, 1), (2, 0), (4_194_303, 511), (4_194_303, 510)];
        let mut suffixes = names.map(|(process, run)| suffix(process, run));
        suffixes.sort_unstable();
        assert!(suffixes.windows(2).all(|pair| pair[0] != pair[1]), "{suffixes:?}");
        assert!(suffixes.iter().all(|suffix| suffix.len() == 7));
    }
}
