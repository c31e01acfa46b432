//! Impairments of single packets: loss, additional delay, duplication.
//!
//! ```text
//! client data 3 5-7    lost          data packets 3 and 5 to 7, with retransmissions
//! client seq 3001      lost          the first transmission of this sequence number
//! client seq 3001 1-2  lost          the first two transmissions
//! server ack 2         delayed 20 ms
//! client fin 1         duplicated
//! ```

use gridhaul_scenario::units::Duration;

use super::Endpoint;
use crate::observation::Packet;

/// Impairment of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketImpairment {
    /// The packet does not arrive.
    Lost,
    /// The packet arrives with this additional delay.
    Delayed(Duration),
    /// The packet arrives duplicated.
    Duplicated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketKind {
    Data,
    Ack,
    Syn,
    Fin,
    Any,
    Seq(u64),
}

#[derive(Debug, Clone)]
struct ImpairmentRule {
    from: Endpoint,
    kind: PacketKind,
    ordinals: Vec<(u64, u64)>,
    impairment: PacketImpairment,
    matched: u64,
}

/// The impairment rules of a case, with the number of packets that each rule has matched.
#[derive(Debug, Clone, Default)]
pub struct PacketImpairments {
    rules: Vec<ImpairmentRule>,
}

impl PacketImpairments {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let rules = lines
            .filter(|line| !line.is_empty())
            .map(|line| {
                rule(line).ok_or_else(|| {
                    format!(
                        "cannot parse the impairment `{line}`; expected for example `client data 3 \
                         lost`"
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// Impairment of a packet that is now offered to the path; counts the packet.
    pub fn next_impairment(&mut self, packet: &Packet) -> Option<PacketImpairment> {
        let mut impairment = None;
        for rule in &mut self.rules {
            if rule.from == packet.from && rule.kind.covers(packet) {
                rule.matched += 1;
                let listed = |&(first, last): &(u64, u64)| (first..=last).contains(&rule.matched);
                if rule.ordinals.iter().any(listed) {
                    impairment = impairment.or(Some(rule.impairment));
                }
            }
        }
        impairment
    }
}

impl PacketKind {
    fn covers(self, packet: &Packet) -> bool {
        match self {
            Self::Data => packet.len > 0,
            Self::Ack => packet.is_pure_ack(),
            Self::Syn => packet.syn,
            Self::Fin => packet.fin,
            Self::Any => true,
            Self::Seq(seq) => packet.len > 0 && packet.seq == seq,
        }
    }
}

fn rule(line: &str) -> Option<ImpairmentRule> {
    let mut words = line.split_whitespace();
    let from = match words.next()? {
        "client" => Endpoint::Client,
        "server" => Endpoint::Server,
        _ => return None,
    };
    let kind = match words.next()? {
        "data" => PacketKind::Data,
        "ack" => PacketKind::Ack,
        "syn" => PacketKind::Syn,
        "fin" => PacketKind::Fin,
        "any" => PacketKind::Any,
        "seq" => PacketKind::Seq(words.next()?.parse().ok()?),
        _ => return None,
    };
    let rest: Vec<&str> = words.collect();
    let numbers = rest.iter().take_while(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut ordinals = numbers.map(|word| ordinal(word)).collect::<Option<Vec<_>>>()?;
    let impairment = match rest[ordinals.len()..] {
        ["lost"] => PacketImpairment::Lost,
        ["duplicated"] => PacketImpairment::Duplicated,
        ["delayed", ms, "ms"] => {
            PacketImpairment::Delayed(Duration::from_secs_f64(ms.parse::<f64>().ok()? / 1e3))
        }
        _ => return None,
    };
    if ordinals.is_empty() {
        ordinals.push((1, 1));
    }
    Some(ImpairmentRule { from, kind, ordinals, impairment, matched: 0 })
}

fn ordinal(word: &str) -> Option<(u64, u64)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    Some((first.parse().ok()?, last))
}
