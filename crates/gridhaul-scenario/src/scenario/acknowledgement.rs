//! Acknowledgements by applications: messages that the receiver confirms, and the sender repeats.

use serde::{Deserialize, Serialize};

use super::{Flow, Scenario};
use crate::units::{Bytes, Duration};

/// Messages that the application of the `to` end acknowledges. The application of the `from` end
/// transmits a message again if its acknowledgement does not arrive in time, and gives it up at
/// last. TCP delivers each copy of a message once at most, or not at all if its connection ends:
/// the receiver may get several copies of a message, or the sender may give up one that has
/// arrived. The receiver acknowledges each copy.
///
/// If a connection ends, its data that have not arrived are lost, and messages without an
/// acknowledgement are transmitted again on the next connection (`reconnect`). Messages wait while
/// there is no connection; this time does not count for `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    /// Size of an acknowledgement.
    pub size: Bytes,
    /// Time from the transmission of a message, when the application passes it to the connection,
    /// until the sender transmits it again.
    pub timeout: Duration,
    /// Retransmissions of a message before the sender gives it up.
    #[serde(default = "default_retransmissions")]
    pub retransmissions: u32,
    /// The connection of a retransmission.
    #[serde(default)]
    pub retransmit_on: RetransmitOn,
    /// Messages that may be without an acknowledgement at the same time; further ones wait at the
    /// sender.
    #[serde(default = "default_window")]
    pub window: u32,
    /// Time from the arrival of a copy until the receiver writes its acknowledgement.
    #[serde(default)]
    pub think: Duration,
}

/// The connection on which a message is transmitted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RetransmitOn {
    /// The present one. TCP delivers the first copy as well, unless the connection ends.
    #[default]
    SameConnection,
    /// A new one: the sender aborts the present one (RST), and connects after a pause
    /// (`reconnect`).
    NewConnection,
}

/// Key of a flow with acknowledgements.
pub(super) const ACKNOWLEDGEMENT: &str = "acknowledgement";

impl Scenario {
    /// Whether the messages of a flow are acknowledged by applications, or may be at a point of the
    /// sweep.
    #[must_use]
    pub fn may_acknowledge(&self) -> bool {
        let is_key = |key: &String| {
            let mut steps = key.split('.');
            steps.next() == Some("flow") && steps.nth(1) == Some(ACKNOWLEDGEMENT)
        };
        self.flow.values().any(Flow::has_session)
            || self.may_start_transfer()
            || self.sweep.iter().any(|entry| entry.vary.keys().any(is_key))
    }
}

impl Flow {
    /// Whether applications acknowledge the messages of the flow, with `acknowledgement` or MQTT.
    #[must_use]
    pub const fn acknowledges(&self) -> bool {
        self.acknowledgement.is_some() || self.load.is_mqtt()
    }

    /// Whether applications transmit messages without an acknowledgement again on the next
    /// connection.
    #[must_use]
    pub const fn has_session(&self) -> bool {
        self.acknowledges() || self.load.starts_transfer()
    }
}

const fn default_retransmissions() -> u32 {
    4
}
const fn default_window() -> u32 {
    1
}
