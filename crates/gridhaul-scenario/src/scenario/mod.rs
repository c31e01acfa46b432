//! What is asked: one TOML file that every backend reads.

mod application;
mod aqm;
mod check;
mod directions;
mod end_of_run;
mod error;
mod file;
mod flow;
mod ip;
mod line_noise;
mod link;
mod load;
mod node;
mod plan;
mod points;
mod power_line;
mod proxy;
mod random;
mod route;
mod shaper;
mod stack;
mod stage;
pub(crate) mod suggest;
mod sweep;
mod unused;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Duration;

pub use application::{Application, ApplicationProfile};
pub use aqm::{Aqm, Codel, FqCodel, Pie, Red};
pub use directions::{Directions, assigned_member};
pub use error::{Diagnostic, ScenarioError, SourceLocation};
pub use file::{ScenarioFile, reworded};
pub use flow::{Flow, Transport};
pub use ip::IpVersion;
pub use line_noise::{Noise, NoiseTiming, Shadowing};
pub use link::{
    Direction, GilbertElliott, Jitter, JitterShape, Link, LoadLatency, Loss, Outage, OutageMode,
    PACKET_MAX, Reorder,
};
pub use load::{
    Burst, Load, OnOff, PeriodDistribution, Periodic, Poisson, RequestResponse, Trace, Transfer,
};
pub use node::{Aggregator, FullBufferPolicy, Node};
pub use plan::{PlanLimit, PlanSpecification};
pub use points::{Choice, Choices, ScenarioPoint};
pub use power_line::{PowerLine, PowerLineClass};
pub use proxy::{Crash, FlowEnd, PacketsWhileDown, Proxy, ProxyMode, ProxyPosition};
pub use route::{Hop, Routes};
pub use shaper::{Shaper, ShaperShare};
pub use stack::{CongestionControlAlgorithm, Profile, Recovery, Stack};
pub use stage::{Stage, upstream_name};
pub use sweep::{Sweep, ValueRange, Values};

/// A network, what is sent over it, and how long it is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what this scenario is about; the heading of its report.
    pub title: String,
    /// The story: what is asked and what to look for. Shown in the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Seed of all chance. The same scenario and seed give the same answer, byte for byte.
    #[serde(default = "one")]
    pub seed: u64,
    /// Length of a run in simulated or real time.
    pub duration: Duration,
    /// Time at the start that is run but not measured.
    #[serde(default)]
    pub warmup: Duration,
    /// Number of replications, each with random numbers of its own. From two on, means have a 95 %
    /// confidence interval, unless no random number influences the result: then all are equal.
    #[serde(default = "one_repeat")]
    pub replications: u32,
    /// Folder in which relative paths of traces begin. Absent: that of the scenario file. Merged
    /// scenarios that name a trace have it; it is not part of their SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What is recorded over time, besides the totals.
    #[serde(default)]
    pub record: Record,
    /// Places where packets start, end or are forwarded, by name.
    pub node: IndexMap<String, Node>,
    /// Links between two nodes, by name.
    pub link: IndexMap<String, Link>,
    /// TCP stacks, by name; flows choose one.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub stack: IndexMap<String, Stack>,
    /// What is sent from where to where, by name.
    pub flow: IndexMap<String, Flow>,
    /// Keys of this file to vary; several entries are combined in every way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Sweep>,
    /// What `gridhaul plan` may choose, what it costs and what must hold. Other commands answer the
    /// scenario as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpecification>,
}

/// What is recorded over time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Step of the recorded series (congestion window, queue, round-trip time, throughput).
    /// Absent: no series. Only the first repeat is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Names of links whose packets are written to a pcapng file for Wireshark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pcap: Vec<String>,
}

/// What names of nodes, links, stacks and flows are made of.
pub const NAME_RULE: &str = "use letters from a to z, digits, `_` and `-`";

impl Scenario {
    /// Whether this can be the name of a node, a link, a stack or a flow ([`NAME_RULE`]).
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        !text.is_empty() && text.chars().all(allowed)
    }
}

impl Record {
    /// Whether the packets of a direction, such as `feeder.forward`, are written down.
    #[must_use]
    pub fn captures(&self, direction: &str) -> bool {
        let link = direction.rsplit_once('.').map_or(direction, |(link, _)| link);
        self.pcap.iter().any(|wanted| wanted == link)
    }
}

const fn one() -> u64 {
    1
}
const fn one_repeat() -> u32 {
    1
}
