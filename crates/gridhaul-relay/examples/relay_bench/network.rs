//! The network of the measurements: a namespace of their own, so that settings and traffic of the
//! machine do not matter.

use gridhaul_linux::{IpCommands, Namespace, become_root, set_sysctl};

/// Congestion control of all connections. Linux lets each namespace use it. The algorithm of the
/// machine may cost more than the forwarding of data: BBR sets a timer for each segment unless the
/// queueing discipline of the device paces (tcp_bbr.c).
const CONGESTION_CONTROL: &str = "reno";

/// Runs `work` on a thread in a new namespace, whose only device is the loopback device.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    // If this fails, the namespace reports the missing permission.
    let _ = become_root();
    let namespace = Namespace::new().unwrap_or_else(|error| panic!("{error}; run as root"));
    let done = namespace.enter(|| {
        let mut commands = IpCommands::default();
        commands.set_up_loopback();
        commands.run("the namespace of the measurements").unwrap();
        set_sysctl("ipv4/tcp_congestion_control", CONGESTION_CONTROL).unwrap();
        work()
    });
    done.unwrap()
}
