//! Sources of events of a head's thread for collectors.

use crate::runtime::poll::{Key, Token};

/// A socket of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadToken {
    Listener,
    /// Row of a collector's connection.
    Collector(u32),
}

impl Token for HeadToken {
    fn to_key(self) -> Key {
        let (kind, row) = match self {
            Self::Listener => (0, 0),
            Self::Collector(row) => (1, row),
        };
        Key { kind, row, number: 0 }
    }

    fn from_key(key: Key) -> Option<Self> {
        match key.kind {
            0 => Some(Self::Listener),
            1 => Some(Self::Collector(key.row)),
            _ => None,
        }
    }
}
