//! `bpf/medx.bpf.c` on a socket that is none: what becomes of window and threshold. The words of a sender stand
//! in `medx.c`; states are those of `bpf/window_check.h`.

use crate::compiled::run_program;

/// Delays that fall: an error. Delays that rise: congestion.
const FALL: &str = "d=40 d=30 d=20 d=10";
const RISE: &str = "d=10 d=20 d=30 d=40";

/// What is expected: window, threshold, losses called error, congestion and nothing, timeouts, times corrected.
type Expected = [u32; 7];

fn check(cases: &[(&str, Expected)]) {
    let line = |(words, _): &(&str, Expected)| {
        format!("{}\n", words.replace("FALL", FALL).replace("RISE", RISE))
    };
    let Some(said) = run_program("medx", cases.iter().map(line).collect()) else { return };
    assert_eq!(said.len(), cases.len());
    for ((words, expected), said) in cases.iter().zip(said) {
        let numbers: Vec<u32> =
            said.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers, expected, "{words}");
    }
}

#[test]
fn errors_keep_the_window_and_congestion_halves_it() {
    check(&[
        ("w=20 o=20 FALL s=3", [20, 20, 1, 0, 0, 0, 0]),
        ("w=20 o=20 RISE s=3", [20, 10, 0, 1, 0, 0, 0]),
        ("w=20 o=20 s=3", [20, 10, 0, 0, 1, 0, 0]),
        // Two segments are the least.
        ("w=3 o=3 RISE s=3", [3, 2, 0, 1, 0, 0, 0]),
        // A second loss without news of delays is not judged by old ones.
        ("w=20 o=20 FALL s=3 n=0 s=3", [20, 10, 1, 0, 1, 0, 0]),
    ]);
}

/// The kernel brings down what is out by the threshold's part of the window: 20 of 40 are wanted.
#[test]
fn a_burst_beyond_the_window_does_not_stay_out() {
    check(&[
        ("w=20 o=40 FALL s=3", [20, 10, 1, 0, 0, 0, 0]),
        ("w=20 o=40 RISE s=3", [20, 5, 0, 1, 0, 0, 0]),
        ("w=20 o=400 RISE s=3", [20, 2, 0, 1, 0, 0, 0]),
        // Behind it, the window is what was wanted.
        ("w=20 o=40 FALL s=3 w=10 n=0", [10, 20, 1, 0, 0, 0, 0]),
        ("w=20 o=40 RISE s=3 w=5 n=0", [5, 10, 0, 1, 0, 0, 0]),
    ]);
}

#[test]
fn a_mark_is_congestion_whatever_the_delays_say() {
    check(&[
        ("w=20 o=20 FALL s=2", [20, 10, 0, 0, 0, 0, 0]),
        ("w=20 o=20 RISE s=2", [20, 10, 0, 0, 0, 0, 0]),
    ]);
}

#[test]
fn a_timeout_by_error_gets_its_window_back() {
    check(&[
        ("w=20 o=20 FALL s=4", [20, 20, 1, 0, 0, 1, 0]),
        ("w=20 o=20 RISE s=4", [1, 10, 0, 1, 0, 1, 0]),
        // Within a recovery the kernel does not run_program.
        ("w=20 o=20 FALL s=3 w=1 n=4", [1, 10, 1, 0, 1, 1, 0]),
        ("w=20 o=20 FALL s=3 w=1 d=5 n=4", [20, 20, 2, 0, 0, 1, 0]),
    ]);
}

#[test]
fn growth_is_renos() {
    check(&[
        // Slow start, up to the threshold; then a segment for each window.
        ("a=3", [13, 0x7fff_ffff, 0, 0, 0, 0, 0]),
        ("t=12 a=3", [12, 12, 0, 0, 0, 0, 0]),
        ("t=10 a=9", [10, 10, 0, 0, 0, 0, 0]),
        ("t=10 a=9 a=1", [11, 10, 0, 0, 0, 0, 0]),
        // Back to the window before a loss that was none.
        ("w=20 o=20 RISE s=3 w=10 u=0", [20, 10, 0, 1, 0, 0, 0]),
    ]);
}

/// docs/limitations/kernel.md: a recovery that the program was not told of leaves garbage.
#[test]
fn garbage_is_put_right_with_the_next_acknowledgement() {
    check(&[
        ("w=20 t=15 k=0 q=3 t=600000000 k=0", [20, 10, 0, 0, 0, 0, 1]),
        ("w=20 t=15 k=0 q=3 t=18 k=0 k=0", [20, 10, 0, 0, 0, 0, 1]),
        // A recovery that it was told of is left alone.
        ("w=20 t=15 k=0 o=20 FALL s=3 k=0", [20, 20, 1, 0, 0, 0, 0]),
    ]);
}
