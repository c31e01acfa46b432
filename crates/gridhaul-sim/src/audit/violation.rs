//! The rules of the auditor, and their violations.

use gridhaul_core::link::PacketTransit;
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

/// A run that violated a rule, which is a defect of gridhaul.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("replication {replication}: {entity}: {violation}")]
pub struct AuditError {
    /// Number of the replication, from 0.
    pub replication: u32,
    /// Row of the answer: a flow, or a direction of a link; the first direction of a medium.
    pub entity: String,
    /// The violated rule with the evidence.
    pub violation: Violation,
}

/// A violated rule with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Violation {
    /// A packet violated a rule of a direction of a link.
    #[error(
        "{rule} (now {now:?}, {} B, offered {:?}, started {:?}, sent {:?}, left {:?}, {:?})",
        .packet.bytes, .packet.offered, .packet.started, .packet.sent, .packet.left, .packet.outcome
    )]
    Link {
        /// The rule.
        rule: LinkRule,
        /// When the packet left.
        now: Instant,
        /// Times and outcome of the packet.
        packet: Box<PacketTransit<()>>,
    },
    /// Packets were created or destroyed in a direction of a link.
    #[error(
        "{offered} packets were offered and {copies} duplicated, but {refused} were refused, \
         {left} left and {inside} are inside"
    )]
    Packets {
        /// Packets that were offered.
        offered: u64,
        /// Second copies that the direction has made.
        copies: u64,
        /// Packets that the queue dropped on arrival.
        refused: u64,
        /// Packets that have left, second copies included.
        left: u64,
        /// Packets that have neither left nor been refused, second copies included.
        inside: u64,
    },
    /// Directions have transmitted on a shared medium at the same time.
    #[error(
        "packets occupy the shared medium for at least {used} in all, but only {available} have \
         passed"
    )]
    Medium {
        /// Transmission times of all packets of all directions, with the times that the medium
        /// access adds to each.
        used: Duration,
        /// Time of the run.
        available: Duration,
    },
    /// The ends of a connection contradict each other: sequence numbers, SYN included.
    #[error("sent up to {sent}, received up to {received}, acknowledged up to {acknowledged}")]
    Connection {
        /// Sent by one end.
        sent: u64,
        /// Received by the other end.
        received: u64,
        /// Acknowledged to the sending end.
        acknowledged: u64,
    },
    /// A proxy contradicts the previous hop on the path; payload in bytes.
    #[error(
        "{sent} B were sent to a proxy and {acknowledged} B of them are known as acknowledged, but \
         the proxy has received {received} B and acknowledged {acknowledged_by_proxy} B"
    )]
    ProxyInput {
        /// Sent to the proxy.
        sent: u64,
        /// Known to the sender as acknowledged.
        acknowledged: u64,
        /// Received by the proxy.
        received: u64,
        /// Acknowledged by the proxy.
        acknowledged_by_proxy: u64,
    },
    /// The receiver contradicts the last proxy on the path; payload in bytes.
    #[error(
        "the last proxy has received {received} B and had {acknowledged} B acknowledged; \
         {delivered} B were delivered"
    )]
    ProxyOutput {
        /// Received by the proxy.
        received: u64,
        /// Acknowledged to the proxy.
        acknowledged: u64,
        /// Delivered at the receiver.
        delivered: u64,
    },
    /// An aggregator violated a rule of its buffer or of the order of messages.
    #[error(
        "the aggregator {rule} (accepted {accepted} B, complete messages {complete} B, sent {sent} \
         B, {waiting} messages waiting)"
    )]
    Aggregator {
        /// The rule.
        rule: AggregatorRule,
        /// Bytes accepted from all members.
        accepted: u64,
        /// Bytes of complete messages.
        complete: u64,
        /// Bytes sent upstream at least once.
        sent: u64,
        /// Complete messages that are not completely sent.
        waiting: u64,
    },
    /// Messages were created, changed or lost upstream of an aggregator.
    #[error(
        "{messages_in} messages of {bytes_in} B were accepted and {messages_out} delivered, but \
         with those in flight there are {messages} of {bytes} B, or different messages"
    )]
    Messages {
        /// Messages that the aggregator accepted.
        messages_in: u64,
        /// Bytes of these.
        bytes_in: u64,
        /// Delivered messages.
        messages_out: u64,
        /// Messages that are delivered or in flight.
        messages: u64,
        /// Bytes of these.
        bytes: u64,
    },
    /// The ends of an upstream connection contradict each other; payload in bytes.
    #[error(
        "sent {sent} B, received {received} B, acknowledged {acknowledged} B, delivered \
         {delivered} B in complete messages"
    )]
    Upstream {
        /// Sent by the aggregator.
        sent: u64,
        /// Received at the other end.
        received: u64,
        /// Acknowledged to the aggregator.
        acknowledged: u64,
        /// Delivered in complete messages.
        delivered: u64,
    },
}

/// The rules of a direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkRule {
    /// The packet started before it was offered, was sent before it started, or the like.
    #[error("the times of a packet are out of order")]
    TimesOutOfOrder,
    /// The packet arrived earlier than the propagation delay allows.
    #[error("a packet arrived before the propagation delay")]
    FasterThanDelay,
    /// The transmission was shorter than the rate allows.
    #[error("a packet was transmitted faster than the rate")]
    TransmissionTooShort,
    /// The transmission began or ended between two delivery opportunities of a trace.
    #[error("a packet was transmitted without a delivery opportunity")]
    NoOpportunity,
    /// Transmissions overlapped.
    #[error("two packets were transmitted at the same time")]
    TransmissionsOverlap,
    /// Back-to-back transmissions together were faster than the rate allows.
    #[error("back-to-back packets were transmitted faster than the rate")]
    FasterThanRate,
    /// More packets or bytes waited than the limit of the queue.
    #[error("the queue exceeded its limit")]
    QueueAboveLimit,
    /// A queue that decides on arrival dropped an accepted packet.
    #[error("a queue dropped a packet that it had accepted")]
    DroppedAfterAcceptance,
    /// A packet that the queue dropped took time on the link.
    #[error("a packet that the queue dropped was transmitted")]
    DroppedAfterTransmission,
    /// The packet was never accepted.
    #[error("a packet left that was not accepted")]
    NeverAccepted,
    /// Packets of one flow changed their order in the queue.
    #[error("packets of one flow were reordered in the queue")]
    OvertookInQueue,
    /// The direction has no attenuation or noise that could have caused the loss.
    #[error("a packet was lost by attenuation or noise that the direction does not have")]
    LossWithoutCause,
    /// The queue of the direction does not mark packets, or the packet has no mark.
    #[error("a packet counts as marked that the queue cannot have marked")]
    MarkedWithoutEcn,
    /// Packets of one coherence interval had different fates.
    #[error("packets of one coherence interval were both lost by attenuation and delivered")]
    AttenuationInconsistent,
}

/// The rules of an aggregator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AggregatorRule {
    /// More bytes waited than the buffer has.
    #[error("buffered more bytes than its limit")]
    BytesAboveLimit,
    /// More messages waited than the buffer has.
    #[error("buffered more messages than its limit")]
    MessagesAboveLimit,
    /// A message does not directly follow the message before it.
    #[error("wrote a message that does not follow the previous one")]
    MessageMisplaced,
    /// More bytes of messages than were accepted.
    #[error("forwarded more than was accepted")]
    MoreThanAccepted,
    /// More bytes sent than were written to the upstream connection, or fewer than before.
    #[error("sent data that was not written")]
    MoreThanWritten,
    /// A message was delivered that was not sent, or in the wrong order.
    #[error("delivered data that was not sent")]
    MoreThanSent,
}

impl Violation {
    /// The violation of a link rule by a packet that leaves.
    pub(super) fn of_transit<P>(rule: LinkRule, now: Instant, transit: &PacketTransit<P>) -> Self {
        let PacketTransit { bytes, offered, started, sent, left, outcome, .. } = *transit;
        let packet =
            Box::new(PacketTransit { payload: (), bytes, offered, started, sent, left, outcome });
        Self::Link { rule, now, packet }
    }
}
