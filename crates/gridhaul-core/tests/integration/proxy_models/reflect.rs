//! The rules of `Reflect`: bytes are accepted in order and within the buffer, acknowledged at once,
//! stored until the next hop acknowledges them, and sent at any time.

use std::ops::Range;

use stateright::Property;

use super::chain::{BUFFER, Chain, Rules, State};

/// Bytes before `accepted` are acknowledged to the previous hop, those before `released` by the
/// next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Reflecting {
    accepted: u8,
    released: u8,
}

impl Rules for Reflecting {
    const KEEPS_BYTES_AFTER_GAP: bool = false;

    fn empty(end: u8) -> Self {
        Self { accepted: end, released: end }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.accepted += u8::from(byte == self.accepted && self.accepted - self.released < BUFFER);
        false
    }

    fn acknowledges(&self) -> u8 {
        self.accepted
    }

    fn release(&mut self, number: u8, _sent: u8) {
        // An acknowledgement of data that was never sent is ignored.
        if number <= self.accepted {
            self.released = self.released.max(number);
        }
    }

    fn sendable(&self) -> Range<u8> {
        self.released..self.accepted
    }

    fn stored(&self) -> u8 {
        self.sendable().fold(0, |bits, byte| bits | 1 << byte)
    }

    fn at_risk(&self) -> Range<u8> {
        self.sendable()
    }

    fn properties() -> Vec<Property<Chain<Self>>> {
        vec![Property::sometimes(
            "a full buffer of the second proxy is lost",
            |_, state: &State<Self>| state.has_lost_full_buffer_of(1),
        )]
    }
}

#[test]
fn a_crash_loses_only_bytes_at_risk() {
    super::check::<Reflecting>();
}
