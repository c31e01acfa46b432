//! A proxy with its carrier, who keeps the bytes.

use std::collections::VecDeque;
use std::ops::Range;

use gridhaul_scenario::units::Instant;

use super::Packet;
use crate::pep::{Proxy, Side};
use crate::tcp::{Flags, Segment};

/// A proxy and the payload that is kept for it.
pub(super) struct Unit {
    pub proxy: Box<dyn Proxy>,
    /// Most that the proxy may keep of each direction, in bytes.
    pub limit: u64,
    /// By the side that has sent it.
    stores: [Store; 2],
    /// The segment that has just come in, for a proxy that lets it pass.
    passing: Option<(Side, Packet)>,
}

/// Bytes by their numbers, some of them missing.
#[derive(Default)]
struct Strip {
    /// Number of the first of `bytes`.
    base: u32,
    bytes: VecDeque<Option<u8>>,
}

/// Payload of one direction. It is found by the numbers of the side that it came from.
#[derive(Default)]
struct Store {
    bytes: Strip,
    /// Initial sequence numbers, as they came in and as they went out.
    came: Option<u32>,
    went: Option<u32>,
}

impl Unit {
    pub(super) fn new(proxy: Box<dyn Proxy>, limit: u64) -> Self {
        Self { proxy, limit, stores: Default::default(), passing: None }
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
        for (&byte, seq) in packet.bytes.iter().zip(numbers(&packet.segment)) {
            store.bytes.insert(seq, byte);
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
        let passing = self.passing.as_ref().filter(|(came, _)| out.passed && *came == from);
        let bytes = match passing {
            Some((_, packet)) => packet.bytes.clone(),
            None => self.stores[from.index()].bytes_of(&out.segment),
        };
        Some((out.to, Packet { segment: out.segment, bytes }))
    }

    /// Up to where the stream of `from` is kept here without a gap, if the byte at this offset is.
    /// The host's initial sequence number is `isn`.
    pub(super) fn keeps_up_to(&self, from: Side, isn: u32, offset: u64) -> Option<u64> {
        let store = &self.stores[from.index()];
        let first = self.first(from)?;
        let before = self.before(from, isn);
        let held = self.proxy.held(from);
        let begin = offset.checked_sub(before).filter(|&at| at >= held.released)?;
        let has = |at: &u64| store.bytes.get(first.wrapping_add(*at as u32)).is_some();
        let kept = (begin..held.taken).take_while(has).count() as u64;
        (kept > 0).then_some(offset + kept)
    }

    /// The bytes of the stream of `from` that are kept here and acknowledged to it.
    pub(super) fn only_copy(&self, from: Side, isn: u32) -> Range<u64> {
        let (held, before) = (self.proxy.held(from), self.before(from, isn));
        before + held.released..before + held.taken.max(held.released)
    }

    /// Offset in the stream of the first byte that the proxy counts.
    fn before(&self, from: Side, isn: u32) -> u64 {
        let first = self.proxy.first(from);
        first.map_or(0, |first| u64::from(first.wrapping_sub(isn.wrapping_add(1))))
    }

    fn first(&self, from: Side) -> Option<u32> {
        let behind_syn = self.stores[from.index()].came.map(|isn| isn.wrapping_add(1));
        self.proxy.first(from).or(behind_syn)
    }

    pub(super) fn check(&self) {
        for from in Side::BOTH {
            let held = self.proxy.held(from);
            assert!(held.bytes <= self.limit, "{held:?} in a buffer of {}", self.limit);
            assert!(held.only_copy <= held.bytes, "{held:?}");
        }
    }

    /// Forgets what the proxy has released.
    fn let_go(&mut self) {
        for from in Side::BOTH {
            let released = self.proxy.held(from).released as u32;
            let Some(first) = self.first(from) else { continue };
            let kept = first.wrapping_add(released);
            self.stores[from.index()].bytes.drop_before(kept);
        }
    }
}

impl Store {
    /// The bytes of a segment that the proxy sends: they must be here.
    fn bytes_of(&self, segment: &Segment) -> Vec<u8> {
        let shift = match (self.came, self.went) {
            (Some(came), Some(went)) => came.wrapping_sub(went),
            _ => 0,
        };
        numbers(segment)
            .map(|seq| {
                let byte = self.bytes.get(seq.wrapping_add(shift));
                byte.unwrap_or_else(|| panic!("sent without having it: {seq} of {segment:?}"))
            })
            .collect()
    }
}

impl Strip {
    /// Puts a byte into its place, if there is none.
    fn insert(&mut self, seq: u32, byte: u8) {
        if self.bytes.is_empty() {
            self.base = seq;
        }
        while self.base.wrapping_sub(seq).cast_signed() > 0 {
            self.bytes.push_front(None);
            self.base = self.base.wrapping_sub(1);
        }
        let at = seq.wrapping_sub(self.base) as usize;
        if at >= self.bytes.len() {
            self.bytes.resize(at + 1, None);
        }
        self.bytes[at].get_or_insert(byte);
    }

    fn get(&self, seq: u32) -> Option<u8> {
        self.bytes.get(seq.wrapping_sub(self.base) as usize).copied().flatten()
    }

    fn drop_before(&mut self, seq: u32) {
        let ahead = seq.wrapping_sub(self.base).cast_signed();
        let count = usize::try_from(ahead).unwrap_or(0).min(self.bytes.len());
        self.bytes.drain(..count);
        self.base = self.base.wrapping_add(count as u32);
    }
}

/// Sequence numbers of the payload of a segment.
fn numbers(segment: &Segment) -> impl Iterator<Item = u32> {
    let first = segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
    (0..segment.len).map(move |offset| first.wrapping_add(offset))
}
