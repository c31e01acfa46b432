//! The MQTT broker mosquitto as a child process.

use std::fs::{self, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time;

use gridhaul_scenario::backend::RunError;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use thiserror::Error;

use crate::network::Site;

/// Debian installs the broker in a folder that is not in the `PATH` of users.
const PROGRAMS: [&str; 2] = ["mosquitto", "/usr/sbin/mosquitto"];

/// Name of the file with its settings.
const SETTINGS: &str = "mosquitto.conf";

/// Time for the start of the broker, and for its orderly end.
const PATIENCE: time::Duration = time::Duration::from_secs(10);

/// Why a broker cannot be started.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// The program is not installed.
    #[error(
        "the MQTT broker mosquitto is not installed\n  help: install the Debian package mosquitto, or name a running \
         broker with --broker"
    )]
    NotInstalled,
    /// The broker ended, or does not accept connections.
    #[error("the MQTT broker mosquitto does not accept connections at {address}; its log:\n{log}")]
    NotReady {
        /// Address at which it should listen.
        address: SocketAddr,
        /// Its log.
        log: String,
    },
    /// Files or processes of the broker.
    #[error("starting the MQTT broker mosquitto failed: {0}")]
    Io(#[from] io::Error),
    /// The emulated network failed.
    #[error("the emulated network: {0}")]
    Network(#[from] RunError),
}

/// A running broker, which stops when this value is dropped.
#[derive(Debug)]
pub struct Mosquitto {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    folder: TempDir,
}

impl Mosquitto {
    /// Starts a broker at an end of the network and waits until it accepts connections. `nodelay` is its setting
    /// `set_tcp_nodelay`; it neither stores messages on disk nor limits its queues.
    ///
    /// # Errors
    /// The program is not installed, or does not start; the error contains its log.
    pub fn start(site: &Site<'_>, nodelay: bool) -> Result<Self, BrokerError> {
        let folder = tempfile::tempdir()?;
        let address = SocketAddr::new(site.address, free_port(site)?);
        let settings = folder.path().join(SETTINGS);
        fs::write(&settings, configuration(address, nodelay))?;
        let log = folder.path().join("mosquitto.log");
        let child = site.enter(|| spawn(&settings, &log))??;
        let mut broker = Self { child, address, log, folder };
        if broker.accepts_connections(site)? {
            Ok(broker)
        } else {
            Err(BrokerError::NotReady { address, log: broker.log() })
        }
    }

    /// Address of the broker.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The log of the broker so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Starts the broker again at the same address, after it has ended.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        self.child = site.enter(|| spawn(&self.folder.path().join(SETTINGS), &self.log))??;
        if self.accepts_connections(site)? {
            return Ok(());
        }
        Err(BrokerError::NotReady { address: self.address, log: self.log() })
    }

    /// Ends the broker without its cooperation, as a crash does.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    #[expect(clippy::disallowed_methods, reason = "a process is waited for in real time")]
    fn accepts_connections(&mut self, site: &Site<'_>) -> Result<bool, BrokerError> {
        let begin = time::Instant::now();
        while begin.elapsed() < PATIENCE && self.child.try_wait()?.is_none() {
            let address = self.address;
            if site.enter(|| TcpStream::connect(address).is_ok())? {
                return Ok(true);
            }
            thread::sleep(time::Duration::from_millis(5));
        }
        Ok(false)
    }
}

impl Drop for Mosquitto {
    #[expect(clippy::disallowed_methods, reason = "a process is waited for in real time")]
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let begin = time::Instant::now();
        while begin.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(time::Duration::from_millis(5));
        }
        let _ = self.kill();
    }
}

/// A port that no socket of this end uses now.
fn free_port(site: &Site<'_>) -> Result<u16, BrokerError> {
    let address = SocketAddr::new(site.address, 0);
    Ok(site.enter(|| TcpListener::bind(address)?.local_addr())??.port())
}

fn configuration(address: SocketAddr, nodelay: bool) -> String {
    format!(
        "listener {} {}\nallow_anonymous true\npersistence false\nset_tcp_nodelay {nodelay}\nmax_queued_messages 0\n\
         max_inflight_messages 0\nlog_dest stderr\n",
        address.port(),
        address.ip()
    )
}

fn spawn(settings: &Path, log: &Path) -> Result<Child, BrokerError> {
    let output = OpenOptions::new().create(true).append(true).open(log)?;
    for program in PROGRAMS {
        let mut command = Command::new(program);
        command.arg("-c").arg(settings).stdin(Stdio::null()).stdout(Stdio::null());
        match command.stderr(output.try_clone()?).spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return Ok(done?),
        }
    }
    Err(BrokerError::NotInstalled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Sites;

    #[test]
    fn a_broker_that_cannot_listen_reports_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let (settings, log) = (folder.path().join("conf"), folder.path().join("log"));
        fs::write(&settings, "no_such_setting 1\n").unwrap();
        let child = spawn(&settings, &log);
        let Ok(mut child) = child else {
            assert!(std::env::var_os("GRIDHAUL_REQUIRE_TOOLS").is_none(), "{child:?}");
            return;
        };
        assert!(!child.wait().unwrap().success());
        assert!(fs::read_to_string(&log).unwrap().contains("no_such_setting"));
    }

    #[test]
    fn the_settings_name_the_listener() {
        let text = configuration("10.1.0.1:1884".parse().unwrap(), true);
        assert!(text.contains("listener 1884 10.1.0.1\n"), "{text}");
        assert!(text.contains("set_tcp_nodelay true\n"), "{text}");
        assert!(Sites::loopback().to.address.is_loopback());
    }
}
