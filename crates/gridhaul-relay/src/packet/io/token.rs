//! Sources of events of a bridge.

use crate::packet::BridgePort;
use crate::runtime::poll::{Key, Token};

/// Frames at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BridgeToken(pub(super) BridgePort);

impl Token for BridgeToken {
    fn to_key(self) -> Key {
        Key { kind: 0, row: self.0.index() as u32, number: 0 }
    }

    fn from_key(key: Key) -> Option<Self> {
        BridgePort::BOTH.get(key.row as usize).copied().map(Self)
    }
}
