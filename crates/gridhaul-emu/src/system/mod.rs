//! Calls into the kernel that the standard library does not know.

mod iproute;
mod namespace;
mod options;
mod poll;
mod priority;
mod repair;
mod tcp_info;
mod tun;
mod user;

pub use iproute::run_batch;
pub use namespace::Namespace;
pub use options::{SocketOption, set_option};
pub use poll::{Event, EventFlags, Poll};
pub(crate) use priority::go_first;
pub use repair::Established;
pub use tcp_info::TcpInfo;
pub use tun::Tun;
pub use user::become_root;

use std::io;
use std::path::Path;

use gridhaul_scenario::units::Duration;

/// Writes a setting of the network namespace of the calling thread, such as `ipv4/tcp_sack`.
///
/// # Errors
/// The kernel does not know the setting, or refuses the value.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(Path::new("/proc/sys/net").join(name), value)
}

/// What the kernel counts its timers in: 1 to 10 ms, as it was built.
pub(crate) fn tick() -> Duration {
    use rustix::time::{ClockId, clock_getres};
    // The coarse clock moves once a tick.
    let tick = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(tick.tv_nsec.cast_unsigned())
}

/// Allows this process as many open files as it may have; returns that number.
pub(crate) fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
