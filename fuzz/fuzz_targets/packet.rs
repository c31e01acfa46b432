//! Arbitrary bytes as a packet: parsing never panics, a parsed packet is written and parsed again
//! to the same value, and the checksum of a packet that is rewritten in place stays correct.

#![no_main]

use gridhaul_core::wire::{
    EthernetFrame, IpPacket, PacketRewriter, Payload, Transport, UnknownOptions, write_tcp,
    write_udp,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = UnknownOptions::new(bytes);
    check_ip(bytes);
    let Ok(frame) = EthernetFrame::parse(bytes) else { return };
    let mut written = Vec::new();
    frame.header.write(&mut written);
    written.extend_from_slice(frame.payload);
    assert_eq!(EthernetFrame::parse(&written), Ok(frame));
    check_ip(frame.payload);
});

fn check_ip(bytes: &[u8]) {
    // A packet that cannot be parsed cannot be rewritten either.
    let is_rejected = PacketRewriter::parse(&mut bytes.to_vec()).is_err();
    let Ok(ip) = IpPacket::parse(bytes) else {
        assert!(is_rejected);
        return;
    };
    let _ = ip.verify();
    let mut written = Vec::new();
    match ip.transport() {
        Ok(Transport::Tcp(tcp)) => {
            let Ok(header) = tcp.header() else { return };
            let payload = Payload::Bytes(tcp.payload());
            // Padding of options may make a packet exceed the maximum length.
            if write_tcp(&mut written, &ip.header(), &header, payload).is_err() {
                assert!(bytes.len() > 65_000);
                return;
            }
            let again = parsed(&written);
            let Ok(Transport::Tcp(same)) = again.transport() else { panic!("{again:?}") };
            assert_eq!((same.header(), same.payload()), (Ok(header), tcp.payload()));
            assert_eq!(again.header(), ip.header());
        }
        Ok(Transport::Udp(udp)) => {
            let payload = Payload::Bytes(udp.payload());
            write_udp(&mut written, &ip.header(), &udp.header(), payload)
                .expect("the payload fits");
            let again = parsed(&written);
            let Ok(Transport::Udp(same)) = again.transport() else { panic!("{again:?}") };
            assert_eq!((same.header(), same.payload()), (udp.header(), udp.payload()));
            assert_eq!(again.header(), ip.header());
        }
        Ok(Transport::Other(_)) | Err(_) => {
            assert!(is_rejected);
            return;
        }
    }
    rewrite(&mut written, bytes);
    parsed(&written);
}

/// Parses a packet that the codec has written, and verifies its checksums.
fn parsed(written: &[u8]) -> IpPacket<'_> {
    let ip = IpPacket::parse(written).expect("a written packet can be parsed");
    assert_eq!(ip.verify(), Ok(()));
    ip
}

fn rewrite(packet: &mut [u8], random: &[u8]) {
    let (kind, value) = (random[random.len() - 1], random[random.len() / 2]);
    let mut rewriter = PacketRewriter::parse(packet).expect("TCP or UDP");
    rewriter.set_source_port(u16::from_be_bytes([kind, value]));
    let number = u32::from_be_bytes([value, kind, value, value]);
    if rewriter.set_seq(number).is_ok() {
        rewriter.set_window(u16::from_be_bytes([value, kind])).expect("the packet is TCP");
        let _ = rewriter.set_option(8, &[value; 8]);
        let _ = rewriter.remove_option(kind);
    }
    if let Some(last) = rewriter.payload().len().checked_sub(1) {
        rewriter.set_payload(last, &[value]);
    }
}
