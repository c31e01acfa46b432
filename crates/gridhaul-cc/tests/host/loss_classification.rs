//! What the kernel's MEDX makes of delays: `bpf/loss_classification.h` beside the paper's equations in floating point.

use crate::compiled::run_program;

/// α and β, the list's length, and pairs of a reported delay and a round trip.
struct Case {
    settings: (f64, f64, usize),
    delays: Vec<(u32, u32)>,
}

/// Asks the compiled code about all cases.
fn judged(cases: &[Case]) -> Option<Vec<(String, u32)>> {
    let mut text = String::new();
    for Case { settings: (alpha, beta, kept), delays } in cases {
        text += &format!("{} {} {kept}", (alpha * 1000.0).round(), (beta * 1000.0).round());
        delays.iter().for_each(|(delay, round_trip)| text += &format!(" {delay} {round_trip}"));
        text += "\n";
    }
    let answer = |line: &String| {
        let (cause, offset) = line.split_once(' ').unwrap();
        (cause.to_owned(), offset.parse().unwrap())
    };
    Some(run_program("loss_classification", text)?.iter().map(answer).collect())
}

/// The paper's settings, delays in milliseconds, a way back of 10 ms, and the receiver's clock ahead.
fn case(delays_ms: &[u32], ahead_us: u32) -> Case {
    let pair = |ms: &u32| ((1000 * ms).wrapping_add(ahead_us), 1000 * ms + 10_000);
    Case { settings: (0.5, 1.2, 4), delays: delays_ms.iter().map(pair).collect() }
}

/// The cases that gridhaul-core's MEDX is tested by (`tcp/congestion/medx.rs`).
#[test]
fn losses_are_judged_as_in_the_simulator() {
    let expected = [
        (&[10, 20, 30, 40][..], "congestion"),
        (&[10, 20, 30, 33], "error"),
        (&[10, 9, 30, 90], "error"),
        (&[90, 10, 10, 30, 90], "congestion"),
        (&[20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31], "error"),
        (&[1, 2, 3, 4], "congestion"),
        (&[], "unclassified"),
        (&[30, 20, 10], "unclassified"),
    ];
    let cases: Vec<_> = expected.iter().map(|(delays, _)| case(delays, 0)).collect();
    let Some(judged) = judged(&cases) else { return };
    for ((delays, expected), (cause, _)) in expected.iter().zip(judged) {
        assert_eq!(&cause, expected, "{delays:?}");
    }
}

/// Delays from a multiplicative generator, settings from the paper's ranges, and clocks that wrap.
#[test]
fn random_delays_are_judged_as_the_equations_say() {
    let mut state = 1_u64;
    let mut draw = |below: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    };
    let mut cases = Vec::new();
    for _ in 0..20_000 {
        let settings = (f64::from(draw(1000)) / 1000.0, f64::from(500 + draw(1500)) / 1000.0);
        let (kept, count) = (2 + draw(7) as usize, 1 + draw(20));
        let mut delay = 1 + draw(500_000);
        let delays = (0..count).map(|_| {
            // Mostly rising, or nothing would be congestion.
            delay = (delay + draw(60_000)).saturating_sub(draw(10_000)).max(1);
            (delay, delay + draw(20_000))
        });
        cases.push(Case { settings: (settings.0, settings.1, kept), delays: delays.collect() });
    }
    let Some(judged) = judged(&cases) else { return };
    let mut congestion = 0;
    for (case, (cause, offset)) in cases.iter().zip(judged) {
        let (expected, margin) = equations(case);
        assert_eq!(offset, 0, "one clock");
        // Closer than the kernel's integers can tell.
        if margin > 0.01 {
            assert_eq!(cause, expected, "{:?} {:?}", case.settings, case.delays);
        }
        congestion += usize::from(cause == "congestion");
    }
    assert!(congestion > 1000, "{congestion}");
}

/// What gridhaul-core's MEDX cannot do: it would see 3,600 s beside which no queue counts.
#[test]
fn the_offset_between_clocks_is_taken_out() {
    // One way 10 ms without queue, so 10 ms back; two segments alone, then a queue that grows.
    let delays = [10, 10, 20, 30, 60];
    let ahead =
        [0, 5_000, 3_600_000_000, 0u32.wrapping_sub(9_000), 0u32.wrapping_sub(1_800_000_000)];
    let cases: Vec<_> = ahead.iter().map(|ahead| case(&delays, *ahead)).collect();
    let Some(judged) = judged(&cases) else { return };
    for (ahead, (cause, offset)) in ahead.into_iter().zip(judged) {
        assert_eq!(cause, "congestion", "{ahead}");
        // An offset that the round trips cannot tell from none stays.
        let small = ahead.cast_signed().unsigned_abs() < 10_000;
        assert_eq!(offset, if small { 0 } else { ahead }, "{ahead}");
    }
}

/// With unequal ways the middle is wrong by half of their difference.
#[test]
fn unequal_ways_leave_half_of_their_difference() {
    // 10 ms there, 40 ms back.
    let delays = [10_000_u32; 4].map(|us| (us + 1_000_000, us + 40_000)).to_vec();
    let case = Case { settings: (0.5, 1.2, 4), delays };
    let Some(judged) = judged(&[case]) else { return };
    assert_eq!(judged[0].1, 1_000_000 - 15_000);
}

/// The verdict by equation 1 and both criteria, and how far criterion I is from its border in microseconds.
fn equations(case: &Case) -> (&'static str, f64) {
    let (alpha, beta, kept) = case.settings;
    let delays: Vec<_> = case.delays.iter().map(|(delay, _)| f64::from(*delay)).collect();
    let Some(list) = delays.len().checked_sub(kept).map(|start| &delays[start..]) else {
        return ("unclassified", f64::INFINITY);
    };
    let average =
        delays.iter().copied().reduce(|average, new| alpha * average + (1.0 - alpha) * new);
    let beyond = list[kept - 1] - beta * average.unwrap();
    let congestion = beyond > 0.0 && list.is_sorted();
    (if congestion { "congestion" } else { "error" }, beyond.abs())
}
