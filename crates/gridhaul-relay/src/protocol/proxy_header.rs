//! The PROXY protocol, version 2 (<https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt>,
//! section 2.2): the original addresses of a connection, sent before its data.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

use super::proxy_header_reader::ProxyHeaderReader;
use super::reception::{ClockState, Reception};

pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of signature, command, family and length.
pub(super) const FIXED: usize = 16;

/// `PP2_TYPE_CRC32C`: checksum of the header (section 2.2.3).
pub(super) const TLV_CRC32C: u8 = 0x03;

/// `PP2_TYPE_UNIQUE_ID`: identifies the connection.
const TLV_UNIQUE_ID: u8 = 0x05;

/// Largest unique identifier (section 2.2.5).
pub(super) const UNIQUE_ID_MAX: usize = 128;

/// A type for own use (`PP2_TYPE_MIN_CUSTOM` to `PP2_TYPE_MAX_CUSTOM`): position in the meter's
/// stream of the first byte on this connection, 8 bytes in network byte order.
const TLV_STREAM_OFFSET: u8 = 0xe0;

/// A further type for own use: when the collector has accepted the meter's connection. Microseconds
/// since 1970, UTC (8 bytes in network byte order), state of its clock (1 byte: 0 unknown, 1 not
/// synchronised, 2 synchronised), and the largest error of a synchronised clock in microseconds (8
/// bytes).
const TLV_RECEPTION: u8 = 0xe1;

/// Addresses and identity of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProxyHeader {
    /// Source and destination; `None` if they are unknown (command `LOCAL`, or another family).
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Unique identifier of the connection, at most 128 bytes.
    pub unique_id: Option<Vec<u8>>,
    /// Position in the stream of the first byte on this connection.
    pub stream_offset: Option<u64>,
    /// When the collector has accepted the meter's connection.
    pub reception: Option<Reception>,
}

/// Bytes that are not a PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProxyHeaderError {
    /// The connection begins with something else.
    #[error("the connection does not begin with a PROXY header of version 2")]
    Signature,
    /// Version or command is not defined.
    #[error("the PROXY header has version and command 0x{0:02x}")]
    Command(u8),
    /// The checksum in the header differs from that of its bytes.
    #[error("the PROXY header has a wrong checksum (CRC32C)")]
    Checksum,
    /// Addresses or extensions exceed the header.
    #[error("the PROXY header is inconsistent")]
    Inconsistent,
}

impl ProxyHeader {
    /// Reads the header at the start of a connection, and returns its length; `None` if more bytes
    /// are needed.
    ///
    /// # Errors
    /// The bytes are not a header. The connection must be reset: without the header its source is
    /// unknown.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProxyHeaderError> {
        let (mut reader, mut read) = (ProxyHeaderReader::default(), 0);
        while reader.wanted() > 0 {
            if read == bytes.len() {
                return Ok(None);
            }
            let end = bytes.len().min(read + reader.wanted());
            reader.push(&bytes[read..end])?;
            read = end;
        }
        Ok(Some((reader.header(), read)))
    }

    /// Uses the value of an extension for which [`is_used_extension`] is true.
    pub(super) fn read_extension(
        &mut self,
        kind: u8,
        value: &[u8],
    ) -> Result<(), ProxyHeaderError> {
        match kind {
            TLV_UNIQUE_ID => self.unique_id = Some(value.to_vec()),
            TLV_STREAM_OFFSET => {
                let offset = value.try_into().map_err(|_| ProxyHeaderError::Inconsistent)?;
                self.stream_offset = Some(u64::from_be_bytes(offset));
            }
            TLV_RECEPTION => self.reception = Some(read_reception(value)?),
            _ => {}
        }
        Ok(())
    }

    /// Appends the header to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(SIGNATURE);
        let start = bytes.len();
        match self.addresses {
            Some((SocketAddr::V4(from), SocketAddr::V4(to))) => {
                bytes.extend_from_slice(&[0x21, 0x11, 0, 0]);
                bytes.extend_from_slice(&from.ip().octets());
                bytes.extend_from_slice(&to.ip().octets());
            }
            Some((from, to)) => {
                bytes.extend_from_slice(&[0x21, 0x21, 0, 0]);
                bytes.extend_from_slice(&mapped(from));
                bytes.extend_from_slice(&mapped(to));
            }
            // Not LOCAL, with which a receiver would discard the extensions.
            None => bytes.extend_from_slice(&[0x21, 0, 0, 0]),
        }
        if let Some((from, to)) = self.addresses {
            bytes.extend_from_slice(&from.port().to_be_bytes());
            bytes.extend_from_slice(&to.port().to_be_bytes());
        }
        if let Some(id) = &self.unique_id {
            put_extension(bytes, TLV_UNIQUE_ID, &id[..id.len().min(UNIQUE_ID_MAX)]);
        }
        if let Some(offset) = self.stream_offset {
            put_extension(bytes, TLV_STREAM_OFFSET, &offset.to_be_bytes());
        }
        if let Some(reception) = self.reception {
            put_extension(bytes, TLV_RECEPTION, &reception_value(reception));
        }
        let length = (bytes.len() - start - 4) as u16;
        bytes[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn reception_value(reception: Reception) -> Vec<u8> {
    let (state, error_us) = match reception.clock {
        ClockState::Unknown => (0, 0),
        ClockState::Unsynchronised => (1, 0),
        ClockState::Synchronised { error_us } => (2, error_us),
    };
    let mut value = reception.utc_us.to_be_bytes().to_vec();
    value.push(state);
    value.extend_from_slice(&error_us.to_be_bytes());
    value
}

fn read_reception(value: &[u8]) -> Result<Reception, ProxyHeaderError> {
    let (time, rest) = value.split_first_chunk().ok_or(ProxyHeaderError::Inconsistent)?;
    let (state, error) = rest.split_first().ok_or(ProxyHeaderError::Inconsistent)?;
    let error = error.try_into().map_err(|_| ProxyHeaderError::Inconsistent)?;
    let clock = match state {
        0 => ClockState::Unknown,
        1 => ClockState::Unsynchronised,
        2 => ClockState::Synchronised { error_us: u64::from_be_bytes(error) },
        _ => return Err(ProxyHeaderError::Inconsistent),
    };
    Ok(Reception { utc_us: u64::from_be_bytes(*time), clock })
}

fn put_extension(bytes: &mut Vec<u8>, kind: u8, value: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(&(value.len() as u16).to_be_bytes());
    bytes.extend_from_slice(value);
}

/// Octets of an address; an IPv4 address is mapped (RFC 4291, section 2.5.5.2).
fn mapped(address: SocketAddr) -> [u8; 16] {
    match address {
        SocketAddr::V4(address) => address.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(address) => address.ip().octets(),
    }
}

/// Whether the relay uses the value of an extension. Others are skipped.
pub(super) const fn is_used_extension(kind: u8, length: usize) -> bool {
    matches!(kind, TLV_UNIQUE_ID | TLV_STREAM_OFFSET | TLV_RECEPTION) && length <= UNIQUE_ID_MAX
}

/// Bytes of source and destination of a family.
pub(super) const fn addresses_size(family: u8) -> Result<usize, ProxyHeaderError> {
    match family >> 4 {
        0 => Ok(0),
        1 => Ok(12),
        2 => Ok(36),
        3 => Ok(216),
        _ => Err(ProxyHeaderError::Inconsistent),
    }
}

/// Source and destination of TCP over IPv4 or IPv6, in so many bytes as the family has; `None` for
/// other families.
pub(super) fn addresses(family: u8, fields: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let port = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    match family {
        0x11 => {
            let ip = |at: usize| {
                Ipv4Addr::from(<[u8; 4]>::try_from(&fields[at..at + 4]).expect("four bytes"))
            };
            Some(((ip(0), port(8)).into(), (ip(4), port(10)).into()))
        }
        0x21 => {
            let ip = |at: usize| {
                Ipv6Addr::from(<[u8; 16]>::try_from(&fields[at..at + 16]).expect("16 bytes"))
                    .to_canonical()
            };
            Some(((ip(0), port(32)).into(), (ip(16), port(34)).into()))
        }
        _ => None,
    }
}
