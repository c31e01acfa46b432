//! The places at which a capture sees a message.

/// A place at which a capture sees a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapturePoint {
    /// The message leaves the end of the publisher.
    PublisherDeparture,
    /// The message arrives at the end of the broker.
    BrokerArrival,
    /// The message leaves the end of the broker.
    BrokerDeparture,
    /// The message arrives at the end of the subscriber.
    SubscriberArrival,
}

impl CapturePoint {
    /// All places, in the order in which a message passes them.
    pub const ALL: [Self; 4] = [
        Self::PublisherDeparture,
        Self::BrokerArrival,
        Self::BrokerDeparture,
        Self::SubscriberArrival,
    ];
}
