//! Loads eBPF programs into the kernel, without libbpf: the compiler's relocations are passed on,
//! and the kernel itself fills in the offsets of its structures (CO-RE, since Linux 5.17).
//!
//! An [`Object`] is a compiled file. A [`Loader`] makes its maps and attaches its programs: to a
//! control group (`sockops`), to a network device (traffic control), or as an implementation of a
//! structure of the kernel (`struct_ops`). An attachment ends with its file descriptor, unless it
//! is [pinned](pin).

mod attachment;
mod btf;
mod hash_map;
mod introspection;
mod loader;
mod object;
mod pinning;
mod syscall;

use std::io;

use thiserror::Error;

pub use attachment::{attach_first, attached, detach};
pub use btf::{Structure, Types, read_u32};
pub use hash_map::HashMap;
pub use introspection::{
    LinkInfo, MapInfo, ProgramInfo, STRUCT_OPS_LINK, link_info, links, map_by_id, map_info, maps,
    program_by_id, program_info,
};
pub use loader::{EntryTypes, Loader, MapKind, TrafficDirection};
pub use object::Object;
pub use pinning::{mount_bpf, pin, pinned};
pub use syscall::{map_lookup, map_update};

/// The kernel's own type information.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A program could not be loaded or attached.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The compiled file cannot be read, or lacks something.
    #[error("the compiled program cannot be read: {0}")]
    Object(String),
    /// The kernel's type information lacks a type or member.
    #[error("{0} is not in the type information of the kernel ({KERNEL_TYPES})")]
    MissingType(String),
    /// The kernel's verifier rejected a program.
    #[error("the kernel rejects {program}, and reports\n{log}\n")]
    Rejected {
        /// Name of the program.
        program: String,
        /// Result of the system call.
        source: io::Error,
        /// End of the verifier's log.
        log: String,
    },
    /// Another failure of a system call.
    #[error("{operation}: {source}")]
    Call {
        /// The operation that needed the call.
        operation: String,
        /// Result of the system call.
        source: io::Error,
    },
}

impl BpfError {
    fn call(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Call { operation, source }
    }
}
