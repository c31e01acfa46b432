//! What the emulator reads of a packet: between whom it goes, and whether it carries data.

use crate::network::{Address, Side};

/// What is known of a packet from its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whose packet it is: the address of the end that it goes to.
    pub to: Address,
    /// Bytes behind the TCP or UDP header.
    pub payload: u32,
}

const TCP: u8 = 6;

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
        let header = match protocol {
            TCP => usize::from(*transport.get(12)? >> 4) * 4,
            // UDP, and the echoes of ICMP.
            _ => 8,
        };
        Some(Self { to, payload: transport.len().saturating_sub(header) as u32 })
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
    let header = match packet.first().map(|first| first >> 4) {
        Some(4) => usize::from(packet[0] & 15) * 4,
        _ => 40,
    };
    // The first byte of the window field in TCP; in a short datagram, the last byte.
    let at = (header + 14).min(packet.len().saturating_sub(1));
    if let Some(byte) = packet.get_mut(at) {
        *byte ^= 0x10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + payload];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[12..20].copy_from_slice(&[10, 2, 0, 7, 10, 3, 0, 7]);
        packet[20 + 12] = 8 << 4;
        packet
    }

    #[test]
    fn options_are_no_payload() {
        let header = Header::read(&tcp(100)).unwrap();
        assert_eq!(header.payload, 100);
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
}
