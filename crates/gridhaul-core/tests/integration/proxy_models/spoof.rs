//! The rules of `Spoof`: a byte within the buffer is stored and forwarded at once, also after a
//! gap; the acknowledgement covers the bytes without a gap; a byte is stored until the next hop
//! acknowledges it, and retransmitted at any time.

use std::ops::Range;

use stateright::Property;

use super::chain::{BUFFER, Chain, Rules, State, contiguous};

/// Bytes before `released` are acknowledged by the next hop; `stored` has a bit for each stored
/// byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Spoofing {
    released: u8,
    stored: u8,
}

impl Rules for Spoofing {
    const KEEPS_BYTES_AFTER_GAP: bool = true;

    fn empty(end: u8) -> Self {
        Self { released: end, stored: 0 }
    }

    fn accept(&mut self, byte: u8) -> bool {
        let fits = (self.released..self.released + BUFFER).contains(&byte);
        self.stored |= u8::from(fits) << byte;
        fits
    }

    fn acknowledges(&self) -> u8 {
        contiguous(self.stored, self.released)
    }

    fn release(&mut self, number: u8, sent: u8) {
        // An acknowledgement of data that was never sent is ignored.
        if number > self.released && sent & (1 << (number - 1)) != 0 {
            self.released = number;
            self.stored &= !0 << number;
        }
    }

    /// A byte is sent when it arrives; a retransmission is the same segment in the model.
    fn sendable(&self) -> Range<u8> {
        0..0
    }

    fn stored(&self) -> u8 {
        self.stored
    }

    fn at_risk(&self) -> Range<u8> {
        self.released..self.acknowledges()
    }

    fn properties() -> Vec<Property<Chain<Self>>> {
        vec![Property::sometimes(
            "a byte arrives before an earlier one",
            |_, state: &State<Self>| state.delivered() == 0 && state.arrived != 0,
        )]
    }
}

#[test]
fn a_crash_loses_only_bytes_at_risk() {
    super::check::<Spoofing>();
}
