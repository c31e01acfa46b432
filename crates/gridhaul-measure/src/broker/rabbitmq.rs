//! The broker RabbitMQ: AMQP 0-9-1, and AMQP 1.0 and MQTT 3.1.1 by its plugins.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time;

use gridhaul_protocols::settings::Credentials;

use super::BrokerError;
use super::launch::{Encryption, Launch, LogFile, argument, client_address, required};
use super::process::{Process, free_ports};
use crate::place::Site;

/// The script of Debian's package that starts the broker as the current user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// The port mapper of Erlang, which the broker needs even as its only node.
const PORT_MAPPERS: [&str; 2] = ["/usr/bin/epmd", "/usr/lib/erlang/bin/epmd"];

/// Name in messages.
const NAME: &str = "RabbitMQ";

/// Package of the broker, which brings the port mapper.
const PACKAGE: &str = "rabbitmq-server";

/// Time for the start of the broker: about 10 s on an idle machine, much more on a busy one.
const START_WITHIN: time::Duration = time::Duration::from_secs(120);

/// Time for the start of the port mapper.
const PORT_MAPPER_WITHIN: time::Duration = time::Duration::from_secs(10);

/// The addresses at which it listens.
#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: SocketAddr,
    mqtt: SocketAddr,
    distribution: u16,
    port_mapper: u16,
}

/// Writes the settings, and starts the port mapper. Data, log and cookie are in a folder of the
/// broker's own, and its node has a name of its own: other brokers of this machine do not notice
/// it.
pub(super) fn launch(
    site: &Site<'_>,
    folder: &Path,
    nodelay: bool,
    encryption: Option<&Encryption>,
) -> Result<(Launch, Vec<Process>), BrokerError> {
    let program = required(&[PROGRAM], NAME, PACKAGE)?;
    let epmd = required(&PORT_MAPPERS, NAME, PACKAGE)?;
    let [amqp, mqtt, distribution, port_mapper] = free_ports(site)?;
    let [amqp, mqtt] = [amqp, mqtt].map(|port| SocketAddr::new(site.address, port));
    let ports = Ports { amqp, mqtt, distribution, port_mapper };
    fs::write(folder.join("rabbitmq.conf"), configuration(ports, nodelay, encryption))?;
    // The plugin of AMQP 1.0 serves the same port.
    fs::write(folder.join("enabled_plugins"), "[rabbitmq_amqp1_0,rabbitmq_mqtt].\n")?;
    // The user of a new node, whom it admits from the loopback device; the configuration admits it
    // from elsewhere.
    let credentials = Credentials { user: "guest".into(), password: "guest".into() };
    let launch = Launch {
        name: NAME,
        program,
        arguments: Vec::new(),
        environment: environment(folder, ports),
        folder: folder.into(),
        address: client_address(ports.amqp, Some(credentials.clone()), encryption),
        mqtt: Some(client_address(ports.mqtt, Some(credentials), encryption)),
        within: START_WITHIN,
    };
    let mapper = Launch {
        name: "epmd (RabbitMQ)",
        program: epmd,
        arguments: vec![
            "-port".into(),
            port_mapper.to_string().into(),
            "-address".into(),
            site.address.to_string().into(),
        ],
        environment: Vec::new(),
        folder: folder.into(),
        address: client_address(SocketAddr::new(site.address, port_mapper), None, None),
        mqtt: None,
        within: PORT_MAPPER_WITHIN,
    };
    let mapper = mapper.start(site, &LogFile(folder.join("epmd.log")))?;
    Ok((launch, vec![mapper]))
}

fn environment(folder: &Path, ports: Ports) -> Vec<(&'static str, OsString)> {
    let path = |name: &str| argument(&folder.join(name));
    vec![
        // The script then becomes the broker, so that the broker is the process that is stopped or
        // killed.
        ("RUNNING_UNDER_SYSTEMD", "true".into()),
        ("RABBITMQ_NODENAME", format!("gridhaul@{}", ports.amqp.ip()).into()),
        ("RABBITMQ_USE_LONGNAME", "true".into()),
        ("RABBITMQ_NODE_PORT", ports.amqp.port().to_string().into()),
        ("RABBITMQ_DIST_PORT", ports.distribution.to_string().into()),
        ("ERL_EPMD_ADDRESS", ports.amqp.ip().to_string().into()),
        ("ERL_EPMD_PORT", ports.port_mapper.to_string().into()),
        ("RABBITMQ_MNESIA_BASE", path("data")),
        ("RABBITMQ_LOG_BASE", path("log")),
        ("RABBITMQ_LOGS", "-".into()),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins")),
        ("RABBITMQ_CONFIG_FILE", path("rabbitmq")),
        ("RABBITMQ_CONF_ENV_FILE", "/dev/null".into()),
        ("RABBITMQ_PID_FILE", path("pid")),
        // Idle schedulers do not wait actively: they would take the processors of the generator.
        (
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none".into(),
        ),
    ]
}

fn configuration(ports: Ports, nodelay: bool, encryption: Option<&Encryption>) -> String {
    let (amqp, mqtt) = (ports.amqp, ports.mqtt);
    // `ssl_options` without verification of clients: they present no certificate.
    let listener = match encryption {
        None => format!(
            "listeners.tcp.1 = {amqp}\ntcp_listen_options.nodelay = \
             {nodelay}\nmqtt.listeners.tcp.1 = {mqtt}\n"
        ),
        Some(encryption) => format!(
            "listeners.tcp = none\nlisteners.ssl.1 = {amqp}\ntcp_listen_options.nodelay = \
             {nodelay}\n\
             mqtt.listeners.tcp = none\nmqtt.listeners.ssl.1 = {mqtt}\n\
             ssl_options.cacertfile = {certificate}\nssl_options.certfile = {certificate}\n\
             ssl_options.keyfile = {key}\nssl_options.verify = verify_none\n\
             ssl_options.versions.1 = tlsv1.3\n",
            certificate = encryption.certificate.display(),
            key = encryption.key.display(),
        ),
    };
    format!(
        "{listener}mqtt.tcp_listen_options.nodelay = {nodelay}\nloopback_users = none\n\
         disk_free_limit.absolute = 50MB\nlog.console = true\nlog.console.level = \
         warning\nlog.file = false\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_name_the_listener() {
        let amqp = "10.1.0.1:5671".parse().unwrap();
        let mqtt = "10.1.0.1:1883".parse().unwrap();
        let ports = Ports { amqp, mqtt, distribution: 1, port_mapper: 2 };
        let text = configuration(ports, false, None);
        assert!(text.contains("listeners.tcp.1 = 10.1.0.1:5671\n"), "{text}");
        assert!(text.contains("mqtt.listeners.tcp.1 = 10.1.0.1:1883\n"), "{text}");
        assert_eq!(text.matches("nodelay = false\n").count(), 2, "{text}");
    }
}
