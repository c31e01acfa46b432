//! Carrier sense multiple access with collision avoidance.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Carrier sense multiple access with collision avoidance. Each node that has packets for the
/// medium contends for it, with one packet at a time: after the medium has become idle, the node
/// waits for `interframe` and `priority_resolution`, and then for a random number of slots. A node
/// transmits when its number of slots is over and no other node has begun before. Nodes that begin
/// in the same slot collide, and each contends again with the next contention window.
///
/// A transmission occupies the medium for `preamble`, the time of the packet at the rate of the
/// direction, and `response`. The contention is that of IEEE 1901, of which the contention of
/// G3-PLC is a special case; see the page on the limitations of power lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CsmaCa {
    /// Source of the values of the keys that are absent.
    #[serde(default)]
    pub standard: CsmaStandard,
    /// Length of a slot. Absent: `ieee-1901` 35.84 us, `g3-plc` 1.39 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Duration>,
    /// Time from the end of a transmission, `response` included, to the next contention. Absent:
    /// `ieee-1901` 100 us, `g3-plc` 5.56 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interframe: Option<Duration>,
    /// Time for the resolution of priorities, before the slots. All packets have the same priority.
    /// Absent: `ieee-1901` 71.68 us, `g3-plc` 9.73 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_resolution: Option<Duration>,
    /// Time before the first bit of a packet: preamble and frame control. Absent: `ieee-1901`
    /// 110.48 us, `g3-plc` 15.115 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<Duration>,
    /// Time from the last bit of a packet to the end of its acknowledgement by the receiving modem,
    /// also after a collision. Absent: `ieee-1901` 250.48 us, `g3-plc` 20.675 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Duration>,
    /// Contention windows of the stages of a packet, in slots: the number of slots is random, from
    /// 0 to the window minus 1. Absent: `ieee-1901` 8, 16, 32, 64, `g3-plc` 8, 16, 32, 64, 128,
    /// 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<u32>>,
    /// Deferral counters of the stages: how often a node that waits for its slot may find the
    /// medium occupied by others before it goes to the next stage, with a new random number.
    /// Absent: `ieee-1901` 0, 1, 3, 15, `g3-plc` always 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Vec<u32>>,
    /// Number of collisions after which a packet is lost. Absent: `ieee-1901` unlimited, `g3-plc`
    /// 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// Standard of a medium with CSMA/CA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CsmaStandard {
    /// IEEE 1901 (HomePlug AV), access categories CA0 and CA1.
    #[default]
    #[serde(rename = "ieee-1901")]
    Ieee1901,
    /// G3-PLC (ITU-T G.9903) in the CENELEC A band, normal priority.
    G3Plc,
}

/// The values of all keys of a medium with CSMA/CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsmaCaParameters {
    /// Length of a slot.
    pub slot: Duration,
    /// Time from the end of a transmission to the next contention.
    pub interframe: Duration,
    /// Time before the slots of a contention.
    pub priority_resolution: Duration,
    /// Time before the first bit of a packet.
    pub preamble: Duration,
    /// Time from the last bit of a packet to the end of the transmission.
    pub response: Duration,
    /// The stages of a packet, at least one: contention window and deferral counter.
    pub stages: Vec<ContentionStage>,
    /// Number of collisions after which a packet is lost.
    pub attempts: Option<u32>,
}

/// One stage of the contention for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentionStage {
    /// Contention window in slots.
    pub window: u32,
    /// Deferral counter.
    pub deferral: u32,
}

impl CsmaCa {
    /// Largest contention window in slots.
    pub const WINDOW_MAX: u32 = 65_536;

    /// All values, those of the standard for keys that are absent.
    #[must_use]
    pub fn parameters(&self) -> CsmaCaParameters {
        let standard = self.standard.parameters();
        let windows = self.stage_values(&self.windows, |stage| stage.window);
        let deferral = self.stage_values(&self.deferral, |stage| stage.deferral);
        let stage = |(window, deferral)| ContentionStage { window, deferral };
        CsmaCaParameters {
            slot: self.slot.unwrap_or(standard.slot),
            interframe: self.interframe.unwrap_or(standard.interframe),
            priority_resolution: self.priority_resolution.unwrap_or(standard.priority_resolution),
            preamble: self.preamble.unwrap_or(standard.preamble),
            response: self.response.unwrap_or(standard.response),
            stages: windows.into_iter().zip(deferral).map(stage).collect(),
            attempts: self.attempts.or(standard.attempts),
        }
    }

    /// Numbers of contention windows and of deferral counters, which must be equal.
    pub(in crate::scenario) fn stage_counts(&self) -> [usize; 2] {
        let own = [&self.windows, &self.deferral];
        let standard = self.standard.parameters().stages.len();
        own.map(|values| values.as_ref().map_or(standard, Vec::len))
    }

    fn stage_values(
        &self,
        own: &Option<Vec<u32>>,
        of_standard: impl Fn(ContentionStage) -> u32,
    ) -> Vec<u32> {
        let standard = || self.standard.parameters().stages.into_iter().map(of_standard).collect();
        own.clone().unwrap_or_else(standard)
    }
}

impl CsmaStandard {
    fn parameters(self) -> CsmaCaParameters {
        let micros = |hundredths: u64| Duration::from_nanos(hundredths * 10);
        let stages = |stages: &[(u32, u32)]| {
            let stage = |&(window, deferral)| ContentionStage { window, deferral };
            stages.iter().map(stage).collect()
        };
        match self {
            // Slot 35.84 µs, CIFS 100 µs and RIFS 140 µs are those of HomePlug AV in the guide of a
            // modem (ZyXEL PLA-470, Table 3.4). Two priority slots, preamble 110.48 µs,
            // acknowledgement 110.48 µs, and the contention windows and deferral counters of CA0
            // and CA1 are from memory of the literature (docs/limitations/links.md).
            Self::Ieee1901 => CsmaCaParameters {
                slot: micros(3_584),
                interframe: micros(10_000),
                priority_resolution: micros(7_168),
                preamble: micros(11_048),
                response: micros(25_048),
                stages: stages(&[(8, 0), (16, 1), (32, 3), (64, 15)]),
                attempts: None,
            },
            // ITU-T G.9903 in the CENELEC A band, as in the constants of vendors' libraries:
            // symbols of 695 µs, aSlotTime 2, aCIFS 8, aRIFS 8 symbols, 7 slots of the window of
            // high priority before those of normal priority (macHighPriorityWindowSize); macMinBE
            // 3, macMaxBE 8, macMaxFrameRetries 5. Preamble of 9.5 symbols of 640 µs and frame
            // control of 13 symbols: Kabalci and Kabalci 2019, "From Smart Grid to Internet of
            // Energy", Table 4.6. An acknowledgement is assumed to have the same two parts.
            Self::G3Plc => CsmaCaParameters {
                slot: micros(139_000),
                interframe: micros(556_000),
                priority_resolution: micros(973_000),
                preamble: micros(1_511_500),
                response: micros(556_000 + 1_511_500),
                stages: stages(&[(8, 0), (16, 0), (32, 0), (64, 0), (128, 0), (256, 0)]),
                attempts: Some(6),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keys_have_the_values_of_the_standard() {
        let keys = CsmaCa { windows: Some(vec![4, 8, 16, 32]), ..CsmaCa::default() };
        let parameters = keys.parameters();
        let stages: Vec<_> =
            parameters.stages.iter().map(|stage| (stage.window, stage.deferral)).collect();
        assert_eq!(stages, [(4, 0), (8, 1), (16, 3), (32, 15)]);
        // Two priority slots: 2 × 35.84 µs.
        assert_eq!(parameters.priority_resolution, parameters.slot * 2);
        assert_eq!(parameters.attempts, None);
    }

    #[test]
    fn times_of_g3_plc_are_whole_symbols() {
        let keys = CsmaCa { standard: CsmaStandard::G3Plc, ..CsmaCa::default() };
        let parameters = keys.parameters();
        let symbol = Duration::from_micros(695);
        assert_eq!(parameters.slot, symbol * 2);
        assert_eq!(parameters.interframe, symbol * 8);
        assert_eq!(parameters.priority_resolution, parameters.slot * 7);
        assert_eq!(parameters.preamble, Duration::from_micros(6_080) + symbol * 13);
        assert_eq!(parameters.response, symbol * 8 + parameters.preamble);
    }
}
