//! The GPRS uplink of paper `hybrid`, figures 2 and 3, as readable tables.

use std::fmt::Write as _;

use gridhaul_scenario::scenario::LoadLatency;

use super::*;

/// An uplink with the paper's latency and "two timeslots": a little above 20 kbit/s.
fn uplink() -> Direction {
    let keys: LoadLatency = LoadLatency {
        critical: BitRate::from_bits_per_sec(10_000),
        idle: Duration::from_millis(900),
        stationary: Duration::from_millis(2_000),
        drift_max: Duration::from_millis(2_400),
        drift_time: Duration::from_secs(30),
        jump: Duration::from_millis(4_000),
        paired: Duration::from_millis(1_000),
        oscillation: Duration::from_millis(200),
        period: Duration::from_secs(20),
        memory: Duration::from_secs(5),
        paired_with: None,
    };
    let rate = BitRate::from_bits_per_sec(21_000);
    Direction {
        queue: QueueLimit::Unlimited,
        load_latency: Some(keys),
        ..Direction::new(rate, Duration::ZERO)
    }
}

/// Latency in seconds of packets of 84 B (section 2) at a constant rate, as (offered at, latency).
fn ping(kbit_per_sec: f64, seconds: f64, paired: bool) -> Vec<(f64, f64)> {
    let mut link = link(&uplink());
    let gap = Duration::from_secs_f64(84.0 * 8.0 / kbit_per_sec / 1e3);
    let mut now = Instant::ZERO;
    while now.as_secs_f64() < seconds {
        if paired {
            link.note_paired_use(now);
        }
        link.handle_packet(now, 84, 0).unwrap();
        now += gap;
    }
    let latency = |transit: &PacketTransit<u32>| transit.left.since(transit.offered).as_secs_f64();
    drain(&mut link).iter().map(|p| (p.offered.as_secs_f64(), latency(p))).collect()
}

#[test]
fn latency_by_load_at_steady_state() {
    let mut table = String::from("kbit/s  alone: least mean most   paired: least mean most\n");
    for rate in [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 25.0] {
        write!(table, "{rate:>6.1} ").unwrap();
        for (paired, indent) in [(false, 7), (true, 10)] {
            // The last of three minutes.
            let all = ping(rate, 180.0, paired);
            let late: Vec<f64> = all.iter().filter(|p| p.0 >= 120.0).map(|p| p.1).collect();
            let minimum = late.iter().copied().fold(f64::MAX, f64::min);
            let maximum = late.iter().copied().fold(0.0, f64::max);
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            write!(table, "{:indent$}{minimum:5.1} {mean:4.1} {maximum:4.1}", "").unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table, @r"
    kbit/s  alone: least mean most   paired: least mean most
       2.5          0.9  1.1  1.3            0.8  1.0  1.2
       5.0          1.2  1.4  1.6            0.8  1.0  1.2
       7.5          1.4  1.6  1.8            0.8  1.0  1.2
      10.0          1.6  1.8  2.0            0.8  1.0  1.2
      12.5          4.0  4.2  4.4            0.8  1.0  1.2
      15.0          4.0  4.2  4.4            0.8  1.0  1.2
      20.0          4.0  4.2  4.4            0.8  1.0  1.2
      25.0         27.0 32.8 38.4           23.8 29.6 35.2
    ");
}

#[test]
fn above_the_critical_load_the_latency_drifts_and_then_jumps() {
    let mut table = String::new();
    let all = ping(15.0, 100.0, false);
    for second in [1, 5, 10, 20, 30, 33, 35, 60, 90] {
        let found = all.iter().find(|p| p.0 >= f64::from(second)).unwrap();
        writeln!(table, "{second:>2} s {:.1} s", found.1).unwrap();
    }
    insta::assert_snapshot!(table, @r"
     1 s 1.2 s
     5 s 1.9 s
    10 s 2.0 s
    20 s 2.2 s
    30 s 2.4 s
    33 s 2.4 s
    35 s 4.1 s
    60 s 4.1 s
    90 s 4.3 s
    ");
}

#[test]
fn the_latency_falls_with_the_load_or_when_the_paired_direction_is_used() {
    let keys = uplink().load_latency.unwrap();
    let random = LinkRandomStreams::named(1, 0, "uplink", 0).stream("load latency");
    let mut latency = super::super::load_latency::LoadLatency::new(&keys, random);
    let mut now = Instant::ZERO;
    let mut run = |seconds: u64, gap_ms: u64, paired: bool| {
        let mut last = Duration::ZERO;
        for _ in 0..seconds * 1000 / gap_ms {
            now += Duration::from_millis(gap_ms);
            if paired {
                latency.note_paired_use(now);
            }
            last = latency.addition(now, 84);
        }
        last.as_secs_f64()
    };
    // 84 B every 40 ms are 16.8 kbit/s, every 100 ms 6.7 kbit/s.
    assert!(run(60, 40, false) >= 4.0);
    assert!(run(6, 100, false) <= 2.0);
    assert!(run(60, 40, false) >= 4.0);
    assert!(run(1, 40, true) <= 1.2);
    // The use counts for `memory`; then the drift starts again.
    assert!(run(4, 40, false) <= 1.2);
    assert!((1.8..2.4).contains(&run(10, 40, false)));
}
