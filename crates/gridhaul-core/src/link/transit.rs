//! What becomes of a packet on a link.

use gridhaul_scenario::units::Instant;

use super::LossCause;

/// What a link carries.
pub trait LinkPayload: Copy {
    /// A number that the packets of one flow in one direction share: a queue that takes flows in
    /// turn tells them apart by it. All are one flow where nothing else is said.
    fn flow(&self) -> u64 {
        0
    }
}

impl LinkPayload for () {}
impl<A: Copy, B: Copy> LinkPayload for (A, B) {}

/// One packet's way through one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTransit<P> {
    /// What was handed in.
    pub payload: P,
    /// Size with headers.
    pub bytes: u32,
    /// When it was handed in.
    pub offered: Instant,
    /// When its transmission began.
    pub started: Instant,
    /// When its last bit left the wire's beginning.
    pub sent: Instant,
    /// When it arrives at the far end; of a lost packet, when it would have arrived.
    pub left: Instant,
    /// What became of it.
    pub outcome: TransitOutcome,
}

impl<P> PacketTransit<P> {
    /// Bytes of this packet that the transmitter has sent by `now`; none of a second copy or of a
    /// packet that the queue dropped, since neither is transmitted.
    pub(super) fn sent_by(&self, now: Instant) -> u64 {
        let dropped = matches!(self.outcome, TransitOutcome::Lost(reason) if reason.is_by_queue());
        if dropped || self.outcome.is_duplicate() || now <= self.started {
            return 0;
        }
        if now >= self.sent {
            return u64::from(self.bytes);
        }
        let (elapsed, whole) = (now.since(self.started), self.sent.since(self.started));
        let sent =
            u128::from(self.bytes) * u128::from(elapsed.as_nanos()) / u128::from(whole.as_nanos());
        sent as u64
    }
}

/// What became of a packet that the link accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitOutcome {
    /// It arrives.
    Arrived,
    /// It arrives damaged: its receiver's checksum rejects it.
    Corrupted,
    /// It arrives with damaged data that its checksum does not give away.
    CorruptedUndetected,
    /// A second copy of a packet arrives, directly behind the first.
    Duplicate,
    /// A second copy of a damaged packet.
    CorruptedDuplicate,
    /// A second copy of a packet with damaged data.
    CorruptedUndetectedDuplicate,
    /// It does not arrive.
    Lost(DropReason),
}

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue had no room.
    QueueFull,
    /// Active queue management dropped it before the queue was full.
    Aqm,
    /// It was lost on the way.
    Loss,
    /// It was on the wire during an outage that loses.
    Outage,
    /// Its signal was too weak: the attenuation was too large.
    Shadowing,
    /// A burst of noise destroyed it.
    Noise,
}

impl DropReason {
    /// Whether the queue dropped it: it never was on the wire.
    #[inline]
    #[must_use]
    pub const fn is_by_queue(self) -> bool {
        matches!(self, Self::QueueFull | Self::Aqm)
    }
}

impl TransitOutcome {
    /// Whether something reaches the far end, damaged or not.
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
    /// Whether its data are damaged, and the receiver's checksum does not say so.
    #[inline]
    #[must_use]
    pub const fn is_corrupted_undetected(self) -> bool {
        matches!(self, Self::CorruptedUndetected | Self::CorruptedUndetectedDuplicate)
    }
    /// Whether it is a second copy, which nobody handed in.
    #[inline]
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(
            self,
            Self::Duplicate | Self::CorruptedDuplicate | Self::CorruptedUndetectedDuplicate
        )
    }
    /// Why the packet does not reach its receiver, `None` where it does: what the receiver's checksum rejects is
    /// lost too. The copy of a damaged packet is `None` because its original is counted.
    #[inline]
    #[must_use]
    pub const fn loss_cause(self) -> Option<LossCause> {
        match self {
            Self::Lost(reason) if reason.is_by_queue() => Some(LossCause::Queue),
            Self::Lost(_) | Self::Corrupted => Some(LossCause::Error),
            _ => None,
        }
    }
    /// The same outcome for a second copy; `None` where nothing arrives that could be copied.
    #[inline]
    #[must_use]
    pub const fn of_duplicate(self) -> Option<Self> {
        match self {
            Self::Arrived | Self::Duplicate => Some(Self::Duplicate),
            Self::Corrupted | Self::CorruptedDuplicate => Some(Self::CorruptedDuplicate),
            Self::CorruptedUndetected | Self::CorruptedUndetectedDuplicate => {
                Some(Self::CorruptedUndetectedDuplicate)
            }
            Self::Lost(_) => None,
        }
    }
}
