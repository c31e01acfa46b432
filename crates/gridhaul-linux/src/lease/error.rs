//! Why a lease is not possible.

use std::io;

use thiserror::Error;

use crate::bpf::BpfError;

/// The programs that let the kernel take over cannot be used.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// A device does not exist.
    #[error("there is no network device {name} in this network namespace")]
    NoDevice {
        /// Its name.
        name: String,
    },
    /// Without a bridge, no packets pass when the process ends.
    #[error(
        "{devices}: no port of a bridge, which forwards packets when this process does not\n  \
         help: make one (`{remedy}`), or set `fail_open = false`"
    )]
    NoBridge {
        /// Names of the devices.
        devices: String,
        /// Commands that make a bridge.
        remedy: String,
    },
    /// The devices are ports of different bridges.
    #[error(
        "{} is a port of bridge {}, and {} one of {}; both must be ports of the same bridge",
        devices[0], bridges[0], devices[1], bridges[1]
    )]
    TwoBridges {
        /// Names of the devices.
        devices: [String; 2],
        /// Names of their bridges.
        bridges: [String; 2],
    },
    /// Packets to another port would not reach it.
    #[error(
        "bridge {bridge} has another port, {port}, whose TCP packets would be lost\n  help: remove \
         it from the bridge (`ip link set {port} nomaster`), or set `fail_open = false`"
    )]
    OtherPort {
        /// Name of the bridge.
        bridge: String,
        /// Name of the port.
        port: String,
    },
    /// The kernel does not know the attachment of the programs.
    #[error(
        "Linux {release} has no tcx, by which the programs of a lease are attached\n  help: use \
         Linux 6.6 or later with CONFIG_NET_XGRESS, or set `fail_open = false`: then only the \
         relay connects the interfaces"
    )]
    OldKernel {
        /// Release of the kernel.
        release: String,
    },
    /// The kernel rejects the programs.
    #[error("{source}{}", remedy(source))]
    Bpf {
        /// Its error.
        #[from]
        source: BpfError,
    },
    /// Another operation failed.
    #[error(transparent)]
    Linux(#[from] crate::Error),
}

fn remedy(error: &BpfError) -> &'static str {
    let (BpfError::Call { source, .. } | BpfError::Rejected { source, .. }) = error else {
        return "";
    };
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "\n  help: run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, outside of a \
             user namespace; or set `fail_open = false`"
        }
        io::ErrorKind::InvalidInput => {
            "\n  help: Linux 6.6 or later with CONFIG_BPF_SYSCALL and CONFIG_NET_XGRESS is needed \
             (tcx); or set `fail_open = false`"
        }
        _ => "\n  help: `fail_open = false` works without programs in the kernel",
    }
}
