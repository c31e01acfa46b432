//! Scenarios: TOML files that describe a network, its traffic and a run. All backends read them.

mod acknowledgement;
mod application;
mod aqm;
mod attack;
mod check;
mod coap;
mod compression;
mod connection;
mod directions;
mod drx;
mod dscp;
mod ecmp;
mod end_of_run;
mod error;
mod exchange;
mod file;
mod flow;
mod gilbert_elliott;
mod handover;
mod hybrid_router;
mod idle_connection;
mod iec_104;
mod ineffective;
mod ip;
mod line_noise;
mod link;
mod link_quality;
mod link_trace;
mod load;
mod loss_classifier;
mod medium;
mod mqtt;
mod node;
mod outage;
mod path_mtu;
mod plan;
mod points;
mod power_line;
mod proxy;
mod radio;
mod random;
mod rate_change;
mod replications;
mod route;
mod route_change;
pub(crate) mod router_times;
mod scheduler;
mod shaper;
mod stack;
mod stage;
pub(crate) mod suggest;
mod sweep;
mod unused;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::units::Duration;

pub use acknowledgement::{Acknowledgement, RetransmitOn};
pub use application::{Application, ApplicationProfile};
pub use aqm::{Aqm, Codel, FqCodel, Pie, Red};
pub use attack::{
    AlterAttack, AlteredChecksum, Attack, AttackAction, AttackedLink, AttackedPackets, DelayAttack,
    DropAttack, FloodAttack,
};
pub use coap::{Coap, Dtls, DtlsSession, DtlsVersion};
pub use compression::{COMPRESSIBLE_HEADER, Compression};
pub use connection::{
    AcceptLimits, ConnectionPolicy, LOCAL_PORTS, Reconnect, Tls, TlsResumption, TlsVersion,
};
pub use directions::{Directions, LinkFiles, assigned_member};
pub use drx::Drx;
pub use dscp::Dscp;
pub use error::{Diagnostic, ScenarioError, SourceLocation};
pub use exchange::{Dlms, Exchange, ExchangeStep, Modbus};
pub use file::{ScenarioFile, in_toml_terms, read_file, read_text};
pub use flow::{Flow, Transport};
pub use gilbert_elliott::{ChannelTransitions, GilbertElliott};
pub use handover::{Handover, PacketsInHandover};
pub use hybrid_router::{HybridRouter, HybridRouterClass, OpeningSide};
pub use idle_connection::{KeepAlive, Nat, NatAnswer};
pub use iec_104::Iec104;
pub use ip::IpVersion;
pub use line_noise::{Noise, NoiseTiming, Shadowing};
pub use link::{Direction, Jitter, JitterShape, Link, LoadLatency, Loss, PACKET_MAX, Reorder};
pub use link_quality::LinkQuality;
pub use link_trace::{
    Deliveries, LinkStep, LinkSteps, LinkTrace, LinkTraceContent, MahimahiTrace, StepTrace,
};
pub use load::{
    Burst, Load, OnOff, PeriodDistribution, Periodic, Poisson, RequestResponse, Trace, Transfer,
};
pub use loss_classifier::LossClassifier;
pub use medium::{
    ContentionStage, CsmaCa, CsmaCaParameters, CsmaStandard, Medium, SharedMedium, Tdma,
};
pub use mqtt::{Mqtt, MqttSubscription, MqttVersion};
pub use node::{Aggregator, FullBufferPolicy, Node};
pub use outage::{Outage, OutageMode};
pub use path_mtu::PacketTooBig;
pub use plan::{PlanLimit, PlanSpecification};
pub use points::{Choice, Choices, ScenarioPoint, SweepPoints};
pub use power_line::{PowerLine, PowerLineClass};
pub use proxy::{Crash, FlowEnd, PacketsWhileDown, Proxy, ProxyMode, ProxyPosition};
pub use radio::{Radio, RadioParameters, RadioStandard};
pub use rate_change::{RateChange, RateSchedule};
pub use replications::{DecidingMetric, NarrowInterval, Replications};
pub use route::{Hop, Routes};
pub use route_change::RouteChange;
pub use scheduler::{Scheduler, SchedulerClass};
pub use shaper::{Shaper, ShaperShare};
pub use stack::{CongestionControlAlgorithm, Profile, Recovery, Stack};
pub use stage::{Stage, upstream_name};
pub use sweep::{Sweep, ValueRange, Values};

/// A network, its traffic and the duration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Title in one line; the heading of the report.
    pub title: String,
    /// Purpose of the scenario and what to observe. Shown in the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Seed of all random numbers. Simulations with the same seed are equal, byte for byte.
    #[serde(default = "one")]
    pub seed: u64,
    /// Duration of a run in simulated or real time.
    pub duration: Duration,
    /// Warm-up: time at the start of the run that is excluded from the measurement.
    #[serde(default)]
    pub warmup: Duration,
    /// Number of replications: independent runs with different random numbers. With two or more,
    /// means have a 95 % confidence interval, unless the scenario is deterministic: then all
    /// replications are equal. `{ until = "5 %", max = 100 }` runs more replications where an
    /// interval is wide.
    #[serde(default = "one_replication")]
    pub replications: Replications,
    /// Folder to which paths of traces are relative. Absent: folder of the scenario file. Merged
    /// scenarios with a trace contain this key; it is not part of their SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Series and packets to record, in addition to the metrics.
    #[serde(default)]
    pub record: Record,
    /// Nodes: senders, receivers and routers, by name.
    pub node: IndexMap<String, Node>,
    /// Links between two nodes, by name.
    pub link: IndexMap<String, Link>,
    /// Media that several links share, by name; links refer to them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub medium: IndexMap<String, Medium>,
    /// TCP stacks, by name; flows refer to them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub stack: IndexMap<String, Stack>,
    /// Flows, by name.
    pub flow: IndexMap<String, Flow>,
    /// Attacks on the network, by name; backend `sim` only.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub attack: IndexMap<String, Attack>,
    /// Keys of this file to vary; several entries are combined with each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Sweep>,
    /// Choices, costs and limits for `gridhaul plan`. Other commands ignore this table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpecification>,
}

/// Recording of series and packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Sampling interval of the recorded series (congestion window, queue, round-trip time,
    /// throughput). Absent: no series. One replication is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Names of links whose packets are captured to a pcapng file, for example for Wireshark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pcap: Vec<String>,
    /// Names of TCP flows of one connection whose events (changes of state and window, losses,
    /// timeouts) are logged to a file of JSON lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Number of the replication whose series, packets and events are recorded, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub replication: u32,
    /// Whether `answer.json` has the metrics of each replication, and not only their means.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_replication: bool,
    /// Names of flows whose members have metrics of their own in `answer.json`, per replication.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Names of flows whose rows have columns for the distribution over their members: worst
    /// member, worst hundredth and median of goodput, share of delivered messages and delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distribution: Vec<String>,
    /// Flows whose goodputs are compared, by a name of the comparison: the answer has a row of this
    /// name with Jain's index over all connections of these flows.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub fairness: IndexMap<String, Vec<String>>,
}

/// Rule for the names of nodes, links, media, stacks, flows and attacks.
pub const NAME_RULE: &str = "use letters from a to z, digits, `_` and `-`";

impl Scenario {
    /// Whether a text is a valid name of a node, link, medium, stack, flow or attack
    /// ([`NAME_RULE`]).
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        !text.is_empty() && text.chars().all(allowed)
    }
}

impl Record {
    /// The sampling interval of the series of a replication, if it is recorded.
    #[must_use]
    pub fn interval_of(&self, replication: u32) -> Option<Duration> {
        self.interval.filter(|_| replication == self.replication)
    }

    /// The keys in use that need values of each member, which only the simulator has.
    pub fn keys_of_members(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("record.members", !self.members.is_empty()),
            ("record.distribution", !self.distribution.is_empty()),
            ("record.fairness", !self.fairness.is_empty()),
        ];
        keys.into_iter().filter_map(|(key, is_used)| is_used.then_some(key))
    }

    /// Whether the packets of a direction, such as `feeder.forward`, are captured.
    #[must_use]
    pub fn captures(&self, direction: &str) -> bool {
        let link = direction.rsplit_once('.').map_or(direction, |(link, _)| link);
        self.pcap.iter().any(|wanted| wanted == link)
    }
}

const fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(replication: &u32) -> bool {
    *replication == 0
}
const fn one_replication() -> Replications {
    Replications::Fixed(1)
}
