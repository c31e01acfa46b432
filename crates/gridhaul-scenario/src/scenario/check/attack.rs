//! Checks of attacks.

use super::Report;
use crate::scenario::route::Network;
use crate::scenario::{Attack, AttackAction, AttackedPackets, FloodAttack, Link};
use crate::units::Bytes;

impl Report<'_> {
    pub(super) fn attacks(&mut self, network: Option<&Network<'_>>) {
        for (name, attack) in &self.scenario.attack {
            let key = format!("attack.{name}");
            self.attack_times(&key, attack);
            if let Some(packets) = attack.action.packets() {
                self.attacked_packets(&format!("{key}.action.{}", packets.kind), &packets);
            }
            if let AttackAction::Flood(flood) = &attack.action {
                if self.scenario.flow.contains_key(name) {
                    self.refuse(
                        &key,
                        format!("`{name}` is a flow, and the flood has a row of its own"),
                        "give the attack another name",
                    );
                }
                self.flood(&format!("{key}.action.flood"), (attack, flood), network);
            }
        }
    }

    fn attack_times(&mut self, key: &str, attack: &Attack) {
        if attack.length.is_zero() {
            self.refuse(
                format!("{key}.length"),
                "the length of an attack must be above 0",
                "write \"10 s\", or remove the attack",
            );
        }
        if let Some(every) = attack.every
            && every <= attack.length
        {
            self.refuse(
                format!("{key}.every"),
                format!("the attack recurs every {every} but lasts {}", attack.length),
                "`every` is the time from start to start: make it longer than `length`",
            );
        }
    }

    fn attacked_packets(&mut self, key: &str, packets: &AttackedPackets<'_>) {
        let scenario = self.scenario;
        let (named, link_key) = (packets.link, format!("{key}.link"));
        match scenario.link.get(named.name) {
            None => self.unknown(&link_key, "link", named.name, &scenario.link),
            Some(link) => {
                if let Some(direction) = named.direction {
                    self.attacked_direction(&link_key, (named.name, link), direction);
                }
                let members = scenario.link_members(link);
                let is_member = |text: &str| text.parse().is_ok_and(|number: u32| number < members);
                if let Some(member) = named.member
                    && !is_member(member)
                {
                    let name = named.name;
                    self.refuse(
                        &link_key,
                        format!("link `{name}` has no member {member:?}"),
                        format!("name one from `{name}[0]` to `{name}[{}]`", members - 1),
                    );
                }
            }
        }
        for (index, flow) in packets.flows.into_iter().flatten().enumerate() {
            if !scenario.flow.contains_key(flow) {
                self.unknown(&format!("{key}.flows[{index}]"), "flow", flow, &scenario.flow);
            }
        }
        if packets.flows.is_some_and(<[_]>::is_empty) {
            self.refuse(
                format!("{key}.flows"),
                "an attack on no flow has no effect",
                "name a flow, or leave the key out for all packets",
            );
        }
    }

    fn attacked_direction(&mut self, key: &str, (name, link): (&str, &Link), direction: &str) {
        let exists = match direction {
            "forward" => link.forward().is_some(),
            "reverse" => link.reverse().is_some(),
            _ => {
                self.refuse(
                    key,
                    format!("{direction:?} is not a direction of a link"),
                    format!("write `{name}.forward`, `{name}.reverse`, or `{name}` for both"),
                );
                return;
            }
        };
        if !exists {
            self.refuse(
                key,
                format!("link `{name}` is one-way and has no `{direction}`"),
                format!("write `{name}`, or add the direction to the link"),
            );
        }
    }

    fn flood(
        &mut self,
        key: &str,
        (attack, flood): (&Attack, &FloodAttack),
        network: Option<&Network<'_>>,
    ) {
        let ends = self.ends(key, &flood.from, &flood.to);
        if flood.rate.as_bits_per_sec() == 0 {
            self.refuse(
                format!("{key}.rate"),
                "a flood needs a `rate` above 0",
                "write rate = \"1 Mbit/s\"",
            );
            return;
        }
        let headers = FloodAttack::IP.datagram_headers();
        let largest = Bytes::new(headers.get() + FloodAttack::IP.datagram_payload_max().get());
        if flood.size <= headers || flood.size > largest {
            self.refuse(
                format!("{key}.size"),
                format!("a datagram has more than {headers} of headers, and at most {largest}"),
                "write a size such as \"1 kB\"",
            );
            return;
        }
        let count = flood.count(attack.length);
        if u32::try_from(count).is_err() {
            self.refuse(
                format!("{key}.rate"),
                format!("{count} datagrams in {}", attack.length),
                format!("the limit is {}; reduce the rate or the length", u32::MAX),
            );
        }
        if let (true, false, Some(network)) = (ends, self.is_full(), network)
            && let Err(diagnostic) = network.flood_path(key, flood)
        {
            self.add(diagnostic);
        }
    }
}
