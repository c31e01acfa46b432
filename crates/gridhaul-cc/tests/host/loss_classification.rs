//! Compares the classification of `bpf/loss_classification.h` with the paper's equations in
//! floating point.

use crate::compiled::run_program;

/// α and β, the length of the delay buffer, and pairs of a reported delay and a round-trip time.
struct Case {
    settings: (f64, f64, usize),
    delays: Vec<(u32, u32)>,
}

/// Runs the compiled code on all cases.
fn classify(cases: &[Case]) -> Option<Vec<(String, u32)>> {
    let mut text = String::new();
    for Case { settings: (alpha, beta, list_length), delays } in cases {
        text += &format!("{} {} {list_length}", (alpha * 1000.0).round(), (beta * 1000.0).round());
        delays.iter().for_each(|(delay, round_trip)| text += &format!(" {delay} {round_trip}"));
        text += "\n";
    }
    let answer = |line: &String| {
        let (cause, offset) = line.split_once(' ').unwrap();
        (cause.to_owned(), offset.parse().unwrap())
    };
    Some(run_program("loss_classification", text)?.iter().map(answer).collect())
}

/// The paper's settings, delays in milliseconds, a reverse delay of 10 ms, and the receiver's clock
/// ahead.
fn case(delays_ms: &[u32], ahead_us: u32) -> Case {
    let pair = |ms: &u32| ((1000 * ms).wrapping_add(ahead_us), 1000 * ms + 10_000);
    Case { settings: (0.5, 1.2, 4), delays: delays_ms.iter().map(pair).collect() }
}

/// The test cases of gridhaul-core's MEDX (`tcp/congestion/medx.rs`).
#[test]
fn losses_are_classified_as_in_the_simulator() {
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
    let Some(classified) = classify(&cases) else { return };
    for ((delays, expected), (cause, _)) in expected.iter().zip(classified) {
        assert_eq!(&cause, expected, "{delays:?}");
    }
}

/// Random delays, settings from the paper's ranges, and clocks that wrap.
#[test]
fn random_delays_are_classified_as_by_the_equations() {
    let mut state = 1_u64;
    let mut random = |below: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    };
    let mut cases = Vec::new();
    for _ in 0..20_000 {
        let settings = (f64::from(random(1000)) / 1000.0, f64::from(500 + random(1500)) / 1000.0);
        let (list_length, count) = (2 + random(7) as usize, 1 + random(20));
        let mut delay = 1 + random(500_000);
        let delays = (0..count).map(|_| {
            // Mostly rising: otherwise no loss would be classified as congestion.
            delay = (delay + random(60_000)).saturating_sub(random(10_000)).max(1);
            (delay, delay + random(20_000))
        });
        cases.push(Case {
            settings: (settings.0, settings.1, list_length),
            delays: delays.collect(),
        });
    }
    let Some(classified) = classify(&cases) else { return };
    let mut congestion = 0;
    for (case, (cause, offset)) in cases.iter().zip(classified) {
        let (expected, margin) = equations(case);
        assert_eq!(offset, 0, "both ends use the same clock");
        // Closer to the threshold, the kernel's integer arithmetic may differ.
        if margin > 0.01 {
            assert_eq!(cause, expected, "{:?} {:?}", case.settings, case.delays);
        }
        congestion += usize::from(cause == "congestion");
    }
    assert!(congestion > 1000, "{congestion}");
}

/// gridhaul-core's MEDX does not estimate the offset: with 3,600 s, no queueing delay would be
/// significant.
#[test]
fn the_clock_offset_is_estimated() {
    // One-way delays of 10 ms in each direction; two segments alone, then a growing queue.
    let delays = [10, 10, 20, 30, 60];
    let ahead =
        [0, 5_000, 3_600_000_000, 0u32.wrapping_sub(9_000), 0u32.wrapping_sub(1_800_000_000)];
    let cases: Vec<_> = ahead.iter().map(|ahead| case(&delays, *ahead)).collect();
    let Some(classified) = classify(&cases) else { return };
    for (ahead, (cause, offset)) in ahead.into_iter().zip(classified) {
        assert_eq!(cause, "congestion", "{ahead}");
        // An offset that is consistent with zero is not subtracted.
        let small = ahead.cast_signed().unsigned_abs() < 10_000;
        assert_eq!(offset, if small { 0 } else { ahead }, "{ahead}");
    }
}

/// With asymmetric delays, the error of the estimate is half of their difference.
#[test]
fn asymmetric_delays_shift_the_estimate_by_half_of_their_difference() {
    // Forward delay 10 ms, reverse delay 40 ms.
    let delays = [10_000_u32; 4].map(|us| (us + 1_000_000, us + 40_000)).to_vec();
    let case = Case { settings: (0.5, 1.2, 4), delays };
    let Some(classified) = classify(&[case]) else { return };
    assert_eq!(classified[0].1, 1_000_000 - 15_000);
}

/// The classification by equation 1 and both criteria, and the distance to the threshold of
/// criterion I in µs.
fn equations(case: &Case) -> (&'static str, f64) {
    let (alpha, beta, list_length) = case.settings;
    let delays: Vec<_> = case.delays.iter().map(|(delay, _)| f64::from(*delay)).collect();
    let Some(list) = delays.len().checked_sub(list_length).map(|start| &delays[start..]) else {
        return ("unclassified", f64::INFINITY);
    };
    let average =
        delays.iter().copied().reduce(|average, new| alpha * average + (1.0 - alpha) * new);
    let beyond = list[list_length - 1] - beta * average.unwrap();
    let congestion = beyond > 0.0 && list.is_sorted();
    (if congestion { "congestion" } else { "error" }, beyond.abs())
}
