//! Settings of the protocols and of brokers as data: two machines agree on them before a
//! measurement ([`crate::control_channel`]), and a capture is decoded according to them
//! ([`crate::capture`]).

mod broker;
mod endpoints;
mod frames;
mod protocol;
mod reconnect;

pub use broker::{BrokerAddress, BrokerProgram, BrokerSettings, Credentials, Tls};
pub use frames::{
    FrameContent, FrameStream, GOOSE_MESSAGE_MAX, LIGHT_EDITION_MESSAGE, Retransmission,
    SAMPLED_VALUES_MESSAGE_MAX, Vlan,
};
pub use protocol::{
    Amqp10, Amqp091, BrokerProtocol, ClientSettings, Direct, DirectKind, Modbus, Mqtt, Pattern,
    VILLAS_EXCHANGE, VILLAS_ROUTING_KEY,
};
pub use reconnect::ReconnectPolicy;
