//! Sources of events of a split proxy.

use crate::runtime::poll::{Key, Token};
use crate::split::Leg;

/// A socket of a split proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitToken {
    Listener(u32),
    /// Leg of a session: row of the session, and its number.
    Leg(Leg, u32, u32),
    /// Probe of the server of a listener.
    Probe(u32),
}

impl Token for SplitToken {
    fn to_key(self) -> Key {
        let (kind, row, number) = match self {
            Self::Listener(row) => (0, row, 0),
            Self::Leg(Leg::Client, row, number) => (1, row, number),
            Self::Leg(Leg::Server, row, number) => (2, row, number),
            Self::Probe(row) => (3, row, 0),
        };
        Key { kind, row, number }
    }

    fn from_key(key: Key) -> Option<Self> {
        match key.kind {
            0 => Some(Self::Listener(key.row)),
            1 => Some(Self::Leg(Leg::Client, key.row, key.number)),
            2 => Some(Self::Leg(Leg::Server, key.row, key.number)),
            3 => Some(Self::Probe(key.row)),
            _ => None,
        }
    }
}
