//! The sender's state machine: event numbers and retransmissions (IEC 61850-8-1, section 18.1.2.5).

use gridhaul_scenario::units::{Duration, Instant};

/// Intervals between the messages of an event.
///
/// The first interval after an event is the shortest; each further one is multiplied until the
/// longest is reached, which is then kept. The standard leaves the values to the implementation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetransmissionSchedule {
    /// First interval after an event.
    pub shortest: Duration,
    /// Factor from one interval to the next, at least 1.
    pub factor: f64,
    /// Interval in stable conditions.
    pub longest: Duration,
}

/// Numbers and lifetime of a message to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GooseMessage {
    /// `stNum`.
    pub state_number: u32,
    /// `sqNum`.
    pub sequence_number: u32,
    /// `timeAllowedtoLive` in ms: twice the time until the next message, so that the loss of one
    /// message is tolerated.
    pub time_allowed_to_live_ms: u32,
}

/// Sends events and their retransmissions.
#[derive(Debug, Clone)]
pub struct GoosePublisher {
    schedule: RetransmissionSchedule,
    state_number: u32,
    sequence_number: u32,
    interval: Duration,
    deadline: Instant,
}

impl RetransmissionSchedule {
    fn next(&self, interval: Duration) -> Duration {
        interval.mul_f64(self.factor.max(1.0)).min(self.longest)
    }
}

impl GoosePublisher {
    /// A publisher whose first message is due at `now`.
    #[must_use]
    pub fn new(schedule: RetransmissionSchedule, now: Instant) -> Self {
        let interval = schedule.shortest.min(schedule.longest);
        Self { schedule, state_number: 1, sequence_number: 0, interval, deadline: now }
    }

    /// A value of the data set has changed: the first message of the event is due at once.
    pub fn handle_event(&mut self, now: Instant) {
        // Number 0 is reserved: the counter wraps to 1.
        self.state_number = self.state_number.checked_add(1).unwrap_or(1);
        self.sequence_number = 0;
        self.interval = self.schedule.shortest.min(self.schedule.longest);
        self.deadline = now;
    }

    /// The message that is due, if any. A late call sends one message; the next interval starts at
    /// `now`.
    pub fn poll_send(&mut self, now: Instant) -> Option<GooseMessage> {
        if now < self.deadline {
            return None;
        }
        let lifetime_ms = 2 * self.interval.as_nanos().div_ceil(1_000_000);
        let message = GooseMessage {
            state_number: self.state_number,
            sequence_number: self.sequence_number,
            time_allowed_to_live_ms: u32::try_from(lifetime_ms).unwrap_or(u32::MAX),
        };
        // Number 0 is reserved for the first message of an event: the counter wraps to 1.
        self.sequence_number = self.sequence_number.checked_add(1).unwrap_or(1);
        self.deadline = now + self.interval;
        self.interval = self.schedule.next(self.interval);
        Some(message)
    }

    /// When the next message is due.
    #[must_use]
    pub const fn next_deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_follow_the_schedule() {
        let schedule = RetransmissionSchedule {
            shortest: Duration::from_millis(4),
            factor: 2.0,
            longest: Duration::from_millis(20),
        };
        let mut publisher = GoosePublisher::new(schedule, Instant::ZERO);
        let mut sent = Vec::new();
        for _ in 0..6 {
            let now = publisher.next_deadline();
            sent.push((now.as_nanos() / 1_000_000, publisher.poll_send(now).unwrap()));
            assert_eq!(publisher.poll_send(now), None);
        }
        let times: Vec<_> = sent.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [0, 4, 12, 28, 48, 68]);
        let lifetimes: Vec<_> =
            sent.iter().map(|(_, goose)| goose.time_allowed_to_live_ms).collect();
        assert_eq!(lifetimes, [8, 16, 32, 40, 40, 40]);
        assert!(sent.iter().map(|(_, goose)| goose.sequence_number).eq(0..6));
        let now = Instant::ZERO + Duration::from_millis(70);
        publisher.handle_event(now);
        let message = publisher.poll_send(now).unwrap();
        assert_eq!((message.state_number, message.sequence_number), (2, 0));
        assert_eq!(publisher.next_deadline(), now + Duration::from_millis(4));
    }
}
