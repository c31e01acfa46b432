//! The PROXY protocol, version 2 (<https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt>, section 2.2): the
//! original addresses of a connection, sent before its data.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED: usize = 16;

/// Largest length after the fixed part that is accepted. The specification requires 536 bytes for TCP and UDP.
const REST_MAX: usize = 1_024;

/// `PP2_TYPE_UNIQUE_ID`: identifies the connection.
const TLV_UNIQUE_ID: u8 = 0x05;

/// A type for own use (`PP2_TYPE_MIN_CUSTOM` to `PP2_TYPE_MAX_CUSTOM`): position in the meter's stream of the first
/// byte on this connection, 8 bytes in network byte order.
const TLV_STREAM_OFFSET: u8 = 0xe0;

/// Addresses and identity of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProxyHeader {
    /// Source and destination; `None` if they are unknown (command `LOCAL`, or another family).
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Unique identifier of the connection, at most 128 bytes.
    pub unique_id: Option<Vec<u8>>,
    /// Position in the stream of the first byte on this connection.
    pub stream_offset: Option<u64>,
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
    /// The header is longer than permitted.
    #[error("the PROXY header has {0} bytes of addresses, the limit is 1024")]
    TooLong(usize),
    /// Addresses or extensions exceed the header.
    #[error("the PROXY header is inconsistent")]
    Inconsistent,
}

impl ProxyHeader {
    /// Reads the header at the start of a connection, and returns its length; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not a header. The connection must be reset: without the header its source is unknown.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProxyHeaderError> {
        let known = bytes.len().min(SIGNATURE.len());
        if bytes[..known] != SIGNATURE[..known] {
            return Err(ProxyHeaderError::Signature);
        }
        let Some(fixed) = bytes.get(..FIXED) else { return Ok(None) };
        let command = fixed[12];
        if !matches!(command, 0x20 | 0x21) {
            return Err(ProxyHeaderError::Command(command));
        }
        let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
        if length > REST_MAX {
            return Err(ProxyHeaderError::TooLong(length));
        }
        let Some(rest) = bytes.get(FIXED..FIXED + length) else { return Ok(None) };
        if command == 0x20 {
            // LOCAL, a connection of the proxy itself, such as a probe: the receiver discards family and addresses.
            return Ok(Some((Self::default(), FIXED + length)));
        }
        let (addresses, extensions) = addresses(fixed[13], rest)?;
        let mut header = Self { addresses, ..Self::default() };
        header.read_extensions(extensions)?;
        Ok(Some((header, FIXED + length)))
    }

    fn read_extensions(&mut self, mut rest: &[u8]) -> Result<(), ProxyHeaderError> {
        while let [kind, high, low, after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (value, next) =
                after.split_at_checked(length).ok_or(ProxyHeaderError::Inconsistent)?;
            match *kind {
                TLV_UNIQUE_ID if length <= 128 => self.unique_id = Some(value.to_vec()),
                TLV_STREAM_OFFSET => {
                    let offset = value.try_into().map_err(|_| ProxyHeaderError::Inconsistent)?;
                    self.stream_offset = Some(u64::from_be_bytes(offset));
                }
                _ => {}
            }
            rest = next;
        }
        if rest.is_empty() { Ok(()) } else { Err(ProxyHeaderError::Inconsistent) }
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
            put_extension(bytes, TLV_UNIQUE_ID, &id[..id.len().min(128)]);
        }
        if let Some(offset) = self.stream_offset {
            put_extension(bytes, TLV_STREAM_OFFSET, &offset.to_be_bytes());
        }
        let length = (bytes.len() - start - 4) as u16;
        bytes[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }
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

/// Source and destination.
type Addresses = Option<(SocketAddr, SocketAddr)>;

/// The addresses of a header, and the extensions after them.
fn addresses(family: u8, rest: &[u8]) -> Result<(Addresses, &[u8]), ProxyHeaderError> {
    let size = match family >> 4 {
        0 => 0,
        1 => 12,
        2 => 36,
        3 => 216,
        _ => return Err(ProxyHeaderError::Inconsistent),
    };
    let (fields, extensions) = rest.split_at_checked(size).ok_or(ProxyHeaderError::Inconsistent)?;
    let port = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let found = match family {
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
    };
    Ok((found, extensions))
}
