//! What can go wrong between a run and the machine that it runs on.

use std::io;

use gridhaul_scenario::backend::RunError;
use thiserror::Error;

/// The machine did not do what a run needs.
#[derive(Debug, Error)]
pub enum Fault {
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
    /// A congestion control that this kernel does not have.
    #[error(
        "this kernel has no congestion control {name:?} (it has: {available})\n  \
         help: load it (`modprobe tcp_{name}`), or choose another `variant`"
    )]
    NoCongestionControl {
        /// Its name in the kernel.
        name: String,
        /// What there is.
        available: String,
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
    #[error("{}", chain(.0))]
    Control(gridhaul_cc::Error),
    /// A namespace of that name exists.
    #[error(
        "there is a network namespace {name} already\n  \
         help: choose another --prefix; `gridhaul emu clean` removes what dead runs have left, \
         `ip netns del {name}` this one"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
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

impl Fault {
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

impl From<Fault> for RunError {
    fn from(fault: Fault) -> Self {
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

/// What failed, and why, in one line.
fn chain(error: &gridhaul_cc::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
