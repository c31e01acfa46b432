//! Sources of events of a hybrid router.

use crate::runtime::poll::{Key, Token};

/// A socket of a hybrid router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouterToken {
    /// Events of network devices.
    Devices,
    /// Probes of a link.
    Link(u32),
}

impl Token for RouterToken {
    fn to_key(self) -> Key {
        let (kind, row) = match self {
            Self::Devices => (0, 0),
            Self::Link(row) => (1, row),
        };
        Key { kind, row, number: 0 }
    }

    fn from_key(key: Key) -> Option<Self> {
        match key.kind {
            0 => Some(Self::Devices),
            1 => Some(Self::Link(key.row)),
            _ => None,
        }
    }
}
