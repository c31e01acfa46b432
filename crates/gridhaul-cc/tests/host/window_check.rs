//! `bpf/window_check.h`: detection of windows and thresholds that cannot result from any rule.

use crate::compiled::run_program;

/// The threshold of a connection without losses.
const UNLIMITED: u32 = 0x7fff_ffff;

/// States of a sender, as in `window_check.h`.
const OPEN: u32 = 0;
const REDUCED: u32 = 2;
const RECOVERY: u32 = 3;
const LOSS: u32 = 4;

/// Window and threshold in segments, and the congestion state.
type SenderState = (u32, u32, u32);

/// A sender: values at the last acknowledgement, the window before the last loss, current values.
type Sender = (SenderState, u32, SenderState);

fn wrong(senders: &[Sender]) -> Option<Vec<String>> {
    let line =
        |((window, threshold, notified_state), before, (now, threshold_now, state)): &Sender| {
            format!(
                "{window} {threshold} {notified_state} {before} {now} {threshold_now} {state}\n"
            )
        };
    let output = run_program("window_check", senders.iter().map(line).collect())?;
    Some(output.iter().map(|output| output.trim().to_owned()).collect())
}

fn check(cases: &[(Sender, &str)]) {
    let senders: Vec<_> = cases.iter().map(|(sender, _)| *sender).collect();
    let Some(answers) = wrong(&senders) else { return };
    for ((sender, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(answer, *expected, "{sender:?}");
    }
}

#[test]
fn valid_values_are_accepted() {
    check(&[
        // Slow start: acknowledgement of the whole window.
        (((10, UNLIMITED, OPEN), 0, (20, UNLIMITED, OPEN)), ""),
        // A first loss: the threshold falls from "unlimited" to half of the window.
        (((100, UNLIMITED, RECOVERY), 100, (100, 50, RECOVERY)), ""),
        // A recovery ends at its threshold; Vegas sets a threshold of 2 after slow start.
        (((70, 50, OPEN), 100, (50, 50, OPEN)), ""),
        (((40, UNLIMITED, OPEN), 0, (35, 2, OPEN)), ""),
        // A timeout, and the first window after it.
        (((100, 50, LOSS), 100, (1, 50, LOSS)), ""),
        (((1, 50, LOSS), 100, (2, 50, LOSS)), ""),
        // A spurious loss: the kernel restores window and threshold.
        (((1, 50, OPEN), 100, (100, 100, OPEN)), ""),
        // MEDX keeps its window at an error, above an old threshold.
        (((80, 20, OPEN), 80, (80, 80, OPEN)), ""),
        // A recovery computes its window from the data in flight, and so does a reduction; one may
        // follow the other.
        (((15, 15, RECOVERY), 15, (300, 15, RECOVERY)), ""),
        (((15, 15, REDUCED), 15, (300, 15, RECOVERY)), ""),
    ]);
}

#[test]
fn invalid_values_are_detected() {
    check(&[
        // Uninitialised results: half of an address, a negative number, zero.
        (((100, UNLIMITED, RECOVERY), 100, (100, 600_000_000, RECOVERY)), "threshold"),
        (((100, 50, RECOVERY), 100, (100, u32::MAX, RECOVERY)), "threshold"),
        (((100, 50, RECOVERY), 100, (100, 0, RECOVERY)), "threshold"),
        // The recovery has ended with the invalid threshold.
        (((100, 50, OPEN), 100, (600_000_000, 600_000_000, OPEN)), "window threshold"),
        // An undo without a call of the program.
        (((50, 50, OPEN), 100, (600_000_000, 50, OPEN)), "window"),
        // A recovery and a timeout without a call of the program: any changed threshold is invalid.
        (((100, 50, OPEN), 100, (100, 70, RECOVERY)), "threshold"),
        (((100, 50, LOSS), 100, (100, UNLIMITED, REDUCED)), "threshold"),
        (((100, 50, RECOVERY), 100, (1, 70, LOSS)), "threshold"),
    ]);
}

/// An acknowledgement doubles a window at most; the margin of ten segments covers a restart after
/// idle.
#[test]
fn the_limit_is_twice_the_previous_window_plus_ten() {
    let open = |value| (value, value, OPEN);
    let cases: Vec<_> = [2, 3, 100, 65_535]
        .into_iter()
        .flat_map(|window| {
            let maximum = 2 * window + 10;
            let beyond = "window threshold";
            [
                (((window, 2, OPEN), 0, open(maximum)), ""),
                (((window, 2, OPEN), 0, open(maximum + 1)), beyond),
                (((2, 2, OPEN), window, open(maximum)), ""),
                (((2, 2, OPEN), window, open(maximum + 1)), beyond),
            ]
        })
        .collect();
    check(&cases);
}
