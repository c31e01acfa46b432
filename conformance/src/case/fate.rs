//! What befalls single packets on the way.
//!
//! ```text
//! client data 3 5-7    lost          the third and the fifth to seventh data packet, repeats counted
//! client seq 3001      lost          the first transmission of the segment that begins there
//! client seq 3001 1-2  lost          the first two
//! server ack 2         late 20 ms
//! client fin 1         twice
//! ```

use gridhaul_scenario::units::Duration;

use super::End;
use crate::observe::Packet;

/// What befalls a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It does not arrive.
    Lost,
    /// It arrives later by this much.
    Late(Duration),
    /// It arrives twice.
    Twice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Ack,
    Syn,
    Fin,
    Any,
    Seq(u64),
}

#[derive(Debug, Clone)]
struct Rule {
    from: End,
    kind: Kind,
    ordinals: Vec<(u64, u64)>,
    fate: Fate,
    seen: u64,
}

/// The rules of a case, with their counts.
#[derive(Debug, Clone, Default)]
pub struct Fates {
    rules: Vec<Rule>,
}

impl Fates {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let rules = lines
            .filter(|line| !line.is_empty())
            .map(|line| rule(line).ok_or_else(|| format!("cannot read the fate `{line}`")))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// What befalls a packet that is now handed to the path.
    pub fn judge(&mut self, packet: &Packet) -> Option<Fate> {
        let mut fate = None;
        for rule in &mut self.rules {
            if rule.from == packet.from && rule.kind.covers(packet) {
                rule.seen += 1;
                let listed = |&(first, last): &(u64, u64)| (first..=last).contains(&rule.seen);
                if rule.ordinals.iter().any(listed) {
                    fate = fate.or(Some(rule.fate));
                }
            }
        }
        fate
    }
}

impl Kind {
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

fn rule(line: &str) -> Option<Rule> {
    let mut words = line.split_whitespace();
    let from = match words.next()? {
        "client" => End::Client,
        "server" => End::Server,
        _ => return None,
    };
    let kind = match words.next()? {
        "data" => Kind::Data,
        "ack" => Kind::Ack,
        "syn" => Kind::Syn,
        "fin" => Kind::Fin,
        "any" => Kind::Any,
        "seq" => Kind::Seq(words.next()?.parse().ok()?),
        _ => return None,
    };
    let rest: Vec<&str> = words.collect();
    let numbers = rest.iter().take_while(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut ordinals = numbers.map(|word| ordinal(word)).collect::<Option<Vec<_>>>()?;
    let fate = match rest[ordinals.len()..] {
        ["lost"] => Fate::Lost,
        ["twice"] => Fate::Twice,
        ["late", ms, "ms"] => Fate::Late(Duration::from_secs_f64(ms.parse::<f64>().ok()? / 1e3)),
        _ => return None,
    };
    if ordinals.is_empty() {
        ordinals.push((1, 1));
    }
    Some(Rule { from, kind, ordinals, fate, seen: 0 })
}

fn ordinal(word: &str) -> Option<(u64, u64)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    Some((first.parse().ok()?, last))
}
