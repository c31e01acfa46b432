//! MQTT 3.1.1 and 5.0 (OASIS standards): the packets that a client sends and receives, and a client
//! as an endpoint.
//!
//! Numbers are in network byte order (MQTT 3.1.1, section 1.5.2). Sections are those of MQTT 3.1.1
//! unless another version is stated.
//!
//! ```
//! use gridhaul_protocols::mqtt::{BrokerPacket, ClientPacket, PacketReader, Version};
//!
//! let mut bytes = Vec::new();
//! let publish = ClientPacket::Publish { topic: "a/b", identifier: Some(7), payload: b"hi" };
//! publish.encode(Version::V3, &mut bytes);
//! assert_eq!(bytes, b"\x32\x09\0\x03a/b\0\x07hi");
//!
//! let mut reader = PacketReader::new(Version::V3, 1_024);
//! reader.handle_input(&[0x40, 2, 0, 7]);
//! assert_eq!(reader.poll_packet(), Ok(Some(BrokerPacket::Acknowledged(7))));
//! ```

mod broker_packet;
mod client;
mod client_packet;
mod fields;
mod packet_reader;
mod refusal;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use broker_packet::BrokerPacket;
pub use client::{Client, Settings};
pub use client_packet::{ClientPacket, Login};
pub use packet_reader::{PacketError, PacketReader};

/// Types of packets with their flags (sections 2.2.1 and 2.2.2).
mod packet_type {
    pub(super) const CONNECT: u8 = 0x10;
    pub(super) const CONNACK: u8 = 0x20;
    pub(super) const PUBLISH: u8 = 0x30;
    pub(super) const PUBACK: u8 = 0x40;
    pub(super) const SUBSCRIBE: u8 = 0x82;
    pub(super) const SUBACK: u8 = 0x90;
    pub(super) const PINGREQ: u8 = 0xc0;
    pub(super) const PINGRESP: u8 = 0xd0;
    pub(super) const DISCONNECT: u8 = 0xe0;
}

/// Quality of service in the flags of PUBLISH (section 3.3.1.2).
const QUALITY_FLAGS: u8 = 0x06;
const AT_LEAST_ONCE: u8 = 0x02;

/// Version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// MQTT 3.1.1.
    V3,
    /// MQTT 5.0.
    V5,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V3 => "3.1.1",
            Self::V5 => "5.0",
        })
    }
}

/// Quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QualityOfService {
    /// At most once.
    AtMostOnce,
    /// At least once, with acknowledgements.
    AtLeastOnce,
}
