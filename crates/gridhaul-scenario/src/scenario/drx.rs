//! Discontinuous reception: devices that receive at certain times only.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Discontinuous reception of the device at the end of a direction: DRX, eDRX or the power saving
/// mode of LTE, LTE-M and NB-IoT (3GPP TS 36.321, section 5.7; TS 24.301, sections 5.3.11 and
/// 5.3.12).
///
/// A device that has neither sent nor received for `inactivity` sleeps. A packet to it waits for
/// the next occasion of its cycle, whose phase is random for each member of a group, or until the
/// device sends a packet in the other direction of the link. Sending is possible at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Drx {
    /// Time between two occasions at which the device listens: long DRX cycle, eDRX cycle, or
    /// period of the tracking-area updates in power saving mode (T3412).
    pub cycle: Duration,
    /// Time after the last packet in either direction for which the device keeps listening: DRX
    /// inactivity timer, or active time (T3324).
    pub inactivity: Duration,
    /// Time from an occasion, or from a packet of the device, until the link transmits: paging,
    /// random access and resumption of the connection.
    #[serde(default)]
    pub delay: Duration,
}
