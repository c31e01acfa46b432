//! Brokers, started as child processes where a measurement needs them.
//!
//! A broker ends with this program, also if the program is killed ([`gridhaul_linux::kill_with_parent_thread`]).

mod address;
mod error;
mod mosquitto;
mod process;
mod prosody;
mod rabbitmq;

use std::fmt;
use std::net::SocketAddr;

pub use address::{BrokerAddress, Credentials};
pub use error::BrokerError;
pub use mosquitto::Mosquitto;
pub use prosody::Prosody;
pub use rabbitmq::RabbitMq;

/// A broker that this program has started.
pub trait Broker: fmt::Debug {
    /// Name of the program.
    fn name(&self) -> &'static str;

    /// Address and credentials for clients.
    fn address(&self) -> BrokerAddress;

    /// The log of the broker so far.
    fn log(&self) -> String;
}

/// The address of a broker without authentication.
fn anonymous(address: SocketAddr) -> BrokerAddress {
    BrokerAddress { address, credentials: None }
}
