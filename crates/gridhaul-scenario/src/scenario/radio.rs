//! The radio interface of a mobile network: transport blocks, their retransmission, and grants.

use serde::{Deserialize, Serialize};

use crate::units::{Duration, Probability};

/// Radio interface of a mobile network, a stated model of LTE (3GPP TS 36.213, TS 36.321) and NR
/// (TS 38.214, TS 38.321): errors become delays in steps of a HARQ round trip, and rare losses.
///
/// Time is divided into slots. A slot carries a transport block, which has the bits that the
/// direction transmits in that slot; small packets share a block, and a large packet needs several.
/// A block with an error is transmitted again after `round_trip`, up to `transmissions` times in
/// all. A packet arrives when the last of its blocks has arrived, and not before earlier packets
/// (RLC delivers in order); it is lost if one of its blocks fails every time (RLC in unacknowledged
/// mode). Repetitions use the rate of the direction: each occupies the transmitter for a slot.
///
/// A packet that finds the direction idle waits for the beginning of a slot; in an uplink with
/// `request_every`, for the next scheduling request of its device and for the grant before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// Source of the values of the keys that are absent.
    pub standard: RadioStandard,
    /// Length of a slot: a subframe of LTE, a slot of NR. Absent: `lte` 1 ms, `nr` 500 us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Duration>,
    /// Probability that the first transmission of a block fails. Absent: 10 %, the target of link
    /// adaptation (TS 36.213, section 7.2.3; TS 38.214, section 5.2.2.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_error: Option<Probability>,
    /// Probability that a repetition of a block fails, which soft combining reduces. Absent: as
    /// `block_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_error: Option<Probability>,
    /// Time from a transmission of a block to the next one: the HARQ round trip. Absent: `lte`
    /// 8 ms, `nr` 4 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Duration>,
    /// Largest number of transmissions of a block, after which it is lost. Absent: `lte` 5, the
    /// default of `maxHARQ-Tx` (TS 36.331, section 9.2.2), `nr` 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmissions: Option<u32>,
    /// Period of the scheduling requests of a device, whose phase is random for each member of a
    /// group. Absent: no requests, as in a downlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_every: Option<Duration>,
    /// Time from a scheduling request to the granted transmission. Absent: `lte` 8 ms, `nr` 4 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_delay: Option<Duration>,
}

/// Standard of a radio interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RadioStandard {
    /// LTE with frequency division duplex.
    Lte,
    /// NR with a subcarrier spacing of 30 kHz.
    Nr,
}

/// The values of all keys of a radio interface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioParameters {
    /// Length of a slot.
    pub slot: Duration,
    /// Probability that the first transmission of a block fails.
    pub block_error: Probability,
    /// Probability that a repetition fails.
    pub repetition_error: Probability,
    /// Time from a transmission of a block to the next one.
    pub round_trip: Duration,
    /// Largest number of transmissions of a block.
    pub transmissions: u32,
    /// Period of the scheduling requests.
    pub request_every: Option<Duration>,
    /// Time from a scheduling request to the granted transmission.
    pub grant_delay: Duration,
}

impl Radio {
    /// Shortest slot: shorter ones are probably typing errors.
    pub const SLOT_MIN: Duration = Duration::from_micros(10);
    /// Largest number of transmissions of a block: more are probably typing errors.
    pub const TRANSMISSIONS_MAX: u32 = 1_000;

    /// All values, those of the standard for keys that are absent.
    #[must_use]
    pub fn parameters(&self) -> RadioParameters {
        let millis = Duration::from_millis;
        // TS 36.211, section 4.1: a subframe of 1 ms. TS 36.213, section 8: eight HARQ processes of
        // FDD, so that a block is repeated after 8 ms. TR 36.881, table 5.2.1-1: 1 ms for the
        // request, 3 ms and 1 ms for the grant, 3 ms until the transmission.
        let (slot, round_trip, transmissions, grant_delay) = match self.standard {
            RadioStandard::Lte => (millis(1), millis(8), 5, millis(8)),
            // TS 38.211, table 4.3.2-1: two slots in a subframe. The other values are assumptions
            // (docs/limitations/links.md).
            RadioStandard::Nr => (Duration::from_micros(500), millis(4), 4, millis(4)),
        };
        let block_error = self.block_error.or_else(|| Probability::new(0.1)).unwrap_or_default();
        RadioParameters {
            slot: self.slot.unwrap_or(slot),
            block_error,
            repetition_error: self.repetition_error.unwrap_or(block_error),
            round_trip: self.round_trip.unwrap_or(round_trip),
            transmissions: self.transmissions.unwrap_or(transmissions),
            request_every: self.request_every,
            grant_delay: self.grant_delay.unwrap_or(grant_delay),
        }
    }
}
