//! Captures that begin after the handshake, so that their place is unknown.

use gridhaul_capture::{Limit, Position};

use crate::causes::{RECEIVER, SENDER, case};
use crate::support::{captures, explained, simulate};

/// A capture file (pcapng) without its first packets.
pub(crate) fn without_first(file: &[u8], packets: usize) -> Vec<u8> {
    let (mut kept, mut rest, mut dropped) = (Vec::new(), file, 0);
    while !rest.is_empty() {
        let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let (is_packet, length) = (number(0) == 6, number(4) as usize);
        let (block, after) = rest.split_at(length);
        if is_packet && dropped < packets {
            dropped += 1;
        } else {
            kept.extend(block);
        }
        rest = after;
    }
    kept
}

#[test]
fn without_the_handshake_no_limit_is_named_wrongly() {
    let limits = [Limit::ReceiveWindow, Limit::LinkRate, Limit::Loss, Limit::Application];
    let mut named = 0;
    for (seed, limit) in (300..303).flat_map(|seed| limits.map(|limit| (seed, limit))) {
        for point in [SENDER, RECEIVER] {
            let answer = simulate(&case(limit, seed).scenario);
            let files = captures(&answer, point);
            let files = files.iter().map(|file| without_first(file, 4)).collect();
            let found = explained(files).connections.swap_remove(0);
            let text = format!("{limit:?} with seed {seed} at {point:?}: {}", found.details());
            assert_eq!(found.position, Position::Unknown, "{text}");
            assert!(found.verdict.limit.is_none_or(|named| named == limit), "{text}");
            named += usize::from(found.verdict.limit.is_some());
        }
    }
    assert!(named > 0, "no limit was named");
}
