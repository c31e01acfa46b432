//! `bpf/medx.bpf.c` on a simulated socket. The commands are described in `medx.c`; states are those
//! of `bpf/window_check.h`.

use crate::compiled::run_program;

/// Falling delays indicate an error, rising delays indicate congestion.
const FALL: &str = "d=40 d=30 d=20 d=10";
const RISE: &str = "d=10 d=20 d=30 d=40";

/// Window, threshold, losses classified as error, congestion and not classified, timeouts,
/// corrections.
type Expected = [u32; 7];

fn check(cases: &[(&str, Expected)]) {
    let line = |(words, _): &(&str, Expected)| {
        format!("{}\n", words.replace("FALL", FALL).replace("RISE", RISE))
    };
    let Some(output) = run_program("medx", cases.iter().map(line).collect()) else { return };
    assert_eq!(output.len(), cases.len());
    for ((words, expected), output) in cases.iter().zip(output) {
        let numbers: Vec<u32> =
            output.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers, expected, "{words}");
    }
}

#[test]
fn errors_keep_the_window_and_congestion_halves_it() {
    check(&[
        ("w=20 o=20 FALL s=3", [20, 20, 1, 0, 0, 0, 0]),
        ("w=20 o=20 RISE s=3", [20, 10, 0, 1, 0, 0, 0]),
        ("w=20 o=20 s=3", [20, 10, 0, 0, 1, 0, 0]),
        // The minimum is two segments.
        ("w=3 o=3 RISE s=3", [3, 2, 0, 1, 0, 0, 0]),
        // A second loss without a new delay is not classified.
        ("w=20 o=20 FALL s=3 n=0 s=3", [20, 10, 1, 0, 1, 0, 0]),
    ]);
}

/// Classifiers 2 and 3 are the controls `always_error` and `always_congestion`.
#[test]
fn a_socket_may_have_settings_of_its_own() {
    check(&[
        ("w=20 o=20 RISE c=2 s=3", [20, 20, 1, 0, 0, 0, 0]),
        ("w=20 o=20 FALL c=3 s=3", [20, 10, 0, 1, 0, 0, 0]),
        // Without a new delay the control keeps no window either.
        ("w=20 o=20 c=2 s=3", [20, 10, 0, 0, 1, 0, 0]),
    ]);
}

/// The kernel scales the data in flight by the ratio of threshold to window: 20 of 40 segments are
/// wanted.
#[test]
fn data_in_flight_beyond_the_window_are_reduced() {
    check(&[
        ("w=20 o=40 FALL s=3", [20, 10, 1, 0, 0, 0, 0]),
        ("w=20 o=40 RISE s=3", [20, 5, 0, 1, 0, 0, 0]),
        ("w=20 o=400 RISE s=3", [20, 2, 0, 1, 0, 0, 0]),
        // After recovery, the window is the wanted one.
        ("w=20 o=40 FALL s=3 w=10 n=0", [10, 20, 1, 0, 0, 0, 0]),
        ("w=20 o=40 RISE s=3 w=5 n=0", [5, 10, 0, 1, 0, 0, 0]),
    ]);
}

#[test]
fn an_ecn_mark_is_congestion_for_any_delays() {
    check(&[
        ("w=20 o=20 FALL s=2", [20, 10, 0, 0, 0, 0, 0]),
        ("w=20 o=20 RISE s=2", [20, 10, 0, 0, 0, 0, 0]),
    ]);
}

#[test]
fn a_timeout_by_error_restores_the_window() {
    check(&[
        ("w=20 o=20 FALL s=4", [20, 20, 1, 0, 0, 1, 0]),
        ("w=20 o=20 RISE s=4", [1, 10, 0, 1, 0, 1, 0]),
        // The kernel does not call `ssthresh` for a timeout within a recovery.
        ("w=20 o=20 FALL s=3 w=1 n=4", [1, 10, 1, 0, 1, 1, 0]),
        ("w=20 o=20 FALL s=3 w=1 d=5 n=4", [20, 20, 2, 0, 0, 1, 0]),
    ]);
}

#[test]
fn the_window_grows_as_with_reno() {
    check(&[
        // Slow start up to the threshold, then one segment per window.
        ("a=3", [13, 0x7fff_ffff, 0, 0, 0, 0, 0]),
        ("t=12 a=3", [12, 12, 0, 0, 0, 0, 0]),
        ("t=10 a=9", [10, 10, 0, 0, 0, 0, 0]),
        ("t=10 a=9 a=1", [11, 10, 0, 0, 0, 0, 0]),
        // Restores the window before a spurious loss.
        ("w=20 o=20 RISE s=3 w=10 u=0", [20, 10, 0, 1, 0, 0, 0]),
    ]);
}

/// docs/limitations/kernel.md: a recovery without a call of the program leaves invalid values.
#[test]
fn invalid_values_are_corrected_with_the_next_acknowledgement() {
    check(&[
        ("w=20 t=15 k=0 q=3 t=600000000 k=0", [20, 10, 0, 0, 0, 0, 1]),
        ("w=20 t=15 k=0 q=3 t=18 k=0 k=0", [20, 10, 0, 0, 0, 0, 1]),
        // A recovery with a call of the program is not corrected.
        ("w=20 t=15 k=0 o=20 FALL s=3 k=0", [20, 20, 1, 0, 0, 0, 0]),
    ]);
}
