//! Identity of a head at an MQTT broker.

use std::fs;
use std::path::Path;

use gridhaul_protocols::mqtt::{self, ClientPacket, Version};
use gridhaul_scenario::relay::MqttDelivery;

use crate::runtime::{RunError, credentials};

/// Version of the protocol.
pub(super) const VERSION: Version = Version::V3;

/// Seconds without any byte from this relay after which the broker may close the connection: probes
/// are more frequent.
const KEEP_ALIVE: u16 = 60;

/// Identity of the relay at the broker.
pub(crate) struct Login {
    client: String,
    user: Option<(String, Vec<u8>)>,
}

impl Login {
    pub(crate) fn read(name: &str, config: &MqttDelivery, folder: &Path) -> Result<Self, RunError> {
        let password = match &config.password_file {
            None => String::new(),
            Some(file) => read_password(folder, file)?,
        };
        let password = password.trim_end_matches(['\r', '\n']).as_bytes().to_vec();
        // Fields of MQTT state their length in 16 bits (MQTT 3.1.1, section 1.5.3).
        if password.len() > usize::from(u16::MAX) {
            return Err(RunError::Invalid(
                "head.deliver.mqtt.password_file: the password is longer than 65,535 bytes\n  \
                 help: write the password alone into the file"
                    .to_owned(),
            ));
        }
        let user = config.user_name.clone().map(|user| (user, password));
        Ok(Self { client: format!("gridhaul-{name}"), user })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let login = self.user.as_ref().map(|(user, password)| mqtt::Login { user, password });
        let client = &self.client;
        ClientPacket::Connect { client, keep_alive_s: KEEP_ALIVE, login }.encode(VERSION, out);
    }
}

fn read_password(folder: &Path, file: &str) -> Result<String, RunError> {
    let password = credentials::path_of(folder, file).and_then(fs::read_to_string);
    password.map_err(|error| {
        RunError::Unsupported(format!(
            "head.deliver.mqtt.password_file: {file}: {error}\n  help: the file must exist, and \
             the user of the relay must be permitted to read it"
        ))
    })
}

/// Checks the file with the password.
pub(crate) fn check_login(
    name: &str,
    config: &MqttDelivery,
    folder: &Path,
) -> Result<(), RunError> {
    Login::read(name, config, folder).map(|_| ())
}
