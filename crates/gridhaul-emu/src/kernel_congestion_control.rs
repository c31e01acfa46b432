//! Congestion control algorithms that a run loads into the kernel: Vegas and MEDX of gridhaul-cc,
//! for the duration of the run.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridhaul_cc::{
    Algorithm, ConnectionCounters, LoadedAlgorithms, MedxClassifier, MedxSettings, Settings,
    VegasSettings,
};
use gridhaul_core::tcp::{MedxParams, StackParams};
use gridhaul_linux::{Namespace, congestion_control_name, require_congestion_control};
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, IpVersion, LossClassifier, Scenario, Transport,
};
use socket2::Socket;

use crate::error::EmulationError;
use crate::network::NetworkPlan;

/// Loaded algorithms; dropping this value unloads them.
#[derive(Debug)]
pub(crate) struct KernelCongestionControls {
    vegas: Option<LoadedAlgorithms>,
    medx: Option<Arc<Medx>>,
}

/// MEDX in the kernel, shared by the runs of this process: its TCP option has one handler per
/// machine. Each socket has the parameters of its stack.
#[derive(Debug)]
struct Medx {
    /// Unloaded before the lock is released.
    loaded: LoadedAlgorithms,
    _turn: File,
}

/// Checks that this machine has the congestion control of each TCP flow, or can load it.
///
/// # Errors
/// The missing prerequisite.
pub(crate) fn require(scenario: &Scenario) -> Result<(), EmulationError> {
    let tcp = scenario.flow.values().filter(|flow| flow.transport == Transport::Tcp);
    let stacks = tcp.flat_map(|flow| [flow.stack.as_ref(), flow.to_stack.as_ref()]);
    let names: BTreeSet<_> = stacks.collect();
    for name in names {
        let stack = StackParams::named(scenario, name, IpVersion::V4);
        match (stack.congestion_control, congestion_name(&stack)) {
            (CongestionControlAlgorithm::Vegas, _) => require_own(Algorithm::Vegas)?,
            (CongestionControlAlgorithm::Medx, _) => require_own(Algorithm::Medx)?,
            // An algorithm that the kernel lacks is reported as an unsupported key.
            (_, None) => {}
            (_, Some(name)) => Namespace::new()?.enter(|| require_congestion_control(name))??,
        }
    }
    Ok(())
}

fn require_own(algorithm: Algorithm) -> Result<(), EmulationError> {
    match missing_prerequisites(algorithm) {
        None => Ok(()),
        Some(missing) => {
            Err(EmulationError::CongestionControlMissing { name: algorithm.name(), missing })
        }
    }
}

/// Prerequisites of an algorithm that this machine or this build lacks, if any.
pub(crate) fn missing_prerequisites(algorithm: Algorithm) -> Option<String> {
    let missing = gridhaul_cc::missing_requirements_for(&[algorithm], None);
    let missing: Vec<_> =
        missing.iter().map(|missing| format!("{}: {}", missing.what, missing.remedy)).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// MEDX as loaded by this process.
static MEDX: Mutex<Weak<Medx>> = Mutex::new(Weak::new());

/// Name in the kernel of a stack's congestion control; `None` if it is not available.
pub(crate) fn congestion_name(stack: &StackParams) -> Option<&'static str> {
    match stack.congestion_control {
        // Algorithms of gridhaul-cc, loaded for the run.
        CongestionControlAlgorithm::Vegas => Some(Algorithm::Vegas.name()),
        CongestionControlAlgorithm::Medx => Some(Algorithm::Medx.name()),
        congestion_control => congestion_control_name(congestion_control),
    }
}

impl KernelCongestionControls {
    /// Loads the algorithms that the flows of a plan need and the kernel lacks. Vegas gets a unique
    /// name, so that other runs can load it with other settings.
    pub(crate) fn load(plan: &NetworkPlan) -> Result<Self, EmulationError> {
        let tcp = plan.flows.iter().filter(|flow| flow.transport == Transport::Tcp);
        let stacks = tcp.flat_map(|flow| &flow.stacks);
        let mut settings = Settings { suffix: unique_suffix(), ..Settings::default() };
        let (mut with_vegas, mut with_medx) = (false, false);
        for stack in stacks {
            match stack.congestion_control {
                CongestionControlAlgorithm::Vegas => {
                    settings.vegas = vegas(stack).expect("other settings are unsupported keys");
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
        let vegas = vegas.map_err(EmulationError::CongestionControl)?;
        Ok(Self { vegas, medx })
    }

    /// Name in the kernel of the congestion control of a stack; `None` leaves the default.
    pub(crate) fn name(&self, stack: &StackParams) -> Option<&str> {
        match stack.congestion_control {
            CongestionControlAlgorithm::Vegas => self.vegas.as_ref()?.name(Algorithm::Vegas),
            _ => congestion_name(stack),
        }
    }

    /// Gives a socket the parameters of its stack, if its algorithm has parameters per socket.
    pub(crate) fn configure(
        &self,
        socket: &Socket,
        stack: &StackParams,
    ) -> Result<(), EmulationError> {
        match (&self.medx, stack.congestion_control) {
            (Some(own), CongestionControlAlgorithm::Medx) => own
                .loaded
                .set_connection(socket.as_fd(), medx(stack))
                .map_err(EmulationError::CongestionControl),
            _ => Ok(()),
        }
    }

    /// Number of windows that the algorithms have corrected after the kernel had set them, in this
    /// run and in those of this process that share MEDX with it.
    pub(crate) fn corrected(&self) -> u64 {
        let vegas = self.vegas.as_ref().map(|loaded| (loaded, Algorithm::Vegas));
        let medx = self.medx.as_ref().map(|medx| (&medx.loaded, Algorithm::Medx));
        let counters = vegas.into_iter().chain(medx).filter_map(|(loaded, algorithm)| {
            // A counter that cannot be read does not invalidate the measurements of a run.
            loaded.counters(algorithm).ok().flatten()
        });
        counters.map(|counters| counters.corrected()).sum()
    }

    /// Classifications by MEDX on the connection of this socket.
    pub(crate) fn classifications(&self, socket: &Socket) -> Option<ConnectionCounters> {
        self.medx.as_ref()?.loaded.connection(socket.as_fd()).ok()?
    }
}

impl Medx {
    /// Returns MEDX of another run, or loads it when no other process has it loaded. The settings
    /// are those of sockets that other programs open on a standalone network; the sockets of a run
    /// have their own.
    fn shared(settings: MedxSettings) -> Result<Arc<Self>, EmulationError> {
        let mut known = MEDX.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(medx) = known.upgrade() {
            return Ok(medx);
        }
        let turn = gridhaul_cc::acquire_lock()
            .map_err(EmulationError::call("waiting for another run's algorithms"))?;
        let all = Settings { medx: settings, ..Settings::default() };
        let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &all)
            .map_err(EmulationError::CongestionControl)?;
        let medx = Arc::new(Self { loaded, _turn: turn });
        *known = Arc::downgrade(&medx);
        Ok(medx)
    }
}

/// Suffix that distinguishes the algorithms of this run from those of other runs.
fn unique_suffix() -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    suffix(std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed))
}

/// Process and run in seven characters: 22 bits of the process number, the last nine bits of the
/// run number.
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

/// Parameters of Vegas for the kernel, which counts whole segments; see [`settings`].
pub(crate) fn vegas(stack: &StackParams) -> Result<VegasSettings, usize> {
    VegasSettings::from_segments(stack.vegas.thresholds())
}

/// Parameters of MEDX.
pub(crate) fn medx(stack: &StackParams) -> MedxSettings {
    let MedxParams { alpha, beta, buffer, classifier } = stack.medx;
    MedxSettings { alpha, beta, buffer, classifier: classifier_of(classifier).unwrap_or_default() }
}

/// The kernel's form of a loss classifier; `None` if gh_medx does not have it.
pub(crate) const fn classifier_of(classifier: LossClassifier) -> Option<MedxClassifier> {
    match classifier {
        LossClassifier::OneWayDelay => Some(MedxClassifier::OneWayDelay),
        LossClassifier::HalfRtt => Some(MedxClassifier::HalfRtt),
        LossClassifier::AlwaysError => Some(MedxClassifier::AlwaysError),
        LossClassifier::AlwaysCongestion => Some(MedxClassifier::AlwaysCongestion),
        LossClassifier::Oracle
        | LossClassifier::RttCorrelation
        | LossClassifier::ExplicitNotification
        | LossClassifier::Ecn => None,
    }
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
