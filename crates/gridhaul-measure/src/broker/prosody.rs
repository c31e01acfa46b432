//! The XMPP server prosody.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time;

use gridhaul_protocols::settings::Credentials;

use super::BrokerError;
use super::launch::{Encryption, Launch, argument, client_address, required};
use super::process::free_ports;
use crate::place::Site;

const PROGRAMS: [&str; 2] = ["/usr/bin/prosody", "/usr/local/bin/prosody"];

/// Name in messages, and of the package.
const NAME: &str = "prosody";

/// The one account, and its password: clients come from the network of the measurement only.
const ACCOUNT: &str = "gridhaul";

/// The one domain.
const DOMAIN: &str = "localhost";

/// Time for the start of the server.
const START_WITHIN: time::Duration = time::Duration::from_secs(30);

/// Writes the settings and the one account. The server stores no messages; without encryption it
/// accepts passwords in clear text.
pub(super) fn launch(
    site: &Site<'_>,
    folder: &Path,
    nodelay: bool,
    encryption: Option<&Encryption>,
) -> Result<Launch, BrokerError> {
    let program = required(&PROGRAMS, NAME, NAME)?;
    let [port] = free_ports(site)?;
    let address = SocketAddr::new(site.address, port);
    let settings = folder.join("prosody.cfg.lua");
    fs::write(&settings, configuration(folder, address, nodelay, encryption))?;
    let accounts = folder.join("data").join(DOMAIN).join("accounts");
    fs::create_dir_all(&accounts)?;
    // The server looks for certificates, also if it has no encryption.
    fs::create_dir(folder.join("certs"))?;
    let account = format!("return {{ [\"password\"] = \"{ACCOUNT}\"; }};\n");
    fs::write(accounts.join(format!("{ACCOUNT}.dat")), account)?;
    let credentials = Credentials { user: format!("{ACCOUNT}@{DOMAIN}"), password: ACCOUNT.into() };
    Ok(Launch {
        name: NAME,
        program,
        // `-F`: in the foreground, so that the server is the process that is stopped or killed.
        arguments: vec!["-F".into(), "--config".into(), argument(&settings)],
        environment: Vec::new(),
        folder: folder.into(),
        address: client_address(address, Some(credentials), encryption),
        mqtt: None,
        within: START_WITHIN,
    })
}

fn configuration(
    folder: &Path,
    address: SocketAddr,
    nodelay: bool,
    encryption: Option<&Encryption>,
) -> String {
    let port = address.port();
    // With encryption, TLS begins before the stream (XEP-0368).
    let listeners = match encryption {
        None => format!(
            "modules_disabled = {{ \"s2s\", \"tls\", \"offline\" }}\n\
             c2s_ports = {{ {port} }}\n\
             c2s_direct_tls_ports = {{ }}\n\
             c2s_require_encryption = false\n"
        ),
        Some(encryption) => format!(
            "modules_disabled = {{ \"s2s\", \"offline\" }}\n\
             c2s_ports = {{ }}\n\
             c2s_direct_tls_ports = {{ {port} }}\n\
             c2s_direct_tls_ssl = {{ certificate = [==[{}]==], key = [==[{}]==] }}\n\
             c2s_require_encryption = true\n",
            encryption.certificate.display(),
            encryption.key.display()
        ),
    };
    // The default limit of a stanza is 256 KiB.
    format!(
        "run_as_root = true\n\
         pidfile = [==[{folder}/prosody.pid]==]\n\
         data_path = [==[{folder}/data]==]\n\
         log = {{ {{ levels = {{ min = \"info\" }}, to = \"console\" }} }}\n\
         modules_enabled = {{ \"saslauth\" }}\n\
         interfaces = {{ \"{ip}\" }}\n\
         {listeners}\
         s2s_ports = {{ }}\n\
         c2s_stanza_size_limit = 4194304\n\
         allow_unencrypted_plain_auth = true\n\
         authentication = \"internal_plain\"\n\
         network_settings = {{ nagle = {nagle} }}\n\
         VirtualHost \"{DOMAIN}\"\n",
        folder = folder.display(),
        ip = address.ip(),
        nagle = !nodelay,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_name_the_listener() {
        let address = "10.1.0.1:5223".parse().unwrap();
        let text = configuration(Path::new("/tmp/x"), address, true, None);
        assert!(text.contains("interfaces = { \"10.1.0.1\" }\n"), "{text}");
        assert!(text.contains("\nc2s_ports = { 5223 }\n"), "{text}");
        assert!(text.contains("nagle = false"), "{text}");
    }
}
