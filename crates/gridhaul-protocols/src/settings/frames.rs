//! Protocols of Ethernet frames.

use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use crate::sampled_values::LIGHT_EDITION_CHANNELS;

/// Bytes of a message of Sampled Values in the data set of 9-2LE: those of its values.
pub const LIGHT_EDITION_MESSAGE: usize = 4 * LIGHT_EDITION_CHANNELS;

/// Bytes of the longest message of Sampled Values: a frame has at most 1,500 B after the EtherType,
/// of which header and elements take 60 B with an `svID` of eight letters.
pub const SAMPLED_VALUES_MESSAGE_MAX: usize = 1_440;

/// Bytes of the longest message of GOOSE: a frame has at most 1,500 B after the EtherType, of which
/// header and elements take 112 B with a control block of 20 letters and the largest numbers.
pub const GOOSE_MESSAGE_MAX: usize = 1_388;

/// Largest VLAN identifier; 4095 is reserved (IEEE 802.1Q).
const VLAN_MAX: u16 = 4_094;

/// Largest priority: three bits.
const PRIORITY_MAX: u8 = 7;

/// Shortest interval between retransmissions, so that a sender does not take a whole processor.
const INTERVAL_MIN: Duration = Duration::from_micros(100);

/// Sampled Values or GOOSE with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameStream {
    /// VLAN tag; `None` for frames without one.
    pub vlan: Option<Vlan>,
    /// Content of the frames.
    pub content: FrameContent,
}

/// A VLAN tag (IEEE 802.1Q).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// Identifier.
    pub id: u16,
    /// Priority.
    pub priority: u8,
}

/// Content of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FrameContent {
    /// Sampled Values.
    SampledValues {
        /// Samples per second of the data set of 9-2LE; `None` for the bytes of the message.
        light_edition: Option<u16>,
    },
    /// Events of GOOSE.
    Goose {
        /// Retransmissions of an event; `None` for none.
        retransmission: Option<Retransmission>,
    },
}

/// Intervals between the messages of an event of GOOSE, each twice as long as the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retransmission {
    /// First interval after an event.
    pub shortest: Duration,
    /// Longest interval.
    pub longest: Duration,
}

impl FrameStream {
    /// Checks the ranges of the fields.
    ///
    /// # Errors
    /// The first field that is out of range, with what is expected.
    pub fn check(&self) -> Result<(), String> {
        let is_tag = |tag: Vlan| tag.id <= VLAN_MAX && tag.priority <= PRIORITY_MAX;
        if !self.vlan.is_none_or(is_tag) {
            return Err(format!(
                "vlan: expected an identifier of at most {VLAN_MAX} and a priority of at most \
                 {PRIORITY_MAX}"
            ));
        }
        match self.content {
            FrameContent::SampledValues { light_edition: Some(0) } => {
                Err("light_edition: expected at least one sample per second".into())
            }
            FrameContent::Goose { retransmission: Some(schedule) }
                if schedule.shortest < INTERVAL_MIN =>
            {
                Err(format!("retransmission: expected at least {INTERVAL_MIN}"))
            }
            FrameContent::SampledValues { .. } | FrameContent::Goose { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_checked() {
        let stream =
            |id, priority, content| FrameStream { vlan: Some(Vlan { id, priority }), content };
        let samples = FrameContent::SampledValues { light_edition: None };
        assert_eq!(stream(4_094, 7, samples).check(), Ok(()));
        for (id, priority) in [(4_095, 0), (0, 8)] {
            assert!(stream(id, priority, samples).check().unwrap_err().contains("vlan"));
        }
        let none = FrameContent::SampledValues { light_edition: Some(0) };
        assert!(stream(0, 0, none).check().is_err());
        let retransmission =
            Some(Retransmission { shortest: Duration::ZERO, longest: Duration::ZERO });
        assert!(stream(0, 0, FrameContent::Goose { retransmission }).check().is_err());
    }
}
