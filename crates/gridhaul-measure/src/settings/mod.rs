//! Settings of protocols and brokers, as controllers and agents exchange them, and the table of
//! settings of a result: data without input or output.

mod broker;
mod endpoints;
mod frames;
mod protocol;
mod reconnect;
mod table;

pub use broker::{BrokerAddress, BrokerProgram, BrokerSettings, BrokerUrl, Credentials, Tls};
pub use frames::{FrameContent, FrameStream, Retransmission, Vlan};
pub use protocol::{
    Amqp10, Amqp091, BrokerProtocol, ClientSettings, Direct, DirectKind, Modbus, Mqtt, Pattern,
    VILLAS_EXCHANGE, VILLAS_ROUTING_KEY,
};
pub use reconnect::ReconnectPolicy;
pub use table::Settings;
