//! Messages in a stream of bytes.

use gridhaul_scenario::units::Instant;
use memchr::memmem;

use super::decoder::Decoder;
use crate::message_header::{HEADER_BYTES, Header, SEQUENCE};
use crate::settings::DirectKind;

/// Bytes of a header up to the end of the sequence number, by which the start of a message is
/// recognised.
const IDENTIFIER: usize = SEQUENCE.end;

/// Finds messages in the bytes of one direction of a connection. What a protocol puts between
/// messages is skipped; the bytes of a protocol that divides or encodes messages are decoded first.
#[derive(Debug, Clone)]
pub struct MessageScanner {
    run: u32,
    /// Messages of the run: larger sequence numbers are no messages.
    total: u64,
    /// Bytes of each message.
    bytes: usize,
    /// Bytes that may belong to a message that is incomplete.
    pending: Vec<u8>,
    decoder: Option<Decoder>,
}

impl MessageScanner {
    /// Finds the messages of a run, which all have this length.
    #[must_use]
    pub fn new(run: u32, total: u64, bytes: usize) -> Self {
        Self { run, total, bytes: bytes.max(HEADER_BYTES), pending: Vec::new(), decoder: None }
    }

    /// The same scanner for the connections of a protocol that divides or encodes messages, from
    /// their first byte on.
    #[must_use]
    pub fn decoding(self, kind: DirectKind) -> Self {
        Self { decoder: Some(Decoder::new(kind)), ..self }
    }

    /// The next bytes of the stream, complete since `at`. Calls `found` for each message that they
    /// complete.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        at: Instant,
        found: &mut impl FnMut(u64, Instant),
    ) {
        if let Some(decoder) = &mut self.decoder {
            for message in decoder.handle_bytes(bytes, at) {
                self.handle_datagram(&message, &mut |sequence| found(sequence, at));
            }
            return;
        }
        if self.pending.is_empty() {
            let rest = self.scan(bytes, &mut |sequence| found(sequence, at));
            self.pending.extend_from_slice(&bytes[rest..]);
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let rest = self.scan(&pending, &mut |sequence| found(sequence, at));
        pending.drain(..rest);
        self.pending = pending;
    }

    /// Bytes of the stream are unknown: a message that has begun is not found.
    pub fn handle_gap(&mut self) {
        self.pending.clear();
        self.decoder.iter_mut().for_each(Decoder::handle_gap);
    }

    /// Calls `found` for each message in the bytes of a datagram.
    pub fn handle_datagram(&self, bytes: &[u8], found: &mut impl FnMut(u64)) {
        self.scan(bytes, found);
    }

    /// Calls `found` for each complete message, and returns the position from which on a message
    /// may be incomplete.
    fn scan(&self, bytes: &[u8], found: &mut impl FnMut(u64)) -> usize {
        let run = self.run.to_be_bytes();
        let mut at = 0;
        while let Some(distance) = memmem::find(&bytes[at..], &run) {
            at += distance;
            let rest = &bytes[at..];
            if rest.len() < IDENTIFIER {
                return at;
            }
            let begins = self.sequence(rest).is_some_and(|sequence| sequence < self.total);
            if begins && rest.len() < self.bytes {
                return at;
            }
            let header = begins.then(|| Header::read(&rest[..self.bytes], self.run));
            at += match header {
                Some(Ok(header)) => {
                    found(header.sequence);
                    self.bytes
                }
                // The number of the run has occurred by chance, or the message is corrupt.
                _ => 1,
            };
        }
        // The last bytes may be the first ones of a run number.
        at.max(bytes.len().saturating_sub(run.len() - 1))
    }

    fn sequence(&self, bytes: &[u8]) -> Option<u64> {
        bytes.get(SEQUENCE)?.first_chunk().map(|sequence| u64::from_be_bytes(*sequence))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUN: u32 = 0x6d65_6173;
    const BYTES: usize = 40;

    fn message(sequence: u64) -> Vec<u8> {
        let mut message = vec![0x33; BYTES];
        Header { run: RUN, sequence }.write(&mut message);
        message
    }

    /// Sequence numbers that are found in pieces of a stream, with the number of the piece as time.
    fn found(pieces: &[&[u8]]) -> Vec<(u64, u64)> {
        let mut scanner = MessageScanner::new(RUN, 1_000, BYTES);
        let mut found = Vec::new();
        for (number, piece) in (0..).zip(pieces) {
            let at = Instant::from_nanos(number);
            scanner
                .handle_bytes(piece, at, &mut |sequence, at| found.push((sequence, at.as_nanos())));
        }
        found
    }

    #[test]
    fn a_message_has_the_time_of_its_last_byte() {
        let stream = [&[0x30, 50][..], &message(7), &[1, 2, 3], &message(8)].concat();
        assert_eq!(found(&[&stream]), [(7, 0), (8, 0)]);
        let last_of_first = 2 + BYTES;
        let (first, second) = stream.split_at(last_of_first - 1);
        assert_eq!(found(&[first, &second[..1], &second[1..]]), [(7, 1), (8, 2)]);
    }

    #[test]
    fn other_runs_corrupt_messages_and_large_numbers_are_not_found() {
        let mut foreign = vec![0x33; BYTES];
        Header { run: 1, sequence: 3 }.write(&mut foreign);
        let mut corrupt = message(4);
        corrupt[BYTES - 1] ^= 1;
        let stream = [foreign, corrupt, message(1_000), message(5)].concat();
        assert_eq!(found(&[&stream]), [(5, 0)]);
    }

    #[test]
    fn after_a_gap_the_next_complete_message_is_found() {
        let mut scanner = MessageScanner::new(RUN, 1_000, BYTES);
        let mut found = Vec::new();
        scanner.handle_bytes(&message(1)[..30], Instant::ZERO, &mut |sequence, _| {
            found.push(sequence);
        });
        scanner.handle_gap();
        assert!(scanner.pending.is_empty(), "the incomplete message is forgotten");
        scanner.handle_bytes(&message(2), Instant::ZERO, &mut |sequence, _| found.push(sequence));
        assert_eq!(found, [2]);
    }

    proptest! {
        #[test]
        fn every_message_is_found_however_the_stream_is_divided(
            gaps in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut stream = Vec::new();
            for (sequence, gap) in (0..).zip(&gaps) {
                stream.extend(gap);
                stream.extend(message(sequence));
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            let found = found(&pieces);
            let sequences: Vec<_> = found.iter().map(|(sequence, _)| *sequence).collect();
            prop_assert_eq!(sequences, (0..gaps.len() as u64).collect::<Vec<_>>());
        }
    }
}
