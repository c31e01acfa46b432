//! Schedulers: classes of packets, and the order in which a direction serves them.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Aqm, Dscp};
use crate::units::{BitRate, Bytes, QueueLimit};

/// A scheduler at the sending node of a direction: each class of packets has its own queue. When
/// the transmitter becomes free, the packet of the class with the first `priority` is transmitted;
/// classes without a priority share the remaining time by deficit round robin (Shreedhar and
/// Varghese 1995), in proportion to their `weight`. A packet in transmission is completed.
///
/// The answer has a row for each class, `<link>.forward.<class>` or `<link>.reverse.<class>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Bytes that a class of weight 1 may send per round of deficit round robin; at least the size
    /// of the largest packet, so that each class sends in each round.
    #[serde(default = "default_quantum")]
    pub quantum: Bytes,
    /// Classes, by name. The class without `dscp` and `flows` gets all packets that no other class
    /// selects; there is exactly one.
    pub class: IndexMap<String, SchedulerClass>,
}

/// A class of packets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SchedulerClass {
    /// Code points of the packets of the class (see `dscp` of a flow).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Dscp>,
    /// Names of flows whose packets belong to the class, in both directions and whatever their code
    /// point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Rank among the classes with strict priority: 1 is served first. Absent: the class shares
    /// the time that those leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Share relative to the other classes without a priority. Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Largest rate of the class, including headers, by a token bucket: packets wait until it has
    /// tokens for them, even if the transmitter is free. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Size of the token bucket: bytes that the class may send at once after an idle time. A larger
    /// packet waits for a full bucket. Absent: 3 kB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Queue limit of the class. Absent: `queue` of the direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Active queue management of the class: `codel` or `fq_codel`. Absent: drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<Aqm>,
}

impl Scheduler {
    /// [`Self::quantum`] where the file sets none.
    pub(crate) const fn default_quantum() -> Bytes {
        default_quantum()
    }

    /// Number of the class of a code point.
    #[must_use]
    pub fn class_of_code_point(&self, dscp: Dscp) -> usize {
        let found = self.class.values().position(|class| class.dscp.contains(&dscp));
        found.unwrap_or_else(|| self.other_packets())
    }

    /// Number of the class that names a flow, if there is one.
    #[must_use]
    pub fn class_that_names(&self, flow: &str) -> Option<usize> {
        self.class.values().position(|class| class.flows.iter().any(|name| name == flow))
    }

    /// Number of the class of all other packets.
    #[must_use]
    pub fn other_packets(&self) -> usize {
        self.class.values().position(SchedulerClass::takes_other_packets).unwrap_or(0)
    }
}

impl SchedulerClass {
    /// Whether the class gets the packets that no other class selects.
    #[must_use]
    pub const fn takes_other_packets(&self) -> bool {
        self.dscp.is_empty() && self.flows.is_empty()
    }

    /// Weight in deficit round robin.
    #[must_use]
    pub fn effective_weight(&self) -> u32 {
        self.weight.unwrap_or(1)
    }

    /// Size of the token bucket of a class with a `rate`.
    #[must_use]
    pub fn effective_burst(&self) -> Bytes {
        self.burst.unwrap_or(DEFAULT_BURST)
    }
}

/// Two packets of 1,500 B.
const DEFAULT_BURST: Bytes = Bytes::new(3_000);

/// The largest packet of Ethernet (RFC 894).
const fn default_quantum() -> Bytes {
    Bytes::new(1_500)
}
