//! The receiver's state machine: new events, retransmissions, losses and lifetime.

use gridhaul_scenario::units::{Duration, Instant};

/// Classification of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// First received message of an event. `events_lost` events before it were not received at all;
    /// `messages_lost` messages of this event before it were lost. After a restart of the publisher
    /// the number of lost events is unknown, and 0.
    Event {
        /// Events without any received message.
        events_lost: u32,
        /// Lost messages of this event.
        messages_lost: u32,
    },
    /// Retransmission of the current event, after `messages_lost` lost ones.
    Retransmission {
        /// Lost messages since the last received one.
        messages_lost: u32,
    },
    /// A message that is not newer than the last one: a duplicate, or an arrival out of order.
    Old,
}

/// The number of a message: that of its event (`stNum`), and its own within the event (`sqNum`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MessageNumber {
    state: u32,
    sequence: u32,
}

/// Follows one control block.
#[derive(Debug, Clone, Default)]
pub struct GooseReceiver {
    last: Option<MessageNumber>,
    deadline: Option<Instant>,
}

impl GooseReceiver {
    /// A message with `stNum`, `sqNum` and lifetime.
    pub fn handle_message(
        &mut self,
        now: Instant,
        state_number: u32,
        sequence_number: u32,
        time_allowed_to_live_ms: u32,
    ) -> Reception {
        let number = MessageNumber { state: state_number, sequence: sequence_number };
        let mut reception = number.reception_after(self.last);
        // A publisher that restarts begins again at low numbers. It is recognised by the silence
        // before: a late message of the same publisher does not come after its lifetime.
        if reception == Reception::Old && self.is_expired(now) {
            reception = Reception::Event { events_lost: 0, messages_lost: sequence_number };
        }
        if reception == Reception::Old {
            return reception;
        }
        self.last = Some(number);
        let lifetime = Duration::from_millis(u64::from(time_allowed_to_live_ms));
        self.deadline = Some(now + lifetime);
        reception
    }

    /// Whether the lifetime of the last message has passed: the receiver must assume that the
    /// sender is lost.
    #[must_use]
    pub fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now > deadline)
    }
}

impl MessageNumber {
    /// Classifies a message with this number after the `last` message of the same publisher.
    fn reception_after(self, last: Option<Self>) -> Reception {
        let Some(last) = last else {
            return Reception::Event { events_lost: 0, messages_lost: 0 };
        };
        if self.state == last.state {
            return match self.sequence.checked_sub(last.sequence) {
                None | Some(0) => Reception::Old,
                Some(ahead) => Reception::Retransmission { messages_lost: ahead - 1 },
            };
        }
        let ahead = self.state.wrapping_sub(last.state);
        // Numbers that wrap are compared by serial number arithmetic (RFC 1982).
        if ahead > u32::MAX / 2 {
            return Reception::Old;
        }
        Reception::Event { events_lost: ahead - 1, messages_lost: self.sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME_MS: u32 = 10;

    /// A receiver after these messages, given by `stNum` and `sqNum`, all at time zero; and the
    /// reception of the last of them.
    fn received(messages: &[[u32; 2]]) -> (GooseReceiver, Option<Reception>) {
        let mut receiver = GooseReceiver::default();
        let receptions = messages.iter().map(|&[state, sequence]| {
            receiver.handle_message(Instant::ZERO, state, sequence, LIFETIME_MS)
        });
        let last = receptions.last();
        (receiver, last)
    }

    fn after_ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn missing_sequence_numbers_are_lost_messages() {
        for (messages, expected) in [
            (&[[1, 7], [1, 8]][..], Reception::Retransmission { messages_lost: 0 }),
            (&[[1, 7], [1, 10]], Reception::Retransmission { messages_lost: 2 }),
            (&[[1, 7], [1, 10], [1, 9]], Reception::Old),
            (&[[1, 7], [1, 7]], Reception::Old),
        ] {
            assert_eq!(received(messages).1, Some(expected), "{messages:?}");
        }
    }

    #[test]
    fn missing_state_numbers_are_lost_events() {
        for (messages, expected) in [
            (&[[1, 7]][..], Reception::Event { events_lost: 0, messages_lost: 0 }),
            (&[[1, 7], [2, 0]], Reception::Event { events_lost: 0, messages_lost: 0 }),
            (&[[1, 7], [4, 1]], Reception::Event { events_lost: 2, messages_lost: 1 }),
            (&[[u32::MAX, 7], [0, 0]], Reception::Event { events_lost: 0, messages_lost: 0 }),
            (&[[4, 1], [3, 2]], Reception::Old),
        ] {
            assert_eq!(received(messages).1, Some(expected), "{messages:?}");
        }
    }

    #[test]
    fn a_restarted_publisher_is_heard_after_the_lifetime() {
        let restarted = [[1, 0], [7, 2], [7, 3]];
        for [state, sequence] in restarted {
            let (mut receiver, _) = received(&[[7, 3]]);
            let mut handle = |at, state, sequence| {
                receiver.handle_message(after_ms(at), state, sequence, LIFETIME_MS)
            };
            assert_eq!(handle(10, state, sequence), Reception::Old);
            let first = Reception::Event { events_lost: 0, messages_lost: sequence };
            assert_eq!(handle(11, state, sequence), first);
            let second = Reception::Retransmission { messages_lost: 0 };
            assert_eq!(handle(12, state, sequence + 1), second);
        }
    }

    #[test]
    fn the_lifetime_expires_after_the_last_millisecond() {
        let (receiver, _) = received(&[[1, 0]]);
        assert!(!receiver.is_expired(after_ms(u64::from(LIFETIME_MS))));
        assert!(receiver.is_expired(after_ms(u64::from(LIFETIME_MS) + 1)));
    }
}
