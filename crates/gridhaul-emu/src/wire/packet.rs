//! What the emulator reads of a packet: between whom it goes, and whether it carries data.

use gridhaul_core::checksum;

use crate::network::{Address, Side};

/// What is known of a packet from its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whose packet it is: the address of the end that it goes to.
    pub to: Address,
    /// Bytes behind the TCP or UDP header.
    pub payload: u32,
    /// Of TCP: the number of the first of them.
    pub seq: u32,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Header {
    /// Reads a packet; `None` where it is no packet of a flow (the kernel's own neighbour
    /// discovery, an error message).
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let (to, protocol, transport) = match packet.first()? >> 4 {
            4 => {
                let length = usize::from(packet[0] & 15) * 4;
                let to = Address::of(packet.get(16..20)?)?;
                (to, *packet.get(9)?, packet.get(length..)?)
            }
            6 => {
                let to = Address::of(packet.get(24..40)?)?;
                (to, *packet.get(6)?, packet.get(40..)?)
            }
            _ => return None,
        };
        let (header, seq) = match protocol {
            TCP => {
                let header = usize::from(*transport.get(12)? >> 4) * 4;
                (header, u32::from_be_bytes(transport.get(4..8)?.try_into().ok()?))
            }
            // UDP, and the echoes of ICMP.
            _ => (8, 0),
        };
        Some(Self { to, payload: transport.len().saturating_sub(header) as u32, seq })
    }

    /// Whether it goes from the `from` end to the `to` end of its flow.
    pub(crate) fn goes_out(&self) -> bool {
        self.to.side == Side::To
    }

    /// A number that the packets of one flow in one direction share.
    pub(crate) fn flow_key(&self) -> u64 {
        let Address { flow, number, .. } = self.to;
        u64::from(flow) << 33 | u64::from(number) << 1 | u64::from(self.goes_out())
    }
}

/// Flips a bit behind the IP header, so that the checksum of TCP or UDP rejects the packet; the IP
/// header stays whole, or the packet would not be delivered anywhere.
pub(crate) fn damage(packet: &mut [u8]) {
    let Some((transport, _)) = transport(packet) else { return };
    // The first byte of the window field in TCP; in a short datagram, the last byte.
    let at = (transport + 14).min(packet.len().saturating_sub(1));
    if let Some(byte) = packet.get_mut(at) {
        *byte ^= 0x10;
    }
}

/// Flips a bit in the last byte of the data and sets the checksum of TCP or UDP right, so that the
/// receiver takes them. A packet without data stays as it is.
pub(crate) fn garble(packet: &mut [u8], payload: u32) {
    let Some((transport, protocol)) = transport(packet).filter(|_| payload > 0) else { return };
    let place = match protocol {
        Some(TCP) => transport + 16,
        Some(UDP) => transport + 6,
        _ => return,
    };
    let Some(&[high, low]) = packet.get(place..place + 2) else { return };
    let old = u16::from_be_bytes([high, low]);
    // Sums are over words of two bytes, the last one filled up with a zero.
    let last = packet.len() - 1;
    let word = last - (last - transport) % 2;
    let value = |packet: &[u8]| {
        u16::from_be_bytes([packet[word], packet.get(word + 1).copied().unwrap_or(0)])
    };
    let before = value(packet);
    packet[last] ^= 0x10;
    let new = match (protocol, old, checksum::adjusted(old, before, value(packet))) {
        // UDP may do without a checksum, and says so by a zero (RFC 768).
        (Some(UDP), 0, _) => 0,
        (Some(UDP), _, 0) => 0xffff,
        (_, _, new) => new,
    };
    packet[place..place + 2].copy_from_slice(&new.to_be_bytes());
}

/// Where the header of TCP or UDP begins, and which of them it is, as far as the packet goes.
fn transport(packet: &[u8]) -> Option<(usize, Option<u8>)> {
    Some(match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 15) * 4, packet.get(9).copied()),
        _ => (40, packet.get(6).copied()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + payload];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[12..20].copy_from_slice(&[10, 2, 0, 7, 10, 3, 0, 7]);
        packet[20 + 4..20 + 8].copy_from_slice(&[1, 2, 3, 4]);
        packet[20 + 12] = 8 << 4;
        packet
    }

    #[test]
    fn options_are_no_payload() {
        let header = Header::read(&tcp(100)).unwrap();
        assert_eq!((header.payload, header.seq), (100, 0x0102_0304));
        assert_eq!(header.to, Address { flow: 1, side: Side::To, number: 6 });
        assert!(header.goes_out());
    }

    #[test]
    fn what_is_cut_short_is_no_packet_of_a_flow() {
        let whole = tcp(0);
        for length in 0..20 + 13 {
            assert_eq!(Header::read(&whole[..length]), None, "{length} bytes");
        }
        let mut foreign = whole;
        foreign[16] = 192;
        assert_eq!(Header::read(&foreign), None);
    }

    #[test]
    fn damage_leaves_the_ip_header_whole() {
        let (mut damaged, whole) = (tcp(5), tcp(5));
        damage(&mut damaged);
        assert_eq!(damaged[..20], whole[..20]);
        let flipped: u32 =
            damaged.iter().zip(&whole).map(|(after, before)| (after ^ before).count_ones()).sum();
        assert_eq!(flipped, 1);
        let mut tiny = vec![0x45; 3];
        damage(&mut tiny);
        damage(&mut []);
    }

    #[test]
    fn garbled_data_has_a_right_checksum() {
        for payload in [1, 2, 5, 100] {
            let mut packet = tcp(payload);
            for (byte, value) in packet[20 + 32..].iter_mut().zip(1..) {
                *byte = value;
            }
            // The addresses do not change, so that the sum without them stands for the whole.
            let right = checksum::internet(0, &packet[20..]);
            packet[36..38].copy_from_slice(&right.to_be_bytes());
            assert_eq!(checksum::internet(0, &packet[20..]), 0);
            let whole = packet.clone();
            garble(&mut packet, payload as u32);
            assert_eq!(checksum::internet(0, &packet[20..]), 0, "{payload} bytes");
            assert_eq!(packet[..36], whole[..36]);
            assert_ne!(packet.last(), whole.last());
        }
    }

    #[test]
    fn without_data_or_whole_headers_nothing_is_garbled() {
        for (mut packet, payload) in [(tcp(0), 0), (vec![0x45; 3], 1), (vec![], 1)] {
            let whole = packet.clone();
            garble(&mut packet, payload);
            assert_eq!(packet, whole);
        }
    }
}
