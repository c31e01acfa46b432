//! Shapers: what a node holds back on its way onto a link.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::route::Hop;
use crate::units::{BitRate, Bytes, QueueLimit};

/// A shaper in front of a direction, at the node where it begins (paper `hybrid`, section 3.3). With a
/// rate below that of the wire nothing waits in the link's own queue: packets wait here, where flows
/// have shares, and leave without bursts.
///
/// It is the kernel's HTB: flows below their guarantee go first, what is left is lent to those that
/// can use it, and no flow exceeds its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// Whether it works; `false` is as if it were not there, which a sweep can ask for.
    #[serde(default = "works", skip_serializing_if = "is_true")]
    pub on: bool,
    /// Rate at which packets leave, headers included, all flows together.
    pub rate: BitRate,
    /// What may leave at once after a pause, of each share.
    #[serde(default = "default_burst")]
    pub burst: Bytes,
    /// What may wait of each share; a packet that finds it full is dropped.
    #[serde(default = "default_queue")]
    pub queue: QueueLimit,
    /// Shares of flows, by their names: of all packets that cross here, data or acknowledgements. The
    /// other flows share what is left.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub share: IndexMap<String, ShaperShare>,
}

/// What a flow has of a shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShaperShare {
    /// Rate that it has whatever the others send.
    pub guarantee: BitRate,
    /// Rate that it does not exceed, even alone. Absent: the rate of the shaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<BitRate>,
}

impl Scenario {
    /// The shapers that work: the key of each, and the direction that it stands before.
    pub fn shapers(&self) -> impl Iterator<Item = (String, Hop, &Shaper)> {
        self.link.iter().enumerate().flat_map(|(index, (name, link))| {
            let ways = [("forward", link.forward(), true), ("reverse", link.reverse(), false)];
            ways.into_iter().filter_map(move |(way, direction, forward)| {
                let shaper = direction?.active_shaper()?;
                let way = if link.both.is_some() { "both" } else { way };
                Some((format!("link.{name}.{way}.shaper"), Hop { link: index, forward }, shaper))
            })
        })
    }

    /// The shapers that work as the file gives them: one for `both` directions counts once.
    pub fn shaper_keys(&self) -> impl Iterator<Item = (String, &Shaper)> {
        self.link.iter().flat_map(|(name, link)| {
            let given = link.given();
            given.filter_map(move |(way, direction)| {
                Some((format!("link.{name}.{way}.shaper"), direction.active_shaper()?))
            })
        })
    }
}

const fn works() -> bool {
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
