//! The MQTT broker mosquitto.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time;

use super::BrokerError;
use super::launch::{Encryption, Launch, argument, client_address, required};
use super::process::free_ports;
use crate::place::Site;

/// Debian installs the broker in a folder that is not in the `PATH` of users.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/mosquitto",
    "/usr/bin/mosquitto",
    "/usr/local/sbin/mosquitto",
    "/usr/local/bin/mosquitto",
];

/// Name in messages, and of the package.
const NAME: &str = "mosquitto";

/// Time for the start of the broker.
const START_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Writes the settings, with `set_tcp_nodelay` as requested. The broker neither stores messages on
/// disk nor limits its queues.
pub(super) fn launch(
    site: &Site<'_>,
    folder: &Path,
    nodelay: bool,
    encryption: Option<&Encryption>,
) -> Result<Launch, BrokerError> {
    let program = required(&PROGRAMS, NAME, NAME)?;
    let [port] = free_ports(site)?;
    let address = SocketAddr::new(site.address, port);
    let settings = folder.join("mosquitto.conf");
    fs::write(&settings, configuration(address, nodelay, encryption))?;
    Ok(Launch {
        name: NAME,
        program,
        arguments: vec!["-c".into(), argument(&settings)],
        environment: Vec::new(),
        folder: folder.into(),
        address: client_address(address, None, encryption),
        mqtt: None,
        within: START_WITHIN,
    })
}

fn configuration(address: SocketAddr, nodelay: bool, encryption: Option<&Encryption>) -> String {
    let (ip, port) = (address.ip(), address.port());
    let tls = encryption.map_or_else(String::new, |files| {
        format!("certfile {}\nkeyfile {}\n", files.certificate.display(), files.key.display())
    });
    // Started by root, the broker would change its user, and then outlive this program if that is
    // killed.
    format!(
        "user root\nlistener {port} {ip}\n{tls}allow_anonymous true\npersistence \
         false\nset_tcp_nodelay {nodelay}\n\
         max_queued_messages 0\nmax_inflight_messages 0\nlog_dest stderr\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_name_the_listener() {
        let text = configuration("10.1.0.1:1884".parse().unwrap(), true, None);
        assert!(text.contains("listener 1884 10.1.0.1\nallow_anonymous"), "{text}");
        assert!(text.contains("set_tcp_nodelay true\n"), "{text}");
    }
}
