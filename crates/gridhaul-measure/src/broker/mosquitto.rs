//! The MQTT broker mosquitto as a child process.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time;

use tempfile::TempDir;

use super::process::{Process, free_ports, installed, read_log};
use super::{Broker, BrokerAddress, BrokerError, anonymous};
use crate::network::Site;

/// Debian installs the broker in a folder that is not in the `PATH` of users.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/mosquitto",
    "/usr/bin/mosquitto",
    "/usr/local/sbin/mosquitto",
    "/usr/local/bin/mosquitto",
];

/// Name in messages.
const NAME: &str = "mosquitto";

/// Name of the file with its settings.
const SETTINGS: &str = "mosquitto.conf";

/// Time for the start of the broker.
const START_WITHIN: time::Duration = time::Duration::from_secs(10);

/// A running broker, which stops when this value is dropped.
#[derive(Debug)]
pub struct Mosquitto {
    process: Process,
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
        let [port] = free_ports(site)?;
        let address = SocketAddr::new(site.address, port);
        fs::write(folder.path().join(SETTINGS), configuration(address, nodelay))?;
        let log = folder.path().join("mosquitto.log");
        let process = Process::spawn(site, command(&folder)?, &log)?;
        let mut broker = Self { process, address, log, folder };
        broker.wait(site)?;
        Ok(broker)
    }

    /// Starts the broker again at the same address, after it has ended.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        self.process = Process::spawn(site, command(&self.folder)?, &self.log)?;
        self.wait(site)
    }

    /// Ends the broker without its cooperation, as a crash does.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    fn wait(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        let address = self.address;
        if self.process.accepts_connections(site, address, START_WITHIN)? {
            return Ok(());
        }
        Err(BrokerError::NotReady { name: NAME, address, log: self.log() })
    }
}

impl Broker for Mosquitto {
    fn name(&self) -> &'static str {
        NAME
    }

    fn address(&self) -> BrokerAddress {
        anonymous(self.address)
    }

    fn log(&self) -> String {
        read_log(&self.log)
    }
}

fn command(folder: &TempDir) -> Result<Command, BrokerError> {
    let program = installed(&PROGRAMS);
    let program = program.ok_or(BrokerError::NotInstalled { name: NAME, package: NAME })?;
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.path().join(SETTINGS));
    Ok(command)
}

fn configuration(address: SocketAddr, nodelay: bool) -> String {
    // Started by root, the broker would change its user, and then outlive this program if that is killed.
    format!(
        "user root\nlistener {} {}\nallow_anonymous true\npersistence false\nset_tcp_nodelay {nodelay}\n\
         max_queued_messages 0\nmax_inflight_messages 0\nlog_dest stderr\n",
        address.port(),
        address.ip()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Sites;

    #[test]
    fn a_broker_that_cannot_listen_reports_its_log() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SETTINGS), "no_such_setting 1\n").unwrap();
        let Ok(command) = command(&folder) else {
            assert!(std::env::var_os("GRIDHAUL_REQUIRE_TOOLS").is_none(), "mosquitto is missing");
            return;
        };
        let (site, log) = (Sites::loopback().to, folder.path().join("log"));
        let process = Process::spawn(&site, command, &log).unwrap();
        let address = SocketAddr::new(site.address, 1);
        let mut broker = Mosquitto { process, address, log, folder };
        let error = broker.wait(&site).unwrap_err().to_string();
        assert!(error.contains("mosquitto") && error.contains("no_such_setting"), "{error}");
    }

    #[test]
    fn the_settings_name_the_listener() {
        let text = configuration("10.1.0.1:1884".parse().unwrap(), true);
        assert!(text.contains("listener 1884 10.1.0.1\n"), "{text}");
        assert!(text.contains("set_tcp_nodelay true\n"), "{text}");
    }
}
