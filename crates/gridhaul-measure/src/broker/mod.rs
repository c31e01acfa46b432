//! Brokers, started as child processes where a measurement needs them.

mod mosquitto;

pub use mosquitto::{BrokerError, Mosquitto};
