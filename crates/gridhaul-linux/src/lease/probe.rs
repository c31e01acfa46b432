//! Segments that let a host of an abandoned connection answer, so that the answer is reset.

use std::net::IpAddr;

use super::ProtectedFlow;

/// A frame to send over a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Index of the device in [`Lease::attach`](super::Lease::attach).
    pub interface: usize,
    /// Ethernet frame, with VLAN tags and checksums.
    pub frame: Vec<u8>,
}

impl ProtectedFlow {
    /// A segment from the source with an old sequence number, which the destination answers with an
    /// acknowledgement (RFC 9293, section 3.10.7.4).
    pub(super) fn probe(&self) -> Probe {
        let mut frame = Vec::with_capacity(FRAME_MAX);
        frame.extend_from_slice(&self.hardware[1]);
        frame.extend_from_slice(&self.hardware[0]);
        // The outer tag of two is that of a service provider (IEEE 802.1ad).
        let outer = if self.vlans[1].is_some() { SERVICE_VLAN } else { VLAN };
        for (protocol, vlan) in [(outer, self.vlans[0]), (VLAN, self.vlans[1])] {
            if let Some(vlan) = vlan {
                frame.extend_from_slice(&protocol.to_be_bytes());
                frame.extend_from_slice(&vlan.to_be_bytes());
            }
        }
        let segment = self.segment();
        match self.addresses {
            [IpAddr::V4(source), IpAddr::V4(destination)] => {
                frame.extend_from_slice(&IPV4.to_be_bytes());
                let mut header = [0x45, 0, 0, 40, 0, 0, 0x40, 0, HOP_LIMIT, TCP, 0, 0].to_vec();
                header.extend_from_slice(&source.octets());
                header.extend_from_slice(&destination.octets());
                let sum = checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                frame.extend_from_slice(&header);
            }
            addresses => {
                frame.extend_from_slice(&IPV6.to_be_bytes());
                frame.extend_from_slice(&[0x60, 0, 0, 0, 0, 20, TCP, HOP_LIMIT]);
                addresses.iter().for_each(|address| frame.extend_from_slice(&octets(address)));
            }
        }
        frame.extend_from_slice(&segment);
        Probe { interface: 1 - self.interface, frame }
    }

    /// A TCP header without options and data.
    fn segment(&self) -> Vec<u8> {
        let mut segment = Vec::new();
        segment.extend_from_slice(&self.ports[0].to_be_bytes());
        segment.extend_from_slice(&self.ports[1].to_be_bytes());
        segment.extend_from_slice(&self.seq[0].wrapping_sub(OLD).to_be_bytes());
        segment.extend_from_slice(&[0, 0, 0, 0, 5 << 4, ACK, 0, 0, 0, 0, 0, 0]);
        let mut summed = Vec::new();
        self.addresses.iter().for_each(|address| summed.extend_from_slice(&octets(address)));
        summed.extend_from_slice(&[0, TCP, 0, segment.len() as u8]);
        summed.extend_from_slice(&segment);
        let sum = checksum(&summed);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        segment
    }
}

fn octets(address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The checksum of an even number of bytes (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// EtherTypes.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

/// Bytes of Ethernet, two tags, IPv6 and TCP.
const FRAME_MAX: usize = 14 + 8 + 40 + 20;

const TCP: u8 = 6;
const ACK: u8 = 0x10;
const HOP_LIMIT: u8 = 64;

/// Distance of the sequence number before one that the host had used when the connection was
/// protected. The receiver has moved its window since then by at most the largest window (RFC 7323,
/// section 2.3: 2³⁰ bytes), which is less than half of all numbers: the number is still an old one.
const OLD: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(addresses: [&str; 2], vlans: [Option<u16>; 2]) -> ProtectedFlow {
        ProtectedFlow {
            addresses: addresses.map(|address| address.parse().unwrap()),
            ports: [4_059, 50_000],
            vlans,
            hardware: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            seq: [0, 9],
            interface: 0,
        }
    }

    #[test]
    fn a_probe_goes_to_the_other_side_with_an_old_sequence_number() {
        let Probe { interface, frame } = flow(["10.0.0.1", "10.0.0.2"], [None; 2]).probe();
        assert_eq!((interface, frame.len()), (1, 54));
        assert_eq!(frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], "destination first");
        assert_eq!(checksum(&frame[14..34]), 0);
        assert_eq!(frame[34..38], [0x0f, 0xdb, 0xc3, 0x50], "ports");
        assert_eq!(frame[38..42], [0xff; 4], "the sequence number before 0");
    }

    #[test]
    fn probes_keep_the_tags_of_the_connection() {
        let Probe { frame, .. } = flow(["fd00::1", "fd00::2"], [Some(5), Some(7)]).probe();
        assert_eq!(frame[12..22], [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 0x86, 0xdd]);
        assert_eq!(frame.len(), FRAME_MAX);
        let mut summed = frame[30..62].to_vec();
        summed.extend([0, TCP, 0, 20]);
        summed.extend(&frame[62..]);
        assert_eq!(checksum(&summed), 0);
    }
}
