//! MSS clamping: routers lower the maximum segment size that hosts offer.

use super::{IpPacket, PacketRewriter, Transport};

/// Kind of the option "maximum segment size" (RFC 9293, section 3.1).
const MSS: u8 = 2;

/// Lowers the maximum segment size that a SYN segment offers to `limit`. Other packets, and SYN
/// segments with a smaller size or none, stay unchanged.
pub fn clamp_mss(packet: &mut [u8], limit: u16) {
    let offered = IpPacket::parse(packet).ok().and_then(|ip| match ip.transport() {
        Ok(Transport::Tcp(segment)) => segment.header().ok()?.options.mss,
        _ => None,
    });
    if offered.is_some_and(|offered| offered > limit)
        && let Ok(mut rewriter) = PacketRewriter::parse(packet)
    {
        // The option has just been found.
        let _ = rewriter.set_option(MSS, &limit.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Flags;
    use crate::wire::{Addresses, IpHeader, Payload, TcpHeader, TcpOptions, write_tcp};

    fn syn(mss: Option<u16>) -> Vec<u8> {
        let addresses =
            Addresses::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
        let options = TcpOptions { mss, timestamps: Some((1, 0)), ..TcpOptions::default() };
        let tcp = TcpHeader { flags: Flags::SYN, options, ..TcpHeader::default() };
        let mut packet = Vec::new();
        write_tcp(&mut packet, &IpHeader::new(addresses), &tcp, Payload::Bytes(&[])).unwrap();
        packet
    }

    #[test]
    fn only_larger_sizes_are_lowered_and_the_checksum_stays_correct() {
        for (offered, expected) in
            [(Some(1_460), Some(1_360)), (Some(536), Some(536)), (None, None)]
        {
            let mut packet = syn(offered);
            clamp_mss(&mut packet, 1_360);
            assert_eq!(packet, syn(expected));
        }
        let mut other = vec![0x45, 0, 0];
        clamp_mss(&mut other, 1_360);
        assert_eq!(other, [0x45, 0, 0]);
    }
}
