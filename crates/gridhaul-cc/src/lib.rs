//! Congestion control algorithms for the Linux kernel.
//!
//! TCP Vegas (`gh_vegas`) and TCP-MEDX (`gh_medx`) are eBPF programs that the kernel registers in
//! addition to its own algorithms (`struct_ops`). Any TCP connection of the machine can use them:
//! selected by the socket option `TCP_CONGESTION`, by route, or as default.
//!
//! The programs are in `bpf/`. `cargo xtask bpf` compiles them to `bpf/compiled/`, and they are
//! embedded from there, so that neither building nor loading needs a compiler for them. The loader
//! is written in Rust: it creates the maps, passes the compiler's relocation records on to the
//! kernel, which inserts its own field offsets (CO-RE, in the kernel itself from Linux 5.17 on),
//! and registers the algorithm with a BPF link. Algorithms are unregistered when the process that
//! loaded them ends, unless they are [pinned](LoadedAlgorithms::pin); pinned algorithms stay until
//! [`unload`].

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
pub use settings::{LoadedSettings, MedxClassifier, MedxSettings, Settings, VegasSettings};
pub use status::{HolderProcess, Status, status, unload};

/// An algorithm that can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// TCP Vegas (Brakmo and Peterson 1995).
    Vegas,
    /// TCP-MEDX (Xiong, Yim, Leigh and Murata), with a TCP option that reports one-way delays to
    /// the sender.
    Medx,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Vegas, Self::Medx];

    /// The kernel's name of the algorithm, as for `TCP_CONGESTION`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vegas => "gh_vegas",
            Self::Medx => "gh_medx",
        }
    }
}

/// Waits for the exclusive lock on loaded algorithms, and holds it for the lifetime of the file.
/// The algorithms have names that are global to the machine, so processes that load them must take
/// turns.
///
/// # Errors
/// The lock file cannot be created or locked.
pub fn acquire_lock() -> io::Result<File> {
    let path = std::env::temp_dir().join("gridhaul-cc.lock");
    // If another user created the file, the kernel refuses to open it with O_CREAT, even for root
    // (`fs.protected_regular`); read access is enough for a lock.
    let file =
        File::open(&path).or_else(|_| File::options().create(true).append(true).open(&path))?;
    file.lock()?;
    Ok(file)
}

/// Why an algorithm was not loaded or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Missing requirements, with remedies.
    #[error("{}", list(.0))]
    Missing(Vec<MissingRequirement>),
    /// The algorithm is already registered, by another process or pinned.
    #[error("{name} is already loaded, {by}")]
    Registered {
        /// The kernel's name of the algorithm.
        name: &'static str,
        /// Owner of the registered algorithm, and how to unload it.
        by: String,
    },
    /// Invalid parameters.
    #[error("{0}")]
    Settings(String),
    /// The kernel rejected a program.
    #[error("the kernel rejects {program}:\n{log}\n")]
    Refused {
        /// Algorithm and function.
        program: String,
        /// Error of the system call.
        source: io::Error,
        /// End of the verifier log.
        log: String,
    },
    /// A compiled program cannot be parsed.
    #[error("the compiled {0} cannot be read: {1}")]
    Object(&'static str, String),
    /// No BPF file system for pinned algorithms.
    #[error(
        "there is no BPF file system at {path}, and mounting one failed\n  help: mount -t bpf bpf \
         {path}"
    )]
    FileSystem {
        /// The expected mount point.
        path: PathBuf,
        /// Why mounting failed.
        source: io::Error,
    },
    /// Another system call failed.
    #[error("{operation}")]
    System {
        /// The failed operation.
        operation: String,
        /// Error of the system call.
        source: io::Error,
    },
}

impl Error {
    /// The error and its sources on one line.
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

    /// For `map_err`: converts an error of the loader for an algorithm.
    fn bpf(algorithm: Algorithm) -> impl FnOnce(BpfError) -> Self {
        move |error| match error {
            BpfError::Object(message) => Self::Object(algorithm.name(), message),
            BpfError::Rejected { program, source, log } => Self::Refused { program, source, log },
            BpfError::Call { operation, source } => Self::System { operation, source },
            error @ BpfError::MissingType(_) => Self::kernel_types(error),
        }
    }

    /// Converts an error of the kernel's type information.
    fn kernel_types(error: BpfError) -> Self {
        match error {
            BpfError::Call { operation, source } => Self::System { operation, source },
            error => Self::Missing(vec![MissingRequirement {
                what: error.to_string(),
                remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_JIT=y".into(),
            }]),
        }
    }

    /// For `map_err`: a failed system call in this operation.
    fn system(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::System { operation, source }
    }
}

fn list(missing: &[MissingRequirement]) -> String {
    let lines = missing
        .iter()
        .map(|requirement| format!("\n  {}: {}", requirement.what, requirement.remedy));
    format!("missing requirements of congestion control in the kernel:{}", {
        lines.collect::<String>()
    })
}
