//! Attackers in the middle of a direction.

use gridhaul_scenario::scenario::{
    AlterAttack, AlteredChecksum, Attack, AttackAction, DelayAttack, DropAttack, Loss,
};

use super::super::{DropReason, FlowSelection, LinkAttack, TransitOutcome};
use super::*;

const ALL: FlowSelection = FlowSelection::All;

fn attack(action: AttackAction) -> Attack {
    let [start, length] = [30, 20].map(Duration::from_micros);
    Attack { start, length, every: None, action }
}

fn dropping(ratio: f64) -> Attack {
    let (link, flows, probability) = ("link".to_owned(), None, p(ratio));
    attack(AttackAction::Drop(DropAttack { link, flows, probability }))
}

fn altering(checksum: AlteredChecksum) -> Attack {
    let (link, flows, probability) = ("link".to_owned(), None, p(1.0));
    attack(AttackAction::Alter(AlterAttack { link, flows, probability, checksum }))
}

/// Transits of packets of 10 B that are offered every 10 µs: packet n is transmitted from 10·n
/// to 10·(n + 1) µs.
fn stream(
    keys: &Direction,
    attacks: &[(Attack, FlowSelection)],
    packets: u32,
) -> Vec<PacketTransit<u32>> {
    let random = LinkRandomStreams::named(1, 0, "link.forward", 0);
    let mut link = LinkDirection::new(keys, random);
    for (attack, flows) in attacks {
        let attack = LinkAttack::new("x", attack, flows.clone(), random).unwrap();
        link.add_attack(attack, keys, random);
    }
    for number in 0..packets {
        link.handle_packet(at(u64::from(number) * 10), 10, number).unwrap();
    }
    drain(&mut link)
}

fn clean() -> Direction {
    one_byte_a_microsecond(1_000, QueueLimit::Unlimited)
}

fn attacked(transits: &[PacketTransit<u32>], outcome: TransitOutcome) -> Vec<u32> {
    let found = transits.iter().filter(|transit| transit.outcome == outcome);
    found.map(|transit| transit.payload).collect()
}

#[test]
fn packets_whose_transmission_ends_in_the_attack_are_dropped() {
    let lost = TransitOutcome::Lost(DropReason::Attack);
    // The attack lasts from 30 µs, included, to 50 µs, excluded.
    assert_eq!(attacked(&stream(&clean(), &[(dropping(1.0), ALL)], 9), lost), [2, 3]);
    let every = Some(Duration::from_micros(30));
    let recurring = Attack { every, ..dropping(1.0) };
    assert_eq!(attacked(&stream(&clean(), &[(recurring, ALL)], 12), lost), [2, 3, 5, 6, 8, 9, 11]);
}

#[test]
fn only_packets_of_the_named_flows_are_attacked() {
    // Packet n belongs to flow n mod 3.
    let flows = FlowSelection::In(vec![0..1, 7..9]);
    let transits = stream(&clean(), &[(dropping(1.0), flows)], 9);
    assert_eq!(attacked(&transits, TransitOutcome::Lost(DropReason::Attack)), [3]);
}

#[test]
fn delayed_packets_are_overtaken() {
    let (link, flows, probability) = ("link".to_owned(), None, p(1.0));
    let by = Duration::from_micros(25);
    let delay = attack(AttackAction::Delay(DelayAttack { link, flows, probability, by }));
    let transits = stream(&clean(), &[(delay, ALL)], 7);
    let order: Vec<_> = transits.iter().map(|transit| transit.payload).collect();
    assert_eq!(order, [0, 1, 4, 2, 5, 3, 6]);
    assert_eq!(transits[3].left, at(30 + 1_000 + 25));
}

#[test]
fn altered_packets_arrive_with_or_without_a_valid_checksum() {
    for (checksum, outcome) in [
        (AlteredChecksum::Valid, TransitOutcome::CorruptedUndetected),
        (AlteredChecksum::Invalid, TransitOutcome::Corrupted),
    ] {
        let transits = stream(&clean(), &[(altering(checksum), ALL)], 9);
        assert_eq!(attacked(&transits, outcome), [2, 3]);
    }
    // The attacker does not repair a checksum that is wrong already.
    let both = [(altering(AlteredChecksum::Invalid), ALL), (altering(AlteredChecksum::Valid), ALL)];
    assert_eq!(attacked(&stream(&clean(), &both, 9), TransitOutcome::Corrupted), [2, 3]);
}

#[test]
fn an_attack_changes_no_random_number_of_the_link() {
    let lossy = Direction { loss: Some(Loss::Bernoulli(p(0.3))), ..clean() };
    let lost = TransitOutcome::Lost(DropReason::Loss);
    let expected = attacked(&stream(&lossy, &[], 200), lost);
    assert!(expected.len() > 30);
    let long = Attack { length: Duration::from_secs(1), ..dropping(0.4) };
    let transits = stream(&lossy, &[(long.clone(), ALL)], 200);
    // The loss of the link takes precedence.
    assert_eq!(attacked(&transits, lost), expected);
    // Nor does a loss change those of the attack.
    let dropped = TransitOutcome::Lost(DropReason::Attack);
    let by_attack = attacked(&transits, dropped);
    let without_loss = attacked(&stream(&clean(), &[(long, ALL)], 200), dropped);
    let survivors: Vec<_> =
        without_loss.into_iter().filter(|packet| !expected.contains(packet)).collect();
    assert_eq!(by_attack, survivors);
    // 140 of 200 packets pass the link, of which the attacker drops 40 %.
    assert!((35..80).contains(&by_attack.len()), "{}", by_attack.len());
}
