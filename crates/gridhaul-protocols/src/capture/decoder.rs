//! Messages of protocols that divide or encode them, from the bytes that the receiver reads.

use gridhaul_scenario::units::Instant;

use crate::endpoint::Endpoint;
use crate::settings::DirectKind;

/// A receiver of the protocol that reads the bytes of one direction, and whose answers nobody sees.
/// Bytes of the other direction are not of the sender: they are errors, after which nothing is
/// found.
#[derive(Debug)]
pub(super) struct Decoder {
    kind: DirectKind,
    /// `None` after an error or a gap: what follows has no known start.
    receiver: Option<Box<dyn Endpoint>>,
}

/// A clone is for another connection, from its first byte on.
impl Clone for Decoder {
    fn clone(&self) -> Self {
        Self::new(self.kind)
    }
}

impl Decoder {
    pub(super) fn new(kind: DirectKind) -> Self {
        let [_, mut receiver] = kind.endpoints();
        receiver.open(Instant::ZERO);
        Self { kind, receiver: Some(receiver) }
    }

    /// The messages that are complete with these bytes.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8], at: Instant) -> Vec<Vec<u8>> {
        let Some(receiver) = &mut self.receiver else { return Vec::new() };
        let is_valid = receiver.handle_input(bytes, at).is_ok();
        receiver.poll_output(&mut Vec::new());
        let messages = std::iter::from_fn(|| receiver.poll_message()).collect();
        if !is_valid {
            self.receiver = None;
        }
        messages
    }

    /// Bytes are unknown.
    pub(super) fn handle_gap(&mut self) {
        self.receiver = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iec104;

    /// The bytes of both directions of a conversation with these messages.
    fn conversation(kind: DirectKind, messages: &[Vec<u8>]) -> [Vec<u8>; 2] {
        let mut ends = kind.endpoints();
        ends.iter_mut().for_each(|end| end.open(Instant::ZERO));
        let mut streams = [Vec::new(), Vec::new()];
        let exchange = |ends: &mut [Box<dyn Endpoint>; 2], streams: &mut [Vec<u8>; 2]| {
            for from in [0, 1].repeat(4) {
                let mut bytes = Vec::new();
                ends[from].poll_output(&mut bytes);
                ends[1 - from].handle_input(&bytes, Instant::ZERO).unwrap();
                streams[from].extend(bytes);
            }
        };
        exchange(&mut ends, &mut streams);
        for message in messages {
            ends[0].publish(message, Instant::ZERO).unwrap();
            exchange(&mut ends, &mut streams);
        }
        streams
    }

    #[test]
    fn messages_in_several_frames_are_found_however_the_stream_is_divided() {
        // Several ASDUs (at most 16 objects of four bytes each), and several fragments or objects
        // (254 B).
        let messages: Vec<_> = [16, 132, 700].map(|length| vec![0x55; length]).into();
        for kind in [DirectKind::Iec104(iec104::Window::STANDARD), DirectKind::Dnp3 { poll: None }]
        {
            let [sent, answers] = conversation(kind, &messages);
            for piece in [1, 7, 1_448] {
                let mut decoder = Decoder::new(kind);
                let found: Vec<_> = sent
                    .chunks(piece)
                    .flat_map(|bytes| decoder.handle_bytes(bytes, Instant::ZERO))
                    .collect();
                assert_eq!(found, messages, "{kind:?} in pieces of {piece} B");
            }
            let mut decoder = Decoder::new(kind);
            let (first, rest) = sent.split_at(sent.len() / 2);
            decoder.handle_bytes(first, Instant::ZERO);
            decoder.handle_gap();
            assert!(decoder.handle_bytes(rest, Instant::ZERO).is_empty(), "{kind:?} after a gap");
            let mut decoder = Decoder::new(kind);
            assert!(decoder.handle_bytes(&answers, Instant::ZERO).is_empty(), "{kind:?}");
        }
    }
}
