//! Traffic shapers at the sending node of a link.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::route::Hop;
use crate::units::{BitRate, Bytes, QueueLimit};

/// A traffic shaper at the sending node of a direction (paper `hybrid`, section 3.3). With a rate
/// below that of the link, packets queue in the shaper, where flows have shares, and not in the
/// queue of the link; they leave without bursts.
///
/// The shaper is HTB of the Linux kernel: flows below their guarantee are served first, the
/// remaining capacity is lent to flows that can use it, and no flow exceeds its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// Whether the shaper is on; `false` removes it, for example in a sweep.
    #[serde(default = "is_on", skip_serializing_if = "is_true")]
    pub on: bool,
    /// Total rate of all flows, including headers.
    pub rate: BitRate,
    /// Burst size of each share after an idle time.
    #[serde(default = "default_burst")]
    pub burst: Bytes,
    /// Queue limit of each share; a packet that arrives at a full queue is dropped.
    #[serde(default = "default_queue")]
    pub queue: QueueLimit,
    /// Shares of flows, by the name of the flow, for all packets in this direction (data or
    /// acknowledgements). The other flows share the remaining capacity.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub share: IndexMap<String, ShaperShare>,
}

/// Share of a flow in a shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShaperShare {
    /// Guaranteed rate.
    pub guarantee: BitRate,
    /// Largest rate. Absent: the rate of the shaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<BitRate>,
}

impl Scenario {
    /// The shapers that are on: key, direction and shaper.
    pub fn shapers(&self) -> impl Iterator<Item = (String, Hop, &Shaper)> {
        self.link.iter().enumerate().flat_map(|(index, (name, link))| {
            let sides = [("forward", link.forward(), true), ("reverse", link.reverse(), false)];
            sides.into_iter().filter_map(move |(side, direction, forward)| {
                let shaper = direction?.active_shaper()?;
                let side = if link.both.is_some() { "both" } else { side };
                Some((format!("link.{name}.{side}.shaper"), Hop { link: index, forward }, shaper))
            })
        })
    }

    /// The scenario without shapers, for links whose shapers are those of a kernel.
    #[must_use]
    pub fn without_shapers(&self) -> Self {
        let mut scenario = self.clone();
        for link in scenario.link.values_mut() {
            let directions = [&mut link.both, &mut link.forward, &mut link.reverse];
            directions.into_iter().flatten().for_each(|direction| direction.shaper = None);
        }
        scenario
    }

    /// The shapers that are on, as in the file: a shaper of `both` directions counts once.
    pub fn shaper_keys(&self) -> impl Iterator<Item = (String, &Shaper)> {
        self.link.iter().flat_map(|(name, link)| {
            let given = link.given();
            given.filter_map(move |(side, direction)| {
                Some((format!("link.{name}.{side}.shaper"), direction.active_shaper()?))
            })
        })
    }
}

const fn is_on() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}
const fn default_burst() -> Bytes {
    Bytes::new(3_000)
}
const fn default_queue() -> QueueLimit {
    QueueLimit::Packets(100)
}
