//! Errors of calls into the kernel, with the remedy.

use std::io;

use thiserror::Error;

/// The machine did not do what it was asked to.
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
    /// A program of iproute2 rejected a line.
    #[error("`{program}` could not set up {node}: {message}")]
    Rejected {
        /// `ip` or `tc`.
        program: &'static str,
        /// Node whose namespace was being set up.
        node: String,
        /// The program's own message.
        message: String,
    },
    /// A thread panicked.
    #[error("a thread of the run panicked, which is a fault of gridhaul; please report it")]
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
            "\n  help: run as root, or where user namespaces and /dev/net/tun are open to you; \
             `gridhaul doctor` says what is missing"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "\n  help: allow more open files: `ulimit -n 65536`, or fewer connections in the scenario"
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "\n  help: `gridhaul doctor` says what this machine lacks"
        }
        _ => "",
    }
}
