//! `bpf/window_check.h`: windows and thresholds that no rule leads to, and those that one does.

use crate::compiled::run_program;

/// A connection that has lost nothing.
const UNLIMITED: u32 = 0x7fff_ffff;

/// States of a sender, as in `window_check.h`.
const OPEN: u32 = 0;
const REDUCED: u32 = 2;
const RECOVERY: u32 = 3;
const LOSS: u32 = 4;

/// Window and threshold in segments, and the state.
type Seen = (u32, u32, u32);

/// A sender: what was seen with the last acknowledgement, the window before the last loss, what is seen now.
type Sender = (Seen, u32, Seen);

fn wrong(senders: &[Sender]) -> Option<Vec<String>> {
    let line = |((window, threshold, told), before, (now, threshold_now, state)): &Sender| {
        format!("{window} {threshold} {told} {before} {now} {threshold_now} {state}\n")
    };
    let said = run_program("window_check", senders.iter().map(line).collect())?;
    Some(said.iter().map(|said| said.trim().to_owned()).collect())
}

fn check(cases: &[(Sender, &str)]) {
    let senders: Vec<_> = cases.iter().map(|(sender, _)| *sender).collect();
    let Some(answers) = wrong(&senders) else { return };
    for ((sender, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(answer, *expected, "{sender:?}");
    }
}

#[test]
fn what_rules_lead_to_is_not_wrong() {
    check(&[
        // Slow start, an acknowledgement of the whole window.
        (((10, UNLIMITED, OPEN), 0, (20, UNLIMITED, OPEN)), ""),
        // A first loss: the threshold falls from "unlimited" to half of the window.
        (((100, UNLIMITED, RECOVERY), 100, (100, 50, RECOVERY)), ""),
        // A recovery ends at its threshold; Vegas' threshold of 2 behind slow start.
        (((70, 50, OPEN), 100, (50, 50, OPEN)), ""),
        (((40, UNLIMITED, OPEN), 0, (35, 2, OPEN)), ""),
        // A timeout, and the first window behind it.
        (((100, 50, LOSS), 100, (1, 50, LOSS)), ""),
        (((1, 50, LOSS), 100, (2, 50, LOSS)), ""),
        // The loss was none: the kernel puts window and threshold back.
        (((1, 50, OPEN), 100, (100, 100, OPEN)), ""),
        // MEDX keeps its window at an error, above an old threshold.
        (((80, 20, OPEN), 80, (80, 80, OPEN)), ""),
        // A recovery sets its window anew from what is out; so does a reduction, and one follows the other.
        (((15, 15, RECOVERY), 15, (300, 15, RECOVERY)), ""),
        (((15, 15, REDUCED), 15, (300, 15, RECOVERY)), ""),
    ]);
}

#[test]
fn garbage_is_wrong() {
    check(&[
        // What the kernel finds where an answer should be: an address' half, a negative number, nothing.
        (((100, UNLIMITED, RECOVERY), 100, (100, 600_000_000, RECOVERY)), "threshold"),
        (((100, 50, RECOVERY), 100, (100, u32::MAX, RECOVERY)), "threshold"),
        (((100, 50, RECOVERY), 100, (100, 0, RECOVERY)), "threshold"),
        // The recovery has ended with it.
        (((100, 50, OPEN), 100, (600_000_000, 600_000_000, OPEN)), "window threshold"),
        // An undo that was not answered.
        (((50, 50, OPEN), 100, (600_000_000, 50, OPEN)), "window"),
        // A recovery and a timeout that nobody told of: whatever the threshold is, nobody has set it.
        (((100, 50, OPEN), 100, (100, 70, RECOVERY)), "threshold"),
        (((100, 50, LOSS), 100, (100, UNLIMITED, REDUCED)), "threshold"),
        (((100, 50, RECOVERY), 100, (1, 70, LOSS)), "threshold"),
    ]);
}

/// An acknowledgement lets a window double at most, and ten segments more are an idle connection's restart.
#[test]
fn the_border_is_twice_what_was_known_and_ten() {
    let open = |value| (value, value, OPEN);
    let cases: Vec<_> = [2, 3, 100, 65_535]
        .into_iter()
        .flat_map(|window| {
            let most = 2 * window + 10;
            let beyond = "window threshold";
            [
                (((window, 2, OPEN), 0, open(most)), ""),
                (((window, 2, OPEN), 0, open(most + 1)), beyond),
                (((2, 2, OPEN), window, open(most)), ""),
                (((2, 2, OPEN), window, open(most + 1)), beyond),
            ]
        })
        .collect();
    check(&cases);
}
