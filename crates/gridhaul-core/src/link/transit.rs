//! The transit of a packet through a link: times and outcome.

use gridhaul_scenario::scenario::Dscp;
use gridhaul_scenario::units::Instant;

use super::{EcnCodePoint, LossCause};

/// The packets of a link.
pub trait LinkPayload: Copy {
    /// Identifies the flow of the packet in this direction, for queue disciplines with per-flow
    /// queues. By default all packets belong to one flow.
    fn flow(&self) -> u64 {
        0
    }

    /// Differentiated services code point in the packet, if the payload has it; otherwise that of
    /// its flow applies.
    fn code_point(&self) -> Option<Dscp> {
        None
    }

    /// The ECN field of the packet.
    fn ecn(&self) -> EcnCodePoint {
        EcnCodePoint::NotEct
    }

    /// A queue marks the packet, whose ECN field permits it.
    fn mark(&mut self) {}

    /// Whether the packet has payload that an attacker can alter.
    fn has_payload(&self) -> bool {
        true
    }
}

impl LinkPayload for () {}
impl<A: Copy, B: Copy> LinkPayload for (A, B) {}

/// The transit of one packet through one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTransit<P> {
    /// The offered packet.
    pub payload: P,
    /// Size including headers.
    pub bytes: u32,
    /// When the packet was offered.
    pub offered: Instant,
    /// When its transmission started.
    pub started: Instant,
    /// When its transmission ended.
    pub sent: Instant,
    /// When the packet arrives at the other end; for a lost packet, when it would have arrived.
    pub left: Instant,
    /// Whether and how the packet arrives.
    pub outcome: TransitOutcome,
}

impl<P> PacketTransit<P> {
    /// Nanoseconds that this packet has waited in the queue by `now`; zero for a duplicate, which
    /// never was in it.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        if self.outcome.is_duplicate() {
            return 0;
        }
        self.started.min(now).since(self.offered).as_nanos()
    }

    /// Whether this packet waits in the queue at `now`.
    pub(super) fn waits_at(&self, now: Instant) -> bool {
        self.started > now && !self.outcome.is_duplicate()
    }

    /// Bytes of this packet transmitted by `now`; zero for a duplicate or a packet dropped by the
    /// queue, since neither is transmitted.
    pub(super) fn sent_by(&self, now: Instant) -> u64 {
        let dropped = matches!(self.outcome, TransitOutcome::Lost(reason) if reason.is_by_queue());
        if dropped || self.outcome.is_duplicate() || now <= self.started {
            return 0;
        }
        if now >= self.sent {
            return u64::from(self.bytes);
        }
        let (elapsed, total) = (now.since(self.started), self.sent.since(self.started));
        let sent =
            u128::from(self.bytes) * u128::from(elapsed.as_nanos()) / u128::from(total.as_nanos());
        sent as u64
    }
}

/// The outcome of the transit of an accepted packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitOutcome {
    /// The packet arrives intact.
    Arrived,
    /// The packet arrives intact, and active queue management of the link has marked it. The mark
    /// itself is in the packet ([`LinkPayload::ecn`]).
    Marked,
    /// The packet arrives corrupted, and the receiver's checksum rejects it.
    Corrupted,
    /// The packet arrives with corrupted data that its checksum does not detect.
    CorruptedUndetected,
    /// A duplicate arrives, directly after the original.
    Duplicate,
    /// A duplicate of a corrupted packet.
    CorruptedDuplicate,
    /// A duplicate of a packet with undetected corruption.
    CorruptedUndetectedDuplicate,
    /// The packet does not arrive.
    Lost(DropReason),
}

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped the packet before the queue was full.
    Aqm,
    /// Random or listed loss.
    Loss,
    /// The packet was in transmission during an outage of mode `drop`.
    Outage,
    /// The attenuation exceeded the margin of the link.
    Shadowing,
    /// A noise burst destroyed the packet.
    Noise,
    /// The packet collided with others on a shared medium, for the last time.
    Collision,
    /// An attacker dropped the packet.
    Attack,
}

impl DropReason {
    /// Whether the queue dropped the packet, so that it was never transmitted.
    #[inline]
    #[must_use]
    pub const fn is_by_queue(self) -> bool {
        matches!(self, Self::QueueFull | Self::Aqm)
    }
}

impl TransitOutcome {
    /// Whether a packet reaches the other end, corrupted or not.
    #[inline]
    #[must_use]
    pub const fn arrives(self) -> bool {
        !matches!(self, Self::Lost(_))
    }
    /// Whether the receiver's checksum rejects it.
    #[inline]
    #[must_use]
    pub const fn is_corrupted(self) -> bool {
        matches!(self, Self::Corrupted | Self::CorruptedDuplicate)
    }
    /// Whether the data are corrupted without detection by the receiver's checksum.
    #[inline]
    #[must_use]
    pub const fn is_corrupted_undetected(self) -> bool {
        matches!(self, Self::CorruptedUndetected | Self::CorruptedUndetectedDuplicate)
    }
    /// Whether the packet is a duplicate made by the link.
    #[inline]
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(
            self,
            Self::Duplicate | Self::CorruptedDuplicate | Self::CorruptedUndetectedDuplicate
        )
    }
    /// Why the packet does not reach its receiver; `None` if it does. A packet rejected by the
    /// receiver's checksum is lost too. The duplicate of a corrupted packet is `None` because its
    /// original is counted.
    #[inline]
    #[must_use]
    pub const fn loss_cause(self) -> Option<LossCause> {
        match self {
            Self::Lost(reason) if reason.is_by_queue() => Some(LossCause::Queue),
            Self::Lost(_) | Self::Corrupted => Some(LossCause::Error),
            _ => None,
        }
    }
    /// The outcome of a duplicate of this packet; `None` if no packet arrives.
    #[inline]
    #[must_use]
    pub const fn of_duplicate(self) -> Option<Self> {
        match self {
            Self::Arrived | Self::Marked | Self::Duplicate => Some(Self::Duplicate),
            Self::Corrupted | Self::CorruptedDuplicate => Some(Self::CorruptedDuplicate),
            Self::CorruptedUndetected | Self::CorruptedUndetectedDuplicate => {
                Some(Self::CorruptedUndetectedDuplicate)
            }
            Self::Lost(_) => None,
        }
    }
}
