//! IPv4 (RFC 791) and IPv6 (RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};

use super::{Layer, TCP, TcpPacket, UDP, UdpPacket, WireError, checksum};

/// Source and destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// Of IPv4.
    V4 {
        /// Address of the sender.
        source: Ipv4Addr,
        /// Address of the receiver.
        destination: Ipv4Addr,
    },
    /// Of IPv6.
    V6 {
        /// Address of the sender.
        source: Ipv6Addr,
        /// Address of the receiver.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// The addresses of a packet.
    ///
    /// # Errors
    /// [`WireError::MixedAddresses`] if they are of different versions of IP.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Result<Self, WireError> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Ok(Self::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(Self::V6 { source, destination }),
            _ => Err(WireError::MixedAddresses),
        }
    }
}

/// The fields of an IP header, without those computed on writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpHeader {
    /// Source and destination, which determine the version.
    pub addresses: Addresses,
    /// Differentiated services and, in the two low bits, ECN (RFC 2474, RFC 3168).
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// IPv4: the identification field. IPv6 has none.
    pub identification: u16,
    /// IPv4: routers must not fragment the packet. In IPv6 they never do.
    pub dont_fragment: bool,
    /// IPv6: the flow label, 20 bits. IPv4 has none.
    pub flow_label: u32,
}

impl IpHeader {
    /// An unfragmented packet with a hop limit of 64.
    #[must_use]
    pub const fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            traffic_class: 0,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
            flow_label: 0,
        }
    }

    /// Length of the written header in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self.addresses {
            Addresses::V4 { .. } => Ipv4Header::MIN_LEN,
            Addresses::V6 { .. } => Ipv6Header::LEN,
        }
    }

    /// Appends the header of a packet with this many bytes of payload.
    pub(super) fn write(&self, protocol: u8, payload: u16, buffer: &mut Vec<u8>) {
        match self.addresses {
            Addresses::V4 { source, destination } => {
                buffer.extend_from_slice(&self.v4(source, destination, protocol, payload));
            }
            Addresses::V6 { source, destination } => {
                let header = Ipv6Header {
                    traffic_class: self.traffic_class,
                    flow_label: Ipv6FlowLabel::try_new(self.flow_label & 0xf_ffff)
                        .unwrap_or_default(),
                    payload_length: payload,
                    next_header: IpNumber(protocol),
                    hop_limit: self.hop_limit,
                    source: source.octets(),
                    destination: destination.octets(),
                };
                buffer.extend_from_slice(&header.to_bytes());
            }
        }
    }
}

impl IpHeader {
    /// The IPv4 header (RFC 791, section 3.1), in an array: captures contain one for each packet.
    fn v4(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        payload: u16,
    ) -> [u8; Ipv4Header::MIN_LEN] {
        let length = payload.saturating_add(Ipv4Header::MIN_LEN_U16);
        let fragmentation = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let mut header = [0; Ipv4Header::MIN_LEN];
        // Version, and length of the header in 32-bit words.
        header[0] = 4 << 4 | (Ipv4Header::MIN_LEN / 4) as u8;
        header[1] = self.traffic_class;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6..8].copy_from_slice(&fragmentation.to_be_bytes());
        header[8] = self.hop_limit;
        header[9] = protocol;
        header[12..16].copy_from_slice(&source.octets());
        header[16..20].copy_from_slice(&destination.octets());
        let checksum = checksum::internet(0, &header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

/// Flag of IPv4 before the offset of a fragment.
const DONT_FRAGMENT: u16 = 1 << 14;

/// An IP packet with verified lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// The packet, up to the length stated in the header.
    bytes: &'a [u8],
    /// Bytes before the payload.
    header_len: usize,
    /// Protocol of the payload.
    protocol: u8,
}

/// The payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(TcpPacket<'a>),
    /// A UDP datagram.
    Udp(UdpPacket<'a>),
    /// Another protocol, by its number.
    Other(u8),
}

impl<'a> IpPacket<'a> {
    /// Parses the IP headers. Bytes after the length stated in the header are ignored. Checksums
    /// are not verified, see [`Self::verify`].
    ///
    /// # Errors
    /// A truncated packet, a version that is neither 4 nor 6, or an invalid length.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        match bytes.first().map(|byte| byte >> 4) {
            Some(4) => Self::parse_v4(bytes),
            Some(6) => Self::parse_v6(bytes),
            Some(version) => Err(WireError::IpVersion(version)),
            None => Err(truncated(Layer::Ipv4, Ipv4Header::MIN_LEN, 0)),
        }
    }

    #[inline]
    fn parse_v4(bytes: &'a [u8]) -> Result<Self, WireError> {
        let found = bytes.len();
        let Some(fixed) = bytes.first_chunk::<{ Ipv4Header::MIN_LEN }>() else {
            return Err(truncated(Layer::Ipv4, Ipv4Header::MIN_LEN, found));
        };
        let header_len = usize::from(fixed[0] & 0xf) * 4;
        let stated = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < Ipv4Header::MIN_LEN {
            return Err(WireError::Length { layer: Layer::Ipv4, stated: header_len });
        }
        if stated < header_len {
            return Err(WireError::Length { layer: Layer::Ipv4, stated });
        }
        match bytes.get(..stated) {
            Some(bytes) => Ok(Self { bytes, header_len, protocol: fixed[9] }),
            None => Err(truncated(Layer::Ipv4, stated, found)),
        }
    }

    #[inline]
    fn parse_v6(bytes: &'a [u8]) -> Result<Self, WireError> {
        let found = bytes.len();
        let Some(fixed) = bytes.first_chunk::<{ Ipv6Header::LEN }>() else {
            return Err(truncated(Layer::Ipv6, Ipv6Header::LEN, found));
        };
        let stated = Ipv6Header::LEN + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let Some(bytes) = bytes.get(..stated) else {
            return Err(truncated(Layer::Ipv6, stated, found));
        };
        let packet = Self { bytes, header_len: Ipv6Header::LEN, protocol: fixed[6] };
        if packet.has_extension() { packet.skip_extensions() } else { Ok(packet) }
    }

    #[inline]
    fn has_extension(&self) -> bool {
        self.protocol == HOP_BY_HOP || self.protocol == DESTINATION_OPTIONS
    }

    #[cold]
    fn skip_extensions(mut self) -> Result<Self, WireError> {
        // RFC 8200, section 4.3: next header, and the length in 8-byte blocks beyond the first.
        while self.has_extension() {
            let rest = self.payload();
            let expected = rest.get(1).map_or(8, |&units| (usize::from(units) + 1) * 8);
            if rest.len() < expected {
                let length = self.header_len + expected;
                return Err(truncated(Layer::Ipv6, length, self.bytes.len()));
            }
            self.protocol = rest[0];
            self.header_len += expected;
        }
        Ok(self)
    }

    /// The fields of the header.
    #[must_use]
    pub fn header(&self) -> IpHeader {
        let bytes = self.bytes;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        match self.addresses() {
            addresses @ Addresses::V4 { .. } => IpHeader {
                traffic_class: bytes[1],
                hop_limit: bytes[8],
                identification: half(4),
                dont_fragment: bytes[6] & 0x40 != 0,
                ..IpHeader::new(addresses)
            },
            addresses @ Addresses::V6 { .. } => IpHeader {
                traffic_class: (half(0) >> 4) as u8,
                hop_limit: bytes[7],
                flow_label: u32::from(half(0) & 0xf) << 16 | u32::from(half(2)),
                ..IpHeader::new(addresses)
            },
        }
    }
    /// Source and destination.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        if self.is_v4() {
            let (source, destination) = (array::<4>(self.bytes, 12), array::<4>(self.bytes, 16));
            Addresses::V4 { source: source.into(), destination: destination.into() }
        } else {
            let (source, destination) = (array::<16>(self.bytes, 8), array::<16>(self.bytes, 24));
            Addresses::V6 { source: source.into(), destination: destination.into() }
        }
    }
    /// The octets of the destination: 4 or 16.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> &'a [u8] {
        if self.is_v4() { &self.bytes[16..20] } else { &self.bytes[24..40] }
    }
    /// Number of the payload's protocol; 44 for a fragment of IPv6.
    #[inline]
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }
    /// Length of the header including options, in bytes.
    #[inline]
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
    /// The bytes after the header.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }
    /// Whether the packet is a fragment: of IPv4 by its offset or by "more fragments", of IPv6 by
    /// its header.
    #[inline]
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        if self.is_v4() {
            self.bytes[6] & 0x3f != 0 || self.bytes[7] != 0
        } else {
            self.protocol == FRAGMENT
        }
    }

    /// Parses the transport header.
    ///
    /// # Errors
    /// [`WireError::Fragment`], and the errors of [`TcpPacket::parse`] and [`UdpPacket::parse`].
    #[inline]
    pub fn transport(&self) -> Result<Transport<'a>, WireError> {
        if self.is_fragment() {
            return Err(WireError::Fragment);
        }
        Ok(match self.protocol {
            TCP => Transport::Tcp(TcpPacket::parse(self.payload())?),
            UDP => Transport::Udp(UdpPacket::parse(self.payload())?),
            other => Transport::Other(other),
        })
    }

    /// Verifies the checksum of the IPv4 header and that of TCP or UDP.
    ///
    /// # Errors
    /// [`WireError::Checksum`], and the errors of [`Self::transport`].
    pub fn verify(&self) -> Result<(), WireError> {
        if self.is_v4() && checksum::internet(0, &self.bytes[..self.header_len]) != 0 {
            return Err(WireError::Checksum(Layer::Ipv4));
        }
        let (bytes, layer) = match self.transport()? {
            Transport::Tcp(_) => (self.payload(), Layer::Tcp),
            // IPv4 allows datagrams without a checksum; RFC 8200, section 8.1, does not.
            Transport::Udp(datagram) if !datagram.has_checksum() && self.is_v4() => return Ok(()),
            Transport::Udp(datagram) if !datagram.has_checksum() => {
                return Err(WireError::Checksum(Layer::Udp));
            }
            Transport::Udp(datagram) => (datagram.bytes(), Layer::Udp),
            Transport::Other(_) => return Ok(()),
        };
        let pseudo = checksum::pseudo_header(&self.addresses(), self.protocol, bytes.len() as u32);
        if checksum::internet(pseudo, bytes) == 0 {
            Ok(())
        } else {
            Err(WireError::Checksum(layer))
        }
    }

    #[inline]
    fn is_v4(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }
}

/// Extension headers of IPv6 (RFC 8200, section 4).
const HOP_BY_HOP: u8 = 0;
const DESTINATION_OPTIONS: u8 = 60;
const FRAGMENT: u8 = 44;

#[cold]
fn truncated(layer: Layer, expected: usize, found: usize) -> WireError {
    WireError::Truncated { layer, expected, found }
}

/// The `N` octets from `at` on; the caller has verified that they exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
