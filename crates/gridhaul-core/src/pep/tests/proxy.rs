//! A proxy with its carrier, who keeps the bytes.

use std::ops::Range;

use bytes::Bytes;
use gridhaul_scenario::units::Instant;

use super::Packet;
use crate::pep::{Origin, Payload, Proxy, Side};
use crate::tcp::{Flags, Segment};

/// A proxy and the payload that is kept for it.
pub(super) struct CarriedProxy {
    pub proxy: Box<dyn Proxy>,
    /// Most that the proxy may keep of each direction, in bytes.
    pub limit: u64,
    /// By the side that has sent it.
    stores: [Store; 2],
    /// The segment that has just come in, for a proxy that lets it pass.
    passing: Option<(Side, Packet)>,
}

/// Payload of one direction. It is found by the numbers of the side that it came from.
struct Store {
    payload: Payload,
    /// Initial sequence numbers, as they came in and as they went out.
    came: Option<u32>,
    went: Option<u32>,
}

impl CarriedProxy {
    pub(super) fn new(proxy: Box<dyn Proxy>, limit: u64) -> Self {
        let store = || Store { payload: Payload::new(usize::MAX), came: None, went: None };
        Self { proxy, limit, stores: [store(), store()], passing: None }
    }

    /// Initial sequence numbers of both ends, for a connection without handshake.
    pub(super) fn know(&mut self, isns: [u32; 2]) {
        for (store, isn) in self.stores.iter_mut().zip(isns) {
            (store.came, store.went) = (Some(isn), Some(isn));
        }
    }

    pub(super) fn handle(&mut self, now: Instant, from: Side, packet: Packet) {
        let store = &mut self.stores[from.index()];
        if packet.segment.flags.has(Flags::SYN) {
            store.came = Some(packet.segment.seq);
        }
        if let Some((seq, len)) = self.proxy.accepts(from, &packet.segment) {
            let start = seq.wrapping_sub(first_number(&packet.segment)) as usize;
            let accepted = packet.bytes.slice(start..start + len as usize);
            store.payload.insert(seq, &accepted);
        }
        self.proxy.handle_segment(now, from, &packet.segment);
        self.passing = Some((from, packet));
    }

    /// The next segment that leaves, with its bytes. Call until `None`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Side, Packet)> {
        let Some(out) = self.proxy.poll_transmit(now) else {
            self.passing = None;
            self.let_go();
            return None;
        };
        let from = out.to.other();
        if out.segment.flags.has(Flags::SYN) {
            self.stores[from.index()].went = Some(out.segment.seq);
        }
        let incoming = || {
            let (came, packet) = self.passing.as_ref().expect("a segment has just come in");
            assert_eq!(*came, from, "{out:?}");
            packet
        };
        let bytes = match out.origin {
            Origin::Forwarded => {
                assert_eq!(out.segment, incoming().segment);
                incoming().bytes.clone()
            }
            Origin::Rewritten => {
                let Packet { segment, bytes } = incoming();
                let start = first_number(&out.segment).wrapping_sub(first_number(segment)) as usize;
                bytes.slice(start..start + out.segment.len as usize)
            }
            Origin::Proxy => self.stores[from.index()].bytes_of(&out.segment),
        };
        Some((out.to, Packet { segment: out.segment, bytes }))
    }

    /// Up to where the stream of `from` is kept here without a gap, if the byte at this offset is.
    /// The host's initial sequence number is `isn`.
    pub(super) fn keeps_up_to(&self, from: Side, isn: u32, offset: u64) -> Option<u64> {
        let store = &self.stores[from.index()];
        let first = self.first(from)?;
        let before = self.before(from, isn);
        let held = self.proxy.buffer_status(from);
        let begin = offset.checked_sub(before).filter(|&at| at >= held.released)?;
        let has = |at: &u64| store.payload.read(first.wrapping_add(*at as u32), 1).is_some();
        let kept = (begin..held.acknowledged).take_while(has).count() as u64;
        (kept > 0).then_some(offset + kept)
    }

    /// The bytes of the stream of `from` that are kept here and acknowledged to it.
    pub(super) fn bytes_at_risk(&self, from: Side, isn: u32) -> Range<u64> {
        let (held, before) = (self.proxy.buffer_status(from), self.before(from, isn));
        before + held.released..before + held.acknowledged.max(held.released)
    }

    /// Offset in the stream of the first byte that the proxy counts.
    fn before(&self, from: Side, isn: u32) -> u64 {
        let first = self.proxy.first_sequence_number(from);
        first.map_or(0, |first| u64::from(first.wrapping_sub(isn.wrapping_add(1))))
    }

    fn first(&self, from: Side) -> Option<u32> {
        let behind_syn = self.stores[from.index()].came.map(|isn| isn.wrapping_add(1));
        self.proxy.first_sequence_number(from).or(behind_syn)
    }

    pub(super) fn check(&self) {
        for from in Side::BOTH {
            let held = self.proxy.buffer_status(from);
            assert!(held.bytes <= self.limit, "{held:?} in a buffer of {}", self.limit);
            assert!(held.bytes_at_risk <= held.bytes, "{held:?}");
            // A proxy that ends connections accepts no more than it can hold. One that holds copies
            // alone may not hold all that its carrier keeps for it.
            let kept = self.stores[from.index()].payload.len() as u64;
            let ends = held.acknowledged > held.released;
            assert!(!ends || kept <= self.limit, "{kept} B are kept: {held:?}");
        }
    }

    /// Forgets what the proxy has released.
    fn let_go(&mut self) {
        for from in Side::BOTH {
            let released = self.proxy.buffer_status(from).released as u32;
            let Some(first) = self.first(from) else { continue };
            let kept = first.wrapping_add(released);
            self.stores[from.index()].payload.release_to(kept);
        }
    }
}

impl Store {
    /// The bytes of a segment that the proxy sends: they must be here.
    fn bytes_of(&self, segment: &Segment) -> Bytes {
        let shift = match (self.came, self.went) {
            (Some(came), Some(went)) => came.wrapping_sub(went),
            _ => 0,
        };
        if segment.len == 0 {
            return Bytes::new();
        }
        let (seq, len) = (first_number(segment).wrapping_add(shift), segment.len as usize);
        let slices = self.payload.read(seq, len);
        let slices = slices.unwrap_or_else(|| panic!("sent without having it: {segment:?}"));
        slices.flatten().copied().collect()
    }
}

/// Sequence number of the first payload byte of a segment.
fn first_number(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)))
}
