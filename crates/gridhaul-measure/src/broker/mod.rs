//! Brokers, started as child processes where a measurement needs them.
//!
//! A broker ends with this program, also if the program is killed
//! ([`gridhaul_linux::kill_with_parent_thread`]).

mod certificate;
mod error;
mod launch;
mod mosquitto;
mod process;
mod prosody;
mod rabbitmq;

use std::{io, time};

use gridhaul_protocols::settings::{BrokerAddress, BrokerProgram, BrokerProtocol, BrokerSettings};
use tempfile::TempDir;

use crate::place::Site;
use launch::{Encryption, Launch, LogFile};
use process::Process;

pub use error::BrokerError;

/// A running broker, which stops when this value is dropped. Its settings, data and log are in a
/// folder of its own.
#[derive(Debug)]
pub struct Broker {
    /// Fields are dropped in this order: the programs that the broker needs end after it.
    process: Process,
    _needed: Vec<Process>,
    launch: Launch,
    log: LogFile,
    _folder: TempDir,
}

impl Broker {
    /// Starts a broker at an end of the network and waits until it accepts connections.
    ///
    /// # Errors
    /// The program is not installed, or does not start; the error contains its log.
    pub fn start(
        program: BrokerProgram,
        site: &Site<'_>,
        settings: BrokerSettings,
    ) -> Result<Self, BrokerError> {
        let folder = tempfile::tempdir()?;
        let encryption = settings.tls.then(|| Encryption::create(&folder, site)).transpose()?;
        let (nodelay, encryption) = (settings.nodelay, encryption.as_ref());
        let (launch, needed) = match program {
            BrokerProgram::Mosquitto => {
                (mosquitto::launch(site, folder.path(), nodelay, encryption)?, Vec::new())
            }
            BrokerProgram::RabbitMq => rabbitmq::launch(site, folder.path(), nodelay, encryption)?,
            BrokerProgram::Prosody => {
                (prosody::launch(site, folder.path(), nodelay, encryption)?, Vec::new())
            }
        };
        let log = LogFile(folder.path().join("broker.log"));
        let process = launch.start(site, &log)?;
        Ok(Self { process, _needed: needed, launch, log, _folder: folder })
    }

    /// Name of the program.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.launch.name
    }

    /// Address and credentials for clients of a protocol that the broker serves.
    #[must_use]
    pub fn address_for(&self, protocol: &BrokerProtocol) -> BrokerAddress {
        let mqtt = self.launch.mqtt.as_ref();
        let mqtt = mqtt.filter(|_| matches!(protocol, BrokerProtocol::Mqtt(_)));
        mqtt.unwrap_or(&self.launch.address).clone()
    }

    /// Address and credentials for clients of the broker's own protocol: AMQP with RabbitMQ.
    #[must_use]
    pub fn address(&self) -> BrokerAddress {
        self.launch.address.clone()
    }

    /// The log of the broker so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.read()
    }

    /// Number of the process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Nice value of the process; `None` if it has ended.
    #[must_use]
    pub fn nice(&self) -> Option<i32> {
        self.process.nice()
    }

    /// Time for which the threads of the broker were ready and waited for a processor so far;
    /// `None` if the kernel does not count it.
    #[must_use]
    pub fn waited(&self) -> Option<time::Duration> {
        self.process.waited()
    }

    /// Ends the broker without its cooperation, as a crash does.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// Starts the broker again at the same address, after it has ended.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn restart(&mut self, site: &Site<'_>) -> Result<(), BrokerError> {
        self.process = self.launch.start(site, &self.log)?;
        Ok(())
    }
}
