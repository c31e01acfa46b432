//! Records: events and data of the connections of meters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::codec::{DecodeError, Decoder, put_bytes, put_text, put_varint};

/// Largest number of bytes in a data record. Some records of this size fit into a batch.
pub const DATA_MAX: usize = 256 * 1024;

/// Largest length of a name in bytes.
const NAME_MAX: usize = 255;

/// A record. Meters are numbered from 0 in the order in which they connected; no number is used
/// twice in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A meter has connected.
    Open {
        /// Number of the meter.
        meter: u64,
        /// Where the connection comes from.
        identity: Identity<'a>,
    },
    /// Bytes of a meter's stream.
    Data {
        /// Number of the meter.
        meter: u64,
        /// Position of the first byte in the stream.
        offset: u64,
        /// Whether a message ends after these bytes.
        ends_message: bool,
        /// The bytes; empty if only the end of a message is stated.
        bytes: &'a [u8],
    },
    /// The meter has closed its direction of the connection (FIN).
    Eof {
        /// Number of the meter.
        meter: u64,
        /// Length of the stream.
        offset: u64,
    },
    /// The connection has been reset.
    Reset {
        /// Number of the meter.
        meter: u64,
        /// Why.
        cause: ResetCause,
    },
    /// The collector has restarted: connections of all meters of this shard with smaller numbers
    /// are reset unless they have ended.
    Restart {
        /// Number of the next meter.
        first_meter: u64,
        /// End of the shard's records before the restart.
        previous: PreviousRecords,
    },
    /// Records before this one are lost: a log is damaged, or files of it are missing.
    Gap {
        /// Number of lost records of the shard; `None` if it is unknown.
        records: Option<u64>,
        /// Number of lost bytes of the log; `None` if it is unknown.
        bytes: Option<u64>,
    },
}

/// Records of a shard before a restart of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousRecords {
    /// The collector does not state their end (version 1 of the records).
    Unstated,
    /// Sequence number after the last one.
    EndAt(u64),
    /// The end of the log is lost, and perhaps records with it.
    Unknown,
}

/// Where a meter's connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity<'a> {
    /// Address of the meter.
    pub peer: Option<SocketAddr>,
    /// Address to which the meter has connected.
    pub local: Option<SocketAddr>,
    /// Name of the listener in the collector's configuration.
    pub listener: &'a str,
    /// Name in the client certificate; empty if there is none.
    pub certificate: &'a str,
}

/// Why a connection was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ResetCause {
    /// RST from the meter, or its connection timed out.
    Meter = 1,
    /// RST from the server, or the server is unreachable.
    Server = 2,
    /// The stream does not follow its framing.
    Framing = 3,
    /// The collector has restarted.
    Restart = 4,
    /// A timer of the relay has expired.
    Timeout = 5,
    /// Data was lost by damage of a log.
    Damage = 6,
    /// An operator has ended the connection, or the relay was stopped.
    Operator = 7,
}

impl ResetCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::Meter,
        Self::Server,
        Self::Framing,
        Self::Restart,
        Self::Timeout,
        Self::Damage,
        Self::Operator,
    ];

    /// Name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meter => "meter",
            Self::Server => "server",
            Self::Framing => "framing",
            Self::Restart => "restart",
            Self::Timeout => "timeout",
            Self::Damage => "damage",
            Self::Operator => "operator",
        }
    }

    pub(crate) fn read(value: u8) -> Result<Self, DecodeError> {
        let found = Self::ALL.into_iter().find(|cause| *cause as u8 == value);
        found.ok_or(DecodeError::Undefined("cause of a reset"))
    }
}

const OPEN: u8 = 1;
const DATA: u8 = 2;
const DATA_END: u8 = 3;
const EOF: u8 = 4;
const RESET: u8 = 5;
const RESTART: u8 = 6;
const RESTART_AFTER: u8 = 7;
const GAP: u8 = 8;

impl<'a> Record<'a> {
    /// Number of the meter; `None` for a restart or a gap.
    #[must_use]
    pub const fn meter(&self) -> Option<u64> {
        match *self {
            Self::Open { meter, .. }
            | Self::Data { meter, .. }
            | Self::Eof { meter, .. }
            | Self::Reset { meter, .. } => Some(meter),
            Self::Restart { .. } | Self::Gap { .. } => None,
        }
    }

    /// Appends the record to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Open { meter, identity } => {
                bytes.push(OPEN);
                put_varint(bytes, meter);
                put_address(bytes, identity.peer);
                put_address(bytes, identity.local);
                put_text(bytes, identity.listener, NAME_MAX);
                put_text(bytes, identity.certificate, NAME_MAX);
            }
            Self::Data { meter, offset, ends_message, bytes: data } => {
                bytes.push(if ends_message { DATA_END } else { DATA });
                put_varint(bytes, meter);
                put_varint(bytes, offset);
                put_bytes(bytes, data);
            }
            Self::Eof { meter, offset } => {
                bytes.push(EOF);
                put_varint(bytes, meter);
                put_varint(bytes, offset);
            }
            Self::Reset { meter, cause } => {
                bytes.push(RESET);
                put_varint(bytes, meter);
                bytes.push(cause as u8);
            }
            Self::Restart { first_meter, previous } => {
                let end = match previous {
                    PreviousRecords::Unstated => None,
                    PreviousRecords::EndAt(end) => Some(Some(end)),
                    PreviousRecords::Unknown => Some(None),
                };
                bytes.push(if end.is_some() { RESTART_AFTER } else { RESTART });
                put_varint(bytes, first_meter);
                if let Some(end) = end {
                    put_optional(bytes, end);
                }
            }
            Self::Gap { records, bytes: lost } => {
                bytes.push(GAP);
                put_optional(bytes, records);
                put_optional(bytes, lost);
            }
        }
    }

    pub(crate) fn read(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let kind = decoder.u8()?;
        if kind == GAP {
            return Ok(Self::Gap { records: optional(decoder)?, bytes: optional(decoder)? });
        }
        let number = decoder.varint()?;
        Ok(match kind {
            OPEN => Self::Open {
                meter: number,
                identity: Identity {
                    peer: address(decoder)?,
                    local: address(decoder)?,
                    listener: decoder.text(NAME_MAX)?,
                    certificate: decoder.text(NAME_MAX)?,
                },
            },
            DATA | DATA_END => {
                let (offset, bytes) = (decoder.varint()?, decoder.bytes(DATA_MAX)?);
                // A head adds them, and a record in its log is read at each start.
                if offset.checked_add(bytes.len() as u64).is_none() {
                    return Err(DecodeError::TooLong("stream of a meter"));
                }
                Self::Data { meter: number, offset, ends_message: kind == DATA_END, bytes }
            }
            EOF => Self::Eof { meter: number, offset: decoder.varint()? },
            RESET => Self::Reset { meter: number, cause: ResetCause::read(decoder.u8()?)? },
            RESTART => Self::Restart { first_meter: number, previous: PreviousRecords::Unstated },
            RESTART_AFTER => {
                let previous =
                    optional(decoder)?.map_or(PreviousRecords::Unknown, PreviousRecords::EndAt);
                Self::Restart { first_meter: number, previous }
            }
            _ => return Err(DecodeError::Undefined("kind of a record")),
        })
    }
}

/// A number that may be unknown: 0, or the number plus 1. The largest number is unknown as well.
fn put_optional(bytes: &mut Vec<u8>, number: Option<u64>) {
    put_varint(bytes, number.and_then(|number| number.checked_add(1)).unwrap_or(0));
}

fn optional(decoder: &mut Decoder<'_>) -> Result<Option<u64>, DecodeError> {
    Ok(decoder.varint()?.checked_sub(1))
}

fn put_address(bytes: &mut Vec<u8>, address: Option<SocketAddr>) {
    match address {
        None => bytes.push(0),
        Some(SocketAddr::V4(address)) => {
            bytes.push(4);
            bytes.extend_from_slice(&address.ip().octets());
            bytes.extend_from_slice(&address.port().to_le_bytes());
        }
        Some(SocketAddr::V6(address)) => {
            bytes.push(6);
            bytes.extend_from_slice(&address.ip().octets());
            bytes.extend_from_slice(&address.port().to_le_bytes());
        }
    }
}

fn address(decoder: &mut Decoder<'_>) -> Result<Option<SocketAddr>, DecodeError> {
    let ip: IpAddr = match decoder.u8()? {
        0 => return Ok(None),
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(decoder.take(4)?).expect("four bytes")).into(),
        6 => Ipv6Addr::from(<[u8; 16]>::try_from(decoder.take(16)?).expect("16 bytes")).into(),
        _ => return Err(DecodeError::Undefined("family of an address")),
    };
    Ok(Some(SocketAddr::new(ip, decoder.u16()?)))
}
