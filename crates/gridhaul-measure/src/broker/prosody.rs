//! The XMPP server prosody as a child process.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time;

use tempfile::TempDir;

use super::process::{Process, free_ports, installed, read_log};
use super::{Broker, BrokerAddress, BrokerError, Credentials};
use crate::network::Site;

const PROGRAMS: [&str; 2] = ["/usr/bin/prosody", "/usr/local/bin/prosody"];

/// Name in messages.
const NAME: &str = "prosody";

/// The one account, and its password: clients come from the network of the measurement only.
const ACCOUNT: &str = "gridhaul";

/// The one domain.
const DOMAIN: &str = "localhost";

/// Time for the start of the server.
const START_WITHIN: time::Duration = time::Duration::from_secs(30);

/// A running server, which stops when this value is dropped.
#[derive(Debug)]
pub struct Prosody {
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

impl Prosody {
    /// Starts a server at an end of the network and waits until it accepts connections. `nodelay` is the option of its sockets.
    /// It accepts passwords without encryption, has one account and stores no messages.
    ///
    /// # Errors
    /// The program is not installed, or does not start; the error contains its log.
    pub fn start(site: &Site<'_>, nodelay: bool) -> Result<Self, BrokerError> {
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        let [port] = free_ports(site)?;
        let address = SocketAddr::new(site.address, port);
        fs::write(path.join("prosody.cfg.lua"), configuration(path, address, nodelay))?;
        let accounts = path.join("data").join(DOMAIN).join("accounts");
        fs::create_dir_all(&accounts)?;
        // The server looks for certificates, also if it has no encryption.
        fs::create_dir(path.join("certs"))?;
        let account = format!("return {{ [\"password\"] = \"{ACCOUNT}\"; }};\n");
        fs::write(accounts.join(format!("{ACCOUNT}.dat")), account)?;
        let process = Process::spawn(site, command(path)?, &path.join("prosody.log"))?;
        let mut server = Self { process, address, folder };
        server.wait(site)?;
        Ok(server)
    }

    /// Starts the server again at the same address, after it has ended.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        let path = self.folder.path();
        self.process = Process::spawn(site, command(path)?, &path.join("prosody.log"))?;
        self.wait(site)
    }

    /// Ends the server without its cooperation, as a crash does.
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

impl Broker for Prosody {
    fn name(&self) -> &'static str {
        NAME
    }

    fn address(&self) -> BrokerAddress {
        let user = format!("{ACCOUNT}@{DOMAIN}");
        let credentials = Credentials { user, password: ACCOUNT.into() };
        BrokerAddress { address: self.address, credentials: Some(credentials) }
    }

    fn log(&self) -> String {
        read_log(&self.folder.path().join("prosody.log"))
    }
}

fn command(folder: &Path) -> Result<Command, BrokerError> {
    let program = installed(&PROGRAMS);
    let program = program.ok_or(BrokerError::NotInstalled { name: NAME, package: NAME })?;
    let mut command = Command::new(program);
    // `-F`: in the foreground, so that the server is the process that is stopped or killed.
    command.arg("-F").arg("--config").arg(folder.join("prosody.cfg.lua"));
    command.current_dir(folder).env("HOME", folder);
    Ok(command)
}

fn configuration(folder: &Path, address: SocketAddr, nodelay: bool) -> String {
    // The default limit of a stanza is 256 KiB.
    format!(
        "run_as_root = true\n\
         pidfile = [==[{folder}/prosody.pid]==]\n\
         data_path = [==[{folder}/data]==]\n\
         log = {{ {{ levels = {{ min = \"info\" }}, to = \"console\" }} }}\n\
         modules_enabled = {{ \"saslauth\" }}\n\
         modules_disabled = {{ \"s2s\", \"tls\", \"offline\" }}\n\
         interfaces = {{ \"{ip}\" }}\n\
         c2s_ports = {{ {port} }}\n\
         c2s_direct_tls_ports = {{ }}\n\
         s2s_ports = {{ }}\n\
         c2s_require_encryption = false\n\
         c2s_stanza_size_limit = 4194304\n\
         allow_unencrypted_plain_auth = true\n\
         authentication = \"internal_plain\"\n\
         network_settings = {{ nagle = {nagle} }}\n\
         VirtualHost \"{DOMAIN}\"\n",
        folder = folder.display(),
        ip = address.ip(),
        port = address.port(),
        nagle = !nodelay,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_name_the_listener() {
        let address = "10.1.0.1:5223".parse().unwrap();
        let text = configuration(Path::new("/tmp/x"), address, true);
        assert!(text.contains("interfaces = { \"10.1.0.1\" }\nc2s_ports = { 5223 }\n"), "{text}");
        assert!(text.contains("nagle = false"), "{text}");
    }
}
