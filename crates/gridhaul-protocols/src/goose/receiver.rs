//! The receiver's state machine: new events, retransmissions, losses and lifetime.

use gridhaul_scenario::units::{Duration, Instant};

/// Classification of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// First received message of an event. `events_lost` events before it were not received at all;
    /// `messages_lost` messages of this event before it were lost.
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

/// Follows one control block.
#[derive(Debug, Clone, Default)]
pub struct GooseReceiver {
    last: Option<(u32, u32)>,
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
        let reception = match self.last {
            None => Reception::Event { events_lost: 0, messages_lost: 0 },
            Some((state, sequence)) if state == state_number => {
                match sequence_number.checked_sub(sequence) {
                    None | Some(0) => return Reception::Old,
                    Some(ahead) => Reception::Retransmission { messages_lost: ahead - 1 },
                }
            }
            Some((state, _)) => {
                let ahead = state_number.wrapping_sub(state);
                // Numbers that wrap are compared by serial number arithmetic (RFC 1982).
                if ahead > u32::MAX / 2 {
                    return Reception::Old;
                }
                Reception::Event { events_lost: ahead - 1, messages_lost: sequence_number }
            }
        };
        self.last = Some((state_number, sequence_number));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified() {
        let mut receiver = GooseReceiver::default();
        let now = Instant::ZERO;
        let mut handle = |state, sequence| receiver.handle_message(now, state, sequence, 10);
        assert_eq!(handle(1, 7), Reception::Event { events_lost: 0, messages_lost: 0 });
        assert_eq!(handle(1, 8), Reception::Retransmission { messages_lost: 0 });
        assert_eq!(handle(1, 11), Reception::Retransmission { messages_lost: 2 });
        assert_eq!(handle(1, 9), Reception::Old);
        assert_eq!(handle(2, 0), Reception::Event { events_lost: 0, messages_lost: 0 });
        assert_eq!(handle(5, 1), Reception::Event { events_lost: 2, messages_lost: 1 });
        assert_eq!(handle(4, 3), Reception::Old);
        assert!(!receiver.is_expired(now + Duration::from_millis(10)));
        assert!(receiver.is_expired(now + Duration::from_millis(11)));
    }
}
