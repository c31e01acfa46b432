//! Errors of a run on this machine. `gridhaul_linux::Error` explains errors of the kernel.

use std::io;

use gridhaul_scenario::backend::RunError;
use thiserror::Error;

/// An error of this machine during a run.
#[derive(Debug, Error)]
pub(crate) enum EmulationError {
    /// A system call or a program of iproute2 failed.
    #[error(transparent)]
    Linux(#[from] gridhaul_linux::Error),
    /// The kernel lacks connection tracking, or the program `nft` is missing.
    #[error(
        "`nat` of a flow needs connection tracking of the kernel (nf_conntrack) and nftables: \
         {reason}\n  help: install them (Debian: apt-get install nftables), or use backend `sim`"
    )]
    Nat {
        /// The error of the kernel or of `nft`.
        reason: Box<gridhaul_linux::Error>,
    },
    /// Recorded packets could not be stored.
    #[error("cannot store recorded packets: {0}")]
    Capture(io::Error),
    /// A device of the run was deleted.
    #[error(
        "the device of link `{link}` at node `{node}` was deleted during the run\n  \
         help: run again without changing the devices in the namespaces"
    )]
    DeviceGone {
        /// Name of the link.
        link: String,
        /// Name of the node.
        node: String,
    },
    /// A prerequisite of a congestion control algorithm of gridhaul-cc is missing.
    #[error("{name} lacks a prerequisite on this machine (see `gridhaul doctor`): {missing}")]
    CongestionControlMissing {
        /// Its name in the kernel.
        name: &'static str,
        /// The missing prerequisite, and its remedy.
        missing: String,
    },
    /// The kernel rejects a congestion control algorithm of gridhaul-cc.
    #[error("{}", .0.with_sources())]
    CongestionControl(gridhaul_cc::Error),
    /// The program of the relay daemon is not installed.
    #[error(
        "aggregators, proxies and hybrid routers run as relay daemons, and the program \
         gridhaul-relay is not installed\n  help: build it with `{build}`"
    )]
    RelayMissing {
        /// The command that builds the program.
        build: String,
    },
    /// A relay daemon has ended during a run.
    #[error("the {name} (gridhaul-relay) has ended\n{messages}")]
    RelayEnded {
        /// Role and node.
        name: String,
        /// Report of the daemon.
        messages: String,
    },
    /// The name of a namespace is too long for a file in `/run/netns`.
    #[error(
        "the prefix and `-{node}` are {length} characters; the name of a namespace has at most \
         {maximum}\n  help: {}", shorten(node, *maximum)
    )]
    NameTooLong {
        /// The node with the longest name.
        node: String,
        /// Characters of the name of its namespace.
        length: usize,
        /// Largest permitted number of characters.
        maximum: usize,
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
    fn from(error: EmulationError) -> Self {
        Self::Machine(error.to_string())
    }
}

fn shorten(node: &str, maximum: usize) -> String {
    match maximum.checked_sub(node.len() + 1) {
        None | Some(0) => {
            format!("shorten the name of the node in the scenario: up to {}", maximum - 2)
        }
        Some(free) => format!("choose a prefix of 1 to {free} characters"),
    }
}
