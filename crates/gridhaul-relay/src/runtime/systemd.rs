//! Messages to systemd (sd_notify(3)): one datagram to the socket that `NOTIFY_SOCKET` names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use gridhaul_linux::Clock;
use gridhaul_scenario::units::Duration;
use rustix::time::{ClockId, clock_gettime};

/// The daemon serves its addresses.
pub(crate) fn ready() {
    notify("READY=1");
}

/// The daemon reads its configuration again. systemd compares the time of `CLOCK_MONOTONIC` with
/// that of its request.
pub(crate) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}

/// The daemon ends.
pub(crate) fn stopping() {
    notify("STOPPING=1");
}

/// Reports to the watchdog of systemd that the event loop runs.
#[derive(Debug)]
pub(crate) struct Watchdog {
    interval: Option<Duration>,
    next: gridhaul_scenario::units::Instant,
}

impl Watchdog {
    /// The interval is half of what the environment of the process states (sd_watchdog_enabled(3)).
    pub(crate) fn from_environment() -> Self {
        let micros = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse::<u64>().ok());
        let interval = micros
            .filter(|interval| *interval > 1)
            .map(|interval| Duration::from_micros(interval / 2));
        Self { interval, next: gridhaul_scenario::units::Instant::ZERO }
    }

    /// When [`Self::report`] must be called again.
    pub(crate) fn deadline(&self) -> gridhaul_scenario::units::Instant {
        self.interval.map_or(gridhaul_scenario::units::Instant::NEVER, |_| self.next)
    }

    /// Reports, if it is time.
    pub(crate) fn report(&mut self, clock: &Clock) {
        let Some(interval) = self.interval else { return };
        let now = clock.now();
        if self.next <= now {
            self.next = now + interval;
            notify("WATCHDOG=1");
        }
    }
}

/// Without a service manager, nothing is sent. A failure would not concern the meters.
fn notify(message: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let send = || -> std::io::Result<()> {
        let bytes = name.as_bytes();
        let address = match bytes.split_first() {
            Some((b'@', rest)) => SocketAddr::from_abstract_name(rest)?,
            _ => SocketAddr::from_pathname(&name)?,
        };
        UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address)?;
        Ok(())
    };
    let _ = send();
}
