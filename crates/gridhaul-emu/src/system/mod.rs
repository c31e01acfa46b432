//! Calls into the kernel that the standard library does not know.

mod namespace;
mod options;
mod poll;
mod priority;
mod tcp_info;
mod tun;
mod user;

pub(crate) use namespace::Namespace;
pub(crate) use options::{SocketOption, set_option};
pub(crate) use poll::{EventFlags, Poll};
pub(crate) use priority::go_first;
pub(crate) use tcp_info::TcpInfo;
pub(crate) use tun::Tun;
pub use user::become_root;

use std::io;
use std::path::Path;

/// Writes a setting of the network namespace of the calling thread, such as `ipv4/tcp_sack`.
///
/// # Errors
/// The kernel does not know the setting, or refuses the value.
pub(crate) fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(Path::new("/proc/sys/net").join(name), value)
}

/// Allows this process as many open files as it may have; returns that number.
pub(crate) fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
