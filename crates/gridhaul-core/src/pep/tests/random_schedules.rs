//! Random schedules through a chain of `reflect` or `spoof` proxies: no data is lost, duplicated or
//! blocked.

use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_testing::{CloseTime, HostSchedule, ProxySchedule};

use super::chain::Chain;
use super::coupled::{MODES, Mode, TRANSPARENT_MODES, chain};
use super::hop::Impairments;
use super::host::{Application, Close};
use super::stack;
use crate::random::RandomStream;

/// Payload of a segment. It is small because the harness stores and checks every byte.
const MSS: u32 = 8;
/// Number of segments that may be impaired, over all hops.
const SEGMENTS: u64 = 150;
/// A transfer must be complete after this time: impairments of 150 segments can delay a segment by
/// 5 timeouts of at most 5 s each, on every hop in turn.
const TIME: Duration = Duration::from_secs(300);

/// A chain with applications and impairments, all determined by the seed.
pub(super) fn random_chain(mode: Mode, seed: u64) -> Chain {
    let mut random = RandomStream::named(seed, 0, "chain", 0, "case");
    let between = |low: u64, high: u64| low + random.below(high - low + 1);
    let schedule = ProxySchedule::random(u64::from(MSS), between);
    scheduled(mode, MSS, &schedule, Impairments::random(seed, 0.1, 0.2, SEGMENTS))
}

/// The chain of a schedule with segments of `mss` bytes.
fn scheduled(mode: Mode, mss: u32, schedule: &ProxySchedule, impairments: Impairments) -> Chain {
    let buffers: Vec<u32> = schedule.buffers.iter().map(|&buffer| buffer as u32).collect();
    let hosts = stack(mss, schedule.window as u32);
    let applications = schedule.hosts.map(application);
    let handshake = schedule.handshake;
    let mut chain = chain(mode, &buffers, &hosts, applications, handshake, impairments);
    chain.closes_end_to_end = mode != Mode::Split;
    chain
}

fn application(host: HostSchedule) -> Application {
    let close = match host.closes {
        CloseTime::AtOnce => Close::AtOnce,
        CloseTime::AfterPeer => Close::AfterPeer,
        CloseTime::Never => Close::Never,
    };
    let reads = host.reads.map(|(bytes, millis)| (bytes, Duration::from_millis(millis)));
    Application { reads, ..Application::new(host.writes, close) }
}

#[test]
fn every_close_is_complete_over_chains_of_every_length() {
    for mode in MODES {
        for schedule in ProxySchedule::closes_of_chains(100) {
            let mut chain = scheduled(mode, 100, &schedule, Impairments::none());
            chain.run_to_completion();
            assert!(chain.now < Instant::ZERO + TIME, "{mode:?}, {schedule:?}");
        }
    }
}

fn lose_nothing(mode: Mode, schedules: std::ops::Range<u64>) {
    for seed in schedules {
        let run = || {
            let mut chain = random_chain(mode, seed);
            chain.run_to_completion();
            assert!(
                chain.now <= Instant::ZERO + TIME,
                "not complete in time: {}",
                chain.progress()
            );
            // The last acknowledgements may need retransmissions: up to twelve in a row may be
            // lost.
            chain.run(chain.now + Duration::from_secs(60));
            for proxy in &chain.proxies {
                assert_eq!(proxy.proxy.bytes_at_risk(), 0, "delivered data is still at risk");
            }
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("{mode:?}, schedule {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn random_schedules_lose_nothing() {
    for mode in TRANSPARENT_MODES {
        lose_nothing(mode, 0..1_000);
    }
}

/// The schedule, one of a million, in which a proxy classified bytes as lost in a crash although
/// only their segments were lost three times in a row.
#[test]
fn three_losses_in_a_row_are_not_a_crash_loss() {
    lose_nothing(Mode::Reflect, 689_385..689_386);
}

/// `GRIDHAUL_SCHEDULES=1000000 cargo test --release -p gridhaul-core --lib random_schedules --
/// --ignored --nocapture` runs this many schedules, from `GRIDHAUL_SCHEDULES_FROM` on, and prints
/// the elapsed time.
#[test]
#[ignore = "long-running"]
#[expect(clippy::disallowed_methods, reason = "the test prints the elapsed time")]
fn many_random_schedules_lose_nothing() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("GRIDHAUL_SCHEDULES_FROM").unwrap_or(0);
    let count = number("GRIDHAUL_SCHEDULES").unwrap_or(10_000);
    let begun = std::time::Instant::now();
    for mode in TRANSPARENT_MODES {
        lose_nothing(mode, first..first + count);
    }
    println!("{count} schedules from {first} on, {:.0} s", begun.elapsed().as_secs_f64());
}
