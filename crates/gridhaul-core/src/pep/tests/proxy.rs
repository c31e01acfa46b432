//! A proxy and the payload that its caller stores for it.

use std::ops::Range;

use bytes::Bytes;
use gridhaul_scenario::units::Instant;

use super::Packet;
use crate::pep::{Origin, Payload, Proxy, Side};
use crate::tcp::{Flags, Segment};

/// A proxy and the payload that is stored for it.
pub(super) struct ProxyWithPayload {
    pub proxy: Box<dyn Proxy>,
    /// Maximum payload that the proxy may buffer per direction, in bytes.
    pub limit: u64,
    /// By the side that sends the data.
    stores: [Store; 2],
    /// The segment that has just arrived, for a proxy that forwards it.
    incoming: Option<(Side, Packet)>,
}

/// Payload of one direction, indexed by the sequence numbers of its sender.
struct Store {
    payload: Payload,
    /// Initial sequence numbers of the incoming and of the outgoing stream.
    isn_in: Option<u32>,
    isn_out: Option<u32>,
}

impl ProxyWithPayload {
    pub(super) fn new(proxy: Box<dyn Proxy>, limit: u64) -> Self {
        let store = || Store { payload: Payload::new(usize::MAX), isn_in: None, isn_out: None };
        Self { proxy, limit, stores: [store(), store()], incoming: None }
    }

    /// Sets the initial sequence numbers of both hosts, for a connection without handshake.
    pub(super) fn set_isns(&mut self, isns: [u32; 2]) {
        for (store, isn) in self.stores.iter_mut().zip(isns) {
            (store.isn_in, store.isn_out) = (Some(isn), Some(isn));
        }
    }

    pub(super) fn handle(&mut self, now: Instant, from: Side, packet: Packet) {
        let store = &mut self.stores[from.index()];
        if packet.segment.flags.has(Flags::SYN) {
            store.isn_in = Some(packet.segment.seq);
        }
        if let Some((seq, len)) = self.proxy.accepts(from, &packet.segment) {
            let start = seq.wrapping_sub(first_sequence_number(&packet.segment)) as usize;
            let accepted = packet.bytes.slice(start..start + len as usize);
            store.payload.insert(seq, &accepted);
        }
        self.proxy.handle_segment(now, from, &packet.segment);
        self.incoming = Some((from, packet));
    }

    /// The next outgoing segment, with its payload. To be called until `None`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Side, Packet)> {
        let Some(out) = self.proxy.poll_transmit(now) else {
            self.incoming = None;
            self.release();
            return None;
        };
        let from = out.to.other();
        if out.segment.flags.has(Flags::SYN) {
            self.stores[from.index()].isn_out = Some(out.segment.seq);
        }
        let last_incoming = || {
            let (came, packet) = self.incoming.as_ref().expect("a segment has just arrived");
            assert_eq!(*came, from, "{out:?}");
            packet
        };
        let bytes = match out.origin {
            Origin::Forwarded => {
                assert_eq!(out.segment, last_incoming().segment);
                last_incoming().bytes.clone()
            }
            Origin::Rewritten => {
                let Packet { segment, bytes } = last_incoming();
                let start = first_sequence_number(&out.segment)
                    .wrapping_sub(first_sequence_number(segment))
                    as usize;
                bytes.slice(start..start + out.segment.len as usize)
            }
            Origin::Proxy => self.stores[from.index()].bytes_of(&out.segment),
        };
        Some((out.to, Packet { segment: out.segment, bytes }))
    }

    /// End of the contiguous range of the stream of `from` that is stored here and contains
    /// `offset`. The initial sequence number of the host is `isn`.
    pub(super) fn stored_up_to(&self, from: Side, isn: u32, offset: u64) -> Option<u64> {
        let store = &self.stores[from.index()];
        let first = self.first_byte(from)?;
        let before = self.before(from, isn);
        let status = self.proxy.buffer_status(from);
        let begin = offset.checked_sub(before).filter(|&at| at >= status.released)?;
        let has = |at: &u64| store.payload.read(first.wrapping_add(*at as u32), 1).is_some();
        let stored = (begin..status.acknowledged).take_while(has).count() as u64;
        (stored > 0).then_some(offset + stored)
    }

    /// The range of the stream of `from` that is at risk in this proxy.
    pub(super) fn bytes_at_risk(&self, from: Side, isn: u32) -> Range<u64> {
        let (status, before) = (self.proxy.buffer_status(from), self.before(from, isn));
        before + status.released..before + status.acknowledged.max(status.released)
    }

    /// Stream offset of the first byte that the proxy counts.
    fn before(&self, from: Side, isn: u32) -> u64 {
        let first = self.proxy.first_sequence_number(from);
        first.map_or(0, |first| u64::from(first.wrapping_sub(isn.wrapping_add(1))))
    }

    fn first_byte(&self, from: Side) -> Option<u32> {
        let after_syn = self.stores[from.index()].isn_in.map(|isn| isn.wrapping_add(1));
        self.proxy.first_sequence_number(from).or(after_syn)
    }

    pub(super) fn check(&self) {
        for from in Side::BOTH {
            let status = self.proxy.buffer_status(from);
            assert!(status.bytes <= self.limit, "{status:?} in a buffer of {}", self.limit);
            assert!(status.bytes_at_risk <= status.bytes, "{status:?}");
            // A proxy that terminates connections accepts no more than it can buffer. A proxy that
            // only caches segments may cache less than the caller stores for it.
            let stored = self.stores[from.index()].payload.len() as u64;
            let terminates = status.acknowledged > status.released;
            assert!(!terminates || stored <= self.limit, "{stored} B are stored: {status:?}");
        }
    }

    /// Releases the payload that the proxy has released.
    fn release(&mut self) {
        for from in Side::BOTH {
            let released = self.proxy.buffer_status(from).released as u32;
            let Some(first) = self.first_byte(from) else { continue };
            let stored = first.wrapping_add(released);
            self.stores[from.index()].payload.release_to(stored);
        }
    }
}

impl Store {
    /// Payload of a segment that the proxy sends, which must be stored.
    fn bytes_of(&self, segment: &Segment) -> Bytes {
        let shift = match (self.isn_in, self.isn_out) {
            (Some(came), Some(went)) => came.wrapping_sub(went),
            _ => 0,
        };
        if segment.len == 0 {
            return Bytes::new();
        }
        let (seq, len) = (first_sequence_number(segment).wrapping_add(shift), segment.len as usize);
        let slices = self.payload.read(seq, len);
        let slices = slices.unwrap_or_else(|| panic!("the payload of {segment:?} is not stored"));
        slices.flatten().copied().collect()
    }
}

/// Sequence number of the first payload byte of a segment.
fn first_sequence_number(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)))
}
