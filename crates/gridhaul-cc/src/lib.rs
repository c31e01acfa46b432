//! Congestion control of gridhaul for the Linux kernel.
//!
//! TCP Vegas (`gh_vegas`) and TCP-MEDX (`gh_medx`) as eBPF programs that the kernel registers beside its own
//! algorithms (`struct_ops`). Any TCP connection of the machine can be given them: by the socket option
//! `TCP_CONGESTION`, by route, or as default.
//!
//! The programs are in `bpf/`; the build compiles them if it finds clang, and goes on without. The loader is
//! Rust alone: it makes the maps, hands the compiler's notes on accesses to structures on to the kernel, which
//! fills in the offsets of its own (CO-RE, from Linux 5.17 on in the kernel itself), and registers the result
//! by a link. What a process has loaded ends with it, however it ends; what it has [pinned](LoadedAlgorithms::pin) stays
//! until [`unload`].

#![forbid(unsafe_code)]

mod counters;
mod load;
mod requirements;
mod settings;
mod status;

use std::fs::File;
use std::io;
use std::path::PathBuf;

use gridhaul_linux::bpf::BpfError;

pub use counters::{ConnectionCounters, Counters, LossClassification, MedxCounters, VegasCounters};
pub use load::LoadedAlgorithms;
pub use requirements::{MissingRequirement, missing_requirements, missing_requirements_for};
pub use settings::{LoadedSettings, MedxSettings, Settings, VegasSettings};
pub use status::{HolderProcess, Status, status, unload};

/// An algorithm that can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// TCP Vegas (Brakmo and Peterson 1995).
    Vegas,
    /// TCP-MEDX (Xiong, Yim, Leigh and Murata), with the TCP option that brings it the delays on the way to
    /// the receiver.
    Medx,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Vegas, Self::Medx];

    /// The name by which the kernel knows it, as for `TCP_CONGESTION`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vegas => "gh_vegas",
            Self::Medx => "gh_medx",
        }
    }
}

/// Waits until nobody else who asks here has algorithms loaded, and keeps others waiting as long as the
/// file lives. Their names are the machine's: who loads some for a while takes turns.
///
/// # Errors
/// The file of the lock cannot be made or locked.
pub fn acquire_lock() -> io::Result<File> {
    let path = std::env::temp_dir().join("gridhaul-cc.lock");
    // Where another user's run has made it, the kernel lets nobody but them create it (`fs.protected_regular`),
    // root neither; to read is enough for a lock.
    let file =
        File::open(&path).or_else(|_| File::options().create(true).append(true).open(&path))?;
    file.lock()?;
    Ok(file)
}

/// Why the kernel does not get an algorithm, or keeps it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is not there; all of it, with remedies.
    #[error("{}", list(.0))]
    Missing(Vec<MissingRequirement>),
    /// Another process has registered it, or it was kept.
    #[error("{name} is loaded already, {by}")]
    Registered {
        /// Its name in the kernel.
        name: &'static str,
        /// Who holds it, and how to get rid of it.
        by: String,
    },
    /// Parameters that make no sense.
    #[error("{0}")]
    Settings(String),
    /// The kernel did not like a program.
    #[error("the kernel refuses {program}, and says\n{log}\n")]
    Refused {
        /// Algorithm and function.
        program: String,
        /// What the call returned.
        source: io::Error,
        /// The end of the kernel's explanation.
        log: String,
    },
    /// A compiled program that cannot be read.
    #[error("the compiled {0} cannot be read: {1}")]
    Object(&'static str, String),
    /// What can only be kept in a BPF file system.
    #[error(
        "there is no BPF file system at {path} and none can be mounted; try: mount -t bpf bpf {path}"
    )]
    FileSystem {
        /// Where it is looked for.
        path: PathBuf,
        /// Why mounting failed.
        source: io::Error,
    },
    /// Any other failure of a system call.
    #[error("{doing}")]
    System {
        /// What was being done.
        doing: String,
        /// What the call returned.
        source: io::Error,
    },
}

impl Error {
    /// This error and its sources in one line.
    #[must_use]
    pub fn with_sources(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text += &format!(": {error}");
            source = error.source();
        }
        text
    }

    /// For `map_err`: an error of the loader, for an algorithm.
    fn bpf(algorithm: Algorithm) -> impl FnOnce(BpfError) -> Self {
        move |error| match error {
            BpfError::Object(message) => Self::Object(algorithm.name(), message),
            BpfError::Rejected { program, source, log } => Self::Refused { program, source, log },
            BpfError::Call { operation: doing, source } => Self::System { doing, source },
            error @ BpfError::MissingType(_) => Self::kernel_types(error),
        }
    }

    /// An error of the kernel's type information.
    fn kernel_types(error: BpfError) -> Self {
        match error {
            BpfError::Call { operation: doing, source } => Self::System { doing, source },
            error => Self::Missing(vec![MissingRequirement {
                what: error.to_string(),
                remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_JIT=y".into(),
            }]),
        }
    }

    /// For `map_err`: what was being done.
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

fn list(missing: &[MissingRequirement]) -> String {
    let lines = missing.iter().map(|it| format!("\n  {}: {}", it.what, it.remedy));
    format!("congestion control for the kernel needs what is missing here:{}", {
        lines.collect::<String>()
    })
}
