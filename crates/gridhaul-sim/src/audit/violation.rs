//! The rules that a run can break.

use gridhaul_core::link::PacketTransit;
use gridhaul_scenario::units::Instant;
use thiserror::Error;

/// A run that broke a rule, which is a defect of gridhaul.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("replication {replication}: {entity}: {violation}")]
pub struct AuditError {
    /// Number of the replication, from 0.
    pub replication: u32,
    /// Row of the answer: a flow, or a direction of a link.
    pub entity: String,
    /// The broken rule with the evidence.
    pub violation: Violation,
}

/// A broken rule with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Violation {
    /// A packet passed a direction of a link as no packet can.
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
    /// Packets were created or have vanished in a direction of a link.
    #[error(
        "{offered} packets went in and {copies} were copied, but {refused} were refused, {left} \
         came out and {inside} are inside"
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
    /// Both ends of a connection contradict each other: sequence numbers, SYN included.
    #[error("sent up to {sent}, received up to {received}, acknowledged up to {acknowledged}")]
    Connection {
        /// Sent by the one end.
        sent: u64,
        /// Received by the other.
        received: u64,
        /// Acknowledged to the one.
        acknowledged: u64,
    },
    /// A proxy contradicts what comes before it on the path; payload in bytes.
    #[error(
        "{sent} B were sent to a proxy and {acknowledged} B are known to be acknowledged, of which it has \
         received {received} B and acknowledged {taken} B"
    )]
    ProxyInput {
        /// Sent to the proxy.
        sent: u64,
        /// Known to the sender as acknowledged.
        acknowledged: u64,
        /// Received by the proxy.
        received: u64,
        /// Acknowledged by the proxy.
        taken: u64,
    },
    /// The receiver contradicts the last proxy on the path; payload in bytes.
    #[error(
        "the last proxy has received {received} B and had {acknowledged} B acknowledged; {delivered} B were \
         delivered"
    )]
    ProxyOutput {
        /// Received by the proxy.
        received: u64,
        /// Acknowledged to the proxy.
        acknowledged: u64,
        /// Delivered at the receiver.
        delivered: u64,
    },
    /// A collector broke a rule of its buffer or of the order of messages.
    #[error(
        "the collector {rule} (taken {taken} B, whole {whole} B, sent {sent} B, {waiting} messages \
         waiting)"
    )]
    Collector {
        /// The rule.
        rule: CollectorRule,
        /// Bytes accepted from all members.
        taken: u64,
        /// Bytes of whole messages.
        whole: u64,
        /// Bytes sent upstream at least once.
        sent: u64,
        /// Whole messages that are not sent whole.
        waiting: u64,
    },
    /// Messages were created, changed or have vanished upstream of a collector.
    #[error(
        "{messages_in} messages of {bytes_in} B went in, {messages_out} came out, and those under way make \
         it {messages} of {bytes} B, or not the same ones"
    )]
    Messages {
        /// Messages that went in.
        messages_in: u64,
        /// Bytes of these.
        bytes_in: u64,
        /// Messages that came out.
        messages_out: u64,
        /// Messages that came out or are under way.
        messages: u64,
        /// Bytes of these.
        bytes: u64,
    },
    /// Both ends of an upstream connection contradict each other; payload in bytes.
    #[error(
        "sent {sent} B, received {received} B, acknowledged {acknowledged} B, of which {delivered} B in \
         whole messages"
    )]
    Upstream {
        /// Sent by the collector.
        sent: u64,
        /// Received at the far end.
        received: u64,
        /// Acknowledged to the collector.
        acknowledged: u64,
        /// Received in whole messages.
        delivered: u64,
    },
}

/// What no packet on a link can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkRule {
    /// The packet started before it was offered, was sent before it started, or the like.
    #[error("the times of a packet are out of order")]
    TimesOutOfOrder,
    /// The packet arrived earlier than the propagation delay allows.
    #[error("a packet was faster than the delay")]
    FasterThanDelay,
    /// The transmission was shorter than the rate allows.
    #[error("a packet was faster than the wire")]
    FasterThanWire,
    /// Transmissions overlapped.
    #[error("two packets were on the wire at once")]
    TransmissionsOverlap,
    /// Transmissions without a pause were faster together than the rate allows.
    #[error("a busy wire was faster than its rate")]
    FasterThanRate,
    /// More packets or bytes waited than the limit of the queue.
    #[error("the queue held more than its limit")]
    QueueAboveLimit,
    /// A queue that decides on arrival dropped an accepted packet.
    #[error("a queue dropped what it had taken")]
    DroppedAfterAcceptance,
    /// A packet that the queue dropped took time on the link.
    #[error("a packet that the queue dropped was on the wire")]
    DroppedAfterTransmission,
    /// The packet was never accepted.
    #[error("a packet came out that did not go in")]
    NeverAccepted,
    /// Packets of one flow changed their order in the queue.
    #[error("a packet overtook another in the queue")]
    OvertookInQueue,
    /// The direction has no attenuation or noise that could have caused the loss.
    #[error("a packet was lost to attenuation or noise that is not there")]
    LossWithoutCause,
    /// Packets of one coherence interval had different fates.
    #[error("a level of attenuation stopped one packet and not another")]
    AttenuationInconsistent,
}

/// What no collector can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CollectorRule {
    /// More bytes waited than the buffer has.
    #[error("held more bytes than its buffer has")]
    BytesAboveLimit,
    /// More messages waited than the buffer has.
    #[error("held more messages than its buffer has")]
    MessagesAboveLimit,
    /// A message does not directly follow the message before it.
    #[error("put a message in a place that is not behind the one before")]
    MessageMisplaced,
    /// More bytes of messages than were accepted.
    #[error("handed on more than it has taken in")]
    MoreThanAccepted,
    /// More bytes sent than were handed to the upstream connection, or fewer than before.
    #[error("sent what was not handed over")]
    MoreThanWritten,
    /// A message was delivered that was not sent, or not in its place.
    #[error("delivered what it has not sent")]
    MoreThanSent,
}

impl Violation {
    /// A packet that broke a rule of a link when it left.
    pub(super) fn of_passage<P>(rule: LinkRule, now: Instant, passage: &PacketTransit<P>) -> Self {
        let PacketTransit { bytes, offered, started, sent, left, outcome, .. } = *passage;
        let packet =
            Box::new(PacketTransit { payload: (), bytes, offered, started, sent, left, outcome });
        Self::Link { rule, now, packet }
    }
}
