//! Round trips between the point of the capture and the receiver, and the queueing delay in them.

use gridhaul_scenario::units::Duration;

use super::FirstPackets;

/// Round trips of a direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrips {
    /// From the point of the capture to the receiver and back, from the handshake.
    pub(crate) handshake: Option<HandshakeRoundTrip>,
    /// Of full-sized segments.
    pub(crate) full: Smallest,
    /// Of shorter segments.
    pub(crate) short: Smallest,
    /// Of the first packets.
    pub(crate) first: FirstPackets,
    /// Bytes of the smallest segment that only acknowledges.
    pub(crate) acknowledgement: Option<u32>,
    /// Number of samples.
    pub(crate) samples: u64,
    pub(crate) sum_s: f64,
}

/// A round trip of the handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandshakeRoundTrip {
    pub(crate) time: Duration,
    /// Bytes of each of its packets.
    pub(crate) bytes: u32,
}

/// The smallest round trips of segments of similar size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Smallest {
    /// The two smallest.
    pub(crate) times: [Option<Duration>; 2],
    /// Bytes on the link of the segment with the smallest.
    pub(crate) bytes: u32,
}

impl Smallest {
    pub(crate) fn add(&mut self, time: Duration, bytes: u32) {
        match self.times {
            [None, _] => (self.times[0], self.bytes) = (Some(time), bytes),
            [Some(first), _] if time < first => {
                self.times = [Some(time), Some(first)];
                self.bytes = bytes;
            }
            [_, second] if second.is_none_or(|second| time < second) => self.times[1] = Some(time),
            _ => {}
        }
    }
}

impl RoundTrips {
    /// Adds a sample, and returns its queueing delay: the time above the smallest sample of
    /// segments of its size.
    pub(crate) fn add(&mut self, time: Duration, bytes: u32, is_full: bool) -> Duration {
        let smallest = if is_full { &mut self.full } else { &mut self.short };
        smallest.add(time, bytes);
        self.samples += 1;
        self.sum_s += time.as_secs_f64();
        time.saturating_sub(smallest.times[0].unwrap_or(time))
    }

    /// Adds a segment that only acknowledges.
    pub(crate) fn add_acknowledgement(&mut self, bytes: u32) {
        self.acknowledgement = Some(self.acknowledgement.map_or(bytes, |known| known.min(bytes)));
    }

    /// The smallest round trip of any packet.
    pub(crate) fn base(&self) -> Option<Duration> {
        let handshake = self.handshake.map(|handshake| handshake.time);
        [handshake, self.full.times[0], self.short.times[0]].into_iter().flatten().min()
    }

    /// Mean of all samples.
    pub(crate) fn mean(&self) -> Option<Duration> {
        let count = self.samples as f64;
        (self.samples > 0).then(|| Duration::from_secs_f64(self.sum_s / count))
    }
}
