//! Copies of segments: a router or bridge that is captured on several devices shows each segment
//! once for each of them.

use std::collections::VecDeque;

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};

use crate::CapturedSegment;

/// The latest segments of a sender, without copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    recent: VecDeque<Seen>,
}

/// A segment, and where it was captured.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    device: u32,
    hop_limit: u8,
    numbers: [u32; 2],
    payload: u32,
    flags: Flags,
    window: u16,
    timestamps: Option<(u32, u32)>,
}

/// Longest time between a segment and its copies. A retransmission follows later, apart from those
/// over a very short path; it passes the same devices, by which it is distinguished.
const TIME: Duration = Duration::from_millis(1);

/// Largest number of segments that are compared: those of a burst that passes one device before the
/// next one.
const COMPARED: usize = 64;

impl Copies {
    /// Whether a segment was captured before at another device, or on the other side of a router,
    /// which lowers the hop limit.
    pub(super) fn is_copy(&mut self, segment: &CapturedSegment) -> bool {
        let seen = Seen::new(segment);
        while self.recent.front().is_some_and(|first| seen.at.since(first.at) >= TIME) {
            self.recent.pop_front();
        }
        if self.recent.iter().any(|earlier| seen.is_copy_of(earlier)) {
            return true;
        }
        if self.recent.len() == COMPARED {
            self.recent.pop_front();
        }
        self.recent.push_back(seen);
        false
    }
}

impl Seen {
    const fn new(segment: &CapturedSegment) -> Self {
        Self {
            at: segment.at,
            device: segment.device,
            hop_limit: segment.hop_limit,
            numbers: [segment.seq, segment.ack],
            payload: segment.payload,
            flags: segment.flags,
            window: segment.window,
            timestamps: segment.timestamps,
        }
    }

    fn is_copy_of(&self, earlier: &Self) -> bool {
        (self.device, self.hop_limit) != (earlier.device, earlier.hop_limit)
            && (self.numbers, self.payload) == (earlier.numbers, earlier.payload)
            && (self.flags, self.window) == (earlier.flags, earlier.window)
            && self.timestamps == earlier.timestamps
    }
}
