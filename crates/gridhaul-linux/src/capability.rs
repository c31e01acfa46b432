//! Capabilities of this machine and of this process.

use std::fs::File;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::{Error, Namespace, Tun};

/// Checks whether this process may create a network namespace and a TUN device in it.
///
/// # Errors
/// The call that failed, with the remedy.
pub fn check_tun_in_namespace() -> Result<(), Error> {
    let device = Namespace::new()?.enter(|| Tun::new("link0"))?;
    device.map(drop).map_err(Error::call("creating a device (/dev/net/tun)"))
}

/// Whether this process is root, in its user namespace.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Whether this process may open `/dev/net/tun`, with which TUN devices are created.
#[must_use]
pub fn may_open_tun() -> bool {
    File::options().read(true).write(true).open("/dev/net/tun").is_ok()
}

/// Whether a program succeeds with these arguments in a separate network namespace, which root
/// creates directly and another user in a user namespace (unshare(1)).
#[must_use]
pub fn succeeds_in_network_namespace(program: &str, arguments: &[&str]) -> bool {
    let succeeds = |options: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(options).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    succeeds(&["--net"]) || succeeds(&["--user", "--map-root-user", "--net"])
}
