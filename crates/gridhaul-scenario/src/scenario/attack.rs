//! Attacks on the network, for a time.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Burst, ConnectionPolicy, Dscp, Flow, IpVersion, Load, Scenario, Transport};
use crate::units::{BitRate, Bytes, Duration, Probability};

/// An attack on the network, for a time. A packet is dropped, delayed or altered if its
/// transmission ends during the attack, the start included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Start, from the beginning of the run.
    pub start: Duration,
    /// Duration.
    pub length: Duration,
    /// Period of a recurring attack, from start to start. Absent: a single attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Action of the attacker.
    pub action: AttackAction,
}

/// Action of an attacker. With `drop`, `delay` and `alter` the attacker is in the middle of a link:
/// packets reach the attacker after their transmission, and packets that the link itself loses do
/// not. With `flood` the attacker is a node of the network, or a group of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttackAction {
    /// Packets of a link are dropped.
    Drop(DropAttack),
    /// Packets of a link are held back.
    Delay(DelayAttack),
    /// The payload of packets of a link is altered.
    Alter(AlterAttack),
    /// Datagrams at a constant rate fill links and queues. The answer has a row for this flow, with
    /// the name of the attack.
    Flood(FloodAttack),
}

/// An attacker drops packets of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DropAttack {
    /// The link: `"feeder"` for both directions, `"feeder.forward"` or `"feeder.reverse"` for one;
    /// of the links of a group all, or one, as in `"feeder[3]"` and `"feeder.forward[3]"`.
    pub link: String,
    /// Names of the flows whose packets are concerned, in both directions; those of an upstream
    /// connection belong to no flow. Absent: all packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<String>>,
    /// Probability that a packet is dropped.
    #[serde(default = "always")]
    pub probability: Probability,
}

/// An attacker holds packets of a link back. Other packets may overtake them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelayAttack {
    /// The link, as in `drop`.
    pub link: String,
    /// Names of the flows whose packets are concerned, as in `drop`. Absent: all packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<String>>,
    /// Probability that a packet is held back.
    #[serde(default = "always")]
    pub probability: Probability,
    /// Additional delay.
    pub by: Duration,
}

/// An attacker alters the payload of packets of a link. Packets without payload, such as
/// acknowledgements, are not altered. All bytes of the payload count as altered, because the
/// simulator has no content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AlterAttack {
    /// The link, as in `drop`.
    pub link: String,
    /// Names of the flows whose packets are concerned, as in `drop`. Absent: all packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<String>>,
    /// Probability that a packet with payload is altered.
    #[serde(default = "always")]
    pub probability: Probability,
    /// Checksum of the altered packet.
    #[serde(default)]
    pub checksum: AlteredChecksum,
}

/// Checksum of an altered packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlteredChecksum {
    /// The attacker corrects the checksum: the receiver accepts the packet, and delivers altered
    /// data to the application, also over TCP.
    #[default]
    Valid,
    /// The checksum does not match: the receiver discards the packet, and TCP retransmits it.
    Invalid,
}

/// Attackers flood the path to a node with datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FloodAttack {
    /// The attacking node; each member of a group sends at `rate`.
    pub from: String,
    /// The attacked node. A single attacker of a group sends at `rate` to each member.
    pub to: String,
    /// Rate of the datagrams between an attacking and an attacked node, headers included.
    pub rate: BitRate,
    /// Size of a datagram, IP and UDP headers included.
    #[serde(default = "flood_size")]
    pub size: Bytes,
    /// Links of the path from `from` to `to`, in order. Absent: the path with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
}

/// Packets that an attacker in the middle of a link selects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttackedPackets<'a> {
    /// Key of the action.
    pub kind: &'static str,
    /// The link, as in the scenario.
    pub link: AttackedLink<'a>,
    /// Names of flows; `None` for all packets.
    pub flows: Option<&'a [String]>,
    /// Probability that the attacker acts on such a packet.
    pub probability: Probability,
}

/// The links that an attack names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackedLink<'a> {
    /// Name of the link.
    pub name: &'a str,
    /// `forward` or `reverse`; `None` for both directions.
    pub direction: Option<&'a str>,
    /// Number of the member, as in the scenario; `None` for all members.
    pub member: Option<&'a str>,
}

impl AttackAction {
    /// The packets that an attacker in the middle of a link selects; `None` for a flood.
    #[must_use]
    pub fn packets(&self) -> Option<AttackedPackets<'_>> {
        let (kind, link, flows, probability) = match self {
            Self::Drop(keys) => ("drop", &keys.link, &keys.flows, keys.probability),
            Self::Delay(keys) => ("delay", &keys.link, &keys.flows, keys.probability),
            Self::Alter(keys) => ("alter", &keys.link, &keys.flows, keys.probability),
            Self::Flood(_) => return None,
        };
        let (link, flows) = (AttackedLink::parse(link), flows.as_deref());
        Some(AttackedPackets { kind, link, flows, probability })
    }

    /// Whether receivers accept altered data.
    #[must_use]
    pub fn delivers_altered_data(&self) -> bool {
        matches!(self, Self::Alter(keys) if keys.checksum == AlteredChecksum::Valid)
    }
}

impl<'a> AttackedLink<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let (text, member) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((text, member)) => (text, Some(member)),
            None => (text, None),
        };
        match text.rsplit_once('.') {
            Some((name, direction)) => Self { name, direction: Some(direction), member },
            None => Self { name: text, direction: None, member },
        }
    }

    /// Whether the attack concerns a direction, such as `forward`, of a member of a link.
    #[must_use]
    pub fn selects(&self, link: &str, direction: &str, member: u64) -> bool {
        let is_member = |text: &str| text.parse() == Ok(member);
        self.name == link
            && self.direction.is_none_or(|wanted| wanted == direction)
            && self.member.is_none_or(is_member)
    }
}

impl FloodAttack {
    /// IP version of the datagrams.
    pub(super) const IP: IpVersion = IpVersion::V4;

    /// Time between two datagrams, at least 1 ns.
    pub(super) fn gap(&self) -> Duration {
        let bits = u128::from(self.size.get()) * 8_000_000_000;
        let nanos = bits.div_ceil(u128::from(self.rate.as_bits_per_sec().max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
    }

    /// Number of datagrams of each attacking node in a flood of this length.
    pub(super) fn count(&self, length: Duration) -> u64 {
        length.as_nanos().div_ceil(self.gap().as_nanos())
    }

    /// The datagrams as a flow.
    fn flow(&self, attack: &Attack) -> Flow {
        let payload = self.size.get().saturating_sub(Self::IP.datagram_headers().get());
        let burst = Burst {
            size: Bytes::new(payload),
            at: attack.start,
            spread: Duration::ZERO,
            count: u32::try_from(self.count(attack.length)).unwrap_or(u32::MAX),
            gap: self.gap(),
            every: attack.every,
            share: Probability::ONE,
        };
        Flow {
            from: self.from.clone(),
            to: self.to.clone(),
            count: 1,
            transport: Transport::Datagram,
            ip: Self::IP,
            dscp: Dscp::default(),
            stack: None,
            to_stack: None,
            load: Load::Burst(burst),
            deadline: None,
            acknowledgement: None,
            connection: ConnectionPolicy::Persistent,
            fast_open: false,
            tls: None,
            reconnect: None,
            accept: None,
            nat: None,
            keep_alive: None,
            user_timeout: None,
            local_ports: None,
            coap: None,
            dtls: None,
            start: Duration::ZERO,
            start_spread: None,
            route: self.route.clone(),
            reverse_route: None,
        }
    }
}

impl Scenario {
    /// The scenario with the datagrams of floods as flows, which follow its own flows and have the
    /// names of the attacks.
    #[must_use]
    pub fn with_floods(&self) -> Cow<'_, Self> {
        let mut scenario = Cow::Borrowed(self);
        for (name, attack) in &self.attack {
            if let AttackAction::Flood(flood) = &attack.action {
                scenario.to_mut().flow.insert(name.clone(), flood.flow(attack));
            }
        }
        scenario
    }
}

const fn always() -> Probability {
    Probability::ONE
}
const fn flood_size() -> Bytes {
    Bytes::new(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_link_may_have_a_direction_and_a_member() {
        let selected = |text: &str| {
            let link = AttackedLink::parse(text);
            let all = [("forward", 2), ("forward", 3), ("reverse", 3)];
            all.map(|(direction, member)| link.selects("feeder", direction, member))
        };
        assert_eq!(selected("feeder"), [true, true, true]);
        assert_eq!(selected("feeder.forward"), [true, true, false]);
        assert_eq!(selected("feeder[3]"), [false, true, true]);
        assert_eq!(selected("feeder.reverse[3]"), [false, false, true]);
        assert_eq!(selected("fee"), [false; 3]);
    }

    #[test]
    fn a_flood_has_its_rate_and_its_length() {
        let flood = |rate: u64, size: u64| FloodAttack {
            from: "bot".to_owned(),
            to: "head".to_owned(),
            rate: BitRate::from_bits_per_sec(rate),
            size: Bytes::new(size),
            route: None,
        };
        // 1,000 B at 2 Mbit/s: a datagram every 4 ms, from 0 ms to 996 ms.
        let common = flood(2_000_000, 1_000);
        assert_eq!(common.gap(), Duration::from_millis(4));
        assert_eq!(common.count(Duration::from_secs(1)), 250);
        assert_eq!(common.count(Duration::from_nanos(1)), 1);
        // The rate is not exceeded: 333.33 µs are rounded up to whole nanoseconds.
        assert_eq!(flood(24_000_000, 1_000).gap(), Duration::from_nanos(333_334));
    }
}
