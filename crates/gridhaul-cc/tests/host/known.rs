//! `bpf/known.h`: windows and thresholds that no rule leads to, and those that one does.

use crate::compiled::ask;

/// A connection that has lost nothing.
const UNLIMITED: u32 = 0x7fff_ffff;

/// A sender, in segments: window and threshold at the last acknowledgement, window before the last loss,
/// window and threshold now.
type Sender = (u32, u32, u32, u32, u32);

fn wrong(senders: &[Sender]) -> Option<Vec<String>> {
    let line = |(window, threshold, before, now, threshold_now): &Sender| {
        format!("{window} {threshold} {before} {now} {threshold_now}\n")
    };
    let said = ask("known", senders.iter().map(line).collect())?;
    Some(said.iter().map(|said| said.trim().to_owned()).collect())
}

#[test]
fn garbage_is_told_from_what_rules_lead_to() {
    let cases: [(Sender, &str); 12] = [
        // Slow start, an acknowledgement of the whole window.
        ((10, UNLIMITED, 0, 20, UNLIMITED), ""),
        // A first loss: the threshold falls from "unlimited" to half of the window.
        ((100, UNLIMITED, 100, 100, 50), ""),
        // A recovery ends at its threshold; Vegas' threshold of 2 behind slow start.
        ((70, 50, 100, 50, 50), ""),
        ((40, UNLIMITED, 0, 35, 2), ""),
        // A timeout, and the first window behind it.
        ((100, 50, 100, 1, 50), ""),
        ((1, 50, 100, 2, 50), ""),
        // The loss was none: the kernel puts window and threshold back.
        ((1, 50, 100, 100, 100), ""),
        // MEDX keeps its window at an error, above an old threshold.
        ((80, 20, 80, 80, 80), ""),
        // What the kernel finds where an answer should be: an address' half, a negative number.
        ((100, UNLIMITED, 100, 100, 600_000_000), "threshold"),
        ((100, 50, 100, 100, u32::MAX), "threshold"),
        // The recovery has ended with it.
        ((100, 50, 100, 600_000_000, 600_000_000), "window threshold"),
        // An undo that was not answered.
        ((50, 50, 100, 600_000_000, 50), "window"),
    ];
    let senders: Vec<_> = cases.iter().map(|(sender, _)| *sender).collect();
    let Some(answers) = wrong(&senders) else { return };
    for ((sender, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(answer, *expected, "{sender:?}");
    }
}

/// An acknowledgement lets a window double at most, and ten segments more are an idle connection's restart.
#[test]
fn the_border_is_twice_what_was_known_and_ten() {
    let cases: Vec<Sender> = [1, 2, 3, 100, 65_535]
        .into_iter()
        .flat_map(|window| {
            let most = 2 * window + 10;
            [(window, 1, 0, most, most), (window, 1, 0, most + 1, most + 1)]
                .into_iter()
                .chain([(1, 1, window, most, most), (1, 1, window, most + 1, most + 1)])
        })
        .collect();
    let Some(answers) = wrong(&cases) else { return };
    for (case, answer) in cases.iter().zip(answers) {
        let beyond = case.3 % 2 == 1;
        assert_eq!(answer, if beyond { "window threshold" } else { "" }, "{case:?}");
    }
}
