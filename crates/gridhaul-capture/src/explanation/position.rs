//! Where a capture was taken.

use gridhaul_scenario::units::Duration;
use serde::Serialize;

use crate::connection::HandshakeGap;
use crate::estimate::is_at_end;

/// Where a capture was taken, from the division of the handshake's round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "at")]
pub enum Position {
    /// At the sender of the data.
    Sender,
    /// At the receiver of the data.
    Receiver,
    /// Between both.
    Between {
        /// Round trip between the point and the sender in s.
        sender_s: f64,
        /// Round trip between the point and the receiver in s.
        receiver_s: f64,
    },
    /// The capture shows no round trips of the handshake.
    Unknown,
}

impl Position {
    /// The position of a point by its round trips to the sender and to the receiver.
    pub(crate) fn new(round_trips: Option<[Duration; 2]>) -> Self {
        let Some([sender, receiver]) = round_trips else { return Self::Unknown };
        if is_at_end(sender, receiver) {
            Self::Sender
        } else if is_at_end(receiver, sender) {
            Self::Receiver
        } else {
            Self::Between { sender_s: sender.as_secs_f64(), receiver_s: receiver.as_secs_f64() }
        }
    }

    /// Estimates that the position forbids; `gap` is the reason for an unknown one.
    pub(super) fn restriction(self, gap: HandshakeGap) -> Option<String> {
        let text = match self {
            Self::Sender => return None,
            Self::Receiver => {
                "captured at the receiver: losses show as gaps, the loss of the last segments \
                 before a pause does not show at all, and queueing delays are unknown"
            }
            Self::Between { .. } => {
                "captured between both ends, or each direction at another place: the windows of \
                 the sender are reconstructed with the round trip of the handshake"
            }
            Self::Unknown => {
                let window = match gap.hides_window_scale() {
                    true => "; the receive window's scale is unknown",
                    false => "",
                };
                return Some(format!(
                    "{}: the position is unknown and assumed to be the sender's{window}",
                    gap.reason()
                ));
            }
        };
        Some(text.to_owned())
    }

    /// The position as a noun phrase.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "the sender",
            Self::Receiver => "the receiver",
            Self::Between { .. } => "a point between both ends",
            Self::Unknown => "an unknown point",
        }
    }
}
