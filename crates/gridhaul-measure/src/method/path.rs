//! The path of a message, as captures of packets see it.

use gridhaul_protocols::capture::CapturePoint;
use gridhaul_scenario::units::{Duration, Instant};

use super::distribution::Distribution;
use super::message::{Message, Phase};

/// Largest error of the conversion between the clock of the captures and that of the run, with a
/// margin.
const CLOCK_ERROR: Duration = Duration::from_micros(100);

/// Times at which captures saw a message for the first time, complete up to its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureTimes([Option<Instant>; 4]);

/// A part of the path of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// From the hand-over to the protocol to the departure: client and kernel of the publisher.
    PublisherClient,
    /// Leg 1: from the publisher to the broker.
    ToBroker,
    /// From the arrival at the broker to the departure: kernel and program.
    Broker,
    /// Leg 2: from the broker to the subscriber.
    FromBroker,
    /// From the arrival at the subscriber to the read message: kernel and client.
    SubscriberClient,
    /// From the departure at the publisher to the arrival at the subscriber, without both clients.
    BetweenClients,
}

/// The path of the messages of a run.
#[derive(Debug, Clone)]
pub struct PathSummary {
    stages: [Distribution; Stage::ALL.len()],
    /// Messages that captures saw, after the warm-up at the start.
    pub captured: u64,
    /// Lost messages by the last place at which a capture saw them; the first entry counts those
    /// that were never seen.
    lost_after: [u64; 5],
    /// Messages whose times contradict each other: a packet was captured before its cause.
    pub contradictory: u64,
}

impl CaptureTimes {
    /// Time at which the message was at a place; `None` if the capture did not see it.
    #[must_use]
    pub const fn at(&self, point: CapturePoint) -> Option<Instant> {
        self.0[point as usize]
    }

    /// The message was seen at a place. Only the first time counts: later copies are
    /// retransmissions.
    pub fn record(&mut self, point: CapturePoint, at: Instant) {
        self.0[point as usize].get_or_insert(at);
    }

    /// The last place at which the message was seen.
    #[must_use]
    pub fn last(&self) -> Option<CapturePoint> {
        CapturePoint::ALL.into_iter().rfind(|&point| self.at(point).is_some())
    }
}

impl Stage {
    /// All parts.
    pub const ALL: [Self; 6] = [
        Self::PublisherClient,
        Self::ToBroker,
        Self::Broker,
        Self::FromBroker,
        Self::SubscriberClient,
        Self::BetweenClients,
    ];

    /// Start and end of the part for a message, as far as they are known.
    fn times(self, message: &Message) -> [Option<Instant>; 2] {
        let at = |point| message.captured.at(point);
        match self {
            Self::PublisherClient => [message.sent, at(CapturePoint::PublisherDeparture)],
            Self::ToBroker => {
                [CapturePoint::PublisherDeparture, CapturePoint::BrokerArrival].map(at)
            }
            Self::Broker => [CapturePoint::BrokerArrival, CapturePoint::BrokerDeparture].map(at),
            Self::FromBroker => {
                [CapturePoint::BrokerDeparture, CapturePoint::SubscriberArrival].map(at)
            }
            Self::SubscriberClient => [at(CapturePoint::SubscriberArrival), message.received],
            Self::BetweenClients => {
                [CapturePoint::PublisherDeparture, CapturePoint::SubscriberArrival].map(at)
            }
        }
    }
}

impl Default for PathSummary {
    fn default() -> Self {
        Self {
            stages: std::array::from_fn(|_| Distribution::default()),
            captured: 0,
            lost_after: [0; 5],
            contradictory: 0,
        }
    }
}

impl PathSummary {
    /// Adds a closed message.
    pub fn add(&mut self, message: &Message) {
        let last = message.captured.last();
        if message.phase == Phase::WarmUp {
            return;
        }
        self.captured += u64::from(last.is_some());
        let is_lost = message.sent.is_some() && message.received.is_none();
        if is_lost && message.corrupt_copies == 0 {
            self.lost_after[last.map_or(0, |point| 1 + point as usize)] += 1;
        }
        if message.phase != Phase::Measured {
            return;
        }
        let mut contradicts = false;
        for (stage, distribution) in Stage::ALL.into_iter().zip(&mut self.stages) {
            if let [Some(start), Some(end)] = stage.times(message) {
                distribution.record(end.since(start));
                contradicts |= end + CLOCK_ERROR < start;
            }
        }
        self.contradictory += u64::from(contradicts);
    }

    /// Times that the messages took for a part of the path.
    #[must_use]
    pub const fn stage(&self, stage: Stage) -> &Distribution {
        &self.stages[stage as usize]
    }

    /// Lost messages that were last seen at a place; `None` for those that no capture saw.
    #[must_use]
    pub const fn lost_after(&self, point: Option<CapturePoint>) -> u64 {
        match point {
            None => self.lost_after[0],
            Some(point) => self.lost_after[1 + point as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(at: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(at)
    }

    /// A message that was handed over at 0 ms, and seen at these times.
    fn message(seen: &[u64], received: Option<u64>) -> Message {
        let mut captured = CaptureTimes::default();
        for (point, &at) in CapturePoint::ALL.into_iter().zip(seen) {
            captured.record(point, millis(at));
        }
        Message {
            sent: Some(millis(0)),
            received: received.map(millis),
            captured,
            ..Message::default()
        }
    }

    #[test]
    fn the_parts_add_up_to_the_latency() {
        let mut path = PathSummary::default();
        let message = message(&[1, 21, 24, 44], Some(49));
        path.add(&message);
        let mean = |stage| path.stage(stage).mean().unwrap();
        let parts = [1, 20, 3, 20, 5, 43].map(Duration::from_millis);
        assert_eq!(Stage::ALL.map(mean), parts);
        let sum = parts[..5].iter().fold(Duration::ZERO, |sum, &part| sum + part);
        assert_eq!(Some(sum), message.latency_from_send());
    }

    #[test]
    fn a_lost_message_is_lost_after_the_last_place_where_it_was_seen() {
        let mut path = PathSummary::default();
        for seen in [&[][..], &[1], &[1, 21], &[1, 21], &[1, 21, 24, 44]] {
            path.add(&message(seen, None));
        }
        path.add(&Message { phase: Phase::WarmUp, ..message(&[1], None) });
        let points = CapturePoint::ALL.map(Some);
        assert_eq!(path.lost_after(None), 1);
        assert_eq!(points.map(|point| path.lost_after(point)), [1, 2, 0, 1]);
        assert_eq!(path.captured, 4);
    }

    #[test]
    fn a_message_that_arrives_before_it_departs_is_contradictory() {
        let mut path = PathSummary::default();
        path.add(&message(&[5, 2], Some(9)));
        path.add(&message(&[5, 7], Some(9)));
        assert_eq!(path.contradictory, 1);
    }

    #[test]
    fn only_the_first_copy_of_a_message_counts() {
        let mut times = CaptureTimes::default();
        times.record(CapturePoint::BrokerArrival, millis(3));
        times.record(CapturePoint::BrokerArrival, millis(203));
        assert_eq!(times.at(CapturePoint::BrokerArrival), Some(millis(3)));
    }
}
