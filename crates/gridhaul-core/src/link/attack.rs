//! Attacks: a man in the middle of a direction drops, delays or alters packets for a time.
//!
//! The attacker gets a packet at the end of its transmission. Packets that the link loses do not
//! reach the attacker; they use random numbers nevertheless, so that attacks and impairments do not
//! influence each other's random numbers.

use std::ops::Range;

use gridhaul_scenario::scenario::{AlteredChecksum, Attack, AttackAction, Direction};
use gridhaul_scenario::units::{Duration, Instant};

use super::impaired_path::ImpairedPath;
use super::medium::MediumAccess;
use super::outage::Series;
use super::{DropReason, LinkDirection, LinkPayload, LinkRandomStreams, TransitOutcome};
use crate::random::BernoulliTrial;

/// An attack on a direction.
#[derive(Debug, Clone)]
pub struct LinkAttack {
    times: Series,
    flows: FlowSelection,
    trial: BernoulliTrial,
    effect: AttackEffect,
}

/// Flows whose packets an attack concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowSelection {
    /// All packets.
    All,
    /// Packets whose [`LinkPayload::flow`] is in one of these ranges.
    In(Vec<Range<u64>>),
}

/// Effect of an attack on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttackEffect {
    Drop,
    Delay(Duration),
    Alter(AlteredChecksum),
}

/// The attacks on a direction, in the order of the scenario, and the packets on which they acted.
#[derive(Debug, Clone, Default)]
pub(super) struct Attacks {
    attacks: Vec<LinkAttack>,
    pub(super) delayed: u32,
    pub(super) altered: u32,
}

/// A packet that reaches an attacker.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttackedPacket {
    pub(super) flow: u64,
    pub(super) has_payload: bool,
    pub(super) sent: Instant,
}

impl LinkAttack {
    /// An attack of this name; `None` for a flood, whose packets are those of a flow. `random` are
    /// the random streams of the direction.
    #[must_use]
    pub fn new(
        name: &str,
        attack: &Attack,
        flows: FlowSelection,
        random: LinkRandomStreams,
    ) -> Option<Self> {
        let effect = match &attack.action {
            AttackAction::Drop(_) => AttackEffect::Drop,
            AttackAction::Delay(keys) => AttackEffect::Delay(keys.by),
            AttackAction::Alter(keys) => AttackEffect::Alter(keys.checksum),
            AttackAction::Flood(_) => return None,
        };
        let probability = attack.action.packets()?.probability;
        Some(Self {
            times: Series::recurring(attack.start, attack.length, attack.every),
            flows,
            trial: BernoulliTrial::new(probability, random.stream(&format!("attack {name}"))),
            effect,
        })
    }

    /// Whether the attack acts on a packet.
    fn acts(&mut self, packet: &AttackedPacket) -> bool {
        let is_selected = match &self.flows {
            FlowSelection::All => true,
            FlowSelection::In(ranges) => ranges.iter().any(|range| range.contains(&packet.flow)),
        };
        let has_object = packet.has_payload || !matches!(self.effect, AttackEffect::Alter(_));
        is_selected && has_object && self.times.covers(packet.sent) && self.trial.sample()
    }
}

impl Attacks {
    /// Changes arrival time and outcome of a transmitted packet.
    pub(super) fn apply(
        &mut self,
        packet: &AttackedPacket,
        left: &mut Instant,
        outcome: &mut TransitOutcome,
    ) {
        for attack in &mut self.attacks {
            if !attack.acts(packet) || !outcome.arrives() {
                continue;
            }
            match attack.effect {
                AttackEffect::Drop => *outcome = TransitOutcome::Lost(DropReason::Attack),
                AttackEffect::Delay(by) => {
                    *left += by;
                    self.delayed = self.delayed.saturating_add(1);
                }
                AttackEffect::Alter(checksum) => {
                    self.altered = self.altered.saturating_add(1);
                    // The attacker does not repair a checksum that is wrong already.
                    if *outcome != TransitOutcome::Corrupted {
                        *outcome = match checksum {
                            AlteredChecksum::Valid => TransitOutcome::CorruptedUndetected,
                            AlteredChecksum::Invalid => TransitOutcome::Corrupted,
                        };
                    }
                }
            }
        }
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// Adds an attack. `keys` and `random` are those with which the direction was built; no packet
    /// has been offered yet.
    pub(super) fn add_attack(
        &mut self,
        attack: LinkAttack,
        keys: &Direction,
        random: LinkRandomStreams,
    ) {
        let plain = || Box::new(ImpairedPath::of(keys, &MediumAccess::Own, random));
        self.impaired.get_or_insert_with(plain).attacks.attacks.push(attack);
    }

    /// Packets that attackers have delayed, and that they have altered.
    pub(super) fn attacked(&self) -> [u32; 2] {
        let attacks = self.impaired.as_ref().map(|impaired| &impaired.attacks);
        attacks.map_or([0; 2], |attacks| [attacks.delayed, attacks.altered])
    }
}
