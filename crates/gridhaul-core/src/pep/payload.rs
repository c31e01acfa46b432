//! Payload of one direction of a connection, stored for a proxy by a caller with real packets.
//!
//! A [`Proxy`](super::Proxy) sees lengths only. Its caller stores the payload that the proxy has
//! accepted ([`Proxy::accepts`](super::Proxy::accepts)), reads it when the proxy sends or
//! retransmits it, and releases it when the next hop has acknowledged it
//! ([`BufferStatus::released`](super::BufferStatus::released)).
//!
//! Chunks are slices of the buffers in which they arrived ([`Bytes`]): nothing is copied on
//! arrival, and a reader gets slices of the same buffers. Short chunks are an exception. They are
//! copied into a common buffer, because a slice keeps its whole buffer alive, and because a sender
//! of single bytes would otherwise cost a hundred bytes of memory for each.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use bytes::{Buf, Bytes, BytesMut};

/// Chunks below this length are copied: the memory to manage a chunk is about as large.
const SHORT: usize = 128;
/// Short chunks are joined up to this length.
const JOINED: usize = 2048;

/// A reassembly buffer: bytes by their sequence numbers, possibly with gaps, up to a limit.
///
/// Sequence numbers wrap. At any time, all of them must lie within 2³¹ of each other, as windows do
/// (RFC 7323, section 2.3).
#[derive(Debug, Clone)]
pub struct Payload {
    /// Chunks by the position of their first byte. They do not overlap, and none is empty.
    chunks: BTreeMap<u64, Bytes>,
    bytes: u32,
    limit: u32,
    /// Everything before this position is released.
    released: u64,
    /// A position from which others are computed. The sequence number of a byte is the lower half
    /// of its position.
    reference: Option<NonZeroU64>,
}

/// Upper half of the first position, so that earlier sequence numbers have a position as well.
const FIRST_POSITION: NonZeroU64 = NonZeroU64::new(1 << 32).unwrap();

impl Payload {
    /// An empty buffer for at most `limit` bytes, and for less than 4 GiB.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        let limit = if limit > u32::MAX as usize { u32::MAX } else { limit as u32 };
        Self { chunks: BTreeMap::new(), bytes: 0, limit, released: 0, reference: None }
    }

    /// Number of stored bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes as usize
    }

    /// Whether no bytes are stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Stores `data`, which begins at this sequence number. Bytes that are stored already are not
    /// overwritten; released bytes and those beyond the limit are ignored. Returns the number of
    /// bytes that were added.
    pub fn insert(&mut self, seq: u32, data: &Bytes) -> usize {
        let begin = self.position(seq);
        let end = begin + data.len() as u64;
        let before = self.bytes;
        let mut at = begin.max(self.released);
        while at < end && self.bytes < self.limit {
            if let Some(stored_to) = self.stored_to(at) {
                at = stored_to;
                continue;
            }
            let gap_end = self.chunks.range(at..).next().map_or(end, |(&start, _)| start.min(end));
            let free = u64::from(self.limit - self.bytes);
            let part_end = gap_end.min(at.saturating_add(free));
            self.add(at, data.slice((at - begin) as usize..(part_end - begin) as usize));
            at = part_end;
        }
        (self.bytes - before) as usize
    }

    /// The `len` bytes from this sequence number on, in slices; `None` unless all of them are
    /// stored.
    #[must_use]
    pub fn read(&self, seq: u32, len: usize) -> Option<impl Iterator<Item = &[u8]>> {
        let begin = closest_position(self.reference?, seq);
        let end = begin + len as u64;
        let mut at = begin;
        while at < end {
            at = self.stored_to(at)?;
        }
        let first = self.chunks.range(..=begin).next_back().map_or(begin, |(&start, _)| start);
        Some(self.chunks.range(first..end).map(move |(&start, chunk)| {
            let from = begin.saturating_sub(start).min(chunk.len() as u64) as usize;
            let to = (end - start).min(chunk.len() as u64) as usize;
            &chunk[from..to.max(from)]
        }))
    }

    /// Discards all bytes before this sequence number, and ignores them from now on.
    pub fn release_to(&mut self, seq: u32) {
        let position = self.position(seq);
        if position <= self.released {
            return;
        }
        self.released = position;
        while let Some(mut entry) = self.chunks.first_entry() {
            let start = *entry.key();
            let ahead = position.saturating_sub(start).min(entry.get().len() as u64) as usize;
            if ahead == 0 {
                break;
            }
            self.bytes -= ahead as u32;
            if ahead == entry.get().len() {
                entry.remove();
                continue;
            }
            let mut rest = entry.get_mut().split_off(0);
            entry.remove();
            rest.advance(ahead);
            self.chunks.insert(position, rest);
        }
        if self.chunks.is_empty() {
            // An emptied map keeps a node of several hundred bytes.
            self.chunks = BTreeMap::new();
        }
    }

    /// The position of a sequence number, which becomes the reference for the next one.
    fn position(&mut self, seq: u32) -> u64 {
        let reference = self.reference.unwrap_or(FIRST_POSITION | u64::from(seq));
        let position = closest_position(reference, seq);
        self.reference = NonZeroU64::new(position);
        position
    }

    /// End of the chunk that contains this position.
    fn stored_to(&self, position: u64) -> Option<u64> {
        let (start, chunk) = self.chunks.range(..=position).next_back()?;
        let end = start + chunk.len() as u64;
        (position < end).then_some(end)
    }

    /// Adds a chunk that does not overlap another.
    fn add(&mut self, position: u64, data: Bytes) {
        self.bytes += data.len() as u32;
        if data.len() >= SHORT {
            self.chunks.insert(position, data);
            return;
        }
        let before = self.chunks.range_mut(..position).next_back();
        let neighbour = before.filter(|(start, chunk)| {
            **start + chunk.len() as u64 == position && chunk.len() + data.len() <= JOINED
        });
        let Some((_, chunk)) = neighbour else {
            self.chunks.insert(position, Bytes::copy_from_slice(&data));
            return;
        };
        // Extends the buffer of the chunk if it is not shared and has capacity left.
        let mut joined = std::mem::take(chunk).try_into_mut().unwrap_or_else(|shared| {
            let mut copy = BytesMut::with_capacity(JOINED);
            copy.extend_from_slice(&shared);
            copy
        });
        joined.extend_from_slice(&data);
        *chunk = joined.freeze();
    }
}

/// The position of a sequence number that is closest to another position.
fn closest_position(reference: NonZeroU64, seq: u32) -> u64 {
    let reference = reference.get();
    let distance = seq.wrapping_sub(reference as u32).cast_signed();
    reference.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Operation {
        Insert(u64, Vec<u8>),
        Release(u64),
        Read(u64, usize),
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let length = prop_oneof![3 => 0..12_usize, 1 => 0..400_usize];
        let data = prop_oneof![0..12_usize, 0..400_usize]
            .prop_flat_map(|len| prop::collection::vec(any::<u8>(), len));
        let operation = prop_oneof![
            6 => (0..1_500_u64, data).prop_map(|(at, data)| Operation::Insert(at, data)),
            1 => (0..1_500_u64).prop_map(Operation::Release),
            2 => (0..1_500_u64, length).prop_map(|(at, len)| Operation::Read(at, len)),
        ];
        prop::collection::vec(operation, 0..80)
    }

    fn joined(payload: &Payload, seq: u32, len: usize) -> Option<Vec<u8>> {
        payload.read(seq, len).map(|slices| slices.flatten().copied().collect())
    }

    proptest! {
        /// Compares the buffer with a map that has one entry for each byte.
        #[test]
        fn buffer_agrees_with_a_map_of_bytes(
            operations in operations(),
            isn: u32,
            limit in prop_oneof![Just(usize::MAX), 0..900_usize],
        ) {
            let (mut payload, mut map) = (Payload::new(limit), BTreeMap::new());
            let mut released = 0;
            let seq = |at: u64| isn.wrapping_add(at as u32);
            for operation in operations {
                match operation {
                    Operation::Insert(at, data) => {
                        let before = map.len();
                        for (at, &byte) in (at..).zip(&data) {
                            if at >= released && map.len() < limit {
                                map.entry(at).or_insert(byte);
                            }
                        }
                        let added = payload.insert(seq(at), &data.into());
                        prop_assert_eq!(added, map.len() - before);
                    }
                    Operation::Release(at) => {
                        released = released.max(at);
                        map.retain(|&at, _| at >= released);
                        payload.release_to(seq(at));
                    }
                    Operation::Read(at, len) => {
                        let bytes = (at..at + len as u64).map(|at| map.get(&at).copied());
                        let expected: Option<Vec<u8>> = bytes.collect();
                        let read = joined(&payload, seq(at), len);
                        // Without a first sequence number, an empty read returns `None`.
                        prop_assert!(read == expected || len == 0, "{:?} {:?}", read, expected);
                    }
                }
                prop_assert_eq!(payload.len(), map.len());
                prop_assert_eq!(payload.is_empty(), map.is_empty());
                prop_assert!(payload.len() <= limit);
            }
        }
    }

    #[test]
    fn full_segments_are_not_copied() {
        let mut payload = Payload::new(usize::MAX);
        let segment = Bytes::from(vec![7; 1_460]);
        payload.insert(u32::MAX - 99, &segment);
        let slices: Vec<&[u8]> = payload.read(u32::MAX - 99, 1_460).unwrap().collect();
        assert_eq!(slices[0].as_ptr(), segment.as_ptr());
        // Acknowledged up to the middle: the rest is still read from the same buffer.
        payload.release_to(400);
        let rest: Vec<&[u8]> = payload.read(400, 960).unwrap().collect();
        assert_eq!((rest.len(), rest[0].as_ptr()), (1, segment[500..].as_ptr()));
        assert_eq!(payload.len(), 960);
        assert!(payload.read(399, 2).is_none());
    }

    #[test]
    fn single_bytes_are_joined_into_chunks() {
        let mut payload = Payload::new(10_000);
        for at in 0..5_000_u32 {
            payload.insert(at, &Bytes::from(vec![at as u8]));
        }
        assert_eq!((payload.len(), payload.chunks.len()), (5_000, 3));
    }

    #[test]
    fn short_chunks_are_joined_up_to_2048_bytes() {
        let mut payload = Payload::new(10_000);
        for at in 0..40 {
            payload.insert(100 * at, &Bytes::from(vec![at as u8; 100]));
        }
        let joined: Vec<usize> = payload.chunks.values().map(Bytes::len).collect();
        assert_eq!(joined, [2_000, 2_000]);
    }
}
