//! Errors of a run on this machine. `gridhaul_linux::Error` says what an error of the kernel means.

use std::io;

use gridhaul_scenario::backend::RunError;
use thiserror::Error;

/// The machine did not do what a run needs.
#[derive(Debug, Error)]
pub(crate) enum EmulationError {
    /// A call into the kernel failed, or a program of iproute2.
    #[error(transparent)]
    Linux(#[from] gridhaul_linux::Error),
    /// A device of the run has gone.
    #[error(
        "the device of link `{link}` at node `{node}` is gone; somebody deleted it during the run"
    )]
    DeviceGone {
        /// Name of the link.
        link: String,
        /// Name of the node.
        node: String,
    },
    /// What our congestion control needs is not there.
    #[error("{name} needs what is missing here, as `gridhaul doctor` says: {missing}")]
    ControlMissing {
        /// Its name in the kernel.
        name: &'static str,
        /// What is missing, and how to get it.
        missing: String,
    },
    /// The kernel does not take our congestion control.
    #[error("{}", .0.with_sources())]
    Control(gridhaul_cc::Error),
    /// No file in `/run/netns` can have the name of a namespace.
    #[error(
        "--prefix and `-{node}` are {length} characters; names of namespaces have at most {most}\n  \
         help: {}", shorten(node, *most)
    )]
    NameTooLong {
        /// The node with the longest name.
        node: String,
        /// Characters of the name of its namespace.
        length: usize,
        /// Most that a name can have.
        most: usize,
    },
}

impl EmulationError {
    /// For `map_err`: names the operation in which a call into the kernel failed.
    pub(crate) fn call<E: Into<io::Error>>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        let wrap = gridhaul_linux::Error::call(operation);
        move |source| wrap(source).into()
    }

    /// A thread of the run panicked.
    pub(crate) fn panicked() -> Self {
        gridhaul_linux::Error::Panicked.into()
    }
}

impl From<EmulationError> for RunError {
    fn from(fault: EmulationError) -> Self {
        Self::Machine(fault.to_string())
    }
}

fn shorten(node: &str, most: usize) -> String {
    match most.checked_sub(node.len() + 1) {
        None | Some(0) => {
            format!("shorten the name of the node in the scenario: up to {}", most - 2)
        }
        Some(room) => format!("choose a --prefix of 1 to {room} characters"),
    }
}
