//! Errors of calls into the kernel: their meaning and the remedy.

use std::io;

use thiserror::Error;

/// An operation of this machine failed.
#[derive(Debug, Error)]
pub enum Error {
    /// A system call failed.
    #[error("{operation}: {source}{}", remedy(source))]
    Call {
        /// The operation that needed the call.
        operation: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A program of iproute2 or nftables rejected a line.
    #[error("`{program}` could not set up {node}: {message}")]
    Rejected {
        /// `ip`, `tc` or `nft`.
        program: &'static str,
        /// Node whose namespace was being set up.
        node: String,
        /// The program's own message.
        message: String,
    },
    /// This kernel does not have a congestion control algorithm.
    #[error(
        "this kernel has no congestion control {name:?} (it has: {available})\n  \
         help: load it (`modprobe tcp_{name}`), or choose another `congestion_control`"
    )]
    NoCongestionControl {
        /// Name of the algorithm in the kernel.
        name: String,
        /// Names of the algorithms that the kernel has, separated by spaces.
        available: String,
    },
    /// The name of a network namespace is in use.
    #[error(
        "the network namespace {name} already exists\n  \
         help: choose another prefix; `gridhaul emu clean` removes the namespaces of ended runs, \
         `ip netns del {name}` removes this namespace"
    )]
    NamespaceExists {
        /// The name.
        name: String,
    },
    /// A thread panicked.
    #[error("a thread of the run panicked, which is a defect of gridhaul; please report it")]
    Panicked,
}

impl Error {
    /// For `map_err`: names the operation that failed.
    pub fn call<E: Into<io::Error>>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        let operation = operation.into();
        move |source| Self::Call { operation, source: source.into() }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "\n  help: run as root, or on a machine that permits user namespaces and access to \
             /dev/net/tun; `gridhaul doctor` reports what is missing"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "\n  help: raise the limit of open files (`ulimit -n 65536`), or use fewer connections \
             in the scenario"
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "\n  help: `gridhaul doctor` reports what this machine lacks"
        }
        _ => "",
    }
}
