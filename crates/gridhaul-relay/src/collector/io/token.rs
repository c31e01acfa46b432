//! Sources of events of a collector.

use crate::runtime::poll::{Key, Token};

/// A socket of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CollectorToken {
    Listener(u32),
    /// Row of the meter, and its number.
    Meter(u32, u32),
    /// Connection whose meter is not known yet: row and number.
    Arrival(u32, u32),
    Upstream(u32),
    /// The TUN device.
    Tun,
}

impl Token for CollectorToken {
    fn to_key(self) -> Key {
        let (kind, row, number) = match self {
            Self::Listener(row) => (0, row, 0),
            Self::Meter(row, number) => (1, row, number),
            Self::Arrival(row, number) => (2, row, number),
            Self::Upstream(row) => (3, row, 0),
            Self::Tun => (4, 0, 0),
        };
        Key { kind, row, number }
    }

    fn from_key(key: Key) -> Option<Self> {
        match key.kind {
            0 => Some(Self::Listener(key.row)),
            1 => Some(Self::Meter(key.row, key.number)),
            2 => Some(Self::Arrival(key.row, key.number)),
            3 => Some(Self::Upstream(key.row)),
            4 => Some(Self::Tun),
            _ => None,
        }
    }
}
