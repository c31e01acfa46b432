//! Serialisation of whole packets: IP header, transport header and payload, with their checksums.

use super::{
    Addresses, IpHeader, Layer, TCP, TcpHeader, UDP, UdpHeader, UdpPacket, WireError, checksum,
};

/// The data of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Payload bytes.
    Bytes(&'a [u8]),
    /// This many zero bytes, included in lengths and checksum but not written, as in a capture that
    /// keeps headers only. A length field that is too small for them contains 65,535.
    Omitted(u32),
}

/// Appends a TCP segment in an IP packet. Returns the length of the packet, including an omitted
/// payload.
///
/// # Errors
/// [`WireError::OptionsTooLong`] or [`WireError::TooLong`]; the buffer is then unchanged.
pub fn write_tcp(
    buffer: &mut Vec<u8>,
    ip: &IpHeader,
    tcp: &TcpHeader<'_>,
    payload: Payload<'_>,
) -> Result<u32, WireError> {
    let options = tcp.options.encode()?;
    let header_len = TcpHeader::MIN_LEN + options.as_slice().len();
    let start = begin(buffer, ip, TCP, header_len, payload)?;
    tcp.write(&options, buffer);
    let length = finish(buffer, start, payload);
    let pseudo = checksum::pseudo_header(&ip.addresses, TCP, length);
    let sum = checksum::internet(pseudo, &buffer[start..]);
    buffer[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
    Ok(ip.header_len() as u32 + length)
}

/// Appends a UDP datagram in an IP packet. Returns the length of the packet, including an omitted
/// payload.
///
/// # Errors
/// [`WireError::TooLong`]; the buffer is then unchanged.
pub fn write_udp(
    buffer: &mut Vec<u8>,
    ip: &IpHeader,
    udp: &UdpHeader,
    payload: Payload<'_>,
) -> Result<u32, WireError> {
    let start = begin(buffer, ip, UDP, UdpPacket::HEADER, payload)?;
    let stated = (UdpPacket::HEADER + payload.len()).min(usize::from(u16::MAX)) as u16;
    buffer.extend_from_slice(&udp.source_port.to_be_bytes());
    buffer.extend_from_slice(&udp.destination_port.to_be_bytes());
    buffer.extend_from_slice(&stated.to_be_bytes());
    buffer.extend_from_slice(&[0, 0]);
    let length = finish(buffer, start, payload);
    let pseudo = checksum::pseudo_header(&ip.addresses, UDP, length);
    // A checksum of zero means that there is none, which IPv6 forbids (RFC 8200, section 8.1).
    let sum = match checksum::internet(pseudo, &buffer[start..]) {
        0 => 0xffff,
        sum => sum,
    };
    buffer[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    Ok(ip.header_len() as u32 + length)
}

impl Payload<'_> {
    const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Omitted(length) => *length as usize,
        }
    }
}

/// Appends the IP header and returns the position of the transport header.
fn begin(
    buffer: &mut Vec<u8>,
    ip: &IpHeader,
    protocol: u8,
    header_len: usize,
    payload: Payload<'_>,
) -> Result<usize, WireError> {
    let transport = header_len + payload.len();
    let (layer, stated) = match ip.addresses {
        // Total length; payload length.
        Addresses::V4 { .. } => (Layer::Ipv4, ip.header_len() + transport),
        Addresses::V6 { .. } => (Layer::Ipv6, transport),
    };
    if stated > usize::from(u16::MAX) && matches!(payload, Payload::Bytes(_)) {
        return Err(WireError::TooLong { layer, bytes: stated });
    }
    let written = header_len + if let Payload::Bytes(bytes) = payload { bytes.len() } else { 0 };
    buffer.reserve(ip.header_len() + written);
    ip.write(protocol, transport.min(usize::from(u16::MAX)) as u16, buffer);
    Ok(buffer.len())
}

/// Appends the payload and returns the length of the transport header and the payload.
fn finish(buffer: &mut Vec<u8>, start: usize, payload: Payload<'_>) -> u32 {
    let omitted = match payload {
        Payload::Bytes(bytes) => {
            buffer.extend_from_slice(bytes);
            0
        }
        Payload::Omitted(length) => length,
    };
    (buffer.len() - start) as u32 + omitted
}

#[cfg(test)]
mod tests;
