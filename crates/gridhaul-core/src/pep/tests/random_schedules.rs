//! Very many random schedules through a chain of reflecting units: nothing is lost, doubled or stuck.

use gridhaul_scenario::units::{Duration, Instant};

use super::chain::Chain;
use super::coupled::{CLOSES, Mode, chain};
use super::hop::Impairments;
use super::host::Application;
use super::stack;
use crate::pep::Side;
use crate::random::RandomStream;

/// Payload of a segment. So little, because the harness carries and checks every byte.
const MSS: u32 = 8;
/// Segments with bad impairments of their own, on all hops together; behind them all arrive.
const SEGMENTS: u64 = 150;
/// A transfer must be over after this time: the fates of 150 segments can hold one of them up at 5
/// timeouts in a row, of at most 5 s each, and each hop in turn.
const TIME: Duration = Duration::from_secs(300);

/// A chain, what its hosts do, and what happens to segments. The seed is all that it takes.
fn drawn(seed: u64) -> Chain {
    let mut random = RandomStream::named(seed, 0, "chain", 0, "case");
    let mut between = |low: u64, high: u64| low + random.below(high - low + 1);
    // In segments: buffers and windows from one and a half to fifteen, up to thirty of data.
    let units = [1, 2, 3, 7][between(0, 3) as usize];
    let buffers: Vec<u32> = (0..units).map(|_| between(12, 120) as u32).collect();
    let window = between(12, 160) as u32;
    let closes = CLOSES[between(0, 5) as usize];
    let plans = Side::BOTH.map(|side| {
        let slow = between(0, 4) == 0;
        let reads = (between(5, 32), Duration::from_millis(between(100, 900)));
        let size = between(0, 240);
        Application { reads: slow.then_some(reads), ..Application::new(size, closes[side.index()]) }
    });
    let handshake = between(0, 1) == 0;
    let impairments = Impairments::random(seed, 0.1, 0.2, SEGMENTS);
    let hosts = stack(MSS, window);
    let mut chain = chain(Mode::Reflect, &buffers, &hosts, plans, handshake, impairments);
    chain.closes_end_to_end = true;
    chain
}

fn lose_nothing(schedules: std::ops::Range<u64>) {
    for seed in schedules {
        let run = || {
            let mut chain = drawn(seed);
            chain.run_to_the_end();
            assert!(chain.now <= Instant::ZERO + TIME, "late: {}", chain.progress());
            // The last acknowledgements, sent again if need be: twelve in a row may be lost.
            chain.run(chain.now + Duration::from_secs(60));
            for unit in &chain.units {
                assert_eq!(unit.proxy.bytes_at_risk(), 0, "copies of what has arrived are kept");
            }
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("schedule {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn random_schedules_lose_nothing() {
    lose_nothing(0..1_000);
}

/// Of a million, the one in which a unit took bytes for gone that were lost on the way three times in
/// a row.
#[test]
fn bytes_that_are_lost_three_times_in_a_row_are_not_gone() {
    lose_nothing(689_385..689_386);
}

/// `GRIDHAUL_SCHEDULES=1000000 cargo test --release -p gridhaul-core --lib random_schedules -- --ignored
/// --nocapture` runs so many, from `GRIDHAUL_SCHEDULES_FROM` on, and prints how long it took.
#[test]
#[ignore = "takes as long as it is asked to"]
#[expect(clippy::disallowed_methods, reason = "it says how long it took")]
fn very_many_random_schedules_lose_nothing() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("GRIDHAUL_SCHEDULES_FROM").unwrap_or(0);
    let count = number("GRIDHAUL_SCHEDULES").unwrap_or(10_000);
    let begun = std::time::Instant::now();
    lose_nothing(first..first + count);
    println!("{count} schedules from {first} on, {:.0} s", begun.elapsed().as_secs_f64());
}
