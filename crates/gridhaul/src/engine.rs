//! The backends that run a scenario, and their resources.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;
use gridhaul_model::{Model, ModelRules};
use gridhaul_scenario::backend::Backend;
use gridhaul_sim::Sim;

use crate::emulation;

/// The backends to run, and the resources that they may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// The backends, each once. The others are compared with the first.
    pub backends: Vec<BackendName>,
    /// Threads for replications and points of a sweep; 0: one per core. Answers do not depend on
    /// this number.
    pub threads: usize,
    /// Concurrent runs of `emu`, at least 1.
    pub concurrent_runs: usize,
    /// Number of times that an emulated replication is repeated if the machine was too busy.
    pub emulation_repetitions: u32,
    /// Whether a run begins even if it is estimated to need more memory than is free, or more than
    /// 24 hours.
    pub ignore_estimate: bool,
}

/// A backend. The comments of the variants are also texts of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum BackendName {
    /// Packet simulation in virtual time.
    #[default]
    Sim,
    /// Analytical model, in milliseconds; metrics without an equation are null.
    Model,
    /// Analytical model with the Markov chains of paper `sa-tcp` for meters and aggregators.
    PaperModel,
    /// As paper-model, with the queues of paper `sa-tcp` as printed, errors included.
    PrintedModel,
    /// Emulation in real time: TCP of the Linux kernel over emulated links between network
    /// namespaces.
    Emu,
}

impl Default for Engine {
    /// The simulator with one thread per core.
    fn default() -> Self {
        Self::sim(0, false)
    }
}

impl Engine {
    /// Only the simulator.
    pub(crate) fn sim(threads: usize, ignore_estimate: bool) -> Self {
        Self {
            backends: vec![BackendName::Sim],
            threads,
            concurrent_runs: 1,
            emulation_repetitions: 0,
            ignore_estimate,
        }
    }

    /// The backends.
    ///
    /// # Errors
    /// A backend is named twice, or the emulator although gridhaul was built without it.
    pub(crate) fn backends(&self) -> anyhow::Result<Vec<Box<dyn Backend>>> {
        let mut backends: Vec<Box<dyn Backend>> = Vec::new();
        let model = |rules| Box::new(Model { rules, threads: self.threads });
        for (index, name) in self.backends.iter().enumerate() {
            if self.backends[..index].contains(name) {
                bail!(
                    "backend {name} is given twice\n  help: give each backend once, such as \
                     'sim,model'"
                );
            }
            backends.push(match name {
                BackendName::Sim => Box::new(Sim { threads: self.threads }),
                BackendName::Emu => {
                    emulation::backend(self.concurrent_runs, self.emulation_repetitions)?
                }
                BackendName::Model => model(ModelRules::Refined),
                BackendName::PaperModel => model(ModelRules::Paper),
                BackendName::PrintedModel => model(ModelRules::Printed),
            });
        }
        Ok(backends)
    }
}

impl BackendName {
    /// All backends.
    pub const ALL: [Self; 5] =
        [Self::Sim, Self::Model, Self::PaperModel, Self::PrintedModel, Self::Emu];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Model => "model",
            Self::PaperModel => "paper-model",
            Self::PrintedModel => "printed-model",
            Self::Emu => "emu",
        }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BackendName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|backend| backend.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("unknown backend {text:?}\n  help: choose one of: {known}")
        })
    }
}
