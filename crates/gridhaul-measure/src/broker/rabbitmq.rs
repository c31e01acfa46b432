//! The broker RabbitMQ as a child process: AMQP 0-9-1, and AMQP 1.0 by its plugin.

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

/// The script of Debian's package that starts the broker as the current user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// The port mapper of Erlang, which the broker needs even as its only node.
const PORT_MAPPERS: [&str; 2] = ["/usr/bin/epmd", "/usr/lib/erlang/bin/epmd"];

/// Name in messages.
const NAME: &str = "RabbitMQ";

/// Time for the start of the broker: about 10 s on an idle machine, much more on a busy one.
const START_WITHIN: time::Duration = time::Duration::from_secs(120);

/// Time for the start of the port mapper.
const PORT_MAPPER_WITHIN: time::Duration = time::Duration::from_secs(10);

/// A running broker, which stops when this value is dropped.
#[derive(Debug)]
pub struct RabbitMq {
    /// Fields are dropped in this order: the port mapper ends after the broker.
    broker: Process,
    _port_mapper: Process,
    ports: Ports,
    folder: TempDir,
}

/// The addresses at which it listens.
#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: SocketAddr,
    distribution: u16,
    port_mapper: u16,
}

impl RabbitMq {
    /// Starts a broker at an end of the network and waits until it accepts connections. Its data, log and cookie are in a folder
    /// of its own, and its node has a name of its own: other brokers of this machine do not notice it.
    ///
    /// `nodelay` is the option of its sockets.
    ///
    /// # Errors
    /// The program is not installed, or does not start; the error contains its log.
    pub fn start(site: &Site<'_>, nodelay: bool) -> Result<Self, BrokerError> {
        let missing = BrokerError::NotInstalled { name: NAME, package: "rabbitmq-server" };
        let Some(epmd) = installed(&PORT_MAPPERS).filter(|_| Path::new(PROGRAM).is_file()) else {
            return Err(missing);
        };
        let [amqp, distribution, port_mapper] = free_ports(site)?;
        let ports = Ports { amqp: SocketAddr::new(site.address, amqp), distribution, port_mapper };
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        fs::write(path.join("rabbitmq.conf"), configuration(ports, nodelay))?;
        // The plugin serves AMQP 1.0 at the same port.
        fs::write(path.join("enabled_plugins"), "[rabbitmq_amqp1_0].\n")?;
        let mut mapper = Command::new(epmd);
        mapper.args(["-port", &port_mapper.to_string(), "-address", &site.address.to_string()]);
        let mut mapper = Process::spawn(site, mapper, &path.join("epmd.log"))?;
        let mapped = SocketAddr::new(site.address, port_mapper);
        if !mapper.accepts_connections(site, mapped, PORT_MAPPER_WITHIN)? {
            let log = read_log(&path.join("epmd.log"));
            return Err(BrokerError::NotReady { name: "epmd (RabbitMQ)", address: mapped, log });
        }
        let broker = Process::spawn(site, command(path, ports), &path.join("broker.log"))?;
        let mut broker = Self { broker, _port_mapper: mapper, ports, folder };
        broker.wait(site)?;
        Ok(broker)
    }

    /// Starts the broker again at the same address, after it has ended.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        let path = self.folder.path();
        self.broker = Process::spawn(site, command(path, self.ports), &path.join("broker.log"))?;
        self.wait(site)
    }

    /// Ends the broker without its cooperation, as a crash does.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.broker.kill()
    }

    fn wait(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        let address = self.ports.amqp;
        if self.broker.accepts_connections(site, address, START_WITHIN)? {
            return Ok(());
        }
        Err(BrokerError::NotReady { name: NAME, address, log: self.log() })
    }
}

impl Broker for RabbitMq {
    fn name(&self) -> &'static str {
        NAME
    }

    fn address(&self) -> BrokerAddress {
        // The user of a new node, whom it admits from the loopback device; the configuration admits it from elsewhere.
        let credentials = Credentials { user: "guest".into(), password: "guest".into() };
        BrokerAddress { address: self.ports.amqp, credentials: Some(credentials) }
    }

    fn log(&self) -> String {
        read_log(&self.folder.path().join("broker.log"))
    }
}

fn command(folder: &Path, ports: Ports) -> Command {
    let node = format!("gridhaul@{}", ports.amqp.ip());
    let mut command = Command::new(PROGRAM);
    command
        .current_dir(folder)
        .env("HOME", folder)
        // The script then becomes the broker, so that the broker is the process that is stopped or killed.
        .env("RUNNING_UNDER_SYSTEMD", "true")
        .env("RABBITMQ_NODENAME", node)
        .env("RABBITMQ_USE_LONGNAME", "true")
        .env("RABBITMQ_NODE_PORT", ports.amqp.port().to_string())
        .env("RABBITMQ_DIST_PORT", ports.distribution.to_string())
        .env("ERL_EPMD_ADDRESS", ports.amqp.ip().to_string())
        .env("ERL_EPMD_PORT", ports.port_mapper.to_string())
        .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
        .env("RABBITMQ_LOG_BASE", folder.join("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
        .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq"))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_PID_FILE", folder.join("pid"))
        // Idle schedulers do not wait actively: they would take the processors of the generator.
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
        );
    command
}

fn configuration(ports: Ports, nodelay: bool) -> String {
    format!(
        "listeners.tcp.1 = {}\nloopback_users = none\ntcp_listen_options.nodelay = {nodelay}\n\
         disk_free_limit.absolute = 50MB\nlog.console = true\nlog.console.level = warning\nlog.file = false\n",
        ports.amqp
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_name_the_listener() {
        let amqp = "10.1.0.1:5671".parse().unwrap();
        let text = configuration(Ports { amqp, distribution: 1, port_mapper: 2 }, false);
        assert!(text.contains("listeners.tcp.1 = 10.1.0.1:5671\n"), "{text}");
        assert!(text.contains("nodelay = false\n"), "{text}");
    }
}
