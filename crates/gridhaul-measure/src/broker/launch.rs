//! How a broker is started, and started again.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time;

use gridhaul_protocols::settings::{BrokerAddress, Credentials, Tls};
use tempfile::TempDir;

use super::BrokerError;
use super::certificate::RunCertificate;
use super::process::Process;
use crate::place::Site;

/// The command of a broker, and what its clients need.
#[derive(Debug)]
pub(super) struct Launch {
    /// Name in messages.
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// Folder in which it runs.
    pub(super) folder: PathBuf,
    /// Address for clients.
    pub(super) address: BrokerAddress,
    /// Address for clients of MQTT, if the broker has another main protocol.
    pub(super) mqtt: Option<BrokerAddress>,
    /// Time for the start.
    pub(super) within: time::Duration,
}

/// The file to which a process appends its output.
#[derive(Debug)]
pub(super) struct LogFile(pub(super) PathBuf);

/// Certificate and private key of a listener, as files.
#[derive(Debug)]
pub(super) struct Encryption {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    tls: Tls,
}

impl Launch {
    /// Starts the broker, and waits until it accepts connections.
    #[expect(clippy::disallowed_methods, reason = "a process is waited for in real time")]
    pub(super) fn start(&self, site: &Site<'_>, log: &LogFile) -> Result<Process, BrokerError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder);
        command.env("HOME", &self.folder).envs(self.environment.iter().cloned());
        let mut process = Process::spawn(site, command, &log.0)?;
        let begin = time::Instant::now();
        for address in std::iter::once(&self.address).chain(&self.mqtt).map(|broker| broker.address)
        {
            let within = self.within.saturating_sub(begin.elapsed());
            if !process.accepts_connections(site, address, within)? {
                return Err(BrokerError::NotReady { name: self.name, address, log: log.read() });
            }
        }
        Ok(process)
    }
}

impl LogFile {
    /// The contents, or nothing.
    pub(super) fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Encryption {
    /// Makes a certificate for the address of an end, in a folder that only this user can read.
    pub(super) fn create(folder: &TempDir, site: &Site<'_>) -> Result<Self, BrokerError> {
        let name = site.address.to_string();
        let RunCertificate { certificate, key } = RunCertificate::new(&name)?;
        let path = |name: &str, text: &str| -> Result<PathBuf, BrokerError> {
            let path = folder.path().join(name);
            fs::write(&path, text)?;
            Ok(path)
        };
        Ok(Self {
            certificate: path("certificate.pem", &certificate)?,
            key: path("key.pem", &key)?,
            tls: Tls { name, authorities: certificate },
        })
    }
}

/// The address for clients of a broker that listens here, whose connections may be encrypted.
pub(super) fn client_address(
    address: SocketAddr,
    credentials: Option<Credentials>,
    encryption: Option<&Encryption>,
) -> BrokerAddress {
    BrokerAddress { address, credentials, tls: encryption.map(|encryption| encryption.tls.clone()) }
}

/// The first of these programs that is installed.
pub(super) fn required(
    candidates: &[&str],
    name: &'static str,
    package: &'static str,
) -> Result<PathBuf, BrokerError> {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or(BrokerError::NotInstalled { name, package })
}

/// A path as an argument.
pub(super) fn argument(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Sites;

    #[test]
    fn a_broker_that_does_not_start_reports_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch {
            name: "test-broker",
            program: "/bin/sh".into(),
            arguments: ["-c", "echo no_such_setting; exit 1"].map(OsString::from).to_vec(),
            environment: Vec::new(),
            folder: folder.path().into(),
            address: client_address(([127, 0, 0, 1], 1).into(), None, None),
            mqtt: None,
            within: time::Duration::from_secs(10),
        };
        let log = LogFile(folder.path().join("log"));
        let error = launch.start(&Sites::loopback().to, &log).unwrap_err().to_string();
        assert!(error.contains("test-broker") && error.contains("no_such_setting"), "{error}");
    }
}
