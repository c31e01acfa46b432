//! Settings of a network namespace.

use std::io;
use std::path::Path;

/// Writes a setting of the network namespace of the calling thread, such as `ipv4/tcp_sack`.
///
/// # Errors
/// The kernel does not know the setting, or rejects the value.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(Path::new("/proc/sys/net").join(name), value)
}
