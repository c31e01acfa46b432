//! Arbitrary bytes as a capture file, and as the records of a valid one: reading ends without
//! panic, and an error names the file and the remedy.

#![no_main]

use std::io::Cursor;

use gridhaul_capture::{CaptureFile, connections_csv, explain};
use libfuzzer_sys::fuzz_target;

/// The header of a capture in nanoseconds with packets that begin with an IP header (link type
/// 101), in Ethernet frames (1), or cooked (113, 276).
fn header(link_type: u16) -> Vec<u8> {
    let mut header = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    header.extend([2, 0, 4, 0]);
    header.extend([0; 8]);
    header.extend(65_535_u32.to_le_bytes());
    header.extend(u32::from(link_type).to_le_bytes());
    header
}

/// A capture whose packets are parts of the bytes: a time step, a length and the packet.
fn records(link_type: u16, mut rest: &[u8]) -> Vec<u8> {
    let mut file = header(link_type);
    let mut nanos = 0_u32;
    while let [step, length, packet @ ..] = rest {
        let (packet, after) = packet.split_at(packet.len().min(usize::from(*length)));
        nanos = (nanos + u32::from(*step) * 1_000_000) % 1_000_000_000;
        let captured = packet.len() as u32;
        for number in [1, nanos, captured, captured] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet);
        rest = after;
    }
    file
}

fn check(bytes: Vec<u8>) {
    match explain(vec![CaptureFile::new("fuzz.pcap", Cursor::new(bytes))], &mut |_| true) {
        Ok(explanation) => {
            for connection in &explanation.connections {
                assert!(!connection.details().is_empty());
                let shares: f64 = connection.shares.limits.iter().map(|(_, share)| share).sum();
                assert!(shares < 1.01, "{shares}");
            }
            let _ = (explanation.text(), connections_csv(&explanation));
        }
        Err(error) => assert!(error.to_string().contains("help: "), "{error}"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes.to_vec());
    if let [kind, rest @ ..] = bytes {
        check(records([101, 1, 113, 276][usize::from(kind % 4)], rest));
    }
});
