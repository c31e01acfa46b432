//! Random schedules.

use gridhaul_core::coverage_mark::covers;
use proptest::prelude::*;

use super::world::{SHARDS, World};
use crate::collector::Tier;

#[derive(Debug, Clone)]
enum Action {
    Open,
    Send(usize, u64),
    Fin(usize),
    Reset(usize),
    CommitCollector,
    CommitHead,
    Trim,
    Connect(u16),
    Disconnect(u16),
    Up(u16, usize),
    Down(u16, usize),
    /// `None`: only the process ends; otherwise the power fails, with a choice for each sector.
    KillCollector(Option<u64>),
    KillHead(Option<u64>),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Open),
        12 => (0_usize..6, 1_u64..2_000).prop_map(|(meter, length)| Action::Send(meter, length)),
        2 => (0_usize..6).prop_map(Action::Fin),
        1 => (0_usize..6).prop_map(Action::Reset),
        6 => Just(Action::CommitCollector),
        6 => Just(Action::CommitHead),
        1 => Just(Action::Trim),
        3 => (0..SHARDS).prop_map(Action::Connect),
        1 => (0..SHARDS).prop_map(Action::Disconnect),
        8 => (0..SHARDS, 1_usize..9_000).prop_map(|(shard, length)| Action::Up(shard, length)),
        8 => (0..SHARDS, 1_usize..500).prop_map(|(shard, length)| Action::Down(shard, length)),
        1 => any::<Option<u64>>().prop_map(Action::KillCollector),
        1 => any::<Option<u64>>().prop_map(Action::KillHead),
    ]
}

fn act(world: &mut World, action: &Action) {
    match *action {
        Action::Open => world.open_meter(),
        Action::Send(meter, length) => world.send(meter, length),
        Action::Fin(meter) => world.fin(meter),
        Action::Reset(meter) => world.reset(meter),
        Action::CommitCollector => world.commit_collector(),
        Action::CommitHead => world.commit_head(),
        Action::Trim => world.trim_collector(),
        Action::Connect(shard) => world.connect(shard),
        Action::Disconnect(shard) => world.disconnect(shard),
        Action::Up(shard, length) => world.transfer_up(shard, length),
        Action::Down(shard, length) => world.transfer_down(shard, length),
        Action::KillCollector(power) => world.kill_collector(power),
        Action::KillHead(power) => world.kill_head(power),
    }
}

proptest! {
    #[test]
    fn stored_data_is_delivered_exactly_once(
        actions in proptest::collection::vec(action(), 1..150),
        tier in prop_oneof![Just(Tier::Local), Just(Tier::Server), Just(Tier::Memory)],
    ) {
        let mut world = World::new(tier);
        world.open_meter();
        (0..SHARDS).for_each(|shard| world.connect(shard));
        for action in &actions {
            act(&mut world, action);
        }
        world.deliver_all();
        world.check();
    }
}

#[test]
fn a_fin_is_answered_only_when_the_head_has_the_data() {
    covers!(collector_answers_fin_after_storage);
    let mut world = World::new(Tier::Server);
    (0..2).for_each(|_| world.open_meter());
    world.send(0, 100);
    world.fin(0);
    world.connect(0);
    world.transfer_up(0, 10_000);
    world.transfer_down(0, 10_000);
    world.commit_collector();
    world.transfer_up(0, 10_000);
    assert_eq!(world.meters.len(), 2, "the head has received the data, and has not written it");
    world.commit_head();
    world.transfer_down(0, 10_000);
    assert_eq!(world.meters.len(), 1);
    world.check();
}

#[test]
fn one_meter_does_not_fill_the_backlog() {
    covers!(collector_divides_the_second_half_of_the_backlog);
    let mut world = World::new(Tier::Local);
    (0..5).for_each(|_| world.open_meter());
    for _ in 0..500 {
        world.send(0, 2_000);
        world.commit_collector();
    }
    let used = world.known.values().map(|known| known.durable).max().unwrap();
    assert!(
        (30_000..40_000).contains(&used),
        "{used}: half of the backlog and a fifth of the rest"
    );
    for meter in 1..5 {
        world.send(meter, 1_000);
        world.commit_collector();
    }
    let served = world.known.values().filter(|known| known.durable >= 1_000).count();
    assert_eq!(served, 5, "the others are served although the head is unreachable");
    world.deliver_all();
    world.check();
}

#[test]
fn a_meter_that_sends_much_leaves_space_for_meters_that_connect_later() {
    let mut world = World::new(Tier::Local);
    world.open_meter();
    for _ in 0..500 {
        world.send(0, 2_000);
        world.commit_collector();
    }
    for meter in 1..8 {
        world.open_meter();
        world.send(meter, 1_000);
        world.commit_collector();
    }
    let served = world.known.values().filter(|known| known.durable >= 1_000).count();
    assert_eq!(served, 8, "all are served although the head is unreachable");
    world.deliver_all();
    world.check();
}

#[test]
fn a_fin_of_the_server_that_crosses_that_of_the_meter_is_no_answer_to_it() {
    covers!(collector_server_fin_answers_no_waiting_data);
    for is_closing in [false, true] {
        let mut world = World::new(Tier::Server);
        world.open_meter();
        for shard in 0..SHARDS {
            world.connect(shard);
            world.transfer_up(shard, 10_000);
            world.transfer_down(shard, 10_000);
        }
        assert_eq!(world.server_closes(0, is_closing), !is_closing, "FIN is sent to the meter");
    }
}
