//! Handovers: short interruptions of a link whose device changes its cell.

use serde::{Deserialize, Serialize};

use super::{Outage, OutageMode};
use crate::units::Duration;

/// Handovers of the device at a link between two cells. Each interrupts both directions, for 20 ms
/// to 50 ms in LTE (3GPP TS 36.133, section 5.1; TR 36.881, section 5.2.3): periodic ones, with
/// `every`, or those at stated times, with `at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Time from one handover to the next. The time of the first one is random for each member of a
    /// group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Times of handovers, of all members of a group at once, from the beginning of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Duration>,
    /// Time for which neither direction transmits.
    pub interruption: Duration,
    /// Packets that would have been transmitted during an interruption.
    #[serde(default)]
    pub packets: PacketsInHandover,
}

/// Packets that would have been transmitted during the interruption of a handover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PacketsInHandover {
    /// They wait in the queue of the link: the old cell forwards them to the new one (TS 36.300,
    /// section 10.1.2.3).
    #[default]
    Forward,
    /// They are lost.
    Drop,
}

impl Handover {
    /// The interruptions of one member. `draw` returns a random time of up to a period, which is
    /// that of the first handover.
    pub fn interruptions(&self, draw: impl FnOnce(Duration) -> Duration) -> Vec<Outage> {
        let mode = match self.packets {
            PacketsInHandover::Forward => OutageMode::Hold,
            PacketsInHandover::Drop => OutageMode::Drop,
        };
        let length = self.interruption;
        let stated = self.at.iter().map(|at| Outage { start: *at, length, every: None, mode });
        let periodic =
            self.every.map(|every| Outage { start: draw(every), length, every: Some(every), mode });
        stated.chain(periodic).collect()
    }
}
