//! Root in a user namespace.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Makes this process root in a new user namespace, unless it is root already: there it may create
/// network namespaces and devices. Call it before the first thread is started.
///
/// # Errors
/// The system does not permit user namespaces to this user.
#[expect(unsafe_code, reason = "rustix marks every unshare unsafe for the sake of file tables")]
pub fn become_root() -> io::Result<()> {
    let (user, group) = (getuid(), getgid());
    if user.is_root() {
        return Ok(());
    }
    // SAFETY: only UnshareFlags::FILES is dangerous; this process has a single thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // user_namespaces(7): a group may be mapped only after setgroups is denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}
