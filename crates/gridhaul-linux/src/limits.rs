//! Limits of the kernel and of the process.

use gridhaul_scenario::units::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_getres};

/// Resolution of the kernel's timers (`1/HZ`): 1 to 10 ms, as the kernel was built.
#[must_use]
pub fn kernel_tick() -> Duration {
    // The coarse clock advances once per tick.
    let tick = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(tick.tv_nsec.cast_unsigned())
}

/// Raises the limit of open files of this process to its maximum, and returns it.
pub fn raise_open_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // The limit that is in force is read back below.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
