//! Headers of packets as they are on a link: IPv4 or IPv6, then TCP or UDP.

use std::net::IpAddr;

use gridhaul_core::checksum;
use gridhaul_core::tcp::{ClockOption, Flags, OneWayDelay, Segment};

/// Addresses and ports of a packet. Both addresses are of one version of IP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub source: IpAddr,
    pub target: IpAddr,
    /// Of the source and of the target.
    pub ports: (u16, u16),
}

/// Headers of a packet, and the length of the whole packet that they state.
pub(super) type Headers = (Vec<u8>, u32);

/// Headers of a TCP segment.
pub(super) fn tcp(ends: &Ends, segment: &Segment) -> Headers {
    let options = tcp_options(segment);
    let header_len = 20 + options.len();
    let mut header = Vec::with_capacity(header_len);
    header.extend(ends.ports.0.to_be_bytes());
    header.extend(ends.ports.1.to_be_bytes());
    header.extend(segment.seq.to_be_bytes());
    let ack = if segment.flags.has(Flags::ACK) { segment.ack } else { 0 };
    header.extend(ack.to_be_bytes());
    header.extend([(header_len as u8 / 4) << 4, segment.flags.bits()]);
    // The window of a SYN is never scaled (RFC 7323, section 2.2).
    let scale = if segment.flags.has(Flags::SYN) { 0 } else { WINDOW_SCALE };
    header.extend(((segment.window >> scale).min(65_535) as u16).to_be_bytes());
    header.extend([0; 4]);
    header.extend(options);
    let checksum = transport_checksum(ends, TCP, &header, segment.len);
    header[16..18].copy_from_slice(&checksum.to_be_bytes());
    with_ip(ends, TCP, header, segment.len)
}

/// Headers of a datagram with so many bytes of data.
pub(super) fn udp(ends: &Ends, data: u32) -> Headers {
    let mut header = Vec::with_capacity(8);
    header.extend(ends.ports.0.to_be_bytes());
    header.extend(ends.ports.1.to_be_bytes());
    header.extend(((data + 8).min(65_535) as u16).to_be_bytes());
    header.extend([0, 0]);
    // A checksum of zero means that there is none, which IPv6 forbids (RFC 8200, section 8.1).
    let checksum = match transport_checksum(ends, UDP, &header, data) {
        0 => 0xffff,
        checksum => checksum,
    };
    header[6..8].copy_from_slice(&checksum.to_be_bytes());
    with_ip(ends, UDP, header, data)
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Shift of the windows in a capture (RFC 7323, section 2): room for 8 MB.
const WINDOW_SCALE: u8 = 7;

fn tcp_options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if segment.flags.has(Flags::SYN) {
        options.extend([3, 3, WINDOW_SCALE, 1]);
        if segment.sack_permitted {
            options.extend([4, 2, 1, 1]);
        }
    }
    if let Some((value, echo)) = segment.timestamps {
        match segment.clock {
            ClockOption::Timestamps => options.extend([1, 1, 8, 10]),
            ClockOption::OneWayDelay => {
                options.extend([OneWayDelay::KIND, OneWayDelay::LEN]);
                options.extend(OneWayDelay::IDENTIFIER.to_be_bytes());
            }
        }
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            options.extend(left.to_be_bytes());
            options.extend(right.to_be_bytes());
        }
    }
    options
}

/// The checksum of TCP or UDP, whose field in `header` is zero. A simulation has no data: the checksum is
/// that of zeros, which add nothing to the sum.
fn transport_checksum(ends: &Ends, protocol: u8, header: &[u8], data: u32) -> u16 {
    let length = header.len() as u32 + data;
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
    };
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => words(&address.octets()),
        IpAddr::V6(address) => words(&address.octets()),
    };
    // The pseudo header: RFC 9293, section 3.1 (IPv4); RFC 8200, section 8.1 (IPv6).
    let pseudo = address(ends.source)
        + address(ends.target)
        + u32::from(protocol)
        + words(&length.to_be_bytes());
    checksum::internet(pseudo, header)
}

/// Puts the IP header before that of the transport.
fn with_ip(ends: &Ends, protocol: u8, transport: Vec<u8>, data: u32) -> Headers {
    let payload = transport.len() as u32 + data;
    let stated = |length: u32| (length.min(65_535) as u16).to_be_bytes();
    let mut packet = Vec::with_capacity(40 + transport.len());
    match (ends.source, ends.target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            packet.extend([0x45, 0]);
            packet.extend(stated(20 + payload));
            packet.extend([0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(target.octets());
            let checksum = checksum::internet(0, &packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        (source, target) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend(stated(payload));
            packet.extend([protocol, HOPS]);
            packet.extend(octets(source));
            packet.extend(octets(target));
        }
    }
    let whole = packet.len() as u32 + payload;
    packet.extend(transport);
    (packet, whole)
}

/// Time to live, or hop limit.
const HOPS: u8 = 64;

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [&str; 2] = ["10.0.0.1", "10.1.255.254"];
    const ENDS_V6: [&str; 2] = ["fd67:7269:6468::1", "fd67:7269:6468:1::2"];

    fn ends([source, target]: [&str; 2]) -> Ends {
        Ends { source: source.parse().unwrap(), target: target.parse().unwrap(), ports: (1024, 7) }
    }

    #[test]
    fn delays_have_an_option_of_their_own() {
        let timestamps = Some((0x0102_0304, 0x0506_0708));
        let segment = Segment { timestamps, ..Segment::default() };
        let medx = Segment { clock: ClockOption::OneWayDelay, ..segment };
        // RFC 7323: kind 8, length 10, behind two bytes of padding. RFC 6994: kind 253, length 12,
        // identifier of the experiment.
        assert_eq!(tcp_options(&segment), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(tcp_options(&medx), [253, 12, 0x4d, 0x58, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn each_version_of_ip_has_its_header() {
        let segment = Segment { len: 100, ..Segment::default() };
        let (packet, whole) = tcp(&ends(ENDS), &segment);
        assert_eq!((packet.len(), whole, packet[0]), (40, 140, 0x45));
        assert_eq!(packet[2..4], [0, 140], "total length");
        assert_eq!((packet[9], checksum::internet(0, &packet[..20])), (TCP, 0));
        let (packet, whole) = tcp(&ends(ENDS_V6), &segment);
        assert_eq!((packet.len(), whole, packet[0]), (60, 160, 0x60));
        assert_eq!(packet[4..8], [0, 120, TCP, 64], "payload length, next header, hop limit");
        assert_eq!(packet[8..14], [0xfd, 0x67, 0x72, 0x69, 0x64, 0x68]);
    }

    /// RFC 1071: whoever adds up everything, the checksum and the zeros of the data included, gets nothing.
    #[test]
    fn checksums_hold_for_data_of_zeros() {
        for both in [ENDS, ENDS_V6].map(ends) {
            let segment = Segment { seq: 0x89ab_cdef, len: 33, ..Segment::default() };
            for (protocol, (packet, whole)) in
                [(TCP, tcp(&both, &segment)), (UDP, udp(&both, 33)), (UDP, udp(&both, 65_000))]
            {
                let ip = if both.source.is_ipv4() { 20 } else { 40 };
                let mut bytes = Vec::new();
                match (both.source, both.target) {
                    (IpAddr::V4(a), IpAddr::V4(b)) => {
                        bytes.extend([a.octets(), b.octets()].concat());
                    }
                    (a, b) => bytes.extend([octets(a), octets(b)].concat()),
                }
                bytes.extend((whole - ip).to_be_bytes());
                bytes.extend([0, 0, 0, protocol]);
                bytes.extend(&packet[ip as usize..]);
                bytes.resize(bytes.len() + (whole as usize - packet.len()), 0);
                assert_eq!(checksum::internet(0, &bytes), 0, "{both:?} {protocol}");
            }
        }
    }
}
